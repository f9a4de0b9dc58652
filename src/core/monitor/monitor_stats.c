/*
 * The files that daemons leave in run/stats. They are somebody else's word: one that is torn, too
 * large or odd is told with what is wrong with it, and is in nobody's way. See monitor.h.
 */
#include "core/monitor/monitor_private.h"

#include <string.h>

#define ENDING ".stats"
#define UUID_CHARS 36

/* --- one file --- */

static guint64 written_us(const struct record *record, const void *value)
{
    const struct field *field = record_field(record, "written_us");
    return *(const guint64 *)((const char *)value + field->offset);
}

void *monitor_stats_read(const struct monitor *monitor, const struct record *record,
                         const char *file, gint64 *ret_age_ms, GError **error)
{
    const struct env *env = monitor->env;
    size_t len = 0;
    g_autoptr(GError) why = NULL;
    g_autofree char *text =
        env->ops->file_read(env, FILE_STATS, file, LIMIT_STATS_FILE_BYTES, &len, &why);
    json_autoptr json = text ? json_parse_limited(text, len, LIMIT_STATS_FILE_BYTES, &why) : NULL;
    void *value = json ? record_parse(record, json, RECORD_LAX, &why) : NULL;
    if (!value) {
        fettle_set_error(error, CORRUPT, "run/stats/%s: %s", file, why->message);
        return NULL;
    }
    gint64 age_us = env->ops->wall_us(env) - (gint64)written_us(record, value);
    *ret_age_ms = MAX(age_us, 0) / 1000;
    return value;
}

enum monitor_status monitor_age_status(const char *who, gint64 age_ms, char **ret_message)
{
    bool old = age_ms >= MONITOR_STALE_MS;
    *ret_message = old ? g_strdup_printf("what %s has left is %" G_GINT64_FORMAT
                                         " s old: it is down, or has no time",
                                         who, age_ms / 1000)
                       : g_strdup("");
    return old ? MONITOR_UNKNOWN : MONITOR_OK;
}

/* --- guests --- */

static void guest_file_free(void *data)
{
    struct guest_file *file = data;
    g_free(file->file);
    guest_stats_free(file->stats);
    g_free(file->why);
    g_free(file);
}

static bool is_of_guest(const char *name)
{
    size_t len = strlen(name);
    g_autofree char *stem = g_strndup(name, MIN(len, UUID_CHARS));
    return len == UUID_CHARS + strlen(ENDING) && g_str_has_suffix(name, ENDING) &&
           g_uuid_string_is_valid(stem);
}

static bool is_its_own(const struct guest_file *file, GError **error)
{
    if (strncmp(file->file, file->stats->instance, UUID_CHARS) == 0)
        return true;
    fettle_set_error(error, CORRUPT, "run/stats/%s: it is the file of instance %s", file->file,
                     file->stats->instance);
    return false;
}

/* NULL: it is gone by now, with its guest. */
static struct guest_file *read_guest(const struct monitor *monitor, const char *name)
{
    g_autoptr(GError) error = NULL;
    const struct env *env = monitor->env;
    struct guest_file *file = g_new0(struct guest_file, 1);
    file->file = g_strdup(name);
    file->stats = monitor_stats_read(monitor, &guest_stats_record, name, &file->age_ms, &error);
    if (file->stats && !is_its_own(file, &error))
        g_clear_pointer(&file->stats, guest_stats_free);
    if (file->stats)
        return file;
    g_autoptr(GError) gone = NULL;
    size_t len;
    g_autofree char *text =
        env->ops->file_read(env, FILE_STATS, name, LIMIT_STATS_FILE_BYTES, &len, &gone);
    if (!text && fettle_error_is(gone, UNKNOWN_ENTITY)) {
        guest_file_free(file);
        return NULL;
    }
    file->why = g_strdup(error->message);
    return file;
}

/* Several collectors want them at once. */
const GPtrArray *monitor_guest_files(struct monitor *monitor, GError **error)
{
    const struct env *env = monitor->env;
    gint64 now_ms = monitor_now_ms(monitor);
    if (monitor->guests && now_ms - monitor->guests_ms < MONITOR_FILES_MS)
        return monitor->guests;
    g_autoptr(GPtrArray) names = env->ops->file_list(env, FILE_STATS, "", error);
    if (!names)
        return NULL;
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(guest_file_free);
    for (guint i = 0; i < names->len && files->len < LIMIT_NODE_GUESTS; i++) {
        struct guest_file *file =
            is_of_guest(names->pdata[i]) ? read_guest(monitor, names->pdata[i]) : NULL;
        if (file)
            g_ptr_array_add(files, file);
    }
    g_clear_pointer(&monitor->guests, g_ptr_array_unref);
    monitor->guests = g_steal_pointer(&files);
    monitor->guests_ms = now_ms;
    return monitor->guests;
}
