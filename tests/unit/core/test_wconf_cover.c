/* Whether the locks of an owner cover what it changes: which lock for what, and both settings. */
#include <string.h>

#include "base/log.h"
#include "proto/records.h"
#include "wconf_world.h"

static void test_locks_cover_changes(void)
{
    world_set_up();
    static const char fresh[] = "aaaaaaaa-0000-4000-8000-000000000009";
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)),
                "lock_missing: instance web1 (" WEB1
                "): job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_locks(&world, 17, "s instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)),
                "lock_missing: instance web1 (" WEB1
                "): job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("replica", REPLICA1, 1,
                                          with(object_replica1(), "sync", json_integer(8))),
                                      NULL)),
                "lock_missing: replica " REPLICA1
                ": job 17 does not hold the lock instance/web1 exclusively");
    assert_says(job_commit(&world, 17, changes_of(put("node", NODE3, 1, object_node(NODE3)), NULL)),
                "lock_missing: node node3 (" NODE3 "): job 17 does not hold the lock node/" NODE3
                " exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("nodegroup", GROUP, 1,
                                          json_make("{s:s,s:s}", "uuid", GROUP, "name", "g")),
                                      NULL)),
                "lock_missing: nodegroup g (" GROUP
                "): job 17 does not hold the lock cluster/BGL exclusively");
    assert_says(job_commit(&world, 17,
                           changes_of(put("removed", fresh, 0,
                                          json_make("{s:s,s:s,s:i}", "uuid", fresh, "name", "old",
                                                    "generation", 3)),
                                      NULL)),
                "lock_missing: removed old (aaaaaaaa-0000-4000-8000-000000000009): job 17 does not "
                "hold the lock "
                "instance/old exclusively");
    /* A new name needs its lock too; an instance that goes takes its replica with it under one. */
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17,
                           changes_of(put("instance", WEB1, 1,
                                          with(object_web1(), "name", json_string("web2"))),
                                      NULL)),
                "lock_missing: instance web2 (" WEB1
                "): job 17 does not hold the lock instance/web2 exclusively");
    struct change *removed =
        put("removed", WEB1, 0,
            json_make("{s:s,s:s,s:i}", "uuid", WEB1, "name", "web1", "generation", 5));
    assert_says(job_commit(&world, 17,
                           changes_of(del("replica", REPLICA1, 1), del("instance", WEB1, 1),
                                      removed, NULL)),
                "{\"serial\":2}");
    world_tear_down();
}

