/* Disks that come to a stopped instance, or go: what is on record before what, exact refusals, and
 * jobs that are cut off. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *modify(json_t *params)
{
    g_string_truncate(world->trace, 0);
    json_object_update_new(
        params, json_make("{ss ss}", "OP_ID", "OP_INSTANCE_SET_PARAMS", "instance_name", "web1"));
    return ops_run_one(world, params);
}

static const char *add(int size)
{
    return modify(json_make("{s[{si}]}", "add_disks", "size", size));
}

static const char *cut(const char *disk)
{
    return modify(json_make("{s[s]}", "remove_disks", disk));
}

static const struct replica *replica(void)
{
    return config_get(world->config, "replica", ops_web(world)->replica, NULL);
}

static guint64 size(guint disk)
{
    g_assert_cmpuint(ops_web(world)->disks->len, >, disk);
    return ((const struct disk *)ops_web(world)->disks->pdata[disk])->size;
}

static void put_file(void)
{
    ops_put_web(world, NULL, false);
    ops_set(world, "instance", WEB, "disk_template", json_string("file"));
}

/* --- adding --- */

/* Both images are blank and on stable storage before the record has the disk, so that the replica
 * that is promised in sync has all of it. */
static void test_add_mirror(void)
{
    ops_put_web(world, "in-sync", false);
    g_assert_cmpstr(add(500), ==, "null");
    ops_expect(world, "commit instance web1 g2 down @- node1/node2 clean; replica node2 g2 s4 "
                      "in-sync\n"
                      "node2 disks_renew g2 1 of 2 replica\n"
                      "node1 disks_renew g2 1 of 2\n"
                      "commit instance web1 g2 down @- node1/node2 clean\n"
                      "commit job success\n");
    g_assert_cmpuint(ops_web(world)->disks->len, ==, 2);
    g_assert_cmpuint(size(1), ==, 500);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "disk 1 of web1 has 500 MiB, all zeros\n");
}

/* What the record says of a replica that is not in sync stays as it is: the next start copies all
 * disks. */
static void test_add_stale(void)
{
    ops_put_web(world, "stale", false);
    g_assert_cmpstr(add(500), ==, "null");
    ops_expect(world, "commit instance web1 g2 down @- node1/node2\n"
                      "node2 disks_renew g2 1 of 2 replica\n"
                      "node1 disks_renew g2 1 of 2\n"
                      "commit instance web1 g2 down @- node1/node2\n"
                      "commit job success\n");
    g_assert_cmpint(replica()->state, ==, REPLICA_STALE);
}

static void test_add_file(void)
{
    put_file();
    g_assert_cmpstr(modify(json_make("{s[{si} {si ss}]}", "add_disks", "size", 5, "size", 6,
                                     "format", "qcow2")),
                    ==, "null");
    ops_expect(world, "commit instance web1 g2 down @- node1\n"
                      "node1 disks_renew g2 1 of 3\n"
                      "commit instance web1 g2 down @- node1\n"
                      "commit job success\n");
    g_assert_cmpint(((const struct disk *)ops_web(world)->disks->pdata[2])->format, ==,
                    FORMAT_QCOW2);
}

/* Room is held until the disk is on record. */
static void test_locks(void)
{
    ops_put_web(world, "in-sync", false);
    world->trace_locks = true;
    g_assert_cmpstr(add(500), ==, "null");
    g_assert_true(g_str_has_prefix(world->trace->str,
                                   "locks instance/web1=exclusive node/node1=shared "
                                   "node/node2=shared node-res/node1=exclusive "
                                   "node-res/node2=exclusive\n"));
    g_assert_nonnull(strstr(world->trace->str,
                            "commit instance web1 g2 down @- node1/node2 clean\nrooms are free\n"));
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(cut("1"), ==, "null");
    g_assert_null(strstr(world->trace->str, "node-res"));
}

