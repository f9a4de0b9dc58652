/* The check of one instance: nothing to say of what is whole, and one sentence for each fault. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static void expect_problems(const char *wanted)
{
    const char *result = ops_run_one(
        world, json_make("{ss ss}", "OP_ID", "OP_INSTANCE_VERIFY", "instance_name", "web1"));
    g_assert_cmpstr(result, ==, wanted);
    ops_expect(world, "commit job success\n"); /* it has changed nothing */
}

static void test_whole(void)
{
    ops_put_web(world, "in-sync", true);
    world->trace_locks = true;
    const char *result = ops_run_one(
        world, json_make("{ss ss}", "OP_ID", "OP_INSTANCE_VERIFY", "instance_name", "web1"));
    g_assert_cmpstr(result, ==, "[]");
    g_assert_true(g_str_has_prefix(
        world->trace->str, "locks instance/web1=shared node/node1=shared node/node2=shared\n"));
    world->trace_locks = false;
    g_string_truncate(world->trace, 0);
    ops_put_web(world, "in-sync", false);
    world->guest_node = NULL;
    expect_problems("[]");
}

/* ARP-70: the file of a replica is gone on an online secondary. */
static void test_replica_missing(void)
{
    ops_put_web(world, "in-sync", true);
    g_ptr_array_add(world->lost, (void *)NODE2);
    expect_problems("[\"node2 does not have the images of its replica\"]");
    g_ptr_array_add(world->lost, (void *)NODE1);
    expect_problems("[\"node1 does not have the images of its disks\", "
                    "\"node2 does not have the images of its replica\"]");
}

static void test_disk_missing(void)
{
    ops_put_web(world, "in-sync", true);
    ops_add_disk(world);
    expect_problems("[]");
    world->lost_disk = NODE2;
    expect_problems("[\"node2 does not have the image of disk 1 of its replica\"]");
    world->lost_disk = NODE1;
    expect_problems("[\"node1 does not have the image of disk 1\"]");
}

static void test_replica_broken(void)
{
    ops_put_web(world, "in-sync", true);
    world->guest_mirror = "lost";
    expect_problems("[\"its replica is on record as in-sync, but its mirror is lost\"]");
    world->guest_mirror = "none";
    expect_problems("[\"its replica is on record as in-sync, but its mirror is not attached\"]");
    world->guest_mirror = "ready";
    world->export_dead = true;
    expect_problems("[\"its replica on node2 is not exported\"]");
    ops_put_web(world, "stale", true);
    ops_set(world, "replica", REPLICA, "why", json_string("node2 was away"));
    expect_problems("[\"its replica on node2 is stale: node2 was away\"]");
    ops_put_web(world, NULL, true);
    expect_problems("[\"it has no replica\"]");
}

static void test_guest(void)
{
    ops_put_web(world, "in-sync", true);
    world->guest_state = "paused";
    expect_problems("[\"it should run on node1 and is paused\"]");
    world->guest_state = "running";
    world->io_stop = "no-space";
    expect_problems(
        "[\"it stands still, because there is no room for its disks on node1; it goes on "
        "by itself when there is\"]");
    world->io_stop = "failed";
    world->io_errors = 2;
    expect_problems("[\"it stands still, because its disk on node1 fails though there is room\", "
                    "\"2 requests of its disks on node1 have failed since it was started, the last "
                    "of disk 0\"]");
    world->io_stop = NULL;
    world->io_errors = 0;
    world->guest_held = "var: Read-only file system";
    expect_problems(
        "[\"its writes are held: its replica is lost, and node1 cannot note that (var: Read-only "
        "file system), nor is another candidate known to have it on record; mend what the state "
        "of node1 is written to, or bring another candidate back, and it goes on by itself\"]");
    world->guest_held = NULL;
    world->guest_generation = 7;
    expect_problems("[\"generation 7 of it is on node1, but 1 is on record\"]");
    world->guest_node = NULL;
    expect_problems("[\"it should run on node1 and does not\"]");
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "admin_state", json_string("down"));
    expect_problems("[\"it should be stopped and runs on node1\"]");
    world->guest_node = NODE3;
    expect_problems("[\"generation 1 of it is running on node3, which is not its node\"]");
}

