/* What users ask of a job: its end, another priority. See calls.h; which state allows what stands
 * in job_state.c. */
#include "core/job/archive.h"
#include "core/queue/calls.h"
#include "core/queue/job_end.h"
#include "core/queue/scheduler.h"

#define CANCELED "Job successfully cancelled"

struct verb {
    struct queue_context *context;
    struct rpc_request *request;
    guint64 id;
    gint64 priority; /* of ChangeJobPriority */
    bool kill;       /* of CancelJob */
    const char *done;
};

static void answer_no(struct rpc_request *request, const char *why)
{
    rpc_answer(request, json_make("[b, s]", 0, why));
}

static void verb_done(const GError *error, void *data)
{
    struct verb *verb = data;
    struct queue_job *job = queue_find(verb->context->queue, verb->id);
    if (job)
        queue_set_busy(verb->context->queue, job, false);
    scheduler_kick(verb->context->scheduler);
    if (!error)
        rpc_answer(verb->request, json_make("[b, s]", 1, verb->done));
    else if (fettle_error_is(error, WRONG_STATE))
        answer_no(verb->request, error->message);
    else
        rpc_fail(verb->request, error);
    g_free(verb);
}

/* Why there is nothing to do to a job that is not on record. Free with g_free(). */
static char *not_on_record(const struct queue_context *context, guint64 id)
{
    record_autoptr(job) archived = archive_read(context->env, id, NULL);
    if (!archived)
        return g_strdup_printf("Job %" G_GUINT64_FORMAT " not found in queue", id);
    return g_strdup_printf("Job %" G_GUINT64_FORMAT " has ended already, with %s, and is archived",
                           id, archived->status);
}

/* NULL, and answered, if there is no such job or its state forbids the verb. From the moment a job
 * is picked to be started it counts as running. */
static struct queue_job *job_for(struct queue_context *context, struct rpc_request *request,
                                 enum job_verb what, guint64 id)
{
    struct queue_job *job = queue_find(context->queue, id);
    g_autofree char *why = NULL;
    if (!job) {
        why = not_on_record(context, id);
        answer_no(request, why);
        return NULL;
    }
    enum job_state state = (enum job_state)job->state;
    if (state == JOB_QUEUED && (job->busy || job->phase != JOB_PHASE_QUEUED))
        state = JOB_WAITING;
    if (job_verb_allowed(what, state, id, &why))
        return job;
    answer_no(request, why);
    return NULL;
}

static void commit_verb(const struct verb *from,
                        bool (*build)(struct commit_batch *batch, void *data, GError **error),
                        void (*done)(const GError *error, void *data))
{
    struct queue_context *context = from->context;
    struct queue_job *job = queue_find(context->queue, from->id);
    const struct commit_item item = {.build = build,
                                     .done = done,
                                     .data = g_memdup2(from, sizeof(*from)),
                                     .changes = 1,
                                     .bytes = commit_job_bytes(context_record(context, from->id))};
    queue_set_busy(context->queue, job, true);
    committer_add(context->committer, &item);
}

/* A copy of its record if that has not ended. */
static struct job *record_under_way(const struct verb *verb, GError **error)
{
    const struct job *record = context_record(verb->context, verb->id);
    if (record && !job_state_final(job_state_of(record)))
        return job_copy(record);
    fettle_set_error(error, WRONG_STATE, "Job %" G_GUINT64_FORMAT " has ended already", verb->id);
    return NULL;
}

/* --- CancelJob --- */

static void cancel(const struct verb *verb, struct job *job)
{
    json_autoptr result = job_error_result(FETTLE_ERROR_CANCELED, "Job canceled by request");
    job_end(job, JOB_CANCELED, result, context_now_us(verb->context));
}

static bool build_cancel(struct commit_batch *batch, void *data, GError **error)
{
    const struct verb *verb = data;
    const struct job *record = context_record(verb->context, verb->id);
    if (!record || record->started || job_state_of(record) != JOB_QUEUED) {
        fettle_set_error(error, WRONG_STATE, "Job %" G_GUINT64_FORMAT " is not queued any more",
                         verb->id);
        return false;
    }
    record_autoptr(job) job = job_copy(record);
    cancel(verb, job);
    commit_put_job(batch, job);
    return true;
}

