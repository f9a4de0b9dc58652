/* Live migration: what forbids it, its order, and both of its ends, whoever dies on the way. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static json_t *opcode(void)
{
    return json_make("{ss ss}", "OP_ID", "OP_INSTANCE_MIGRATE", "instance_name", "web1");
}

static const char *migrate(void)
{
    return ops_run_one(world, opcode());
}

static const char *migrate_with(const char *parameter, json_t *value)
{
    json_t *json = opcode();
    json_object_set_new(json, parameter, value);
    return ops_run_one(world, json);
}

static const char *cleanup(void)
{
    return migrate_with("cleanup", json_true());
}

static void expect_log(const char *expected)
{
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, expected);
}

/* No trace of the migration is left on the record or on the target. */
static void expect_settled(const char *node)
{
    g_assert_cmpstr(ops_web(world)->migration, ==, "");
    g_assert_cmpstr(ops_web(world)->migration_node, ==, "");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpstr(ops_web(world)->primary_node, ==, node);
    g_assert_cmpstr(ops_web(world)->holder, ==, node);
}

#define BEGINNING                                                                                  \
    "commit instance web1 g1 up @node1 node1/node2 migrating >node2\n"                             \
    "node2 incoming_open g1\n"                                                                     \
    "node1 migration_start g1 mirror\n"

/* --- it moves --- */

static void test_moves(void)
{
    ops_put_web(world, "in-sync", true);
    world->migration_steps = 1;
    g_assert_cmpstr(migrate(), ==, "null");
    ops_expect(world, BEGINNING "node1 replica_open g2\n"
                                "node2 guest_start g2 mirror no-copy incoming\n"
                                "commit instance web1 g2 up @node2 node2/node1\n"
                                "commit job success\n");
    expect_settled(NODE2);
    g_assert_cmpstr(world->guest_node, ==, NODE2);
    expect_log("migrating web1 from node1 to node2\n"
               "migration to node2: 300 of 400 MiB\n"
               "web1 has gone over to node2; it stood still for 87 ms\n"
               "web1 goes on on node2, generation 2\n");
}

/* The mirror did not end cleanly: the way back is copied in full, and says so on record before. */
static void test_moves_unclean(void)
{
    ops_put_web(world, "in-sync", true);
    world->migration_unclean = true;
    g_assert_cmpstr(migrate(), ==, "null");
    ops_expect(world, BEGINNING
               "commit instance web1 g2 up @node2 node2/node1 migrating >node2; replica node1 g2 "
               "s2 syncing\n"
               "node1 replica_open g2\n"
               "node2 guest_start g2 mirror incoming\n"
               "commit instance web1 g2 up @node2 node2/node1\n"
               "commit job success\n");
}

static void test_way_back_fails(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE1, "replica_open", FETTLE_ERROR_STORAGE, "disk broken", 1);
    g_assert_cmpstr(migrate(), ==, "null");
    ops_expect(world, BEGINNING
               "node1 replica_open g2\n"
               "commit instance web1 g2 up @node2 node2/node1 migrating >node2; replica node1 g2 "
               "s2 stale\n"
               "node2 guest_start g2 incoming\n"
               "commit instance web1 g2 up @node2 node2/node1\n"
               "commit job success\n");
    expect_settled(NODE2);
}

static void test_limits(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "cluster", CLUSTER, "migration_bandwidth", json_integer(77));
    ops_set(world, "cluster", CLUSTER, "migration_downtime_ms", json_integer(55));
    json_t *json = opcode();
    json_object_set_new(json, "mode", json_string("non-live"));
    json_object_set_new(json, "timeout", json_integer(9));
    json_object_set_new(json, "downtime_ms", json_integer(20));
    g_assert_cmpstr(ops_run_one(world, json), ==, "null");
    g_assert_nonnull(strstr(world->trace->str, "node1 migration_start g1 mirror paused\n"));
    const char *asked = NULL;
    for (guint i = 0; i < fake_calls(world->world)->len; i++) {
        const char *call = fake_calls(world->world)->pdata[i];
        if (strstr(call, "noded migration_start"))
            asked = call;
    }
    g_assert_nonnull(asked);
    g_assert_nonnull(strstr(asked, "\"bandwidth\":77"));
    g_assert_nonnull(strstr(asked, "\"downtime_ms\":20"));
    g_assert_nonnull(strstr(asked, "\"timeout_ms\":9000"));
    g_assert_nonnull(strstr(asked, "\"target_node\":\"" NODE2 "\""));
}

