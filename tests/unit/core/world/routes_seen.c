/* See routes_seen.h. */
#include "unit/core/world/routes_seen.h"

#include <string.h>

#include "base/json.h"
#include "proto/api/route.h"

static GHashTable *seen; /* names of routes */

void routes_seen_note(const char *method, const char *path, guint minor, const char *body,
                      guint status)
{
    enum api_service service;
    const char *rest;
    struct route_found found;
    if (!route_service(path, &service, &rest))
        return;
    route_find(service, method, rest, minor, &found);
    const struct route *route = found.route;
    size_t length = body ? strlen(body) : 0;
    json_autoptr json = length ? json_parse_limited(body, length, MIB(1), NULL) : NULL;
    const char *word = json_object_iter_key(json_object_iter(json));
    if (route && *route->action)
        route = word ? route_action(route, word, minor) : NULL;
    if (!seen)
        seen = g_hash_table_new(g_str_hash, g_str_equal);
    if (route && route->status == status)
        g_hash_table_add(seen, (char *)route->name);
    route_found_clear(&found);
}

void routes_seen_assert(const char *const *words)
{
    size_t count;
    const struct route *table = route_table(&count);
    for (size_t i = 0; i < count; i++)
        for (const char *const *word = words; *word; word++)
            if (g_str_has_prefix(table[i].name, *word) &&
                !(seen && g_hash_table_contains(seen, table[i].name)))
                g_error("no test has seen %s answered with %u", table[i].name, table[i].status);
}
