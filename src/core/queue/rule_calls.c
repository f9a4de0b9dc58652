/* ReplaceFilter and DeleteFilter; see calls.h. A rule is on record before it counts. */
#include "core/job/reason.h"
#include "core/job/rules.h"
#include "core/queue/calls.h"

struct rule_call {
    struct queue_context *context;
    struct rpc_request *request;
    struct job_filter *filter; /* NULL: to be deleted */
    char *uuid;
    bool anew; /* there must be none of that UUID yet */
};

static void rule_call_free(struct rule_call *call)
{
    job_filter_free(call->filter);
    g_free(call->uuid);
    g_free(call);
}

static void rule_call_done(const GError *error, void *data)
{
    struct rule_call *call = data;
    if (error)
        rpc_fail(call->request, error);
    else
        rpc_answer(call->request, call->filter ? json_string(call->uuid) : json_null());
    rule_call_free(call);
}

static bool check_there(const struct commit_batch *batch, const char *uuid, GError **error)
{
    if (config_get(batch->config, "job_filter", uuid, NULL))
        return true;
    fettle_set_error(error, UNKNOWN_ENTITY, "filter %s does not exist", uuid);
    return false;
}

/* The newest job's id goes with it. */
static guint64 newest_job(const struct commit_batch *batch)
{
    const struct counter *counter = config_get(batch->config, "counter", "job", NULL);
    return batch->last_id != 0 ? batch->last_id : !counter ? 0 : counter->value;
}

static bool build_rule(struct commit_batch *batch, void *data, GError **error)
{
    struct rule_call *call = data;
    if (!call->anew && !check_there(batch, call->uuid, error))
        return false;
    if (!call->filter) {
        g_ptr_array_add(batch->changes, config_delete(batch->config, "job_filter", call->uuid));
        return true;
    }
    if (call->anew && config_count(batch->config, "job_filter") >= LIMIT_RULES) {
        fettle_set_error(error, LIMIT, "there are %d filters already", LIMIT_RULES);
        return false;
    }
    call->filter->watermark = newest_job(batch);
    g_ptr_array_add(batch->changes, config_put(batch->config, "job_filter", call->uuid,
                                               job_filter_to_json(call->filter)));
    return true;
}

static void commit_rule(struct rule_call *call)
{
    const struct commit_item item = {
        .build = build_rule, .done = rule_call_done, .data = call, .changes = 1, .bytes = KIB(4)};
    committer_add(call->context->committer, &item);
}

void call_replace_filter(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_replace_filter_args *args)
{
    record_autoptr(job_filter) filter = job_filter_new();
    g_autoptr(GError) error = NULL;
    filter->priority = args->priority;
    filter->predicates = face_read(request->face, "predicates", args->predicates);
    filter->action = json_incref(args->action);
    filter->reason = json_incref(args->reason);
    if (!rules_check_filter(filter, &error) || !rules_check_opcodes(filter, &error) ||
        !reason_check_lines(filter->reason, &error)) {
        g_prefix_error(&error, "ReplaceFilter: ");
        rpc_fail(request, error);
        return;
    }
    struct rule_call *call = g_new0(struct rule_call, 1);
    call->context = context;
    call->request = request;
    call->anew = *args->uuid == '\0';
    call->uuid = call->anew ? env_uuid(context->env) : g_strdup(args->uuid);
    g_free(filter->uuid);
    filter->uuid = g_strdup(call->uuid);
    call->filter = g_steal_pointer(&filter);
    commit_rule(call);
}

void call_delete_filter(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_delete_filter_args *args)
{
    struct rule_call *call = g_new0(struct rule_call, 1);
    call->context = context;
    call->request = request;
    call->uuid = g_strdup(args->uuid);
    commit_rule(call);
}
