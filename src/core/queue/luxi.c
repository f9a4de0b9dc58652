/* luxid: its calls, its parts and how they hang together; see luxi.h. */
#include "core/queue/luxi.h"

#include "base/log.h"
#include "core/ops/op.h"
#include "core/queue/console.h"
#include "core/queue/plan.h"
#include "core/queue/query.h"
#include "core/queue/scheduler.h"
#include "core/queue/start.h"
#include "core/queue/submit.h"
#include "core/queue/track.h"
#include "core/queue/waiters.h"
#include "proto/luxi.h"

struct luxi {
    struct queue_context context;
    bool serving; /* the queue is reconciled: calls are answered, jobs are started */
};

/* --- the change stream --- */

static void job_changed(struct luxi *luxi, guint64 id)
{
    struct queue_context *context = &luxi->context;
    const struct job *record = context_record(context, id);

    if (record == NULL) {
        queue_forget(context->queue, id);
    } else if (queue_put(context->queue, record)) {
        if (job_state_final(job_state_of(record)))
            tracker_recorded(context->tracker, id);
    }
    waiters_notify(context->waiters, id);
}

static gint compare_jobs(gconstpointer left, gconstpointer right)
{
    const struct job *a = *(const struct job *const *)left, *b = *(const struct job *const *)right;

    return a->id < b->id ? -1 : a->id > b->id;
}

/* After a snapshot: every job anew, in order of age, so that a job comes after those it depends on.
 */
static void take_all_jobs(struct luxi *luxi)
{
    g_autoptr(GArray) known = queue_ids(luxi->context.queue);
    g_autoptr(GPtrArray) jobs = config_list(follow_config(luxi->context.follow), "job");

    g_ptr_array_sort(jobs, compare_jobs);
    for (guint i = 0; i < jobs->len; i++)
        job_changed(luxi, ((const struct job *)g_ptr_array_index(jobs, i))->id);
    for (guint i = 0; i < known->len; i++)
        if (context_record(&luxi->context, g_array_index(known, guint64, i)) == NULL)
            job_changed(luxi, g_array_index(known, guint64, i));
}

static void config_changed(const GPtrArray *changes, void *data)
{
    struct luxi *luxi = data;

    if (changes == NULL)
        take_all_jobs(luxi);
    for (guint i = 0; changes != NULL && i < changes->len; i++) {
        const struct change *change = g_ptr_array_index(changes, i);
        guint64 id;

        if (g_str_equal(change->kind, "job") &&
            g_ascii_string_to_unsigned(change->key, 10, 1, G_MAXINT64, &id, NULL))
            job_changed(luxi, id);
    }
    scheduler_kick(luxi->context.scheduler);
}

/* --- life --- */

struct luxi *luxi_new(const struct env *env)
{
    struct luxi *luxi = g_new0(struct luxi, 1);
    struct queue_context *context = &luxi->context;

    context->env = env;
    context->queue = queue_new();
    context->follow = follow_new(env, config_changed, luxi);
    context->committer = committer_new(env, context->follow);
    context->scheduler = scheduler_new(context);
    context->tracker = tracker_new(context);
    context->waiters = waiters_new(context);
    return luxi;
}

bool luxi_start(struct luxi *luxi, GError **error)
{
    struct queue_context *context = &luxi->context;

    context->livelock = context->env->ops->livelock_make(context->env, ROLE_LUXID, error);
    if (context->livelock == NULL) {
        g_prefix_error(error, "luxid's lock file: ");
        return false;
    }
    if (!follow_start(context->follow, error)) {
        g_prefix_error(error, "configuration: ");
        return false;
    }
    committer_start(context->committer, context->livelock);
    tracker_start(context->tracker);
    scheduler_start(context->scheduler);
    luxi->serving = true;
    log_info("", "queue taken up: %u jobs queued, %u under way", queue_waiting(context->queue),
             queue_active(context->queue));
    return true;
}

