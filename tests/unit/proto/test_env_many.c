/*
 * Tests of proto/env_many.h: a question to several nodes, answers as records and as JSON, and what
 * is left under way when it was enough or when the asker is killed.
 */
#include "proto/env_many.h"
#include "proto/records.h"

#include <string.h>

/* --- a world that keeps the calls under way --- */

#define MOST 3

static struct {
    rpc_reply_fn done[MOST];
    void *data[MOST];
    guint calls;
    GString *asked; /* "NODE ROLE/METHOD ARGS job JOB within LIMIT", a line each */
} world;

static void call(const struct env *env, const struct rpc_call *rpc, rpc_reply_fn done, void *data)
{
    g_autofree char *args = json_to_text(rpc->args);
    g_assert_cmpuint(world.calls, <, MOST);
    world.done[world.calls] = done;
    world.data[world.calls++] = data;
    g_string_append_printf(world.asked, "%s %s/%s %s job %u within %u\n", rpc->to_node,
                           rpc->to_role, rpc->method, args, rpc->job, rpc->timeout_ms);
    json_decref(rpc->args);
}

static const struct env_ops ops = {.call = call};
static struct env env = {.ops = &ops};

static void reply(guint index, const char *text)
{
    json_autoptr json = json_loads(text, 0, NULL);
    world.done[index](json, NULL, world.data[index]);
}

static void fail(guint index, enum fettle_error code, const char *text)
{
    g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, (gint)code, text);
    world.done[index](NULL, error, world.data[index]);
}

static void turns(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

/* --- a task that asks --- */

struct asker {
    struct env_question question;
    guint enough;  /* answers */
    GString *told; /* "INDEX NODE: ANSWER", a line each */
    guint heard;
    bool ended, alive;
    struct role_status *kept;
};

static bool take(struct env_answer *answer, void *data)
{
    struct asker *asker = data;
    g_autofree char *json = answer->json ? json_to_text(answer->json) : NULL;
    const struct role_status *status = answer->record;
    g_assert_true((answer->error == NULL) == (status || (json && asker->question.json)));
    g_string_append_printf(asker->told, "%u %s: %s\n", answer->index, answer->node,
                           answer->error ? answer->error->message
                           : status      ? status->master_node
                                         : json);
    if (status && !asker->kept)
        asker->kept = g_steal_pointer(&answer->record);
    return ++asker->heard == asker->enough;
}

static void ask_task(void *data)
{
    struct asker *asker = data;
    asker->alive = env_many(&env, &asker->question, take, asker);
    asker->ended = true;
}

static void begin(struct asker *asker, guint nodes)
{
    static char *const names[MOST] = {(char *)"node1", (char *)"node2", (char *)"node3"};
    GPtrArray *list = g_ptr_array_new();
    for (guint i = 0; i < nodes; i++)
        g_ptr_array_add(list, names[i]);
    asker->question.nodes = list;
    asker->told = g_string_new(NULL);
    world.asked = g_string_new(NULL);
    world.calls = 0;
    env.tasks = task_group_new();
    task_spawn(env.tasks, ask_task, asker);
    turns();
}

static void end(struct asker *asker, bool alive, const char *told)
{
    turns();
    g_assert_true(asker->ended);
    g_assert_true(asker->alive == alive);
    g_assert_cmpstr(asker->told->str, ==, told);
    g_string_free(asker->told, TRUE);
    g_string_free(world.asked, TRUE);
    g_ptr_array_unref((GPtrArray *)asker->question.nodes);
    role_status_free(asker->kept);
    task_group_unref(env.tasks);
}

#define STATUS(node) "{\"seat\":\"follows\",\"master_node\":\"" node "\"}"

/* --- tests --- */

static void test_records(void)
{
    static const struct wait_role_args args = {.seat = SEAT_FOLLOWS};
    struct asker asker = {
        {.role = ROLE_WCONFD, .method = "wait_role", .args = &args, .job = 7, .limit_ms = 250}};
    begin(&asker, 3);
    g_autofree char *one = g_strdup(strchr(world.asked->str, ' '));
    *(strchr(one, '\n') + 1) = '\0';
    g_autofree char *all = g_strdup_printf("node1%snode2%snode3%s", one, one, one);
    g_assert_cmpstr(world.asked->str, ==, all);
    g_assert_true(g_str_has_suffix(one, " job 7 within 250\n"));
    reply(2, STATUS("c"));
    fail(0, FETTLE_ERROR_UNREACHABLE, "no way");
    g_assert_false(asker.ended);
    reply(1, "{\"seat\":5}");
    end(&asker, true,
        "2 node3: c\n0 node1: no way\n"
        "1 node2: answer of wconfd/wait_role: seat: must be a text\n");
}

static void test_json(void)
{
    json_autoptr looks = json_make("{s:b}", "looks", 1);
    struct asker asker = {{.role = ROLE_NODED, .method = "node_report", .json = looks}};
    begin(&asker, 2);
    g_assert_cmpstr(world.asked->str, ==,
                    "node1 noded/node_report {\"looks\":true} job 0 within 0\n"
                    "node2 noded/node_report {\"looks\":true} job 0 within 0\n");
    reply(0, "{\"no\":\"report\"}");
    fail(1, FETTLE_ERROR_TIMEOUT, "late");
    end(&asker, true, "0 node1: {\"no\":\"report\"}\n1 node2: late\n");
}

static void test_enough(void)
{
    struct asker asker = {{.role = ROLE_WCONFD, .method = "wait_role"}, .enough = 1};
    begin(&asker, 3);
    reply(1, STATUS("b"));
    reply(0, STATUS("a")); /* before the asker has its turn: it is enough all the same */
    end(&asker, true, "1 node2: b\n");
    reply(2, STATUS("c")); /* reaches nobody, and frees what it needed */
}

static void test_nobody(void)
{
    struct asker asker = {{.role = ROLE_WCONFD, .method = "wait_role"}};
    begin(&asker, 0);
    end(&asker, true, "");
}

static void test_killed(void)
{
    struct asker asker = {{.role = ROLE_WCONFD, .method = "wait_role"}};
    begin(&asker, 2);
    task_group_kill(env.tasks);
    fail(0, FETTLE_ERROR_KILLED, "it ends"); /* before the asker has its turn */
    end(&asker, false, "");
    fail(1, FETTLE_ERROR_KILLED, "it ends");
}

static void test_killed_before(void)
{
    struct asker asker = {{.role = ROLE_WCONFD, .method = "wait_role"}};
    begin(&asker, 0);
    task_group_kill(env.tasks);
    g_ptr_array_add((GPtrArray *)asker.question.nodes, (char *)"node1");
    task_spawn(env.tasks, ask_task, &asker);
    turns();
    g_assert_cmpuint(world.calls, ==, 0); /* the dead ask nothing */
    end(&asker, false, "");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/env-many/records", test_records);
    g_test_add_func("/env-many/json", test_json);
    g_test_add_func("/env-many/enough", test_enough);
    g_test_add_func("/env-many/nobody", test_nobody);
    g_test_add_func("/env-many/killed", test_killed);
    g_test_add_func("/env-many/killed-before", test_killed_before);
    return g_test_run();
}
