/* Reinstall and recreate-disks: what is given up, and what never is. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *reinstall(const char *image)
{
    return ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_REINSTALL",
                                        "instance_name", "web1", "os_type", image));
}

static const char *recreate(json_t *nodes)
{
    return ops_run_one(world, json_make("{ss ss so}", "OP_ID", "OP_INSTANCE_RECREATE_DISKS",
                                        "instance_name", "web1", "nodes", nodes));
}

static const struct replica *replica(void)
{
    return config_get(world->config, "replica", ops_web(world)->replica, NULL);
}

static const char *disk(void)
{
    return ((const struct disk *)ops_web(world)->disks->pdata[0])->uuid;
}

static void put_file(bool running)
{
    ops_put_web(world, NULL, running);
    ops_set(world, "instance", WEB, "disk_template", json_string("file"));
    ops_set(world, "instance", WEB, "os", json_string("debian"));
    world->image_bytes = 1024;
}

/* --- reinstall --- */

static void test_reinstall_file(void)
{
    put_file(false);
    g_assert_cmpstr(reinstall(""), ==, "null");
    ops_expect(world, "commit instance web1 g2 down @- node1 reinstalling\n"
                      "node1 disks_create g2 debian\n"
                      "commit instance web1 g2 down @- node1\n"
                      "commit job success\n");
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "copying image debian onto disk 0 of web1\n");
}

static void test_reinstall_mirror(void)
{
    ops_put_web(world, "in-sync", false);
    world->image_bytes = 1024;
    g_assert_cmpstr(reinstall("alpine"), ==, "null");
    ops_expect(world,
               "commit instance web1 g2 down @- node1/node2 reinstalling; replica node2 g2 s4 "
               "stale\n"
               "node1 disks_create g2 alpine\n"
               "commit instance web1 g3 down @node1 node1/node2 reinstalling; replica node2 g3 s5 "
               "syncing\n"
               "node2 replica_open g3\n"
               "node1 guest_start g3 mirror paused\n"
               "commit instance web1 g3 down @node1 node1/node2 reinstalling\n"
               "node1 guest_stop g3\n"
               "node2 replica_close g4\n"
               "commit instance web1 g4 down @- node1/node2 clean reinstalling; replica node2 g4 "
               "s7 in-sync\n"
               "commit instance web1 g4 down @- node1/node2 clean\n"
               "commit job success\n");
    g_assert_cmpstr(ops_web(world)->os, ==, "alpine");
}

/* A repair goes on with the start, which copies under the running guest. */
static void test_reinstall_without_copy(void)
{
    ops_put_web(world, "in-sync", false);
    world->image_bytes = 1024;
    g_assert_cmpstr(ops_run_one(world, json_make("{ss ss ss sb}", "OP_ID", "OP_INSTANCE_REINSTALL",
                                                 "instance_name", "web1", "os_type", "alpine",
                                                 "wait_for_sync", 0)),
                    ==, "null");
    ops_expect(world,
               "commit instance web1 g2 down @- node1/node2 reinstalling; replica node2 g2 s4 "
               "stale\n"
               "node1 disks_create g2 alpine\n"
               "commit instance web1 g2 down @- node1/node2\n"
               "commit job success\n");
}

static void test_reinstall_without_secondary(void)
{
    ops_put_web(world, "in-sync", false);
    world->image_bytes = 1024;
    ops_node_offline(world, NODE2);
    g_assert_cmpstr(reinstall("alpine"), ==, "null");
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "node2 does not answer: the replica there stays stale\n"));
}

/* Only the first disk is written. */
static void test_reinstall_one_disk(void)
{
    put_file(false);
    ops_set(world, "instance", WEB, "disks",
            json_make("[{ss si} {ss si}]", "uuid", WEB, "size", 1000, "uuid", REPLICA, "size", 7));
    g_assert_cmpstr(reinstall(""), ==, "null");
    const GPtrArray *calls = fake_calls(world->world);
    guint found = 0;
    for (guint i = 0; i < calls->len; i++) {
        const char *call = calls->pdata[i];
        if (!g_str_has_prefix(call, NODE1 "/noded disks_create"))
            continue;
        g_assert_nonnull(strstr(call, "\"size\":1000"));
        g_assert_true(strstr(call, "\"size\":7") > strstr(call, "\"kept\""));
        found++;
    }
    g_assert_cmpuint(found, ==, 1);
}

