/*
 * One look of a node daemon at a running guest with two disks, by a call, in processor time, with
 * what the fake host and carrier take: prints `collect_us` and the median of its runs.
 */
#include "helper/node_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RUNS 5
#define LOOKS 300

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1000000 + (double)now.tv_nsec / 1000;
}

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
        double start = now_us();
        for (guint i = 0; i < LOOKS; i++) {
            json_autoptr answer = nw_call(nw, &nw->a, "collect", question(nw), &error);
            g_assert_nonnull(answer);
        }
        times[run] = (now_us() - start) / LOOKS;
    }
    qsort(times, RUNS, sizeof(times[0]), compare);
    printf("collect_us %.1f\n", times[RUNS / 2]);
    node_world_free(nw);
    return 0;
}
