/*
 * Types of volumes, and nodes with a front end of the API: made, changed and removed on a person's
 * word, each in one commit. What one may say judge the invariants; that of a type which a volume
 * has nothing changes that says where that may be. See wconf_work_private.h.
 */
#include <string.h>

#include "core/config/volume_types.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"
#include "proto/rapi/front_names.h"

static bool name_is_free(const struct config *head, const struct volume_type *type, GError **error)
{
    g_autofree char *others = config_keys_of_name(head, "volume_type", type->name, type->uuid);
    if (g_uuid_string_is_valid(type->name))
        fettle_set_error(error, WRONG_INPUT, "name: it is a UUID; choose another one");
    else if (*others)
        fettle_set_error(error, ALREADY_EXISTS, "volume type \"%s\" exists already", type->name);
    else
        return true;
    return false;
}

/* What the cluster calls its default has to be there, by that name. */
static bool is_not_default(const struct config *head, const struct volume_type *type,
                           GError **error)
{
    const char *name = config_cluster(head)->default_volume_type;
    if (strcmp(name, type->name) != 0 && strcmp(name, type->uuid) != 0)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "volume type %s is the default one; choose another one before: fettle cluster "
                     "modify --default-volume-type TYPE, or none",
                     type->name);
    return false;
}

/* `type` is stolen. */
static void put_type(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                     struct volume_type *type)
{
    GError *error = NULL;
    if (name_is_free(wconf->head, type, &error)) {
        GPtrArray *changes = change_list_new();
        g_ptr_array_add(
            changes, config_put(wconf->head, "volume_type", type->uuid, volume_type_to_json(type)));
        wconf_work_commit(wconf, request, commit_id, changes, NULL);
    } else {
        wconf_work_refuse(wconf, request, error);
    }
    volume_type_free(type);
}

static void add_words(GPtrArray *words, const GPtrArray *more)
{
    for (guint i = 0; i < more->len; i++)
        if (!g_ptr_array_find_with_equal_func(words, more->pdata[i], g_str_equal, NULL))
            g_ptr_array_add(words, g_strdup(more->pdata[i]));
}

void wconf_handle_add_volume_type(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(add_volume_type_args) args =
        rpc_request_args(request, &add_volume_type_args_record, &error);
    if (!args) {
        wconf_work_refuse(wconf, request, error);
        return;
    }
    if (wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    struct volume_type *type = volume_type_new();
    text_set(&type->uuid, args->commit_id);
    text_set(&type->name, args->name);
    text_set(&type->description, args->description);
    type->public = args->public;
    for (guint i = 0; i < args->extra_specs->len; i++)
        g_ptr_array_add(type->extra_specs, g_strdup(args->extra_specs->pdata[i]));
    add_words(type->projects, args->projects);
    put_type(wconf, request, args->commit_id, type);
}

/* KEY=VALUE in the place of what that key had; KEY= is gone. */
static void set_spec(struct volume_type *type, const char *spec)
{
    size_t key = strcspn(spec, "=");
    for (guint i = type->extra_specs->len; i > 0; i--) {
        const char *old = type->extra_specs->pdata[i - 1];
        if (strcspn(old, "=") == key && !strncmp(old, spec, key))
            g_ptr_array_remove_index(type->extra_specs, i - 1);
    }
    if (spec[key] != '=' || spec[key + 1])
        g_ptr_array_add(type->extra_specs, g_strdup(spec));
}

static void change_projects(struct volume_type *type, const struct change_volume_type_args *args)
{
    guint at;
    for (guint i = 0; i < args->remove_projects->len; i++)
        if (g_ptr_array_find_with_equal_func(type->projects, args->remove_projects->pdata[i],
                                             g_str_equal, &at))
            g_ptr_array_remove_index(type->projects, at);
    add_words(type->projects, args->add_projects);
}

static struct volume_type *changed(const struct volume_type *old,
                                   const struct change_volume_type_args *args)
{
    struct volume_type *type = volume_type_copy(old);
    if (*args->name)
        text_set(&type->name, args->name);
    if (*args->description)
        text_set(&type->description, args->description);
    type->public = args->public < 0 ? old->public : args->public > 0;
    for (guint i = 0; i < args->extra_specs->len; i++)
        set_spec(type, args->extra_specs->pdata[i]);
    change_projects(type, args);
    return type;
}

/* Its volumes are where it let them be. */
static bool specs_may_change(const struct config *head, const struct volume_type *type,
                             const struct change_volume_type_args *args, GError **error)
{
    const struct volume *volume = config_volume_of_type(head, type->uuid);
    if (!args->extra_specs->len || !volume)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "volume type %s: its extra specs stay while a volume has it, as %s does; make "
                     "another type",
                     type->name, config_volume_name(volume));
    return false;
}

