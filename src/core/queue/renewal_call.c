/* See renewal_call.h. */
#include "core/queue/renewal_call.h"

struct renewal_question {
    struct queue_context *context;
    struct rpc_request *request;
    char *node;
};

static void ask_task(void *data)
{
    struct renewal_question *question = data;
    const struct check_renewal_args args = {.node = question->node};
    g_autoptr(GError) error = NULL;
    record_autoptr(check_renewal_result) result =
        env_call_record(question->context->env, NODE_LOCAL, ROLE_WCONFD, "check_renewal", &args,
                        follow_stamp(question->context->follow), 0, 0, &error);
    if (result)
        rpc_answer(question->request, check_renewal_result_to_json(result));
    else
        rpc_fail(question->request, error);
    g_free(question->node);
    g_free(question);
}

void renewal_call(struct queue_context *context, struct rpc_request *request,
                  const struct luxi_check_renewal_args *args)
{
    struct renewal_question *question = g_new(struct renewal_question, 1);
    *question = (struct renewal_question){context, request, g_strdup(args->node)};
    task_spawn(context->env->tasks, ask_task, question);
}
