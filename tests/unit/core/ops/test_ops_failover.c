/* Failover: only of a whole replica, only on evidence, in the right order. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *failover(void)
{
    return ops_run_one(
        world, json_make("{ss ss}", "OP_ID", "OP_INSTANCE_FAILOVER", "instance_name", "web1"));
}

/* The instance runs on node3 (which is not the master), its replica is on node2. */
static void put_web_on_node3(const char *replica_state, bool running)
{
    ops_put_web(world, replica_state, false);
    json_t *web = config_object_json(world->config, "instance", WEB);
    json_object_set_new(web, "primary_node", json_string(NODE3));
    json_object_set_new(web, "holder", json_string(running ? NODE3 : ""));
    json_object_set_new(web, "admin_state", json_string(running ? "up" : "down"));
    json_object_set_new(web, "clean", json_boolean(!running));
    ops_put(world, "instance", WEB, web);
    world->guest_node = running ? NODE3 : NULL;
    world->guest_generation = 1;
    world->guest_state = "running";
    g_free(world->guest_instance);
    world->guest_instance = g_strdup(WEB);
}

static void test_primary_dead(void)
{
    put_web_on_node3("in-sync", true);
    ops_node_offline(world, NODE3);
    g_assert_cmpstr(failover(), ==, "null");
    ops_expect(world, "commit delete replica; instance web1 g2 up @- node2 failing-over\n"
                      "node2 replica_close g2 promote\n"
                      "commit instance web1 g3 up @node2 node2 failing-over\n"
                      "node2 guest_start g3\n"
                      "commit instance web1 g3 up @node2 node2\n"
                      "commit job success\n");
    g_assert_cmpstr(ops_web(world)->replica, ==, "");
    g_assert_null(config_get(world->config, "replica", REPLICA, NULL));
}

/* Promoted as ever, by the word that is given; what nobody can know is said. */
static void test_primary_unheard(void)
{
    put_web_on_node3("in-sync", true);
    ops_set(world, "node", NODE3, "unheard_since", json_integer(86400));
    ops_node_offline(world, NODE3);
    g_assert_cmpstr(failover(), ==, "null");
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(
        log, "node3 cannot tell what the master before answered it: from 1970-01-02 00:00:00 UTC "
             "on that one may have accepted, alone, that this replica is stale, if its copies had "
             "been counted out; then writes that were acknowledged since are missing"));
}

static void test_locks(void)
{
    world->trace_locks = true;
    put_web_on_node3("in-sync", true);
    ops_node_offline(world, NODE3);
    failover();
    /* Shared on the dead node too: nobody takes the word back in the middle. */
    ops_expect(world, "locks instance/web1=exclusive node/node3=shared node/node2=shared "
                      "node-res/node2=exclusive\n"
                      "commit delete replica; instance web1 g2 up @- node2 failing-over\n"
                      "rooms are free\n"
                      "node2 replica_close g2 promote\n"
                      "commit instance web1 g3 up @node2 node2 failing-over\n"
                      "node2 guest_start g3\n"
                      "commit instance web1 g3 up @node2 node2\n"
                      "free\n"
                      "commit job success\n");
}

/* While a guest is stopped, which takes its time, its room on the other node is reserved and others
 * may look for theirs; the reservation ends with the very commit that moves the instance. */
static void test_locks_of_a_planned_one(void)
{
    world->trace_locks = true;
    put_web_on_node3("in-sync", true);
    g_assert_cmpstr(failover(), ==, "null");
    ops_expect(world,
               "locks instance/web1=exclusive node/node3=shared node/node2=shared "
               "node-res/node2=exclusive\n"
               "commit reservation \n"
               "rooms are free\n"
               "commit instance web1 g1 up @node3 node3/node2 failing-over\n"
               "node3 guest_stop g1\n"
               "node2 replica_close g2\n"
               "commit instance web1 g2 up @- node3/node2 clean failing-over; replica node2 g2 s4 "
               "in-sync\n"
               "node3 replica_leave g2\n"
               "commit delete replica; delete reservation; replica node3 g3 s1 in-sync; instance "
               "web1 g3 up @- node2/node3 clean failing-over\n"
               "rooms are free\n"
               "node2 replica_close g3 promote equal\n"
               "commit instance web1 g4 up @node2 node2/node3 failing-over; replica node3 g4 s2 "
               "in-sync\n"
               "node3 replica_open g4\n"
               "node2 guest_start g4 mirror no-copy\n"
               "commit instance web1 g4 up @node2 node2/node3\n"
               "free\n"
               "commit job success\n");
}