void luxi_free(struct luxi *luxi)
{
    struct queue_context *context;

    if (luxi == NULL)
        return;
    context = &luxi->context;
    if (context->livelock != NULL && !task_group_killed(context->env->tasks))
        context->env->ops->livelock_drop(context->env, context->livelock);
    committer_free(context->committer);
    waiters_free(context->waiters);
    start_clear(context);
    tracker_free(context->tracker);
    scheduler_free(context->scheduler);
    follow_free(context->follow);
    queue_free(context->queue);
    g_free(context->livelock);
    g_free(luxi);
}

/* --- CancelJob --- */

struct cancel {
    struct queue_context *context;
    struct rpc_request *request;
    guint64 id;
    bool asked; /* it is under way, and ends by itself */
};

/* Whether the job's process asks by itself if it shall end: its present opcode, or the one that
 * waits for its locks, can be given up in the middle. */
static bool may_be_asked(const struct queue_context *context, const struct queue_job *job)
{
    const struct job *record = context_record(context, job->id);
    const struct job *now = job->live != NULL ? job->live : record;

    for (guint i = 0; record != NULL && record->started && i < now->ops->len; i++) {
        const struct job_op *op = g_ptr_array_index(now->ops, i);
        const char *id = json_string_value(json_object_get(op->input, "OP_ID"));
        const struct op_impl *impl = id == NULL ? NULL : op_impl_find(id);

        if (!job_state_final(job_op_state(op)))
            return impl != NULL && impl->cancelable;
    }
    return false;
}

/* A wish on record, which the job's process finds there. */
static bool build_wish(struct commit_batch *batch, void *data, GError **error)
{
    const struct cancel *cancel = data;
    const struct job *record = context_record(cancel->context, cancel->id);
    record_autoptr(job) job = NULL;

    if (record == NULL || job_state_final(job_state_of(record))) {
        fettle_set_error(error, WRONG_STATE, "Job %" G_GUINT64_FORMAT " has ended already",
                         cancel->id);
        return false;
    }
    if (record->cancel)
        return false;
    job = job_copy(record);
    job->cancel = true;
    commit_put_job(batch, job);
    return true;
}

static bool build_cancel(struct commit_batch *batch, void *data, GError **error)
{
    const struct cancel *cancel = data;
    const struct job *record = context_record(cancel->context, cancel->id);
    record_autoptr(job) job = NULL;
    json_autoptr result = NULL;

    if (record == NULL || record->started || job_state_of(record) != JOB_QUEUED) {
        fettle_set_error(error, WRONG_STATE, "Job %" G_GUINT64_FORMAT " is not queued any more",
                         cancel->id);
        return false;
    }
    job = job_copy(record);
    result = job_error_result(FETTLE_ERROR_CANCELED, "Job canceled by request");
    job_end(job, JOB_CANCELED, result, context_now_us(cancel->context));
    commit_put_job(batch, job);
    return true;
}

static void cancel_done(const GError *error, void *data)
{
    struct cancel *cancel = data;
    struct queue_job *job = queue_find(cancel->context->queue, cancel->id);

    if (job != NULL)
        queue_set_busy(cancel->context->queue, job, false);
    scheduler_kick(cancel->context->scheduler);
    if (error == NULL)
        rpc_answer(cancel->request,
                   json_make("[b, s]", 1,
                             cancel->asked ? "Job will be canceled: it is asked to give up"
                                           : "Job successfully canceled"));
    else if (fettle_error_is(error, WRONG_STATE))
        rpc_answer(cancel->request, json_make("[b, s]", 0, error->message));
    else
        rpc_fail(cancel->request, error);
    g_free(cancel);
}

static void answer_no(struct rpc_request *request, const char *why)
{
    rpc_answer(request, json_make("[b, s]", 0, why));
}

