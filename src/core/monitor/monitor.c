/* See monitor.h. */
#include "core/monitor/monitor_private.h"

#include <string.h>

#include "base/log.h"

static const collector_fn functions[COLLECTOR_COUNT] = {
#define COLLECTOR(id, name, category, kind, version, format, interval_ms, doc)                     \
    [COLLECTOR_##id] = monitor_##id,
#include "proto/monitor/collector.def"
#undef COLLECTOR
};

G_STATIC_ASSERT(COLLECTOR_COUNT <= 64);

/* --- lifetime --- */

struct monitor *monitor_new(const struct env *env, const char *node, monitor_ask_fn ask, void *data)
{
    struct monitor *monitor = g_new0(struct monitor, 1);
    monitor->env = env;
    monitor->node = g_strdup(node);
    monitor->ask = ask;
    monitor->data = data;
    monitor->waiters = g_ptr_array_new();
    monitor->cpu = cpu_window_new();
    monitor->heard_ms = -1;
    monitor->users = 1;
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        monitor->collected[i].setting = collector_default((enum collector_id)i);
    return monitor;
}

void monitor_hold(struct monitor *monitor)
{
    monitor->users++;
}

void monitor_release(struct monitor *monitor)
{
    if (--monitor->users > 0)
        return;
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        json_decref(monitor->collected[i].data);
    g_ptr_array_unref(monitor->waiters);
    g_clear_pointer(&monitor->guests, g_ptr_array_unref);
    cpu_window_free(monitor->cpu);
    g_free(monitor->node);
    g_free(monitor);
}

void monitor_free(struct monitor *monitor)
{
    if (!monitor)
        return;
    monitor->ended = true;
    env_pause_end(&monitor->pause);
    env_pause_end(&monitor->asking);
    monitor_release(monitor);
}

gint64 monitor_now_ms(const struct monitor *monitor)
{
    return monitor->env->ops->boot_ms(monitor->env);
}

json_t *monitor_status_json(enum monitor_status code, const char *message)
{
    return json_make("{si ss}", "code", (int)code, "message", message);
}

/* --- one run --- */

struct run {
    struct monitor *monitor;
    enum collector_id id;
};

static void tell_waiters(struct monitor *monitor)
{
    for (guint i = 0; i < monitor->waiters->len; i++)
        env_pause_end(monitor->waiters->pdata[i]);
}

static void take_data(struct collected *collected, json_t *data, const GError *error)
{
    json_decref(collected->data);
    collected->failed = !data;
    collected->data =
        data ? data
             : json_make("{so}", "status", monitor_status_json(MONITOR_FAILED, error->message));
}

static void run_task(void *data)
{
    struct run *run = data;
    struct monitor *monitor = run->monitor;
    struct collected *collected = &monitor->collected[run->id];
    g_autoptr(GError) error = NULL;
    gint64 at_us = monitor->env->ops->wall_us(monitor->env);
    gint64 at_ms = monitor_now_ms(monitor);
    json_t *told = functions[run->id](monitor, &error);
    if (!task_killed()) {
        take_data(collected, json_steal(&told), error);
        collected->at_us = at_us;
        collected->at_ms = at_ms;
    }
    json_decref(told);
    collected->under_way = false;
    tell_waiters(monitor);
    monitor_release(monitor);
    g_free(run);
}

/* What it told last stands for as long as its interval. */
static bool is_due(const struct monitor *monitor, const struct collected *collected)
{
    gint64 age_ms = monitor_now_ms(monitor) - collected->at_ms;
    return collected->setting.active && !collected->under_way &&
           (!collected->data || (guint64)age_ms * 1000 >= collected->setting.interval_us);
}

static void begin(struct monitor *monitor, enum collector_id id)
{
    struct run *run = g_new(struct run, 1);
    *run = (struct run){monitor, id};
    monitor->collected[id].under_way = true;
    monitor_hold(monitor);
    task_spawn(monitor->env->tasks, run_task, run);
}

static bool any_under_way(const struct monitor *monitor, guint64 which)
{
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        if (which >> i & 1 && monitor->collected[i].under_way)
            return true;
    return false;
}

bool monitor_refresh(struct monitor *monitor, guint64 which)
{
    struct env_pause pause = {0};
    gint64 until_ms = monitor_now_ms(monitor) + MONITOR_WAIT_MS;
    bool alive = !task_killed();
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        if (which >> i & 1 && is_due(monitor, &monitor->collected[i]))
            begin(monitor, (enum collector_id)i);
    g_ptr_array_add(monitor->waiters, &pause);
    while (alive && any_under_way(monitor, which) && monitor_now_ms(monitor) < until_ms)
        alive = env_pause(monitor->env, &pause, (guint)(until_ms - monitor_now_ms(monitor)));
    g_ptr_array_remove_fast(monitor->waiters, &pause);
    return alive;
}

/* --- what the cluster wants of them --- */

/* As ConfD tells it: {"active": true, "interval": MICROSECONDS} by name. */
static void take_setting(struct collected *collected, enum collector_id id, const json_t *told)
{
    const json_t *active = json_object_get(told, "active");
    double interval = json_number_value(json_object_get(told, "interval"));
    collected->setting = collector_default(id);
    if (json_is_boolean(active))
        collected->setting.active = json_is_true(active);
    if (interval >= 1 && interval <= 86400.0 * G_USEC_PER_SEC)
        collected->setting.interval_us = (guint64)interval;
}

/* Nobody answers: what was heard last stands, before that what each does by itself. */
static void ask_for_settings(struct monitor *monitor)
{
    json_autoptr told = monitor->ask(CONFD_TYPE_data_collectors, NULL, monitor->data, NULL);
    if (!json_is_object(told))
        return;
    const struct collector_setting *sampled = &monitor->collected[COLLECTOR_cpu_avg_load].setting;
    guint64 before_us = sampled->interval_us;
    monitor->heard_ms = monitor_now_ms(monitor);
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        take_setting(&monitor->collected[i], (enum collector_id)i,
                     json_object_get(told, collectors[i].name));
    if (sampled->interval_us != before_us)
        env_pause_end(&monitor->pause);
}

static void settings_task(void *data)
{
    struct monitor *monitor = data;
    do
        ask_for_settings(monitor);
    while (!monitor->ended && env_pause(monitor->env, &monitor->asking, MONITOR_SETTINGS_MS) &&
           !monitor->ended);
    monitor_release(monitor);
}

/* However seldom it is to be told anew: two samples at least make its average. */
static guint sample_pause_ms(const struct collector_setting *setting)
{
    return (guint)MIN(setting->interval_us / 1000, MONITOR_CPU_WINDOW_MS / 2);
}

static void samples_task(void *data)
{
    struct monitor *monitor = data;
    bool alive = true;
    while (alive && !monitor->ended) {
        const struct collector_setting *setting =
            &monitor->collected[COLLECTOR_cpu_avg_load].setting;
        if (setting->active)
            monitor_cpu_sample(monitor);
        alive = env_pause(monitor->env, &monitor->pause, sample_pause_ms(setting));
    }
    monitor_release(monitor);
}

void monitor_start(struct monitor *monitor)
{
    monitor_hold(monitor);
    task_spawn(monitor->env->tasks, settings_task, monitor);
    monitor_hold(monitor);
    task_spawn(monitor->env->tasks, samples_task, monitor);
}
