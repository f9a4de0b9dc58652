/* Start, stop, reboot: what is committed and asked of the nodes, in which order. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *op(const char *id)
{
    return ops_run_one(world, json_make("{ss ss}", "OP_ID", id, "instance_name", "web1"));
}

static const char *start(void)
{
    return op("OP_INSTANCE_STARTUP");
}

static const char *stop(void)
{
    return op("OP_INSTANCE_SHUTDOWN");
}

/* --- start --- */

static void test_start_after_clean_close(void)
{
    ops_put_web(world, "in-sync", false);
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(
        world,
        "commit instance web1 g2 up @node1 node1/node2 starting; replica node2 g2 s4 in-sync\n"
        "node2 replica_open g2\n"
        "node1 guest_start g2 mirror no-copy\n"
        "commit instance web1 g2 up @node1 node1/node2\n"
        "commit job success\n");
}

/* The node has lost it, and says how its images are. */
static void crash(const char *sound)
{
    ops_put_web(world, "in-sync", true);
    world->guest_node = NULL;
    world->stop_unclean = true;
    world->sound = sound;
}

static const struct replica *replica(void)
{
    return config_get(world->config, "replica", REPLICA, NULL);
}

/* Closed first, then copied; what the replica has is kept meanwhile. */
static const char after_crash[] =
    "commit instance web1 g1 up @node1 node1/node2 starting\n"
    "node1 guest_stop g1\n"
    "node2 replica_close g2\n"
    "commit instance web1 g2 up @- node1/node2 starting; replica node2 g2 s4 in-sync\n"
    "commit instance web1 g3 up @node1 node1/node2 starting; replica node2 g3 s5 syncing\n"
    "node2 replica_open g3 keep\n"
    "node1 guest_start g3 mirror\n"
    "commit instance web1 g3 up @node1 node1/node2\n"
    "commit job success\n";

static void test_start_after_crash_copies(void)
{
    crash("yes");
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(world, after_crash);
    g_assert_cmpuint(replica()->keep, ==, 2);
    g_assert_cmpint(ops_web(world)->sound, ==, SOUND_UNKNOWN);
}

static void test_start_without_room_to_keep(void)
{
    crash("yes");
    world->no_keep = true;
    g_assert_cmpstr(start(), ==, "null");
    g_assert_cmpstr(
        replica()->why, ==,
        "copied in full; one copy is left meanwhile, as node2 could not keep the images "
        "as they were");
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "replica on node2: copied in full; one copy is left meanwhile"));
}

#define ONLY_ELSEWHERE                                                                             \
    ", and the replica of instance \\\"web1\\\" on node2 has every acknowledged write: fettle "    \
    "instance failover web1; or, if the images on node1 are to be gone on with all the same: "     \
    "fettle instance startup web1 --from-primary --statement ...\", \"unsafe\", true]]"

/* A copy would be the end of what the replica has. The close is on record, and that is all. */
static void assert_not_started(const char *said)
{
    g_autofree char *result = g_strdup(start());
    g_assert_cmpstr(result, ==, said);
    g_assert_null(strstr(world->trace->str, "guest_start"));
    g_assert_null(strstr(world->trace->str, "replica_open"));
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_cmpuint(replica()->generation, ==, ops_web(world)->generation);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_UP);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

static void test_start_from_what_is_not_sound(void)
{
    crash("no");
    assert_not_started("[\"OpExecError\", [\"node1 says that the images that it ran from are not "
                       "sound" ONLY_ELSEWHERE);
    g_assert_cmpint(ops_web(world)->sound, ==, SOUND_NO);
    assert_not_started("[\"OpExecError\", [\"node1 says that the images that it ran from are not "
                       "sound" ONLY_ELSEWHERE); /* and so again */
}

static void test_start_from_what_is_unknown(void)
{
    crash(NULL); /* a node of the version before */
    assert_not_started("[\"OpExecError\", [\"node1 does not say whether the images that it ran "
                       "from are sound" ONLY_ELSEWHERE);
}