static void test_locks(void)
{
    world->trace_locks = true;
    ops_put_web(world, "in-sync", true);
    migrate();
    g_assert_true(g_str_has_prefix(
        world->trace->str, "locks instance/web1=exclusive node/node1=shared node/node2=shared "
                           "node-res/node2=exclusive\n"));
}

/* --- after the move something fails --- */

static void test_process_gone(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "guest_start", FETTLE_ERROR_WRONG_STATE, "it is not there", 1);
    g_assert_cmpstr(migrate(), ==, "null");
    ops_expect(world, BEGINNING "node1 replica_open g2\n"
                                "node2 guest_start g2 mirror no-copy incoming\n"
                                "node2 guest_start g2 mirror no-copy\n"
                                "commit instance web1 g2 up @node2 node2/node1\n"
                                "commit job success\n");
    expect_settled(NODE2);
}

static void test_generation_used_up(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "guest_start", FETTLE_ERROR_REFUSED, "was already used here", 1);
    g_assert_cmpstr(migrate(), ==, "null");
    expect_settled(NODE2);
    g_assert_cmpuint(ops_web(world)->generation, ==, 3);
    g_assert_cmpuint(world->guest_generation, ==, 3);
}

static void test_start_fails(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "guest_start", FETTLE_ERROR_HYPERVISOR, "no memory", 1);
    g_assert_cmpstr(migrate(), ==,
                    "[\"OpExecError\", [\"instance \\\"web1\\\" belongs to node2 now, but does not "
                    "run there: node2: no memory\", \"hypervisor_error\", true]]");
    expect_settled(NODE2);
    g_assert_null(world->guest_node);
}

/* Nobody knows whether it runs: that stays on record until somebody has looked. */
static void test_start_unanswered(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "guest_start", FETTLE_ERROR_TIMEOUT, "no answer", 99);
    g_assert_nonnull(strstr(migrate(), "\"timeout\", true"));
    g_assert_cmpstr(ops_web(world)->migration_node, ==, NODE2);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_MIGRATING);
    g_ptr_array_set_size(world->faults, 0);
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(cleanup(), ==, "null");
    expect_settled(NODE2);
    g_assert_cmpstr(world->guest_node, ==, NODE2);
}

/* --- it stays --- */

#define STAYS                                                                                      \
    "node2 incoming_close\n"                                                                       \
    "commit instance web1 g1 up @node1 node1/node2\n"

static void test_copy_fails(void)
{
    ops_put_web(world, "in-sync", true);
    world->migration_end = "failed";
    g_assert_cmpstr(migrate(), ==,
                    "[\"OpExecError\", [\"the migration of instance \\\"web1\\\" to node2 failed: "
                    "the connection was lost; it stays on node1\", \"resource_not_available\", "
                    "false]]");
    ops_expect(world, BEGINNING STAYS "commit job error\n");
    expect_settled(NODE1);
    g_assert_false(world->incoming);
    g_assert_cmpstr(world->guest_node, ==, NODE1);
}

/* It failed after its replica had been given up: that is attached again, by what was written. */
static void test_fails_in_the_window(void)
{
    ops_put_web(world, "in-sync", true);
    world->migration_end = "failed";
    world->migration_window = true;
    g_assert_nonnull(strstr(migrate(), "it stays on node1"));
    ops_expect(world, BEGINNING
               "node2 incoming_close\n"
               "commit instance web1 g1 up @node1 node1/node2 migrating; replica node2 g1 s5 "
               "syncing\n"
               "node2 replica_open g1\n"
               "node1 mirror_attach g1 mirror since\n"
               "commit instance web1 g1 up @node1 node1/node2\n"
               "commit job error\n");
    expect_settled(NODE1);
}

