/* Jobs under way and what becomes of them; see track.h. */
#include "core/queue/track.h"

#include "base/log.h"
#include "core/queue/children.h"
#include "core/queue/job_file.h"
#include "core/queue/scheduler.h"
#include "core/queue/waiters.h"

#define ID G_GUINT64_FORMAT

struct tracker {
    struct queue_context *context;
    GHashTable *settling; /* id -> struct settling *: whose process is being judged */
    GHashTable *damaged;  /* set of ids, as guint64 *, whose file was set aside */
    GQueue changed;       /* ids whose file has changed, as guint64 * */
    struct task *reader;
};

/* A task that finds out what has become of a job. */
struct settling {
    struct tracker *tracker;
    guint64 id;
    struct task *task;
    bool event;   /* its lock file was closed a moment ago */
    bool doubted; /* said once that its lock file cannot be probed */
};

struct tracker *tracker_new(struct queue_context *context)
{
    struct tracker *tracker = g_new0(struct tracker, 1);

    tracker->context = context;
    tracker->settling = g_hash_table_new(g_int64_hash, g_int64_equal);
    tracker->damaged = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    g_queue_init(&tracker->changed);
    return tracker;
}

void tracker_free(struct tracker *tracker)
{
    if (tracker == NULL)
        return;
    g_queue_clear_full(&tracker->changed, g_free);
    g_hash_table_unref(tracker->damaged);
    g_hash_table_unref(tracker->settling);
    g_free(tracker);
}

static bool record_final(const struct queue_context *context, guint64 id)
{
    const struct job *record = context_record(context, id);

    return record == NULL || job_state_final(job_state_of(record));
}

/* --- following files --- */

static void read_changed(struct tracker *tracker, guint64 id)
{
    struct queue_context *context = tracker->context;
    struct queue_job *job = queue_find(context->queue, id);
    g_autoptr(GError) error = NULL;
    struct job *file;

    if (job == NULL || job->phase != JOB_PHASE_RUNNING ||
        job_state_final((enum job_state)job->state))
        return;
    job->unread = false;
    file = job_file_read(context->env, id, &error);
    /* A file that cannot be read now is looked at again when the process has ended. */
    if (file == NULL)
        return;
    job = queue_find(context->queue, id);
    if (job == NULL || job->phase != JOB_PHASE_RUNNING)
        job_free(file);
    else if (queue_put_live(context->queue, job, file))
        waiters_notify(context->waiters, id);
}

static void read_loop(void *data)
{
    struct tracker *tracker = data;

    tracker->reader = task_self();
    while (!task_group_killed(tracker->context->env->tasks)) {
        g_autofree guint64 *id = g_queue_pop_head(&tracker->changed);

        if (id != NULL)
            read_changed(tracker, *id);
        else if (!task_wait())
            break;
    }
    tracker->reader = NULL;
}

static void read_soon(struct tracker *tracker, struct queue_job *job)
{
    if (job->unread)
        return;
    job->unread = true;
    g_queue_push_tail(&tracker->changed, g_memdup2(&job->id, sizeof(job->id)));
    if (tracker->reader != NULL)
        task_wake(tracker->reader);
}

/* Events were lost: everything that may have changed. */
static void read_all_soon(struct tracker *tracker)
{
    g_autoptr(GArray) ids = queue_active_ids(tracker->context->queue);

    for (guint i = 0; i < ids->len; i++) {
        struct queue_job *job = queue_find(tracker->context->queue, g_array_index(ids, guint64, i));

        if (job->phase == JOB_PHASE_RUNNING)
            read_soon(tracker, job);
    }
}

/* `name` NULL: nobody knows which. */
static void file_changed(const char *name, void *data)
{
    struct tracker *tracker = data;
    struct queue_job *job;
    guint64 id;

    if (name == NULL) {
        read_all_soon(tracker);
        return;
    }
    if (!job_file_parse_name(name, &id))
        return;
    job = queue_find(tracker->context->queue, id);
    if (job != NULL && job->phase == JOB_PHASE_RUNNING)
        read_soon(tracker, job);
}

/* --- ending jobs on record --- */

struct ending {
    struct queue_context *context;
    guint64 id;
    struct job *file;     /* record to start from; NULL: the committed one */
    enum job_state state; /* for its unfinished opcodes */
    const json_t *result; /* of those; NULL: `file` is final as it is */
};

static bool build_end(struct commit_batch *batch, void *data, GError **error)
{
    const struct ending *ending = data;
    const struct job *record = context_record(ending->context, ending->id);
    record_autoptr(job) job = NULL;

    /* Somebody else has ended it: that end stands (SAF-30). */
    if (record == NULL || job_state_final(job_state_of(record)))
        return false;
    if (ending->file != NULL &&
        (record->history != batch->stamp.history || record->epoch != batch->stamp.epoch)) {
        fettle_set_error(error, STALE_EPOCH, "the mastership under which it ran is over");
        return false;
    }
    job = job_copy(ending->file != NULL ? ending->file : record);
    if (ending->result != NULL)
        job_end(job, ending->state, ending->result, context_now_us(ending->context));
    children_add(ending->context, batch, job);
    commit_put_job(batch, job);
    return true;
}

