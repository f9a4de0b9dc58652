/* Which jobs are archived, and when; see archiver.h. */
#include "core/queue/archiver.h"

#include "base/log.h"
#include "core/job/archive.h"
#include "core/repair/retained_jobs.h"

#define ID G_GUINT64_FORMAT

struct archiver *archiver_new(struct queue_context *context)
{
    struct archiver *archiver = g_new0(struct archiver, 1);
    archiver->context = context;
    archiver->ages = ages_new(context->env);
    archiver->users = 1;
    archiver->equal = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_queue_init(&archiver->turn.waiters);
    return archiver;
}

static void release(struct archiver *archiver)
{
    if (--archiver->users > 0)
        return;
    ages_free(archiver->ages);
    g_hash_table_unref(archiver->equal);
    g_free(archiver);
}

void archiver_free(struct archiver *archiver)
{
    if (archiver)
        release(archiver);
}

/* --- who has to stay --- */

/* What ended jobs are looked at for, besides by people. */
struct staying {
    struct retained_jobs *kept;
    GHashTable *wanted; /* ids that jobs which have not started depend on, as guint64 * */
};

static void add_dependencies(GHashTable *wanted, const struct job *job)
{
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        size_t at;
        const json_t *item;
        json_array_foreach(json_object_get(op->input, "depends"), at, item) {
            guint64 id = (guint64)json_integer_value(json_array_get(item, 0));
            g_hash_table_add(wanted, g_memdup2(&id, sizeof(id)));
        }
    }
}

static struct staying staying_new(const struct archiver *archiver)
{
    const struct queue_context *context = archiver->context;
    const struct config *config = follow_config(context->follow);
    g_autoptr(GArray) ids = queue_ids(context->queue);
    struct staying staying = {.kept = retained_jobs_new(config, archiver->ages),
                              .wanted =
                                  g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL)};
    for (guint i = 0; i < ids->len; i++) {
        const struct job *record = context_record(context, g_array_index(ids, guint64, i));
        if (record && !job_state_final(job_state_of(record)))
            add_dependencies(staying.wanted, record);
    }
    return staying;
}

static void staying_clear(struct staying *staying)
{
    retained_jobs_free(staying->kept);
    g_hash_table_unref(staying->wanted);
}

/* Its process is gone too, and nobody needs the record. `ret_why` (free with g_free) if not. */
static bool may_go(const struct archiver *archiver, const struct staying *staying, guint64 id,
                   char **ret_why)
{
    const struct queue_job *job = queue_find(archiver->context->queue, id);
    const struct job *record = context_record(archiver->context, id);
    const char *needed = record ? retained_jobs_why(staying->kept, record) : NULL;
    if (!record)
        *ret_why = g_strdup_printf("Job %" ID " not found in queue", id);
    else if (!job_verb_allowed(JOB_VERB_ARCHIVE, job_state_of(record), id, ret_why))
        return false;
    else if (!job || job->phase != JOB_PHASE_ENDED || job->busy)
        *ret_why = g_strdup_printf("Job %" ID " is just ending", id);
    else if (g_hash_table_contains(staying->wanted, &id))
        *ret_why = g_strdup_printf("Job %" ID " stays: a job that has not ended depends on it", id);
    else if (needed)
        *ret_why = g_strdup_printf("Job %" ID " stays: %s", id, needed);
    else
        return true;
    return false;
}

/* --- one step --- */

struct removal {
    const struct archiver *archiver;
    const GArray *ids;
    guint removed;
};

/* Somebody may have come meanwhile who needs one of them. A final state never changes: what is in
 * the archive is this. */
static bool build_removal(struct commit_batch *batch, void *data, GError **error)
{
    struct removal *removal = data;
    struct staying staying = staying_new(removal->archiver);
    removal->removed = 0;
    for (guint i = 0; i < removal->ids->len; i++) {
        guint64 id = g_array_index(removal->ids, guint64, i);
        g_autofree char *key = g_strdup_printf("%" ID, id);
        g_autofree char *why = NULL;
        if (g_hash_table_contains(batch->wanted, &id) ||
            !may_go(removal->archiver, &staying, id, &why))
            continue;
        commit_note_id(batch->removed, id);
        g_ptr_array_add(batch->changes, config_delete(batch->config, "job", key));
        removal->removed++;
    }
    staying_clear(&staying);
    if (removal->removed > 0)
        commit_rest_on_jobs(batch);
    return removal->removed > 0;
}

static json_t *records_of(const struct archiver *archiver, const GArray *ids)
{
    json_t *jobs = json_array();
    for (guint i = 0; i < ids->len; i++)
        json_array_append_new(
            jobs, job_to_json(context_record(archiver->context, g_array_index(ids, guint64, i))));
    return jobs;
}

