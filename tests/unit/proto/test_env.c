/*
 * Tests of the helpers at the end of proto/env.h: waiting calls and sleeps, and what is left of
 * them when the waiting process is killed before, or just when, the answer comes.
 */
#include "proto/env.h"
#include "proto/records.h"

#include <string.h>

/* --- a world with one call and one timer under way --- */

static struct {
    rpc_reply_fn done;
    void *done_data;
    char *args;
    guint timeout_ms;
    void (*timer_fn)(void *data);
    void *timer_data;
    guint calls, canceled;
    guchar next_random;
} world;

static void call(const struct env *env, const struct rpc_call *rpc, rpc_reply_fn done, void *data)
{
    world.calls++;
    world.done = done;
    world.done_data = data;
    world.timeout_ms = rpc->timeout_ms;
    g_free(world.args);
    world.args = json_to_text(rpc->args);
    json_decref(rpc->args);
}

static guint timer(const struct env *env, guint ms, void (*fn)(void *data), void *data)
{
    world.timer_fn = fn;
    world.timer_data = data;
    return ms;
}

static void timer_cancel(const struct env *env, guint handle)
{
    g_assert_cmpuint(handle, ==, 50);
    world.canceled++;
}

static void random_bytes(const struct env *env, void *ret_bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((guchar *)ret_bytes)[i] = world.next_random++;
}

static const struct env_ops ops = {
    .call = call,
    .timer = timer,
    .timer_cancel = timer_cancel,
    .random = random_bytes,
};
static struct env env = {.ops = &ops};

static void reply(const char *text)
{
    json_autoptr result = json_loads(text, 0, NULL);
    world.done(result, NULL, world.done_data);
}

/* --- a task that calls --- */

static char *outcome;

static void turns(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static void outcome_take(char *text)
{
    g_free(outcome);
    outcome = text;
}

static void caller(void *method)
{
    struct rpc_call rpc = {
        .to_node = NODE_MASTER, .to_role = ROLE_WCONFD, .method = method, .args = json_object()};
    g_autoptr(GError) error = NULL;
    json_autoptr result = env_call_wait(&env, &rpc, &error);
    g_assert_true((result != NULL) != (error != NULL));
    outcome_take(result != NULL
                     ? json_to_text(result)
                     : g_strdup_printf("%s: %s", fettle_error_name(error), error->message));
}

static void setup(task_fn fn, void *data)
{
    world.calls = world.canceled = 0;
    outcome_take(NULL);
    env.tasks = task_group_new();
    task_spawn(env.tasks, fn, data);
    turns();
}

static void teardown(const char *expected)
{
    turns();
    g_assert_cmpstr(outcome, ==, expected);
    task_group_unref(env.tasks);
    outcome_take(NULL);
    g_clear_pointer(&world.args, g_free);
}

#define GONE "killed: wconfd/commit: the calling process has ended"

static void test_result(void)
{
    setup(caller, "commit");
    g_assert_null(outcome);
    reply("{\"serial\":5}");
    teardown("{\"serial\":5}");
}

static void test_error(void)
{
    setup(caller, "commit");
    g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_LOCK_MISSING, "web1");
    world.done(NULL, error, world.done_data);
    teardown("lock_missing: web1");
}

static void test_killed_before_reply(void)
{
    setup(caller, "commit");
    task_group_kill(env.tasks);
    turns();
    g_assert_cmpstr(outcome, ==, GONE);
    reply("{\"serial\":5}"); /* reaches nobody, and frees what it needed */
    teardown(GONE);
}

static void test_killed_after_reply(void)
{
    setup(caller, "commit");
    reply("{\"serial\":5}");
    task_group_kill(env.tasks); /* before the task had its turn */
    teardown(GONE);
}

