/* A cell as the API sees it: its copy, its calls through deaths and changes of masters, its jobs;
 * and which nodes may ask. core/api/, core/wconfd/ */
#include "core/api/cell.h"

#include <string.h>

#include "proto/authority.h"
#include "proto/records.h"
#include "unit/core/world/storage_world.h"

static struct env *env;
static struct cell *cell;

static GPtrArray *front_end(const char *node)
{
    return changes_of(put("api_front_end", node, 1, json_make("{s:s}", "node", node)), NULL);
}

/* A front end on node2, which is not the master's, with data1 on record. */
static void set_up(void)
{
    GPtrArray *more = front_end(NODE2);
    g_ptr_array_add(more, put("volume", VOLUME1, 1, object_volume1()));
    storage_set_up(more);
    env = fake_process(world.world, NODE2, ROLE_APID);
    cell = cell_new(env);
    cell_start(cell);
}

static void tear_down(void)
{
    fake_kill(env);
    cell_free(cell);
    config_world_clear(&world);
}

/* --- calls, in tasks --- */

struct rename {
    const char *commit_id;
    const char *name;
    char *said; /* "", or its error */
    char *seen; /* the name that the copy has at the end */
    gint64 took_ms;
};

static void rename_task(void *data)
{
    struct rename *rename = data;
    g_autoptr(GError) error = NULL;
    record_autoptr(change_volume_args) args = change_volume_args_new();
    text_set(&args->commit_id, rename->commit_id);
    text_set(&args->volume, VOLUME1);
    text_set(&args->name, rename->name);
    gint64 begun = fake_now_ms(world.world);
    record_autoptr(commit_result) result = cell_call(cell, "change_volume", args, &error);
    rename->took_ms = fake_now_ms(world.world) - begun;
    g_assert_true(!result == (error != NULL));
    rename->said =
        error ? g_strdup_printf("%s: %s", fettle_error_name(error), error->message) : g_strdup("");
    const struct volume *copy =
        cell_config(cell) ? config_get(cell_config(cell), "volume", VOLUME1, NULL) : NULL;
    rename->seen = g_strdup(copy ? copy->name : "");
}

static void rename_start(struct rename *rename, const char *commit_id, const char *name)
{
    *rename = (struct rename){.commit_id = commit_id, .name = name};
    task_spawn(env->tasks, rename_task, rename);
    fake_settle(world.world);
}

static void assert_renamed(struct rename *rename, const char *said, const char *seen)
{
    g_assert_nonnull(rename->said);
    if (!g_str_has_prefix(rename->said, said) || (!*said && *rename->said))
        g_error("said: %s", rename->said);
    g_assert_cmpstr(rename->seen, ==, seen);
    g_free(rename->said);
    g_free(rename->seen);
}

static void test_reads_what_it_has_written(void)
{
    struct rename rename;
    set_up();
    g_assert_null(cell_config(cell));
    fake_advance(world.world, 1000);
    g_assert_nonnull(cell_config(cell));
    g_assert_cmpint(cell_age_ms(cell), ==, 0);
    rename_start(&rename, ID_A, "data2");
    fake_advance(world.world, 100);
    assert_renamed(&rename, "", "data2");
    tear_down();
}

static void test_refused(void)
{
    struct rename rename;
    set_up();
    fake_advance(world.world, 1000);
    rename_start(&rename, ID_A, DIR1);
    fake_advance(world.world, 100);
    g_assert_cmpint(rename.took_ms, <, 100);
    assert_renamed(&rename, "wrong_input: ", "data1");
    tear_down();
}

static json_t *answer_never(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    fettle_set_error(error, TIMEOUT, "no answer in time");
    return NULL;
}

static void await_task(void *data)
{
    g_autoptr(GError) error = NULL;
    bool ok = cell_await_own(cell, &error);
    g_assert_true(ok == (error == NULL));
    *(char **)data = g_strdup(ok ? "" : error->message);
}