/* One try; true: the record is final now. */
static bool commit_end(struct ending *ending)
{
    const struct job *base =
        ending->file != NULL ? ending->file : context_record(ending->context, ending->id);
    size_t bytes = 0;
    guint children = base == NULL ? 0 : children_count(base, &bytes);
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

    while (!commit_end(&ending))
        if (!env_sleep(context->env, LIMIT_QUEUE_RETRY_MS))
            return false;
    return true;
}

void tracker_finish(struct queue_context *context, guint64 id)
{
    struct queue_job *job = queue_find(context->queue, id);
    g_autofree char *name = job_file_name(id);
    g_autoptr(GError) error = NULL;

    if (job != NULL)
        queue_set_phase(context->queue, job, JOB_PHASE_ENDED);
    scheduler_kick(context->scheduler);
    /* The record has everything now; a file that stays is removed at the next start. */
    if (!context->env->ops->file_remove(context->env, FILE_QUEUE, name, &error) &&
        !fettle_error_is(error, UNKNOWN_ENTITY))
        log_warning("", "%s cannot be removed: %s", name, error->message);
}

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
                            .stamp = context_stamp(context)};
    char id[24];

    if (job->livelock == NULL)
        return;
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
                        context_stamp(context), 0, 0, &error);

    return status != NULL && status->nodes_pending->len == 0;
}

static bool same_mastership(const struct queue_context *context, const struct job *job)
{
    struct stamp now = context_stamp(context);

    return job->history == now.history && job->epoch == now.epoch;
}

/* A job of a mastership that is over: its file says nothing that counts (SAF-30). */
static bool settle_older_epoch(struct queue_context *context, guint64 id, guint64 epoch)
{
    struct ending ending = {.context = context, .id = id, .state = JOB_ERROR};
    g_autofree char *message = NULL;
    json_autoptr result = NULL;

    if (!nodes_have_answered(context))
        return false;
    message = g_strdup_printf("detected death of job %" ID ": it ran under epoch %" ID
                              ", which ended with its master's restart or loss",
                              id, epoch);
    log_warning("", "%s", message);
    result = json_string(message);
    ending.result = result;
    return commit_end(&ending);
}

/* What the opcodes of a dead job end with, by how far its file (NULL: there is none) says that it
 * came: surely not started is a passing error, death a plain text as Ganeti has it. */
