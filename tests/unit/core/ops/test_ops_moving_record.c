/* What the record of a migration forbids those who come after it, or in between. */
#include "unit/core/world/ops_case.h"

#include <string.h>

#define MIGRATION "00000000-0000-4000-8000-0000000000f1"

static struct ops_world *world;

static const char *migrate(bool cleanup)
{
    return ops_run_one(world, json_make("{ss ss sb}", "OP_ID", "OP_INSTANCE_MIGRATE",
                                        "instance_name", "web1", "cleanup", cleanup));
}

static void next_generation(struct ops_world *changed, guint number)
{
    if (number != 1)
        return;
    ops_set(changed, "replica", REPLICA, "generation", json_integer(2));
    ops_set(changed, "instance", WEB, "generation", json_integer(2));
}

/* What was seen to run is not what the record speaks of when the migration is to begin. */
static void test_another_generation(void)
{
    ops_put_web(world, "in-sync", true);
    world->on_commit = next_generation;
    g_assert_nonnull(strstr(migrate(false),
                            "generation 1 of instance \\\"web1\\\" was seen to run, but 2 is on "
                            "record now\", \"version_conflict\""));
    g_assert_cmpstr(ops_web(world)->migration, ==, "");
    g_assert_null(strstr(world->trace->str, "incoming_open"));
}

/* It has moved, and nobody knows whether it runs there. What it has left behind equals its disks
 * only as long as nothing else was ever on record of that copy. */
static void test_way_back_was_stale(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "guest_start", FETTLE_ERROR_TIMEOUT, "no answer", 99);
    g_assert_nonnull(strstr(migrate(false), "\"timeout\", true"));
    g_autofree char *left = g_strdup(ops_web(world)->replica);
    ops_set(world, "replica", left, "sync", json_integer(3));
    g_ptr_array_set_size(world->faults, 0);
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(migrate(true), ==, "null");
    g_assert_nonnull(strstr(world->trace->str, "node2 guest_start g2 mirror incoming\n"));
}

/* Of disks that all nodes reach no replica is closed, which would end it too. */
static void test_failover_ends_what_waits(void)
{
    ops_put_web(world, NULL, true);
    json_t *web = config_object_json(world->config, "instance", WEB);
    json_object_set_new(web, "disk_template", json_string("sharedfile"));
    json_object_set_new(web, "primary_node", json_string(NODE3));
    json_object_set_new(web, "holder", json_string(NODE3));
    json_object_set_new(web, "task_state", json_string("migrating"));
    json_object_set_new(web, "migration", json_string(MIGRATION));
    json_object_set_new(web, "migration_node", json_string(NODE2));
    ops_put(world, "instance", WEB, web);
    ops_node_offline(world, NODE3);
    g_assert_cmpstr(ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_FAILOVER",
                                                 "instance_name", "web1", "target_node", "node1")),
                    ==, "null");
    ops_expect(world, "node2 incoming_close\n"
                      "commit instance web1 g2 up @- node1 failing-over\n"
                      "commit instance web1 g3 up @node1 node1 failing-over\n"
                      "node1 guest_start g3\n"
                      "commit instance web1 g3 up @node1 node1\n"
                      "commit job success\n");
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/moving-record/another-generation#SAF-10,SAF-17", test_another_generation);
    add("/moving-record/way-back-was-stale#SAF-11,SAF-17", test_way_back_was_stale);
    add("/moving-record/failover-ends-what-waits#SAF-16,SAF-17", test_failover_ends_what_waits);
    return g_test_run();
}
