/*
 * How busy each processor was on average since the oldest sample, which is CPU_WINDOW_MS old at
 * most; with one sample alone: since the host's boot. See monitor.h.
 */
#include "core/monitor/monitor_private.h"

#include <string.h>

#define LIMIT_CPUS 4096

struct cpu_sample {
    gint64 at_ms;
    GArray *cpus; /* struct cpu_times */
};

struct cpu_times {
    guint64 busy_us, all_us;
};

struct cpu_window {
    GQueue samples; /* struct cpu_sample *, the oldest first */
    char *why;      /* the last one could not be taken; NULL: it was */
};

static void sample_free(void *data)
{
    struct cpu_sample *sample = data;
    g_array_unref(sample->cpus);
    g_free(sample);
}

struct cpu_window *cpu_window_new(void)
{
    struct cpu_window *window = g_new0(struct cpu_window, 1);
    g_queue_init(&window->samples);
    return window;
}

void cpu_window_free(struct cpu_window *window)
{
    g_queue_clear_full(&window->samples, sample_free);
    g_free(window->why);
    g_free(window);
}

/* --- samples --- */

static bool is_busy(guint mode)
{
    return strcmp(cpu_modes[mode], "idle") != 0 && strcmp(cpu_modes[mode], "iowait") != 0;
}

static GArray *read_cpus(char *const *lines)
{
    GArray *cpus = g_array_new(FALSE, FALSE, sizeof(struct cpu_times));
    guint64 us[CPU_MODES];
    for (; *lines && cpus->len < LIMIT_CPUS; lines++) {
        struct cpu_times times = {0, 0};
        if (g_str_has_prefix(*lines, "cpu ") || !monitor_cpu_line(*lines, us))
            continue;
        for (guint i = 0; i < CPU_MODES; i++) {
            times.all_us += us[i];
            times.busy_us += is_busy(i) ? us[i] : 0;
        }
        g_array_append_val(cpus, times);
    }
    return cpus;
}

static const struct cpu_sample *newest(const struct cpu_window *window)
{
    return window->samples.tail ? window->samples.tail->data : NULL;
}

/* Those that are too old go, and those of before a processor came or went. */
static void add(struct cpu_window *window, struct cpu_sample *sample)
{
    const struct cpu_sample *last = newest(window);
    if (last && last->cpus->len != sample->cpus->len)
        g_queue_clear_full(&window->samples, sample_free);
    for (;;) {
        struct cpu_sample *first = g_queue_peek_head(&window->samples);
        if (!first || (sample->at_ms - first->at_ms <= MONITOR_CPU_WINDOW_MS &&
                       window->samples.length < LIMIT_CPU_SAMPLES))
            break;
        sample_free(g_queue_pop_head(&window->samples));
    }
    g_queue_push_tail(&window->samples, sample);
}

void monitor_cpu_sample(struct monitor *monitor)
{
    struct cpu_window *window = monitor->cpu;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) lines = monitor_proc_lines(monitor, "stat", &error);
    g_autoptr(GArray) cpus = lines ? read_cpus(lines) : NULL;
    g_clear_pointer(&window->why, g_free);
    if (!cpus || cpus->len == 0) {
        window->why = g_strdup(error ? error->message : "/proc/stat names no processor");
        return;
    }
    struct cpu_sample *sample = g_new(struct cpu_sample, 1);
    *sample = (struct cpu_sample){monitor_now_ms(monitor), g_steal_pointer(&cpus)};
    add(window, sample);
}

/* --- the report --- */

static double load_of(const struct cpu_times *from, const struct cpu_times *to)
{
    guint64 all = to->all_us > from->all_us ? to->all_us - from->all_us : 0;
    guint64 busy = to->busy_us > from->busy_us ? to->busy_us - from->busy_us : 0;
    return all > 0 ? MIN((double)busy / (double)all, 1) : 0;
}

json_t *monitor_cpu_avg_load(struct monitor *monitor, GError **error)
{
    struct cpu_window *window = monitor->cpu;
    static const struct cpu_times boot;
    double total = 0;
    if (!newest(window) || window->why)
        monitor_cpu_sample(monitor);
    if (window->why) {
        fettle_set_error(error, ENVIRONMENT, "%s", window->why);
        return NULL;
    }
    const struct cpu_sample *first = g_queue_peek_head(&window->samples), *last = newest(window);
    json_t *cpus = json_array();
    for (guint i = 0; i < last->cpus->len; i++) {
        const struct cpu_times *from =
            first == last ? &boot : &g_array_index(first->cpus, struct cpu_times, i);
        double load = load_of(from, &g_array_index(last->cpus, struct cpu_times, i));
        json_array_append_new(cpus, json_real(load));
        total += load;
    }
    return json_make("{si so sf}", "cpu_number", (int)last->cpus->len, "cpus", cpus, "cpu_total",
                     total);
}