static guint64 reserved_at_stop;

static void look_at_reservation(struct ops_world *changed, guint number)
{
    g_autoptr(GPtrArray) all = config_list(changed->config, "reservation");
    if (number != 2) /* the mark, after the reservation */
        return;
    g_assert_cmpuint(all->len, ==, 1);
    const struct reservation *reservation = all->pdata[0];
    const struct reserved_room *room = reservation->rooms->pdata[0];
    g_assert_cmpstr(reservation->name, ==, "web1");
    g_assert_cmpstr(room->node, ==, NODE2);
    reserved_at_stop = room->memory;
}

/* What was reserved and not needed is given back at once. */
static void test_reservation_of_a_failure(void)
{
    put_web_on_node3("in-sync", true);
    world->on_commit = look_at_reservation;
    ops_fail(world, NODE3, "guest_stop", FETTLE_ERROR_HYPERVISOR, "no", 1);
    const char *result = failover();
    g_assert_cmpstr(result, ==, "[\"OpExecError\", [\"node3: no\", \"hypervisor_error\", true]]");
    g_assert_cmpuint(reserved_at_stop, ==, ops_web(world)->memory);
    g_assert_cmpuint(config_count(world->config, "reservation"), ==, 0);
}

static void test_primary_alive_is_stopped_first(void)
{
    put_web_on_node3("in-sync", true);
    g_assert_cmpstr(failover(), ==, "null");
    ops_expect(world,
               "commit instance web1 g1 up @node3 node3/node2 failing-over\n"
               "node3 guest_stop g1\n"
               "node2 replica_close g2\n"
               "commit instance web1 g2 up @- node3/node2 clean failing-over; replica node2 g2 s4 "
               "in-sync\n"
               "node3 replica_leave g2\n"
               "commit delete replica; replica node3 g3 s1 in-sync; instance web1 g3 up @- "
               "node2/node3 clean failing-over\n"
               "node2 replica_close g3 promote equal\n"
               "commit instance web1 g4 up @node2 node2/node3 failing-over; replica node3 g4 s2 "
               "in-sync\n"
               "node3 replica_open g4\n"
               "node2 guest_start g4 mirror no-copy\n"
               "commit instance web1 g4 up @node2 node2/node3\n"
               "commit job success\n");
    g_autofree char *log = ops_log(world, 0);
    g_assert_true(g_str_has_suffix(log, "its images on node3 are its replica now, in-sync\n"));
}

static void test_stopped_stays_stopped(void)
{
    put_web_on_node3("in-sync", false);
    ops_node_offline(world, NODE3);
    g_assert_cmpstr(failover(), ==, "null");
    ops_expect(world, "commit delete replica; instance web1 g2 down @- node2 failing-over\n"
                      "node2 replica_close g2 promote\n"
                      "commit instance web1 g2 down @- node2\n"
                      "commit job success\n");
}

/* --- refused --- */

static void test_refused_stale(void)
{
    put_web_on_node3("stale", true);
    ops_node_offline(world, NODE3);
    ops_set(world, "replica", REPLICA, "why", json_string("export gone"));
    g_assert_cmpstr(failover(), ==,
                    "[\"OpPrereqError\", [\"the replica of instance \\\"web1\\\" on node2 is stale "
                    "since generation 1 (export gone): acknowledged writes would be lost\", "
                    "\"unsafe\"]]");
    ops_set(world, "replica", REPLICA, "since", json_integer(1700000000));
    ops_set(world, "replica", REPLICA, "state", json_string("syncing"));
    g_assert_cmpstr(failover(), ==,
                    "[\"OpPrereqError\", [\"the replica of instance \\\"web1\\\" on node2 is "
                    "syncing since 2023-11-14 22:13:20 UTC (export gone): acknowledged writes "
                    "would be lost\", \"unsafe\"]]");
    ops_expect(world, "commit job error\ncommit job error\n");
}