static void test_reinstall_refused(void)
{
    put_file(true);
    ops_expect_refusal(
        world, reinstall(""),
        "instance \"web1\" is not stopped; stop it first: fettle instance shutdown web1",
        "wrong_state");
    put_file(false);
    world->guest_node = NULL;
    world->image_bytes = (guint64)1001 * 1024 * 1024;
    ops_expect_refusal(
        world, reinstall(""),
        "os_type: image \"debian\" has 1001 MiB, disk 0 of instance \"web1\" only 1000 "
        "MiB; make it larger first: fettle instance grow-disk",
        "wrong_input");
    world->image_bytes = 0;
    ops_expect_refusal(world, reinstall(""),
                       "os_type: image \"debian\" does not exist on node \"node1\"; put it into "
                       "var/images there",
                       "unknown_entity");
    ops_set(world, "instance", WEB, "os", json_string(""));
    ops_expect_refusal(world, reinstall(""),
                       "os_type: instance \"web1\" was not created from an image; name one",
                       "wrong_input");
    ops_set(world, "instance", WEB, "disks", json_array());
    ops_expect_refusal(world, reinstall(""), "instance \"web1\" is diskless: it has no disks",
                       "wrong_state");
}

static void test_reinstall_fails(void)
{
    put_file(false);
    ops_fail(world, NODE1, "disks_create", FETTLE_ERROR_NO_RESOURCES, "no space", 1);
    g_assert_cmpstr(reinstall(""), ==,
                    "[\"OpExecError\", [\"node1: no space\", \"insufficient_resources\", true]]");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
}

/* --- recreate --- */

/* It died while it copied to the replica, so a paused guest holds the disks. */
static void test_reinstall_again(void)
{
    ops_put_web(world, "stale", true);
    world->image_bytes = 1024;
    world->guest_state = "paused";
    ops_set(world, "instance", WEB, "admin_state", json_string("down"));
    ops_set(world, "instance", WEB, "task_state", json_string("reinstalling"));
    g_assert_cmpstr(reinstall("alpine"), ==, "null");
    ops_expect(
        world,
        "commit instance web1 g1 down @node1 node1/node2 reinstalling\n"
        "node1 guest_stop g1\n"
        "node2 replica_close g2\n"
        "commit instance web1 g2 down @- node1/node2 reinstalling; replica node2 g2 s4 stale\n"
        "commit instance web1 g3 down @- node1/node2 reinstalling; replica node2 g3 s5 stale\n"
        "node1 disks_create g3 alpine\n"
        "commit instance web1 g4 down @node1 node1/node2 reinstalling; replica node2 g4 s6 "
        "syncing\n"
        "node2 replica_open g4\n"
        "node1 guest_start g4 mirror paused\n"
        "commit instance web1 g4 down @node1 node1/node2 reinstalling\n"
        "node1 guest_stop g4\n"
        "node2 replica_close g5\n"
        "commit instance web1 g5 down @- node1/node2 clean reinstalling; replica node2 g5 s8 "
        "in-sync\n"
        "commit instance web1 g5 down @- node1/node2 clean\n"
        "commit job success\n");
}

static void test_recreate_elsewhere(void)
{
    put_file(true);
    g_autofree char *old = g_strdup(disk());
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE2));
    ops_set(world, "instance", WEB, "holder", json_string(NODE2));
    world->guest_node = NULL;
    ops_node_offline(world, NODE2);
    world->memory[2] = 9000;
    world->trace_locks = true;
    g_assert_cmpstr(recreate(json_array()), ==, "[\"node3\"]");
    ops_expect(world, "locks instance/web1=exclusive node/node2=shared node/node3=shared "
                      "node-res/node3=exclusive\n"
                      "commit instance web1 g1 up @node2 node2 recreating-disks\n"
                      "node3 disks_create g2 set-aside replica\n"
                      "commit instance web1 g2 up @- node3 recreating-disks\n"
                      "rooms are free\n"
                      "node3 replica_close g2 promote\n"
                      "commit instance web1 g2 up @- node3\n"
                      "free\n"
                      "commit job success\n");
    g_assert_cmpstr(disk(), !=, old);
}

