/* See console_calls.h. */
#include "core/queue/console_calls.h"

#include <string.h>

struct console_call {
    struct queue_context *context;
    struct rpc_request *request;
    char *node, *node_name, *name;
    struct console_read_args *read; /* one of the two */
    struct console_write_args *write;
};

static void call_free(struct console_call *call)
{
    g_free(call->node);
    g_free(call->node_name);
    g_free(call->name);
    console_read_args_free(call->read);
    console_write_args_free(call->write);
    g_free(call);
}

static json_t *ask_read(const struct console_call *call, GError **error)
{
    record_autoptr(console_data) data =
        env_call_record(call->context->env, call->node, ROLE_NODED, "console_read", call->read,
                        follow_stamp(call->context->follow), 0,
                        (guint)call->read->wait_ms + TIMEOUT_WAIT_EXTRA_MS, error);
    return data ? json_make("[s, I, s]", data->data, (json_int_t)data->offset, call->node_name)
                : NULL;
}

static json_t *ask_write(const struct console_call *call, GError **error)
{
    record_autoptr(nothing) done =
        env_call_record(call->context->env, call->node, ROLE_NODED, "console_write", call->write,
                        follow_stamp(call->context->follow), 0, 0, error);
    return done ? json_true() : NULL;
}

/* A node knows instances by their UUIDs only. */
static void explain(const struct console_call *call, GError **error)
{
    if (!g_error_matches(*error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY)) {
        g_prefix_error(error, "%s: ", call->node_name);
        return;
    }
    g_clear_error(error);
    if (call->read)
        fettle_set_error(error, WRONG_STATE, "instance \"%s\" has printed nothing on %s yet",
                         call->name, call->node_name);
    else
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" does not run on %s now; see: fettle instance info %s",
                         call->name, call->node_name, call->name);
}

static void console_task(void *data)
{
    struct console_call *call = data;
    g_autoptr(GError) error = NULL;
    json_t *result = call->read ? ask_read(call, &error) : ask_write(call, &error);
    if (result) {
        rpc_answer(call->request, result);
    } else {
        explain(call, &error);
        rpc_fail(call->request, error);
    }
    call_free(call);
}

/* The instance, and its node in `call`; NULL: the request is answered. */
static const struct instance *find_guest(struct console_call *call, const char *name)
{
    const struct config *config = follow_config(call->context->follow);
    g_autoptr(GError) error = NULL;
    const struct instance *instance = config_find(config, "instance", name, &error);
    const struct node *node =
        instance ? config_get(config, "node", instance->primary_node, NULL) : NULL;
    if (instance && (!node || node->offline))
        fettle_set_error(&error, WRONG_STATE,
                         "%s, the primary node of instance \"%s\", is offline; nothing runs there",
                         config_node_name(config, instance->primary_node), instance->name);
    if (error) {
        rpc_fail(call->request, error);
        return NULL;
    }
    call->node = g_strdup(node->uuid);
    call->node_name = g_strdup(node->name);
    call->name = g_strdup(instance->name);
    return instance;
}

static struct console_call *call_new(struct queue_context *context, struct rpc_request *request)
{
    struct console_call *call = g_new0(struct console_call, 1);
    call->context = context;
    call->request = request;
    return call;
}

void console_calls_read(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_console_read_args *args)
{
    struct console_call *call = call_new(context, request);
    const struct instance *instance = find_guest(call, args->name);
    if (!instance) {
        call_free(call);
        return;
    }
    call->read = console_read_args_new();
    g_free(call->read->instance);
    call->read->instance = g_strdup(instance->uuid);
    call->read->offset = args->offset;
    call->read->wait_ms = args->wait_ms;
    call->read->since_start = *args->node != '\0' && strcmp(args->node, call->node_name) != 0;
    task_spawn(context->env->tasks, console_task, call);
}

void console_calls_write(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_console_write_args *args)
{
    struct console_call *call = call_new(context, request);
    const struct instance *instance = find_guest(call, args->name);
    if (!instance) {
        call_free(call);
        return;
    }
    call->write = console_write_args_new();
    g_free(call->write->instance);
    g_free(call->write->data);
    call->write->instance = g_strdup(instance->uuid);
    call->write->data = g_strdup(args->data);
    task_spawn(context->env->tasks, console_task, call);
}
