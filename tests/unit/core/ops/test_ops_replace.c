/* Replace disks: redundancy goes on record as lost before it is, and comes back by a full copy. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *replace(const char *mode, const char *node)
{
    return ops_run_one(world,
                       json_make("{ss ss ss ss}", "OP_ID", "OP_INSTANCE_REPLACE_DISKS",
                                 "instance_name", "web1", "mode", mode, "remote_node", node));
}

static const struct replica *replica(void)
{
    return config_get(world->config, "replica", ops_web(world)->replica, NULL);
}

static void test_running_to_another_node(void)
{
    ops_put_web(world, "in-sync", true);
    world->mirror_steps = 2;
    g_assert_cmpstr(replace("replace_new_secondary", ""), ==, "null");
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
               "commit instance web1 g1 up @node1 node1/node3\n"
               "commit job success\n");
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "copying web1 to node3\n"
                    "copy to node3: 1000 of 1000 MiB\n");
}

static void test_secondary_dead(void)
{
    ops_put_web(world, "stale", true);
    ops_node_offline(world, NODE2);
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    ops_expect(world,
               "commit instance web1 g1 up @node1 node1/node2 replacing-disks; replica node2 g1 s4 "
               "stale\n"
               "node1 mirror_detach g1\n"
               "commit delete replica; replica node3 g1 s1 syncing; instance web1 g1 up @node1 "
               "node1/node3 replacing-disks\n"
               "node3 disks_create replica\n"
               "node3 replica_open g1\n"
               "node1 mirror_attach g1 mirror\n"
               "commit instance web1 g1 up @node1 node1/node3\n"
               "commit job success\n");
}

static void test_none_before(void)
{
    ops_put_web(world, NULL, true);
    world->disk[2] = 90000;
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE3);
    g_assert_null(strstr(world->trace->str, "mirror_detach"));
}

static void test_same_node(void)
{
    ops_put_web(world, "stale", true);
    world->disk[1] = 1000; /* full of the old one, which goes first */
    g_ptr_array_add(world->lost, (void *)NODE2);
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE2);
    g_assert_cmpstr(ops_web(world)->replica, !=, REPLICA);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

/* On record as in-sync, and one of its two images is gone: that is no replica, and nothing of it is
 * taken over. */
static void test_image_gone(void)
{
    ops_put_web(world, "in-sync", true);
    ops_add_disk(world);
    world->lost_disk = NODE2;
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE2);
    g_assert_cmpstr(ops_web(world)->replica, !=, REPLICA);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_null(strstr(world->trace->str, "since"));
}

/* The secondary was away for a while and is back with its images. */
static void test_attached_again(void)
{
    ops_put_web(world, "stale", true);
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    ops_expect(world,
               "commit instance web1 g1 up @node1 node1/node2 replacing-disks; replica node2 g1 s4 "
               "stale\n"
               "node1 mirror_detach g1\n"
               "commit instance web1 g1 up @node1 node1/node2 replacing-disks; replica node2 g1 s5 "
               "syncing\n"
               "node2 replica_open g1\n"
               "node1 mirror_attach g1 mirror since\n"
               "commit instance web1 g1 up @node1 node1/node2\n"
               "commit job success\n");
    g_assert_cmpstr(ops_web(world)->replica, ==, REPLICA);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "bringing the replica of web1 on node2 up to date\n");
}

static void test_old_images_of_no_use(void)
{
    ops_put_web(world, "stale", true);
    ops_fail(world, NODE2, "replica_open", FETTLE_ERROR_STORAGE, "disk 0 is broken", 1);
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    ops_expect(world,
               "commit instance web1 g1 up @node1 node1/node2 replacing-disks; replica node2 g1 s4 "
               "stale\n"
               "node1 mirror_detach g1\n"
               "commit instance web1 g1 up @node1 node1/node2 replacing-disks; replica node2 g1 s5 "
               "syncing\n"
               "node2 replica_open g1\n"
               "commit instance web1 g1 up @node1 node1/node2 replacing-disks; replica node2 g1 s6 "
               "stale\n"
               "node1 mirror_detach g1\n"
               "node2 disks_remove g1 replica\n"
               "commit delete replica; replica node2 g1 s1 syncing; instance web1 g1 up @node1 "
               "node1/node2 replacing-disks\n"
               "node2 disks_create replica\n"
               "node2 replica_open g1\n"
               "node1 mirror_attach g1 mirror\n"
               "commit instance web1 g1 up @node1 node1/node2\n"
               "commit job success\n");
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

static void test_named_mode_copies_all(void)
{
    ops_put_web(world, "stale", true);
    g_assert_cmpstr(replace("replace_on_secondary", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE2);
    g_assert_cmpstr(ops_web(world)->replica, !=, REPLICA);
    g_assert_null(strstr(world->trace->str, "since"));
}

static void test_drained_secondary_is_left(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "node", NODE2, "drained", json_true());
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE3);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

/* A full node may not be able to bring it up to date; it is taken if there is no other. */
static void test_full_secondary_is_left(void)
{
    ops_put_web(world, "stale", true);
    world->full[1] = true;
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE3);
    ops_put_web(world, "stale", true);
    world->disk[2] = 1;
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE2);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