static void test_refused_without_evidence(void)
{
    put_web_on_node3("in-sync", true);
    fake_cut(world->world, NODE3, true);
    g_assert_cmpstr(failover(), ==,
                    "[\"OpPrereqError\", [\"node3 does not answer, but nobody said that it is "
                    "dead, so instance \\\"web1\\\" may still run there; if it is really dead: "
                    "fettle node modify node3 --offline=yes --statement ...\", \"unsafe\"]]");
    ops_expect(world, "commit job error\n");
}

/* Its disks are within reach, and so they are of a node that is only silent: it is not fenced by
 * anything but a person's word that its power is off. */
static void test_refused_shared_without_evidence(void)
{
    put_web_on_node3("in-sync", true);
    json_t *web = config_object_json(world->config, "instance", WEB);
    json_object_set_new(web, "disk_template", json_string("sharedfile"));
    json_object_set_new(web, "secondary_node", json_string(""));
    json_object_set_new(web, "replica", json_string(""));
    ops_put(world, "instance", WEB, web);
    ops_delete_object(world, "replica", REPLICA);
    ops_fail(world, NODE3, "node_report", FETTLE_ERROR_INTERNAL, "no memory left", 1);
    ops_expect_refusal(world, failover(),
                       "node3 answers with an error (no memory left), so whether instance \"web1\" "
                       "runs there is not known; mend it first",
                       "resource_not_available");
    fake_cut(world->world, NODE3, true);
    ops_expect_refusal(world, failover(),
                       "node3 does not answer, but nobody said that it is dead, so instance "
                       "\"web1\" may still run there, on the disks that all nodes share; if its "
                       "power is off: fettle node modify node3 --offline=yes --statement ...",
                       "unsafe");
    g_assert_cmpuint(ops_web(world)->generation, ==, 1);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE3);
}

static void test_refused_no_replica(void)
{
    ops_put_web(world, NULL, true);
    g_assert_cmpstr(failover(), ==,
                    "[\"OpPrereqError\", [\"instance \\\"web1\\\" has no replica to fail over "
                    "to\", \"wrong_state\"]]");
}

/* Nothing is stopped for disks that do not answer, whatever they had when they did. */
static void test_refused_disks_late(void)
{
    put_web_on_node3("in-sync", true);
    world->late = NODE2;
    world->late_part = "disks";
    ops_expect_refusal(world, failover(),
                       "the disks of node2: no answer, last heard 2 min ago; try again later",
                       "resource_not_available");
    g_assert_cmpstr(world->trace->str, ==, ""); /* nothing was asked of anybody */
}

/* On record as in-sync, but somebody has removed its images: the old ones stay what counts. */
static void test_refused_images_gone(void)
{
    put_web_on_node3("in-sync", false);
    g_ptr_array_add(world->lost, (void *)NODE2);
    ops_expect_refusal(world, failover(),
                       "node2 answers that it does not have the images of the replica of instance "
                       "\"web1\": there is nothing to fail over to; if node3 still has its disks: "
                       "fettle instance replace-disks web1",
                       "unsafe");
    /* And those are not whole either: a copy of them would be refused, with the way back here. */
    ops_set(world, "instance", WEB, "clean", json_false());
    ops_set(world, "instance", WEB, "sound", json_string("no"));
    ops_expect_refusal(world, failover(),
                       "node2 answers that it does not have the images of the replica of instance "
                       "\"web1\": there is nothing to fail over to; if node3 still has its disks: "
                       "fettle instance startup web1 --from-primary --statement ...",
                       "unsafe");
}

/* One of two is as good as none. */
static void test_refused_image_gone(void)
{
    put_web_on_node3("in-sync", false);
    ops_add_disk(world);
    world->lost_disk = NODE2;
    ops_expect_refusal(world, failover(),
                       "node2 answers that it does not have the image of disk 1 of the replica of "
                       "instance \"web1\": there is nothing to fail over to; if node3 still has "
                       "its disks: fettle instance replace-disks web1",
                       "unsafe");
    g_assert_cmpuint(ops_web(world)->generation, ==, 1);
}

