/* Application credentials. */
#include <string.h>

#include "core/api/identity_private.h"
#include "proto/env.h"

#define SECRET_BYTES 64
#define LIMIT_CREDENTIALS 100 /* of a user */

static json_t *credential_to_json(const struct api_call *call,
                                  const struct api_credential *credential)
{
    if (!credential)
        return NULL;
    json_t *roles = json_array();
    for (guint i = 0; i < credential->roles->len; i++) {
        const struct api_role *role =
            identity_get(call->api->identity, "api_role", credential->roles->pdata[i]);
        if (role)
            json_array_append_new(roles, json_make("{s:s, s:s, s:n}", "id", role->id, "name",
                                                   role->name, "domain_id"));
    }
    json_t *json = json_make("{s:s, s:s, s:s, s:s, s:o, s:o, s:b, s:n}", "id", credential->id,
                             "name", credential->name, "user_id", credential->user_id, "project_id",
                             credential->project_id, "roles", roles, "expires_at",
                             api_time((gint64)credential->expires_us), "unrestricted",
                             credential->unrestricted, "system");
    json_object_set_new(json, "description",
                        credential->description[0] ? json_string(credential->description)
                                                   : json_null());
    g_autofree char *collection =
        g_strconcat("users/", credential->user_id, "/application_credentials", NULL);
    return with_links(call, json, collection, credential->id);
}

/* Of the path, if it is of that user. */
static const struct api_credential *find(const struct api_call *call)
{
    const struct api_credential *credential =
        identity_get(call->api->identity, "api_credential", api_var(call, "credential_id"));
    return credential && !strcmp(credential->user_id, api_var(call, "user_id")) ? credential : NULL;
}

struct http_answer *api_identity_credentials_list(struct api_call *call, GError **error)
{
    const char *user_id = api_var(call, "user_id");
    if (!is_own_or_admin(call, user_id, error))
        return NULL;
    g_autoptr(GPtrArray) all = identity_list(call->api->identity, "api_credential");
    json_t *array = json_array();
    for (guint i = 0; i < all->len; i++) {
        const struct api_credential *credential = all->pdata[i];
        if (!strcmp(credential->user_id, user_id))
            json_array_append_new(array, credential_to_json(call, credential));
    }
    return answer_list(call, "application_credentials", array, error);
}

struct http_answer *api_identity_credential_show(struct api_call *call, GError **error)
{
    return is_own_or_admin(call, api_var(call, "user_id"), error)
               ? answer_one(call, "application_credential", credential_to_json(call, find(call)),
                            api_var(call, "credential_id"), error)
               : NULL;
}

/* Who has but a restricted credential shall not make himself another one. */
static bool may_manage(const struct api_call *call, GError **error)
{
    const struct api_credential *by =
        identity_get(call->api->identity, "api_credential", call->token->credential_id);
    if (!call->token->credential_id[0] || (by && by->unrestricted))
        return true;
    fettle_set_error(error, PERMISSION,
                     "Using method 'application_credential' is not allowed for managing additional "
                     "application credentials.");
    return false;
}

struct http_answer *api_identity_credential_delete(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "credential_id");
    if (!is_own_or_admin(call, api_var(call, "user_id"), error) || !may_manage(call, error))
        return NULL;
    if (find(call))
        return take_away(call, "api_credential", id, error);
    not_found("application_credential", id, error);
    return NULL;
}

/* --- a new one --- */

static bool read_expiry(const struct api_call *call, const char *text, guint64 *ret_us,
                        GError **error)
{
    const struct env *env = call->api->env;
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) time = text[0] ? g_date_time_new_from_iso8601(text, utc) : NULL;
    *ret_us = 0;
    if (!text[0])
        return true;
    if (!time) {
        fettle_set_error(error, WRONG_INPUT,
                         "application_credential.expires_at: \"%s\" is no time as "
                         "2027-01-31T12:00:00",
                         text);
        return false;
    }
    gint64 us = g_date_time_to_unix(time) * G_USEC_PER_SEC + g_date_time_get_microsecond(time);
    *ret_us = (guint64)MAX(us, 0);
    if (us > env->ops->wall_us(env))
        return true;
    fettle_set_error(error, WRONG_INPUT, "application_credential.expires_at: %s is over", text);
    return false;
}