static void test_replica_stays_away(void)
{
    ops_put_web(world, "in-sync", true);
    world->migration_end = "failed";
    world->migration_window = true;
    ops_fail(world, NODE2, "replica_open", FETTLE_ERROR_STORAGE, "disk broken", 1);
    migrate();
    expect_settled(NODE1);
    const struct replica *replica = config_get(world->config, "replica", REPLICA, NULL);
    g_assert_cmpint(replica->state, ==, REPLICA_STALE);
    g_assert_cmpstr(replica->why, ==, "node2: disk broken");
}

static void test_target_refuses(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "incoming_open", FETTLE_ERROR_ENVIRONMENT, "no kernel x", 1);
    g_assert_cmpstr(migrate(), ==,
                    "[\"OpExecError\", [\"the migration of instance \\\"web1\\\" to node2 failed: "
                    "node2: no kernel x; it stays on node1\", \"environment\", false]]");
    ops_expect(world, "commit instance web1 g1 up @node1 node1/node2 migrating >node2\n"
                      "node2 incoming_open g1\n" STAYS "commit job error\n");
}

static void test_start_of_sending_fails(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE1, "migration_start", FETTLE_ERROR_HYPERVISOR, "not now", 1);
    g_assert_nonnull(strstr(migrate(), "it stays on node1"));
    ops_expect(world, BEGINNING "node1 migration_cancel\n" STAYS "commit job error\n");
}

/* What waits on the target could not be ended: the migration stays on record. */
static void test_target_silent(void)
{
    ops_put_web(world, "in-sync", true);
    world->migration_end = "failed";
    ops_fail(world, NODE2, "incoming_close", FETTLE_ERROR_UNREACHABLE, "no route", 999);
    g_assert_nonnull(strstr(migrate(), "\"unreachable\""));
    g_assert_cmpstr(ops_web(world)->migration_node, ==, NODE2);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_MIGRATING);
    g_assert_true(world->incoming);
}

static void test_source_silent(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE1, "migration_wait", FETTLE_ERROR_UNREACHABLE, "no route", 999);
    ops_fail(world, NODE1, "migration_cancel", FETTLE_ERROR_UNREACHABLE, "no route", 999);
    g_assert_nonnull(strstr(migrate(), "\"unreachable\""));
    g_assert_cmpstr(ops_web(world)->migration_node, ==, NODE2);
    /* Nothing was ended on the target either: the guest may be going over this very moment. */
    g_assert_true(world->incoming);
    g_assert_null(strstr(world->trace->str, "incoming_close"));
}

/* --- cancelling --- */

static void wish_end(struct ops_world *changed, guint number)
{
    if (number == 1)
        ops_set(changed, "job", "17", "cancel", json_true());
}

static void test_cancel(void)
{
    ops_put_web(world, "in-sync", true);
    world->migration_steps = 1000;
    world->on_commit = wish_end;
    g_assert_cmpstr(migrate(), ==,
                    "[\"OpExecError\", [\"the migration of instance \\\"web1\\\" to node2 was "
                    "canceled; it stays on node1\", \"canceled\", false]]");
    ops_expect(world, BEGINNING "node1 migration_cancel\n" STAYS "commit job canceled\n");
    expect_settled(NODE1);
    g_assert_cmpstr(world->done->status, ==, "canceled");
}

static void test_cancel_too_late(void)
{
    ops_put_web(world, "in-sync", true);
    world->migration_steps = 1000;
    world->migration_late = true;
    world->on_commit = wish_end;
    g_assert_cmpstr(migrate(), ==, "null");
    expect_settled(NODE2);
    g_assert_cmpstr(world->done->status, ==, "success");
}

