/* Grow, activate and deactivate disks: what goes on record before what, and exact refusals. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *grow(int disk, int amount, bool absolute)
{
    return ops_run_one(world, json_make("{ss ss si si sb}", "OP_ID", "OP_INSTANCE_GROW_DISK",
                                        "instance_name", "web1", "disk", disk, "amount", amount,
                                        "absolute", (int)absolute));
}

static const char *disks(const char *verb, const char *flag, bool value)
{
    g_autofree char *id = g_strdup_printf("OP_INSTANCE_%s_DISKS", verb);
    return ops_run_one(
        world, json_make("{ss ss sb}", "OP_ID", id, "instance_name", "web1", flag, (int)value));
}

static const struct replica *replica(void)
{
    return config_get(world->config, "replica", ops_web(world)->replica, NULL);
}

static guint64 size(void)
{
    return ((const struct disk *)ops_web(world)->disks->pdata[0])->size;
}

/* --- grow --- */

static void test_grow_running_mirror(void)
{
    ops_put_web(world, "in-sync", true);
    g_assert_cmpstr(grow(0, 500, false), ==, "null");
    ops_expect(world,
               "commit instance web1 g1 up @node1 node1/node2 growing-disk; replica node2 g1 s4 "
               "stale\n"
               "node1 mirror_detach g1\n"
               "node2 replica_close g1\n"
               "node2 disk_grow g1 0:1500 replica\n"
               "commit instance web1 g1 up @node1 node1/node2 growing-disk\n"
               "node1 disk_grow g1 0:1500\n"
               "commit instance web1 g1 up @node1 node1/node2 growing-disk; replica node2 g1 s5 "
               "syncing\n"
               "node2 replica_open g1\n"
               "node1 mirror_attach g1 mirror since\n"
               "commit instance web1 g1 up @node1 node1/node2\n"
               "commit job success\n");
    g_assert_cmpuint(size(), ==, 1500);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "disk 0 of web1 has 1500 MiB\n");
}

/* Room is held until the new size is on record, and not while the copy goes on. */
/* The replica would be given up, and brought up to date from a disk that fails. */
static void test_grow_on_a_failed_disk(void)
{
    ops_put_web(world, "in-sync", true);
    world->io_errors = 3;
    g_assert_cmpstr(
        grow(0, 500, false), ==,
        "[\"OpPrereqError\", [\"requests of instance \\\"web1\\\" to its own disk 0 on "
        "node1 have failed, and its replica on node2 has every acknowledged write; go on "
        "from that: fettle instance failover web1\", \"unsafe\"]]");
    ops_expect(world, "commit job error\n");
}

static void test_grow_locks(void)
{
    ops_put_web(world, "in-sync", true);
    world->trace_locks = true;
    g_assert_cmpstr(grow(0, 500, false), ==, "null");
    g_assert_true(g_str_has_prefix(world->trace->str,
                                   "locks instance/web1=exclusive node/node1=shared "
                                   "node/node2=shared node-res/node1=exclusive "
                                   "node-res/node2=exclusive\n"));
    g_assert_nonnull(strstr(world->trace->str,
                            "node2 disk_grow g1 0:1500 replica\n"
                            "commit instance web1 g1 up @node1 node1/node2 growing-disk\n"
                            "rooms are free\n"
                            "node1 disk_grow g1 0:1500\n"));
}

