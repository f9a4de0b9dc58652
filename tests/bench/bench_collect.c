/*
 * One look of a node daemon at a running guest with two disks, by a call, in processor time, with
 * what the fake host and carrier take: prints `collect_us` and the median of its runs.
 */
#include "bench_figure.h"
#include "helper/node_world.h"

#define RUNS 5
#define LOOKS 300

static json_t *question(const struct node_world *nw)
{
    record_autoptr(instance) record = nw_instance(nw);
    json_autoptr instance = instance_to_json(record);
    return json_make("{s[{ss si sO ss}]}", "subjects", "instance", WEB1, "dead_job", 900, "disks",
                     json_object_get(instance, "disks"), "disk_template", "file");
}

int main(void)
{
    double times[RUNS];
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->web1.disk_template = TEMPLATE_FILE;
    nw_create(nw, NODE_A, "", 2, &error);
    if (!nw_start(nw, &error))
        g_error("%s", error->message);
    for (guint run = 0; run < RUNS; run++) {
        double start = bench_cpu_ms();
        for (guint i = 0; i < LOOKS; i++) {
            json_autoptr answer = nw_call(nw, &nw->a, "collect", question(nw), &error);
            g_assert_nonnull(answer);
        }
        times[run] = (bench_cpu_ms() - start) * 1000 / LOOKS;
    }
    bench_print_median("collect_us", times, RUNS);
    node_world_free(nw);
    return 0;
}
