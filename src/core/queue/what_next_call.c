/* See what_next_call.h. */
#include "core/queue/what_next_call.h"

#include "core/repair/what_next.h"

struct node_question {
    struct queue_context *context;
    struct rpc_request *request;
    char *node; /* UUID */
};

static void node_task(void *data)
{
    struct node_question *question = data;
    g_autoptr(GError) error = NULL;
    struct follow *follow = question->context->follow;
    struct reports *reports = reports_ask(question->context->env, follow, NULL);
    const struct node *node = NULL;
    if (reports) /* it may have gone meanwhile */
        node = config_find(follow_config(follow), "node", question->node, &error);
    else
        fettle_set_error(&error, KILLED, "luxid has ended");
    if (node)
        rpc_answer(question->request, what_next_node(node, reports));
    else
        rpc_fail(question->request, error);
    reports_free(reports);
    g_free(question->node);
    g_free(question);
}

static void ask_nodes(struct queue_context *context, struct rpc_request *request,
                      const struct node *node)
{
    struct node_question *question = g_new(struct node_question, 1);
    *question = (struct node_question){context, request, g_strdup(node->uuid)};
    task_spawn(context->env->tasks, node_task, question);
}

static json_t *of_instance(const struct queue_context *context, const char *name, GError **error)
{
    const struct config *config = follow_config(context->follow);
    const struct instance *instance = config_find(config, "instance", name, error);
    gint64 now = (gint64)(context_now_us(context) / G_USEC_PER_SEC);
    return instance ? what_next_instance(config, instance, now) : NULL;
}

static json_t *of_group(const struct queue_context *context, const char *name, GError **error)
{
    const struct config *config = follow_config(context->follow);
    const struct nodegroup *group = config_find(config, "nodegroup", name, error);
    return group ? what_next_suspended(config, TAG_NODEGROUP, group->uuid, group->name) : NULL;
}

static json_t *of_cluster(const struct queue_context *context)
{
    return what_next_suspended(follow_config(context->follow), TAG_CLUSTER, "", NULL);
}

void what_next_call(struct queue_context *context, struct rpc_request *request,
                    const struct luxi_what_next_args *args)
{
    g_autoptr(GError) error = NULL;
    const struct node *node = NULL;
    json_t *list = NULL;
    switch (enum_parse(&tag_kind_words, args->kind)) {
    case TAG_NODE:
        node = config_find(follow_config(context->follow), "node", args->name, &error);
        break;
    case TAG_INSTANCE:
        list = of_instance(context, args->name, &error);
        break;
    case TAG_NODEGROUP:
        list = of_group(context, args->name, &error);
        break;
    case TAG_CLUSTER:
        list = of_cluster(context);
        break;
    default:
        fettle_set_error(&error, WRONG_INPUT,
                         "WhatNext: kind: must be one of instance, node, nodegroup, cluster, not "
                         "\"%s\"",
                         args->kind);
    }
    if (node)
        ask_nodes(context, request, node);
    else if (list)
        rpc_answer(request, list);
    else
        rpc_fail(request, error);
}