static json_t *death_result(const struct queue_context *context, guint64 id, const struct job *file,
                            const GError *error)
{
    const struct queue_job *job = queue_find(context->queue, id);
    bool damaged = g_hash_table_contains(context->tracker->damaged, &id);
    bool gone = file == NULL && !damaged && fettle_error_is(error, UNKNOWN_ENTITY);
    g_autofree char *message = NULL;

    if (file != NULL && g_str_has_prefix(file->livelock, ROLE_LUXID "-"))
        message =
            g_strdup_printf("job %" ID " did not start: luxid ended while it was starting it; "
                            "nothing has run",
                            id);
    else if (gone && job != NULL && job->livelock == NULL)
        message = g_strdup_printf("job %" ID " did not start: luxid ended before it had written "
                                  "the job file; nothing has run",
                                  id);
    if (message != NULL) {
        log_warning("", "%s", message);
        return job_error_result(FETTLE_ERROR_TEMPORARY, message);
    }
    message = g_strdup_printf("detected death of job %" ID "%s", id,
                              gone                  ? "; its job file is gone"
                              : file == NULL        ? "; its job file was damaged"
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

    if (file != NULL && !same_mastership(context, file))
        g_clear_pointer(&file, job_free);
    ending.file = file;
    if (file != NULL && job_state_final(job_state_of(file))) {
        if (!children_wanted(file))
            wait_for_record(settling);
    } else {
        result = death_result(context, id, file, error);
        ending.result = result;
    }
    return commit_end(&ending);
}

/* True: nothing is left to do about the job. */
static bool settle_dead(struct settling *settling)
{
    struct queue_context *context = settling->tracker->context;
    guint64 id = settling->id;
    const struct job *record = context_record(context, id);
    struct queue_job *job = queue_find(context->queue, id);

    if (!record_final(context, id)) {
        hint_owner_gone(context, job);
        if (!(same_mastership(context, record) ? settle_by_file(settling)
                                               : settle_older_epoch(context, id, record->epoch)))
            return false;
    }
    tracker_finish(context, id);
    return true;
}

static enum livelock_verdict probe(struct settling *settling, const char *livelock)
{
    const struct env *env = settling->tracker->context->env;
    enum livelock_verdict verdict;

    if (livelock == NULL)
        return LIVELOCK_GONE;
    verdict = env->ops->livelock_probe(env, livelock);
    /* The kernel tells of the close before it drops the lock. */
    if (verdict == LIVELOCK_ALIVE && settling->event && env_sleep(env, LIMIT_LOCK_RELEASE_LAG_MS))
        verdict = env->ops->livelock_probe(env, livelock);
    settling->event = false;
    return verdict;
}

static bool settle_once(struct settling *settling)
{
    struct queue_context *context = settling->tracker->context;
    struct queue_job *job = queue_find(context->queue, settling->id);
    g_autofree char *livelock = job == NULL ? NULL : g_strdup(job->livelock);
    enum livelock_verdict verdict;

    if (job == NULL || job->phase != JOB_PHASE_RUNNING)
        return true;
    verdict = probe(settling, livelock);
    job = queue_find(context->queue, settling->id);
    if (job == NULL)
        return true;
    switch (verdict) {
    case LIVELOCK_ALIVE:
        tracker_follow(settling->tracker, job);
        read_soon(settling->tracker, job);
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

static void settle(struct tracker *tracker, guint64 id, bool event)
{
    struct settling *settling;

    if (g_hash_table_contains(tracker->settling, &id))
        return;
    settling = g_new0(struct settling, 1);
    settling->tracker = tracker;
    settling->id = id;
    settling->event = event;
    g_hash_table_insert(tracker->settling, &settling->id, settling);
    task_spawn(tracker->context->env->tasks, settle_task, settling);
}

void tracker_recorded(struct tracker *tracker, guint64 id)
{
    struct settling *settling = g_hash_table_lookup(tracker->settling, &id);

    if (settling != NULL && settling->task != NULL)
        task_wake(settling->task);
}

/* An event, no proof: the probe in settle_once() decides. One lock file may answer for several
 * jobs: luxid's own, for those that it was starting. */
static void lock_released(const char *name, void *data)
{
    struct tracker *tracker = data;
    g_autoptr(GArray) ids = queue_active_ids(tracker->context->queue);

    for (guint i = 0; i < ids->len; i++) {
        const struct queue_job *job =
            queue_find(tracker->context->queue, g_array_index(ids, guint64, i));

        if (job->phase == JOB_PHASE_RUNNING && g_strcmp0(job->livelock, name) == 0)
            settle(tracker, job->id, true);
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

        if (job->phase == JOB_PHASE_RUNNING && job->livelock != NULL &&
            env->ops->livelock_probe(env, job->livelock) != LIVELOCK_ALIVE)
            settle(tracker, job->id, false);
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
                       cluster == NULL ? LIMIT_QUEUE_RETRY_MS : (guint)cluster->sweep_interval_ms));
}

void tracker_follow(struct tracker *tracker, struct queue_job *job)
{
    const struct env *env = tracker->context->env;

    queue_set_phase(tracker->context->queue, job, JOB_PHASE_RUNNING);
    env->ops->livelock_watch(env, job->livelock, lock_released, tracker);
}

/* --- after a restart --- */

/* A job file that is damaged or gone says nothing about the lock file; its name does. */
static char *find_livelock(const struct env *env, guint64 id)
{
    g_autofree char *stem = g_strdup_printf("job-%" ID "-", id);
    g_autoptr(GPtrArray) names = env->ops->livelock_list(env);

    for (guint i = 0; names != NULL && i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);

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

    if (job == NULL)
        return;
    if (file != NULL && file->livelock[0] != '\0')
        job->livelock = g_strdup(file->livelock);
    else if (file == NULL)
        job->livelock = find_livelock(context->env, id);
    /* Clients see what it says before they see anything: a running job never goes back. The file
     * of an older mastership says nothing that counts. */
    if (file != NULL && same_mastership(context, file))
        queue_put_live(context->queue, job, g_steal_pointer(&file));
    settle(tracker, id, false);
}

/* Damaged files first, and those of jobs that have ended. */
static void sweep_files(struct tracker *tracker)
{
    struct queue_context *context = tracker->context;
    const struct env *env = context->env;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = env->ops->file_list(env, FILE_QUEUE, JOB_FILE_FOLDER, &error);

    if (names == NULL) {
        log_warning("", "job files cannot be listed: %s", error->message);
        return;
    }
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autoptr(GError) broken = NULL;
        record_autoptr(job) file = NULL;
        guint64 id;

        if (!job_file_parse_name(name, &id))
            continue;
        file = job_file_read(env, id, &broken);
        if (file == NULL && fettle_error_is(broken, CORRUPT)) {
            g_hash_table_add(tracker->damaged, g_memdup2(&id, sizeof(id)));
            job_file_set_aside(env, name, broken->message);
        } else if (file != NULL && context_record(context, id) == NULL)
            job_file_set_aside(env, name, "the store knows no such job");
        else if (file != NULL && record_final(context, id))
            env->ops->file_remove(env, FILE_QUEUE, name, NULL);
    }
}

void tracker_start(struct tracker *tracker)
{
    struct queue_context *context = tracker->context;
    const struct env *env = context->env;
    g_autoptr(GArray) ids = NULL;

    env->ops->file_watch(env, FILE_QUEUE, JOB_FILE_FOLDER, file_changed, tracker);
    task_spawn(env->tasks, read_loop, tracker);
    ids = queue_active_ids(context->queue);
    sweep_files(tracker);
    for (guint i = 0; i < ids->len; i++)
        adopt(tracker, g_array_index(ids, guint64, i));
    task_spawn(env->tasks, sweep_loop, tracker);
}
