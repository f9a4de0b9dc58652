/* Who gets a token. */
#include <string.h>

#include "core/api/identity_private.h"
#include "proto/env.h"

/* IDENTITY_FAILURES of a user within it cost him the next one, at all front ends of his store. */
#define LOGIN_MINUTE_US (60 * G_USEC_PER_SEC)
/* One refusal for whatever was wrong: it shall not tell strangers who is there. */
#define LOGIN_REFUSED                                                                              \
    "The request you have made requires authentication: there is no such user, or the secret is "  \
    "wrong."
/* Nobody's: checked in place of what a user has who is not there, or who has failed too often, so
 * that each is refused no sooner than others. */
#define NOBODYS_PASSWORD "$y$j9T$7l.Dd0H1fZ2m0p1Vw0rC/.$0000000000000000000000000000000000000000000"

/* Whether he has locked himself out with those, and that was less than a minute ago. Attempts
 * meanwhile are not among them. */
static bool is_locked_by(const gint64 at_us[IDENTITY_FAILURES], gint64 now_us)
{
    gint64 first = at_us[IDENTITY_FAILURES - 1], last = at_us[0];
    return first && last - first < LOGIN_MINUTE_US && now_us >= last &&
           now_us < last + LOGIN_MINUTE_US;
}

static bool is_locked(struct api *api, const char *user_id, bool *ret_is, GError **error)
{
    gint64 at_us[IDENTITY_FAILURES];
    if (!identity_failures(api->identity, user_id, 0, at_us, error))
        return false;
    *ret_is = is_locked_by(at_us, api->env->ops->wall_us(api->env));
    return true;
}

static bool note_failure(struct api_call *call, const char *user_id, GError **error)
{
    gint64 at_us[IDENTITY_FAILURES], now_us = call->api->env->ops->wall_us(call->api->env);
    if (!identity_failures(call->api->identity, user_id, now_us, at_us, error))
        return false;
    if (is_locked_by(at_us, now_us))
        text_set(&call->note, "five logins of this user failed within a minute: the next one is "
                              "his for none");
    return true;
}

bool login_check(struct api_call *call, const char *user_id, const char *kept, const char *secret,
                 GError **error)
{
    struct api *api = call->api;
    bool is = false, locked = false, now = false;
    if (kept && !is_locked(api, user_id, &locked, error))
        return false;
    if (locked)
        text_set(&call->note, "too many logins of this user have failed");
    if (!api->crypto->ops->password_is(api->crypto, kept && !locked ? kept : NOBODYS_PASSWORD,
                                       secret, &is, error) ||
        !identity_refresh(api->identity, error))
        return false;
    /* asked again: others may have failed meanwhile, of whose guesses this may be one */
    if (kept && !locked && is && !is_locked(api, user_id, &now, error))
        return false;
    if (kept && !locked && is && !now)
        return true;
    if (kept && !locked && !is && !note_failure(call, user_id, error))
        return false;
    fettle_set_error(error, PERMISSION, LOGIN_REFUSED);
    return false;
}

/* --- ways to show who one is --- */

/* Who somebody has shown to be; what the token is to have of the one that he had. */
struct shown {
    char *user_id, *project_id, *credential_id; /* NULL: not yet; "" */
    gint64 expires_us;
    GPtrArray *methods;
    char *audit_id; /* of the first token; NULL: there is none */
};

static void shown_clear(struct shown *shown)
{
    g_free(shown->user_id);
    g_free(shown->project_id);
    g_free(shown->credential_id);
    g_free(shown->audit_id);
    g_ptr_array_unref(shown->methods);
}

static bool is_shown(struct shown *shown, const char *user_id, const char *method, GError **error)
{
    if (shown->user_id && strcmp(shown->user_id, user_id) != 0) {
        fettle_set_error(error, PERMISSION, "The methods of this login show different users.");
        return false;
    }
    text_set(&shown->user_id, user_id);
    if (!g_ptr_array_find_with_equal_func(shown->methods, method, g_str_equal, NULL))
        g_ptr_array_add(shown->methods, g_strdup(method));
    return true;
}

static const struct api_user *find_user(const struct api *api, const struct api_user_named *named)
{
    if (!named || !is_domain(named->domain))
        return NULL;
    return named->id[0] ? identity_get(api->identity, "api_user", named->id)
                        : identity_named(api->identity, "api_user", named->name);
}