static void test_whole_is_left_alone(void)
{
    ops_put_web(world, "in-sync", true);
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    ops_expect(world, "commit job success\n");
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "the replica of web1 is in sync; nothing to do\n");
}

static void test_stopped(void)
{
    ops_put_web(world, "stale", false);
    g_assert_cmpstr(replace("replace_new_secondary", ""), ==, "null");
    ops_expect(world,
               "commit instance web1 g1 down @- node1/node2 replacing-disks; replica node2 g1 s4 "
               "stale\n"
               "node2 disks_remove g1 replica\n"
               "commit delete replica; replica node3 g1 s1 syncing; instance web1 g1 down @- "
               "node1/node3 replacing-disks\n"
               "node3 disks_create replica\n"
               "commit instance web1 g2 down @node1 node1/node3 replacing-disks; replica node3 g2 "
               "s2 syncing\n"
               "node3 replica_open g2\n"
               "node1 guest_start g2 mirror paused\n"
               "commit instance web1 g2 down @node1 node1/node3 replacing-disks\n"
               "node1 guest_stop g2\n"
               "node3 replica_close g3\n"
               "commit instance web1 g3 down @- node1/node3 clean replacing-disks; replica node3 "
               "g3 s4 in-sync\n"
               "commit instance web1 g3 down @- node1/node3 clean\n"
               "commit job success\n");
}

static void test_crashed_is_started(void)
{
    ops_put_web(world, "stale", true);
    world->guest_node = NULL;
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_nonnull(strstr(world->trace->str, "node1 guest_start g2 mirror\n"));
    g_assert_cmpstr(world->guest_state, ==, "running");
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

static void test_left_paused(void)
{
    /* A copy of a stopped instance whose job died: the guest is still there, paused. */
    ops_put_web(world, "syncing", true);
    ops_set(world, "instance", WEB, "admin_state", json_string("down"));
    world->guest_state = "paused";
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->holder, ==, "");
    g_assert_true(ops_web(world)->clean);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_null(world->guest_node);
}

/* --- refused --- */

static void test_refused(void)
{
    ops_put_web(world, "stale", true);
    ops_expect_refusal(
        world, replace("replace_auto", "node1"),
        "node \"node1\" cannot take the replica of instance \"web1\": it is its primary "
        "node",
        "wrong_input");
    ops_expect_refusal(world, replace("replace_auto", "node9"), "node \"node9\" does not exist",
                       "unknown_entity");
    world->disk[2] = 10;
    ops_expect_refusal(
        world, replace("replace_auto", "node3"),
        "node \"node3\" cannot take the replica of instance \"web1\": it has 10 MiB of "
        "disk left, 1000 MiB are needed; make room there, or take another node: fettle node list",
        "insufficient_resources");
    ops_expect_refusal(
        world, replace("replace_new_secondary", ""),
        "no node can be the secondary node of instance \"web1\": node1 is its primary "
        "node; node2 is its secondary node now; node3 has 10 MiB of disk left, 1000 MiB "
        "are needed",
        "insufficient_resources");
    ops_node_offline(world, NODE2);
    ops_expect_refusal(world, replace("replace_on_secondary", ""),
                       "node \"node2\" cannot take the replica of instance \"web1\": it is offline",
                       "wrong_state");
    ops_expect_refusal(
        world, replace("replace_auto", ""),
        "no node can be the secondary node of instance \"web1\": node1 is its primary "
        "node; node2 is its secondary node now; node3 has 10 MiB of disk left, 1000 MiB "
        "are needed",
        "insufficient_resources");
}

/* It would be a copy of a guest that cannot run there; one that is there already stays. */
/* Nothing is touched: the old replica may be all that there is. */
static void assert_kept(const char *said)
{
    g_autofree char *result = g_strdup(replace("replace_new_secondary", ""));
    g_assert_cmpstr(result, ==, said);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_cmpstr(replica()->node, ==, NODE2);
    g_assert_null(strstr(world->trace->str, "disks_remove"));
    g_assert_null(strstr(world->trace->str, "mirror_detach"));
}