static void test_refused_secondary(void)
{
    put_web_on_node3("in-sync", true);
    ops_node_offline(world, NODE3);
    fake_cut(world->world, NODE2, true);
    g_assert_nonnull(strstr(failover(), "node2, the secondary node of instance \\\"web1\\\", does "
                                        "not answer"));
    ops_node_offline(world, NODE2);
    g_assert_cmpstr(failover(), ==,
                    "[\"OpPrereqError\", [\"node2, the secondary node of instance \\\"web1\\\", "
                    "is offline\", \"wrong_state\"]]");
}

static void test_refused_no_memory(void)
{
    put_web_on_node3("in-sync", true);
    ops_node_offline(world, NODE3);
    world->memory[1] = 100;
    g_assert_cmpstr(failover(), ==,
                    "[\"OpPrereqError\", [\"instance \\\"web1\\\" cannot go to node2: it has 100 "
                    "MiB of memory left, 512 MiB are needed; make room there, or take another "
                    "node: fettle node list\", \"insufficient_resources\"]]");
}

/* The same code as from every other operation that finds it so. */
static void test_refused_no_bridge(void)
{
    put_web_on_node3("in-sync", true);
    ops_node_offline(world, NODE3);
    ops_set(world, "instance", WEB, "nics",
            json_make("[{ss ss ss ss}]", "uuid", "00000000-0000-4000-8000-0000000000c9", "mac",
                      "aa:00:00:12:34:56", "mode", "bridged", "link", "br0"));
    world->bridges[1] = "br7";
    ops_expect_refusal(world, failover(),
                       "instance \"web1\" cannot go to node2: it has no bridge \"br0\"; make that "
                       "bridge there, give the card another link, or take a node that has it",
                       "environment");
}

/* --- in the middle --- */

static void replica_lost(struct ops_world *changed, guint number)
{
    if (number == 1) {
        ops_set(changed, "replica", REPLICA, "sync", json_integer(4));
        ops_set(changed, "replica", REPLICA, "state", json_string("stale"));
    }
}

static void test_stale_in_the_last_moment(void)
{
    put_web_on_node3("in-sync", true);
    ops_node_offline(world, NODE3);
    world->on_commit = replica_lost;
    g_assert_nonnull(strstr(failover(), "is stale since"));
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE3);
    g_assert_cmpuint(ops_web(world)->generation, ==, 1);
}

/* Its own disk has failed: the replica has what was acknowledged all the same. */
static void test_unclean_stop_goes_on(void)
{
    put_web_on_node3("in-sync", true);
    world->stop_unclean = true;
    world->sound = "no";
    g_assert_cmpstr(failover(), ==, "null");
    /* The old images are left to their node, which keeps them aside. */
    ops_expect(world, "commit instance web1 g1 up @node3 node3/node2 failing-over\n"
                      "node3 guest_stop g1\n"
                      "node2 replica_close g2\n"
                      "commit instance web1 g2 up @- node3/node2 failing-over; replica node2 g2 s4 "
                      "in-sync\n"
                      "commit delete replica; instance web1 g3 up @- node2 failing-over\n"
                      "node2 replica_close g3 promote\n"
                      "commit instance web1 g4 up @node2 node2 failing-over\n"
                      "node2 guest_start g4\n"
                      "commit instance web1 g4 up @node2 node2\n"
                      "commit job success\n");
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "the old images become no replica (they are not sound); node3 "
                                 "keeps them aside\n"));
    g_assert_true(g_str_has_suffix(log,
                                   "web1 has no replica any more; give it one: fettle instance "
                                   "replace-disks web1\n"));
}

/* It runs on from the whole one, and what is left is copied anew, kept as it is until that is done;
 * also if only its node says that something has run from it since. */
