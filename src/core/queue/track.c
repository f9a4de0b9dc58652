/* Jobs under way: their files, their lock files, their end on record; see track.h. */
#include "core/queue/track_private.h"

#include "base/log.h"
#include "core/job/job_file.h"
#include "core/job/reason.h"
#include "core/queue/child_jobs.h"
#include "core/queue/job_end.h"
#include "core/queue/scheduler.h"
#include "core/queue/wait_for_job.h"
#include "core/queue/watch_changes.h"

#define ID G_GUINT64_FORMAT

struct tracker *tracker_new(struct queue_context *context)
{
    struct tracker *tracker = g_new0(struct tracker, 1);
    tracker->context = context;
    tracker->settling = g_hash_table_new(g_int64_hash, g_int64_equal);
    tracker->damaged = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    tracker->before = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    g_queue_init(&tracker->changed);
    return tracker;
}

void tracker_free(struct tracker *tracker)
{
    if (!tracker)
        return;
    g_queue_clear_full(&tracker->changed, g_free);
    g_hash_table_unref(tracker->before);
    g_hash_table_unref(tracker->damaged);
    g_hash_table_unref(tracker->settling);
    g_free(tracker);
}

bool track_record_final(const struct queue_context *context, guint64 id)
{
    const struct job *record = context_record(context, id);
    return !record || job_state_final(job_state_of(record));
}

/* --- following files --- */

static void read_changed(struct tracker *tracker, guint64 id)
{
    struct queue_context *context = tracker->context;
    struct queue_job *job = queue_find(context->queue, id);
    g_autoptr(GError) error = NULL;
    if (!job || job->phase != JOB_PHASE_RUNNING || job_state_final((enum job_state)job->state))
        return;
    job->unread = false;
    struct job *file = job_file_read(context->env, id, &error);
    /* A file that cannot be read now is looked at again when the process has ended. */
    if (!file)
        return;
    job = queue_find(context->queue, id);
    if (!job || job->phase != JOB_PHASE_RUNNING)
        job_free(file);
    else if (queue_put_live(context->queue, job, file)) {
        wait_for_job_notify(context->waiters, id);
        watch_changes_job_changed(context->watches, id);
        scheduler_kick(context->scheduler); /* it may be at its next opcode */
    }
}

static void read_loop(void *data)
{
    struct tracker *tracker = data;
    tracker->reader = task_self();
    while (!task_group_killed(tracker->context->env->tasks)) {
        g_autofree guint64 *id = g_queue_pop_head(&tracker->changed);
        if (id)
            read_changed(tracker, *id);
        else if (!task_wait())
            break;
    }
    tracker->reader = NULL;
}

void track_read_soon(struct tracker *tracker, struct queue_job *job)
{
    if (job->unread)
        return;
    job->unread = true;
    g_queue_push_tail(&tracker->changed, g_memdup2(&job->id, sizeof(job->id)));
    if (tracker->reader)
        task_wake(tracker->reader);
}

/* Events were lost: everything that may have changed. */
static void read_all_soon(struct tracker *tracker)
{
    g_autoptr(GArray) ids = queue_active_ids(tracker->context->queue);
    for (guint i = 0; i < ids->len; i++) {
        struct queue_job *job = queue_find(tracker->context->queue, g_array_index(ids, guint64, i));
        if (job->phase == JOB_PHASE_RUNNING)
            track_read_soon(tracker, job);
    }
}

/* `name` NULL: nobody knows which. */
static void file_changed(const char *name, void *data)
{
    struct tracker *tracker = data;
    if (!name) {
        read_all_soon(tracker);
        return;
    }
    guint64 id;
    if (!job_file_parse_name(name, &id))
        return;
    struct queue_job *job = queue_find(tracker->context->queue, id);
    if (job && job->phase == JOB_PHASE_RUNNING)
        track_read_soon(tracker, job);
}

/* --- ending jobs on record --- */

