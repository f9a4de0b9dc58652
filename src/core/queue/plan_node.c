/* See plan_node.h. */
#include "core/queue/plan_node.h"

#include "core/repair/forecast.h"
#include "core/report/reports.h"

struct plan {
    struct queue_context *context;
    struct rpc_request *request;
    char *node; /* UUID */
    enum forecast_event event;
};

static json_t *forecast(const struct plan *plan, const struct reports *reports, GError **error)
{
    const struct config *config = follow_config(plan->context->follow);
    const struct env *env = plan->context->env;
    /* The configuration may have changed while nodes were asked. */
    const struct node *node = config_find(config, "node", plan->node, error);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    if (!node)
        return NULL;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *each = nodes->pdata[i];
        const struct node_report *report = reports_of(reports, each->uuid);
        if (report)
            g_ptr_array_add(list, (void *)report);
    }
    return forecast_node(config, list, node, plan->event, env->ops->wall_us(env) / G_USEC_PER_SEC);
}

static void plan_task(void *data)
{
    struct plan *plan = data;
    g_autoptr(GError) error = NULL;
    struct reports *reports = reports_ask(plan->context->env, plan->context->follow, NULL);
    json_t *answer = NULL;
    if (!reports)
        fettle_set_error(&error, KILLED, "luxid has ended");
    else
        answer = forecast(plan, reports, &error);
    if (answer)
        rpc_answer(plan->request, answer);
    else
        rpc_fail(plan->request, error);
    reports_free(reports);
    g_free(plan->node);
    g_free(plan);
}

void plan_node(struct queue_context *context, struct rpc_request *request,
               const struct luxi_plan_node_args *args)
{
    g_autoptr(GError) error = NULL;
    bool fail = g_str_equal(args->event, "fail");
    const struct node *node = NULL;
    if (!fail && !g_str_equal(args->event, "drain"))
        fettle_set_error(&error, WRONG_INPUT, "PlanNode: event: \"%s\" is neither fail nor drain",
                         args->event);
    else
        node = config_find(follow_config(context->follow), "node", args->name, &error);
    if (!node) {
        rpc_fail(request, error);
        return;
    }
    struct plan *plan = g_new(struct plan, 1);
    *plan = (struct plan){context, request, g_strdup(node->uuid),
                          fail ? FORECAST_FAIL : FORECAST_DRAIN};
    task_spawn(context->env->tasks, plan_task, plan);
}
