/* Links, lists and changes that objects of identity v3 have in common. */
#include <string.h>

#include "core/api/identity_private.h"

static char *url_of(const struct api_call *call, const char *path)
{
    return g_strconcat(call->base, "/", api_service_name(API_IDENTITY), "/v3/", path, NULL);
}

json_t *with_links(const struct api_call *call, json_t *object, const char *collection,
                   const char *id)
{
    g_autofree char *path = g_strconcat(collection, "/", id, NULL);
    g_autofree char *url = url_of(call, path);
    json_object_set_new(object, "links", json_make("{s:s}", "self", url));
    return object;
}

bool not_found(const char *what, const char *id, GError **error)
{
    fettle_set_error(error, UNKNOWN_ENTITY, "Could not find %s: %s.", what, id);
    return false;
}

struct http_answer *answer_one(const struct api_call *call, const char *wrapper, json_t *object,
                               const char *id, GError **error)
{
    if (object)
        return api_answer(call, json_make("{s:o}", wrapper, object));
    not_found(wrapper, id, error);
    return NULL;
}

/* --- lists --- */

static bool fits_one(const struct api_call *call, const json_t *object, const char *name,
                     const char *wanted, bool *ret_fits, GError **error)
{
    const json_t *member = json_object_get(object, name);
    *ret_fits = true;
    if (json_is_boolean(member)) {
        bool truth = true;
        if (wanted[0] && !api_query_bool(call, name, true, &truth, error))
            return false;
        *ret_fits = truth == json_is_true(member);
    } else if (json_is_string(member)) {
        *ret_fits = !strcmp(json_string_value(member), wanted);
    } else if (json_is_null(member)) {
        *ret_fits = false;
    }
    return true;
}

static bool fits(const struct api_call *call, const json_t *object, bool *ret_fits, GError **error)
{
    GHashTableIter iter;
    void *name, *wanted;
    *ret_fits = true;
    g_hash_table_iter_init(&iter, call->query);
    while (*ret_fits && g_hash_table_iter_next(&iter, &name, &wanted))
        if (!fits_one(call, object, name, wanted, ret_fits, error))
            return false;
    return true;
}

struct http_answer *answer_list(const struct api_call *call, const char *wrapper, json_t *array,
                                GError **error)
{
    json_autoptr all = array;
    json_autoptr chosen = json_array();
    size_t i;
    json_t *object;
    json_array_foreach(all, i, object) {
        bool is;
        if (!fits(call, object, &is, error))
            return NULL;
        if (is)
            json_array_append(chosen, object);
    }
    const struct http_request *request = call->request;
    g_autofree char *self =
        g_strconcat(call->base, request->path, request->query[0] ? "?" : "", request->query, NULL);
    return api_answer(call, json_make("{s:O, s:{s:s, s:n, s:n}}", wrapper, chosen, "links", "self",
                                      self, "previous", "next"));
}

/* --- changes --- */

char *identity_id(struct api *api)
{
    guchar bytes[16];
    api->crypto->ops->random(api->crypto, bytes, sizeof bytes);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

bool is_own_or_admin(const struct api_call *call, const char *user_id, GError **error)
{
    if (api_is_admin(call) || !strcmp(call->token->user_id, user_id))
        return true;
    fettle_set_error(error, PERMISSION, "%s about another user needs the role admin",
                     call->route->name);
    return false;
}

const json_t *given_of(const struct api_call *call)
{
    return json_object_get(call->json, call->route->wrapper);
}

bool check_domain(const char *domain_id, const char *member, GError **error)
{
    if (!domain_id[0] || !strcmp(domain_id, IDENTITY_DOMAIN))
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: there is no domain but %s", member, IDENTITY_DOMAIN);
    return false;
}

/* "api_user" is a user. */
static const char *word_of(const char *kind)
{
    return kind + strlen("api_");
}

static const char *text_of(const struct record *record, const void *value, const char *name)
{
    return *(char *const *)((const char *)value + record_field(record, name)->offset);
}

/* What was, and over it what is given of the members that such an object has. */
static void *merge(const struct naming *naming, const void *old, GError **error)
{
    json_autoptr object =
        old ? record_to_json(naming->record, old) : json_make("{s:s}", "id", naming->id);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)given_of(naming->call), name, value)
        if (!json_is_null(value) && strcmp(name, "password") != 0 &&
            strcmp(name, "properties") != 0 && record_field(naming->record, name))
            json_object_set(object, name, value);
    void *merged = record_parse(naming->record, object, RECORD_KEEP, error);
    if (!merged)
        g_prefix_error(error, "%s.", word_of(naming->record->name));
    return merged;
}

