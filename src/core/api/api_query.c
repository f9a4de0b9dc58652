/* What stands behind "?", and lists by pages. */
#include <string.h>

#include "core/api/api_private.h"

GHashTable *api_query_parse(const char *query)
{
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GPtrArray) pairs = http_query_parse(query);
    for (guint i = 0; i < pairs->len; i += 2)
        g_hash_table_replace(table, g_steal_pointer(&pairs->pdata[i]),
                             g_steal_pointer(&pairs->pdata[i + 1]));
    return table;
}

const char *api_var(const struct api_call *call, const char *name)
{
    for (guint i = 0; call->vars && i + 1 < call->vars->len; i += 2)
        if (!strcmp(g_ptr_array_index(call->vars, i), name))
            return g_ptr_array_index(call->vars, i + 1);
    return "";
}

const char *api_query(const struct api_call *call, const char *name)
{
    return g_hash_table_lookup(call->query, name);
}

/* -1: neither. */
static int truth_of(const char *text)
{
    static const char *const yes[] = {"1", "t", "true", "on", "y", "yes", NULL};
    static const char *const no[] = {"0", "f", "false", "off", "n", "no", NULL};
    g_autofree char *lower = g_ascii_strdown(text, -1);
    return g_strv_contains(yes, lower) ? 1 : g_strv_contains(no, lower) ? 0 : -1;
}

bool api_query_bool(const struct api_call *call, const char *name, bool otherwise, bool *ret,
                    GError **error)
{
    const char *text = api_query(call, name);
    int truth = text ? truth_of(text) : otherwise;
    *ret = truth > 0;
    if (truth >= 0)
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: \"%s\" is neither true nor false", name, text);
    return false;
}

const struct config *api_config(const struct api_call *call, GError **error)
{
    const struct config *config = cell_config(call->api->cell);
    if (!config)
        fettle_set_error(error, TEMPORARY,
                         "nothing is known of the cluster yet: no master has answered");
    return config;
}

bool api_is_admin(const struct api_call *call)
{
    return call->token && call->token->highest == NEED_ADMIN;
}

bool api_all_tenants(const struct api_call *call)
{
    const char *text = api_query(call, "all_tenants");
    return api_is_admin(call) && text && truth_of(text) > 0;
}

bool api_no_times(const struct api_call *call, GError **error)
{
    static const char *const times[] = {"created_at", "updated_at", NULL};
    for (const char *const *time = times; *time; time++)
        if (api_query(call, *time)) {
            fettle_set_error(error, WRONG_INPUT,
                             "%s: lists are not restricted by times here; sort by created_at",
                             *time);
            return false;
        }
    return true;
}

/* --- bodies --- */

GPtrArray *api_words(const json_t *json, const char *field, GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    if (json && !json_is_object(json)) {
        fettle_set_error(error, WRONG_INPUT, "%s: must be an object", field);
        return NULL;
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)json, key, value) {
        const char *text = json_string_value(value);
        g_autofree char *control = text_control(key);
        bool good_key = *key && g_utf8_strlen(key, -1) <= 255 && !strchr(key, '=') && !control;
        if (!good_key || !text || g_utf8_strlen(text, -1) > 255) {
            fettle_set_error(error, WRONG_INPUT, "%s.%s: %s", field, key,
                             good_key ? "must be a text of 255 letters at most"
                                      : "a key has 1 to 255 letters, none of which is =");
            return NULL;
        }
        g_ptr_array_add(words, g_strconcat(key, "=", text, NULL));
    }
    if (words->len <= LIMIT_METADATA)
        return g_steal_pointer(&words);
    fettle_set_error(error, LIMIT, "%s: has more than %d keys", field, LIMIT_METADATA);
    return NULL;
}

/* --- pages --- */

static bool read_count(const struct api_call *call, const char *name, guint otherwise, guint *ret,
                       GError **error)
{
    const char *text = api_query(call, name);
    guint64 number = otherwise;
    *ret = otherwise;
    if (text && !g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT32, &number, NULL)) {
        fettle_set_error(error, WRONG_INPUT, "%s: \"%s\" is no number from 0 to %d", name, text,
                         G_MAXINT32);
        return false;
    }
    *ret = (guint)number;
    return true;
}

/* Path and query of the page behind that item. */
static char *next_of(const struct api_call *call, const char *marker)
{
    g_autoptr(GString) query = g_string_new(NULL);
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(call->query), (GCompareFunc)strcmp);
    for (GList *name = names; name; name = name->next) {
        if (!strcmp(name->data, "marker") || !strcmp(name->data, "offset"))
            continue;
        g_autofree char *key = g_uri_escape_string(name->data, NULL, false);
        g_autofree char *value =
            g_uri_escape_string(g_hash_table_lookup(call->query, name->data), NULL, false);
        g_string_append_printf(query, "%s=%s&", key, value);
    }
    return g_strdup_printf("%s?%smarker=%s", call->request->path, query->str, marker);
}

bool api_page(const struct api_call *call, const GPtrArray *ids, struct api_page *ret,
              GError **error)
{
    guint limit, offset;
    const char *marker = api_query(call, "marker");
    *ret = (struct api_page){0};
    if (!read_count(call, "limit", LIMIT_API_PAGE, &limit, error) ||
        !read_count(call, "offset", 0, &offset, error))
        return false;
    if (marker && *marker) {
        while (ret->from < ids->len && strcmp(g_ptr_array_index(ids, ret->from), marker) != 0)
            ret->from++;
        if (ret->from == ids->len) {
            g_set_error(error, FETTLE_ERROR,
                        call->service == API_VOLUME ? FETTLE_ERROR_UNKNOWN_ENTITY
                                                    : FETTLE_ERROR_WRONG_INPUT,
                        "marker %s: there is none of that id in this list", marker);
            return false;
        }
        ret->from++;
    }
    ret->from = MIN(ids->len, ret->from + MIN(offset, ids->len));
    ret->until = MIN(ids->len, ret->from + MIN(limit, LIMIT_API_PAGE));
    /* As OpenStack's services: behind a full page there may be more. */
    if (limit && ret->until - ret->from == MIN(limit, LIMIT_API_PAGE))
        ret->next = next_of(call, g_ptr_array_index(ids, ret->until - 1));
    return true;
}

void api_page_clear(struct api_page *page)
{
    g_free(page->next);
}