static void test_unequal_is_copied(void)
{
    static const bool unclean[] = {true, false};
    for (guint i = 0; i < G_N_ELEMENTS(unclean); i++) {
        put_web_on_node3("in-sync", true);
        world->stop_unclean = unclean[i];
        world->leave_unequal = !unclean[i];
        world->sound = "yes";
        g_string_truncate(world->trace, 0);
        g_assert_cmpstr(failover(), ==, "null");
        g_assert_nonnull(strstr(
            world->trace->str, "node3 replica_leave g2\n"
                               "commit delete replica; replica node3 g3 s1 stale; instance web1 g3 "
                               "up @- node2/node3 failing-over\n"
                               "node2 replica_close g3 promote\n"
                               "commit instance web1 g4 up @node2 node2/node3 failing-over; "
                               "replica node3 g4 s2 syncing\n"
                               "node3 replica_open g4 keep\n"
                               "node2 guest_start g4 mirror\n"));
        g_autofree char *log = ops_log(world, 0);
        g_assert_true(g_str_has_suffix(
            log, "its images on node3 are its replica now, and are being copied anew\n"));
        ops_delete_object(world, "replica", ops_web(world)->replica);
    }
}

/* What does not run is not started, and gets its replica all the same: its node is told. */
static void test_stopped_keeps_its_replica(void)
{
    put_web_on_node3("in-sync", false);
    g_assert_cmpstr(failover(), ==, "null");
    ops_expect(world, "node3 replica_leave g1\n"
                      "commit delete replica; replica node3 g2 s1 in-sync; instance web1 g2 down "
                      "@- node2/node3 clean failing-over\n"
                      "node2 replica_close g2 promote equal\n"
                      "node3 replica_close g2\n"
                      "commit instance web1 g2 down @- node2/node3 clean\n"
                      "commit job success\n");
}

/* Each is a reason to go on without a replica, as ever; none to stay. */
static void test_not_left(void)
{
    static const struct {
        const char *why;
        const char *trial;
        bool lost, refused;
    } cases[] = {
        {"its disks are not well", "cannot write to its disks: Input/output error", false, false},
        {"some are missing", NULL, true, false},
        {"node3: no", NULL, false, true},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        put_web_on_node3("in-sync", false);
        world->trial[2] = cases[i].trial;
        if (cases[i].lost)
            g_ptr_array_add(world->lost, (void *)NODE3);
        if (cases[i].refused)
            ops_fail(world, NODE3, "replica_leave", FETTLE_ERROR_WRONG_STATE, "no", 1);
        g_assert_cmpstr(failover(), ==, "null");
        g_autofree char *log = ops_log(world, 0);
        g_autofree char *line = g_strdup_printf(
            "the old images become no replica (%s); node3 keeps them aside\n", cases[i].why);
        g_assert_nonnull(strstr(log, line));
        g_assert_nonnull(strstr(log, "web1 has no replica any more"));
        g_assert_cmpstr(ops_web(world)->replica, ==, "");
        g_ptr_array_set_size(world->lost, 0);
    }
}

/* What a close that was not clean has left is kept until there is another copy. */
static void test_left_then_replaced(void)
{
    put_web_on_node3("in-sync", false);
    ops_set(world, "instance", WEB, "clean", json_false());
    world->sound = "yes";
    g_assert_cmpstr(failover(), ==, "null");
    g_string_truncate(world->trace, 0);
    ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_REPLACE_DISKS",
                                 "instance_name", "web1", "mode", "replace_auto"));
    g_assert_nonnull(strstr(world->trace->str, "disks_create"));
    g_assert_null(strstr(world->trace->str, "disks_remove"));
}

/* A growth died when the record and the replica had the new size: these may not. */
static void test_half_grown(void)
{
    put_web_on_node3("in-sync", false);
    ops_set(world, "instance", WEB, "task_state", json_string("growing-disk"));
    ops_set(world, "instance", WEB, "task_owner", json_integer(7));
    g_assert_cmpstr(failover(), ==, "null");
    g_assert_null(strstr(world->trace->str, "in-sync"));
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "the old images become no replica (a disk of it was growing)"));
}

static void lost_at_the_end(struct ops_world *changed, guint number)
{
    if (number == 2)
        ops_set(changed, "replica", REPLICA, "state", json_string("stale"));
}

static void test_lost_in_the_stop_goes_back(void)
{
    put_web_on_node3("in-sync", true);
    world->on_commit = lost_at_the_end;
    g_assert_nonnull(strstr(failover(), "\"unsafe\", true"));
    /* It runs again where its whole disks are. */
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE3);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE3);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpstr(world->guest_node, ==, NODE3);
}