/* --- settling what a dead job has left --- */

static void put_migrating(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "migration",
            json_string("00000000-0000-4000-8000-0000000000f1"));
    ops_set(world, "instance", WEB, "migration_node", json_string(NODE2));
    ops_set(world, "instance", WEB, "task_state", json_string("migrating"));
    ops_set(world, "instance", WEB, "task_owner", json_integer(16));
    world->incoming = true;
}

static void test_cleanup_gives_up(void)
{
    put_migrating();
    g_assert_cmpstr(cleanup(), ==, "null");
    ops_expect(world, "node1 migration_cancel\n" STAYS "commit job success\n");
    expect_settled(NODE1);
    expect_log("the migration is given up; web1 is on node1\n");
    /* Once more is no error, and does nothing. */
    g_assert_cmpstr(cleanup(), ==, "null");
    ops_expect(world, "commit job success\n");
    expect_log("no migration is on record; web1 is on node1\n");
}

static void test_cleanup_finishes(void)
{
    put_migrating();
    world->migration_late = true;
    g_assert_cmpstr(cleanup(), ==, "null");
    ops_expect(world, "node1 migration_cancel\n"
                      "node1 replica_open g2\n"
                      "node2 guest_start g2 mirror no-copy incoming\n"
                      "commit instance web1 g2 up @node2 node2/node1\n"
                      "commit job success\n");
    expect_settled(NODE2);
}

/* The node that it left is dead: nothing went over, and the target's half is ended first. */
static void test_cleanup_dead_source(void)
{
    put_migrating();
    ops_put(world, "cluster", CLUSTER,
            json_make("{ss ss ss}", "uuid", CLUSTER, "name", "c", "master_node", NODE3));
    ops_set(world, "node", NODE1, "offline", json_true());
    world->guest_node = NULL;
    g_assert_cmpstr(cleanup(), ==, "null");
    ops_expect(world, STAYS "commit job success\n");
    g_assert_false(world->incoming);
}

/* Where the guest came from can tell nothing, but the record does. */
static void test_cleanup_by_record(void)
{
    put_migrating();
    ops_fail(world, NODE1, "migration_cancel", FETTLE_ERROR_UNREACHABLE, "no route", 999);
    g_assert_nonnull(strstr(cleanup(), "\"unreachable\""));
    g_assert_cmpstr(ops_web(world)->migration_node, ==, NODE2);
}

static void test_cleanup_in_the_last_step(void)
{
    ops_put_web(world, "syncing", true);
    ops_set(world, "instance", WEB, "task_state", json_string("migrating"));
    g_assert_cmpstr(cleanup(), ==, "null");
    ops_expect(world, "node2 replica_open g1\n"
                      "node1 mirror_attach g1 mirror since\n"
                      "commit instance web1 g1 up @node1 node1/node2\n"
                      "commit job success\n");
    /* Attached already: only the mark is left. */
    ops_set(world, "instance", WEB, "task_state", json_string("migrating"));
    world->guest_mirror = "syncing";
    g_assert_cmpstr(cleanup(), ==, "null");
    ops_expect(world, "commit instance web1 g1 up @node1 node1/node2\n"
                      "commit job success\n");
    /* The mark of somebody else is not touched. */
    ops_set(world, "instance", WEB, "task_state", json_string("growing-disk"));
    g_assert_cmpstr(cleanup(), ==, "null");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_GROWING_DISK);
}

/* --- killed at any moment --- */

/* What the watcher does then: by a mark it finds the migration, and has it settled. */
static void settle_and_check(void)
{
    if (ops_web(world)->task_state != TASK_NONE)
        g_assert_cmpstr(cleanup(), ==, "null");
    const struct instance *web = ops_web(world);
    const struct replica *replica = config_get(world->config, "replica", web->replica, NULL);
    expect_settled(web->primary_node);
    g_assert_cmpstr(world->guest_node, ==, web->primary_node);
    g_assert_cmpuint(world->guest_generation, ==, web->generation);
    g_assert_nonnull(replica);
    g_assert_cmpstr(replica->node, ==, web->secondary_node);
    if (!strcmp(web->primary_node, NODE1))
        g_assert_false(world->incoming);
}

