/* Tokens: sealed texts that nobody keeps. What their user may is looked up at each request. */
#include <string.h>

#include "core/api/identity_private.h"
#include "proto/env.h"

#define AUDIT_BYTES 16
#define SEALED_MAX 4096 /* bytes of a token */
#define LIMIT_REVOKED 4096

static gint64 now_us(const struct api *api)
{
    return api->env->ops->wall_us(api->env);
}

char *random_text(struct api *api, size_t bytes)
{
    g_autofree guchar *random = g_malloc(bytes);
    api->crypto->ops->random(api->crypto, random, bytes);
    char *text = g_strdelimit(g_base64_encode(random, bytes), "+", '-');
    g_strdelimit(text, "/", '_')[strcspn(text, "=")] = '\0';
    return text;
}

struct api_token *token_new(const char *user_id, const char *project_id, const char *credential_id)
{
    struct api_token *token = g_new0(struct api_token, 1);
    token->user_id = g_strdup(user_id);
    token->project_id = g_strdup(project_id);
    token->credential_id = g_strdup(credential_id);
    token->roles = g_ptr_array_new_with_free_func(g_free);
    token->methods = g_ptr_array_new_with_free_func(g_free);
    token->audit_ids = g_ptr_array_new_with_free_func(g_free);
    return token;
}

/* --- what its user may now --- */

static enum api_need need_of(const char *role)
{
    for (enum api_need need = NEED_ADMIN; need > NEED_TOKEN; need--)
        if (!strcmp(role, api_need_name(need)))
            return need;
    return NEED_TOKEN;
}

static bool refuse(GError **error, const char *why)
{
    fettle_set_error(error, PERMISSION, "%s", why);
    return false;
}

static bool may_by(const struct api_credential *credential, const char *role_id)
{
    return !credential ||
           g_ptr_array_find_with_equal_func(credential->roles, role_id, g_str_equal, NULL);
}

static void look_up_roles(struct api *api, struct api_token *token,
                          const struct api_credential *credential)
{
    g_autoptr(GPtrArray) assignments = identity_list(api->identity, "api_assignment");
    g_ptr_array_set_size(token->roles, 0);
    for (guint i = 0; i < assignments->len; i++) {
        const struct api_assignment *assignment = assignments->pdata[i];
        if (strcmp(assignment->user_id, token->user_id) != 0 ||
            strcmp(assignment->project_id, token->project_id) != 0 ||
            !may_by(credential, assignment->role_id))
            continue;
        const struct api_role *role = identity_get(api->identity, "api_role", assignment->role_id);
        if (!role)
            continue;
        g_ptr_array_add(token->roles, g_strdup(role->name));
        token->highest = MAX(token->highest, need_of(role->name));
    }
}

bool token_look_up(struct api *api, struct api_token *token, GError **error)
{
    const struct api_user *user = identity_get(api->identity, "api_user", token->user_id);
    if (!user || !user->enabled)
        return refuse(error, "The user is not there any more, or disabled.");
    text_set(&token->user_name, user->name);
    const struct api_credential *credential = NULL;
    if (token->credential_id[0]) {
        credential = identity_get(api->identity, "api_credential", token->credential_id);
        if (!credential || strcmp(credential->project_id, token->project_id) != 0 ||
            (credential->expires_us && (gint64)credential->expires_us <= now_us(api)))
            return refuse(error, "The application credential is not there any more, has expired, "
                                 "or is for another project.");
    }
    text_set(&token->project_name, "");
    token->highest = NEED_TOKEN;
    if (!token->project_id[0])
        return true;
    const struct api_project *project =
        identity_get(api->identity, "api_project", token->project_id);
    look_up_roles(api, token, credential);
    if (!project || !project->enabled || !token->roles->len)
        return refuse(error, "The project is not there, or disabled, or the user has no role in "
                             "it; somebody with the role admin can give him one.");
    text_set(&token->project_name, project->name);
    return true;
}

/* --- as text --- */

void token_stamp(struct api *api, struct api_token *token)
{
    const struct api_user *user = identity_get(api->identity, "api_user", token->user_id);
    token->issued_us = MAX(now_us(api), user ? (gint64)user->tokens_before_us + 1 : 0);
    if (!token->expires_us)
        token->expires_us = token->issued_us + TOKEN_LIFE_US;
    g_ptr_array_insert(token->audit_ids, 0, random_text(api, AUDIT_BYTES));
}