/* Both images get the same zeros, so what was equal stays equal. */
static void test_grow_stopped_mirror(void)
{
    ops_put_web(world, "in-sync", false);
    g_assert_cmpstr(grow(0, 1200, true), ==, "null");
    ops_expect(world, "commit instance web1 g1 down @- node1/node2 clean growing-disk\n"
                      "node2 replica_close g1\n"
                      "node2 disk_grow g1 0:1200 replica\n"
                      "commit instance web1 g1 down @- node1/node2 clean growing-disk\n"
                      "node1 disk_grow g1 0:1200\n"
                      "commit instance web1 g1 down @- node1/node2 clean\n"
                      "commit job success\n");
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

static void test_grow_file(void)
{
    ops_put_web(world, NULL, true);
    ops_set(world, "instance", WEB, "disk_template", json_string("file"));
    g_assert_cmpstr(grow(0, 1, false), ==, "null");
    ops_expect(world, "commit instance web1 g1 up @node1 node1 growing-disk\n"
                      "commit instance web1 g1 up @node1 node1 growing-disk\n"
                      "node1 disk_grow g1 0:1001\n"
                      "commit instance web1 g1 up @node1 node1\n"
                      "commit job success\n");
}

/* Whoever asks for the size that is on record makes sure that it is there. */
static void test_grow_again(void)
{
    ops_put_web(world, "in-sync", true);
    world->disk[0] = world->disk[1] = 1000; /* nothing more is needed */
    g_assert_cmpstr(grow(0, 1000, true), ==, "null");
    g_assert_nonnull(strstr(world->trace->str, "node2 disk_grow g1 0:1000 replica\n"));
    g_assert_nonnull(strstr(world->trace->str, "node1 disk_grow g1 0:1000\n"));
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

/* It may have died at any disk, and the one after it too: whoever clears its mark sees to all. */
static void test_grow_settles(void)
{
    ops_put_web(world, "in-sync", false);
    ops_add_disk(world);
    ops_set(world, "instance", ops_web(world)->uuid, "task_state", json_string("growing-disk"));
    ops_set(world, "instance", ops_web(world)->uuid, "task_owner", json_integer(7));
    ops_fail(world, NODE1, "disk_grow", FETTLE_ERROR_UNREACHABLE, "cut", 1000);
    g_assert_nonnull(strstr(grow(0, 1000, true), "node1: cut"));
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_GROWING_DISK);
    g_ptr_array_set_size(world->faults, 0);
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(grow(0, 1000, true), ==, "null");
    ops_expect(world, "commit instance web1 g1 down @- node1/node2 clean growing-disk\n"
                      "node2 replica_close g1\n"
                      "node2 disk_grow g1 0:1000 replica\n"
                      "node2 disk_grow g1 1:1000 replica\n"
                      "commit instance web1 g1 down @- node1/node2 clean growing-disk\n"
                      "node1 disk_grow g1 0:1000\n"
                      "node1 disk_grow g1 1:1000\n"
                      "commit instance web1 g1 down @- node1/node2 clean\n"
                      "commit job success\n");
}

static void test_grow_refused(void)
{
    ops_expect_refusal(world, grow(0, 10, false), "instance \"web1\" does not exist",
                       "unknown_entity");
    ops_put_web(world, "in-sync", true);
    ops_expect_refusal(world, grow(3, 10, false),
                       "disk: instance \"web1\" has no disk 3; its last one is 0", "wrong_input");
    ops_expect_refusal(
        world, grow(0, 999, true),
        "amount: 999 MiB is not larger: disk 0 of instance \"web1\" has 1000 MiB, and "
        "disks only grow",
        "wrong_input");
    ops_expect_refusal(world, grow(0, 67108864, false),
                       "amount: disk 0 of instance \"web1\" would have 67109864 MiB; a disk has at "
                       "most 67108864 MiB",
                       "wrong_input");
    world->disk[1] = 1200;
    ops_expect_refusal(
        world, grow(0, 500, false),
        "node2 has 200 MiB of disk left, disk 0 of instance \"web1\" needs 500 MiB more",
        "insufficient_resources");
    world->disk[0] = 1100;
    ops_expect_refusal(
        world, grow(0, 500, false),
        "node1 has 100 MiB of disk left, disk 0 of instance \"web1\" needs 500 MiB more",
        "insufficient_resources");
}

static void test_grow_refused_replica(void)
{
    ops_put_web(world, "stale", true);
    g_ptr_array_add(world->lost, (void *)NODE2);
    ops_expect_refusal(
        world, grow(0, 10, false),
        "node2 does not have the images of the replica of instance \"web1\"; give it "
        "another first: fettle instance replace-disks web1",
        "wrong_state");
    /* A node that answers is not dead, whatever it answers. */
    ops_fail(world, NODE2, "node_report", FETTLE_ERROR_INTERNAL, "no memory left", 1);
    ops_expect_refusal(
        world, grow(0, 10, false),
        "its replica has to grow along: node2, the secondary node of instance \"web1\", "
        "answers with an error (no memory left)",
        "resource_not_available");
    fake_cut(world->world, NODE2, true);
    ops_expect_refusal(
        world, grow(0, 10, false),
        "its replica has to grow along: node2, the secondary node of instance \"web1\", "
        "does not answer; if it is really dead: fettle node modify node2 --offline=yes "
        "--statement ...",
        "resource_not_available");
    ops_node_offline(world, NODE2);
    ops_expect_refusal(
        world, grow(0, 10, false),
        "its replica has to grow along: node2, the secondary node of instance \"web1\", "
        "is offline",
        "wrong_state");
}

static void test_refused_state(void)
{
    ops_put_web(world, NULL, true);
    ops_set(world, "instance", WEB, "migration", json_string(REPLICA));
    ops_expect_refusal(
        world, grow(0, 10, false),
        "a migration of instance \"web1\" has not been settled; say: fettle instance "
        "migrate web1 --cleanup",
        "wrong_state");
    ops_set(world, "instance", WEB, "migration", json_string(""));
    ops_set(world, "instance", WEB, "disk_template", json_string("diskless"));
    ops_set(world, "instance", WEB, "disks", json_array());
    ops_expect_refusal(world, grow(0, 10, false), "instance \"web1\" is diskless: it has no disks",
                       "wrong_state");
    ops_expect_refusal(world, disks("ACTIVATE", "wait_for_sync", true),
                       "instance \"web1\" is diskless: it has no disks", "wrong_state");
}

/* The replica could not grow: the guest gets its mirror back, and nothing is on record. */
static void test_grow_replica_fails(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "disk_grow", FETTLE_ERROR_STORAGE, "no space", 1);
    g_assert_cmpstr(grow(0, 500, false), ==,
                    "[\"OpExecError\", [\"node2: no space\", \"storage_error\", true]]");
    ops_expect(world,
               "commit instance web1 g1 up @node1 node1/node2 growing-disk; replica node2 g1 s4 "
               "stale\n"
               "node1 mirror_detach g1\n"
               "node2 replica_close g1\n"
               "node2 disk_grow g1 0:1500 replica\n"
               "commit instance web1 g1 up @node1 node1/node2 growing-disk; replica node2 g1 s5 "
               "syncing\n"
               "node2 replica_open g1\n"
               "node1 mirror_attach g1 mirror since\n"
               "commit instance web1 g1 up @node1 node1/node2\n"
               "commit job error\n");
    g_assert_cmpuint(size(), ==, 1000);
}

