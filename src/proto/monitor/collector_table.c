/* See collector_table.h. */
#include "proto/monitor/collector_table.h"

#include <string.h>

#define LONGEST_S 86400.0
#define SHORTEST_S 1.0

const struct collector collectors[COLLECTOR_COUNT] = {
#define COLLECTOR(id, name, category, kind, version, format, interval_ms, doc)                     \
    [COLLECTOR_##id] = {name, category, COLLECTOR_##kind, version, format, interval_ms, doc},
#include "proto/monitor/collector.def"
#undef COLLECTOR
};

int collector_find(const char *name)
{
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        if (strcmp(collectors[i].name, name) == 0)
            return (int)i;
    return -1;
}

const char *collector_category(const struct collector *collector)
{
    return *collector->category ? collector->category : "default";
}

/* --- settings --- */

struct collector_setting collector_default(enum collector_id id)
{
    return (struct collector_setting){.active = true,
                                      .interval_us = (guint64)collectors[id].interval_ms * 1000};
}

/* Index of "NAME" or "NAME=…"; -1: it is not there. */
static int place_of(const GPtrArray *list, const char *name)
{
    size_t length = strlen(name);
    for (guint i = 0; i < list->len; i++) {
        const char *text = list->pdata[i];
        if (strncmp(text, name, length) == 0 && (text[length] == '\0' || text[length] == '='))
            return (int)i;
    }
    return -1;
}

/* Seconds with a point, at least SHORTEST_S; 0 is allowed, too. */
static bool read_seconds(const char *text, double *ret_seconds)
{
    char *end = NULL;
    double seconds = g_ascii_strtod(text, &end);
    bool plain = g_ascii_isdigit(*text) && strspn(text, "0123456789.") == strlen(text);
    if (!plain || *end || seconds > LONGEST_S || (seconds > 0 && seconds < SHORTEST_S))
        return false;
    *ret_seconds = seconds;
    return true;
}

struct collector_setting collector_setting(const struct cluster *cluster, enum collector_id id)
{
    struct collector_setting setting = collector_default(id);
    const char *name = collectors[id].name;
    int place = place_of(cluster->collector_intervals, name);
    double seconds = 0;
    setting.active = place_of(cluster->collectors_off, name) < 0;
    const char *value = place >= 0 ? strchr(cluster->collector_intervals->pdata[place], '=') : NULL;
    if (value && read_seconds(value + 1, &seconds) && seconds > 0)
        setting.interval_us = (guint64)(seconds * G_USEC_PER_SEC);
    return setting;
}

static char *known(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "", collectors[i].name);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* What stands behind the "=" of a setting of a collector that there is; NULL with the error. */
static const char *take_name(const char *parameter, const char *text, char **ret_name,
                             GError **error)
{
    const char *value = strchr(text, '=');
    g_autofree char *name = value ? g_strndup(text, (gsize)(value - text)) : g_strdup(text);
    if (collector_find(name) < 0) {
        g_autofree char *all = known();
        fettle_set_error(error, WRONG_INPUT, "%s: there is no data collector \"%s\"; there are %s",
                         parameter, name, all);
        return NULL;
    }
    *ret_name = g_steal_pointer(&name);
    return value ? value + 1 : "";
}

static void put(GPtrArray *list, const char *name, char *text)
{
    int place = place_of(list, name);
    if (place >= 0)
        g_ptr_array_remove_index(list, (guint)place);
    if (text)
        g_ptr_array_add(list, text);
}

static bool change_active(struct cluster *cluster, const char *text, GError **error)
{
    g_autofree char *name = NULL;
    const char *value = take_name("data_collectors", text, &name, error);
    bool on = value && strcmp(value, "yes") == 0;
    if (!value)
        return false;
    if (!on && strcmp(value, "no") != 0) {
        fettle_set_error(error, WRONG_INPUT, "data_collectors: %s: must be %s=yes or %s=no", text,
                         name, name);
        return false;
    }
    put(cluster->collectors_off, name, on ? NULL : g_strdup(name));
    return true;
}

static bool change_interval(struct cluster *cluster, const char *text, GError **error)
{
    g_autofree char *name = NULL;
    const char *value = take_name("data_collector_interval", text, &name, error);
    double seconds = 0;
    if (!value)
        return false;
    if (!read_seconds(value, &seconds)) {
        fettle_set_error(error, WRONG_INPUT,
                         "data_collector_interval: %s: must be %s=SECONDS, from %.0f to %.0f, or 0 "
                         "for what it does by itself",
                         text, name, SHORTEST_S, LONGEST_S);
        return false;
    }
    put(cluster->collector_intervals, name, seconds > 0 ? g_strdup(text) : NULL);
    return true;
}

bool collector_settings_change(struct cluster *cluster, const GPtrArray *wanted,
                               const GPtrArray *intervals, guint *ret_changes, GError **error)
{
    bool ok = true;
    for (guint i = 0; ok && i < wanted->len; i++)
        ok = change_active(cluster, wanted->pdata[i], error);
    for (guint i = 0; ok && i < intervals->len; i++)
        ok = change_interval(cluster, intervals->pdata[i], error);
    *ret_changes = wanted->len + intervals->len;
    return ok;
}