void wconf_handle_change_volume_type(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(change_volume_type_args) args =
        rpc_request_args(request, &change_volume_type_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct volume_type *old =
        args ? config_find(wconf->head, "volume_type", args->volume_type, &error) : NULL;
    if (old && specs_may_change(wconf->head, old, args, &error) &&
        (!*args->name || is_not_default(wconf->head, old, &error)))
        put_type(wconf, request, args->commit_id, changed(old, args));
    else
        wconf_work_refuse(wconf, request, error);
}

void wconf_handle_remove_volume_type(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(remove_volume_type_args) args =
        rpc_request_args(request, &remove_volume_type_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct volume_type *type =
        args ? config_find(wconf->head, "volume_type", args->volume_type, &error) : NULL;
    if (!type || !is_not_default(wconf->head, type, &error)) {
        wconf_work_refuse(wconf, request, error);
        return;
    }
    GPtrArray *changes = change_list_new();
    g_ptr_array_add(changes, config_delete(wconf->head, "volume_type", type->uuid));
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

/* --- front ends of the API --- */

static struct change *put_front_end(const struct wconf *wconf, const struct node *node)
{
    const struct api_front_end front_end = {
        .node = node->uuid,
        .since = (guint64)(wconf->env->ops->wall_us(wconf->env) / G_USEC_PER_SEC)};
    return config_put(wconf->head, "api_front_end", node->uuid, api_front_end_to_json(&front_end));
}

static void change_front_end(struct wconf *wconf, struct rpc_request *request, bool has)
{
    GError *error = NULL;
    record_autoptr(api_front_end_args) args =
        rpc_request_args(request, &api_front_end_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct node *node = args ? config_find(wconf->head, "node", args->node, &error) : NULL;
    if (node && !config_get(wconf->head, "api_front_end", node->uuid, NULL) == !has)
        fettle_set_error(&error, WRONG_STATE,
                         has ? "node \"%s\" has a front end of the API already"
                             : "node \"%s\" has no front end of the API",
                         node->name);
    if (error) {
        wconf_work_refuse(wconf, request, error);
        return;
    }
    GPtrArray *changes = change_list_new();
    g_ptr_array_add(changes, has ? put_front_end(wconf, node)
                                 : config_delete(wconf->head, "api_front_end", node->uuid));
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_add_front_end(struct wconf *wconf, struct rpc_request *request)
{
    change_front_end(wconf, request, true);
}

void wconf_handle_remove_front_end(struct wconf *wconf, struct rpc_request *request)
{
    change_front_end(wconf, request, false);
}

/* What it shows to its clients: of what is signed it is told nothing but its key. */
struct certifying {
    struct authority *authority;
    struct rpc_request *request;
    struct certify_front_end_args *args;
    char *cluster, **names;
};

static void certify_task(void *data)
{
    struct certifying *certifying = data;
    struct authority *authority = certifying->authority;
    const char *request = certifying->args->request;
    const char *const *names = (const char *const *)certifying->names;
    g_autoptr(GError) error = NULL;
    g_autofree char *hash = NULL, *certificate = NULL;
    if (authority->ops->read_request(authority, request, &hash, &error) &&
        authority->ops->sign_api(authority, request, certifying->cluster, names, &certificate,
                                 &error))
        rpc_answer(certifying->request, json_make("{ss}", "certificate", certificate));
    else
        rpc_fail(certifying->request, error);
    certify_front_end_args_free(certifying->args);
    g_free(certifying->cluster);
    g_strfreev(certifying->names);
    g_free(certifying);
}

/* REST is asked at the master IP, or by the cluster's name, as only the master serves; that may be
 * any candidate, and who is none is not to be taken for it. A front end of the API has users of its
 * own, and is nowhere else. */
static char **names_for(const struct wconf *wconf, const struct node *node, const char *role)
{
    const struct cluster *cluster = config_cluster(wconf->committed);
    bool may = node->master_candidate || !strcmp(node->uuid, wconf->env->node_uuid);
    bool rest = may && !strcmp(role, ROLE_NODED);
    return front_names(node->name, node->primary_ip, rest ? cluster->name : NULL,
                       rest ? cluster->master_ip : NULL);
}

void wconf_handle_certify_front_end(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    struct authority *authority = wconf->env->authority;
    record_autoptr(certify_front_end_args) args =
        rpc_request_args(request, &certify_front_end_args_record, &error);
    const struct node *node =
        args ? config_find(wconf->committed, "node", request->from_node, &error) : NULL;
    if (node && (!authority || !authority->ops->sign_api))
        fettle_set_error(&error, WRONG_STATE, "this master has no authority");
    if (error) {
        rpc_fail(request, error);
        return;
    }
    struct certifying *certifying = g_new(struct certifying, 1);
    *certifying = (struct certifying){.authority = authority,
                                      .request = request,
                                      .args = g_steal_pointer(&args),
                                      .cluster = g_strdup(config_cluster(wconf->head)->uuid),
                                      .names = names_for(wconf, node, request->from_role)};
    task_spawn(wconf->env->tasks, certify_task, certifying);
}
