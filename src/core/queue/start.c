/* Starting a job process; see start.h. */
#include "core/queue/start.h"

#include "base/log.h"
#include "core/job/job_file.h"
#include "core/queue/scheduler.h"
#include "core/queue/track.h"

struct starting {
    struct queue_context *context;
    guint64 id;
    struct starter *starter; /* until its pipe is broken */
    struct task *task;       /* the procedure, until it has ended */
    bool broken;
    bool late;      /* its child has had time enough to name itself */
    bool doomed;    /* it can never start */
    char *livelock; /* of the child, once it is named */
    guint64 process_id;
    guint64 process_start;
};

static GHashTable *starting_set(struct queue_context *context)
{
    if (!context->starting)
        context->starting = g_hash_table_new(NULL, NULL);
    return context->starting;
}

static void starting_free(struct starting *starting)
{
    g_free(starting->livelock);
    g_free(starting);
}

/* The procedure and the starter each need it until they have ended. */
static void release(struct starting *starting)
{
    if (starting->task || starting->starter)
        return;
    g_hash_table_remove(starting->context->starting, starting);
    starting_free(starting);
}

void start_clear(struct queue_context *context)
{
    if (!context->starting)
        return;
    GHashTableIter iter;
    void *starting;
    g_hash_table_iter_init(&iter, context->starting);
    while (g_hash_table_iter_next(&iter, &starting, NULL))
        starting_free(starting);
    g_clear_pointer(&context->starting, g_hash_table_unref);
}

/* --- the child --- */

static void on_named(struct starter *starter, const char *livelock, guint64 pid,
                     guint64 start_ticks, void *data)
{
    struct starting *starting = data;
    if (starting->livelock)
        return;
    starting->livelock = g_strdup(livelock);
    starting->process_id = pid;
    starting->process_start = start_ticks;
    if (starting->task)
        task_wake(starting->task);
}

/* Once confirmed this calls for no action: the lock file tells what becomes of the job (LUX-24,
 * 25). */
static void on_broken(struct starter *starter, bool confirmed, void *data)
{
    struct starting *starting = data;
    starting->broken = true;
    starting->starter = NULL;
    if (starting->task)
        task_wake(starting->task);
    release(starting);
}

static const struct starter_events events = {.named = on_named, .broken = on_broken};

/* --- the procedure --- */

static bool write_file(struct starting *starting, const char *livelock, GError **error)
{
    const struct job *record = context_record(starting->context, starting->id);
    if (!record) {
        fettle_set_error(error, UNKNOWN_ENTITY, "its record is gone");
        return false;
    }
    struct job file = *record; /* borrows all else */
    file.livelock = (char *)livelock;
    file.process_id = starting->process_id;
    file.process_start = starting->process_start;
    return job_file_write(starting->context->env, &file, error);
}

/* A timer. */
static void name_is_late(void *data)
{
    struct starting *starting = data;
    starting->late = true;
    if (!starting->livelock && !starting->broken)
        starting->context->env->ops->starter_drop(starting->context->env, starting->starter);
}

/* False: luxid is killed. */
static bool wait_named_or_broken(struct starting *starting)
{
    const struct env *env = starting->context->env;
    guint timer = env->ops->timer(env, LIMIT_CHILD_NAME_MS, name_is_late, starting);
    bool alive = true;
    while (alive && !starting->livelock && !starting->broken)
        alive = task_wait();
    if (!starting->late)
        env->ops->timer_cancel(env, timer);
    return alive;
}

/* False: the child is gone, or luxid is killed. A child that hangs is given up: it takes a slot. */
static bool wait_for_name(struct starting *starting, GError **error)
{
    if (!starting->livelock && !starting->broken && !wait_named_or_broken(starting)) {
        fettle_set_error(error, KILLED, "luxid has ended");
        return false;
    }
    if (!starting->broken)
        return true;
    if (starting->late)
        fettle_set_error(error, JOB_FAILED, "its process did not name its lock file within %d s",
                         LIMIT_CHILD_NAME_MS / 1000);
    else
        fettle_set_error(error, JOB_FAILED, "its process ended before the confirmation");
    return false;
}

