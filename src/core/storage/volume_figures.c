/* What the volume services of a node leave for its fettle-mond: run/stats/volumed.stats
 * (volumed_stats). Nothing rests on it. See volume_service.h. */
#include "core/storage/volume_private.h"

#include <string.h>

#define FILE_NAME "volumed.stats"

static struct volume_stats *figures_of(const struct volume_member *member)
{
    const struct volume_caller *caller = &member->caller;
    struct volume_driver *driver = member->service->env->volumes;
    struct volume_stats *stats = volume_stats_new();
    gint64 age_ms = volume_caller_ms(caller) - caller->measured_ms;
    text_set(&stats->backend, member->backend->name);
    stats->registered = caller->generation != 0 && !volume_caller_lost(caller);
    stats->total_mib = caller->total_mib;
    stats->free_mib = caller->free_mib;
    stats->measured_age_ms = caller->total_mib ? (guint64)MAX(age_ms, 0) : 0;
    stats->working = caller->working;
    stats->hanging = driver->ops->hanging(driver, member->backend);
    return stats;
}

static void write_figures(struct volume_service *service)
{
    const struct env *env = service->env;
    record_autoptr(volumed_stats) stats = volumed_stats_new();
    g_autoptr(GString) text = g_string_new(NULL);
    GHashTableIter iter;
    void *member;
    stats->written_us = (guint64)MAX(env->ops->wall_us(env), 0);
    g_hash_table_iter_init(&iter, service->members);
    while (g_hash_table_iter_next(&iter, NULL, &member))
        g_ptr_array_add(stats->backends, figures_of(member));
    record_append(&volumed_stats_record, stats, text);
    env->ops->file_write(env, FILE_STATS, FILE_NAME, text->str, text->len, NULL);
}

static void figures_task(void *data)
{
    struct volume_service *service = data;
    const struct env *env = service->env;
    do
        write_figures(service);
    while (env_sleep(env, STATS_PERIOD_MS));
}

void volume_service_leave_figures(struct volume_service *service)
{
    task_spawn(service->env->tasks, figures_task, service);
}