static bool by_password(struct api_call *call, const struct api_by_password *by,
                        struct shown *shown, GError **error)
{
    struct api *api = call->api;
    const struct api_user *user = by ? find_user(api, by->user) : NULL;
    if (!by) {
        fettle_set_error(error, WRONG_INPUT, "auth.identity.password: missing");
        return false;
    }
    g_autofree char *user_id = g_strdup(user ? user->id : "");
    g_autofree char *kept = user && user->password[0] ? g_strdup(user->password) : NULL;
    if (user)
        text_set(&call->resource, user_id);
    if (!login_check(call, user_id, kept, by->user->password, error))
        return false;
    user = identity_get(api->identity, "api_user", user_id);
    if (user && !strcmp(user->password, kept) && user->enabled)
        return is_shown(shown, user_id, "password", error);
    fettle_set_error(error, PERMISSION, LOGIN_REFUSED); /* it was changed meanwhile */
    return false;
}

static bool by_token(struct api_call *call, const struct api_by_token *by, struct shown *shown,
                     GError **error)
{
    if (!by) {
        fettle_set_error(error, WRONG_INPUT, "auth.identity.token: missing");
        return false;
    }
    struct api_token *token = token_open(call->api, by->id, error);
    if (!token)
        return false;
    text_set(&call->resource, token->user_id);
    text_set(&shown->audit_id, token->audit_ids->pdata[token->audit_ids->len - 1]);
    text_set(&shown->credential_id, token->credential_id);
    if (token->credential_id[0])
        text_set(&shown->project_id, token->project_id);
    shown->expires_us = token->expires_us;
    bool done = is_shown(shown, token->user_id, "token", error);
    for (guint i = 0; done && i < token->methods->len; i++)
        done = is_shown(shown, token->user_id, token->methods->pdata[i], error);
    api_token_free(token);
    return done;
}

static const struct api_credential *find_credential(const struct api *api,
                                                    const struct api_by_credential *by)
{
    const struct api_user *user = find_user(api, by->user);
    if (by->id[0])
        return identity_get(api->identity, "api_credential", by->id);
    g_autoptr(GPtrArray) all = identity_list(api->identity, "api_credential");
    for (guint i = 0; user && i < all->len; i++) {
        const struct api_credential *credential = all->pdata[i];
        if (!strcmp(credential->user_id, user->id) && !strcmp(credential->name, by->name))
            return credential;
    }
    return NULL;
}

static bool by_credential(struct api_call *call, const struct api_by_credential *by,
                          struct shown *shown, GError **error)
{
    struct api *api = call->api;
    const struct api_credential *credential = by ? find_credential(api, by) : NULL;
    if (!by) {
        fettle_set_error(error, WRONG_INPUT, "auth.identity.application_credential: missing");
        return false;
    }
    g_autofree char *id = g_strdup(credential ? credential->id : "");
    g_autofree char *user_id = g_strdup(credential ? credential->user_id : "");
    g_autofree char *kept = credential ? g_strdup(credential->secret) : NULL;
    if (credential)
        text_set(&call->resource, user_id);
    if (!login_check(call, user_id, kept, by->secret, error))
        return false;
    credential = identity_get(api->identity, "api_credential", id);
    if (!credential) {
        fettle_set_error(error, PERMISSION, LOGIN_REFUSED);
        return false;
    }
    text_set(&shown->credential_id, id);
    text_set(&shown->project_id, credential->project_id);
    if (credential->expires_us)
        shown->expires_us =
            MIN((gint64)credential->expires_us, api->env->ops->wall_us(api->env) + TOKEN_LIFE_US);
    return is_shown(shown, user_id, "application_credential", error);
}

static bool show_who(struct api_call *call, struct shown *shown, GError **error)
{
    const struct api_login *login = call->body;
    const struct api_login_by *by = login->identity;
    for (guint i = 0; i < by->methods->len; i++) {
        const char *method = by->methods->pdata[i];
        bool done = false;
        if (!strcmp(method, "password"))
            done = by_password(call, by->password, shown, error);
        else if (!strcmp(method, "token"))
            done = by_token(call, by->token, shown, error);
        else if (!strcmp(method, "application_credential"))
            done = by_credential(call, by->application_credential, shown, error);
        else
            fettle_set_error(error, PERMISSION,
                             "auth.identity.methods: there is no method %s, only password, token "
                             "and application_credential",
                             method);
        if (!done)
            return false;
    }
    return true;
}

