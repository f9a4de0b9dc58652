/* The end of a restore: the record follows what the nodes have, or it is said why it cannot. */
#include <string.h>

#include "unit/core/world/ops_case.h"

static struct ops_world *world;

static const char *say_continue(bool dry_run)
{
    return ops_run_one(world, json_make("{ss ss sb}", "OP_ID", "OP_REPAIR_CONTINUE", "statement",
                                        "looked through", "dry_run", (int)dry_run));
}

static void brake(void)
{
    ops_put(world, "repair_brake", "cluster",
            json_make("{si ss sb}", "since", 1000, "why", "It was restored.", "restored", 1));
}

/* web1 stopped on record, closed clean with its replica in sync. */
static void prepare(void)
{
    ops_put_web(world, "in-sync", false);
    brake();
}

static void guest_on(const char *node, guint64 generation)
{
    world->guest_node = node;
    world->guest_generation = generation;
    world->guest_state = "running";
    g_free(world->guest_instance);
    world->guest_instance = g_strdup(WEB);
}

static const struct replica *replica(void)
{
    return config_get(world->config, "replica", REPLICA, NULL);
}

static bool released(void)
{
    return config_count(world->config, "repair_brake") == 0;
}

/* It was started after the backup, where the record has it. */
static void test_guest_runs(void)
{
    guest_on(NODE1, 5);
    g_assert_cmpstr(say_continue(false), ==, "null");
    g_assert_true(released());
    g_assert_cmpuint(ops_web(world)->generation, ==, 5);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE1);
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_UP);
    g_assert_false(ops_web(world)->clean);
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "instance web1: runs on node1 as generation 5; on record was generation 1 and "
                    "nobody\n"
                    "instance web1: its replica counts as stale until it is copied anew\n");
    g_autoptr(GPtrArray) all = config_list(world->config, "decision");
    const struct decision *decision = all->pdata[0];
    g_assert_cmpstr(decision->summary, ==,
                    "The restored record was compared with the nodes and follows them now; "
                    "instances and repairs go on. looked through");
    g_assert_cmpuint(decision->evidence->len, ==, 3);
}

/* It was failed over after the backup: the node of its replica is the primary now. */
static void test_guest_moved(void)
{
    guest_on(NODE2, 4);
    g_assert_cmpstr(say_continue(false), ==, "null");
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE2);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE2);
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, "");
    g_assert_cmpstr(ops_web(world)->replica, ==, "");
    g_assert_null(replica());
}

static void test_images_moved(void)
{
    g_ptr_array_add(world->lost, (char *)NODE1);
    g_ptr_array_add(world->strays, g_strdup(NODE3 " " WEB));
    g_assert_cmpstr(say_continue(false), ==, "null");
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE3);
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_cmpuint(ops_web(world)->generation, ==, 2);
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
}

/* A clean close on record may be older than the last run: the replica is not believed. */
static void test_nothing_runs(void)
{
    g_assert_cmpstr(say_continue(false), ==, "null");
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE1);
    g_assert_false(ops_web(world)->clean);
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
}

static void test_dry_run_changes_nothing(void)
{
    guest_on(NODE1, 5);
    g_assert_cmpstr(say_continue(true), ==, "null");
    g_assert_false(released());
    g_assert_cmpuint(ops_web(world)->generation, ==, 1);
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "runs on node1 as generation 5"));
}

static void test_silent_node(void)
{
    ops_fail(world, NODE3, "node_report", FETTLE_ERROR_UNREACHABLE, "no route", 10);
    ops_expect_refusal(world, say_continue(false),
                       "node node3 does not answer, so what runs there cannot be compared with the "
                       "restored record: mend it, or say that it is dead (fettle node modify node3 "
                       "--offline yes), and try again",
                       "unreachable");
    g_assert_false(released());
    ops_node_offline(world, NODE3);
    ops_fail(world, NODE3, "node_report", FETTLE_ERROR_UNREACHABLE, "no route", 10);
    g_assert_cmpstr(say_continue(false), ==, "null");
    g_assert_true(released());
}

static void test_two_sets_of_images(void)
{
    g_ptr_array_add(world->strays, g_strdup(NODE3 " " WEB));
    ops_expect_refusal(world, say_continue(false),
                       "instance web1: node1 and node3 both have images of it, and no guest runs; "
                       "which are current the backup cannot tell. Move the wrong ones out of "
                       "var/disks on their node and try again",
                       "unsafe");
    g_assert_false(released());
}

/* An older guest is on its way out (SAF-19). */
static void test_older_guest(void)
{
    ops_set(world, "instance", WEB, "generation", json_integer(7));
    guest_on(NODE1, 6);
    ops_expect_refusal(world, say_continue(false),
                       "instance web1: an older guest (generation 6) still lives on node1 and is "
                       "being ended; try again",
                       "resource_not_available");
}

static void test_unknown_guest(void)
{
    guest_on(NODE3, 2);
    g_free(world->guest_instance);
    world->guest_instance = g_strdup("00000000-0000-4000-8000-0000000000b9");
    g_assert_cmpstr(say_continue(false), ==, "null");
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "node node3: runs a guest of an instance that the backup does not "
                                 "know (00000000-0000-4000-8000-0000000000b9); it is left alone; "
                                 "what can be done about it says: fettle cluster verify\n"));
}

/* Until then jobs that act are refused before they have done anything. */
static void test_jobs_rest(void)
{
    static const char words[] =
        "the configuration was restored from a backup and is not compared with the nodes yet, so "
        "nothing starts, stops or moves: look at `fettle cluster verify`, then say `fettle repair "
        "continue`";
    static const char *const ids[] = {"OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN",
                                      "OP_INSTANCE_FAILOVER", "OP_INSTANCE_REMOVE"};
    for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
        ops_expect_refusal(
            world,
            ops_run_one(world, json_make("{ss ss}", "OP_ID", ids[i], "instance_name", "web1")),
            words, "wrong_state");
    ops_expect_refusal(
        world,
        ops_run_one(world, json_make("{ss ss}", "OP_ID", "OP_NODE_EVACUATE", "node_name", "node1")),
        words, "wrong_state");
    g_assert_cmpstr(ops_run_one(world, json_make("{ss si}", "OP_ID", "OP_CLUSTER_SET_PARAMS",
                                                 "max_running_jobs", 9)),
                    ==, "null");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ops_case("/ops-restored/guest-runs", test_guest_runs, &world, prepare);
    ops_case("/ops-restored/guest-moved", test_guest_moved, &world, prepare);
    ops_case("/ops-restored/images-moved", test_images_moved, &world, prepare);
    ops_case("/ops-restored/nothing-runs", test_nothing_runs, &world, prepare);
    ops_case("/ops-restored/dry-run", test_dry_run_changes_nothing, &world, prepare);
    ops_case("/ops-restored/silent-node", test_silent_node, &world, prepare);
    ops_case("/ops-restored/two-sets-of-images", test_two_sets_of_images, &world, prepare);
    ops_case("/ops-restored/older-guest", test_older_guest, &world, prepare);
    ops_case("/ops-restored/unknown-guest", test_unknown_guest, &world, prepare);
    ops_case("/ops-restored/jobs-rest", test_jobs_rest, &world, prepare);
    return g_test_run();
}
