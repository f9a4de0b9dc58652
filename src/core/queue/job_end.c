/* See job_end.h. */
#include "core/queue/job_end.h"

#include "base/log.h"
#include "core/job/job_state.h"

struct ending_wish {
    struct queue_context *context;
    guint64 id;
};

/* What is on record of a job that has not ended; NULL: there is nothing left to do. */
static const struct job *wish_on_record(const struct ending_wish *wish)
{
    const struct queue_job *job = queue_find(wish->context->queue, wish->id);
    const struct job *record = context_record(wish->context, wish->id);
    bool ended =
        !job || job->phase == JOB_PHASE_ENDED || !record || job_state_final(job_state_of(record));
    return ended || !record->cancel ? NULL : record;
}

/* The process that is responsible for the job, by what its file says, or else its lock file. */
static void signal_job(const struct ending_wish *wish, bool kill)
{
    const struct queue_context *context = wish->context;
    const struct queue_job *job = queue_find(context->queue, wish->id);
    const struct job *view = context_view(context, wish->id);
    const struct job_process process = {.livelock = job ? job->livelock : NULL,
                                        .pid = view ? view->process_id : 0,
                                        .start_ticks = view ? view->process_start : 0};
    if (!job || job->phase != JOB_PHASE_RUNNING || !job->livelock)
        return;
    if (!context->env->ops->job_signal(context->env, &process, kill))
        log_warning("",
                    "job %" G_GUINT64_FORMAT
                    " cannot be %s: neither its job file nor its lock file tells which process it "
                    "is. Look for the one that has the file open (fuser -v run/livelocks/%s) and "
                    "kill that; luxid sees its end, and ends the job",
                    wish->id, kill ? "killed" : "asked to end", process.livelock);
}

/* A clock that was set back or forth makes it neither longer nor endless. */
static guint wait_ms(const struct ending_wish *wish, guint64 kill_us)
{
    gint64 left_us = (gint64)kill_us - wish->context->env->ops->wall_us(wish->context->env);
    return (guint)(CLAMP(left_us, 0, (gint64)JOB_KILL_GRACE_MS * 1000) / 1000);
}

static void kill_until_ended(const struct ending_wish *wish)
{
    const struct env *env = wish->context->env;
    const struct job *record = wish_on_record(wish);
    bool alive = record && record->kill_us != 0 && env_sleep(env, wait_ms(wish, record->kill_us));
    while (alive && wish_on_record(wish)) {
        signal_job(wish, true);
        alive = env_sleep(env, JOB_KILL_GRACE_MS);
    }
}

static void end_task(void *data)
{
    g_autofree struct ending_wish *wish = data;
    signal_job(wish, false);
    kill_until_ended(wish);
    struct queue_job *job = queue_find(wish->context->queue, wish->id);
    if (job)
        job->killing = false;
}

void job_end_carry_out(struct queue_context *context, struct queue_job *job)
{
    struct ending_wish *wish = g_new(struct ending_wish, 1);
    *wish = (struct ending_wish){context, job->id};
    const struct job *record = wish_on_record(wish);
    if (!record || job->killing) {
        g_free(wish);
        return;
    }
    job->killing = record->kill_us != 0;
    task_spawn(context->env->tasks, end_task, wish);
}
