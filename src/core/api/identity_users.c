/* Users. */
#include <string.h>

#include "core/api/identity_private.h"
#include "proto/env.h"

static void set_if_any(json_t *json, const char *name, const char *text)
{
    if (text[0])
        json_object_set_new(json, name, json_string(text));
}

static json_t *user_to_json(const struct api_call *call, const struct api_user *user)
{
    if (!user)
        return NULL;
    json_t *json = json_make("{s:s, s:s, s:s, s:b, s:n, s:{}}", "id", user->id, "name", user->name,
                             "domain_id", IDENTITY_DOMAIN, "enabled", user->enabled,
                             "password_expires_at", "options");
    set_if_any(json, "description", user->description);
    set_if_any(json, "email", user->email);
    set_if_any(json, "default_project_id", user->default_project_id);
    return with_links(call, json, "users", user->id);
}

static struct http_answer *answer_user(const struct api_call *call, const char *id, GError **error)
{
    const struct api_user *user = identity_get(call->api->identity, "api_user", id);
    return answer_one(call, "user", user_to_json(call, user), id, error);
}

struct http_answer *api_identity_users_list(struct api_call *call, GError **error)
{
    g_autoptr(GPtrArray) users = identity_list(call->api->identity, "api_user");
    json_t *array = json_array();
    for (guint i = 0; i < users->len; i++)
        json_array_append_new(array, user_to_json(call, users->pdata[i]));
    return answer_list(call, "users", array, error);
}

struct http_answer *api_identity_user_show(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "user_id");
    return is_own_or_admin(call, id, error) ? answer_user(call, id, error) : NULL;
}

/* A new password, and an end of being enabled, end the tokens of before. */
static void finish_user(const struct naming *naming, void *value, const void *old)
{
    struct api_user *user = value;
    const struct api_user *before = old;
    const struct env *env = naming->call->api->env;
    if (naming->kept)
        text_set(&user->password, naming->kept);
    if (before && (naming->kept || (before->enabled && !user->enabled)))
        user->tokens_before_us = MAX((guint64)env->ops->wall_us(env), before->tokens_before_us + 1);
}

static struct http_answer *put_user(struct api_call *call, const char *id, bool create,
                                    const char *password, GError **error)
{
    const struct crypto_ops *crypto = call->api->crypto->ops;
    g_autofree char *kept = NULL;
    if (password[0]) {
        kept = crypto->password_keep(call->api->crypto, password, error);
        if (!kept)
            return NULL;
    }
    struct naming naming = {call, &api_user_record, id, create, finish_user, kept};
    return put_named(&naming, error) ? answer_user(call, id, error) : NULL;
}

struct http_answer *api_identity_user_create(struct api_call *call, GError **error)
{
    const struct api_user_body *body = call->body;
    g_autofree char *id = identity_id(call->api);
    if (!check_domain(body->domain_id, "user.domain_id", error))
        return NULL;
    return put_user(call, id, true, body->password, error);
}

struct http_answer *api_identity_user_update(struct api_call *call, GError **error)
{
    const struct api_user_body *body = call->body;
    const char *id = api_var(call, "user_id");
    if (!check_domain(body->domain_id, "user.domain_id", error))
        return NULL;
    if (!identity_get(call->api->identity, "api_user", id)) {
        not_found("user", id, error);
        return NULL;
    }
    return put_user(call, id, false, body->password, error);
}

struct http_answer *api_identity_user_delete(struct api_call *call, GError **error)
{
    return take_away(call, "api_user", api_var(call, "user_id"), error);
}

/* --- one's own password --- */

struct own_change {
    struct api *api;
    const char *user_id, *was, *kept;
};

static bool decide_own(struct identity *identity, GPtrArray *changes, void *data, GError **error)
{
    const struct own_change *own = data;
    const struct api_user *user = identity_get(identity, "api_user", own->user_id);
    if (!user || strcmp(user->password, own->was) != 0) {
        fettle_set_error(error, VERSION_CONFLICT, "The password was changed meanwhile by another.");
        return false;
    }
    record_autoptr(api_user) changed = api_user_copy(user);
    text_set(&changed->password, own->kept);
    changed->tokens_before_us =
        MAX((guint64)own->api->env->ops->wall_us(own->api->env), user->tokens_before_us + 1);
    identity_put(changes, &api_user_record, user->id, changed);
    return true;
}

/* By whoever has a token of his and knows the password: 401 if he does not. */
struct http_answer *api_identity_password_change(struct api_call *call, GError **error)
{
    struct api *api = call->api;
    const struct api_password_body *body = call->body;
    const char *id = api_var(call, "user_id");
    const struct api_user *user = identity_get(api->identity, "api_user", id);
    text_set(&call->resource, id);
    if (strcmp(call->token->user_id, id) != 0 || !user) {
        fettle_set_error(error, PERMISSION,
                         "This changes one's own password alone; PATCH of the user changes it, by "
                         "somebody with the role admin");
        return NULL;
    }
    g_autofree char *was = g_strdup(user->password);
    g_autoptr(GError) why = NULL;
    if (!login_check(call, id, was[0] ? was : NULL, body->original_password, &why)) {
        if (fettle_error_is(why, PERMISSION))
            return api_unauthorized(call, why->message);
        g_propagate_error(error, g_steal_pointer(&why));
        return NULL;
    }
    g_autofree char *kept = api->crypto->ops->password_keep(api->crypto, body->password, error);
    struct own_change own = {api, id, was, kept};
    if (!kept || !identity_change(api->identity, decide_own, &own, error))
        return NULL;
    return api_answer(call, NULL);
}
