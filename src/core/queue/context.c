/* Shared by the parts of luxid; see context.h. */
#include "core/queue/context.h"

const struct job *context_record(const struct queue_context *context, guint64 id)
{
    char key[24];

    g_snprintf(key, sizeof(key), "%" G_GUINT64_FORMAT, id);
    return config_get(follow_config(context->follow), "job", key, NULL);
}

const struct job *context_view(const struct queue_context *context, guint64 id)
{
    const struct queue_job *job = queue_find(context->queue, id);

    if (job != NULL && job->live != NULL)
        return job->live;
    return context_record(context, id);
}

guint context_slots(const struct queue_context *context)
{
    const struct cluster *cluster = config_cluster(follow_config(context->follow));

    return cluster == NULL ? 0 : (guint)cluster->max_running_jobs;
}

guint64 context_now_us(const struct queue_context *context)
{
    return (guint64)context->env->ops->wall_us(context->env);
}

struct stamp context_stamp(const struct queue_context *context)
{
    return (struct stamp){config_history(follow_config(context->follow)),
                          follow_epoch(context->follow)};
}