static void test_stop_unanswered(void)
{
    put_web_on_node3("in-sync", true);
    ops_fail(world, NODE3, "guest_stop", FETTLE_ERROR_TIMEOUT, "no answer", 99);
    g_assert_nonnull(strstr(failover(), "\"timeout\", true"));
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE3);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE3);
    g_assert_null(strstr(world->trace->str, "guest_start"));
}

static void test_promotion_fails(void)
{
    put_web_on_node3("in-sync", true);
    ops_node_offline(world, NODE3);
    ops_fail(world, NODE2, "replica_close", FETTLE_ERROR_STORAGE, "sync failed", 1);
    g_assert_nonnull(strstr(failover(), "node2: sync failed"));
    /* Nothing was started; the watcher's startup promotes again. */
    g_assert_null(strstr(world->trace->str, "guest_start"));
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE2);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpint(ops_web(world)->admin_state, ==, ADMIN_UP);
}

static void test_used_up(void)
{
    put_web_on_node3("in-sync", true);
    ops_node_offline(world, NODE3);
    ops_fail(world, NODE2, "guest_start", FETTLE_ERROR_REFUSED, "was already used here", 1);
    g_assert_cmpstr(failover(), ==, "null");
    g_assert_cmpuint(ops_web(world)->generation, ==, 4);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE2);
    g_assert_cmpstr(world->guest_node, ==, NODE2);
}

/* --- diskless --- */

static void put_diskless(void)
{
    put_web_on_node3("in-sync", true);
    json_t *web = config_object_json(world->config, "instance", WEB);
    json_object_set_new(web, "disk_template", json_string("diskless"));
    json_object_set_new(web, "disks", json_array());
    json_object_set_new(web, "secondary_node", json_string(""));
    json_object_set_new(web, "replica", json_string(""));
    ops_put(world, "instance", WEB, web);
}

static void test_diskless(void)
{
    put_diskless();
    world->memory[0] = 2000;
    ops_node_offline(world, NODE3);
    g_assert_cmpstr(failover(), ==, "null");
    ops_expect(world, "commit instance web1 g2 up @- node2 failing-over\n"
                      "commit instance web1 g3 up @node2 node2 failing-over\n"
                      "node2 guest_start g3\n"
                      "commit instance web1 g3 up @node2 node2\n"
                      "commit job success\n");
}

static void test_diskless_no_room(void)
{
    put_diskless();
    ops_node_offline(world, NODE3);
    world->memory[0] = world->memory[1] = 10;
    g_assert_cmpstr(failover(), ==,
                    "[\"OpPrereqError\", [\"no node can be the new node of instance \\\"web1\\\": "
                    "node1 has 10 MiB of memory left, 512 MiB are needed; node2 has 10 MiB of "
                    "memory left, 512 MiB are needed; node3 is its node now\", "
                    "\"insufficient_resources\"]]");
}

/* --- booted from a kernel of its own --- */

static void need_kernel(const char *missing, const char *on)
{
    ops_set(world, "instance", WEB, "kernel_path", json_string("vmlinuz"));
    ops_set(world, "instance", WEB, "initrd_path", json_string("initrd"));
    world->image_bytes = 1;
    world->no_image = missing;
    world->no_image_on = on;
}

/* A guest that runs is not stopped for a node on which it could not be started. */
static void test_kernel(void)
{
    put_web_on_node3("in-sync", true);
    need_kernel("initrd", NODE2);
    ops_expect_refusal(world, failover(),
                       "initrd_path: file \"initrd\" does not exist on node \"node2\"; put it into "
                       "var/images there",
                       "unknown_entity");
    world->no_image = "vmlinuz";
    ops_expect_refusal(world, failover(),
                       "kernel_path: kernel \"vmlinuz\" does not exist on node \"node2\"; put it "
                       "into var/images there",
                       "unknown_entity");
    g_assert_cmpstr(world->guest_node, ==, NODE3);
    ops_set(world, "instance", WEB, "holder", json_string(""));
    ops_set(world, "instance", WEB, "admin_state", json_string("down"));
    g_assert_cmpstr(failover(), ==, "null"); /* it is not started */
}

