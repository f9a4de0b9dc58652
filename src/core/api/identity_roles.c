/* Roles, and who has them where. */
#include <string.h>

#include "core/api/identity_private.h"

/* Those that mean something stay as they are. */
static bool is_fixed(const struct api_role *role)
{
    static const char *const fixed[] = {"admin", "member", "reader", NULL};
    return role && g_strv_contains(fixed, role->name);
}

static json_t *role_to_json(const struct api_call *call, const struct api_role *role)
{
    if (!role)
        return NULL;
    json_t *options = json_object();
    if (is_fixed(role))
        json_object_set_new(options, "immutable", json_true());
    json_t *json = json_make("{s:s, s:s, s:n, s:o}", "id", role->id, "name", role->name,
                             "domain_id", "options", options);
    json_object_set_new(json, "description",
                        role->description[0] ? json_string(role->description) : json_null());
    return with_links(call, json, "roles", role->id);
}

static struct http_answer *answer_role(const struct api_call *call, const char *id, GError **error)
{
    const struct api_role *role = identity_get(call->api->identity, "api_role", id);
    return answer_one(call, "role", role_to_json(call, role), id, error);
}

struct http_answer *api_identity_roles_list(struct api_call *call, GError **error)
{
    g_autoptr(GPtrArray) roles = identity_list(call->api->identity, "api_role");
    json_t *array = json_array();
    for (guint i = 0; i < roles->len; i++)
        json_array_append_new(array, role_to_json(call, roles->pdata[i]));
    return answer_list(call, "roles", array, error);
}

struct http_answer *api_identity_role_show(struct api_call *call, GError **error)
{
    return answer_role(call, api_var(call, "role_id"), error);
}

static struct http_answer *put_role(struct api_call *call, const char *id, bool create,
                                    GError **error)
{
    const struct api_role_body *body = call->body;
    struct naming naming = {call, &api_role_record, id, create, NULL, NULL};
    if (body->domain_id[0]) {
        fettle_set_error(error, WRONG_INPUT, "role.domain_id: roles are of no domain");
        return NULL;
    }
    return put_named(&naming, error) ? answer_role(call, id, error) : NULL;
}

struct http_answer *api_identity_role_create(struct api_call *call, GError **error)
{
    g_autofree char *id = identity_id(call->api);
    return put_role(call, id, true, error);
}

/* PERMISSION: it stays as it is. */
static bool may_change(const struct api_call *call, const char *id, GError **error)
{
    const struct api_role *role = identity_get(call->api->identity, "api_role", id);
    if (!is_fixed(role))
        return true;
    fettle_set_error(error, PERMISSION,
                     "Cannot change or delete the immutable role %s: it has a meaning of its own.",
                     role->name);
    return false;
}

struct http_answer *api_identity_role_update(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "role_id");
    return may_change(call, id, error) ? put_role(call, id, false, error) : NULL;
}

struct http_answer *api_identity_role_delete(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "role_id");
    return may_change(call, id, error) ? take_away(call, "api_role", id, error) : NULL;
}

/* --- who has them --- */

/* What a path says; whether all three are there. */
struct grant {
    const char *user_id, *project_id, *role_id;
    char *key;
    bool away; /* it is taken away */
};

static bool check_grant(struct identity *identity, const struct grant *grant, GError **error)
{
    if (!identity_get(identity, "api_project", grant->project_id))
        return not_found("project", grant->project_id, error);
    if (!identity_get(identity, "api_user", grant->user_id))
        return not_found("user", grant->user_id, error);
    if (grant->role_id[0] && !identity_get(identity, "api_role", grant->role_id))
        return not_found("role", grant->role_id, error);
    return true;
}

static bool find_grant(struct identity *identity, const struct grant *grant, GError **error)
{
    if (!check_grant(identity, grant, error))
        return false;
    if (identity_get(identity, "api_assignment", grant->key))
        return true;
    fettle_set_error(error, UNKNOWN_ENTITY,
                     "Could not find role assignment with role: %s, user: %s, project: %s.",
                     grant->role_id, grant->user_id, grant->project_id);
    return false;
}

static bool decide_grant(struct identity *identity, GPtrArray *changes, void *data, GError **error)
{
    const struct grant *grant = data;
    if (grant->away) {
        identity_drop(changes, "api_assignment", grant->key);
        return find_grant(identity, grant, error);
    }
    if (!check_grant(identity, grant, error))
        return false;
    if (identity_get(identity, "api_assignment", grant->key))
        return true;
    record_autoptr(api_assignment) assignment = api_assignment_new();
    text_set(&assignment->user_id, grant->user_id);
    text_set(&assignment->project_id, grant->project_id);
    text_set(&assignment->role_id, grant->role_id);
    identity_put(changes, &api_assignment_record, grant->key, assignment);
    return true;
}