/* A wish on record, which the job's process finds there also if the signal does not reach it. One
 * that was only busy, and has not started, ends by it. */
static bool build_wish(struct commit_batch *batch, void *data, GError **error)
{
    struct verb *verb = data;
    record_autoptr(job) job = record_under_way(verb, error);
    if (!job)
        return false;
    verb->done = !job->started ? CANCELED
                 : verb->kill  ? "Job is asked to give up, and ended for sure in 10 seconds"
                               : "Job will be canceled: it is asked to give up at the next safe "
                                 "point";
    if (!job->started)
        cancel(verb, job);
    else if (job->cancel && (!verb->kill || job->kill_us != 0))
        return false;
    job->cancel = job->started;
    if (job->cancel && verb->kill)
        job->kill_us = context_now_us(verb->context) + JOB_KILL_GRACE_MS * 1000;
    commit_put_job(batch, job);
    return true;
}

static void wish_done(const GError *error, void *data)
{
    struct verb *verb = data;
    struct queue_job *job = queue_find(verb->context->queue, verb->id);
    if (!error && job)
        job_end_carry_out(verb->context, job);
    verb_done(error, verb);
}

void call_cancel_job(struct queue_context *context, struct rpc_request *request,
                     const struct luxi_cancel_job_args *args)
{
    struct verb verb = {
        .context = context, .request = request, .id = args->job, .kill = args->kill};
    const struct queue_job *job = job_for(context, request, JOB_VERB_CANCEL, args->job);
    if (!job)
        return;
    if (job->phase == JOB_PHASE_QUEUED && !job->busy) {
        verb.done = CANCELED;
        commit_verb(&verb, build_cancel, verb_done);
        return;
    }
    commit_verb(&verb, build_wish, wish_done);
}

/* --- ChangeJobPriority --- */

static bool build_priority(struct commit_batch *batch, void *data, GError **error)
{
    const struct verb *verb = data;
    record_autoptr(job) job = record_under_way(verb, error);
    /* The file of a running job knows which have ended. */
    const struct job *view = context_view(verb->context, verb->id);
    if (!job)
        return false;
    for (guint i = 0; i < job->ops->len; i++) {
        struct job_op *op = job->ops->pdata[i];
        if (job_state_final(job_op_state(view->ops->pdata[i])))
            continue;
        json_t *input = json_copy(op->input);
        json_object_set_new(input, "priority", json_integer(verb->priority));
        json_decref(op->input);
        op->input = input;
    }
    commit_put_job(batch, job);
    return true;
}

/* Where it waits for locks it goes to its new place there too. */
static void move_in_line_task(void *data)
{
    g_autofree struct verb *verb = data;
    const struct queue_job *job = queue_find(verb->context->queue, verb->id);
    char text[24];
    struct owner owner = {.job = text, .livelock = job ? job->livelock : NULL};
    struct lock_priority_args args = {.owner = &owner, .priority = verb->priority};
    g_autoptr(GError) ignored = NULL; /* it does not wait */
    if (!owner.livelock)
        return;
    g_snprintf(text, sizeof(text), "%" G_GUINT64_FORMAT, verb->id);
    record_autoptr(nothing) done =
        env_call_record(verb->context->env, NODE_LOCAL, ROLE_WCONFD, "set_lock_priority", &args,
                        follow_stamp(verb->context->follow), 0, 0, &ignored);
}

static void priority_done(const GError *error, void *data)
{
    struct verb *verb = data;
    const struct queue_job *job = queue_find(verb->context->queue, verb->id);
    if (!error && job && job->phase == JOB_PHASE_RUNNING)
        task_spawn(verb->context->env->tasks, move_in_line_task, g_memdup2(verb, sizeof(*verb)));
    verb_done(error, verb);
}

void call_change_job_priority(struct queue_context *context, struct rpc_request *request,
                              const struct luxi_change_job_priority_args *args)
{
    struct verb verb = {.context = context,
                        .request = request,
                        .id = args->job,
                        .priority = args->priority,
                        .done = "Priority of the opcodes that have not ended changed"};
    if (job_for(context, request, JOB_VERB_PRIORITY, args->job))
        commit_verb(&verb, build_priority, priority_done);
}
