/* See rapi_route.h. */
#include "proto/rapi/rapi_route.h"

#include <string.h>

#include "proto/http/path_match.h"

#define WHAT_OP(what) #what
#define WHAT_LIST(what) #what
#define WHAT_ONE(what) #what
#define WHAT_LUXI(what) #what
#define WHAT_OWN(what) #what
#define WHAT_JOB(what) #what
#define WHAT_NONE(what) what

static struct rapi_route routes[] = {
#define RAPI_ROUTE(METHOD, path, need, kind, what, name, doc)                                      \
    {#METHOD, path, RAPI_NEED_##need, RAPI_##kind, WHAT_##kind(what), #name, doc},
#define RAPI_PART(kind, from, to, doc)
#include "proto/rapi/rapi_routes.def"
};

/* In the same order; an empty one stands where a route begins. */
static const struct rapi_part parts[] = {
#define RAPI_ROUTE(METHOD, path, need, kind, what, name, doc) {.from = NULL},
#define RAPI_PART(kind, from, to, doc) {RAPI_##kind, from, to, doc},
#include "proto/rapi/rapi_routes.def"
};

static const struct {
    enum face face;
    const char *resource, *name;
    bool one;
} fields[] = {
#define WHERE_BOTH false
#define WHERE_ONE true
#define RAPI_FIELD(face, resource, name, where) {FACE_##face, #resource, name, WHERE_##where},
#include "proto/rapi/rapi_fields.def"
};

static void complete(struct rapi_route *route)
{
    g_autofree char *id = g_strconcat("OP_", route->what, NULL);
    route->face = g_str_has_prefix(route->path, "/fettle/") ? FACE_OWN : FACE_GANETI;
    route->opcode = route->kind == RAPI_OP ? opcode_find(id) : NULL;
    g_assert(route->kind != RAPI_OP || route->opcode);
}

const struct rapi_route *rapi_route_table(size_t *ret_count)
{
    static bool ready;
    struct rapi_route *route = NULL;
    for (size_t i = 0; !ready && i < G_N_ELEMENTS(parts); i++) {
        if (parts[i].from) {
            route->part_count++;
            continue;
        }
        route = route ? route + 1 : routes;
        route->parts = &parts[i + 1];
        complete(route);
    }
    ready = true;
    *ret_count = G_N_ELEMENTS(routes);
    return routes;
}

bool rapi_route_queues(const struct rapi_route *route)
{
    return route->kind == RAPI_OP || route->kind == RAPI_JOB;
}

static bool queues(const struct rapi_route *route, const char *opcode)
{
    if (route->opcode && !strcmp(route->opcode->id, opcode))
        return true;
    for (size_t i = 0; i < route->part_count; i++)
        if (route->parts[i].kind == RAPI_OPCODE && !strcmp(route->parts[i].from, opcode))
            return true;
    return false;
}

bool rapi_routes_queue(const char *opcode)
{
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    for (size_t i = 0; i < count; i++)
        if (queues(&table[i], opcode))
            return true;
    return false;
}

void rapi_route_find(const char *method, const char *path, struct rapi_found *ret)
{
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    const char *wanted = !strcmp(method, "HEAD") ? "GET" : method;
    g_autoptr(GString) allowed = g_string_new(NULL);
    *ret = (struct rapi_found){.vars = g_ptr_array_new_with_free_func(g_free)};
    for (size_t i = 0; i < count; i++) {
        const struct rapi_route *route = &table[i];
        if (!path_match(route->path, path, NULL))
            continue;
        path_allow(allowed, route->method);
        if (!strcmp(route->method, "GET"))
            path_allow(allowed, "HEAD");
        if (!ret->route && !strcmp(route->method, wanted)) {
            ret->route = route;
            path_match(route->path, path, ret->vars);
        }
    }
    ret->allowed = g_strdup(allowed->str);
}

void rapi_found_clear(struct rapi_found *found)
{
    g_ptr_array_unref(found->vars);
    g_free(found->allowed);
}

const struct rapi_part *rapi_route_part(const struct rapi_route *route, enum rapi_part_kind kind,
                                        const char *from)
{
    for (size_t i = 0; i < route->part_count; i++)
        if (route->parts[i].kind == kind && (!from || !strcmp(route->parts[i].from, from)))
            return &route->parts[i];
    return NULL;
}

GPtrArray *rapi_fields(enum face face, const char *resource, bool one)
{
    GPtrArray *names = g_ptr_array_new();
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (fields[i].face == face && !strcmp(fields[i].resource, resource) &&
            (one || !fields[i].one))
            g_ptr_array_add(names, (char *)fields[i].name);
    return names;
}
