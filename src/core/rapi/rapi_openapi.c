/* GET /fettle/v1/openapi.json: the routes, as OpenAPI 3.1, out of the same table. */
#include <string.h>

#include "core/rapi/rapi_private.h"

static json_t *parameter(const char *name, const char *in, const char *type, const char *doc)
{
    bool required = !strcmp(in, "path");
    json_t *one = json_make("{ss, ss, sb, s{ss}}", "name", name, "in", in, "required", required,
                            "schema", "type", type);
    if (*doc)
        json_object_set_new(one, "description", json_string(doc));
    return one;
}

static bool has_parameter(const json_t *list, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
        if (!strcmp(json_string_value(json_object_get(one, "name")), name))
            return true;
    return false;
}

static json_t *parameters_of(const struct rapi_route *route)
{
    json_t *list = json_array();
    g_auto(GStrv) pieces = g_strsplit_set(route->path, "{}", -1);
    for (guint i = 1; i < g_strv_length(pieces); i += 2)
        json_array_append_new(list, parameter(pieces[i], "path", "string", ""));
    for (size_t i = 0; i < route->part_count; i++) {
        const struct rapi_part *part = &route->parts[i];
        const char *type = part->kind == RAPI_FLAG ? "integer" : "string";
        if (part->kind != RAPI_FLAG && part->kind != RAPI_TEXT && part->kind != RAPI_TEXTS)
            continue;
        json_t *one = parameter(part->from, "query", type, part->doc);
        if (part->kind == RAPI_TEXTS)
            json_object_set_new(
                one, "schema",
                json_make("{ss, s{ss}}", "type", "array", "items", "type", "string"));
        json_array_append_new(list, one);
    }
    if (route->kind == RAPI_LIST)
        json_array_append_new(list, parameter("bulk", "query", "integer", "1: with all fields."));
    if (rapi_route_queues(route)) {
        json_array_append_new(
            list, parameter("dry-run", "query", "integer", "1: it is checked, and not done."));
        if (!has_parameter(list, "reason"))
            json_array_append_new(
                list, parameter("reason", "query", "string", "Why; goes on record with the job."));
    }
    return list;
}

static const char *type_of(enum field_type type)
{
    switch (type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME:
    case FIELD_TYPE_UUID:
    case FIELD_TYPE_ENUM:
        return "string";
    case FIELD_TYPE_UINT:
    case FIELD_TYPE_INT:
        return "integer";
    case FIELD_TYPE_FLOAT:
        return "number";
    case FIELD_TYPE_BOOL:
        return "boolean";
    case FIELD_TYPE_STRINGS:
    case FIELD_TYPE_OBJECTS:
        return "array";
    case FIELD_TYPE_JSON:
        return NULL;
    case FIELD_TYPE_OBJECT:
        return "object";
    }
    g_assert_not_reached();
}

static json_t *schema_of(const struct rapi_route *route)
{
    json_t *properties = json_object();
    if (!route->opcode) {
        json_decref(properties);
        return json_make("{ss}", "type", "object");
    }
    for (const struct field *field = route->opcode->params->fields(); field->name; field++) {
        const char *type = type_of(field->type);
        g_autofree char *doc = record_doc(field->doc);
        json_t *one = json_make("{ss}", "description", doc);
        if (type)
            json_object_set_new(one, "type", json_string(type));
        json_object_set_new(properties, field->name, one);
    }
    for (size_t i = 0; i < route->part_count; i++) /* these stand elsewhere */
        if (*route->parts[i].to && route->parts[i].kind != RAPI_RENAME)
            json_object_del(properties, route->parts[i].to);
    return json_make("{ss, so}", "type", "object", "properties", properties);
}

static json_t *operation_of(const struct rapi_route *route)
{
    static const char *const yes = "It is so; of what is queued, the id of the job.";
    const struct rapi_part *body = rapi_route_part(route, RAPI_BODY, NULL);
    bool none = route->kind == RAPI_NONE;
    g_autofree char *id = g_strdup_printf("%s_%s", route->method, route->name);
    json_t *operation =
        json_make("{ss, ss, so, s{s{ss}}}", "operationId", id, "summary",
                  none ? route->what : route->doc, "parameters", parameters_of(route), "responses",
                  none ? "501" : "200", "description", none ? route->what : yes);
    if (body)
        json_object_set_new(operation, "requestBody",
                            json_make("{ss, s{s{so}}}", "description", body->doc, "content",
                                      "application/json", "schema", schema_of(route)));
    return operation;
}

struct http_answer *rapi_own_openapi(struct rapi_call *call, GError **error)
{
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    json_t *paths = json_object();
    for (size_t i = 0; i < count; i++) {
        json_t *path = json_object_get(paths, table[i].path);
        g_autofree char *method = g_ascii_strdown(table[i].method, -1);
        if (!path) {
            path = json_object();
            json_object_set_new(paths, table[i].path, path);
        }
        json_object_set_new(path, method, operation_of(&table[i]));
    }
    json_t *api =
        json_make("{ss, s{ss, ss}, so, s[{s[]}], s{s{s{ss, ss}}}}", "openapi", "3.1.0", "info",
                  "title", "Fettle", "version", FETTLE_VERSION, "paths", paths, "security", "basic",
                  "components", "securitySchemes", "basic", "type", "http", "scheme", "basic");
    return rapi_answer_master(call, api, error);
}