/* Every candidate has them on its disk before the commit that deletes them. `ret_archived`: how
 * many of them that is. */
static bool archive_step(struct archiver *archiver, const GArray *ids, guint *ret_archived,
                         GError **error)
{
    struct removal removal = {archiver, ids, 0};
    json_autoptr jobs = records_of(archiver, ids);
    g_autoptr(GPtrArray) nodes = archiver_candidates(archiver);
    const struct commit_item item = {
        .build = build_removal, .data = &removal, .changes = ids->len, .bytes = 128 * ids->len};
    for (guint i = 0; i < nodes->len; i++)
        if (!archiver_put(archiver, nodes->pdata[i], jobs, error))
            return false;
    if (!committer_run(archiver->context->committer, &item, error))
        return false;
    *ret_archived = removal.removed;
    return true;
}

/* Since its end. What lies in the future ended when it was first seen (SAF-93); the others, which
 * are many, are not remembered: it does no harm if one is archived early. */
static gint64 age_of(const struct archiver *archiver, const struct job *record)
{
    guint64 now_us = context_now_us(archiver->context);
    if (record->end_us <= now_us)
        return (gint64)(now_us - record->end_us);
    g_autofree char *key = g_strdup_printf("ended/%" G_GUINT64_FORMAT, record->id);
    return ages_us(archiver->ages, key, record->end_us);
}

/* The oldest ended jobs of that age that may go, at most a step's worth: by number and by bytes.
 * `ret_left` counts the others. */
static GArray *choose(const struct archiver *archiver, gint64 age_s, guint *ret_left)
{
    const struct queue_context *context = archiver->context;
    g_autoptr(GArray) ids = queue_ids(context->queue);
    GArray *chosen = g_array_new(FALSE, FALSE, sizeof(guint64));
    struct staying staying = staying_new(archiver);
    gint64 age_us = MAX(age_s, 0) * (gint64)G_USEC_PER_SEC;
    size_t bytes = 0;
    *ret_left = 0;
    for (guint i = 0; i < ids->len; i++) {
        guint64 id = g_array_index(ids, guint64, i);
        const struct job *record = context_record(context, id);
        g_autofree char *why = NULL;
        if (!record || !job_state_final(job_state_of(record)) ||
            (age_s >= 0 && age_of(archiver, record) < age_us) ||
            !may_go(archiver, &staying, id, &why))
            continue;
        bytes += commit_job_bytes(record);
        if (chosen->len > 0 && (chosen->len >= LIMIT_ARCHIVE_STEP || bytes > LIMIT_COMMIT_BYTES))
            ++*ret_left;
        else
            g_array_append_val(chosen, id);
    }
    staying_clear(&staying);
    return chosen;
}

/* Archives what one step takes; answers how many. */
static bool archive_some(struct archiver *archiver, gint64 age_s, guint *ret_archived,
                         guint *ret_left, GError **error)
{
    if (!task_mutex_lock(&archiver->turn)) {
        fettle_set_error(error, KILLED, "luxid has ended");
        return false;
    }
    g_autoptr(GArray) ids = choose(archiver, age_s, ret_left);
    *ret_archived = 0;
    bool ok = ids->len == 0 || archive_step(archiver, ids, ret_archived, error);
    task_mutex_unlock(&archiver->turn);
    return ok;
}

/* --- by itself --- */

static gint64 wanted_age(const struct archiver *archiver)
{
    const struct cluster *cluster = config_cluster(follow_config(archiver->context->follow));
    return cluster ? (gint64)cluster->job_archive_age_s : 0;
}

static bool archive_old(struct archiver *archiver, GError **error)
{
    guint archived = 0, left = 1;
    while (wanted_age(archiver) != 0 && left > 0) {
        if (!archive_some(archiver, wanted_age(archiver), &archived, &left, error)) {
            g_prefix_error(error, "old jobs stay on record: ");
            return false;
        }
        if (left > 0 && !env_sleep(archiver->context->env, ARCHIVE_STEP_MS)) {
            fettle_set_error(error, KILLED, "luxid has ended");
            return false;
        }
    }
    return true;
}

static bool make_equal(struct archiver *archiver, GError **error)
{
    if (archiver_make_equal(archiver, error))
        return true;
    g_prefix_error(error, "archives of jobs are not compared yet: ");
    return false;
}

/* Said once for each spell in which it does not get on. */
static void note_outcome(struct archiver *archiver, const GError *error)
{
    if (error && !archiver->complained && !fettle_error_is(error, KILLED))
        log_warning("", "%s; tried again every %u seconds", error->message,
                    ARCHIVE_RETRY_MS / 1000);
    archiver->complained = error != NULL;
}

