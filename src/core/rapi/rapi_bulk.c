/*
 * Lists with all fields, of any length: LIMIT_RAPI_PAGE objects at a time, or fewer if these are
 * too much for one answer, are asked of LuxiD, and their rows are written over into objects from
 * its text, as the client takes them. So no tree is made, one page is in memory, and a list may be
 * longer than one answer of LuxiD.
 */
#include <string.h>

#include "base/limits.h"
#include "core/rapi/rapi_private.h"
#include "core/rapi/rapi_rows.h"
#include "proto/http/accept.h"

#define PIECE_BYTES KIB(64) /* written over at once */
#define BUSY_MS 500         /* until luxid is asked again for a page that it had no time for … */
#define BUSY_MOST_MS 60000  /* … for so long: what has begun cannot be refused any more */

struct bulk {
    struct http_bytes bytes;
    const struct env *env;
    struct rapi_luxid *luxid;
    enum face face;
    const char *resource, *field; /* of whose keys */
    struct rapi_page page;
    GPtrArray *fields;
    GPtrArray *names; /* of the fields, as `"name": ` */
    GPtrArray *keys;  /* of all objects, JSON texts */
    guint next;       /* the first of those that are not asked for yet */
    guint most;       /* so many are asked for at once */
    bool one_is_gone; /* of this page: so it is asked for by a filter */
    char *text;       /* of a page */
    struct rapi_rows rows;
    struct rapi_span *cells;
    GString *out;
    gsize taken; /* of `out` */
    bool begun, ended;
};

static void bulk_free(struct http_bytes *bytes)
{
    struct bulk *bulk = (struct bulk *)bytes;
    g_ptr_array_unref(bulk->fields);
    g_ptr_array_unref(bulk->names);
    g_ptr_array_unref(bulk->keys);
    g_free(bulk->text);
    g_free(bulk->cells);
    g_string_free(bulk->out, TRUE);
    g_free(bulk);
}

/* --- pages --- */

/* Those between two keys, which may be others meanwhile; all, if one page has them. */
static json_t *filter_of(const struct bulk *bulk, guint until)
{
    json_t *parts = json_make("[s]", "&");
    if (bulk->next)
        json_array_append_new(parts, json_make("[sso]", ">=", bulk->field,
                                               json_parse_own(bulk->keys->pdata[bulk->next])));
    if (until < bulk->keys->len)
        json_array_append_new(
            parts, json_make("[sso]", "<", bulk->field, json_parse_own(bulk->keys->pdata[until])));
    if (json_array_size(parts) > 1)
        return parts;
    json_decref(parts);
    return json_null();
}

/* By their keys, which LuxiD looks up: it need not look at all objects for each page. */
static json_t *keys_of(const struct bulk *bulk, guint until)
{
    json_t *keys = json_array();
    for (guint i = bulk->next; i < until && bulk->keys->len > bulk->most; i++)
        json_array_append_new(keys, json_parse_own(bulk->keys->pdata[i]));
    return keys;
}

/* How a page is asked for: a key that is no more is an error there, but of jobs. */
static struct rapi_page page_of(const struct bulk *bulk)
{
    return bulk->one_is_gone ? (struct rapi_page){"Query", true}
                             : rapi_page_of(bulk->face, bulk->resource);
}

static bool try_page(struct bulk *bulk, guint until, GError **error)
{
    struct rapi_page page = page_of(bulk);
    json_t *fields = rapi_fields_json(bulk->fields);
    json_t *args = page.pairs ? json_make("[soo]", bulk->resource, fields, filter_of(bulk, until))
                              : json_make("[oo]", keys_of(bulk, until), fields);
    g_clear_pointer(&bulk->text, g_free);
    bulk->text = bulk->luxid->call_text(bulk->luxid, bulk->face, page.method, args, NULL, 0, error);
    if (!bulk->text)
        return false;
    bulk->next = until;
    bulk->page = page;
    rapi_rows_begin(&bulk->rows, bulk->text, page.pairs);
    return true;
}

/* What is too much for one answer is asked for in halves, and so is what comes after it. */
static bool ask_page(struct bulk *bulk, GError **error)
{
    bulk->one_is_gone = false;
    for (;;) {
        g_autoptr(GError) local = NULL;
        guint until = MIN(bulk->next + bulk->most, bulk->keys->len);
        if (try_page(bulk, until, &local))
            return true;
        if (fettle_error_is(local, UNKNOWN_ENTITY) && !bulk->one_is_gone) {
            bulk->one_is_gone = true;
            continue;
        }
        if (!fettle_error_is(local, LIMIT) || until < bulk->next + 2) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
        bulk->most = (until - bulk->next) / 2;
    }
}

