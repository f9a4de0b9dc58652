/* Rows of kind LIST and ONE: objects of a resource of Query. */
#include <string.h>

#include "core/rapi/rapi_private.h"
#include "core/rapi/rapi_rows.h"

/* Calls of LUXI that answer plain rows: (keys, fields). */
static const struct {
    const char *resource, *method;
} plain[] = {
    {"instance", "QueryInstances"}, {"node", "QueryNodes"}, {"group", "QueryGroups"},
    {"network", "QueryNetworks"},   {"job", "QueryJobs"},   {"filter", "QueryFilters"},
};

struct rapi_page rapi_page_of(enum face face, const char *resource)
{
    for (size_t i = 0; i < G_N_ELEMENTS(plain); i++)
        if (!strcmp(plain[i].resource, resource) &&
            (face == FACE_GANETI || !strcmp(resource, "job")))
            return (struct rapi_page){plain[i].method, false};
    return (struct rapi_page){"Query", true};
}

json_t *rapi_fields_json(const GPtrArray *names)
{
    json_t *list = json_array();
    for (guint i = 0; i < names->len; i++)
        json_array_append_new(list, json_string(names->pdata[i]));
    return list;
}

/* --- one object --- */

static struct http_answer *no_such(const struct rapi_call *call, const char *key)
{
    return rapi_refuse(404, "%s \"%s\" does not exist", call->route->what, key);
}

/* Values of one object, a list; an empty one: there is none. */
static json_t *ask_values(struct rapi_call *call, const char *field, const char *key,
                          const GPtrArray *fields, GError **error)
{
    const char *resource = call->route->what;
    struct rapi_page page = rapi_page_of(call->route->face, resource);
    json_t *names = rapi_fields_json(fields);
    json_t *args = page.pairs ? json_make("[so[sss]]", resource, names, "=", field, key)
                              : json_make("[[s]o]", key, names);
    json_autoptr answer = rapi_ask(call, page.method, args, error);
    if (!answer)
        return NULL;
    json_t *row = json_array_get(page.pairs ? json_object_get(answer, "data") : answer, 0);
    json_t *values = json_array();
    size_t i;
    json_t *cell;
    json_array_foreach(row, i, cell)
        json_array_append(values, page.pairs ? json_array_get(cell, 1) : cell);
    return values;
}

static void add_tag(struct http_answer *answer, const json_t *object)
{
    const json_t *serial = json_object_get(object, "serial_no");
    if (!json_is_integer(serial))
        return;
    /* Weak: what runs may change without a change of the record. */
    g_autofree char *tag =
        g_strdup_printf("W/\"%" JSON_INTEGER_FORMAT "\"", json_integer_value(serial));
    http_answer_add_header(answer, "ETag", tag);
}

struct http_answer *rapi_run_one(struct rapi_call *call, GError **error)
{
    g_autoptr(GPtrArray) fields = rapi_fields(call->route->face, call->route->what, true);
    const struct rapi_part *part = rapi_route_part(call->route, RAPI_PATH, NULL);
    const char *key = rapi_var(call, part->from);
    g_autoptr(GError) local = NULL;
    guint64 id;
    if (!strcmp(call->route->what, "job") &&
        !g_ascii_string_to_unsigned(key, 10, 1, G_MAXINT64, &id, NULL))
        return no_such(call, key);
    json_autoptr values = ask_values(call, part->to, key, fields, &local);
    if (fettle_error_is(local, UNKNOWN_ENTITY) || (values && !json_array_size(values)))
        return no_such(call, key);
    if (!values) {
        g_propagate_error(error, g_steal_pointer(&local));
        return NULL;
    }
    json_autoptr object = json_object();
    for (guint i = 0; i < fields->len; i++)
        json_object_set(object, fields->pdata[i], json_array_get(values, i));
    if (json_is_null(json_object_get(object, "status"))) /* of a job: there is none of that id */
        return no_such(call, key);
    for (size_t i = 0; i < call->route->part_count; i++)
        if (call->route->parts[i].kind == RAPI_ALIAS)
            json_object_set(object, call->route->parts[i].to,
                            json_object_get(object, call->route->parts[i].from));
    struct http_answer *answer = rapi_answer(json_incref(object));
    add_tag(answer, object);
    return answer;
}

/* --- lists --- */

static int compare_keys(gconstpointer a, gconstpointer b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    guint64 first, second;
    if (g_ascii_string_to_unsigned(left, 10, 0, G_MAXUINT64, &first, NULL) &&
        g_ascii_string_to_unsigned(right, 10, 0, G_MAXUINT64, &second, NULL))
        return first < second ? -1 : first > second;
    return strcmp(left, right);
}

/* Keys of all objects, as JSON texts. */
static GPtrArray *ask_keys(struct rapi_call *call, const char *field, GError **error)
{
    const char *resource = call->route->what;
    struct rapi_page page = rapi_page_of(call->route->face, resource);
    json_t *args = page.pairs ? json_make("[s[s]n]", resource, field) : json_make("[[][s]]", field);
    g_autofree char *text = rapi_ask_text(call, page.method, args, error);
    if (!text)
        return NULL;
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    struct rapi_rows rows;
    struct rapi_span cell;
    rapi_rows_begin(&rows, text, page.pairs);
    while (rapi_rows_next(&rows, &cell, 1))
        g_ptr_array_add(keys, g_strndup(cell.at, cell.length));
    if (rows.broken) {
        fettle_set_error(error, PROTOCOL, "luxid: %s: the answer is no list of rows", page.method);
        return NULL;
    }
    return g_steal_pointer(&keys);
}

/* [{"id": "web1", "uri": "/2/instances/web1"}, …] */
static struct http_answer *uri_list(const struct rapi_call *call, const char *name,
                                    const GPtrArray *keys)
{
    g_autoptr(GString) text = g_string_new("[");
    for (guint i = 0; i < keys->len; i++) {
        const char *key = keys->pdata[i];
        json_autoptr value = json_parse_own(key);
        const char *words = json_is_string(value) ? json_string_value(value) : key;
        g_autofree char *uri = g_strdup_printf("%s/%s", call->route->path, words);
        g_string_append_printf(text, "%s{\"%s\": %s, \"uri\": ", i ? ", " : "", name, key);
        json_append_string(text, uri);
        g_string_append_c(text, '}');
    }
    g_string_append_c(text, ']');
    return rapi_answer_text(g_string_free(g_steal_pointer(&text), FALSE));
}

struct http_answer *rapi_run_list(struct rapi_call *call, GError **error)
{
    const struct rapi_part *key = rapi_route_part(call->route, RAPI_KEY, NULL);
    bool bulk;
    if (!rapi_query_flag(call, "bulk", &bulk, error))
        return NULL;
    GPtrArray *keys = ask_keys(call, key->from, error);
    if (!keys)
        return NULL;
    g_ptr_array_sort(keys, compare_keys);
    if (bulk)
        return rapi_bulk(call, keys, error);
    struct http_answer *answer = uri_list(call, key->to, keys);
    g_ptr_array_unref(keys);
    return answer;
}