/* No news comes any more, while calls are answered: the copy is older than what was answered. */
static void test_knows_when_it_is_behind(void)
{
    struct rename rename;
    g_autofree char *said = NULL, *then = NULL;
    set_up();
    fake_advance(world.world, 1000);
    g_assert_true(cell_has_own(cell));
    fake_script(world.world, NULL, ROLE_WCONFD, "wait_changes", answer_never, NULL);
    fake_cut(world.world, NODE1, true);
    fake_advance(world.world, 61000); /* its question is given up */
    fake_cut(world.world, NODE1, false);
    rename_start(&rename, ID_A, "data2");
    fake_advance(world.world, 11000);
    assert_renamed(&rename, "", "data1");
    g_assert_false(cell_has_own(cell));
    fake_run(env, await_task, &said);
    g_assert_true(g_str_has_prefix(said, "what was asked for here lately is on record, and not"));
    fake_script(world.world, NULL, ROLE_WCONFD, "wait_changes", NULL, NULL);
    fake_run(env, await_task, &then);
    g_assert_cmpstr(then, ==, "");
    g_assert_true(cell_has_own(cell));
    tear_down();
}

/* The answer is lost with the daemon; the one that comes then has the commit. */
static void test_once_through_a_restart(void)
{
    struct rename rename;
    set_up();
    fake_advance(world.world, 1000);
    guint64 before = config_serial(wconf_config(world.wconf));
    fake_engine_hold(world.engine);
    rename_start(&rename, ID_A, "data2");
    fake_advance(world.world, 100);
    g_assert_null(rename.said);
    fake_engine_release(world.engine);
    storage_restart();
    fake_advance(world.world, 5000);
    assert_renamed(&rename, "", "data2");
    g_assert_cmpuint(storage_writes(before, "volume"), ==, 1);
    tear_down();
}

static void test_no_master(void)
{
    struct rename rename;
    set_up();
    fake_advance(world.world, 1000);
    fake_kill(world.wconfd);
    fake_advance(world.world, 5000);
    g_assert_cmpint(cell_age_ms(cell), >=, 5000);
    g_assert_nonnull(cell_config(cell));
    rename_start(&rename, ID_A, "data2");
    fake_advance(world.world, 60000);
    g_assert_cmpint(rename.took_ms, <=, 10000);
    assert_renamed(&rename, "resource_not_available: change_volume: no master answers: ", "data1");
    storage_restart();
    fake_advance(world.world, 6000);
    g_assert_cmpint(cell_age_ms(cell), ==, 0);
    tear_down();
}

/* Who was asked, and has not answered, may have done it; whoever repeats it then may do it twice.
 */
static void test_unknown(void)
{
    struct rename rename;
    set_up();
    fake_advance(world.world, 1000);
    fake_script(world.world, NULL, ROLE_WCONFD, "change_volume", answer_never, NULL);
    rename_start(&rename, ID_A, "data2");
    fake_advance(world.world, 1000);
    fake_cut(world.world, NODE1, true); /* the last one is not delivered: it counts all the same */
    fake_advance(world.world, 60000);
    assert_renamed(&rename,
                   "unknown_result: change_volume: no master answers, and it may have been done",
                   "data1");
    tear_down();
}

/* Before it has heard of anything it does not wait. */
static void test_never_a_master(void)
{
    struct rename rename;
    set_up();
    fake_cut(world.world, NODE2, true);
    rename_start(&rename, ID_A, "data2");
    fake_advance(world.world, 60000);
    assert_renamed(&rename, "resource_not_available: change_volume: no master has been heard of",
                   "");
    tear_down();
}

static json_t *answer_stale(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    if (++*(guint *)data > 2)
        fake_script(world.world, NULL, ROLE_WCONFD, "change_volume", NULL, NULL);
    fettle_set_error(error, STALE_EPOCH, "it belongs to epoch 1");
    return NULL;
}