static void test_room(void)
{
    ops_put_web(world, "in-sync", false);
    world->disk[1] = 1400;
    ops_expect_refusal(world, add(500),
                       "add_disks: node2 has 400 MiB of disk left, instance \"web1\" needs 500 MiB "
                       "more",
                       "insufficient_resources");
    g_assert_cmpstr(add(400), ==, "null");
    /* What goes makes room for what comes. */
    g_assert_cmpstr(
        modify(json_make("{s[s] s[{si}]}", "remove_disks", "1", "add_disks", "size", 350)), ==,
        "null");
    ops_set(world, "instance", WEB, "disk_template", json_string("sharedfile"));
    world->shared_mib = 1400;
    ops_expect_refusal(world, add(200),
                       "the shared folder has 50 MiB left, instance \"web1\" needs 200 MiB; make "
                       "it larger, or allow more than it has: fettle cluster modify --disk-ratio",
                       "insufficient_resources");
}

/* --- removing --- */

static void test_remove_mirror(void)
{
    ops_put_web(world, "in-sync", false);
    ops_add_disk(world);
    g_assert_cmpstr(cut("-1"), ==, "null");
    ops_expect(world, "commit instance web1 g2 down @- node1/node2 clean; replica node2 g2 s4 "
                      "in-sync\n"
                      "node2 disks_renew g2 1 of 1 replica\n"
                      "node1 disks_renew g2 1 of 1\n"
                      "commit job success\n");
    g_assert_cmpuint(ops_web(world)->disks->len, ==, 1);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "disk 1 of web1, with 1000 MiB, is removed\n");
}

/* Never under the same identity. */
static void test_exchange(void)
{
    put_file();
    ops_add_disk(world);
    g_autofree char *old = g_strdup(((const struct disk *)ops_web(world)->disks->pdata[1])->uuid);
    g_assert_cmpstr(modify(json_make("{s[s] s[{si}] si}", "remove_disks", "1", "add_disks", "size",
                                     7, "vcpus", 3)),
                    ==, "null");
    g_assert_cmpuint(ops_web(world)->disks->len, ==, 2);
    g_assert_cmpuint(size(1), ==, 7);
    g_assert_cmpuint(ops_web(world)->vcpus, ==, 3);
    g_assert_cmpstr(((const struct disk *)ops_web(world)->disks->pdata[1])->uuid, !=, old);
}

/* --- refusals --- */

static void test_refused(void)
{
    ops_put_web(world, "in-sync", false);
    ops_expect_refusal(world, cut("9"),
                       "remove_disks[0]: \"9\" is not the number of a disk of instance \"web1\"; "
                       "they are 0 to 0",
                       "wrong_input");
    ops_expect_refusal(world, cut("first"),
                       "remove_disks[0]: \"first\" is not the number of a disk of instance "
                       "\"web1\"; they are 0 to 0",
                       "wrong_input");
    ops_expect_refusal(world, cut("0"),
                       "remove_disks: disk 0 of instance \"web1\" stays as long as it does; remove "
                       "the instance (fettle instance remove web1) or write an image onto that "
                       "disk (fettle instance reinstall web1)",
                       "wrong_input");
    ops_expect_refusal(
        world, modify(json_make("{s[{siss}]}", "add_disks", "size", 1, "format", "qcow2")),
        "add_disks[0].format: a mirrored instance has raw disks only; the copy is byte by byte",
        "wrong_input");
    ops_add_disk(world);
    ops_expect_refusal(world, cut("0"),
                       "remove_disks: disk 0 of instance \"web1\" is not its last one, and the "
                       "others keep their numbers: those from 1 to 1 would have to go too",
                       "wrong_input");
    json_t *many = json_array();
    for (guint i = 0; i < 15; i++)
        json_array_append_new(many, json_make("{si}", "size", 1));
    ops_expect_refusal(world, modify(json_make("{so}", "add_disks", many)),
                       "add_disks: instance \"web1\" would have 17 disks; 16 are the limit",
                       "limit_exceeded");
    g_assert_cmpuint(ops_web(world)->generation, ==, 1);
}