/* A node that lacks it is none that is chosen. */
static void test_diskless_kernel(void)
{
    put_diskless();
    need_kernel("vmlinuz", NODE2); /* which has the most memory */
    world->memory[0] = 2000;
    g_assert_cmpstr(failover(), ==, "null");
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE1);
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "holder", json_string(NODE3));
    world->no_image_on = NULL;
    const char *result = failover();
    g_assert_nonnull(strstr(result, "no node can be the new node of instance \\\"web1\\\": node1 "
                                    "does not have what it is booted from (kernel_path: kernel "
                                    "\\\"vmlinuz\\\" does not exist on node \\\"node1\\\""));
    g_assert_nonnull(strstr(result, "\"insufficient_resources\""));
}

static void test_diskless_target(void)
{
    put_diskless();
    ops_node_offline(world, NODE3);
    json_t *same = json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_FAILOVER", "instance_name", "web1",
                             "target_node", "node3");
    g_assert_nonnull(strstr(ops_run_one(world, same), "is on node3 already"));
    json_t *named = json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_FAILOVER", "instance_name",
                              "web1", "target_node", "node1");
    g_assert_cmpstr(ops_run_one(world, named), ==, "null");
    g_assert_cmpstr(ops_web(world)->primary_node, ==, NODE1);
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/failover/primary-dead#SAF-16", test_primary_dead);
    add("/failover/primary-unheard#SAF-09,SAF-16", test_primary_unheard);
    add("/failover/locks#SAF-16", test_locks);
    add("/failover/primary-alive#SAF-11,SAF-16", test_primary_alive_is_stopped_first);
    add("/failover/stopped#SAF-16", test_stopped_stays_stopped);
    add("/failover/refused/stale#SAF-16", test_refused_stale);
    add("/failover/refused/evidence#SAF-16", test_refused_without_evidence);
    add("/failover/refused/no-replica", test_refused_no_replica);
    add("/failover/refused/shared-without-evidence#SAF-16,SAF-21",
        test_refused_shared_without_evidence);
    add("/failover/refused/disks-late#SAF-90", test_refused_disks_late);
    add("/failover/refused/images-gone#SAF-13,SAF-16", test_refused_images_gone);
    add("/failover/refused/image-gone#SAF-13,SAF-16", test_refused_image_gone);
    add("/failover/refused/secondary", test_refused_secondary);
    add("/failover/refused/memory", test_refused_no_memory);
    add("/failover/refused/bridge", test_refused_no_bridge);
    add("/failover/last-moment#SAF-12,SAF-16", test_stale_in_the_last_moment);
    add("/failover/unclean-stop#SAF-13,SAF-16,SAF-24", test_unclean_stop_goes_on);
    add("/failover/unequal-is-copied#SAF-24,SAF-26", test_unequal_is_copied);
    add("/failover/stopped-keeps-its-replica#SAF-26", test_stopped_keeps_its_replica);
    add("/failover/not-left#SAF-25,SAF-26", test_not_left);
    add("/failover/left-then-replaced#SAF-24,SAF-26", test_left_then_replaced);
    add("/failover/half-grown#SAF-26", test_half_grown);
    add("/failover/lost-in-the-stop#SAF-11,SAF-16", test_lost_in_the_stop_goes_back);
    add("/failover/stop-unanswered#SAF-16", test_stop_unanswered);
    add("/failover/promotion-fails#SAF-16", test_promotion_fails);
    add("/failover/used-up#SAF-16,SAF-20", test_used_up);
    add("/failover/diskless", test_diskless);
    add("/failover/locks-planned#FUT-02,FUT-06,FUT-07,FUT-08", test_locks_of_a_planned_one);
    add("/failover/reservation-given-back#FUT-06", test_reservation_of_a_failure);
    add("/failover/diskless/no-room", test_diskless_no_room);
    add("/failover/kernel#SAF-16", test_kernel);
    add("/failover/diskless/kernel", test_diskless_kernel);
    add("/failover/diskless/target", test_diskless_target);
    return g_test_run();
}