static bool has_token_role(const struct api_call *call, const char *name)
{
    return g_ptr_array_find_with_equal_func(call->token->roles, name, g_str_equal, NULL);
}

/* Those that are named, of the token's; all of these if none is. */
static bool choose_roles(const struct api_call *call, GPtrArray *roles, GError **error)
{
    const struct api_credential_body *body = call->body;
    const struct identity *identity = call->api->identity;
    for (guint i = 0; i < body->roles->len; i++) {
        const struct api_role_named *named = body->roles->pdata[i];
        const struct api_role *role = named->id[0]
                                          ? identity_get(identity, "api_role", named->id)
                                          : identity_named(identity, "api_role", named->name);
        if (!role || !has_token_role(call, role->name)) {
            fettle_set_error(error, WRONG_INPUT,
                             "application_credential.roles[%u]: the token has no role %s", i,
                             named->id[0] ? named->id : named->name);
            return false;
        }
        g_ptr_array_add(roles, g_strdup(role->id));
    }
    for (guint i = 0; !body->roles->len && i < call->token->roles->len; i++) {
        const struct api_role *role =
            identity_named(identity, "api_role", call->token->roles->pdata[i]);
        if (role)
            g_ptr_array_add(roles, g_strdup(role->id));
    }
    return true;
}

static bool decide_credential(struct identity *identity, GPtrArray *changes, void *data,
                              GError **error)
{
    const struct api_credential *made = data;
    if (!identity_get(identity, "api_user", made->user_id))
        return not_found("user", made->user_id, error);
    g_autoptr(GPtrArray) all = identity_list(identity, "api_credential");
    guint own = 0;
    for (guint i = 0; i < all->len; i++) {
        const struct api_credential *other = all->pdata[i];
        if (strcmp(other->user_id, made->user_id) != 0)
            continue;
        own++;
        if (strcmp(other->name, made->name) != 0)
            continue;
        fettle_set_error(error, ALREADY_EXISTS,
                         "Conflict occurred attempting to store application_credential - Duplicate "
                         "entry found with name %s.",
                         made->name);
        return false;
    }
    if (own >= LIMIT_CREDENTIALS) {
        fettle_set_error(error, PERMISSION,
                         "Unable to create additional application credentials, maximum of %d "
                         "already exceeded for user.",
                         LIMIT_CREDENTIALS);
        return false;
    }
    identity_put(changes, &api_credential_record, made->id, made);
    return true;
}

static bool check_new(const struct api_call *call, GError **error)
{
    const struct api_credential_body *body = call->body;
    const struct api_token *token = call->token;
    if (strcmp(token->user_id, api_var(call, "user_id")) != 0) {
        fettle_set_error(error, PERMISSION,
                         "Application credentials are made by the user whose they are alone.");
        return false;
    }
    if (!token->project_id[0] ||
        (body->project_id[0] && strcmp(body->project_id, token->project_id) != 0)) {
        fettle_set_error(error, WRONG_INPUT,
                         "An application credential is for the project of the token, which is %s.",
                         token->project_id[0] ? token->project_id : "for none");
        return false;
    }
    return may_manage(call, error);
}

struct http_answer *api_identity_credential_create(struct api_call *call, GError **error)
{
    struct api *api = call->api;
    const struct api_credential_body *body = call->body;
    record_autoptr(api_credential) made = api_credential_new();
    if (!check_new(call, error) || !read_expiry(call, body->expires_at, &made->expires_us, error) ||
        !choose_roles(call, made->roles, error))
        return NULL;
    g_autofree char *secret =
        body->secret[0] ? g_strdup(body->secret) : random_text(api, SECRET_BYTES);
    g_free(made->id);
    made->id = identity_id(api);
    text_set(&made->name, body->name);
    text_set(&made->description, body->description);
    text_set(&made->user_id, call->token->user_id);
    text_set(&made->project_id, call->token->project_id);
    made->unrestricted = body->unrestricted;
    text_set(&call->resource, made->id);
    g_free(made->secret);
    made->secret = api->crypto->ops->password_keep(api->crypto, secret, error);
    if (!made->secret || !identity_change(api->identity, decide_credential, made, error))
        return NULL;
    json_t *json = credential_to_json(call, made);
    json_object_set_new(json, "secret", json_string(secret)); /* this once */
    return answer_one(call, "application_credential", json, made->id, error);
}