/* Both nodes of a mirror are dead; a third and a fourth would be needed, or these two back. */
static void test_recreate_mirror(void)
{
    ops_put_web(world, "in-sync", true);
    world->guest_node = NULL;
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "holder", json_string(NODE3));
    ops_node_offline(world, NODE3);
    ops_set(world, "replica", REPLICA, "state", json_string("stale"));
    g_assert_cmpstr(recreate(json_make("[s, s]", "node2", "node1")), ==, "[\"node2\", \"node1\"]");
    ops_expect(world,
               "commit instance web1 g1 up @node3 node3/node2 recreating-disks\n"
               "node2 disks_create g2 set-aside replica\n"
               "node1 disks_create g2 set-aside replica\n"
               "commit delete replica; replica node1 g2 s1 stale; instance web1 g2 up @- "
               "node2/node1 recreating-disks\n"
               "node2 replica_close g2 promote\n"
               "commit instance web1 g3 up @node2 node2/node1 recreating-disks; replica node1 g3 "
               "s2 syncing\n"
               "node1 replica_open g3\n"
               "node2 guest_start g3 mirror paused\n"
               "commit instance web1 g3 up @node2 node2/node1 recreating-disks\n"
               "node2 guest_stop g3\n"
               "node1 replica_close g4\n"
               "commit instance web1 g4 up @- node2/node1 clean recreating-disks; replica node1 g4 "
               "s4 in-sync\n"
               "commit instance web1 g4 up @- node2/node1 clean\n"
               "commit job success\n");
}

/* One node is left, or one alone is named: better without a replica than dead. */
static void test_recreate_without_replica(void)
{
    static const char *const named[] = {NULL, "node1"};
    for (guint i = 0; i < G_N_ELEMENTS(named); i++) {
        ops_put_web(world, "in-sync", true);
        world->guest_node = NULL;
        ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
        ops_set(world, "instance", WEB, "holder", json_string(NODE3));
        ops_node_offline(world, NODE3);
        ops_node_offline(world, NODE2);
        g_string_truncate(world->trace, 0);
        g_assert_cmpstr(recreate(named[i] ? json_make("[s]", named[i]) : json_array()), ==,
                        "[\"node1\"]");
        ops_expect(world, "commit instance web1 g1 up @node3 node3/node2 recreating-disks\n"
                          "node1 disks_create g2 set-aside replica\n"
                          "commit delete replica; instance web1 g2 up @- node1 "
                          "recreating-disks\n"
                          "node1 replica_close g2 promote\n"
                          "commit instance web1 g2 up @- node1\n"
                          "commit job success\n");
    }
}