static void walk(const char *end, bool late, bool window)
{
    bool alive = true;
    guint steps = 0;
    g_clear_pointer(&world, ops_world_free);
    for (; alive; steps++) {
        world = ops_world_new();
        ops_put_web(world, "in-sync", true);
        world->migration_end = end;
        world->migration_window = window;
        alive = ops_run_and_kill(world, json_make("[o]", opcode()), steps);
        world->migration_late = late;
        settle_and_check();
        g_clear_pointer(&world, ops_world_free);
    }
    g_assert_cmpuint(steps, >, 20);
    world = ops_world_new();
}

static void test_killed_moving(void)
{
    walk("moved", false, false);
    walk("moved", true, false);
}

static void test_killed_staying(void)
{
    walk("failed", false, false);
    walk("failed", false, true);
}

/* --- other templates --- */

/* On node3, its disks there only or everywhere. */
static void put_other(const char *disk_template, bool running)
{
    bool disks = strcmp(disk_template, "diskless") != 0;
    ops_put_web(world, NULL, running);
    json_t *web = config_object_json(world->config, "instance", WEB);
    json_object_set_new(web, "disk_template", json_string(disk_template));
    json_object_set_new(web, "primary_node", json_string(NODE3));
    json_object_set_new(web, "holder", json_string(running ? NODE3 : ""));
    if (!disks)
        json_object_set_new(web, "disks", json_array());
    ops_put(world, "instance", WEB, web);
    world->guest_node = running ? NODE3 : NULL;
}

static void test_file(void)
{
    put_other("file", true);
    world->disk[0] = 500;
    g_assert_cmpstr(migrate(), ==, "null");
    ops_expect(world, "commit instance web1 g1 up @node3 node3 migrating >node2\n"
                      "node2 incoming_open g1\n"
                      "node3 migration_start g1 mirror\n"
                      "node2 guest_start g2 incoming\n"
                      "node3 disks_remove g2\n"
                      "commit instance web1 g2 up @node2 node2\n"
                      "commit job success\n");
    expect_settled(NODE2);
}

/* The record does not name the source any more; what it has is found. */
static void test_cleanup_of_a_copy(void)
{
    put_other("file", true);
    ops_set(world, "instance", WEB, "migration",
            json_string("00000000-0000-4000-8000-0000000000f1"));
    ops_set(world, "instance", WEB, "migration_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "task_state", json_string("migrating"));
    g_ptr_array_add(world->strays, g_strdup(NODE2 " " WEB));
    g_assert_cmpstr(cleanup(), ==, "null");
    ops_expect(world, "node2 disks_remove g1\n"
                      "commit instance web1 g1 up @node3 node3\n"
                      "commit job success\n");
}

static void test_shared_unmounted(void)
{
    put_other("sharedfile", true);
    world->shared[0] = "";
    g_assert_nonnull(strstr(migrate_with("target_node", json_string("node1")),
                            "instance \\\"web1\\\" cannot go to node1: it does not mount the "
                            "shared folder"));
    world->memory[0] = 8000;
    g_assert_cmpstr(migrate(), ==, "null");
    expect_settled(NODE2);
}

static void test_shared(void)
{
    static const char *const templates[] = {"sharedfile", "diskless"};
    for (guint i = 0; i < G_N_ELEMENTS(templates); i++) {
        put_other(templates[i], true);
        world->memory[0] = 8000;
        g_string_truncate(world->trace, 0);
        g_assert_cmpstr(migrate(), ==, "null");
        ops_expect(world, "commit instance web1 g1 up @node3 node3 migrating >node1\n"
                          "node1 incoming_open g1\n"
                          "node3 migration_start g1 mirror\n"
                          "node1 guest_start g2 incoming\n"
                          "commit instance web1 g2 up @node1 node1\n"
                          "commit job success\n");
        expect_settled(NODE1);
    }
}

static void test_advice(void)
{
    put_other("sharedfile", true);
    world->memory[0] = 8000;
    ops_put(world, "advice", "00000000-0000-4000-8000-0000000000aa",
            json_make("{ss ss ss ss ss}", "uuid", "00000000-0000-4000-8000-0000000000aa", "author",
                      "rack", "subject_kind", "node", "subject", NODE1, "advice", "avoid"));
    g_assert_cmpstr(migrate(), ==, "null");
    expect_settled(NODE2);
    /* Who names a node has decided. */
    g_assert_cmpstr(migrate_with("target_node", json_string("node1")), ==, "null");
    expect_settled(NODE1);
}

/* Nor is a node with an older QEMU chosen, however much room it has, for what goes over as it runs.
 */
static void test_versions(void)
{
    put_other("sharedfile", true);
    world->memory[0] = 8000;
    world->qemu[0] = "7.2.9";
    g_assert_cmpstr(migrate(), ==, "null");
    expect_settled(NODE2);
    put_other("sharedfile", true);
    world->qemu[0] = world->qemu[1] = "7.2.9";
    g_assert_nonnull(strstr(migrate(),
                            "no node can be the new node of instance \\\"web1\\\": node1 "
                            "has QEMU 7.2.9, and the guest runs under 7.2.22, which is "
                            "newer; node2 has QEMU 7.2.9,"));
    world->guest_node = NULL; /* a restart needs no state to be understood */
    ops_set(world, "instance", WEB, "holder", json_string(""));
    g_assert_cmpstr(migrate_with("allow_failover", json_true()), ==, "null");
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE1);
}

