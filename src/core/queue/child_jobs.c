/* Jobs that other jobs ask for; see child_jobs.h. */
#include "core/queue/child_jobs.h"

#include "core/job/reason.h"
#include "core/ops/op.h"
#include "core/queue/submit.h"

guint child_jobs_count(const struct job *job, size_t *ret_bytes)
{
    guint count = 0;
    size_t bytes = 0;
    for (guint i = 0; job_state_of(job) != JOB_CANCELED && i < job->ops->len; i++) {
        const json_t *jobs = op_wanted_jobs(job->ops->pdata[i]);
        count += (guint)json_array_size(jobs);
        if (ret_bytes && jobs)
            /* With the defaults of their opcodes they are about twice as large. */
            bytes += 2 * json_dumpb(jobs, NULL, 0, JSON_COMPACT);
    }
    if (ret_bytes)
        *ret_bytes = bytes;
    return count;
}

/* [true, id], or [false, why it is refused]. */
static json_t *add_child(struct queue_context *context, struct commit_batch *batch,
                         const struct job *parent, const json_t *ops)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(job) child = NULL;
    if (queue_waiting(context->queue) + batch->changes->len >= context->most_queued)
        fettle_set_error(&error, TEMPORARY, "the queue is full: at most %u jobs are queued",
                         context->most_queued);
    else
        child = submit_parse(context, FACE_OWN, ops, &error);
    if (!child)
        return json_make("[b, s]", 0, error->message);
    child->id = commit_job_id(batch);
    reason_add_submitted(child);
    g_free(child->user);
    child->user = g_strdup(parent->user);
    commit_put_job(batch, child);
    return json_make("[b, I]", 1, (json_int_t)child->id);
}

void child_jobs_add(struct queue_context *context, struct commit_batch *batch, struct job *job)
{
    if (job_state_of(job) == JOB_CANCELED)
        return;
    for (guint i = 0; i < job->ops->len; i++) {
        struct job_op *op = job->ops->pdata[i];
        const json_t *wanted = op_wanted_jobs(op);
        if (!wanted)
            continue;
        json_t *answers = json_array();
        size_t at;
        const json_t *ops;
        json_array_foreach(wanted, at, ops)
            json_array_append_new(answers, add_child(context, batch, job, ops));
        /* A copy of the job shares its results with what it was copied from. */
        json_t *result = json_copy(op->result);
        json_object_set_new(result, "jobs", answers);
        json_decref(op->result);
        op->result = result;
    }
}