static void test_refused_by_state(void)
{
    ops_put_web(world, "in-sync", true);
    ops_expect_refusal(world, add(1),
                       "instance \"web1\" is not stopped, and a running guest keeps the devices "
                       "that it was started with; stop it first: fettle instance shutdown web1",
                       "wrong_state");
    ops_put_web(world, "in-sync", false);
    world->lost_disk = NODE2;
    ops_add_disk(world);
    ops_expect_refusal(world, add(1),
                       "node2 does not have the image of disk 1 of the replica of instance "
                       "\"web1\"; give it another first: fettle instance replace-disks web1",
                       "wrong_state");
    world->lost_disk = NULL;
    ops_node_offline(world, NODE2);
    ops_expect_refusal(world, add(1),
                       "its replica has to have the same disks: node2, the secondary node of "
                       "instance \"web1\", is offline",
                       "wrong_state");
    ops_put(world, "instance", WEB,
            json_make("{ss ss ss si ss}", "uuid", WEB, "name", "web1", "disk_template", "diskless",
                      "memory", 64, "primary_node", NODE1));
    ops_expect_refusal(world, add(1),
                       "add_disks: instance \"web1\" is diskless and stays so: how disks are kept "
                       "is said when an instance is made (fettle instance create "
                       "--disk-template)",
                       "wrong_input");
}

/* --- cut off --- */

static void test_disk_full(void)
{
    ops_put_web(world, "in-sync", false);
    ops_fail(world, NODE1, "disks_renew", FETTLE_ERROR_NO_RESOURCES, "disk full", 1);
    g_assert_cmpstr(add(500), ==,
                    "[\"OpExecError\", [\"instance \\\"web1\\\" has the disks that it had: node1: "
                    "disk full\", \"insufficient_resources\", true]]");
    g_assert_cmpuint(ops_web(world)->disks->len, ==, 1);
    g_assert_cmpint(replica()->state, ==, REPLICA_IN_SYNC);
    g_assert_true(ops_web(world)->clean);
    g_assert_cmpstr(add(500), ==, "null");
    g_assert_cmpuint(ops_web(world)->generation, ==, 3);
}

/* The record has let go of it first; whoever says it again removes what is left. */
static void test_half_removed(void)
{
    ops_put_web(world, "in-sync", false);
    ops_add_disk(world);
    ops_fail(world, NODE1, "disks_renew", FETTLE_ERROR_STORAGE, "broken", 1);
    g_assert_cmpstr(
        cut("1"), ==,
        "[\"OpExecError\", [\"instance \\\"web1\\\" has lost disk 1 on record, but not everywhere "
        "its image; go on with: fettle instance modify web1 --remove-disk 1: node1: broken\", "
        "\"storage_error\", true]]");
    g_assert_cmpuint(ops_web(world)->disks->len, ==, 1);
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(cut("1"), ==, "null");
    ops_expect(world, "commit instance web1 g3 down @- node1/node2 clean; replica node2 g3 s5 "
                      "in-sync\n"
                      "node2 disks_renew g3 1 of 1 replica\n"
                      "node1 disks_renew g3 1 of 1\n"
                      "commit job success\n");
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "web1 has no disk 1 on record; an image that was left of one is removed\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ops_case("/modify-disks/add-mirror#SAF-13", test_add_mirror, &world, NULL);
    ops_case("/modify-disks/add-stale", test_add_stale, &world, NULL);
    ops_case("/modify-disks/add-file", test_add_file, &world, NULL);
    ops_case("/modify-disks/locks#FUT-08", test_locks, &world, NULL);
    ops_case("/modify-disks/room", test_room, &world, NULL);
    ops_case("/modify-disks/remove-mirror", test_remove_mirror, &world, NULL);
    ops_case("/modify-disks/exchange", test_exchange, &world, NULL);
    ops_case("/modify-disks/refused", test_refused, &world, NULL);
    ops_case("/modify-disks/refused-by-state", test_refused_by_state, &world, NULL);
    ops_case("/modify-disks/disk-full#SAF-20", test_disk_full, &world, NULL);
    ops_case("/modify-disks/half-removed#SAF-20", test_half_removed, &world, NULL);
    return g_test_run();
}