static void add_copies(GPtrArray *to, const GPtrArray *from)
{
    for (guint i = 0; i < from->len; i++)
        g_ptr_array_add(to, g_strdup(from->pdata[i]));
}

char *token_seal(struct api *api, const struct api_token *token, GError **error)
{
    record_autoptr(api_sealed) sealed = api_sealed_new();
    text_set(&sealed->user_id, token->user_id);
    text_set(&sealed->project_id, token->project_id);
    text_set(&sealed->credential_id, token->credential_id);
    add_copies(sealed->methods, token->methods);
    add_copies(sealed->audit_ids, token->audit_ids);
    sealed->issued_us = (guint64)token->issued_us;
    sealed->expires_us = (guint64)token->expires_us;
    g_autoptr(GString) text = g_string_new(NULL);
    record_append(&api_sealed_record, sealed, text);
    return api->crypto->ops->seal(api->crypto, text->str, text->len, error);
}

static struct api_token *unseal(struct api *api, const char *text, GError **error)
{
    size_t len;
    g_autofree char *plain =
        strlen(text) <= SEALED_MAX ? api->crypto->ops->open(api->crypto, text, &len, NULL) : NULL;
    json_autoptr json = plain ? json_parse_limited(plain, len, SEALED_MAX, NULL) : NULL;
    record_autoptr(api_sealed) sealed = json ? api_sealed_parse(json, RECORD_LAX, NULL) : NULL;
    if (!sealed) {
        refuse(error, "The token is none of ours, or older than the keys; get another one.");
        return NULL;
    }
    struct api_token *token = token_new(sealed->user_id, sealed->project_id, sealed->credential_id);
    add_copies(token->methods, sealed->methods);
    add_copies(token->audit_ids, sealed->audit_ids);
    token->issued_us = (gint64)sealed->issued_us;
    token->expires_us = (gint64)sealed->expires_us;
    return token;
}

/* Whether it is good in itself: neither too old nor taken back. */
static bool is_valid(struct api *api, const struct api_token *token, GError **error)
{
    const struct api_user *user = identity_get(api->identity, "api_user", token->user_id);
    if (token->expires_us <= now_us(api))
        return refuse(error, "The token has expired; get another one.");
    if (identity_get(api->identity, "api_revoked", token->audit_ids->pdata[0]))
        return refuse(error, "The token was revoked; get another one.");
    if (user && token->issued_us <= (gint64)user->tokens_before_us)
        return refuse(error, "The token is from before the user's password was changed, or he was "
                             "disabled; get another one.");
    return true;
}

struct api_token *token_open(struct api *api, const char *text, GError **error)
{
    struct api_token *token = unseal(api, text, error);
    if (token && is_valid(api, token, error) && token_look_up(api, token, error))
        return token;
    api_token_free(token);
    return NULL;
}

bool api_authenticate(struct api_call *call, GError **error)
{
    const char *text = http_request_header(call->request, "x-auth-token");
    if (!text[0])
        return refuse(error, "The request you have made requires authentication: it has no "
                             "X-Auth-Token.");
    if (!identity_refresh(call->api->identity, error))
        return false;
    call->token = token_open(call->api, text, error);
    return call->token;
}

/* --- as JSON --- */

static json_t *texts(const GPtrArray *list)
{
    json_t *array = json_array();
    for (guint i = 0; i < list->len; i++)
        json_array_append_new(array, json_string(list->pdata[i]));
    return array;
}

static json_t *roles_to_json(const struct api *api, const GPtrArray *names)
{
    json_t *array = json_array();
    for (guint i = 0; i < names->len; i++) {
        const struct api_role *role = identity_named(api->identity, "api_role", names->pdata[i]);
        if (role)
            json_array_append_new(array,
                                  json_make("{s:s, s:s}", "id", role->id, "name", role->name));
    }
    return array;
}

static void add_credential(const struct api *api, const char *id, json_t *json)
{
    const struct api_credential *credential = identity_get(api->identity, "api_credential", id);
    if (credential)
        json_object_set_new(json, "application_credential",
                            json_make("{s:s, s:s, s:b}", "id", id, "name", credential->name,
                                      "restricted", !credential->unrestricted));
}