static void test_nodes(void)
{
    ops_put_web(world, "in-sync", true);
    world->disk[1] = 0; /* which may only be unknown */
    expect_problems("[]");
    world->trial[1] = "cannot write to its disks: Input/output error";
    expect_problems("[\"node2, its secondary node, cannot write to its disks: Input/output "
                    "error\"]");
    world->trial[1] = NULL;
    world->disk[1] = 1000;
    fake_cut(world->world, NODE2, true);
    expect_problems("[\"node2, its secondary node, does not answer\"]");
    ops_node_offline(world, NODE2);
    expect_problems("[\"node2, its secondary node, is offline\"]");
}

static void test_bridges(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "nics",
            json_make("[{ss ss ss}]", "uuid", WEB, "mac", "0a:00:00:00:00:0f", "link", "br0"));
    expect_problems("[]");
    world->bridges[1] = "br9";
    expect_problems("[\"node2 has no bridge \\\"br0\\\" for its network card\"]");
}

static void test_marks(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "task_state", json_string("growing-disk"));
    ops_set(world, "instance", WEB, "task_owner", json_integer(9));
    ops_set(world, "instance", WEB, "migration", json_string(REPLICA));
    ops_set(world, "instance", WEB, "migration_node", json_string(NODE2));
    expect_problems("[\"job 9 has left the mark growing-disk on it\", "
                    "\"its migration to node2 has not been settled\"]");
}

static void test_strays(void)
{
    ops_put_web(world, "in-sync", true);
    g_ptr_array_add(world->strays, g_strdup(NODE3 " " WEB));
    expect_problems("[\"node3 has images of it that the record does not know\"]");
}

/* Nobody reports images in the shared folder, and a diskless instance has none. */
static void test_templates(void)
{
    ops_put_web(world, NULL, true);
    g_ptr_array_add(world->lost, (void *)NODE1);
    ops_set(world, "instance", WEB, "disk_template", json_string("sharedfile"));
    expect_problems("[]");
    ops_set(world, "instance", WEB, "disk_template", json_string("file"));
    expect_problems("[\"node1 does not have the images of its disks\"]");
    ops_set(world, "instance", WEB, "disk_template", json_string("diskless"));
    ops_set(world, "instance", WEB, "disks", json_array());
    world->trial[0] = "cannot write to its disks: Input/output error";
    expect_problems("[]");
}

static void test_shared_folder(void)
{
    ops_put_web(world, NULL, true);
    ops_set(world, "instance", WEB, "disk_template", json_string("sharedfile"));
    world->shared[1] = "";
    world->shared[2] = REPLICA;
    expect_problems("[\"node2 does not mount the shared folder\", "
                    "\"node3 mounts another shared folder\"]");
    world->shared[0] = world->shared[2] = "";
    expect_problems("[\"no node mounts the shared folder with its disks\"]");
    ops_set(world, "instance", WEB, "disk_template", json_string("file"));
    expect_problems("[]");
}

static void test_refused(void)
{
    const char *result = ops_run_one(
        world, json_make("{ss ss}", "OP_ID", "OP_INSTANCE_VERIFY", "instance_name", "web1"));
    g_assert_cmpstr(result, ==,
                    "[\"OpPrereqError\", [\"instance \\\"web1\\\" does not exist\", "
                    "\"unknown_entity\"]]");
}

/* SAF-90: what is told from memory is no fault that was found; that it is memory is. */
static void test_late(void)
{
    ops_put_web(world, "in-sync", true);
    g_ptr_array_add(world->lost, (void *)NODE2);
    world->late = NODE2;
    world->late_part = "disks";
    expect_problems("[\"the disks of node2: no answer, last heard 2 min ago\"]");
    g_ptr_array_set_size(world->lost, 0);
    world->late = NODE1;
    world->late_part = "bridges";
    world->guest_mirror = "lost";
    expect_problems("[\"its guest on node1 does not answer, last heard 12 s ago\"]");
    world->guest_state = "shutdown";
    expect_problems("[\"its guest on node1 does not answer, last heard 12 s ago\"]");
}

static void prepare(void)
{
    world->guest_mirror = "ready";
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, prepare);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/verify/whole", test_whole);
    add("/verify/replica/missing#ARP-70", test_replica_missing);
    add("/verify/disk-missing#ARP-70", test_disk_missing);
    add("/verify/replica/broken", test_replica_broken);
    add("/verify/guest", test_guest);
    add("/verify/nodes", test_nodes);
    add("/verify/bridges", test_bridges);
    add("/verify/marks", test_marks);
    add("/verify/strays", test_strays);
    add("/verify/templates", test_templates);
    add("/verify/shared-folder", test_shared_folder);
    add("/verify/late#SAF-90", test_late);
    add("/verify/refused", test_refused);
    return g_test_run();
}