static void test_refused_unsound(void)
{
    ops_put_web(world, "in-sync", false);
    ops_set(world, "instance", WEB, "clean", json_false());
    ops_set(world, "instance", WEB, "sound", json_string("no"));
    assert_kept(
        "[\"OpExecError\", [\"node1 says that the images that it ran from are not sound, and "
        "the replica of instance \\\"web1\\\" on node2 has every acknowledged write: fettle "
        "instance failover web1; or, if the images on node1 are to be gone on with all the "
        "same: fettle instance startup web1 --from-primary --statement ...\", \"unsafe\", "
        "true]]");
    ops_set(world, "instance", WEB, "sound", json_string("yes"));
    g_assert_cmpstr(replace("replace_new_secondary", ""), ==, "null");
}

static void test_refused_failed_disk(void)
{
    ops_put_web(world, "in-sync", true);
    world->io_errors = 1;
    assert_kept(
        "[\"OpPrereqError\", [\"requests of instance \\\"web1\\\" to its own disk 0 on node1 "
        "have failed, and its replica on node2 has every acknowledged write; go on from "
        "that: fettle instance failover web1\", \"unsafe\"]]");
    /* Nobody runs it, and its node says so. */
    ops_put_web(world, "in-sync", false);
    world->io_errors = 0;
    world->trial[0] = "cannot write to its disks: Input/output error";
    assert_kept(
        "[\"OpPrereqError\", [\"node1, the primary node of instance \\\"web1\\\", cannot write "
        "to its disks: Input/output error, and its replica on node2 has every acknowledged "
        "write; go on from that: fettle instance failover web1\", \"unsafe\"]]");
}

static void test_refused_bridge(void)
{
    ops_put_web(world, "stale", true);
    ops_set(world, "instance", WEB, "nics",
            json_make("[{ss ss ss ss}]", "uuid", "00000000-0000-4000-8000-0000000000e9", "mac",
                      "aa:00:00:12:34:56", "mode", "bridged", "link", "br0"));
    world->bridges[1] = world->bridges[2] = "br7";
    ops_expect_refusal(world, replace("replace_auto", "node3"),
                       "node \"node3\" cannot take the replica of instance \"web1\": it has no "
                       "bridge \"br0\"; make that bridge there, give the card another link, or "
                       "take a node that has it",
                       "environment");
    ops_expect_refusal(world, replace("replace_new_secondary", ""),
                       "no node can be the secondary node of instance \"web1\": node1 is its "
                       "primary node; node2 is its secondary node now; node3 has no bridge "
                       "\"br0\"",
                       "insufficient_resources");
    g_assert_cmpstr(replace("replace_auto", "node2"), ==, "null");
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
}

static void test_refused_template(void)
{
    ops_put_web(world, NULL, true);
    ops_expect_refusal(world, replace("replace_on_secondary", ""),
                       "instance \"web1\" has no secondary node; name another", "wrong_state");
    ops_set(world, "instance", WEB, "disk_template", json_string("diskless"));
    ops_expect_refusal(world, replace("replace_auto", ""),
                       "instance \"web1\" is diskless: it has no replica", "wrong_state");
}

static void test_refused_primary(void)
{
    ops_put_web(world, "stale", true);
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "holder", json_string(NODE3));
    ops_node_offline(world, NODE3);
    ops_expect_refusal(world, replace("replace_auto", ""),
                       "node3, the primary node of instance \"web1\", is offline", "wrong_state");
}

/* --- failures --- */

static void assert_without_redundancy(void)
{
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE1);
    g_assert_cmpstr(world->guest_state, ==, "running");
}

static void test_copy_lost(void)
{
    ops_put_web(world, "in-sync", true);
    world->mirror = "lost";
    g_assert_cmpstr(replace("replace_new_secondary", ""), ==,
                    "[\"OpExecError\", [\"the replica of instance \\\"web1\\\" was lost during the "
                    "copy; the replica is on record as stale, and trying again is safe\", "
                    "\"resource_not_available\", false]]");
    assert_without_redundancy();
}

static void test_copy_stands_still(void)
{
    ops_put_web(world, "in-sync", true);
    world->mirror_steps = 100000000; /* never further than at first */
    const char *result = replace("replace_new_secondary", "");
    g_assert_nonnull(strstr(result, "\"timeout\", false"));
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
}

static void test_images_cannot_be_made(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE3, "disks_create", FETTLE_ERROR_STORAGE, "disk full", 1);
    g_assert_nonnull(strstr(replace("replace_new_secondary", ""), "node3: disk full"));
    assert_without_redundancy();
}

static void test_detach_fails(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE1, "mirror_detach", FETTLE_ERROR_HYPERVISOR, "monitor frozen", 1);
    g_assert_nonnull(strstr(replace("replace_new_secondary", ""), "node1: monitor frozen"));
    /* The old replica may still be written to, so it is not removed; but it is stale. */
    g_assert_null(strstr(world->trace->str, "disks_remove"));
    assert_without_redundancy();
    g_assert_cmpstr(ops_web(world)->replica, ==, REPLICA);
}