static const char *start_from_primary(const char *statement)
{
    return ops_run_one(world,
                       json_make("{ss ss sb ss}", "OP_ID", "OP_INSTANCE_STARTUP", "instance_name",
                                 "web1", "from_primary", 1, "statement", statement));
}

/* A person's word: on record before anything follows from it, and what the replica has is kept. */
static void test_start_from_primary(void)
{
    crash("no");
    g_assert_cmpstr(start_from_primary("the disk was mended"), ==, "null");
    ops_expect(
        world,
        "commit instance web1 g1 up @node1 node1/node2 starting\n"
        "node1 guest_stop g1\n"
        "node2 replica_close g2\n"
        "commit instance web1 g2 up @- node1/node2 starting; replica node2 g2 s4 in-sync\n"
        "commit instance web1 g2 up @- node1/node2 starting; replica node2 g2 s5 stale\n"
        "commit instance web1 g3 up @node1 node1/node2 starting; replica node2 g3 s6 syncing\n"
        "node2 replica_open g3 keep\n"
        "node1 guest_start g3 mirror\n"
        "commit instance web1 g3 up @node1 node1/node2\n"
        "commit job success\n");
}

static void test_start_from_primary_bad_input(void)
{
    crash("no");
    g_assert_cmpstr(start_from_primary(""), ==,
                    "[\"OpPrereqError\", [\"statement: --from-primary gives up what the replica "
                    "has; say why, with --statement\", \"wrong_input\"]]");
    g_assert_cmpstr(ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_STARTUP",
                                                 "instance_name", "web1", "statement", "because")),
                    ==,
                    "[\"OpPrereqError\", [\"statement: goes with --from-primary only\", "
                    "\"wrong_input\"]]");
}

static void test_start_stale_replica_copies(void)
{
    ops_put_web(world, "stale", false);
    ops_set(world, "instance", WEB, "clean", json_true()); /* of itself no permission */
    g_assert_cmpstr(start(), ==, "null");
    g_assert_nonnull(strstr(world->trace->str, "replica node2 g2 s4 syncing\n"));
    g_assert_nonnull(strstr(world->trace->str, "node1 guest_start g2 mirror\n"));
}

static void test_start_secondary_offline(void)
{
    ops_put_web(world, "in-sync", false);
    ops_node_offline(world, NODE2);
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(world,
               "commit instance web1 g2 up @node1 node1/node2 starting; replica node2 g2 s4 stale\n"
               "node1 guest_start g2\n"
               "commit instance web1 g2 up @node1 node1/node2\n"
               "commit job success\n");
}

static void test_start_secondary_unreachable(void)
{
    ops_put_web(world, "in-sync", false);
    fake_cut(world->world, NODE2, true);
    g_assert_cmpstr(start(), ==, "null");
    /* `stale` is on record before the guest is started. */
    ops_expect(
        world,
        "commit instance web1 g2 up @node1 node1/node2 starting; replica node2 g2 s4 in-sync\n"
        "commit instance web1 g2 up @node1 node1/node2 starting; replica node2 g2 s5 stale\n"
        "node1 guest_start g2\n"
        "commit instance web1 g2 up @node1 node1/node2\n"
        "commit job success\n");
    const struct replica *replica = config_get(world->config, "replica", REPLICA, NULL);
    g_assert_cmpstr(replica->why, ==, "node2: the node cannot be reached");
    g_assert_cmpuint(replica->since, >, 0);
}

static void test_start_export_fails(void)
{
    ops_put_web(world, "in-sync", false);
    ops_fail(world, NODE2, "replica_open", FETTLE_ERROR_STORAGE, "disk full", 1);
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(
        world,
        "commit instance web1 g2 up @node1 node1/node2 starting; replica node2 g2 s4 in-sync\n"
        "node2 replica_open g2\n"
        "commit instance web1 g2 up @node1 node1/node2 starting; replica node2 g2 s5 stale\n"
        "node1 guest_start g2\n"
        "commit instance web1 g2 up @node1 node1/node2\n"
        "commit job success\n");
    g_autofree char *log = ops_log(world, 0);
    g_assert_true(g_str_has_prefix(
        log, "replica on node2 cannot be used (node2: disk full); going on without it\n"));
}