/* From the moment a job is picked to be started it counts as running. */
static void cancel_job(struct queue_context *context, struct rpc_request *request, guint64 id)
{
    struct queue_job *job = queue_find(context->queue, id);
    g_autofree char *why = NULL;
    struct cancel *cancel;
    struct commit_item item = {.build = build_cancel, .done = cancel_done, .changes = 1};
    enum job_state state;

    if (job == NULL) {
        why = g_strdup_printf("Job %" G_GUINT64_FORMAT " not found in queue", id);
        answer_no(request, why);
        return;
    }
    state = (enum job_state)job->state;
    if (state == JOB_QUEUED && (job->busy || job->phase != JOB_PHASE_QUEUED))
        state = JOB_WAITING;
    if (!job->busy && !job_state_final(state) && may_be_asked(context, job)) {
        item.build = build_wish;
    } else if (!job_verb_allowed(JOB_VERB_CANCEL, state, id, &why)) {
        answer_no(request, why);
        return;
    }
    cancel = g_new0(struct cancel, 1);
    cancel->asked = item.build == build_wish;
    cancel->context = context;
    cancel->request = request;
    cancel->id = id;
    item.data = cancel;
    item.bytes = commit_job_bytes(context_record(context, id));
    queue_set_busy(context->queue, job, true);
    committer_add(context->committer, &item);
}

/* --- calls, one function each: `args` is the method's record --- */

static void call_submit_job(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    submit_job(&luxi->context, request, ((const struct luxi_submit_job_args *)args)->ops);
}

static void call_submit_many_jobs(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    submit_many_jobs(&luxi->context, request,
                     ((const struct luxi_submit_many_jobs_args *)args)->jobs);
}

static void call_query_jobs(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_jobs(&luxi->context, request, args);
}

static void call_wait_for_job_change(struct luxi *luxi, struct rpc_request *request,
                                     const void *args)
{
    waiters_add(luxi->context.waiters, request, args);
}

static void call_cancel_job(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    cancel_job(&luxi->context, request, ((const struct luxi_cancel_job_args *)args)->job);
}

static void call_query(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_run(&luxi->context, request, args);
}

static void call_query_fields(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_describe_fields(request, args);
}

static void call_query_cluster_info(struct luxi *luxi, struct rpc_request *request,
                                    const void *args)
{
    query_cluster_info(&luxi->context, request);
}

static void call_query_tags(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_object_tags(&luxi->context, request, args);
}

static void call_console_read(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    console_read(&luxi->context, request, args);
}

static void call_console_write(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    console_write(&luxi->context, request, args);
}

static void call_plan_node(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    plan_node(&luxi->context, request, args);
}

static const struct {
    const char *name;
    void (*call)(struct luxi *luxi, struct rpc_request *request, const void *args);
} calls[] = {
    {"SubmitJob", call_submit_job},       {"SubmitManyJobs", call_submit_many_jobs},
    {"QueryJobs", call_query_jobs},       {"WaitForJobChange", call_wait_for_job_change},
    {"CancelJob", call_cancel_job},       {"Query", call_query},
    {"QueryFields", call_query_fields},   {"QueryClusterInfo", call_query_cluster_info},
    {"QueryTags", call_query_tags},       {"ConsoleRead", call_console_read},
    {"ConsoleWrite", call_console_write}, {"PlanNode", call_plan_node},
};

void luxi_handle(struct luxi *luxi, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    const struct luxi_method *method = luxi_check_method(request->name, &error);
    void *args = NULL;

    if (method != NULL && !luxi->serving)
        fettle_set_error(&error, TEMPORARY, "luxid is starting; try again");
    else if (method != NULL)
        args = luxi_args_parse(method, request->args, &error);
    if (args == NULL) {
        rpc_fail(request, error);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        if (g_str_equal(calls[i].name, method->name)) {
            calls[i].call(luxi, request, args);
            break;
        }
    }
    record_free(method->args, args);
}