/* --- what does not run --- */

static void test_stopped(void)
{
    ops_put_web(world, "in-sync", false);
    g_assert_cmpstr(migrate(), ==,
                    "[\"OpPrereqError\", [\"instance \\\"web1\\\" does not run on node1, so there "
                    "is nothing to migrate; use instance failover, or --allow-failover\", "
                    "\"wrong_state\"]]");
    ops_expect(world, "commit job error\n");
    g_assert_cmpstr(migrate_with("allow_failover", json_true()), ==, "null");
    ops_expect(world, "node1 replica_leave g1\n"
                      "commit delete replica; replica node1 g2 s1 in-sync; instance web1 g2 down "
                      "@- node2/node1 clean failing-over\n"
                      "node2 replica_close g2 promote equal\n"
                      "node1 replica_close g2\n"
                      "commit instance web1 g2 down @- node2/node1 clean\n"
                      "commit job success\n");
    g_assert_null(world->guest_node);
}

static void test_stopped_file(void)
{
    put_other("file", false);
    g_assert_cmpstr(migrate_with("allow_failover", json_true()), ==,
                    "[\"OpPrereqError\", [\"the disks of instance \\\"web1\\\" are on node3 only "
                    "(template file); it moves only while it runs: fettle instance migrate web1\", "
                    "\"wrong_state\"]]");
}

/* --- refused --- */

static void expect_refusal(const char *result, const char *message, const char *code)
{
    json_autoptr expected = json_make("[s, [s, s]]", "OpPrereqError", message, code);
    char *text = json_dumps(expected, 0);
    g_assert_cmpstr(result, ==, text);
    free(text);
    ops_expect(world, "commit job error\n");
}

static void test_refused_target(void)
{
    ops_put_web(world, "in-sync", true);
    expect_refusal(migrate_with("target_node", json_string("node1")),
                   "instance \"web1\" is on node1 already", "wrong_input");
    expect_refusal(migrate_with("target_node", json_string("node3")),
                   "instance \"web1\" can go to node2 only, where its replica is, not to node3; or "
                   "first: fettle instance replace-disks web1 --remote-node=node3",
                   "wrong_input");
    expect_refusal(migrate_with("target_node", json_string("node9")),
                   "node \"node9\" does not exist", "unknown_entity");
    ops_set(world, "node", NODE2, "drained", json_true());
    expect_refusal(migrate(), "instance \"web1\" cannot go to node2: it is drained", "wrong_state");
    ops_node_offline(world, NODE2);
    expect_refusal(migrate(), "node2, the secondary node of instance \"web1\", is offline",
                   "wrong_state");
}

