/* Jobs that wait for a copy, and are asked to give up: each ends, with a true record, and leaves
 * nothing that goes on for nobody. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;
static guint copies_after; /* number of the commit before which the wish comes */

static void wish_end(struct ops_world *changed, guint number)
{
    if (number == copies_after)
        ops_set(changed, "job", "17", "cancel", json_true());
}

/* The copy goes on for ever; from that commit on the job is to give up. */
static const char *cancel(guint commit, json_t *op)
{
    copies_after = commit;
    world->mirror_steps = 1000000;
    world->on_commit = wish_end;
    const char *result = ops_run_one(world, op);
    g_assert_cmpstr(world->done->status, ==, "canceled");
    return result;
}

static const struct replica *replica(void)
{
    return config_get(world->config, "replica", ops_web(world)->replica, NULL);
}

static void expect_canceled(const char *result, bool changed)
{
    g_assert_nonnull(strstr(result, "Job canceled by request\", \"canceled\", "));
    g_assert_true(g_str_has_suffix(result, changed ? "true]]" : "false]]"));
}

/* --- create --- */

/* Nothing is left, not the guest that ran already either. */
static void test_create(void)
{
    json_t *op = json_make("{ss ss ss s[{si}] si ss ss}", "OP_ID", "OP_INSTANCE_CREATE",
                           "instance_name", "web1", "disk_template", "mirror", "disks", "size",
                           1000, "memory", 512, "pnode", "node1", "snode", "node2");
    expect_canceled(cancel(3, op), false);
    g_assert_null(config_find(world->config, "instance", "web1", NULL));
    g_assert_cmpuint(config_count(world->config, "replica"), ==, 0);
    g_assert_cmpuint(config_count(world->config, "reservation"), ==, 0);
    g_assert_null(world->guest_node);
    g_assert_nonnull(strstr(world->trace->str, "node1 disks_remove"));
    g_assert_nonnull(strstr(world->trace->str, "node2 disks_remove"));
}

/* --- replace-disks --- */

static json_t *replace(void)
{
    return json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_REPLACE_DISKS", "instance_name", "web1",
                     "mode", "replace_new_secondary");
}

static void expect_without_redundancy(const char *result, const char *why)
{
    g_assert_cmpstr(
        result, ==,
        "[\"OpExecError\", [\"the copy was given up; until there is another instance \\\"web1\\\" "
        "has no redundancy: fettle instance replace-disks web1\", \"canceled\", true]]");
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_assert_cmpstr(replica()->why, ==, why);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

/* The copy ends with the job: nothing goes on to a replica that is on record as stale. */
static void test_replace(void)
{
    ops_put_web(world, "in-sync", true);
    expect_without_redundancy(cancel(2, replace()), "its copy was canceled");
    ops_expect(world,
               "commit instance web1 g1 up @node1 node1/node2 replacing-disks; replica node2 g1 s4 "
               "stale\n"
               "node1 mirror_detach g1\n"
               "node2 disks_remove g1 replica\n"
               "commit delete replica; replica node3 g1 s1 syncing; instance web1 g1 up @node1 "
               "node1/node3 replacing-disks\n"
               "node3 disks_create replica\n"
               "node3 replica_open g1\n"
               "node1 mirror_attach g1 mirror\n"
               "commit instance web1 g1 up @node1 node1/node3 replacing-disks; replica node3 g1 s2 "
               "stale\n"
               "node1 mirror_detach g1\n"
               "node3 replica_close g1\n"
               "commit instance web1 g1 up @node1 node1/node3\n"
               "commit job canceled\n");
    g_assert_cmpstr(world->guest_state, ==, "running");
}

/* The paused guest that copied is stopped. */
static void test_replace_stopped(void)
{
    ops_put_web(world, "in-sync", false);
    expect_without_redundancy(cancel(2, replace()), "the last run did not end with equal copies");
    g_assert_null(world->guest_node);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
}

/* A node that does not let the mirror go is named in the log; the record is true nevertheless. */
static void test_replace_detach_fails(void)
{
    ops_put_web(world, "stale", true);
    ops_node_offline(world, NODE2);
    ops_fail(world, NODE3, "replica_close", FETTLE_ERROR_STORAGE, "it hangs", 1);
    expect_without_redundancy(cancel(2, replace()), "its copy was canceled");
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "the copy ends later: node3: it hangs\n"));
}

