/* Jobs that wait for a copy, and are asked to give up: each ends, with a true record, and leaves
 * nothing that goes on for nobody. */
#include "ops_case.h"

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
    return g_test_run();
}