static void test_refused_source(void)
{
    put_other("sharedfile", true);
    ops_node_offline(world, NODE3);
    expect_refusal(migrate(), "node3, the primary node of instance \"web1\", is offline",
                   "wrong_state");
}

/* Of a job that died: moving the guest would drop what that was to do. */
static void test_refused_mark(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "task_owner", json_integer(7));
    ops_set(world, "instance", WEB, "task_state", json_string("stopping"));
    ops_set(world, "instance", WEB, "admin_state", json_string("down"));
    expect_refusal(
        migrate(),
        "job 7 ended while stopping instance \"web1\"; that is settled first, by itself, "
        "or by: fettle instance shutdown web1",
        "resource_not_available");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_STOPPING);
}

static void test_refused_replica(void)
{
    ops_put_web(world, "stale", true);
    ops_set(world, "replica", REPLICA, "why", json_string("export gone"));
    expect_refusal(migrate(),
                   "the replica of instance \"web1\" on node2 is stale since generation 1 (export "
                   "gone); it migrates only to a replica in sync: wait for it, or fettle instance "
                   "replace-disks web1",
                   "wrong_state");
    ops_put_web(world, NULL, true);
    expect_refusal(migrate(),
                   "instance \"web1\" has no replica to migrate to; give it one: fettle instance "
                   "replace-disks web1",
                   "wrong_state");
}

static void test_refused_room(void)
{
    ops_put_web(world, "in-sync", true);
    world->memory[1] = 100;
    expect_refusal(migrate(),
                   "instance \"web1\" cannot go to node2: it has 100 MiB of memory left, 512 MiB "
                   "are needed; make room there, or take another node: fettle node list",
                   "insufficient_resources");
    put_other("file", true);
    world->disk[1] = world->disk[0] = 999;
    expect_refusal(migrate_with("target_node", json_string("node1")),
                   "instance \"web1\" cannot go to node1: it has 999 MiB of disk left, 1000 MiB "
                   "are needed; make room there, or take another node: fettle node list",
                   "insufficient_resources");
}

static void test_refused_version(void)
{
    ops_put_web(world, "in-sync", true);
    world->qemu[1] = "7.2.9";
    expect_refusal(migrate(),
                   "instance \"web1\" cannot migrate from QEMU 7.2.22 on node1 to 7.2.9 on node2, "
                   "which is older; upgrade node2, or use instance failover",
                   "wrong_state");
    world->qemu[1] = "7.2";
    g_assert_nonnull(strstr(migrate(), "to 7.2 on node2, which is older"));
    world->qemu[1] = "";
    g_assert_nonnull(strstr(migrate(), "to an unknown one on node2, which is older"));
    g_string_truncate(world->trace, 0);
    world->qemu[1] = "8.0";
    g_assert_cmpstr(migrate(), ==, "null");
}

static void test_refused_bridge(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "nics",
            json_make("[{ss ss ss ss}]", "uuid", "00000000-0000-4000-8000-0000000000e9", "mac",
                      "aa:00:00:12:34:56", "mode", "bridged", "link", "br0"));
    world->bridges[1] = "br7";
    expect_refusal(migrate(),
                   "instance \"web1\" cannot go to node2: it has no bridge \"br0\"; make that "
                   "bridge there, give the card another link, or take a node that has it",
                   "environment");
}

static void test_refused_kernel(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "kernel_path", json_string("vmlinuz"));
    world->image_bytes = 1;
    world->no_image = "vmlinuz";
    world->no_image_on = NODE2;
    expect_refusal(migrate(),
                   "kernel_path: kernel \"vmlinuz\" does not exist on node \"node2\"; put it into "
                   "var/images there",
                   "unknown_entity");
}