/* Beside a job that acts on the node a parameter changes; being online does not. */
static void test_finer_locks(void)
{
    struct fake_reply waits;
    world_set_up();
    json_t *drained = with(object_node(NODE3), "drained", json_true());
    json_object_set_new(drained, "master_capable", json_false());
    json_t *offline = with(object_node(NODE3), "offline", json_true());
    assert_says(job_locks(&world, 1, "s node/" NODE3, false), GRANTED);
    assert_says(job_locks(&world, 2, "x node-param/" NODE3, false), GRANTED);
    assert_says(job_commit(&world, 2, changes_of(put("node", NODE3, 1, offline), NULL)),
                "lock_missing: node node3 (" NODE3 "): job 2 does not hold the lock node/" NODE3
                " exclusively");
    assert_says(job_commit(&world, 2, changes_of(put("node", NODE3, 1, drained), NULL)),
                "{\"serial\":2}");
    job_locks_start(3, "node/" NODE3, 60000, &waits);
    fake_advance(world.world, 5000);
    g_assert_false(waits.done);
    assert_says(
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    fake_settle(world.world);
    assert_says(world_reply(&waits), GRANTED);
    world_tear_down();
}

static void test_group_lock_covers(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/[lockset]", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(put_memory(1, 256), NULL)), "{\"serial\":2}");
    world_tear_down();
}

static void keep_line(const char *line, void *ctx)
{
    g_ptr_array_add(ctx, g_strdup(strchr(line, ' ') + 1));
}

static struct change *put_cluster(guint64 version, const char *coverage)
{
    return put("cluster", CLUSTER, version,
               json_make("{s:s,s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node", NODE1,
                         "lock_coverage", coverage));
}

static struct change *put_node3(guint64 version, bool drained)
{
    return put("node", NODE3, version, with(object_node(NODE3), "drained", json_boolean(drained)));
}

/* One line for each object that no lock covers, with its job; others are not told of. */
static void test_log_only(void)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    world_set_up();
    assert_says(job_locks(&world, 17, "x cluster/BGL", false), GRANTED);
    assert_says(job_change(&world, 17, "change_cluster", changes_of(put_cluster(1, "log"), NULL)),
                "{\"serial\":2}");
    log_set_sink(keep_line, lines);
    assert_says(job_change(&world, 17, "change_cluster", changes_of(put_cluster(2, "log"), NULL)),
                "{\"serial\":3}");
    g_assert_cmpuint(lines->len, ==, 0);
    assert_says(job_commit(&world, 18,
                           changes_of(put_memory(1, 256), put_node3(1, true), put_tag("x"), NULL)),
                "{\"serial\":4}");
    /* What no lock would allow is refused as before. */
    assert_says(job_commit(&world, 18, changes_of(put_memory(1, 512), NULL)),
                "version_conflict: instance web1 (" WEB1
                "): was read at version 1, it is at 4 now");
    log_set_sink(NULL, NULL);
    g_assert_cmpuint(lines->len, ==, 4);
    g_assert_nonnull(strstr(lines->pdata[1], "changed without its lock: instance web1 (" WEB1
                                             "): job 18 does not hold the lock instance/web1 "
                                             "exclusively JOB=18"));
    g_assert_nonnull(strstr(lines->pdata[2],
                            "changed without its lock: node node3 (" NODE3
                            "): job 18 does not hold the lock node/" NODE3 " exclusively JOB=18"));
    /* And a job that does not name what it changes is told of each time (WCF-22). */
    g_assert_nonnull(strstr(lines->pdata[0], "job 18 uses the wide commit: 3 changes, the first of "
                                             "the kind instance JOB=18"));
    g_assert_nonnull(strstr(lines->pdata[3], "job 18 uses the wide commit: 1 changes, "));
    world_tear_down();
}

/* The setting that is in force counts, not one that comes with the change. */
static void test_mandatory_again(void)
{
    static const char refused[] = "lock_missing: instance web1 (" WEB1
                                  "): job 18 does not hold the lock instance/web1 exclusively";
    world_set_up();
    assert_says(job_commit(&world, 18, changes_of(put_cluster(1, "log"), NULL)),
                "lock_missing: cluster c1 (" CLUSTER
                "): job 18 does not hold the lock cluster/BGL exclusively");
    assert_says(job_locks(&world, 18, "x cluster/BGL", false), GRANTED);
    assert_says(job_commit(&world, 18, changes_of(put_cluster(1, "log"), put_memory(1, 256), NULL)),
                refused);
    assert_says(job_commit(&world, 18, changes_of(put_cluster(1, "log"), NULL)), "{\"serial\":2}");
    assert_says(job_commit(&world, 18, changes_of(put_memory(1, 256), NULL)), "{\"serial\":3}");
    assert_says(job_commit(&world, 18, changes_of(put_cluster(2, "mandatory"), NULL)),
                "{\"serial\":4}");
    assert_says(job_commit(&world, 18, changes_of(put_memory(3, 512), NULL)), refused);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cover/levels#FUT-04", test_locks_cover_changes);
    g_test_add_func("/cover/finer#FUT-01,FUT-04", test_finer_locks);
    g_test_add_func("/cover/group#FUT-04,LCK-19", test_group_lock_covers);
    g_test_add_func("/cover/log-only#FUT-03,WCF-22", test_log_only);
    g_test_add_func("/cover/mandatory-again#FUT-03,FUT-04", test_mandatory_again);
    return g_test_run();
}