/* Another page, after the first. */
static bool ask_again(struct bulk *bulk, GError **error)
{
    gint64 since_ms = bulk->env->ops->boot_ms(bulk->env);
    for (;;) {
        g_autoptr(GError) local = NULL;
        if (ask_page(bulk, &local))
            return true;
        if (fettle_error_is(local, TEMPORARY) &&
            bulk->env->ops->boot_ms(bulk->env) - since_ms < BUSY_MOST_MS &&
            env_sleep(bulk->env, BUSY_MS))
            continue;
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
}

/* --- writing over --- */

static void write_row(struct bulk *bulk)
{
    g_string_append(bulk->out, bulk->begun ? ", {" : "[{");
    bulk->begun = true;
    for (guint i = 0; i < bulk->fields->len; i++) {
        g_string_append(bulk->out, bulk->names->pdata[i]);
        g_string_append_len(bulk->out, bulk->cells[i].at, (gssize)bulk->cells[i].length);
    }
    g_string_append_c(bulk->out, '}');
}

/* More in `out`, unless that was all. */
static bool write_more(struct bulk *bulk, GError **error)
{
    g_string_truncate(bulk->out, 0);
    bulk->taken = 0;
    while (!bulk->ended && bulk->out->len < PIECE_BYTES) {
        if (rapi_rows_next(&bulk->rows, bulk->cells, bulk->fields->len)) {
            write_row(bulk);
            continue;
        }
        if (bulk->rows.broken) {
            fettle_set_error(error, PROTOCOL, "luxid: %s: the answer is no list of rows",
                             bulk->page.method);
            return false;
        }
        if (bulk->next < bulk->keys->len) {
            if (!ask_again(bulk, error))
                return false;
            continue;
        }
        g_string_append(bulk->out, bulk->begun ? "]" : "[]");
        bulk->ended = true;
    }
    return true;
}

static gssize bulk_read(struct http_bytes *bytes, void *place, gsize length, GError **error)
{
    struct bulk *bulk = (struct bulk *)bytes;
    if (bulk->taken == bulk->out->len && !bulk->ended && !write_more(bulk, error))
        return -1;
    gsize taken = MIN(length, bulk->out->len - bulk->taken);
    memcpy(place, bulk->out->str + bulk->taken, taken);
    bulk->taken += taken;
    return (gssize)taken;
}

/* --- the answer --- */

static struct bulk *bulk_new(struct rapi_call *call, GPtrArray *keys)
{
    const struct rapi_route *route = call->route;
    struct bulk *bulk = g_new0(struct bulk, 1);
    bulk->bytes = (struct http_bytes){.read = bulk_read, .free = bulk_free};
    bulk->env = call->rapi->env;
    bulk->luxid = call->rapi->luxid;
    bulk->face = route->face;
    bulk->resource = route->what;
    bulk->field = rapi_route_part(route, RAPI_KEY, NULL)->from;
    bulk->most = LIMIT_RAPI_PAGE;
    bulk->fields = rapi_fields(route->face, route->what, false);
    bulk->names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < bulk->fields->len; i++)
        g_ptr_array_add(bulk->names, g_strdup_printf("%s\"%s\": ", i ? ", " : "",
                                                     (char *)bulk->fields->pdata[i]));
    bulk->cells = g_new0(struct rapi_span, bulk->fields->len);
    bulk->keys = keys;
    bulk->out = g_string_new(NULL);
    return bulk;
}

/* The serial of the configuration; 0: nobody knows. */
static gint64 ask_serial(struct rapi_call *call)
{
    json_autoptr info = rapi_ask(call, "QueryClusterInfo", json_array(), NULL);
    return json_integer_value(json_object_get(info, "serial"));
}

/* A list that is in one piece is not worth it. */
static bool takes_gzip(const struct rapi_call *call)
{
    const char *header = http_request_header(call->request, "accept-encoding");
    double share = accept_share(header, "gzip");
    return call->rapi->gzip && (share < 0 ? accept_share(header, "*") : share) > 0;
}

struct http_answer *rapi_bulk(struct rapi_call *call, GPtrArray *keys, GError **error)
{
    struct bulk *bulk = bulk_new(call, keys);
    gint64 first = ask_serial(call);
    bool asked = ask_page(bulk, error), whole = bulk->next == keys->len;
    if (!asked || !write_more(bulk, error)) {
        bulk_free(&bulk->bytes);
        return NULL;
    }
    gint64 last = whole ? ask_serial(call) : 0;
    g_autofree char *end = whole ? g_strdup_printf("%" G_GINT64_FORMAT, last) : g_strdup("");
    g_autofree char *serials = g_strdup_printf("%" G_GINT64_FORMAT "-%s", first, end);
    struct http_answer *answer = http_answer_new(200);
    http_answer_add_header(answer, "Fettle-Serials", serials);
    http_answer_add_header(answer, "Vary", "Accept-Encoding");
    if (bulk->ended) {
        http_answer_set_body(answer, "application/json", g_strdup(bulk->out->str));
        bulk_free(&bulk->bytes);
        return answer;
    }
    bool packed = takes_gzip(call);
    if (packed)
        http_answer_add_header(answer, "Content-Encoding", "gzip");
    http_answer_set_stream(answer, "application/json",
                           packed ? call->rapi->gzip(&bulk->bytes) : &bulk->bytes,
                           HTTP_LENGTH_UNKNOWN);
    return answer;
}
