/* Shared by the parts of luxid; see context.h. */
#include "core/queue/context.h"

#include "core/queue/hold.h"

const struct job *context_record(const struct queue_context *context, guint64 id)
{
    char key[24];
    g_snprintf(key, sizeof(key), "%" G_GUINT64_FORMAT, id);
    return config_get(follow_config(context->follow), "job", key, NULL);
}

const struct job *context_view(const struct queue_context *context, guint64 id)
{
    const struct queue_job *job = queue_find(context->queue, id);
    if (job && job->live)
        return job->live;
    return context_record(context, id);
}

guint context_slots(const struct queue_context *context)
{
    const struct cluster *cluster = config_cluster(follow_config(context->follow));
    return cluster ? (guint)cluster->max_running_jobs : 0;
}

guint64 context_now_us(const struct queue_context *context)
{
    return (guint64)context->env->ops->wall_us(context->env);
}

/* --- what queries are told of jobs --- */

static GArray *job_ids(void *data)
{
    return queue_ids(((struct queue_context *)data)->queue);
}

static bool job_known(void *data, guint64 id)
{
    return queue_find(((struct queue_context *)data)->queue, id) != NULL;
}

static const struct job *committed_job(void *data, guint64 id)
{
    return context_record(data, id);
}

static const struct job *job_view(void *data, guint64 id)
{
    return context_view(data, id);
}

static struct query_held job_held(void *data, guint64 id)
{
    const struct queue_job *job = queue_find(((struct queue_context *)data)->queue, id);
    return job ? (struct query_held){job->held, job->held_at_us, job->held_by}
               : (struct query_held){NULL};
}

static json_t *job_holds(void *data, guint64 id)
{
    const struct queue_context *context = data;
    struct queue_job *job = queue_find(context->queue, id);
    return !job || job->phase != JOB_PHASE_QUEUED ? NULL : holds_explain(context->holds, job);
}

static void job_count(void *data, guint *ret_queued, guint *ret_running)
{
    const struct queue_context *context = data;
    *ret_queued = queue_waiting(context->queue);
    *ret_running = queue_active(context->queue);
}

void context_init_queries(struct queue_context *context)
{
    static const struct query_jobs jobs = {
        .ids = job_ids,
        .known = job_known,
        .record = committed_job,
        .view = job_view,
        .held = job_held,
        .holds = job_holds,
        .count = job_count,
    };
    context->queries = (struct queries){.env = context->env,
                                        .follow = context->follow,
                                        .jobs = &jobs,
                                        .jobs_data = context,
                                        .most_archived = LIMIT_ARCHIVE_ROWS};
}