/* Both images are blank and on record, their equality is not: the next start copies. */
static void test_recreate_without_copy(void)
{
    ops_put_web(world, "stale", false);
    g_ptr_array_add(world->lost, (void *)NODE1);
    g_assert_cmpstr(
        ops_run_one(world, json_make("{ss ss s[ss] sb}", "OP_ID", "OP_INSTANCE_RECREATE_DISKS",
                                     "instance_name", "web1", "nodes", "node1", "node2",
                                     "wait_for_sync", 0)),
        ==, "[\"node1\", \"node2\"]");
    g_assert_nonnull(strstr(world->trace->str, "node2 disks_create g2 set-aside replica\n"));
    g_assert_null(strstr(world->trace->str, "guest_start"));
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

/* The disks of a healthy node were exchanged: they are made where they were. */
static void test_recreate_in_place(void)
{
    put_file(false);
    g_ptr_array_add(world->lost, (void *)NODE1);
    world->memory[2] = 9000;
    g_assert_cmpstr(recreate(json_array()), ==, "[\"node1\"]");
    g_assert_nonnull(strstr(world->trace->str, "node1 disks_create g2 set-aside replica\n"));
}

/* The replica's images are gone too, whatever the record says. */
static void test_recreate_replica_lost(void)
{
    ops_put_web(world, "in-sync", false);
    g_ptr_array_add(world->lost, (void *)NODE1);
    g_ptr_array_add(world->lost, (void *)NODE2);
    g_assert_cmpstr(recreate(json_array()), ==, "[\"node1\", \"node2\"]");
    g_assert_nonnull(strstr(world->trace->str,
                            "commit instance web1 g1 down @- node1/node2 clean recreating-disks; "
                            "replica node2 g1 s4 stale\n"));
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_cmpstr(ops_web(world)->replica, !=, REPLICA);
}

static void test_recreate_refused_data(void)
{
    put_file(false);
    ops_expect_refusal(
        world, recreate(json_array()),
        "node1 has the disks of instance \"web1\"; they are not given up (to write an "
        "image onto them: fettle instance reinstall web1)",
        "unsafe");
    ops_put_web(world, "in-sync", false);
    g_ptr_array_add(world->lost, (void *)NODE1);
    ops_expect_refusal(world, recreate(json_array()),
                       "the replica on node2 has the data of instance \"web1\"; nothing is lost: "
                       "fettle instance failover web1",
                       "unsafe");
    fake_cut(world->world, NODE2, true);
    ops_expect_refusal(world, recreate(json_make("[s, s]", "node1", "node3")),
                       "node2, the secondary node of instance \"web1\", does not answer; if it is "
                       "really dead: fettle node modify node2 --offline=yes --statement ...",
                       "resource_not_available");
}

/* What is not seen is not lost: no data are given up for a look that was not answered. */
static void test_recreate_refused_late(void)
{
    put_file(false);
    g_ptr_array_add(world->lost, (void *)NODE1);
    world->late = NODE1;
    world->late_part = "disks";
    ops_expect_refusal(world, recreate(json_array()),
                       "the disks of node1: no answer, last heard 2 min ago; try again later",
                       "resource_not_available");
}

static void test_recreate_refused_state(void)
{
    put_file(true);
    g_ptr_array_add(world->lost, (void *)NODE1);
    ops_expect_refusal(world, recreate(json_array()),
                       "instance \"web1\" is not stopped on node1; stop it first: fettle instance "
                       "shutdown web1",
                       "wrong_state");
    ops_set(world, "instance", WEB, "disk_template", json_string("sharedfile"));
    ops_expect_refusal(
        world, recreate(json_array()),
        "the disks of instance \"web1\" are in the folder that all nodes mount: they "
        "are lost with no node; bring the folder back, or remove the instance and "
        "create it again",
        "wrong_state");
    ops_set(world, "instance", WEB, "disk_template", json_string("diskless"));
    ops_expect_refusal(world, recreate(json_array()),
                       "instance \"web1\" is diskless: it has no disks", "wrong_state");
}

static void test_recreate_refused_nodes(void)
{
    put_file(false);
    g_ptr_array_add(world->lost, (void *)NODE1);
    ops_expect_refusal(world, recreate(json_make("[s, s]", "node1", "node2")),
                       "nodes: instance \"web1\" is of template file and needs 1, not 2",
                       "wrong_input");
    ops_expect_refusal(world, recreate(json_make("[s]", "node9")), "node \"node9\" does not exist",
                       "unknown_entity");
    world->disk[1] = 10;
    ops_expect_refusal(
        world, recreate(json_make("[s]", "node2")),
        "nodes: node \"node2\" cannot be the primary node: it has 10 MiB of disk left, "
        "1000 MiB are needed; make room there, or take another node: fettle node list",
        "insufficient_resources");
    ops_set(world, "node", NODE2, "drained", json_true());
    ops_expect_refusal(world, recreate(json_make("[s]", "node2")),
                       "nodes: node \"node2\" cannot be the primary node: it is drained",
                       "wrong_state");
    ops_put_web(world, "stale", false);
    ops_expect_refusal(world, recreate(json_make("[s, s]", "node3", "node3")),
                       "nodes: a replica needs another node than \"node3\"", "wrong_input");
}

/* A job died when the new disks were there: they are finished, not made once more. */
static void test_recreate_finishes(void)
{
    ops_put_web(world, "stale", false);
    ops_set(world, "instance", WEB, "task_state", json_string("recreating-disks"));
    ops_set(world, "instance", WEB, "task_owner", json_integer(16));
    g_ptr_array_add(world->lost, (void *)NODE2);
    g_autofree char *old = g_strdup(disk());
    g_assert_cmpstr(recreate(json_array()), ==, "[\"node1\", \"node2\"]");
    g_assert_cmpstr(disk(), ==, old);
    g_assert_null(strstr(world->trace->str, "node1 disks_create"));
    g_assert_nonnull(strstr(world->trace->str, "node2 disks_create g1 set-aside replica\n"));
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

static void test_recreate_tried_again(void)
{
    put_file(false);
    g_ptr_array_add(world->lost, (void *)NODE1);
    ops_fail(world, NODE1, "disks_create", FETTLE_ERROR_STORAGE, "disk broken", 1);
    g_assert_cmpstr(recreate(json_array()), ==,
                    "[\"OpExecError\", [\"node1: disk broken\", \"storage_error\", true]]");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpuint(ops_web(world)->generation, ==, 1); /* nothing was given up */
    g_assert_cmpstr(recreate(json_make("[s]", "node3")), ==, "[\"node3\"]");
    g_assert_cmpuint(ops_web(world)->generation, ==, 2);
}

/* --- killed at any moment --- */

static bool by_hand(const char *opcode)
{
    const char *result =
        ops_run_one(world, json_make("{ss ss}", "OP_ID", opcode, "instance_name", "web1"));
    return strstr(result,
                  "ended while it made new disks for instance \\\"web1\\\"; say: fettle instance "
                  "recreate-disks web1 (it goes on with them, or finds the old ones)") == NULL;
}

/* Both nodes of the mirror had died; node2 is back with the stale replica of before. */
static void put_lost_mirror(void)
{
    ops_put_web(world, "stale", true);
    world->guest_node = NULL;
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "holder", json_string(NODE3));
    ops_node_offline(world, NODE3);
}

/* Whatever the job had done: under its mark nothing starts, moves or writes; the next one of its
 * kind brings the instance to its new disks. Counts deaths that have left one. */
static bool kill_and_finish(guint after_ms, guint *ret_marks)
{
    put_lost_mirror();
    g_autofree char *old = g_strdup(disk());
    bool alive =
        ops_run_and_kill(world,
                         json_make("[{ss ss s[ss]}]", "OP_ID", "OP_INSTANCE_RECREATE_DISKS",
                                   "instance_name", "web1", "nodes", "node2", "node1"),
                         after_ms);
    if (ops_web(world)->task_state != TASK_NONE) {
        (*ret_marks)++;
        g_assert_false(by_hand("OP_INSTANCE_STARTUP"));
        g_assert_false(by_hand("OP_INSTANCE_SHUTDOWN"));
        g_assert_false(by_hand("OP_INSTANCE_FAILOVER"));
        g_assert_false(by_hand("OP_INSTANCE_MIGRATE"));
        g_assert_false(by_hand("OP_INSTANCE_REINSTALL"));
        g_assert_false(by_hand("OP_INSTANCE_REPLACE_DISKS"));
    }
    if (alive)
        recreate(json_make("[s, s]", "node2", "node1"));
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE2);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_cmpstr(disk(), !=, old);
    g_assert_cmpstr(replica()->node, ==, NODE1);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    return alive;
}