static bool decide_named(struct identity *identity, GPtrArray *changes, void *data, GError **error)
{
    const struct naming *naming = data;
    const struct record *record = naming->record;
    const void *old = naming->create ? NULL : identity_get(identity, record->name, naming->id);
    if (!naming->create && !old)
        return not_found(word_of(record->name), naming->id, error);
    void *value = merge(naming, old, error);
    if (!value)
        return false;
    const char *name = text_of(record, value, "name");
    const void *other = identity_named(identity, record->name, name);
    bool free_name = !other || !strcmp(text_of(record, other, "id"), naming->id);
    if (!free_name)
        fettle_set_error(error, ALREADY_EXISTS,
                         "Conflict occurred attempting to store %s - Duplicate entry found with "
                         "name %s.",
                         word_of(record->name), name);
    if (free_name && naming->finish)
        naming->finish(naming, value, old);
    if (free_name)
        identity_put(changes, record, naming->id, value);
    record_free(record, value);
    return free_name;
}

bool put_named(struct naming *naming, GError **error)
{
    text_set(&naming->call->resource, naming->id);
    return identity_change(naming->call->api->identity, decide_named, naming, error);
}

struct taking {
    const char *kind, *id;
};

static bool decide_taking(struct identity *identity, GPtrArray *changes, void *data, GError **error)
{
    static const char *const of_projects[] = {"api_quota", "api_default_type"};
    const struct taking *taking = data;
    const char *id = taking->id;
    if (!identity_get(identity, taking->kind, id))
        return not_found(word_of(taking->kind), id, error);
    identity_drop(changes, taking->kind, id);
    g_autoptr(GPtrArray) assignments = identity_list(identity, "api_assignment");
    for (guint i = 0; i < assignments->len; i++) {
        const struct api_assignment *assignment = assignments->pdata[i];
        if (strcmp(assignment->user_id, id) != 0 && strcmp(assignment->project_id, id) != 0 &&
            strcmp(assignment->role_id, id) != 0)
            continue;
        g_autofree char *key = g_strdup_printf("%s/%s/%s", assignment->user_id,
                                               assignment->project_id, assignment->role_id);
        identity_drop(changes, "api_assignment", key);
    }
    g_autoptr(GPtrArray) credentials = identity_list(identity, "api_credential");
    for (guint i = 0; i < credentials->len; i++) {
        const struct api_credential *credential = credentials->pdata[i];
        if (!strcmp(credential->user_id, id) || !strcmp(credential->project_id, id))
            identity_drop(changes, "api_credential", credential->id);
    }
    for (guint i = 0; i < G_N_ELEMENTS(of_projects); i++)
        if (identity_get(identity, of_projects[i], id))
            identity_drop(changes, of_projects[i], id);
    return true;
}

struct http_answer *take_away(struct api_call *call, const char *kind, const char *id,
                              GError **error)
{
    struct taking taking = {kind, id};
    text_set(&call->resource, id);
    return identity_change(call->api->identity, decide_taking, &taking, error)
               ? api_answer(call, NULL)
               : NULL;
}

bool has_role_in(const struct api *api, const char *user_id, const char *project_id)
{
    g_autoptr(GPtrArray) assignments = identity_list(api->identity, "api_assignment");
    for (guint i = 0; i < assignments->len; i++) {
        const struct api_assignment *assignment = assignments->pdata[i];
        if (!strcmp(assignment->user_id, user_id) && !strcmp(assignment->project_id, project_id))
            return true;
    }
    return false;
}