/* --- what for --- */

static bool choose_project(struct api_call *call, const struct api_project_named *named,
                           const struct shown *shown, char **ret_id, GError **error)
{
    const struct identity *identity = call->api->identity;
    const struct api_project *project = NULL;
    if (is_domain(named->domain))
        project = named->id[0] ? identity_get(identity, "api_project", named->id)
                               : identity_named(identity, "api_project", named->name);
    if (!project) {
        fettle_set_error(error, PERMISSION,
                         "The project is not there, or disabled, or the user has no role in it; "
                         "somebody with the role admin can give him one.");
        return false;
    }
    if (shown->project_id && strcmp(shown->project_id, project->id) != 0) {
        fettle_set_error(error, PERMISSION,
                         "An application credential gives tokens for its own project alone.");
        return false;
    }
    *ret_id = g_strdup(project->id);
    return true;
}

/* The default project, if he has a role there; "": none. */
static char *default_project(struct api *api, const char *user_id)
{
    const struct api_user *user = identity_get(api->identity, "api_user", user_id);
    struct api_token *trial = token_new(user_id, user ? user->default_project_id : "", "");
    bool good = token_look_up(api, trial, NULL);
    char *id = g_strdup(good ? trial->project_id : "");
    api_token_free(trial);
    return id;
}

static bool choose_scope(struct api_call *call, const struct shown *shown, char **ret_project,
                         GError **error)
{
    const struct api_login *login = call->body;
    record_autoptr(api_scope) scope = NULL;
    if (login->scope && !json_is_null(login->scope) && !json_is_string(login->scope)) {
        scope = api_scope_parse(login->scope, RECORD_STRICT, error);
        if (!scope) {
            g_prefix_error(error, "auth.scope.");
            return false;
        }
    } else if (json_is_string(login->scope) &&
               strcmp(json_string_value(login->scope), "unscoped") != 0) {
        fettle_set_error(error, WRONG_INPUT, "auth.scope: must be an object, or \"unscoped\"");
        return false;
    }
    if (scope && scope->project)
        return choose_project(call, scope->project, shown, ret_project, error);
    if (scope && (scope->domain || scope->system)) {
        fettle_set_error(error, PERMISSION,
                         "Nobody has a role in a domain or in the system; ask for a project.");
        return false;
    }
    *ret_project = shown->project_id ? g_strdup(shown->project_id)
                   : scope || json_is_string(login->scope)
                       ? g_strdup("")
                       : default_project(call->api, shown->user_id);
    return true;
}

static struct http_answer *issue(struct api_call *call, struct api_token *token,
                                 const struct shown *shown, GError **error)
{
    for (guint i = 0; i < shown->methods->len; i++)
        g_ptr_array_add(token->methods, g_strdup(shown->methods->pdata[i]));
    if (shown->audit_id)
        g_ptr_array_add(token->audit_ids, g_strdup(shown->audit_id));
    token->expires_us = shown->expires_us;
    token_stamp(call->api, token);
    g_autofree char *text =
        token_look_up(call->api, token, error) ? token_seal(call->api, token, error) : NULL;
    if (!text)
        return NULL;
    struct http_answer *answer =
        api_answer(call, json_make("{s:o}", "token", token_to_json(call, token)));
    http_answer_add_header(answer, "X-Subject-Token", text);
    http_answer_add_header(answer, "Vary", "X-Auth-Token");
    return answer;
}

struct http_answer *api_identity_token_issue(struct api_call *call, GError **error)
{
    struct shown shown = {.methods = g_ptr_array_new_with_free_func(g_free)};
    g_autofree char *project_id = NULL;
    struct http_answer *answer = NULL;
    if (identity_refresh(call->api->identity, error) && show_who(call, &shown, error) &&
        choose_scope(call, &shown, &project_id, error)) {
        struct api_token *token =
            token_new(shown.user_id, project_id, shown.credential_id ? shown.credential_id : "");
        answer = issue(call, token, &shown, error);
        api_token_free(token);
    }
    shown_clear(&shown);
    return answer;
}
