/* See image_calls.h. */
#include "core/queue/image_calls.h"

#include "core/config/storage/image_way.h"

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

void image_calls_receive(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_receive_image_args *args)
{
    struct image_call *call = call_new(context, request, "receive_image");
    struct image_way way = {0};
    g_autoptr(GError) error = NULL;
    if (image_way_in(config_of(call), args->image, &way, &error)) {
        g_autofree char *key = config_work_key(RESOURCE_IMAGE, way.image);
        const struct receive_image_args asked = {key, way.row->claim, args->bytes};
        call->args = receive_image_args_copy(&asked);
        call->claim = way.row->claim;
    }
    begin(call, way.node, error);
}

/* Under the claim of before it is somebody else's, or will be. */
void image_calls_finish(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_finish_image_args *args)
{
    struct image_call *call = call_new(context, request, "finish_image");
    struct image_way way = {0};
    g_autoptr(GError) error = NULL;
    if (image_way_in(config_of(call), args->image, &way, &error)) {
        g_autofree char *key = config_work_key(RESOURCE_IMAGE, way.image);
        const struct finish_image_args asked = {key, args->claim, args->bytes, args->sum,
                                                args->checksum};
        call->args = finish_image_args_copy(&asked);
    }
    begin(call, way.node, error);
}

void image_calls_send(struct queue_context *context, struct rpc_request *request,
                      const struct luxi_send_image_args *args)
{
    struct image_call *call = call_new(context, request, "send_image");
    struct image_way way = {0};
    g_autoptr(GError) error = NULL;
    if (image_way_out(config_of(call), args->image, context->env->node_uuid, &way, &error)) {
        const struct send_image_args asked = {(char *)way.backend, (char *)way.image};
        call->args = send_image_args_copy(&asked);
    }
    begin(call, way.node, error);
}
