/* See known_bridges.h. */
#include "backend/network/known_bridges.h"

#include <net/if.h>
#include <string.h>

#include "base/limits.h"

char *known_bridges_devices(void)
{
    GString *names = g_string_new(NULL);
    struct if_nameindex *devices = if_nameindex();
    for (const struct if_nameindex *at = devices; at != NULL && at->if_index != 0; at++)
        g_string_append_printf(names, "%u:%s ", at->if_index, at->if_name);
    if (devices != NULL)
        if_freenameindex(devices);
    return g_string_free(names, FALSE);
}

static GPtrArray *copy_names(const GPtrArray *names)
{
    GPtrArray *copy = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < names->len; i++)
        g_ptr_array_add(copy, g_strdup(names->pdata[i]));
    return copy;
}

GPtrArray *known_bridges_get(const struct known_bridges *known, const char *devices, gint64 now_ms)
{
    if (known->names == NULL || now_ms >= known->until_ms || strcmp(known->devices, devices) != 0)
        return NULL;
    return copy_names(known->names);
}

void known_bridges_set(struct known_bridges *known, const GPtrArray *names, const char *devices,
                       gint64 now_ms)
{
    known_bridges_clear(known);
    known->names = copy_names(names);
    known->devices = g_strdup(devices);
    known->until_ms = now_ms + LIMIT_BRIDGES_MS;
}

void known_bridges_clear(struct known_bridges *known)
{
    if (known->names != NULL)
        g_ptr_array_unref(known->names);
    g_free(known->devices);
    *known = (struct known_bridges){0};
}