/* The child's name must be in the file before it may go on (LUX-20). A disk that refuses it only
 * delays the job: the child waits, and ends by itself if luxid does. */
static bool write_name(struct starting *starting, GError **error)
{
    g_autoptr(GError) failed = NULL;
    while (!write_file(starting, starting->livelock, &failed)) {
        if (starting->broken)
            break;
        if (fettle_error_is(failed, UNKNOWN_ENTITY) || fettle_error_is(failed, KILLED)) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return false;
        }
        log_warning("", "job %" G_GUINT64_FORMAT " cannot start yet: %s", starting->id,
                    failed->message);
        g_clear_error(&failed);
        if (!env_sleep(starting->context->env, LIMIT_QUEUE_RETRY_MS))
            break;
    }
    return wait_for_name(starting, error);
}

/* Whoever makes the processes may be behind with that. */
static bool spawn(struct starting *starting, GError **error)
{
    const struct env *env = starting->context->env;
    for (;;) {
        g_autoptr(GError) failed = NULL;
        starting->starter = env->ops->starter_spawn(env, starting->id, &events, starting, &failed);
        if (starting->starter)
            return true;
        if (!fettle_error_is(failed, TEMPORARY) || !env_sleep(env, LIMIT_QUEUE_RETRY_MS)) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return false;
        }
    }
}

static bool start_procedure(struct starting *starting, GError **error)
{
    const struct env *env = starting->context->env;
    const struct queue_job *job = queue_find(starting->context->queue, starting->id);
    /* It came to be so while nobody knew that it is started. */
    starting->doomed = job && job->doom;
    if (starting->doomed) {
        fettle_set_error(error, JOB_FAILED, "%s", job->doom);
        return false;
    }
    if (!write_file(starting, starting->context->livelock, error))
        return false;
    if (!spawn(starting, error))
        return false;
    if (!wait_for_name(starting, error) || !write_name(starting, error))
        return false;
    if (env->ops->starter_confirm(env, starting->starter))
        return true;
    fettle_set_error(error, JOB_FAILED, "its process ended before the confirmation");
    return false;
}

/* One that is doomed ends as it would have in the queue. */
static void end_not_started(const struct starting *starting, const struct queue_job *job,
                            const GError *why)
{
    struct queue_context *context = starting->context;
    guint64 id = starting->id;
    enum job_state state = starting->doomed ? job->doom_state : JOB_ERROR;
    g_autofree char *message = g_strdup_printf(
        "job %" G_GUINT64_FORMAT " did not start: %s; nothing has run", id, why->message);
    log_warning("", "%s", message);
    if (tracker_end_job(context, id, state,
                        starting->doomed ? FETTLE_ERROR_WRONG_STATE : FETTLE_ERROR_TEMPORARY,
                        message))
        tracker_finish(context, id);
}

static void start_task(void *data)
{
    struct starting *starting = data;
    struct queue_context *context = starting->context;
    g_autoptr(GError) error = NULL;
    starting->task = task_self();
    bool started = start_procedure(starting, &error);
    struct queue_job *job = queue_find(context->queue, starting->id);
    if (!task_group_killed(context->env->tasks) && job) {
        if (started) {
            g_free(job->livelock);
            job->livelock = g_strdup(starting->livelock);
            tracker_follow(context->tracker, job);
        } else {
            end_not_started(starting, job, error);
        }
    }
    starting->task = NULL;
    release(starting);
}

/* --- `started` on record --- */

void start_mark(const struct queue_context *context, const struct commit_batch *batch,
                struct job *job)
{
    job->started = true;
    job->history = batch->stamp.history;
    job->epoch = batch->stamp.epoch;
    job->start_us = context_now_us(context);
    job_update_status(job);
}

