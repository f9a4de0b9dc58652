/* Types of volumes: lists, one, made, changed, taken away; their extra specs, who may use them, and
 * which of them a project's volumes have that name none. */
#include <string.h>

#include "core/api/identity_model.h"
#include "core/api/volume_common.h"
#include "core/config/volume_types.h"
#include "proto/env.h"

static bool may_use(const struct api_call *call, const struct volume_type *type)
{
    return type->public || api_is_admin(call) ||
           g_ptr_array_find_with_equal_func(type->projects, call->token->project_id, g_str_equal,
                                            NULL);
}

/* That of the path. */
static const struct volume_type *find_type(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "id");
    const struct config *config = api_config(call, error);
    const struct volume_type *type = config ? config_get(config, "volume_type", id, NULL) : NULL;
    if (type && may_use(call, type)) {
        text_set(&call->resource, id);
        return type;
    }
    if (config)
        fettle_set_error(error, UNKNOWN_ENTITY, "Volume type %s could not be found.", id);
    return NULL;
}

/* What a back end must be says where things are, so administrators alone are told. */
static json_t *view(const struct api_call *call, const struct volume_type *type)
{
    json_t *json = json_make("{s:s, s:s, s:o, s:b, s:b}", "id", type->uuid, "name", type->name,
                             "description", block_text(type->description), "is_public",
                             type->public, "os-volume-type-access:is_public", type->public);
    if (api_is_admin(call))
        json_object_set_new(json, "extra_specs", block_metadata(type->extra_specs));
    return json;
}

static struct http_answer *answer_type(struct api_call *call, const struct volume_type *type)
{
    return api_answer(call, json_make("{s:o}", "volume_type", view(call, type)));
}

/* --- lists --- */

static const char *type_id(const void *record)
{
    return ((const struct volume_type *)record)->uuid;
}

static const char *type_text(const struct config *config, const void *record, const char *key,
                             char *scratch)
{
    const struct volume_type *type = record;
    return !strcmp(key, "id")            ? type->uuid
           : !strcmp(key, "name")        ? type->name
           : !strcmp(key, "created_at")  ? "0"
           : !strcmp(key, "description") ? type->description
                                         : NULL;
}

static json_t *list_view(const struct api_call *call, const struct config *config,
                         const void *record)
{
    return view(call, record);
}

/* `is_public` of an administrator: true, and unless he says so; false; None: both. Others see
 * what they may use. */
static bool is_wanted(const struct api_call *call, const struct volume_type *type, bool all,
                      bool public)
{
    return api_is_admin(call) ? all || type->public == public : may_use(call, type);
}

struct http_answer *api_types_list(struct api_call *call, GError **error)
{
    const struct config *config = api_config(call, error);
    const char *wish = api_query(call, "is_public");
    bool all = wish && !g_ascii_strcasecmp(wish, "none"), public = true;
    if (!config || (!all && !api_query_bool(call, "is_public", true, &public, error)))
        return NULL;
    g_autoptr(GPtrArray) types = config_list(config, "volume_type");
    GPtrArray *items = g_ptr_array_new();
    for (guint i = 0; i < types->len; i++)
        if (is_wanted(call, types->pdata[i], all, public))
            g_ptr_array_add(items, types->pdata[i]);
    const struct block_list list = {.plural = "volume_types",
                                    .record = &volume_type_record,
                                    .items = items,
                                    .id = type_id,
                                    .text = type_text,
                                    .view = list_view,
                                    .detail = list_view};
    return block_answer_list(call, &list, true, error);
}

struct http_answer *api_type_default(struct api_call *call, GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    const char *name = config_cluster(config)->default_volume_type;
    const struct volume_type *type = block_default_type(call);
    if (!type && *name)
        type = config_find(config, "volume_type", name, NULL);
    return type && may_use(call, type)
               ? answer_type(call, type)
               : api_refuse(call, 404, "Default volume type can not be found.");
}

/* --- one --- */

struct http_answer *api_type_show(struct api_call *call, GError **error)
{
    const struct volume_type *type = find_type(call, error);
    return type ? answer_type(call, type) : NULL;
}

struct http_answer *api_type_create(struct api_call *call, GError **error)
{
    const struct type_create_body *body = call->body;
    bool public;
    GPtrArray *specs = api_words(body->extra_specs, "volume_type.extra_specs", error);
    if (!specs)
        return NULL;
    record_autoptr(add_volume_type_args) args = add_volume_type_args_new();
    block_set_words(&args->extra_specs, specs);
    if (!block_truth(body->os_volume_type_access_is_public,
                     "volume_type.os-volume-type-access:is_public", true, &public, error))
        return NULL;
    args->public = public;
    text_set(&args->name, body->name);
    text_set(&args->description, body->description);
    g_free(args->commit_id);
    args->commit_id = env_uuid(call->api->env);
    g_autofree char *id = g_strdup(args->commit_id);
    record_autoptr(commit_result) done = cell_call(call->api->cell, "add_volume_type", args, error);
    if (!done)
        return NULL;
    text_set(&call->resource, id);
    const struct volume_type *type = config_get(api_config(call, NULL), "volume_type", id, NULL);
    if (type)
        return answer_type(call, type);
    fettle_set_error(error, UNKNOWN_RESULT,
                     "volume type %s is made, and not to be seen here yet; look for it before you "
                     "ask again",
                     id);
    return NULL;
}

