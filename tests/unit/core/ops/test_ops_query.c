/* What gnt-instance info is told of instances. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static json_t *query_op(const char *name)
{
    json_t *op = json_make("{ss, s[]}", "OP_ID", "OP_INSTANCE_QUERY_DATA", "instances");
    if (name)
        json_array_append_new(json_object_get(op, "instances"), json_string(name));
    return op;
}

static json_t *told(json_t *op, const char *name)
{
    json_autoptr all = json_loads(ops_run_one(world, op), 0, NULL);
    json_t *one = json_object_get(all, name);
    g_assert_nonnull(one);
    g_string_truncate(world->trace, 0);
    return json_incref(one);
}

/* All that clients of 3.0.2 read of it. */
static void test_members(void)
{
    static const char *const names[] = {
        "name",         "uuid",         "serial_no",    "ctime",
        "mtime",        "config_state", "run_state",    "pnode",
        "snodes",       "nics",         "disks",        "pnode_group_name",
        "os",           "hypervisor",   "network_port", "pnode_group_uuid",
        "os_actual",    "os_instance",  "hv_actual",    "snodes_group_names",
        "hv_instance",  "be_actual",    "be_instance",  "snodes_group_uuids",
        "disk_template"};
    static const char *const of_disk[] = {"iv_name", "dev_type", "logical_id", "drbd_info",
                                          "pstatus", "sstatus",  "children",   "mode",
                                          "size",    "spindles", "name",       "uuid"};
    ops_put_web(world, "in-sync", true);
    json_autoptr web = told(query_op(NULL), "web1");
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        g_assert_nonnull(json_object_get(web, names[i]));
    g_assert_cmpuint(json_object_size(web), ==, G_N_ELEMENTS(names));
    json_t *disk = json_array_get(json_object_get(web, "disks"), 0);
    for (guint i = 0; i < G_N_ELEMENTS(of_disk); i++)
        g_assert_nonnull(json_object_get(disk, of_disk[i]));
    g_assert_cmpuint(json_object_size(disk), ==, G_N_ELEMENTS(of_disk));
    json_t *backend = json_object_get(web, "be_actual");
    g_assert_true(
        json_equal(json_object_get(backend, "minmem"), json_object_get(backend, "maxmem")));
    g_assert_true(json_is_true(json_object_get(json_object_get(web, "hv_actual"), "acpi")));
}

static void check_state(json_t *op, const char *wish, const char *state)
{
    json_autoptr web = told(op, "web1");
    g_assert_cmpstr(json_string_value(json_object_get(web, "config_state")), ==, wish);
    g_assert_cmpstr(json_string_value(json_object_get(web, "run_state")), ==, state);
}

static void test_state(void)
{
    ops_put_web(world, "in-sync", true);
    check_state(query_op("web1"), "up", "up");
    json_t *op = query_op("web1");
    json_object_set_new(op, "static", json_true());
    check_state(op, "up", NULL);
    ops_node_offline(world, NODE1);
    check_state(query_op("web1"), "up", NULL);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "web1: node1, its primary node, is offline: what is told is on record only\n");
}

static void test_refused(void)
{
    ops_expect_refusal(world, ops_run_one(world, query_op("nix")),
                       "instance \"nix\" does not exist", "unknown_entity");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ops_case("/ops-query/has-what-gnt-instance-info-reads#LUX-02", test_members, &world, NULL);
    ops_case("/ops-query/how-it-runs#LUX-02", test_state, &world, NULL);
    ops_case("/ops-query/unknown-name", test_refused, &world, NULL);
    return g_test_run();
}