static struct grant grant_of(const struct api_call *call)
{
    struct grant grant = {.user_id = api_var(call, "user_id"),
                          .project_id = api_var(call, "project_id"),
                          .role_id = api_var(call, "role_id")};
    grant.key = g_strdup_printf("%s/%s/%s", grant.user_id, grant.project_id, grant.role_id);
    return grant;
}

static struct http_answer *change_grant(struct api_call *call, bool away, GError **error)
{
    struct grant grant = grant_of(call);
    grant.away = away;
    text_set(&call->resource, grant.key);
    bool changed = identity_change(call->api->identity, decide_grant, &grant, error);
    g_free(grant.key);
    return changed ? api_answer(call, NULL) : NULL;
}

struct http_answer *api_identity_role_grant(struct api_call *call, GError **error)
{
    return change_grant(call, false, error);
}

struct http_answer *api_identity_role_withdraw(struct api_call *call, GError **error)
{
    return change_grant(call, true, error);
}

struct http_answer *api_identity_role_check(struct api_call *call, GError **error)
{
    struct grant grant = grant_of(call);
    bool found = find_grant(call->api->identity, &grant, error);
    g_free(grant.key);
    return found ? api_answer(call, NULL) : NULL;
}

struct http_answer *api_identity_granted_roles_list(struct api_call *call, GError **error)
{
    struct identity *identity = call->api->identity;
    struct grant grant = grant_of(call);
    g_free(grant.key);
    if (!check_grant(identity, &grant, error))
        return NULL;
    g_autoptr(GPtrArray) assignments = identity_list(identity, "api_assignment");
    json_t *array = json_array();
    for (guint i = 0; i < assignments->len; i++) {
        const struct api_assignment *assignment = assignments->pdata[i];
        const struct api_role *role = identity_get(identity, "api_role", assignment->role_id);
        if (role && !strcmp(assignment->user_id, grant.user_id) &&
            !strcmp(assignment->project_id, grant.project_id))
            json_array_append_new(array, role_to_json(call, role));
    }
    return answer_list(call, "roles", array, error);
}

/* --- all assignments --- */

static void add_name(json_t *json, const char *name, bool domain)
{
    json_object_set_new(json, "name", json_string(name));
    if (domain)
        json_object_set_new(json, "domain", domain_reference());
}

static json_t *assignment_to_json(const struct api_call *call,
                                  const struct api_assignment *assignment, bool names)
{
    const struct identity *identity = call->api->identity;
    const struct api_user *user = identity_get(identity, "api_user", assignment->user_id);
    const struct api_role *role = identity_get(identity, "api_role", assignment->role_id);
    const struct api_project *project =
        identity_get(identity, "api_project", assignment->project_id);
    if (!user || !role || !project)
        return NULL;
    json_t *user_json = json_make("{s:s}", "id", user->id);
    json_t *role_json = json_make("{s:s}", "id", role->id);
    json_t *project_json = json_make("{s:s}", "id", project->id);
    if (names) {
        add_name(user_json, user->name, true);
        add_name(role_json, role->name, false);
        add_name(project_json, project->name, true);
    }
    g_autofree char *link = g_strdup_printf("%s/identity/v3/projects/%s/users/%s/roles/%s",
                                            call->base, project->id, user->id, role->id);
    return json_make("{s:o, s:o, s:{s:o}, s:{s:s}}", "user", user_json, "role", role_json, "scope",
                     "project", project_json, "links", "assignment", link);
}

static bool is_wanted(const struct api_call *call, const char *name, const char *id)
{
    const char *wanted = api_query(call, name);
    return !wanted || !strcmp(wanted, id);
}

/* There are none of groups, domains and the system. */
static bool asks_for_others(const struct api_call *call)
{
    return api_query(call, "group.id") || api_query(call, "scope.domain.id") ||
           api_query(call, "scope.system");
}

struct http_answer *api_identity_assignments_list(struct api_call *call, GError **error)
{
    const char *text = api_query(call, "include_names");
    bool names = true;
    if ((!text || text[0]) && !api_query_bool(call, "include_names", false, &names, error))
        return NULL;
    g_autoptr(GPtrArray) assignments = identity_list(call->api->identity, "api_assignment");
    json_t *array = json_array();
    for (guint i = 0; i < assignments->len && !asks_for_others(call); i++) {
        const struct api_assignment *assignment = assignments->pdata[i];
        json_t *json = is_wanted(call, "user.id", assignment->user_id) &&
                               is_wanted(call, "role.id", assignment->role_id) &&
                               is_wanted(call, "scope.project.id", assignment->project_id)
                           ? assignment_to_json(call, assignment, names)
                           : NULL;
        if (json)
            json_array_append_new(array, json);
    }
    return answer_list(call, "role_assignments", array, error);
}