static void fail_second(struct ops_world *broken, guint number)
{
    if (number == 2)
        ops_fail(broken, "wconfd", "commit", FETTLE_ERROR_STORAGE, "store is full", 1);
}

static void test_no_start_without_the_word(void)
{
    ops_put_web(world, "in-sync", false);
    fake_cut(world->world, NODE2, true);
    world->on_commit = fail_second;
    g_assert_nonnull(strstr(start(), "store is full"));
    g_assert_null(strstr(world->trace->str, "guest_start")); /* SAF-10 */
}

static void replica_changes(struct ops_world *changed, guint number)
{
    if (number == 1)
        ops_set(changed, "replica", REPLICA, "state", json_string("stale"));
}

static void test_start_decides_on_the_committed_record(void)
{
    ops_put_web(world, "in-sync", false);
    world->on_commit = replica_changes; /* in the very moment of the commit */
    g_assert_cmpstr(start(), ==, "null");
    g_assert_nonnull(strstr(world->trace->str, "replica node2 g2 s4 syncing\n"));
    g_assert_null(strstr(world->trace->str, "no-copy"));
}

static void test_start_runs_already(void)
{
    ops_put_web(world, "in-sync", true);
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(world, "commit job success\n");
}

static void test_start_finishes_a_dead_jobs_start(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "task_state", json_string("starting"));
    ops_set(world, "instance", WEB, "task_owner", json_integer(12));
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(world, "commit instance web1 g1 up @node1 node1/node2\ncommit job success\n");
    g_assert_cmpuint(ops_web(world)->task_owner, ==, 0);
}

/* The end of one generation, a clean close, and the start of the next. */
static const char restarted[] =
    "commit instance web1 g1 up @node1 node1/node2 starting\n"
    "node1 guest_stop g1\n"
    "node2 replica_close g2\n"
    "commit instance web1 g2 up @- node1/node2 clean starting; replica node2 g2 s4 in-sync\n"
    "commit instance web1 g3 up @node1 node1/node2 starting; replica node2 g3 s5 in-sync\n"
    "node2 replica_open g3\n"
    "node1 guest_start g3 mirror no-copy\n"
    "commit instance web1 g3 up @node1 node1/node2\n"
    "commit job success\n";

static void test_start_closes_what_was_switched_off(void)
{
    ops_put_web(world, "in-sync", true);
    world->guest_state = "shutdown";
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(world, restarted);
}

static void test_start_fate_unknown(void)
{
    ops_put_web(world, NULL, false);
    ops_fail(world, NODE1, "guest_start", FETTLE_ERROR_UNKNOWN_RESULT, "connection lost", 1);
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(world, "commit instance web1 g2 up @node1 node1 starting\n"
                      "node1 guest_start g2\n"
                      "node1 guest_start g2\n"
                      "commit instance web1 g2 up @node1 node1\n"
                      "commit job success\n");
}

static void test_start_used_up(void)
{
    ops_put_web(world, NULL, false);
    ops_fail(world, NODE1, "guest_start", FETTLE_ERROR_UNKNOWN_RESULT, "connection lost", 1);
    ops_fail(world, NODE1, "guest_start", FETTLE_ERROR_REFUSED, "was already used here", 1);
    g_assert_cmpstr(start(), ==, "null");
    ops_expect(world, "commit instance web1 g2 up @node1 node1 starting\n"
                      "node1 guest_start g2\n"
                      "node1 guest_start g2\n"
                      "commit instance web1 g3 up @node1 node1 starting\n"
                      "node1 guest_start g3\n"
                      "commit instance web1 g3 up @node1 node1\n"
                      "commit job success\n");
    ops_fail(world, NODE1, "guest_start", FETTLE_ERROR_REFUSED, "was already used here", 99);
    world->guest_node = NULL;
    g_assert_nonnull(strstr(start(), "superseded"));
    g_assert_cmpuint(ops_web(world)->generation, ==, 5); /* two tries, no more */
}

