/* What has become of a job whose process may be gone: judged by its lock file, then by its file;
 * see track.h. */
#include "core/queue/track_private.h"

#include "base/log.h"
#include "core/job/job_file.h"
#include "core/ops/op.h"
#include "core/queue/old_jobs.h"

#define ID G_GUINT64_FORMAT

/* --- judging --- */

/* A hint, so that wconfd looks at once; it believes only its own probe. */
static void owner_gone_cb(json_t *result, const GError *error, void *data)
{
}

static void hint_owner_gone(struct queue_context *context, const struct queue_job *job)
{
    const struct env *env = context->env;
    struct rpc_call call = {.to_node = NODE_LOCAL,
                            .to_role = ROLE_WCONFD,
                            .method = "owner_gone",
                            .stamp = follow_stamp(context->follow)};
    if (!job->livelock)
        return;
    char id[24];
    g_snprintf(id, sizeof(id), "%" ID, job->id);
    call.args = json_make("{s{ssss}}", "owner", "job", id, "livelock", job->livelock);
    env->ops->call(env, &call, owner_gone_cb, NULL);
}

/* Whether every node has answered the epoch: before that no job of an older one may end (SAF-06).
 */
static bool nodes_have_answered(struct queue_context *context)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(cluster_status) status =
        env_call_record(context->env, NODE_LOCAL, ROLE_WCONFD, "cluster_status", NULL,
                        follow_stamp(context->follow), 0, 0, &error);
    return status && status->nodes_pending->len == 0;
}

bool track_same_mastership(const struct queue_context *context, const struct job *job)
{
    struct stamp now = follow_stamp(context->follow);
    return job->history == now.history && job->epoch == now.epoch;
}

/* A job of a mastership that is over: its file says nothing that counts (SAF-30). */
static bool settle_older_epoch(struct queue_context *context, guint64 id, guint64 epoch)
{
    struct ending ending = {.context = context, .id = id, .state = JOB_ERROR};
    if (!nodes_have_answered(context))
        return false;
    g_autofree char *message =
        g_strdup_printf("detected death of job %" ID ": it ran under epoch %" ID
                        ", which ended with its master's restart or loss",
                        id, epoch);
    log_warning("", "%s", message);
    json_autoptr result = json_string(message);
    ending.result = result;
    return track_commit_end(&ending);
}

/* What the opcodes of a dead job end with, by how far its file (NULL: there is none) says that it
 * came: surely not started is a passing error, death a plain text as Ganeti has it. */
static json_t *death_result(const struct queue_context *context, guint64 id, const struct job *file,
                            const GError *error)
{
    const struct queue_job *job = queue_find(context->queue, id);
    bool damaged = g_hash_table_contains(context->tracker->damaged, &id);
    bool gone = !file && !damaged && fettle_error_is(error, UNKNOWN_ENTITY);
    g_autofree char *message = NULL;
    if (file && g_str_has_prefix(file->livelock, ROLE_LUXID "-"))
        message =
            g_strdup_printf("job %" ID " did not start: luxid ended while it was starting it; "
                            "nothing has run",
                            id);
    else if (gone && job && !job->livelock)
        message = g_strdup_printf("job %" ID " did not start: luxid ended before it had written "
                                  "the job file; nothing has run",
                                  id);
    if (message) {
        log_warning("", "%s", message);
        return job_error_result(FETTLE_ERROR_TEMPORARY, message);
    }
    message = g_strdup_printf("detected death of job %" ID "%s", id,
                              gone                  ? "; its job file is gone"
                              : !file               ? "; its job file was damaged"
                              : job_untouched(file) ? " before its first opcode began"
                                                    : "");
    log_warning("", "%s", message);
    return json_string(message);
}

/* --- a process that is gone --- */

static void wake_task(void *task)
{
    task_wake(task);
}

/* A job whose file is final commits its end before it lets its lock go; our copy may be a moment
 * behind. */
static void wait_for_record(struct settling *settling)
{
    const struct env *env = settling->tracker->context->env;
    guint timer = env->ops->timer(env, LIMIT_FINAL_STATE_LAG_MS, wake_task, settling->task);
    task_wait();
    env->ops->timer_cancel(env, timer);
}