static void test_asks_under_the_next_master(void)
{
    struct rename rename;
    guint asked = 0;
    set_up();
    fake_advance(world.world, 1000);
    fake_script(world.world, NULL, ROLE_WCONFD, "change_volume", answer_stale, &asked);
    rename_start(&rename, ID_A, "data2");
    fake_advance(world.world, 5000);
    assert_renamed(&rename, "", "data2");
    g_assert_cmpuint(asked, ==, 3);
    tear_down();
}

/* --- jobs --- */

struct submission {
    guint64 job;
    char *said;
};

static void submit_task(void *data)
{
    struct submission *submission = data;
    g_autoptr(GError) error = NULL;
    char volume[] = VOLUME1, instance[] = WEB1;
    struct op_instance_attach_volume params = {.volume = volume, .instance_name = instance};
    submission->job = cell_submit(cell, "OP_INSTANCE_ATTACH_VOLUME", &params, "req-1", &error);
    submission->said = g_strdup(error ? error->message : "");
}

static json_t *answer_submit(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    g_assert_cmpstr(to_node, ==, NODE1);
    *(char **)data = json_to_text(request->args);
    return json_integer(17);
}

static void test_submits(void)
{
    struct submission submission = {0};
    char *asked = NULL;
    set_up();
    fake_advance(world.world, 1000);
    fake_script(world.world, NULL, ROLE_LUXID, "SubmitJob", answer_submit, &asked);
    task_spawn(env->tasks, submit_task, &submission);
    fake_advance(world.world, 1000);
    g_assert_cmpstr(submission.said, ==, "");
    g_assert_cmpuint(submission.job, ==, 17);
    g_assert_cmpstr(
        asked, ==,
        "[[{\"OP_ID\":\"OP_INSTANCE_ATTACH_VOLUME\",\"attachment\":\"\",\"instance_name\":\"" WEB1
        "\",\"request_id\":\"req-1\",\"volume\":\"" VOLUME1 "\"}]]");
    g_free(asked);
    g_free(submission.said);
    g_autofree char *other =
        ask_wconf(&world, env, "submit_job",
                  json_make("{s:s, s:{s:s, s:s}}", "request_id", "req-2", "opcode", "OP_ID",
                            "OP_INSTANCE_REMOVE", "instance_name", "web1"));
    g_assert_cmpstr(other, ==,
                    "permission_denied: opcode: a front end of the API submits "
                    "OP_INSTANCE_ATTACH_VOLUME and OP_INSTANCE_DETACH_VOLUME alone");
    tear_down();
}

/* --- what it is given --- */

static void count_kind(const char *kind, const char *key, guint64 version, const void *value,
                       void *data)
{
    g_hash_table_add(data, (char *)kind);
}

static void assert_given(const char *method, json_t *args)
{
    g_autofree char *said = ask_wconf(&world, env, method, args);
    json_autoptr answer = json_parse_limited(said, strlen(said), MIB(1), NULL);
    const json_t *changes = json_object_get(answer, "changes");
    g_assert_cmpuint(json_array_size(changes), >, 4);
    for (size_t i = 0; i < json_array_size(changes); i++)
        g_assert_true(object_is_front(
            json_string_value(json_object_get(json_array_get(changes, i), "kind"))));
}

/* What it does not ask for itself it is not told either. */
static void test_is_given_no_more_than_clients_see(void)
{
    set_up();
    fake_advance(world.world, 1000);
    g_autoptr(GHashTable) kinds = g_hash_table_new(g_str_hash, g_str_equal);
    config_each(cell_config(cell), count_kind, kinds);
    g_assert_true(g_hash_table_contains(kinds, "volume"));
    g_assert_true(g_hash_table_contains(kinds, "instance"));
    g_assert_false(g_hash_table_contains(kinds, "replica"));
    g_assert_false(g_hash_table_contains(kinds, "api_front_end"));
    assert_given("wait_changes", json_make("{s:i}", "serial", 0));
    assert_given("snapshot", json_make("{s:s, s:s}", "kind", "", "key", ""));
    g_autofree char *secrets =
        ask_wconf(&world, env, "wait_changes",
                  json_make("{s:i, s:[s, s]}", "serial", 0, "kinds", "secret", "job"));
    g_assert_nonnull(strstr(secrets, "\"changes\":[]"));
    tear_down();
}

