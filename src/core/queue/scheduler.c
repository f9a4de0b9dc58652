/* Which job starts when; see scheduler.h. */
#include "core/queue/scheduler.h"

#include "core/queue/hold.h"
#include "core/queue/start.h"
#include "core/queue/track.h"

struct scheduler {
    struct queue_context *context;
    struct task *task;
};

struct scheduler *scheduler_new(struct queue_context *context)
{
    struct scheduler *scheduler = g_new0(struct scheduler, 1);
    scheduler->context = context;
    return scheduler;
}

void scheduler_free(struct scheduler *scheduler)
{
    g_free(scheduler);
}

struct doomed {
    struct queue_context *context;
    guint64 id;
    enum job_state state;
    char *message;
};

/* A task: ends a job that can never start. */
static void end_doomed(void *data)
{
    struct doomed *doomed = data;
    if (tracker_end_job(doomed->context, doomed->id, doomed->state, FETTLE_ERROR_WRONG_STATE,
                        doomed->message)) {
        struct queue_job *job = queue_find(doomed->context->queue, doomed->id);
        if (job)
            queue_set_busy(doomed->context->queue, job, false);
    }
    g_free(doomed->message);
    g_free(doomed);
}

static void end_next_doomed(struct queue_context *context, struct queue_job *job)
{
    struct doomed *doomed = g_new0(struct doomed, 1);
    queue_set_busy(context->queue, job, true);
    doomed->context = context;
    doomed->id = job->id;
    doomed->state = job->doom_state;
    doomed->message = g_strdup_printf(
        "job %" G_GUINT64_FORMAT " was not started: %s; nothing has run", job->id, job->doom);
    task_spawn(context->env->tasks, end_doomed, doomed);
}

static void schedule(struct queue_context *context)
{
    holds_look(context->holds);
    struct queue_job *job;
    while (!context->ends && queue_active(context->queue) < context_slots(context) &&
           (job = queue_next(context->queue))) {
        if (!holds_allow(context->holds, job))
            continue;
        holds_started(context->holds, job);
        start_job(context, job);
    }
    while ((job = queue_next_doomed(context->queue)))
        end_next_doomed(context, job);
}

static void schedule_loop(void *data)
{
    struct scheduler *scheduler = data;
    scheduler->task = task_self();
    do
        schedule(scheduler->context);
    while (task_wait());
    scheduler->task = NULL;
}

void scheduler_start(struct scheduler *scheduler)
{
    task_spawn(scheduler->context->env->tasks, schedule_loop, scheduler);
}

void scheduler_kick(struct scheduler *scheduler)
{
    if (scheduler->task)
        task_wake(scheduler->task);
}
