/* Where new disks go: nodes that have what is copied and booted, the room of the shared folder, and
 * no second guest of a name. */
#include "unit/core/world/ops_case.h"

#include "core/config/allocated.h"

#include <string.h>

static struct ops_world *world;

/* 1500 MiB in two disks; its nodes are chosen. */
static json_t *create_op(const char *disk_template)
{
    return json_make("{ss ss ss s[{si} {si}] si}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name",
                     "web1", "disk_template", disk_template, "disks", "size", 1000, "size", 500,
                     "memory", 512);
}

/* A node that has what is copied and booted is chosen before one with more room. */
static void test_chosen_with_files(void)
{
    world->image_bytes = 1;
    world->sources[0] = "vmlinuz";
    world->sources[1] = "initrd vmlinuz";
    world->sources[2] = "debian.raw initrd vmlinuz";
    json_t *op = create_op("mirror");
    json_object_set_new(op, "os_type", json_string("debian"));
    json_object_set_new(op, "kernel_path", json_string("vmlinuz"));
    json_object_set_new(op, "initrd_path", json_string("initrd"));
    json_t *second = json_deep_copy(op);
    g_assert_cmpstr(ops_run_one(world, op), ==, "[\"node3\", \"node2\"]");
    json_object_set_new(second, "instance_name", json_string("web2"));
    world->sources[1] = "vmlinuz";
    const char *result = ops_run_one(world, second);
    g_assert_nonnull(strstr(result,
                            "node1 does not have \\\"initrd\\\" in var/images; node2 does not "
                            "have \\\"initrd\\\" in var/images; node3 is to be the primary"));
}

/* Not the one node that would have been chosen is named, but what there is. */
static void test_files_of_nobody(void)
{
    world->sources[0] = "vmlinuz";
    world->sources[1] = "tick vmlinuz";
    world->sources[2] = "debian.raw vmlinuz";
    json_t *op = create_op("mirror");
    json_object_set_new(op, "os_type", json_string("tik"));
    json_t *second = json_deep_copy(op), *third = json_deep_copy(op);
    ops_expect_refusal(world, ops_run_one(world, op),
                       "os_type: no node has an image \"tik\" in var/images; there are: "
                       "debian.raw, tick, vmlinuz; put it there, on each node that may need it",
                       "unknown_entity");
    json_object_set_new(second, "os_type", json_string("debian"));
    json_object_set_new(second, "kernel_path", json_string("vmlinux"));
    ops_expect_refusal(world, ops_run_one(world, second),
                       "kernel_path: no node has a kernel \"vmlinux\" in var/images; there are: "
                       "debian.raw, tick, vmlinuz; put it there, on each node that may need it",
                       "unknown_entity");
    /* Who is asked for is told of. */
    json_object_set_new(third, "pnode", json_string("node2"));
    ops_expect_refusal(world, ops_run_one(world, third),
                       "os_type: image \"tik\" does not exist on node \"node2\"; put it into "
                       "var/images there",
                       "unknown_entity");
}

/* The folder that all nodes mount is as full as it is promised to be, whatever lies in it, and
 * beyond that by policy only. */
static void test_create_sharedfile_room(void)
{
    json_t *op = create_op("sharedfile"), *second = json_deep_copy(op), *third;
    json_object_set_new(second, "instance_name", json_string("web2"));
    third = json_deep_copy(second);
    world->shared_mib = 2999; /* each instance is to have 1500 */
    world->trace_locks = true;
    g_assert_true(g_str_has_prefix(ops_run_one(world, op), "[\"node"));
    g_assert_nonnull(strstr(world->trace->str, "node-res/" SHARED_FOLDER_ROOM "=exclusive"));
    /* Nobody else looks for room there before it is on record. */
    const char *made = strstr(world->trace->str, "commit instance web1 g0");
    const char *freed = strstr(world->trace->str, "rooms are free");
    g_assert_true(made && freed && made < freed);
    world->trace_locks = false;
    g_string_truncate(world->trace, 0);
    ops_expect_refusal(
        world, ops_run_one(world, second),
        "the shared folder has 1499 MiB left, instance \"web2\" needs 1500 MiB; make "
        "it larger, or allow more than it has: fettle cluster modify --disk-ratio",
        "insufficient_resources");
    ops_set(world, "cluster", CLUSTER, "disk_ratio", json_real(2));
    g_assert_true(g_str_has_prefix(ops_run_one(world, third), "[\"node"));
    g_string_truncate(world->trace, 0);
    json_t *grow = json_make("{ss ss si si}", "OP_ID", "OP_INSTANCE_GROW_DISK", "instance_name",
                             "web2", "disk", 0, "amount", 2999);
    ops_expect_refusal(
        world, ops_run_one(world, grow),
        "the shared folder has 2998 MiB left, disk 0 of instance \"web2\" needs 2999 "
        "MiB; make it larger, or allow more than it has: fettle cluster modify "
        "--disk-ratio",
        "insufficient_resources");
}

/* After a restore, say: two of one name on a host would be told apart by nobody. */
static void test_refused_stray(void)
{
    world->guest_node = NODE2;
    world->guest_instance = g_strdup(REPLICA);
    world->guest_generation = 1;
    world->guest_state = "running";
    world->guest_name = "web1";
    ops_expect_refusal(world, ops_run_one(world, create_op("mirror")),
                       "a guest \"web1\" runs on node2 that is not on record (" REPLICA
                       "): what can be done about it says: fettle cluster verify",
                       "already_exists");
    world->guest_name = "web2";
    g_assert_true(g_str_has_prefix(ops_run_one(world, create_op("mirror")), "[\"node"));
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/place/files", test_chosen_with_files);
    add("/place/files-of-nobody", test_files_of_nobody);
    add("/place/shared-folder", test_create_sharedfile_room);
    add("/place/name-of-a-guest-that-no-record-has", test_refused_stray);
    return g_test_run();
}