static void test_start_fate_stays_unknown(void)
{
    ops_put_web(world, NULL, false);
    ops_fail(world, NODE1, "guest_start", FETTLE_ERROR_UNKNOWN_RESULT, "connection lost", 99);
    g_assert_cmpstr(start(), ==,
                    "[\"OpExecError\", [\"node1: connection lost\", \"unknown_result\", true]]");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_STARTING); /* the watcher looks */
}

static void test_start_hypervisor_fails(void)
{
    ops_put_web(world, NULL, false);
    ops_fail(world, NODE1, "guest_start", FETTLE_ERROR_HYPERVISOR, "qemu: no such machine", 1);
    g_assert_cmpstr(start(), ==,
                    "[\"OpExecError\", [\"node1: qemu: no such machine\", \"hypervisor_error\", "
                    "true]]");
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_UP);
}

/* --- refused starts --- */

static void test_start_refused(void)
{
    g_assert_cmpstr(start(), ==,
                    "[\"OpPrereqError\", [\"instance \\\"web1\\\" does not exist\", "
                    "\"unknown_entity\"]]");
    ops_put_web(world, "in-sync", false);
    fake_cut(world->world, NODE3, true);
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    g_assert_cmpstr(start(), ==,
                    "[\"OpPrereqError\", [\"node3, the primary node of instance \\\"web1\\\", does "
                    "not answer; if it is really dead: fettle node modify node3 --offline=yes "
                    "--statement ...\", \"resource_not_available\"]]");
    ops_node_offline(world, NODE3);
    g_assert_cmpstr(start(), ==,
                    "[\"OpPrereqError\", [\"node3, the primary node of instance \\\"web1\\\", is "
                    "offline\", \"wrong_state\"]]");
}

static void test_start_no_memory(void)
{
    ops_put_web(world, NULL, false);
    world->memory[0] = 300;
    g_assert_cmpstr(
        start(), ==,
        "[\"OpPrereqError\", [\"node1 has 300 MiB of memory left, instance \\\"web1\\\" "
        "needs 512 MiB\", \"insufficient_resources\"]]");
    ops_expect(world, "commit job error\n");
}

static void test_start_half_made(void)
{
    ops_put_web(world, NULL, false);
    ops_set(world, "instance", WEB, "task_state", json_string("creating"));
    ops_set(world, "instance", WEB, "task_owner", json_integer(12));
    g_assert_cmpstr(
        start(), ==,
        "[\"OpPrereqError\", [\"job 12 ended while creating instance \\\"web1\\\"; it is "
        "kept if it runs or is whole, else removed: by itself, or by: fettle instance "
        "settle web1\", \"wrong_state\"]]");
}

/* --- stop --- */

static void test_stop_clean(void)
{
    ops_put_web(world, "in-sync", true);
    g_assert_cmpstr(stop(), ==, "null");
    ops_expect(world,
               "commit instance web1 g1 down @node1 node1/node2 stopping\n"
               "node1 guest_stop g1\n"
               "node2 replica_close g2\n"
               "commit instance web1 g2 down @- node1/node2 clean; replica node2 g2 s4 in-sync\n"
               "commit job success\n");
}

/* The record after a stop whose close was not clean, for one reason or another. What the replica
 * has is no matter of that. */
static void assert_unclean(enum replica_state state)
{
    g_assert_cmpuint(ops_web(world)->generation, ==, 2);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_false(ops_web(world)->clean);
    g_assert_cmpint(replica()->state, ==, state);
    g_assert_cmpuint(replica()->generation, ==, 2);
}

static void test_stop_mirror_did_not_end_well(void)
{
    ops_put_web(world, "in-sync", true);
    world->stop_unclean = true;
    world->sound = "no";
    g_assert_cmpstr(stop(), ==, "null");
    assert_unclean(REPLICA_IN_SYNC);
    g_assert_cmpint(ops_web(world)->sound, ==, SOUND_NO);
    g_assert_cmpstr(replica()->why, ==, "the last run did not end with equal copies");
}

static void test_stop_export_not_closed(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "replica_close", FETTLE_ERROR_STORAGE, "sync failed", 1);
    world->sound = "yes";
    g_assert_cmpstr(stop(), ==, "null");
    assert_unclean(REPLICA_IN_SYNC);
    g_assert_cmpint(ops_web(world)->sound, ==, SOUND_YES);
}

