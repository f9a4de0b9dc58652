/*
 * Front ends of the API: which nodes have one, on a person's word, and what those may ask that
 * others may not (SAF-100). See wconf_work_private.h.
 */
#include <string.h>

#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

bool wconf_front_end_may_ask(const struct wconf *wconf, const struct rpc_request *request,
                             GError **error)
{
    if (strcmp(request->from_role, ROLE_APID) != 0 ||
        config_get(wconf->head, "api_front_end", request->from_node, NULL))
        return true;
    fettle_set_error(error, PERMISSION,
                     "node \"%s\" has no front end of the API on record; see: fettle api init",
                     config_node_name(wconf->head, request->from_node));
    return false;
}

/* --- which nodes --- */

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

/* --- jobs --- */

static bool is_of_volumes(const json_t *opcode, GError **error)
{
    static const char *const allowed[] = {"OP_INSTANCE_ATTACH_VOLUME", "OP_INSTANCE_DETACH_VOLUME",
                                          NULL};
    const char *id = json_string_value(json_object_get(opcode, "OP_ID"));
    if (id && g_strv_contains(allowed, id))
        return true;
    fettle_set_error(error, PERMISSION, "opcode: a front end of the API submits %s and %s alone",
                     allowed[0], allowed[1]);
    return false;
}

static void submit_cb(json_t *result, const GError *error, void *data)
{
    struct rpc_request *request = data;
    if (error)
        rpc_fail(request, error);
    else if (json_is_integer(result) && json_integer_value(result) > 0)
        rpc_answer(request, json_make("{s:O}", "job", result));
    else
        rpc_fail_new(request, FETTLE_ERROR_PROTOCOL,
                     "luxid answered SubmitJob with something that is no job id");
}

void wconf_handle_submit_job(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(submit_job_args) args =
        rpc_request_args(request, &submit_job_args_record, &error);
    if (!args || !is_of_volumes(args->opcode, &error)) {
        wconf_work_refuse(wconf, request, error);
        return;
    }
    json_object_set_new(args->opcode, "request_id", json_string(args->request_id));
    struct rpc_call call = {.to_node = NODE_LOCAL,
                            .to_role = ROLE_LUXID,
                            .method = "SubmitJob",
                            .args = json_make("[[O]]", args->opcode)};
    wconf->env->ops->call(wconf->env, &call, submit_cb, request);
}