/* --- others --- */

/* Only the wait ends: the disk is larger, the guest has its mirror. */
static void test_grow(void)
{
    ops_put_web(world, "in-sync", true);
    json_t *op = json_make("{ss ss si si}", "OP_ID", "OP_INSTANCE_GROW_DISK", "instance_name",
                           "web1", "disk", 0, "amount", 500);
    g_assert_cmpstr(
        cancel(3, op), ==,
        "[\"OpExecError\", [\"disk 0 of instance \\\"web1\\\" has 1500 MiB; its copy "
        "goes on, nobody waits for it: Job canceled by request\", \"canceled\", true]]");
    g_assert_cmpuint(((const struct disk *)ops_web(world)->disks->pdata[0])->size, ==, 1500);
    g_assert_cmpint(replica()->state, ==, REPLICA_SYNCING);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpstr(world->guest_state, ==, "running");
}

static json_t *activate(void)
{
    return json_make("{ss ss sb}", "OP_ID", "OP_INSTANCE_ACTIVATE_DISKS", "instance_name", "web1",
                     "wait_for_sync", 1);
}

static void test_activate(void)
{
    ops_put_web(world, "stale", false);
    expect_canceled(cancel(1, activate()), true);
    g_assert_null(world->guest_node);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

static void test_reinstall(void)
{
    world->image_bytes = 5 * 1024 * 1024;
    ops_put_web(world, "in-sync", false);
    expect_canceled(cancel(2, json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_REINSTALL",
                                        "instance_name", "web1", "os_type", "debian")),
                    true);
    g_assert_null(world->guest_node);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

/* --- what a node waits for --- */

struct waiting {
    const char *node, *method;
    bool held;
};

/* The answer takes long, and the wish comes meanwhile. */
static guint wish_meanwhile(const char *from_node, const char *to_node, void *data)
{
    struct waiting *waiting = data;
    if (waiting->held || strcmp(to_node, waiting->node) ||
        !strstr(world->trace->str, waiting->method))
        return 0;
    waiting->held = true;
    fake_ask(world->env);
    return 3500;
}

/* The node, asked to, answers that the call was given up. */
static const char *cancel_call(const char *node, const char *method, json_t *op)
{
    struct waiting waiting = {.node = node, .method = method};
    ops_fail(world, node, method, FETTLE_ERROR_CANCELED, "given up", 1);
    fake_set_delay(world->world, wish_meanwhile, &waiting);
    const char *result = ops_run_one(world, op);
    fake_set_delay(world->world, NULL, NULL);
    g_assert_cmpstr(world->done->status, ==, "canceled");
    return result;
}

/* Said again and again, until the call has its answer; not after. */
static void expect_told(const char *node, guint times)
{
    g_autofree char *line = g_strdup_printf("%s work_cancel\n", node);
    g_auto(GStrv) parts = g_strsplit(world->trace->str, line, -1);
    g_assert_cmpuint(g_strv_length(parts), ==, times + 1);
}

static void test_import(void)
{
    world->image_bytes = 1;
    json_t *op = json_make("{ss ss ss s[{si}] si ss ss}", "OP_ID", "OP_INSTANCE_CREATE",
                           "instance_name", "web1", "disk_template", "file", "disks", "size", 1000,
                           "memory", 512, "pnode", "node2", "os_type", "debian");
    g_assert_cmpstr(cancel_call(NODE2, "disks_create", op), ==,
                    "[\"OpExecError\", [\"the creation was undone, nothing of instance "
                    "\\\"web1\\\" is left: Job canceled by request\", \"canceled\", false]]");
    expect_told("node2", 3);
    g_assert_null(config_find(world->config, "instance", "web1", NULL));
    g_assert_nonnull(strstr(world->trace->str, "node2 disks_remove"));
}

static const char *cancel_import_again(enum fettle_error first, guint count)
{
    world->image_bytes = 1;
    ops_put_web(world, "in-sync", false);
    ops_set(world, "instance", ops_web(world)->uuid, "os", json_string("old"));
    ops_fail(world, NODE1, "disks_create", first, "lost", count);
    return cancel_call(NODE1, "disks_create",
                       json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_REINSTALL", "instance_name",
                                 "web1", "os_type", "debian"));
}

