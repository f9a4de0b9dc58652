/*
 * How long auto-repair thinks, on clusters in memory; prints one line a figure: name and the median
 * of its runs in milliseconds. scripts/bench shows them beside the others.
 *
 *   plan_fail_node_ms     PlanNode's answer for one of 40 nodes, 10,000 instances
 *   repair_pass_ms        one whole pass of the watcher in which a node with 500
 * of 50,000 instances is found offline: reports read, tags and records committed, 500 failovers
 * submitted and put on record, one by one
 *   repair_quiet_pass_ms  the same cluster with nothing to do: a pass of every second
 *
 * The passes include what the simulated wconfd and luxid do, and the JSON of every call; of the
 * quiet one most is reading what 40 nodes report.
 */
#include "bench_cluster.h"
#include "bench_figure.h"
#include "core/repair/forecast.h"

#include <malloc.h>

#define RUNS 5

/* --- fettle plan fail --- */

static void put(const char *kind, const char *key, json_t *object, void *data)
{
    struct config *config = data;
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change = config_put(config, kind, key, object);
    if (!config_apply(config, change, &error))
        g_error("%s", error->message);
}

static void bench_plan(guint count, guint on_first)
{
    double times[RUNS];
    struct config *config = config_new();
    g_autoptr(GPtrArray) reports = g_ptr_array_new_with_free_func((GDestroyNotify)node_report_free);
    bench_cluster(count, on_first, put, config);
    for (guint i = 0; i < BENCH_NODES; i++) {
        json_autoptr json = bench_report(i, count, on_first);
        g_ptr_array_add(reports, node_report_parse(json, RECORD_LAX, NULL));
    }
    const struct node *node = config_find(config, "node", "node0", NULL);
    for (guint i = 0; i < RUNS; i++) {
        double start = bench_cpu_ms();
        json_autoptr answer = forecast_node(config, reports, node, FORECAST_FAIL, BENCH_NOW);
        times[i] = bench_cpu_ms() - start;
        if (json_array_size(json_object_get(answer, "moves")) != on_first)
            g_error("plan: not every instance of the node found a place");
    }
    bench_print_median("plan_fail_node_ms", times, RUNS);
    config_free(config);
}

/* --- passes of the watcher --- */

/* Nothing travels for long, so that one pass runs to its end before time goes on. */
static void bench_passes(guint count, guint on_first)
{
    double broken[RUNS], quiet[RUNS];
    for (guint i = 0; i < RUNS; i++) {
        struct bench_world *world = bench_world_new(count, on_first);
        double start = bench_cpu_ms();
        fake_advance(world->world, BENCH_INTERVAL_MS);
        quiet[i] = bench_cpu_ms() - start;
        bench_world_lose_first(world);
        start = bench_cpu_ms();
        fake_settle(world->world);
        broken[i] = bench_cpu_ms() - start;
        bench_world_check(world, on_first);
        bench_world_free(world);
    }
    bench_print_median("repair_pass_ms", broken, RUNS);
    bench_print_median("repair_quiet_pass_ms", quiet, RUNS);
}

int main(void)
{
    mallopt(M_MXFAST, 0); /* as fettle-watcher does */
    bench_plan(10000, 250);
    bench_passes(50000, 500);
    return 0;
}