/* `args` is stolen; it is about the type of the path. */
static bool change_type(struct api_call *call, struct change_volume_type_args *args, GError **error)
{
    text_set(&args->volume_type, api_var(call, "id"));
    return block_change(call, "change_volume_type", &change_volume_type_args_record, args,
                        &args->commit_id, error);
}

struct http_answer *api_type_update(struct api_call *call, GError **error)
{
    const struct type_update_body *body = call->body;
    bool public;
    if (!find_type(call, error) ||
        !block_truth(body->is_public, "volume_type.is_public", false, &public, error))
        return NULL;
    struct change_volume_type_args *args = change_volume_type_args_new();
    args->public = body->is_public ? public : -1;
    text_set(&args->name, body->name);
    text_set(&args->description, body->description);
    const struct volume_type *type = change_type(call, args, error) ? find_type(call, error) : NULL;
    if (!type)
        return NULL;
    json_t *json = view(call, type); /* as Cinder's answer, which alone has the other word not */
    json_object_del(json, "os-volume-type-access:is_public");
    return api_answer(call, json_make("{s:o}", "volume_type", json));
}

struct http_answer *api_type_delete(struct api_call *call, GError **error)
{
    const struct volume_type *type = find_type(call, error);
    if (!type)
        return NULL;
    if (config_volume_of_type(api_config(call, NULL), type->uuid))
        return api_refuse(call, 400,
                          "Target volume type is still in use. Volume Type %s deletion is not "
                          "allowed with volumes present with the type.",
                          type->uuid);
    struct remove_volume_type_args *args = remove_volume_type_args_new();
    text_set(&args->volume_type, type->uuid);
    return block_change(call, "remove_volume_type", &remove_volume_type_args_record, args,
                        &args->commit_id, error)
               ? api_answer(call, NULL)
               : NULL;
}

/* --- extra specs --- */

struct http_answer *api_type_specs_list(struct api_call *call, GError **error)
{
    const struct volume_type *type = find_type(call, error);
    json_t *specs = !type                ? NULL
                    : api_is_admin(call) ? block_metadata(type->extra_specs)
                                         : json_object();
    return type ? api_answer(call, json_make("{s:o}", "extra_specs", specs)) : NULL;
}

static bool set_specs(struct api_call *call, const json_t *specs, const char *field, GError **error)
{
    GPtrArray *words = find_type(call, error) ? api_words(specs, field, error) : NULL;
    if (!words)
        return false;
    struct change_volume_type_args *args = change_volume_type_args_new();
    block_set_words(&args->extra_specs, words);
    return change_type(call, args, error);
}

struct http_answer *api_type_specs_add(struct api_call *call, GError **error)
{
    const struct type_specs_body *body = call->body;
    return set_specs(call, body->extra_specs, "extra_specs", error)
               ? api_answer(call, json_make("{s:O}", "extra_specs", body->extra_specs))
               : NULL;
}

/* NULL: there is none by the key of the path; an answer, or an error. */
static const char *find_spec(struct api_call *call, struct http_answer **ret_none, GError **error)
{
    const char *key = api_var(call, "key");
    const struct volume_type *type = find_type(call, error);
    const char *value = type && api_is_admin(call) ? volume_type_spec(type, key) : NULL;
    *ret_none = type && !value
                    ? api_refuse(call, 404, "Volume Type %s has no extra specs with key %s.",
                                 type->uuid, key)
                    : NULL;
    return value;
}

struct http_answer *api_type_spec_show(struct api_call *call, GError **error)
{
    struct http_answer *none;
    const char *value = find_spec(call, &none, error);
    return value ? api_answer(call, json_make("{s:s}", api_var(call, "key"), value)) : none;
}

struct http_answer *api_type_spec_set(struct api_call *call, GError **error)
{
    const char *key = api_var(call, "key");
    if (json_object_size(call->json) != 1 || !json_object_get(call->json, key))
        return api_refuse(call, 400,
                          "Request body and URI mismatch: the body must be an object "
                          "with the key of the path, %s, and no other",
                          key);
    return set_specs(call, call->json, "extra_specs", error)
               ? api_answer(call, json_incref(call->json))
               : NULL;
}

struct http_answer *api_type_spec_delete(struct api_call *call, GError **error)
{
    struct http_answer *none;
    if (!find_spec(call, &none, error))
        return none;
    struct change_volume_type_args *args = change_volume_type_args_new();
    g_ptr_array_add(args->extra_specs, g_strconcat(api_var(call, "key"), "=", NULL));
    return change_type(call, args, error) ? api_answer(call, NULL) : NULL;
}