static void test_killed_before_call(void)
{
    env.tasks = task_group_new();
    struct task_group *group = env.tasks;
    task_group_kill(group);
    setup(caller, "commit"); /* a new group: lives */
    g_assert_cmpuint(world.calls, ==, 1);
    reply("{}");
    turns();
    task_group_unref(env.tasks);
    world.calls = 0;
    task_spawn(group, caller, "commit");
    env.tasks = group;
    teardown(GONE);
    g_assert_cmpuint(world.calls, ==, 0); /* the dead ask nothing */
}

/* --- typed calls --- */

static void typed_caller(void *unused)
{
    record_autoptr(wait_changes_args) args = wait_changes_args_new();
    args->serial = 3;
    g_autoptr(GError) error = NULL;
    record_autoptr(changes) answer = env_call_record(&env, NODE_MASTER, ROLE_WCONFD, "wait_changes",
                                                     args, (struct stamp){1, 2}, 0, 0, &error);
    outcome_take(answer != NULL
                     ? g_strdup_printf("serial %" G_GUINT64_FORMAT, answer->serial)
                     : g_strdup_printf("%s: %s", fettle_error_name(error), error->message));
}

static void test_typed(void)
{
    setup(typed_caller, NULL);
    g_assert_cmpstr(
        world.args, ==,
        "{\"history\":0,\"instances\":[],\"job\":0,\"kinds\":[],\"named\":false,\"part\":false,"
        "\"serial\":3,\"wait_ms\":0}");
    reply("{\"history\":1,\"epoch\":2,\"serial\":9,\"from_the_future\":true}");
    teardown("serial 9");
}

static void test_typed_bad_answer(void)
{
    setup(typed_caller, NULL);
    reply("{\"history\":1,\"epoch\":2}");
    teardown("protocol_error: answer of wconfd/wait_changes: serial: is missing");
}

static void no_args_caller(void *unused)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(node_report) answer = env_call_record(
        &env, NODE_LOCAL, ROLE_NODED, "node_report", NULL, (struct stamp){0, 0}, 0, 250, &error);
    outcome_take(g_strdup(error->message));
}

static void test_typed_no_args(void)
{
    setup(no_args_caller, NULL);
    g_assert_cmpstr(world.args, ==, "{}");
    g_assert_cmpuint(world.timeout_ms, ==, 250);
    g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_TIMEOUT, "late");
    world.done(NULL, error, world.done_data);
    teardown("late");
}

/* --- sleeping, names --- */

static void sleeper(void *unused)
{
    outcome_take(g_strdup(env_sleep(&env, 50) ? "slept" : "killed"));
}

static void test_sleep(void)
{
    setup(sleeper, NULL);
    g_assert_null(outcome);
    world.timer_fn(world.timer_data);
    teardown("slept");
    g_assert_cmpuint(world.canceled, ==, 0);
}

static void test_sleep_killed(void)
{
    setup(sleeper, NULL);
    task_group_kill(env.tasks);
    teardown("killed");
    g_assert_cmpuint(world.canceled, ==, 1); /* the timer would write to a stack that is gone */
}

static void test_uuid(void)
{
    world.next_random = 0;
    g_autofree char *first = env_uuid(&env);
    g_assert_cmpstr(first, ==, "00010203-0405-4607-8809-0a0b0c0d0e0f");
    g_autofree char *second = env_uuid(&env);
    g_assert_cmpstr(second, ==, "10111213-1415-4617-9819-1a1b1c1d1e1f");
    g_assert_true(g_uuid_string_is_valid(first));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/env/result", test_result);
    g_test_add_func("/env/error", test_error);
    g_test_add_func("/env/killed-before-reply", test_killed_before_reply);
    g_test_add_func("/env/killed-after-reply", test_killed_after_reply);
    g_test_add_func("/env/killed-before-call", test_killed_before_call);
    g_test_add_func("/env/typed", test_typed);
    g_test_add_func("/env/typed-bad-answer", test_typed_bad_answer);
    g_test_add_func("/env/typed-no-args", test_typed_no_args);
    g_test_add_func("/env/sleep", test_sleep);
    g_test_add_func("/env/sleep-killed", test_sleep_killed);
    g_test_add_func("/env/uuid", test_uuid);
    return g_test_run();
}
