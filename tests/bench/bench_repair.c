/*
 * How long auto-repair thinks, on clusters in memory; prints one line a figure: name and the median
 * of its runs in milliseconds. scripts/bench shows them beside the others.
 *
 *   plan_fail_node_ms  PlanNode's answer for one of 40 nodes, 10,000 instances
 *   repair_pass_ms     a look at 50,000 instances of which 500 are broken: policy, table and place
 * of each that is broken, for the rest the proof that nothing is wrong
 */
#include "core/repair/forecast.h"
#include "core/repair/policy.h"
#include "core/repair/room.h"

#include <stdio.h>
#include <stdlib.h>

#define NODES 40
#define NOW 1700000000
#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define GROUP "99999999-0000-4000-8000-000000000001"

static char *uuid_of(char kind, guint number)
{
    return g_strdup_printf("%c0000000-0000-4000-8000-%012u", kind, number);
}

static void put(struct config *config, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change = config_put(config, kind, key, object);
    if (!config_apply(config, change, &error))
        g_error("%s", error->message);
}

static void put_nodes(struct config *config, GPtrArray *reports)
{
    put(config, "cluster", CLUSTER,
        json_make("{ss ss ss}", "uuid", CLUSTER, "name", "bench", "master_node", CLUSTER));
    put(config, "nodegroup", GROUP, json_make("{ss ss}", "uuid", GROUP, "name", "default"));
    put(config, "tag", "cluster/" CLUSTER "/ganeti:watcher:autorepair:failover",
        json_make("{ss ss ss}", "kind", "cluster", "object", CLUSTER, "tag",
                  "ganeti:watcher:autorepair:failover"));
    for (guint i = 0; i < NODES; i++) {
        g_autofree char *uuid = uuid_of('a', i), *name = g_strdup_printf("node%u", i);
        put(config, "node", uuid,
            json_make("{ss ss ss ss}", "uuid", uuid, "name", name, "primary_ip", "10.0.0.1",
                      "group", GROUP));
        json_autoptr json =
            json_make("{ss si si si si}", "node", uuid, "memory_total", 100000000, "memory_free",
                      100000000, "disk_total", 100000000, "disk_free", 100000000);
        g_ptr_array_add(reports, node_report_parse(json, RECORD_LAX, NULL));
    }
}

static void put_instance(struct config *config, guint number, guint primary, guint secondary)
{
    g_autofree char *uuid = uuid_of('b', number), *replica = uuid_of('d', number);
    g_autofree char *first = uuid_of('a', primary), *second = uuid_of('a', secondary);
    g_autofree char *name = g_strdup_printf("web%u", number);
    put(config, "instance", uuid,
        json_make("{ss ss ss si ss ss ss si ss ss s[{ss si}]}", "uuid", uuid, "name", name,
                  "disk_template", "mirror", "memory", 64, "primary_node", first, "secondary_node",
                  second, "replica", replica, "generation", 3, "holder", first, "admin_state", "up",
                  "disks", "uuid", uuid, "size", 16));
    put(config, "replica", replica,
        json_make("{ss ss ss si si ss}", "uuid", replica, "instance", uuid, "node", second,
                  "generation", 3, "sync", 1, "state", "in-sync"));
}

static void put_instances(struct config *config, guint count, guint on_first)
{
    for (guint i = 0; i < count; i++) {
        guint primary = i < on_first ? 0 : 1 + i % (NODES - 1);
        put_instance(config, i, primary, 1 + (i + 7) % (NODES - 1));
    }
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void measure(const char *name, guint runs, void (*run)(void *data), void *data)
{
    double times[64];
    for (guint i = 0; i < runs; i++) {
        gint64 start = g_get_monotonic_time();
        run(data);
        times[i] = (double)(g_get_monotonic_time() - start) / 1000;
    }
    qsort(times, runs, sizeof(times[0]), compare);
    printf("%s %.2f\n", name, times[runs / 2]);
}

struct cluster_in_memory {
    struct config *config;
    GPtrArray *reports;
    guint found; /* so that the work is not for nothing */
};

static void plan_once(void *data)
{
    struct cluster_in_memory *cluster = data;
    const struct node *node = config_find(cluster->config, "node", "node0", NULL);
    json_autoptr answer =
        forecast_node(cluster->config, cluster->reports, node, FORECAST_FAIL, NOW);
    cluster->found = (guint)json_array_size(json_object_get(answer, "moves"));
}

static void look_once(void *data)
{
    struct cluster_in_memory *cluster = data;
    struct placement_sums *sums = placement_sums_new(cluster->config, cluster->reports);
    const struct repair_sight nothing = {0};
    g_autoptr(GPtrArray) instances = config_list(cluster->config, "instance");
    cluster->found = 0;
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        struct repair_policy policy = repair_policy_of(cluster->config, instance, NOW);
        struct repair_plan plan = repair_plan_of(
            cluster->config, instance,
            config_get(cluster->config, "replica", instance->replica, NULL), &nothing);
        struct repair_goal goal = {0};
        g_autofree char *reason = NULL;
        if (!plan.healthy && policy.type >= plan.needed)
            cluster->found += repair_room_find(cluster->config, cluster->reports, sums, instance,
                                               &plan, NOW, &goal, &reason);
        repair_goal_clear(&goal);
        repair_plan_clear(&plan);
    }
    placement_sums_free(sums);
}

static void bench(const char *name, guint instances, guint on_first, bool lost,
                  void (*run)(void *data))
{
    g_autoptr(GPtrArray) reports = g_ptr_array_new_with_free_func((GDestroyNotify)node_report_free);
    struct cluster_in_memory cluster = {config_new(), reports, 0};
    put_nodes(cluster.config, reports);
    put_instances(cluster.config, instances, on_first);
    if (lost) {
        g_autofree char *first = uuid_of('a', 0);
        json_t *node = config_object_json(cluster.config, "node", first);
        json_object_set_new(node, "offline", json_true());
        put(cluster.config, "node", first, node);
    }
    measure(name, 9, run, &cluster);
    if (cluster.found != on_first)
        g_error("%s: %u found, %u expected", name, cluster.found, on_first);
    config_free(cluster.config);
}

int main(void)
{
    bench("plan_fail_node_ms", 10000, 250, false, plan_once);
    bench("repair_pass_ms", 50000, 500, true, look_once);
    return 0;
}