static void test_recreate_killed(void)
{
    guint marks = 0, steps = 0;
    bool alive = true;
    g_clear_pointer(&world, ops_world_free);
    for (; alive; steps++) {
        world = ops_world_new();
        alive = kill_and_finish(steps, &marks);
        g_clear_pointer(&world, ops_world_free);
    }
    g_assert_cmpuint(steps, >, 20);
    g_assert_cmpuint(marks, >, 10);
    world = ops_world_new();
}

static void put_mark(void)
{
    ops_set(world, "instance", WEB, "task_state", json_string("recreating-disks"));
    ops_set(world, "instance", WEB, "task_owner", json_integer(16));
}

/* The job died before the record of its disks, and what it took for lost is back: running. */
static void test_recreate_withdrawn(void)
{
    ops_put_web(world, "stale", true);
    put_mark();
    g_autofree char *old = g_strdup(disk());
    g_assert_cmpstr(recreate(json_array()), ==,
                    "[\"OpExecError\", [\"instance \\\"web1\\\" is not stopped on node1; stop it "
                    "first: fettle instance shutdown web1\", \"wrong_state\", true]]");
    ops_expect(world, "commit instance web1 g1 up @node1 node1/node2\ncommit job error\n");
    g_assert_cmpstr(disk(), ==, old);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "job 16 ended before it had given anything up\n");
}

