/* See route.h. */
#include "proto/api/route.h"

#include <string.h>

#include "proto/http/path_match.h"
#include "proto/records.h"

#define SERVICE_identity API_IDENTITY
#define SERVICE_volume API_VOLUME
#define SERVICE_image API_IMAGE
#define BODY_RECORD(body) (&body##_record)

#define NEWEST G_MAXUINT
static struct route routes[] = {
#define ROUTE(service, METHOD, path, action, min, max, need, body, wrapper, status, name, doc)     \
    {#name, SERVICE_##service, #METHOD,           path,    action, min,                            \
     max,   NEED_##need,       BODY_RECORD(body), wrapper, status, doc},
#include "proto/api/routes.def"
};

static const struct {
    const char *name;
    guint major, newest;
} services[API_SERVICES] = {[API_IDENTITY] = {"identity", 3, 14},
                            [API_VOLUME] = {"volume", 3, 70},
                            [API_IMAGE] = {"image", 2, 16}};

const struct route *route_table(size_t *ret_count)
{
    static bool ready;
    for (size_t i = 0; !ready && i < G_N_ELEMENTS(routes); i++) {
        if (routes[i].body == &nothing_record)
            routes[i].body = NULL;
        routes[i].max = MIN(routes[i].max, services[routes[i].service].newest);
    }
    ready = true;
    *ret_count = G_N_ELEMENTS(routes);
    return routes;
}

const char *api_service_name(enum api_service service)
{
    return services[service].name;
}

guint api_service_newest(enum api_service service)
{
    return services[service].newest;
}

guint api_service_major(enum api_service service)
{
    return services[service].major;
}

const char *api_need_name(enum api_need need)
{
    static const char *const names[] = {"nobody", "token", "reader", "member", "admin"};
    return names[need];
}

bool route_service(const char *path, enum api_service *ret_service, const char **ret_rest)
{
    for (int i = 0; i < API_SERVICES; i++) {
        size_t len = strlen(services[i].name);
        if (path[0] == '/' && !strncmp(path + 1, services[i].name, len) &&
            (path[1 + len] == '/' || !path[1 + len])) {
            *ret_service = (enum api_service)i;
            *ret_rest = path + 1 + len;
            return true;
        }
    }
    return false;
}

/* --- paths --- */

#define OF_PROJECT "/v3/{project_id}/"

/* Whether a path is of a route; from 3.67 on the id of a project may be left out of it. Such ids
 * have hexadecimal digits alone, which the name of no collection has. */
static bool leads_to(const char *path, const struct route *route, guint minor, GPtrArray *vars)
{
    size_t start = strlen("/v3/");
    bool of_project = g_str_has_prefix(route->path, OF_PROJECT);
    if (route->service != API_VOLUME || minor < 67 || !of_project || strncmp(path, "/v3/", start))
        return path_match(route->path, path, vars);
    size_t digits = strspn(path + start, "0123456789abcdefABCDEF-");
    return path[start + digits] == '/'
               ? path_match(route->path, path, vars)
               : path_match(route->path + strlen(OF_PROJECT), path + start, vars);
}

void route_find(enum api_service service, const char *method, const char *rest, guint minor,
                struct route_found *ret)
{
    size_t count;
    const struct route *table = route_table(&count);
    *ret = (struct route_found){.vars = g_ptr_array_new_with_free_func(g_free)};
    g_autoptr(GString) allowed = g_string_new(NULL);
    for (size_t i = 0; i < count; i++) {
        const struct route *route = &table[i];
        if (route->service != service || minor < route->min || minor > route->max ||
            !leads_to(rest, route, minor, NULL))
            continue;
        if (path_allow(allowed, route->method))
            ret->methods++;
        if (!ret->route && !strcmp(route->method, method)) {
            ret->route = route;
            leads_to(rest, route, minor, ret->vars);
        }
    }
    ret->allowed = g_strdup(allowed->str);
}

void route_found_clear(struct route_found *found)
{
    g_ptr_array_unref(found->vars);
    g_free(found->allowed);
}

const struct route *route_action(const struct route *route, const char *action, guint minor)
{
    size_t count;
    const struct route *table = route_table(&count);
    for (size_t i = 0; i < count; i++)
        if (table[i].service == route->service && !strcmp(table[i].path, route->path) &&
            !strcmp(table[i].action, action) && action[0] && minor >= table[i].min &&
            minor <= table[i].max)
            return &table[i];
    return NULL;
}