static void next_generation(struct ops_world *changed, guint number)
{
    if (number != 2)
        return;
    ops_set(changed, "replica", REPLICA, "generation", json_integer(2));
    ops_set(changed, "instance", WEB, "generation", json_integer(2));
}

/* What is on record when the stop is to be put there is a run that nobody has stopped. */
static void test_stop_of_another_generation(void)
{
    ops_put_web(world, "in-sync", true);
    world->on_commit = next_generation;
    g_assert_nonnull(strstr(stop(),
                            "generation 1 of instance \\\"web1\\\" was stopped, but 2 is on "
                            "record now\", \"version_conflict\""));
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE1);
    g_assert_cmpuint(ops_web(world)->generation, ==, 2);
}

static void test_stop_replica_was_syncing(void)
{
    ops_put_web(world, "syncing", true);
    g_assert_cmpstr(stop(), ==, "null");
    assert_unclean(REPLICA_STALE);
}

static void test_stop_secondary_offline(void)
{
    ops_put_web(world, "stale", true);
    ops_node_offline(world, NODE2);
    g_assert_cmpstr(stop(), ==, "null");
    assert_unclean(REPLICA_STALE);
    g_assert_null(strstr(world->trace->str, "replica_close"));
}

static void stale_at_the_end(struct ops_world *changed, guint number)
{
    if (number != 2)
        return;
    ops_set(changed, "replica", REPLICA, "state", json_string("stale"));
    ops_set(changed, "replica", REPLICA, "sync", json_integer(4));
}

static void test_stop_stale_wins(void)
{
    ops_put_web(world, "in-sync", true);
    world->on_commit = stale_at_the_end;
    g_assert_cmpstr(stop(), ==, "null");
    assert_unclean(REPLICA_STALE);
}

static void test_stop_unreachable(void)
{
    ops_put_web(world, "in-sync", true);
    fake_cut(world->world, NODE2, true);
    ops_fail(world, NODE1, "guest_stop", FETTLE_ERROR_UNREACHABLE, "gone", 1000);
    g_assert_nonnull(strstr(stop(), "[\"OpExecError\", [\"node1: gone\", \"unreachable\", true]]"));
    /* Nothing is on record but the wish, and the mark that makes the watcher try again. */
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_DOWN);
    g_assert_cmpuint(ops_web(world)->generation, ==, 1);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE1);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_STOPPING);
}

/* It can do nothing for its shutdown: nothing has changed. A cut is not refused so. */
static void test_stop_refused(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE1, "guest_stop", FETTLE_ERROR_WRONG_STATE, "it stands still", 1);
    g_assert_nonnull(strstr(stop(), "node1: it stands still"));
    ops_expect(world, "commit instance web1 g1 down @node1 node1/node2 stopping\n"
                      "node1 guest_stop g1\n"
                      "commit instance web1 g1 up @node1 node1/node2 stopping\n"
                      "commit instance web1 g1 up @node1 node1/node2\n"
                      "commit job error\n");
}

/* A job that was to stop it has died: its word stands, and so does the mark by which the watcher
 * comes back to it. */
static void test_stop_refused_again(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "admin_state", json_string("down"));
    ops_set(world, "instance", WEB, "task_state", json_string("stopping"));
    ops_fail(world, NODE1, "guest_stop", FETTLE_ERROR_WRONG_STATE, "it stands still", 1);
    g_assert_nonnull(strstr(stop(), "node1: it stands still"));
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_DOWN);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_STOPPING);
}

static void test_stop_stopped(void)
{
    ops_put_web(world, "in-sync", false);
    ops_set(world, "instance", WEB, "task_state", json_string("stopping"));
    g_assert_cmpstr(stop(), ==, "null");
    ops_expect(world, "commit instance web1 g1 down @- node1/node2 clean\ncommit job success\n");
}

