/* See image_calls.h. */
#include "core/queue/image_calls.h"

#include <string.h>

#include "core/config/resource.h"

struct image_call {
    struct queue_context *context;
    struct rpc_request *request;
    const struct method *method; /* of volumed */
    void *args;                  /* its own */
    char *node, *node_name;
    guint64 claim;
};

static void call_free(struct image_call *call)
{
    if (call->args)
        record_free(call->method->args, call->args);
    g_free(call->node);
    g_free(call->node_name);
    g_free(call);
}

static const struct config *config_of(const struct image_call *call)
{
    return follow_config(call->context->follow);
}

static json_t *answer_of(const struct image_call *call, const void *record)
{
    json_t *answer = record_to_json(call->method->answer, record);
    if (call->method->answer != &image_door_record) {
        json_decref(answer);
        return json_null();
    }
    json_object_set_new(answer, "node", json_string(call->node_name));
    if (call->claim)
        json_object_set_new(answer, "claim", json_integer((json_int_t)call->claim));
    return answer;
}

static void call_task(void *data)
{
    struct image_call *call = data;
    const struct env *env = call->context->env;
    g_autoptr(GError) error = NULL;
    void *record = env_call_record(env, call->node, ROLE_VOLUMED, call->method->name, call->args,
                                   follow_stamp(call->context->follow), 0, 0, &error);
    if (record) {
        rpc_answer(call->request, answer_of(call, record));
        record_free(call->method->answer, record);
    } else {
        g_prefix_error(&error, "%s: ", call->node_name);
        rpc_fail(call->request, error);
    }
    call_free(call);
}

/* Goes to the node if there is no error. */
static void begin(struct image_call *call, const char *node, const GError *error)
{
    if (error) {
        rpc_fail(call->request, error);
        call_free(call);
        return;
    }
    call->node = g_strdup(node);
    call->node_name = g_strdup(config_node_name(config_of(call), node));
    task_spawn(call->context->env->tasks, call_task, call);
}

static struct image_call *call_new(struct queue_context *context, struct rpc_request *request,
                                   const char *method)
{
    struct image_call *call = g_new0(struct image_call, 1);
    call->context = context;
    call->request = request;
    call->method = method_find(ROLE_VOLUMED, method);
    return call;
}

/* --- the one that is received --- */

static const struct storage_service *service_of(const struct config *config, guint64 id)
{
    g_autoptr(GPtrArray) all = config_list(config, "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *service = all->pdata[i];
        if (service->id == id)
            return service;
    }
    return NULL;
}

/* The row under which it is received; NULL with the error. */
static const struct worker *find_row(const struct image_call *call, const char *name,
                                     char **ret_key, const struct storage_service **ret_service,
                                     GError **error)
{
    const struct config *config = config_of(call);
    struct resource image = resource_find(config, RESOURCE_IMAGE, name, error);
    if (!image.exists)
        return NULL;
    g_autofree char *key = config_work_key(RESOURCE_IMAGE, image.uuid);
    const struct worker *row = config_get(config, "worker", key, NULL);
    *ret_service = row ? service_of(config, row->service_id) : NULL;
    if (!row || strcmp(row->operation, task_operation_words[TASK_OPERATION_SAVE_IMAGE]) != 0)
        fettle_set_error(error, WRONG_STATE, "image %s is %s; nobody receives it",
                         resource_name(&image), image.status);
    else if (!*ret_service)
        fettle_set_error(error, TEMPORARY, "no volume service has begun with image %s yet",
                         resource_name(&image));
    else if (!config_get(config, "node", (*ret_service)->node, NULL))
        fettle_set_error(error, TEMPORARY, "the node that receives image %s is gone",
                         resource_name(&image));
    else {
        *ret_key = g_steal_pointer(&key);
        return row;
    }
    return NULL;
}

void image_calls_receive(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_receive_image_args *args)
{
    struct image_call *call = call_new(context, request, "receive_image");
    const struct storage_service *service = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *key = NULL;
    const struct worker *row = find_row(call, args->image, &key, &service, &error);
    if (row) {
        const struct receive_image_args asked = {key, row->claim, args->bytes};
        call->args = receive_image_args_copy(&asked);
        call->claim = row->claim;
    }
    begin(call, row ? service->node : NULL, error);
}

/* Under the claim of before it is somebody else's, or will be. */
void image_calls_finish(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_finish_image_args *args)
{
    struct image_call *call = call_new(context, request, "finish_image");
    const struct storage_service *service = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *key = NULL;
    const struct worker *row = find_row(call, args->image, &key, &service, &error);
    if (row) {
        const struct finish_image_args asked = {key, args->claim, args->bytes, args->sum,
                                                args->checksum};
        call->args = finish_image_args_copy(&asked);
    }
    begin(call, row ? service->node : NULL, error);
}

/* --- one that is there --- */

/* Of those that are up, this node's if it has one. */
static const struct storage_service *choose(const struct image_call *call, const char *backend)
{
    const struct storage_service *chosen = NULL;
    g_autoptr(GPtrArray) all = config_list(config_of(call), "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *service = all->pdata[i];
        bool own = strcmp(service->node, call->context->env->node_uuid) == 0;
        if (strcmp(service->backend, backend) == 0 && service->state == STORAGE_UP &&
            (!chosen || own))
            chosen = service;
    }
    return chosen;
}

void image_calls_send(struct queue_context *context, struct rpc_request *request,
                      const struct luxi_send_image_args *args)
{
    struct image_call *call = call_new(context, request, "send_image");
    const struct config *config = config_of(call);
    g_autoptr(GError) error = NULL;
    struct resource image = resource_find(config, RESOURCE_IMAGE, args->image, &error);
    const struct storage_service *service = image.exists ? choose(call, image.backend) : NULL;
    if (image.exists && !resource_is_ready(&image))
        fettle_set_error(&error, WRONG_STATE, "image %s is %s; only an active one is saved",
                         resource_name(&image), image.status);
    else if (image.exists && !service)
        fettle_set_error(&error, TEMPORARY, "no volume service of its back end is up: image %s",
                         resource_name(&image));
    if (!error) {
        const struct send_image_args asked = {(char *)image.backend, (char *)image.uuid};
        call->args = send_image_args_copy(&asked);
    }
    begin(call, error ? NULL : service->node, error);
}