static bool build_end(struct commit_batch *batch, void *data, GError **error)
{
    const struct ending *ending = data;
    const struct job *record = context_record(ending->context, ending->id);
    /* Somebody else has ended it: that end stands (SAF-30). */
    if (!record || job_state_final(job_state_of(record)))
        return false;
    if (ending->file &&
        (record->history != batch->stamp.history || record->epoch != batch->stamp.epoch)) {
        fettle_set_error(error, STALE_EPOCH, "the mastership under which it ran is over");
        return false;
    }
    record_autoptr(job) job = job_copy(ending->file ? ending->file : record);
    if (json_is_string(ending->result)) /* as of nothing but death */
        reason_add_death(job, json_string_value(ending->result), context_now_us(ending->context));
    if (ending->result)
        job_end(job, ending->state, ending->result, context_now_us(ending->context));
    child_jobs_add(ending->context, batch, job);
    commit_put_job(batch, job);
    return true;
}

bool track_commit_end(struct ending *ending)
{
    const struct job *base =
        ending->file ? ending->file : context_record(ending->context, ending->id);
    size_t bytes = 0;
    guint children = base ? child_jobs_count(base, &bytes) : 0;
    const struct commit_item item = {.build = build_end,
                                     .data = ending,
                                     .changes = 1 + children,
                                     .bytes = commit_job_bytes(base) + bytes};
    g_autoptr(GError) error = NULL;
    if (committer_run(ending->context->committer, &item, &error))
        return true;
    if (!fettle_error_is(error, KILLED))
        log_warning("", "the end of job %" ID " is not on record yet: %s", ending->id,
                    error->message);
    return false;
}

bool tracker_end_job(struct queue_context *context, guint64 id, enum job_state state,
                     enum fettle_error code, const char *message)
{
    json_autoptr result = job_error_result(code, message);
    struct ending ending = {.context = context, .id = id, .state = state, .result = result};
    while (!track_commit_end(&ending))
        if (!env_sleep(context->env, LIMIT_QUEUE_RETRY_MS))
            return false;
    return true;
}

void tracker_finish(struct queue_context *context, guint64 id)
{
    struct queue_job *job = queue_find(context->queue, id);
    if (job)
        queue_set_phase(context->queue, job, JOB_PHASE_ENDED);
    scheduler_kick(context->scheduler);
    /* The record has everything now; a file that stays is removed at the next start. */
    job_file_remove(context->env, &job_file_now, id);
    if (g_hash_table_remove(context->tracker->before, &id))
        job_file_remove(context->env, &job_file_before, id);
}

/* --- following lock files --- */

/* An event, no proof: the probe in track_settle.c decides. One lock file may answer for several
 * jobs: luxid's own, for those that it was starting. */
static void lock_released(const char *name, void *data)
{
    struct tracker *tracker = data;
    g_autoptr(GArray) ids = queue_active_ids(tracker->context->queue);
    for (guint i = 0; i < ids->len; i++) {
        const struct queue_job *job =
            queue_find(tracker->context->queue, g_array_index(ids, guint64, i));
        if (job->phase == JOB_PHASE_RUNNING && g_strcmp0(job->livelock, name) == 0)
            track_settle(tracker, job->id, true);
    }
}

/* The net below the events: a lock file whose release nobody was told of. */
static void sweep_locks(struct tracker *tracker)
{
    struct queue_context *context = tracker->context;
    const struct env *env = context->env;
    g_autoptr(GArray) ids = queue_active_ids(context->queue);
    for (guint i = 0; i < ids->len; i++) {
        const struct queue_job *job = queue_find(context->queue, g_array_index(ids, guint64, i));
        if (job->phase == JOB_PHASE_RUNNING && job->livelock &&
            env->ops->livelock_probe(env, job->livelock) != LIVELOCK_ALIVE)
            track_settle(tracker, job->id, false);
    }
}

static void sweep_loop(void *data)
{
    struct tracker *tracker = data;
    const struct queue_context *context = tracker->context;
    const struct cluster *cluster;
    do {
        sweep_locks(tracker);
        cluster = config_cluster(follow_config(context->follow));
    } while (env_sleep(context->env,
                       cluster ? (guint)cluster->sweep_interval_ms : LIMIT_QUEUE_RETRY_MS));
}

void tracker_follow(struct tracker *tracker, struct queue_job *job)
{
    const struct env *env = tracker->context->env;
    queue_set_phase(tracker->context->queue, job, JOB_PHASE_RUNNING);
    env->ops->livelock_watch(env, job->livelock, lock_released, tracker);
    job_end_carry_out(tracker->context, job);
}