/* --- who may ask --- */

static void test_other_nodes_may_not(void)
{
    set_up();
    struct env *other = fake_process(world.world, NODE3, ROLE_APID);
    g_autofree char *said =
        ask_wconf(&world, other, "wait_changes", json_make("{s:i}", "serial", 0));
    g_assert_cmpstr(said, ==,
                    "permission_denied: node \"node3\" has no front end of the API on record; see: "
                    "fettle api init");
    g_autofree char *added =
        storage_ask(storage_cli, "add_front_end", json_make("{s:s}", "node", "node3"));
    g_assert_true(g_str_has_prefix(added, "{\"serial\":"));
    g_autofree char *again =
        storage_ask(storage_cli, "add_front_end", json_make("{s:s}", "node", "node3"));
    g_assert_cmpstr(again, ==, "wrong_state: node \"node3\" has a front end of the API already");
    g_autofree char *heard =
        ask_wconf(&world, other, "wait_changes", json_make("{s:i}", "serial", 0));
    g_assert_true(g_str_has_prefix(heard, "{"));
    g_autofree char *removed =
        storage_ask(storage_cli, "remove_front_end", json_make("{s:s}", "node", NODE3));
    g_assert_true(g_str_has_prefix(removed, "{\"serial\":"));
    g_autofree char *over =
        ask_wconf(&world, other, "wait_changes", json_make("{s:i}", "serial", 0));
    g_assert_true(g_str_has_prefix(over, "permission_denied: "));
    g_autofree char *none =
        storage_ask(storage_cli, "remove_front_end", json_make("{s:s}", "node", "node1"));
    g_assert_cmpstr(none, ==, "wrong_state: node \"node1\" has no front end of the API");
    tear_down();
}

/* --- what it shows --- */

static bool read_request(struct authority *authority, const char *request, char **ret_key_hash,
                         GError **error)
{
    if (!strcmp(request, "good"))
        return true;
    fettle_set_error(error, WRONG_INPUT, "request: is no certificate request");
    return false;
}

/* Says in the certificate's place for whom it is. */
static bool sign_api(struct authority *authority, const char *request, const char *cluster_uuid,
                     const char *const *names, char **ret_certificate, GError **error)
{
    g_autofree char *joined = g_strjoinv(" ", (char **)names);
    *ret_certificate = g_strdup_printf("%s: %s", request, joined);
    return true;
}

static char *certify(struct env *asker, const char *request)
{
    return ask_wconf(&world, asker, "certify_front_end", json_make("{ss}", "request", request));
}

static void test_certified(void)
{
    static const struct authority_ops ops = {.read_request = read_request, .sign_api = sign_api};
    static struct authority authority = {&ops};
    set_up();
    struct env *other = fake_process(world.world, NODE3, ROLE_APID);
    g_autofree char *without = certify(env, "good");
    g_assert_cmpstr(without, ==, "wrong_state: this master has no authority");
    world.wconfd->authority = &authority;
    /* the asking node's, whatever the request says */
    const struct node *node = config_get(cell_config(cell), "node", NODE2, NULL);
    g_autofree char *wanted = g_strdup_printf(
        "{\"certificate\":\"good: node2 %s localhost 127.0.0.1 ::1\"}", node->primary_ip);
    g_autofree char *signed_key = certify(env, "good");
    g_assert_cmpstr(signed_key, ==, wanted);
    g_autofree char *bad = certify(env, "bad");
    g_assert_cmpstr(bad, ==, "wrong_input: request: is no certificate request");
    g_autofree char *stranger = certify(other, "good");
    g_assert_true(g_str_has_prefix(stranger, "permission_denied: node \"node3\" has no front end"));
    tear_down();
}