/* The size is on record before the disk in use has it, so that no replica is ever too small. */
static void test_grow_primary_fails(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE1, "disk_grow", FETTLE_ERROR_STORAGE, "no space", 1);
    g_assert_cmpstr(grow(0, 500, false), ==,
                    "[\"OpExecError\", [\"1500 MiB is on record, but not everything is done; go on "
                    "with: fettle instance grow-disk web1 0 1500 --absolute: node1: no space\", "
                    "\"storage_error\", true]]");
    g_assert_cmpuint(size(), ==, 1500);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(grow(0, 1500, true), ==, "null");
    g_assert_nonnull(strstr(world->trace->str, "node1 disk_grow g1 0:1500\n"));
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

/* Nothing is known of a node that does not answer, so the mark stays and the watcher looks. */
static void test_grow_node_vanishes(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE1, "disk_grow", FETTLE_ERROR_UNREACHABLE, "cut", 1000);
    g_assert_nonnull(strstr(grow(0, 500, false), "node1: cut"));
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_GROWING_DISK);
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
}

/* --- activate --- */

static const char *const disk0 =
    "[[\"node1\", \"disk/0\", \"var/disks/00000000-0000-4000-8000-0000000000b1.disk0.raw\"]]";

static void test_activate(void)
{
    ops_put_web(world, "stale", false);
    g_assert_cmpstr(disks("ACTIVATE", "wait_for_sync", true), ==, disk0);
    ops_expect(world,
               "commit instance web1 g2 down @node1 node1/node2 replacing-disks; replica node2 g2 "
               "s4 syncing\n"
               "node2 replica_open g2\n"
               "node1 guest_start g2 mirror paused\n"
               "commit instance web1 g2 down @node1 node1/node2 replacing-disks\n"
               "node1 guest_stop g2\n"
               "node2 replica_close g3\n"
               "commit instance web1 g3 down @- node1/node2 clean replacing-disks; replica node2 "
               "g3 s6 in-sync\n"
               "commit instance web1 g3 down @- node1/node2 clean\n"
               "commit job success\n");
}