void tracker_take_up(struct tracker *tracker, struct queue_job *job)
{
    queue_set_phase(tracker->context->queue, job, JOB_PHASE_RUNNING);
    track_settle(tracker, job->id, false);
}

/* --- after a restart --- */

/* A job file that is damaged or gone says nothing about the lock file; its name does. */
static char *find_livelock(const struct env *env, guint64 id)
{
    g_autofree char *stem = g_strdup_printf("job-%" ID "-", id);
    g_autoptr(GPtrArray) names = env->ops->livelock_list(env);
    for (guint i = 0; names && i < names->len; i++) {
        const char *name = names->pdata[i];
        if (g_str_has_prefix(name, stem) && env->ops->livelock_probe(env, name) != LIVELOCK_DEAD)
            return g_strdup(name);
    }
    return NULL;
}

/* Which process is responsible for a job that an earlier luxid has started. */
static void adopt(struct tracker *tracker, guint64 id)
{
    struct queue_context *context = tracker->context;
    g_autoptr(GError) error = NULL;
    record_autoptr(job) file = job_file_read(context->env, id, &error);
    struct queue_job *job = queue_find(context->queue, id);
    if (!job)
        return;
    if (file && file->livelock[0] != '\0')
        job->livelock = g_strdup(file->livelock);
    else if (!file)
        job->livelock = find_livelock(context->env, id);
    /* Clients see what it says before they see anything: a running job never goes back. The file
     * of an older mastership says nothing that counts. */
    if (file && track_same_mastership(context, file))
        queue_put_live(context->queue, job, g_steal_pointer(&file));
    track_settle(tracker, id, false);
}

/* One file: of a job under way, or else it is put away. True: the first of these. */
static bool sweep_file(struct tracker *tracker, const struct job_file_place *place,
                       const char *name, guint64 id)
{
    struct queue_context *context = tracker->context;
    const struct env *env = context->env;
    g_autoptr(GError) broken = NULL;
    record_autoptr(job) file = job_file_read(env, id, &broken);
    if (!file && fettle_error_is(broken, CORRUPT)) {
        g_hash_table_add(tracker->damaged, g_memdup2(&id, sizeof(id)));
        job_file_set_aside(env, place, name, broken->message);
    } else if (file && !context_record(context, id)) {
        job_file_set_aside(env, place, name, "the store knows no such job");
    } else if (file && track_record_final(context, id)) {
        job_file_remove(env, place, id);
    } else {
        return true;
    }
    return false;
}

/* Damaged files first, and those of jobs that have ended. */
static void sweep_files(struct tracker *tracker, const struct job_file_place *place)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = job_file_list(tracker->context->env, place, &error);
    if (!names) {
        log_warning("", "job files cannot be listed: %s", error->message);
        return;
    }
    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        guint64 id;
        if (job_file_parse_name(name, &id) && sweep_file(tracker, place, name, id) &&
            place == &job_file_before)
            g_hash_table_add(tracker->before, g_memdup2(&id, sizeof(id)));
    }
}

/* Jobs that luxid of an earlier version has left running: their processes go on writing where that
 * version had its job files. */
static void take_over_before(struct tracker *tracker)
{
    const struct env *env = tracker->context->env;
    sweep_files(tracker, &job_file_before);
    guint count = g_hash_table_size(tracker->before);
    if (count == 0)
        return;
    log_info("",
             "%u jobs were begun by an earlier version, with their files in var/queue: they are "
             "followed there to their end",
             count);
    env->ops->file_watch(env, job_file_before.area, job_file_before.folder, file_changed, tracker);
}

void tracker_start(struct tracker *tracker)
{
    struct queue_context *context = tracker->context;
    const struct env *env = context->env;
    env->ops->file_watch(env, job_file_now.area, job_file_now.folder, file_changed, tracker);
    task_spawn(env->tasks, read_loop, tracker);
    g_autoptr(GArray) ids = queue_active_ids(context->queue);
    sweep_files(tracker, &job_file_now);
    take_over_before(tracker);
    for (guint i = 0; i < ids->len; i++)
        adopt(tracker, g_array_index(ids, guint64, i));
    task_spawn(env->tasks, sweep_loop, tracker);
}