static void archive_loop(void *data)
{
    struct archiver *archiver = data;
    while (env_pause(archiver->context->env, &archiver->pause,
                     archiver->complained ? ARCHIVE_RETRY_MS : ARCHIVE_LOOK_MS)) {
        g_autoptr(GError) unequal = NULL;
        g_autoptr(GError) stuck = NULL;
        make_equal(archiver, &unequal);
        archive_old(archiver, &stuck);
        note_outcome(archiver, unequal ? unequal : stuck);
    }
    release(archiver);
}

void archiver_start(struct archiver *archiver)
{
    archiver->users++;
    task_spawn(archiver->context->env->tasks, archive_loop, archiver);
}

void archiver_cluster_changed(struct archiver *archiver)
{
    env_pause_end(&archiver->pause);
}

/* --- ArchiveJob --- */

struct archive_call {
    struct queue_context *context;
    struct rpc_request *request;
    guint64 id;
    gint64 age;
    gint64 until_ms;
};

/* A job that has just ended: until its process is gone, too. False if luxid is to end. */
static bool wait_for_end(const struct queue_context *context, guint64 id)
{
    gint64 until_ms = context->env->ops->boot_ms(context->env) + ARCHIVE_END_MS;
    while (context->env->ops->boot_ms(context->env) < until_ms) {
        const struct queue_job *job = queue_find(context->queue, id);
        if (!job || !job_state_final((enum job_state)job->state) || job->phase == JOB_PHASE_ENDED)
            return true;
        if (!env_sleep(context->env, ARCHIVE_END_MS / 100))
            return false;
    }
    return true;
}

/* Whether it is in the archive now, as Ganeti answers: false for one that may not go there. */
static bool archive_one(struct archiver *archiver, guint64 id, bool *ret_there, GError **error)
{
    struct staying staying = staying_new(archiver);
    g_autofree char *why = NULL;
    bool free_to_go = may_go(archiver, &staying, id, &why);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(guint64));
    guint archived = 0;
    staying_clear(&staying);
    if (!free_to_go) {
        record_autoptr(job) there = context_record(archiver->context, id)
                                        ? NULL
                                        : archive_read(archiver->context->env, id, NULL);
        *ret_there = there != NULL;
        return true;
    }
    g_array_append_val(ids, id);
    if (!archive_step(archiver, ids, &archived, error))
        return false;
    *ret_there = archived > 0;
    return true;
}

static void archive_job_task(void *data)
{
    struct archive_call *call = data;
    struct archiver *archiver = call->context->archiver;
    g_autoptr(GError) error = NULL;
    bool there = false, ok = false;
    if (wait_for_end(call->context, call->id) && task_mutex_lock(&archiver->turn)) {
        ok = archive_one(archiver, call->id, &there, &error);
        task_mutex_unlock(&archiver->turn);
    } else {
        fettle_set_error(&error, KILLED, "luxid has ended");
    }
    if (ok)
        rpc_answer(call->request, json_boolean(there));
    else
        rpc_fail(call->request, error);
    g_free(call);
}

void call_archive_job(struct queue_context *context, struct rpc_request *request,
                      const struct luxi_archive_job_args *args)
{
    const struct archive_call call = {.context = context, .request = request, .id = args->job};
    task_spawn(context->env->tasks, archive_job_task, g_memdup2(&call, sizeof(call)));
}

/* --- AutoArchiveJobs --- */

static void auto_archive_task(void *data)
{
    struct archive_call *call = data;
    const struct env *env = call->context->env;
    g_autoptr(GError) error = NULL;
    guint total = 0, archived = 0, left = 0;
    bool ok;
    do {
        ok = archive_some(call->context->archiver, call->age, &archived, &left, &error);
        total += archived;
    } while (ok && left > 0 && archived > 0 && env->ops->boot_ms(env) < call->until_ms);
    if (ok || (total > 0 && !fettle_error_is(error, KILLED)))
        rpc_answer(call->request, json_make("[i, i]", (int)total, (int)left));
    else
        rpc_fail(call->request, error);
    g_free(call);
}

void call_auto_archive_jobs(struct queue_context *context, struct rpc_request *request,
                            const struct luxi_auto_archive_jobs_args *args)
{
    const struct archive_call call = {.context = context,
                                      .request = request,
                                      .age = args->age,
                                      .until_ms = context->env->ops->boot_ms(context->env) +
                                                  (gint64)(args->timeout * 1000)};
    task_spawn(context->env->tasks, auto_archive_task, g_memdup2(&call, sizeof(call)));
}