/* --- who may use it --- */

struct http_answer *api_type_access_list(struct api_call *call, GError **error)
{
    const struct volume_type *type = find_type(call, error);
    if (!type)
        return NULL;
    if (type->public)
        return api_refuse(call, 404, "Access list not available for public volume types.");
    json_t *list = json_array();
    for (guint i = 0; i < type->projects->len; i++)
        json_array_append_new(list,
                              json_make("{s:s, s:s}", "volume_type_id", type->uuid, "project_id",
                                        (const char *)type->projects->pdata[i]));
    return api_answer(call, json_make("{s:o}", "volume_type_access", list));
}

static struct http_answer *change_access(struct api_call *call, bool add, GError **error)
{
    const struct type_access_body *body = call->body;
    const struct volume_type *type = find_type(call, error);
    if (!type)
        return NULL;
    if (type->public)
        return api_refuse(call, 409,
                          "Type access modification is not applicable to public volume type.");
    bool has = g_ptr_array_find_with_equal_func(type->projects, body->project, g_str_equal, NULL);
    if (add && has)
        return api_refuse(call, 409, "Volume type access for %s / %s combination already exists.",
                          type->uuid, body->project);
    if (!add && !has)
        return api_refuse(call, 404, "Volume type access not found for %s / %s combination.",
                          type->uuid, body->project);
    struct change_volume_type_args *args = change_volume_type_args_new();
    g_ptr_array_add(add ? args->add_projects : args->remove_projects, g_strdup(body->project));
    return change_type(call, args, error) ? api_answer(call, NULL) : NULL;
}

struct http_answer *api_type_access_add(struct api_call *call, GError **error)
{
    return change_access(call, true, error);
}

struct http_answer *api_type_access_remove(struct api_call *call, GError **error)
{
    return change_access(call, false, error);
}

/* --- the type of a project's volumes that name none --- */

const struct volume_type *block_default_type(const struct api_call *call)
{
    const struct config *config = api_config(call, NULL);
    const struct api_default_type *own =
        identity_get(call->api->identity, "api_default_type", call->token->project_id);
    const struct volume_type *type =
        own && config ? config_get(config, "volume_type", own->volume_type, NULL) : NULL;
    return type && may_use(call, type) ? type : NULL;
}

static json_t *view_default(const struct api_default_type *own)
{
    return json_make("{s:s, s:s}", "project_id", own->id, "volume_type_id", own->volume_type);
}

struct http_answer *api_default_types_list(struct api_call *call, GError **error)
{
    json_t *list = json_array();
    g_autoptr(GPtrArray) all = identity_list(call->api->identity, "api_default_type");
    for (guint i = 0; i < all->len; i++)
        json_array_append_new(list, view_default(all->pdata[i]));
    return api_answer(call, json_make("{s:o}", "default_types", list));
}

struct http_answer *api_default_type_show(struct api_call *call, GError **error)
{
    const char *project = api_var(call, "id");
    const struct api_default_type *own =
        identity_get(call->api->identity, "api_default_type", project);
    return own ? api_answer(call, json_make("{s:o}", "default_type", view_default(own)))
               : api_refuse(call, 404, "Default type for project %s not found.", project);
}

static bool decide_default(struct identity *identity, GPtrArray *changes, void *data,
                           GError **error)
{
    const struct api_default_type *own = data;
    if (*own->volume_type)
        identity_put(changes, &api_default_type_record, own->id, own);
    else if (identity_get(identity, "api_default_type", own->id))
        identity_drop(changes, "api_default_type", own->id);
    return true;
}

/* "": none of its own. */
static bool set_default(struct api_call *call, const char *volume_type, GError **error)
{
    struct api_default_type own = {.id = (char *)api_var(call, "id"),
                                   .volume_type = (char *)volume_type};
    text_set(&call->resource, own.id);
    return identity_change(call->api->identity, decide_default, &own, error);
}

struct http_answer *api_default_type_set(struct api_call *call, GError **error)
{
    const struct default_type_body *body = call->body;
    const struct config *config = api_config(call, error);
    const struct volume_type *type =
        config ? config_find(config, "volume_type", body->volume_type, NULL) : NULL;
    if (!config)
        return NULL;
    if (!type)
        return api_refuse(call, 404, "Volume type %s could not be found.", body->volume_type);
    if (!identity_get(call->api->identity, "api_project", api_var(call, "id")))
        return api_refuse(call, 404, "Project id: %s not found.", api_var(call, "id"));
    g_autofree char *uuid = g_strdup(type->uuid);
    return set_default(call, uuid, error) ? api_default_type_show(call, error) : NULL;
}

struct http_answer *api_default_type_drop(struct api_call *call, GError **error)
{
    return set_default(call, "", error) ? api_answer(call, NULL) : NULL;
}
