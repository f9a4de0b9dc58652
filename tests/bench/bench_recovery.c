/*
 * What recovery costs, in memory, in processor time; prints one line a figure: name and the median
 * of its runs. scripts/bench shows them beside the others.
 *
 *   recovery_10000_s    a pass over 10,000 candidates: locks, looks of fake nodes, judgements, and
 * all of them on record, with what the real wconfd takes for it
 *   recovery_floor_s    30,000 objects given to the same wconfd in commits of 1,024
 *   recovery_watcher_mb what the heap loses when the watcher ends after such a pass
 *   recovery_idle_ms    what a pass does for it at 10,000 instances without a task
 */
#include "bench_figure.h"
#include "core/recovery/recovery.h"
#include "core/watcher/watcher_private.h"
#include "proto/change.h"
#include "unit/core/world/stuck_world.h"

#include <malloc.h>

#define RUNS 3
#define COUNT 10000
#define OBJECTS 30000

/* --- a site restarts --- */

static double heap_mb(void)
{
    return (double)mallinfo2().uordblks / 1e6;
}

/* The same start without a task takes the configuration up, and reads what nodes report. */
static double pass_of(bool stuck, double *ret_mb)
{
    struct stuck_world *w = stuck_world_new(COUNT, stuck);
    double start = bench_cpu_ms();
    stuck_watcher_start(w, 0);
    while (stuck && config_count(follow_config(w->watcher[0]->follow), "decision") < COUNT)
        fake_step(w->base.world, fake_now_ms(w->base.world) + 1000);
    if (!stuck)
        fake_advance(w->base.world, 900);
    double took = bench_cpu_ms() - start;
    double before_mb = heap_mb();
    stuck_watcher_kill(w, 0);
    *ret_mb = before_mb - heap_mb();
    if (stuck)
        stuck_check_told(w);
    stuck_world_free(w);
    return took / 1000;
}

static double bench_pass(double *ret_mb)
{
    double ignored;
    double took = pass_of(true, ret_mb);
    return took - pass_of(false, &ignored);
}

static json_t *decision_of(guint number)
{
    g_autofree char *uuid = g_strdup_printf("eeeeeeee-0000-4000-8000-%012u", number);
    g_autofree char *subject = stuck_uuid(number % COUNT);
    return json_make("{ss ss ss ss si ss ss ss ss ss ss}", "uuid", uuid, "author",
                     "watcher/recovery", "subject_kind", "instance", "subject", subject, "at_us", 1,
                     "verdict", "act", "summary",
                     "Job 900 ended while starting it; its guest runs, and that is on "
                     "record now.",
                     "task", "starting", "old", "active", "new", "active", "rule", "RCV-54");
}

static double bench_floor(void)
{
    struct stuck_world *w = stuck_world_new(COUNT, false);
    double start = bench_cpu_ms();
    for (guint from = 0; from < OBJECTS; from += LIMIT_REPAIR_BATCH) {
        GPtrArray *changes = change_list_new();
        for (guint i = from; i < MIN(from + LIMIT_REPAIR_BATCH, OBJECTS); i++) {
            json_t *object = decision_of(i);
            const char *uuid = json_string_value(json_object_get(object, "uuid"));
            g_autofree char *key = g_strdup(uuid);
            g_ptr_array_add(changes, put("decision", key, 0, object));
        }
        g_autofree char *said = daemon_commit(&w->base, w->base.watcher, changes);
        if (strstr(said, "serial") == NULL)
            g_error("%s", said);
    }
    double took = bench_cpu_ms() - start;
    stuck_world_free(w);
    return took / 1000;
}

/* --- nothing to do --- */

struct idle {
    struct stuck_world *w;
    struct recovery *recovery;
    double took;
};

static void idle_task(void *data)
{
    struct idle *idle = data;
    struct watcher *watcher = idle->w->watcher[0];
    g_autoptr(GPtrArray) all = config_list(follow_config(watcher->follow), "instance");
    g_autoptr(GPtrArray) concerned = g_ptr_array_new();
    double start = bench_cpu_ms();
    for (guint i = 0; i < all->len; i++)
        if (recovery_concerns(watcher, all->pdata[i]))
            g_ptr_array_add(concerned, ((struct instance *)all->pdata[i])->uuid);
    recovery_run(idle->recovery, watcher, concerned);
    idle->took = bench_cpu_ms() - start;
    g_assert_cmpuint(all->len, ==, COUNT);
}

static char *waits_for_nobody(struct watcher *watcher, const struct instance *instance)
{
    return NULL;
}

static void bench_idle(void)
{
    double times[RUNS];
    struct stuck_world *w = stuck_world_new(COUNT, false);
    struct idle idle = {w, recovery_new(waits_for_nobody), 0};
    stuck_watcher_start(w, 0);
    fake_advance(w->base.world, 2000);
    for (guint i = 0; i < RUNS; i++) {
        fake_run(w->env[0], idle_task, &idle);
        times[i] = idle.took;
    }
    bench_print_median("recovery_idle_ms", times, RUNS);
    recovery_free(idle.recovery);
    stuck_world_free(w);
}

int main(void)
{
    double floors[RUNS], passes[RUNS], heaps[RUNS];
    mallopt(M_MXFAST, 0); /* as fettle-watcher does */
    for (guint i = 0; i < RUNS; i++) {
        floors[i] = bench_floor();
        passes[i] = bench_pass(&heaps[i]);
    }
    bench_print_median("recovery_floor_s", floors, RUNS);
    bench_print_median("recovery_10000_s", passes, RUNS);
    bench_print_median("recovery_watcher_mb", heaps, RUNS);
    bench_idle();
    return 0;
}
