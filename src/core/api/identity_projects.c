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
    json_t *json = json_make("{s:s, s:s, s:s, s:s, s:b, s:s, s:b, s:o, s:{}}", "id", project->id,
                             "name", project->name, "domain_id", IDENTITY_DOMAIN, "description",
                             project->description, "enabled", project->enabled, "parent_id",
                             IDENTITY_DOMAIN, "is_domain", false, "tags", tags, "options");
    for (guint i = 0; i < project->properties->len; i++) {
        g_auto(GStrv) pair = g_strsplit(project->properties->pdata[i], "=", 2);
        if (!json_object_get(json, pair[0]))
            json_object_set_new(json, pair[0], json_string(pair[1]));
    }
    return with_links(call, json, "projects", project->id);
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

/* What is said by other keys than those of projects, over what was said by them; null: nothing. */
static bool read_properties(const json_t *said, GPtrArray **ret_set, GError **error)
{
    json_autoptr texts = said ? json_deep_copy(said) : json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)said, key, value)
        if (json_is_null(value))
            json_object_set_new(texts, key, json_string(""));
    *ret_set = api_words(texts, "project", error);
    return *ret_set != NULL;
}

/* Whether that KEY=VALUE is said anew. */
static bool is_said(const GPtrArray *set, const char *word)
{
    size_t length = strcspn(word, "=") + 1;
    for (guint i = 0; i < set->len; i++)
        if (!strncmp(set->pdata[i], word, length))
            return true;
    return false;
}

static void finish_project(const struct naming *naming, void *value, const void *old)
{
    struct api_project *project = value;
    g_autoptr(GPtrArray) before = project->properties;
    project->properties = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < before->len; i++)
        if (!is_said(naming->properties, before->pdata[i]))
            g_ptr_array_add(project->properties, g_strdup(before->pdata[i]));
    for (guint i = 0; i < naming->properties->len; i++)
        if (!g_str_has_suffix(naming->properties->pdata[i], "="))
            g_ptr_array_add(project->properties, g_strdup(naming->properties->pdata[i]));
}

static struct http_answer *put_project(struct api_call *call, const char *id, bool create,
                                       GError **error)
{
    const struct api_project_body *body = call->body;
    g_autoptr(GPtrArray) properties = NULL;
    struct naming naming = {call, &api_project_record, id, create, finish_project, NULL, NULL};
    if (!check_domain(body->domain_id, "project.domain_id", error))
        return NULL;
    if (body->is_domain || (body->parent_id[0] && strcmp(body->parent_id, IDENTITY_DOMAIN) != 0)) {
        fettle_set_error(error, WRONG_INPUT,
                         "project.%s: projects stand below the domain %s, and none is one",
                         body->is_domain ? "is_domain" : "parent_id", IDENTITY_DOMAIN);
        return NULL;
    }
    if (!read_properties(body->properties, &properties, error))
        return NULL;
    naming.properties = properties;
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