static void test_activate_nothing_to_do(void)
{
    ops_put_web(world, "in-sync", false);
    g_assert_cmpstr(disks("ACTIVATE", "wait_for_sync", true), ==, disk0);
    ops_expect(world, "commit job success\n");
    ops_set(world, "instance", WEB, "disk_template", json_string("sharedfile"));
    g_assert_nonnull(strstr(disks("ACTIVATE", "wait_for_sync", true), "\"var/shared/"));
}

static void test_activate_and_deactivate(void)
{
    ops_put_web(world, "stale", false);
    g_assert_cmpstr(disks("ACTIVATE", "wait_for_sync", false), ==, disk0);
    g_assert_cmpstr(world->guest_state, ==, "paused");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(disks("DEACTIVATE", "force", false), ==, "null");
    ops_expect(world, "commit instance web1 g2 down @node1 node1/node2 stopping\n"
                      "node1 guest_stop g2\n"
                      "node2 replica_close g3\n"
                      "commit instance web1 g3 down @- node1/node2; replica node2 g3 s5 stale\n"
                      "commit job success\n");
    g_assert_null(world->guest_node);
    g_assert_cmpstr(disks("DEACTIVATE", "force", false), ==, "null");
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "nothing uses the disks of web1\n");
}

static void test_activate_fails(void)
{
    ops_put_web(world, "stale", false);
    world->mirror = "lost";
    g_assert_nonnull(strstr(disks("ACTIVATE", "wait_for_sync", true), "was lost during the copy"));
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_null(world->guest_node);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

static void test_activate_refused(void)
{
    ops_put_web(world, "stale", true);
    ops_expect_refusal(
        world, disks("ACTIVATE", "wait_for_sync", true),
        "instance \"web1\" runs, and its replica on node2 is not in sync; mend it with: "
        "fettle instance replace-disks web1",
        "wrong_state");
    ops_expect_refusal(world, disks("DEACTIVATE", "force", false),
                       "instance \"web1\" runs; stop it first: fettle instance shutdown web1",
                       "wrong_state");
    ops_put_web(world, "stale", false);
    world->guest_node = NULL;
    ops_node_offline(world, NODE2);
    ops_expect_refusal(world, disks("ACTIVATE", "wait_for_sync", true),
                       "node2, the secondary node of instance \"web1\", is offline", "wrong_state");
}

static void test_deactivate_silent_node(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "holder", json_string(NODE3));
    fake_cut(world->world, NODE3, true);
    ops_expect_refusal(
        world, disks("DEACTIVATE", "force", false),
        "node3, the primary node of instance \"web1\", does not answer; if it is really "
        "dead: fettle node modify node3 --offline=yes --statement ...",
        "resource_not_available");
    g_assert_cmpstr(disks("DEACTIVATE", "force", true), ==, "null");
    ops_expect(world, "commit job success\n"); /* nothing is said of what nobody knows */
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "node3 does not answer; what it has of web1 is settled when it comes back\n");
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/grow/settles-every-disk", test_grow_settles);
    add("/grow/failed-disk#SAF-24", test_grow_on_a_failed_disk);
    add("/grow/locks#FUT-02,FUT-08", test_grow_locks);
    add("/grow/running-mirror#SAF-12,SAF-13", test_grow_running_mirror);
    add("/grow/stopped-mirror", test_grow_stopped_mirror);
    add("/grow/file", test_grow_file);
    add("/grow/again#SAF-20", test_grow_again);
    add("/grow/refused", test_grow_refused);
    add("/grow/refused/replica", test_grow_refused_replica);
    add("/grow/refused/state", test_refused_state);
    add("/grow/failed/replica", test_grow_replica_fails);
    add("/grow/failed/primary", test_grow_primary_fails);
    add("/grow/failed/silent", test_grow_node_vanishes);
    add("/activate/copies#SAF-11", test_activate);
    add("/activate/nothing-to-do", test_activate_nothing_to_do);
    add("/activate/deactivate", test_activate_and_deactivate);
    add("/activate/failed", test_activate_fails);
    add("/activate/refused", test_activate_refused);
    add("/deactivate/silent", test_deactivate_silent_node);
    return g_test_run();
}