static void test_refused_unfinished(void)
{
    put_migrating();
    const char *refusal = "a migration of instance \"web1\" has not been settled; say: "
                          "fettle instance migrate web1 --cleanup";
    expect_refusal(migrate(), refusal, "wrong_state");
    static const char *const others[] = {"OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN",
                                         "OP_INSTANCE_REBOOT", "OP_INSTANCE_FAILOVER",
                                         "OP_INSTANCE_REPLACE_DISKS"};
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        expect_refusal(
            ops_run_one(world, json_make("{ss ss}", "OP_ID", others[i], "instance_name", "web1")),
            refusal, "wrong_state");
}

static void test_unknown(void)
{
    expect_refusal(migrate(), "instance \"web1\" does not exist", "unknown_entity");
}

/* --- --- */

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/migrate/moves#SAF-17", test_moves);
    add("/migrate/moves/unclean#SAF-13,SAF-17", test_moves_unclean);
    add("/migrate/moves/way-back-fails#SAF-10,SAF-17", test_way_back_fails);
    add("/migrate/limits", test_limits);
    add("/migrate/locks#FUT-04", test_locks);
    add("/migrate/process-gone#SAF-17", test_process_gone);
    add("/migrate/used-up#SAF-17,SAF-20", test_generation_used_up);
    add("/migrate/start-fails", test_start_fails);
    add("/migrate/start-unanswered#SAF-17", test_start_unanswered);
    add("/migrate/copy-fails#SAF-17", test_copy_fails);
    add("/migrate/window#SAF-17", test_fails_in_the_window);
    add("/migrate/window/replica-away#SAF-13,SAF-17", test_replica_stays_away);
    add("/migrate/target-refuses#SAF-17", test_target_refuses);
    add("/migrate/sending-fails#SAF-17", test_start_of_sending_fails);
    add("/migrate/target-silent#SAF-17", test_target_silent);
    add("/migrate/source-silent#SAF-17", test_source_silent);
    add("/migrate/cancel#SAF-17", test_cancel);
    add("/migrate/cancel/late#SAF-17", test_cancel_too_late);
    add("/migrate/cleanup/gives-up#SAF-17", test_cleanup_gives_up);
    add("/migrate/cleanup/finishes#SAF-17", test_cleanup_finishes);
    add("/migrate/cleanup/of-a-copy#SAF-17", test_cleanup_of_a_copy);
    add("/migrate/sharedfile/unmounted", test_shared_unmounted);
    add("/migrate/cleanup/dead-source#SAF-17", test_cleanup_dead_source);
    add("/migrate/cleanup/silent-source#SAF-17", test_cleanup_by_record);
    add("/migrate/cleanup/last-step", test_cleanup_in_the_last_step);
    add("/migrate/killed/moving#SAF-17,SAF-20", test_killed_moving);
    add("/migrate/killed/staying#SAF-17,SAF-20", test_killed_staying);
    add("/migrate/file#SAF-17", test_file);
    add("/migrate/shared#SAF-17,SAF-21", test_shared);
    add("/migrate/advice#ARP-69", test_advice);
    add("/migrate/versions#SAF-17", test_versions);
    add("/migrate/stopped", test_stopped);
    add("/migrate/stopped/file", test_stopped_file);
    add("/migrate/refused/target", test_refused_target);
    add("/migrate/refused/source", test_refused_source);
    add("/migrate/refused/mark", test_refused_mark);
    add("/migrate/refused/replica#SAF-17", test_refused_replica);
    add("/migrate/refused/room", test_refused_room);
    add("/migrate/refused/kernel", test_refused_kernel);
    add("/migrate/refused/version", test_refused_version);
    add("/migrate/refused/bridge", test_refused_bridge);
    add("/migrate/refused/unfinished#SAF-17", test_refused_unfinished);
    add("/migrate/refused/unknown", test_unknown);
    return g_test_run();
}