static void test_stop_offline(void)
{
    ops_put_web(world, "in-sync", true);
    ops_node_offline(world, NODE1);
    fake_cut(world->world, NODE1, false); /* the job itself runs there */
    g_assert_cmpstr(stop(), ==,
                    "[\"OpPrereqError\", [\"node1, where instance \\\"web1\\\" ran last, is "
                    "offline; fail the instance over, or bring the node back\", \"wrong_state\"]]");
}

/* --- reboot --- */

static const char *reboot(const char *type)
{
    return ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_REBOOT",
                                        "instance_name", "web1", "reboot_type", type));
}

static void test_reboot(void)
{
    ops_put_web(world, "in-sync", true);
    g_assert_cmpstr(reboot("hard"), ==, "null");
    ops_expect(world, "node1 guest_reset g1\ncommit job success\n");
    g_assert_cmpstr(reboot("full"), ==, "null");
    ops_expect(world, restarted);
}

static void test_reboot_stopped(void)
{
    ops_put_web(world, "in-sync", false);
    g_assert_cmpstr(reboot("hard"), ==,
                    "[\"OpPrereqError\", [\"instance \\\"web1\\\" does not run; start it\", "
                    "\"wrong_state\"]]");
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/power/start/clean#SAF-10,SAF-11", test_start_after_clean_close);
    add("/power/start/crash#SAF-11,SAF-24", test_start_after_crash_copies);
    add("/power/start/no-room-to-keep#SAF-24", test_start_without_room_to_keep);
    add("/power/start/not-sound#SAF-13,SAF-24", test_start_from_what_is_not_sound);
    add("/power/start/soundness-unknown#SAF-13,SAF-24", test_start_from_what_is_unknown);
    add("/power/start/from-primary#SAF-24", test_start_from_primary);
    add("/power/start/from-primary-bad-input", test_start_from_primary_bad_input);
    add("/power/start/stale#SAF-11", test_start_stale_replica_copies);
    add("/power/start/secondary-offline#SAF-10", test_start_secondary_offline);
    add("/power/start/secondary-unreachable#SAF-10,SAF-13", test_start_secondary_unreachable);
    add("/power/start/export-fails#SAF-10,SAF-13", test_start_export_fails);
    add("/power/start/no-word#SAF-10,SAF-13", test_no_start_without_the_word);
    add("/power/start/newest-record#SAF-11,SAF-12", test_start_decides_on_the_committed_record);
    add("/power/start/runs-already#SAF-20", test_start_runs_already);
    add("/power/start/dead-job#SAF-20", test_start_finishes_a_dead_jobs_start);
    add("/power/start/switched-off#SAF-11", test_start_closes_what_was_switched_off);
    add("/power/start/fate-unknown#SAF-20", test_start_fate_unknown);
    add("/power/start/used-up#SAF-10,SAF-20", test_start_used_up);
    add("/power/start/fate-stays-unknown", test_start_fate_stays_unknown);
    add("/power/start/hypervisor", test_start_hypervisor_fails);
    add("/power/start/refused", test_start_refused);
    add("/power/start/no-memory", test_start_no_memory);
    add("/power/start/half-made", test_start_half_made);
    add("/power/stop/clean#SAF-11", test_stop_clean);
    add("/power/stop/mirror-failed#SAF-11", test_stop_mirror_did_not_end_well);
    add("/power/stop/export-not-closed#SAF-11", test_stop_export_not_closed);
    add("/power/stop/another-generation#SAF-10,SAF-11", test_stop_of_another_generation);
    add("/power/stop/syncing#SAF-11", test_stop_replica_was_syncing);
    add("/power/stop/secondary-offline#SAF-11", test_stop_secondary_offline);
    add("/power/stop/stale-wins#SAF-12", test_stop_stale_wins);
    add("/power/stop/unreachable#SAF-11", test_stop_unreachable);
    add("/power/stop/refused#SAF-27", test_stop_refused);
    add("/power/stop/refused-again#SAF-27,SAF-05", test_stop_refused_again);
    add("/power/stop/stopped", test_stop_stopped);
    add("/power/stop/offline", test_stop_offline);
    add("/power/reboot", test_reboot);
    add("/power/reboot/stopped", test_reboot_stopped);
    return g_test_run();
}