static bool settle_by_file(struct settling *settling)
{
    struct queue_context *context = settling->tracker->context;
    guint64 id = settling->id;
    g_autoptr(GError) error = NULL;
    record_autoptr(job) file = job_file_read(context->env, id, &error);
    struct ending ending = {.context = context, .id = id, .state = JOB_ERROR};
    json_autoptr result = NULL;
    if (file && !track_same_mastership(context, file))
        g_clear_pointer(&file, job_free);
    ending.file = file;
    if (file && job_state_final(job_state_of(file))) {
        if (!op_wants_jobs(file))
            wait_for_record(settling);
    } else {
        result = death_result(context, id, file, error);
        ending.result = result;
    }
    return track_commit_end(&ending);
}

/* True: nothing is left to do about the job. */
static bool settle_dead(struct settling *settling)
{
    struct queue_context *context = settling->tracker->context;
    guint64 id = settling->id;
    const struct job *record = context_record(context, id);
    struct queue_job *job = queue_find(context->queue, id);
    if (!track_record_final(context, id)) {
        hint_owner_gone(context, job);
        if (!(track_same_mastership(context, record)
                  ? settle_by_file(settling)
                  : settle_older_epoch(context, id, record->epoch)))
            return false;
    }
    tracker_finish(context, id);
    return true;
}

static enum livelock_verdict probe(struct settling *settling, const char *livelock)
{
    const struct env *env = settling->tracker->context->env;
    if (!livelock)
        return LIVELOCK_GONE;
    enum livelock_verdict verdict = env->ops->livelock_probe(env, livelock);
    /* The kernel tells of the close before it drops the lock. */
    if (verdict == LIVELOCK_ALIVE && settling->event && env_sleep(env, LIMIT_LOCK_RELEASE_LAG_MS))
        verdict = env->ops->livelock_probe(env, livelock);
    settling->event = false;
    return verdict;
}

/* A process of a mastership that is over can bring nothing to its end (SAF-06). */
static bool is_deposed(const struct settling *settling)
{
    const struct queue_context *context = settling->tracker->context;
    const struct job *record = context_record(context, settling->id);
    if (!record || track_same_mastership(context, record))
        return false;
    record_autoptr(job) file = job_file_read(context->env, settling->id, NULL);
    return file && old_jobs_end_one(context->env, file, follow_stamp(context->follow));
}

static bool settle_once(struct settling *settling)
{
    struct queue_context *context = settling->tracker->context;
    struct queue_job *job = queue_find(context->queue, settling->id);
    g_autofree char *livelock = job ? g_strdup(job->livelock) : NULL;
    if (!job || job->phase != JOB_PHASE_RUNNING)
        return true;
    enum livelock_verdict verdict = probe(settling, livelock);
    job = queue_find(context->queue, settling->id);
    if (!job)
        return true;
    switch (verdict) {
    case LIVELOCK_ALIVE:
        if (is_deposed(settling))
            return false;
        job = queue_find(context->queue, settling->id);
        if (!job)
            return true;
        tracker_follow(settling->tracker, job);
        track_read_soon(settling->tracker, job);
        return true;
    case LIVELOCK_UNSURE:
        if (!settling->doubted)
            log_warning("",
                        "job %" ID ": its lock file %s cannot be probed, so it counts as running",
                        job->id, job->livelock);
        settling->doubted = true;
        return false;
    case LIVELOCK_DEAD:
    case LIVELOCK_GONE:
        break;
    }
    return settle_dead(settling);
}

static void settle_task(void *data)
{
    struct settling *settling = data;
    const struct env *env = settling->tracker->context->env;
    settling->task = task_self();
    while (!task_group_killed(env->tasks) && !settle_once(settling))
        if (!env_sleep(env, LIMIT_QUEUE_RETRY_MS))
            break;
    g_hash_table_remove(settling->tracker->settling, &settling->id);
    g_free(settling);
}

void track_settle(struct tracker *tracker, guint64 id, bool event)
{
    if (g_hash_table_contains(tracker->settling, &id))
        return;
    struct settling *settling = g_new0(struct settling, 1);
    settling->tracker = tracker;
    settling->id = id;
    settling->event = event;
    g_hash_table_insert(tracker->settling, &settling->id, settling);
    task_spawn(tracker->context->env->tasks, settle_task, settling);
}

void tracker_recorded(struct tracker *tracker, guint64 id)
{
    struct settling *settling = g_hash_table_lookup(tracker->settling, &id);
    if (settling && settling->task)
        task_wake(settling->task);
}