json_t *token_to_json(const struct api_call *call, const struct api_token *token)
{
    json_t *json = json_make(
        "{s:o, s:{s:o, s:s, s:s, s:n}, s:o, s:o, s:o}", "methods", texts(token->methods), "user",
        "domain", domain_reference(), "id", token->user_id, "name", token->user_name,
        "password_expires_at", "audit_ids", texts(token->audit_ids), "expires_at",
        api_time_utc(token->expires_us), "issued_at", api_time_utc(token->issued_us));
    add_credential(call->api, token->credential_id, json);
    if (!token->project_id[0])
        return json;
    json_object_set_new(json, "project",
                        json_make("{s:o, s:s, s:s}", "domain", domain_reference(), "id",
                                  token->project_id, "name", token->project_name));
    json_object_set_new(json, "is_domain", json_false());
    json_object_set_new(json, "roles", roles_to_json(call->api, token->roles));
    if (!api_query(call, "nocatalog"))
        json_object_set_new(json, "catalog", catalog_of(call, token->project_id));
    return json;
}

/* --- the token in X-Subject-Token --- */

/* NULL: there is no such token, or it is another's. */
static struct api_token *subject_of(const struct api_call *call, GError **error)
{
    const char *text = http_request_header(call->request, "x-subject-token");
    g_autoptr(GError) why = NULL;
    struct api_token *token = token_open(call->api, text, &why);
    if (!token) {
        fettle_set_error(error, UNKNOWN_ENTITY, "Could not find the token in X-Subject-Token: %s",
                         why->message);
        return NULL;
    }
    if (is_own_or_admin(call, token->user_id, error))
        return token;
    api_token_free(token);
    return NULL;
}

struct http_answer *api_identity_token_show(struct api_call *call, GError **error)
{
    struct api_token *token = subject_of(call, error);
    if (!token)
        return NULL;
    struct http_answer *answer =
        api_answer(call, json_make("{s:o}", "token", token_to_json(call, token)));
    http_answer_add_header(answer, "X-Subject-Token",
                           http_request_header(call->request, "x-subject-token"));
    http_answer_add_header(answer, "Vary", "X-Auth-Token");
    api_token_free(token);
    return answer;
}

struct http_answer *api_identity_token_check(struct api_call *call, GError **error)
{
    struct api_token *token = subject_of(call, error);
    api_token_free(token);
    return token ? api_answer(call, NULL) : NULL;
}

struct revoking {
    struct api *api;
    const struct api_token *token;
};

static void revoke_one(const struct api_token *token, GPtrArray *changes)
{
    record_autoptr(api_revoked) revoked = api_revoked_new();
    text_set(&revoked->id, token->audit_ids->pdata[0]);
    revoked->expires_us = (guint64)token->expires_us;
    identity_put(changes, &api_revoked_record, revoked->id, revoked);
}

static void revoke_all(struct api *api, const struct api_user *user, GPtrArray *changes)
{
    record_autoptr(api_user) changed = api_user_copy(user);
    changed->tokens_before_us = MAX((guint64)now_us(api), user->tokens_before_us + 1);
    identity_put(changes, &api_user_record, user->id, changed);
}

/* Those that have expired meanwhile go. Where too many are left all of its user's are revoked,
 * which takes no room: anybody can get, and revoke, as many as he likes. */
static bool decide_revoking(struct identity *identity, GPtrArray *changes, void *data,
                            GError **error)
{
    const struct revoking *revoking = data;
    const struct api_token *token = revoking->token;
    const struct api_user *user = identity_get(identity, "api_user", token->user_id);
    g_autoptr(GPtrArray) all = identity_list(identity, "api_revoked");
    guint left = 0;
    for (guint i = 0; i < all->len; i++) {
        const struct api_revoked *old = all->pdata[i];
        if ((gint64)old->expires_us > now_us(revoking->api))
            left++;
        else
            identity_drop(changes, "api_revoked", old->id);
    }
    if (left < LIMIT_REVOKED)
        revoke_one(token, changes);
    else if (user)
        revoke_all(revoking->api, user, changes);
    return true;
}

struct http_answer *api_identity_token_revoke(struct api_call *call, GError **error)
{
    struct api_token *token = subject_of(call, error);
    if (!token)
        return NULL;
    struct revoking revoking = {call->api, token};
    text_set(&call->resource, token->audit_ids->pdata[0]);
    bool revoked = identity_change(call->api->identity, decide_revoking, &revoking, error);
    api_token_free(token);
    return revoked ? api_answer(call, NULL) : NULL;
}
