/* What Ganeti's own clients need to load a cluster, in the shapes that they take. */
#include "unit/core/world/query_world.h"

#include "core/query/query.h"

static void check_spec(const json_t *spec)
{
    static const char *const keys[] = {"memory-size", "cpu-count", "disk-size",
                                       "disk-count",  "nic-count", "spindle-use"};

    g_assert_cmpuint(json_object_size(spec), ==, G_N_ELEMENTS(keys));
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++)
        g_assert_true(json_is_integer(json_object_get(spec, keys[i])));
}

/* Between least and most in every part. */
static void check_order(const json_t *less, json_t *more)
{
    const char *key;
    json_t *value;

    json_object_foreach(more, key, value) {
        g_assert_cmpint(json_integer_value(json_object_get(less, key)), <=,
                        json_integer_value(value));
    }
}

/* Ganeti 3.0 refuses a policy with a key that it does not know, and one that lacks any. */
static void check_policy(const json_t *policy)
{
    static const char *const words[] = {"file", "sharedfile", "diskless"};
    json_t *bounds = json_array_get(json_object_get(policy, "minmax"), 0);
    json_t *least = json_object_get(bounds, "min");
    json_t *most = json_object_get(bounds, "max");
    json_t *common = json_object_get(policy, "std");
    json_t *templates = json_object_get(policy, "disk-templates");

    g_assert_cmpuint(json_object_size(policy), ==, 5);
    g_assert_cmpuint(json_object_size(bounds), ==, 2);
    check_spec(least);
    check_spec(most);
    check_spec(common);
    check_order(least, common);
    check_order(common, most);
    g_assert_true(json_is_real(json_object_get(policy, "vcpu-ratio")));
    g_assert_true(json_is_real(json_object_get(policy, "spindle-ratio")));
    g_assert_cmpuint(json_array_size(templates), ==, G_N_ELEMENTS(words));
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        g_assert_cmpstr(json_string_value(json_array_get(templates, i)), ==, words[i]);
}

static void test_policy(void)
{
    struct queue_world *w = query_world_new();
    g_autoptr(GError) error = NULL;
    json_autoptr info = queue_call(w, "QueryClusterInfo", json_make("[]"), &error);
    json_autoptr groups = NULL;
    json_t *policy = json_object_get(info, "ipolicy");

    g_assert_no_error(error);
    check_policy(policy);
    groups = queue_call(w, "QueryGroups", json_make("[[], [s], b]", "ipolicy", 0), &error);
    g_assert_no_error(error);
    g_assert_true(json_equal(json_array_get(json_array_get(groups, 0), 0), policy));
    queue_world_free(w);
}

static void test_placement(void)
{
    struct queue_world *w = query_world_new();

    query_check(w, "group", "alloc_policy custom_ipolicy ndp/spindle_count ndp/cpu_speed", NULL,
                "0:\"preferred\" 0:{} 0:1 0:1.0\n");
    query_check(w, "node", "cnos ndp/spindle_count ndp/cpu_speed sptotal spfree",
                "[\"=\", \"name\", \"node1\"]", "0:0 0:1 0:1.0 0:0 0:0\n");
    queue_world_free(w);
}

static void test_hypervisor(void)
{
    struct queue_world *w = query_world_new();
    json_autoptr cluster = json_deep_copy(store_get(w->store, "cluster", CLUSTER));

    json_object_set_new(cluster, "migration_downtime_ms", json_integer(450));
    store_put(w->store, "cluster", CLUSTER, json_steal(&cluster));
    fake_settle(w->world);
    query_check(w, "instance", "hv/disk_type hv/nic_type hv/serial_console hv/migration_downtime",
                "[\"=\", \"name\", \"web1\"]",
                "0:\"paravirtual\" 0:\"paravirtual\" 0:true 0:450\n");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/query/limits-as-ganetis-clients-take-them#LUX-03", test_policy);
    g_test_add_func("/query/what-ganetis-clients-place-by#LUX-03", test_placement);
    g_test_add_func("/query/parameters-of-the-hypervisor#LUX-03", test_hypervisor);
    return g_test_run();
}