static bool build_started(struct commit_batch *batch, void *data, GError **error)
{
    struct starting *starting = data;
    const struct job *record = context_record(starting->context, starting->id);
    if (!record || record->started || job_state_of(record) != JOB_QUEUED) {
        fettle_set_error(error, WRONG_STATE, "it is not queued any more");
        return false;
    }
    record_autoptr(job) job = job_copy(record);
    start_mark(starting->context, batch, job);
    commit_put_job(batch, job);
    return true;
}

/* The record says that it is started, and no more than that has been done. */
static bool is_recorded(const struct queue_context *context, guint64 id)
{
    const struct job *record = context_record(context, id);
    return record && record->started && !job_state_final(job_state_of(record));
}

/* It goes on from there; what an older mastership has begun is settled instead (SAF-06). */
static void go_on(struct starting *starting, struct queue_job *job)
{
    struct queue_context *context = starting->context;
    const struct job *record = context_record(context, starting->id);
    struct stamp now = follow_stamp(context->follow);
    if (record->history == now.history && record->epoch == now.epoch) {
        queue_set_phase(context->queue, job, JOB_PHASE_STARTING);
        task_spawn(context->env->tasks, start_task, starting);
    } else {
        tracker_take_up(context->tracker, job);
        release(starting);
    }
}

/* A timer: the job may be picked again, unless its commit was made after all. */
static void queue_again(void *data)
{
    struct starting *starting = data;
    struct queue_context *context = starting->context;
    struct queue_job *job = queue_find(context->queue, starting->id);
    if (job && job->phase == JOB_PHASE_STARTING && is_recorded(context, starting->id)) {
        go_on(starting, job);
        return;
    }
    if (job && job->phase == JOB_PHASE_STARTING)
        queue_set_phase(context->queue, job,
                        job_state_final((enum job_state)job->state) ? JOB_PHASE_ENDED
                                                                    : JOB_PHASE_QUEUED);
    scheduler_kick(context->scheduler);
    release(starting);
}

static void started_recorded(const GError *error, void *data)
{
    struct starting *starting = data;
    struct queue_context *context = starting->context;
    struct queue_job *job = queue_find(context->queue, starting->id);
    if (job)
        queue_set_busy(context->queue, job, false);
    if (!error) {
        task_spawn(context->env->tasks, start_task, starting);
    } else if (fettle_error_is(error, KILLED)) {
        return;
    } else if (!job || job_state_final((enum job_state)job->state)) {
        queue_again(starting); /* it was canceled a moment before: its slot is free */
    } else {
        log_warning("", "job %" G_GUINT64_FORMAT " stays queued: its start cannot be recorded: %s",
                    starting->id, error->message);
        context->env->ops->timer(context->env, LIMIT_QUEUE_RETRY_MS, queue_again, starting);
    }
}

static struct starting *starting_new(struct queue_context *context, guint64 id)
{
    struct starting *starting = g_new0(struct starting, 1);
    starting->context = context;
    starting->id = id;
    g_hash_table_add(starting_set(context), starting);
    return starting;
}

void start_if_recorded(struct queue_context *context, struct queue_job *job, bool fresh)
{
    if ((fresh || job->phase == JOB_PHASE_QUEUED) && is_recorded(context, job->id))
        go_on(starting_new(context, job->id), job);
}

void start_job(struct queue_context *context, struct queue_job *job)
{
    struct starting *starting = starting_new(context, job->id);
    const struct commit_item item = {.build = build_started,
                                     .done = started_recorded,
                                     .data = starting,
                                     .changes = 1,
                                     .bytes = commit_job_bytes(context_record(context, job->id))};
    queue_set_phase(context->queue, job, JOB_PHASE_STARTING);
    queue_set_busy(context->queue, job, true);
    committer_add(context->committer, &item);
}
