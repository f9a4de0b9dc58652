/* Projects. */
#include <string.h>

#include "core/api/identity_private.h"

static json_t *project_to_json(const struct api_call *call, const struct api_project *project)
{
    if (!project)
        return NULL;
    json_t *tags = json_array();
    for (guint i = 0; i < project->tags->len; i++)
        json_array_append_new(tags, json_string(project->tags->pdata[i]));
    return with_links(call,
                      json_make("{s:s, s:s, s:s, s:s, s:b, s:s, s:b, s:o, s:{}}", "id", project->id,
                                "name", project->name, "domain_id", IDENTITY_DOMAIN, "description",
                                project->description, "enabled", project->enabled, "parent_id",
                                IDENTITY_DOMAIN, "is_domain", false, "tags", tags, "options"),
                      "projects", project->id);
}

static struct http_answer *answer_project(const struct api_call *call, const char *id,
                                          GError **error)
{
    const struct api_project *project = identity_get(call->api->identity, "api_project", id);
    return answer_one(call, "project", project_to_json(call, project), id, error);
}

/* Those that a user has a role in; `user_id` NULL: all. `enabled`: no others. */
static struct http_answer *list_projects(const struct api_call *call, const char *user_id,
                                         bool enabled, GError **error)
{
    g_autoptr(GPtrArray) projects = identity_list(call->api->identity, "api_project");
    json_t *array = json_array();
    for (guint i = 0; i < projects->len; i++) {
        const struct api_project *project = projects->pdata[i];
        if ((!enabled || project->enabled) &&
            (!user_id || has_role_in(call->api, user_id, project->id)))
            json_array_append_new(array, project_to_json(call, project));
    }
    return answer_list(call, "projects", array, error);
}

struct http_answer *api_identity_projects_list(struct api_call *call, GError **error)
{
    return list_projects(call, NULL, false, error);
}

struct http_answer *api_identity_own_projects_list(struct api_call *call, GError **error)
{
    return list_projects(call, call->token->user_id, true, error);
}

struct http_answer *api_identity_user_projects_list(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "user_id");
    if (!is_own_or_admin(call, id, error))
        return NULL;
    if (identity_get(call->api->identity, "api_user", id))
        return list_projects(call, id, false, error);
    not_found("user", id, error);
    return NULL;
}

struct http_answer *api_identity_project_show(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "project_id");
    if (api_is_admin(call) || has_role_in(call->api, call->token->user_id, id))
        return answer_project(call, id, error);
    fettle_set_error(error, PERMISSION,
                     "A project that one has no role in is shown to the role admin alone.");
    return NULL;
}

static struct http_answer *put_project(struct api_call *call, const char *id, bool create,
                                       GError **error)
{
    const struct api_project_body *body = call->body;
    struct naming naming = {call, &api_project_record, id, create, NULL, NULL};
    if (!check_domain(body->domain_id, "project.domain_id", error))
        return NULL;
    if (body->is_domain || (body->parent_id[0] && strcmp(body->parent_id, IDENTITY_DOMAIN) != 0)) {
        fettle_set_error(error, WRONG_INPUT,
                         "project.%s: projects stand below the domain %s, and none is one",
                         body->is_domain ? "is_domain" : "parent_id", IDENTITY_DOMAIN);
        return NULL;
    }
    return put_named(&naming, error) ? answer_project(call, id, error) : NULL;
}

struct http_answer *api_identity_project_create(struct api_call *call, GError **error)
{
    g_autofree char *id = identity_id(call->api);
    return put_project(call, id, true, error);
}

struct http_answer *api_identity_project_update(struct api_call *call, GError **error)
{
    return put_project(call, api_var(call, "project_id"), false, error);
}

struct http_answer *api_identity_project_delete(struct api_call *call, GError **error)
{
    return take_away(call, "api_project", api_var(call, "project_id"), error);
}