static void assert_certified(struct env *asker, const char *node, const char *more)
{
    const struct node *it = config_get(wconf_config(world.wconf), "node", node, NULL);
    g_autofree char *wanted =
        g_strdup_printf("{\"certificate\":\"good: %s %s%s localhost 127.0.0.1 ::1\"}", it->name,
                        it->primary_ip, more);
    g_autofree char *signed_key = certify(asker, "good");
    g_assert_cmpstr(signed_key, ==, wanted);
}

/* REST of a candidate is believed at the cluster's name and master IP as well; any other node, and
 * a front end of the API, at its own alone. */
static void test_certified_rest(void)
{
    static const struct authority_ops ops = {.read_request = read_request, .sign_api = sign_api};
    static struct authority authority = {&ops};
    static const char *const nodes[] = {NODE1, NODE2};
    GPtrArray *all = initial_storage();
    g_ptr_array_add(all, put("api_front_end", NODE2, 1, json_make("{s:s}", "node", NODE2)));
    for (guint i = 0; i < 2; i++)
        g_ptr_array_add(all, put("node", nodes[i], 1,
                                 with(object_node(nodes[i]), "master_candidate", json_true())));
    g_ptr_array_add(all, put("cluster", CLUSTER, 1,
                             json_make("{ss ss ss ss si ss}", "uuid", CLUSTER, "name", "c1",
                                       "master_node", NODE1, "master_ip", "192.0.2.10",
                                       "master_netmask", 24, "master_netdev", "br0")));
    config_world_init(&world, all);
    fake_engine_replicate(world.engine);
    config_world_start(&world);
    world.wconfd->authority = &authority;
    assert_certified(world.noded[0], NODE1, " c1 192.0.2.10");
    assert_certified(world.noded[1], NODE2, " c1 192.0.2.10");
    assert_certified(world.noded[2], NODE3, "");
    assert_certified(fake_process(world.world, NODE2, ROLE_APID), NODE2, "");
    config_world_clear(&world);
}

/* Whoever asks the API is not told that it is he who may not. */
static void test_may_not_itself(void)
{
    struct rename rename;
    set_up();
    fake_advance(world.world, 1000);
    g_autofree char *removed =
        storage_ask(storage_cli, "remove_front_end", json_make("{s:s}", "node", NODE2));
    g_assert_true(g_str_has_prefix(removed, "{\"serial\":"));
    rename_start(&rename, ID_A, "data2");
    fake_advance(world.world, 11000);
    assert_renamed(&rename,
                   "resource_not_available: change_volume: no master answers: node \"node2\" has "
                   "no front end of "
                   "the API on record",
                   "data1");
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cell/reads-what-it-has-written", test_reads_what_it_has_written);
    g_test_add_func("/cell/knows-when-it-is-behind", test_knows_when_it_is_behind);
    g_test_add_func("/cell/a-refusal-is-one-at-once", test_refused);
    g_test_add_func("/cell/once-through-a-restart", test_once_through_a_restart);
    g_test_add_func("/cell/without-a-master", test_no_master);
    g_test_add_func("/cell/never-a-master", test_never_a_master);
    g_test_add_func("/cell/unknown", test_unknown);
    g_test_add_func("/cell/asks-under-the-next-master", test_asks_under_the_next_master);
    g_test_add_func("/cell/submits", test_submits);
    g_test_add_func("/cell/is-given-no-more-than-clients-see #SAF-101",
                    test_is_given_no_more_than_clients_see);
    g_test_add_func("/cell/may-not-itself", test_may_not_itself);
    g_test_add_func("/cell/other-nodes-may-not #SAF-100", test_other_nodes_may_not);
    g_test_add_func("/cell/what-it-shows#SAF-100", test_certified);
    g_test_add_func("/cell/what-rest-shows#SAF-100", test_certified_rest);
    return g_test_run();
}