/* Or on the node of the replica, which is promoted, not given up. */
static void test_recreate_withdrawn_replica(void)
{
    ops_put_web(world, "in-sync", false);
    put_mark();
    g_ptr_array_add(world->lost, (void *)NODE1);
    g_assert_nonnull(
        strstr(recreate(json_array()),
               "the replica on node2 has the data of instance \\\"web1\\\"; nothing is "
               "lost: fettle instance failover web1\", \"unsafe\""));
    ops_expect(world, "commit instance web1 g1 down @- node1/node2 clean\ncommit job error\n");
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

/* What nobody can know is left as it is. */
static void test_recreate_unknown(void)
{
    ops_put_web(world, "stale", false);
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    put_mark();
    fake_cut(world->world, NODE3, true);
    ops_expect_refusal(world, recreate(json_make("[s, s]", "node1", "node2")),
                       "node3, the primary node of instance \"web1\", does not answer; if it is "
                       "really dead: fettle node modify node3 --offline=yes --statement ...",
                       "resource_not_available");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_RECREATING_DISKS);
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/reinstall/file", test_reinstall_file);
    add("/reinstall/mirror#SAF-11", test_reinstall_mirror);
    add("/reinstall/without-copy", test_reinstall_without_copy);
    add("/reinstall/without-secondary", test_reinstall_without_secondary);
    add("/reinstall/one-disk", test_reinstall_one_disk);
    add("/reinstall/refused", test_reinstall_refused);
    add("/reinstall/failed", test_reinstall_fails);
    add("/reinstall/again#ARP-37", test_reinstall_again);
    add("/recreate/elsewhere#SAF-19,SAF-22,FUT-08", test_recreate_elsewhere);
    add("/recreate/mirror#SAF-19,SAF-22", test_recreate_mirror);
    add("/recreate/without-replica#SAF-22", test_recreate_without_replica);
    add("/recreate/without-copy#SAF-22", test_recreate_without_copy);
    add("/recreate/in-place", test_recreate_in_place);
    add("/recreate/replica-lost", test_recreate_replica_lost);
    add("/recreate/refused/data#SAF-16", test_recreate_refused_data);
    add("/recreate/refused/late#SAF-22,SAF-90", test_recreate_refused_late);
    add("/recreate/refused/state", test_recreate_refused_state);
    add("/recreate/refused/nodes", test_recreate_refused_nodes);
    add("/recreate/finishes#SAF-20", test_recreate_finishes);
    add("/recreate/again#SAF-20", test_recreate_tried_again);
    add("/recreate/killed#SAF-20,SAF-22", test_recreate_killed);
    add("/recreate/withdrawn#SAF-22", test_recreate_withdrawn);
    add("/recreate/withdrawn/replica#SAF-22", test_recreate_withdrawn_replica);
    add("/recreate/unknown#SAF-22", test_recreate_unknown);
    return g_test_run();
}