/* The old content is there: the record names its image again. */
static void test_import_again(void)
{
    g_assert_cmpstr(cancel_import_again(FETTLE_ERROR_TIMEOUT, 0), ==,
                    "[\"OpExecError\", [\"disk 0 of instance \\\"web1\\\" has what it had before; "
                    "its replica is brought up to date by the next start: Job canceled by "
                    "request\", \"canceled\", true]]");
    expect_told("node1", 3);
    g_assert_cmpstr(ops_web(world)->os, ==, "old");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
}

/* An earlier try may have written the image: it stays half installed, which is mended. */
static void test_import_unknown(void)
{
    const char *result = cancel_import_again(FETTLE_ERROR_UNKNOWN_RESULT, 1);
    g_assert_nonnull(strstr(result, "what disk 0 of instance \\\"web1\\\" has is not known"));
    g_assert_cmpstr(ops_web(world)->os, ==, "debian");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_REINSTALLING);
}

static void expect_runs_on(const char *result)
{
    g_assert_cmpstr(result, ==,
                    "[\"OpExecError\", [\"web1 was asked to shut down and had not done so; it runs "
                    "on, on node1. It may still obey, and is on record as stopped then: Job "
                    "canceled by request\", \"canceled\", true]]");
    expect_told("node1", 3);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE1);
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE1);
    g_assert_cmpuint(ops_web(world)->generation, ==, 1);
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_UP);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_cmpstr(world->guest_state, ==, "running");
}

static json_t *op_on_web(const char *id)
{
    return json_make("{ss ss}", "OP_ID", id, "instance_name", "web1");
}

static void test_shutdown(void)
{
    ops_put_web(world, "in-sync", true);
    expect_runs_on(cancel_call(NODE1, "guest_stop", op_on_web("OP_INSTANCE_SHUTDOWN")));
}

static void test_reboot(void)
{
    ops_put_web(world, "in-sync", true);
    json_t *op = op_on_web("OP_INSTANCE_REBOOT");
    json_object_set_new(op, "reboot_type", json_string("soft"));
    expect_runs_on(cancel_call(NODE1, "guest_stop", op));
}

static void test_failover(void)
{
    ops_put_web(world, "in-sync", true);
    expect_runs_on(cancel_call(NODE1, "guest_stop", op_on_web("OP_INSTANCE_FAILOVER")));
    g_assert_cmpuint(config_count(world->config, "reservation"), ==, 0);
}

/* Nothing is removed, not even by a removal that passes failures over. */
static void test_remove(void)
{
    ops_put_web(world, "in-sync", true);
    json_t *op = op_on_web("OP_INSTANCE_REMOVE");
    json_object_set_new(op, "ignore_failures", json_true());
    expect_runs_on(cancel_call(NODE1, "guest_stop", op));
    g_assert_null(strstr(world->trace->str, "disks_remove"));
}

/* One that is half removed is not whole again by that: its removal goes on. */
static void test_remove_rest(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", ops_web(world)->uuid, "task_state", json_string("removing"));
    struct waiting waiting = {.node = NODE1, .method = "guest_stop"};
    fake_set_delay(world->world, wish_meanwhile, &waiting);
    ops_run_one(world, op_on_web("OP_INSTANCE_REMOVE"));
    fake_set_delay(world->world, NULL, NULL);
    expect_told("node1", 0);
    g_assert_null(config_find(world->config, "instance", "web1", NULL));
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/cancel/create#LUX-08", test_create);
    add("/cancel/replace#LUX-08,SAF-18", test_replace);
    add("/cancel/replace/stopped#LUX-08,SAF-18", test_replace_stopped);
    add("/cancel/replace/export-hangs#LUX-08,SAF-18", test_replace_detach_fails);
    add("/cancel/grow#LUX-08", test_grow);
    add("/cancel/activate#LUX-08", test_activate);
    add("/cancel/reinstall#LUX-08", test_reinstall);
    add("/cancel/import#LUX-08", test_import);
    add("/cancel/import/again#LUX-08", test_import_again);
    add("/cancel/import/unknown#LUX-08,SAF-04", test_import_unknown);
    add("/cancel/shutdown#LUX-08", test_shutdown);
    add("/cancel/reboot#LUX-08", test_reboot);
    add("/cancel/failover#LUX-08", test_failover);
    add("/cancel/remove#LUX-08", test_remove);
    add("/cancel/remove/rest#LUX-08", test_remove_rest);
    return g_test_run();
}