static void test_stopped_copy_lost(void)
{
    ops_put_web(world, "stale", false);
    world->mirror = "lost";
    g_assert_nonnull(strstr(replace("replace_new_secondary", ""), "was lost during the copy"));
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_assert_cmpstr(ops_web(world)->holder, ==, ""); /* nothing is left paused */
    g_assert_null(world->guest_node);
}

/* A repair may try again after each of these, and what it then does is whole. */
static void test_tried_again(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE3, "replica_open", FETTLE_ERROR_UNREACHABLE, "cut", 1000);
    const char *result = replace("replace_new_secondary", "");
    g_assert_cmpstr(result, ==, "[\"OpExecError\", [\"node3: cut\", \"unreachable\", false]]");
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_REPLACING_DISKS); /* the watcher looks */
    g_ptr_array_set_size(world->faults, 0);
    g_assert_cmpstr(replace("replace_auto", ""), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE3);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_cmpint(ops_web(world)->task_state, ==, TASK_NONE);
}

static void fail_the_third(struct ops_world *broken, guint number)
{
    if (number == 3)
        ops_fail(broken, "wconfd", "commit", FETTLE_ERROR_STORAGE, "store is full", 1);
}

static void test_record_fails(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE3, "disks_create", FETTLE_ERROR_STORAGE, "disk full", 1);
    world->on_commit = fail_the_third;
    /* The record says that it is being copied, which is not true: no state to try again from. */
    g_assert_cmpstr(replace("replace_new_secondary", ""), ==,
                    "[\"OpExecError\", [\"node3: disk full\", \"storage_error\", true]]");
    g_assert_cmpint(replica()->state, ==, REPLICA_SYNCING);
}

/* Where it could not be booted no replica is put: not by choice, and not if such a node is named.
 */
static void test_kernel(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "kernel_path", json_string("vmlinuz"));
    world->sources[2] = "other";
    const char *result = replace("replace_new_secondary", "");
    g_assert_nonnull(strstr(result, "node3 does not have \\\"vmlinuz\\\" in var/images"));
    g_assert_nonnull(strstr(result, "\"insufficient_resources\""));
    g_string_truncate(world->trace, 0);
    ops_expect_refusal(world, replace("replace_new_secondary", "node3"),
                       "kernel_path: kernel \"vmlinuz\" does not exist on node \"node3\"; put it "
                       "into var/images there",
                       "unknown_entity");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE2);
    world->sources[2] = "vmlinuz";
    world->image_bytes = 1;
    g_assert_cmpstr(replace("replace_new_secondary", "node3"), ==, "null");
    g_assert_cmpstr(ops_web(world)->secondary_node, ==, NODE3);
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/replace/running#SAF-18", test_running_to_another_node);
    add("/replace/secondary-dead#SAF-18", test_secondary_dead);
    add("/replace/none-before#SAF-18", test_none_before);
    add("/replace/same-node#SAF-18", test_same_node);
    add("/replace/image-gone#SAF-18,ARP-70", test_image_gone);
    add("/replace/attached-again#SAF-18", test_attached_again);
    add("/replace/attached-again/of-no-use#SAF-18", test_old_images_of_no_use);
    add("/replace/named-mode#SAF-18", test_named_mode_copies_all);
    add("/replace/drained#SAF-18", test_drained_secondary_is_left);
    add("/replace/full#SAF-18", test_full_secondary_is_left);
    add("/replace/failed/again#ARP-54", test_tried_again);
    add("/replace/failed/record#ARP-54", test_record_fails);
    add("/replace/whole", test_whole_is_left_alone);
    add("/replace/stopped#SAF-11,SAF-18", test_stopped);
    add("/replace/crashed#SAF-18", test_crashed_is_started);
    add("/replace/left-paused#SAF-20", test_left_paused);
    add("/replace/refused#ARP-57", test_refused);
    add("/replace/refused/unsound#SAF-24", test_refused_unsound);
    add("/replace/refused/failed-disk#SAF-24", test_refused_failed_disk);
    add("/replace/refused/bridge", test_refused_bridge);
    add("/replace/refused/kernel", test_kernel);
    add("/replace/refused/template", test_refused_template);
    add("/replace/refused/primary", test_refused_primary);
    add("/replace/failed/lost#SAF-18", test_copy_lost);
    add("/replace/failed/stall#SAF-18", test_copy_stands_still);
    add("/replace/failed/images#SAF-18", test_images_cannot_be_made);
    add("/replace/failed/detach#SAF-18", test_detach_fails);
    add("/replace/failed/stopped#SAF-18", test_stopped_copy_lost);
    return g_test_run();
}
