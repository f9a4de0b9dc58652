/* Batched commits of luxid; see commit.h. */
#include "core/queue/commit.h"
#include "proto/change.h"

#define COUNTER_KIND "counter"
#define COUNTER_JOB "job"

struct committer {
    const struct env *env;
    struct follow *follow;
    struct owner *owner;
    struct task *task;
    GQueue items; /* of struct commit_item * */
};

struct committer *committer_new(const struct env *env, struct follow *follow)
{
    struct committer *committer = g_new0(struct committer, 1);
    committer->env = env;
    committer->follow = follow;
    g_queue_init(&committer->items);
    return committer;
}

static void end_item(struct commit_item *item, const GError *error)
{
    item->done(error, item->data);
    g_free(item);
}

void committer_free(struct committer *committer)
{
    g_autoptr(GError) killed = NULL;
    if (!committer)
        return;
    fettle_set_error(&killed, KILLED, "luxid has ended");
    struct commit_item *item;
    while ((item = g_queue_pop_head(&committer->items)))
        end_item(item, killed);
    owner_free(committer->owner);
    g_free(committer);
}

/* --- what items append --- */

void commit_rest_on_jobs(struct commit_batch *batch)
{
    const struct counter *counter = config_get(batch->config, COUNTER_KIND, COUNTER_JOB, NULL);
    if (batch->last_id == 0)
        batch->last_id = counter ? counter->value : 0;
}

guint64 commit_job_id(struct commit_batch *batch)
{
    commit_rest_on_jobs(batch);
    return ++batch->last_id;
}

size_t commit_job_bytes(const struct job *job)
{
    size_t bytes = 0;
    for (guint i = 0; job && i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        bytes += json_dumpb(op->input, NULL, 0, JSON_COMPACT) +
                 json_dumpb(op->log, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) +
                 json_dumpb(op->result, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY) + 256;
    }
    return bytes;
}

void commit_put_job(struct commit_batch *batch, const struct job *job)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, job->id);
    g_ptr_array_add(batch->changes, config_put(batch->config, "job", key, job_to_json(job)));
}

void commit_note_id(GHashTable *ids, guint64 id)
{
    g_hash_table_add(ids, g_memdup2(&id, sizeof(id)));
}

/* --- putting a transaction together --- */

static struct commit_batch begin_batch(const struct committer *committer)
{
    const struct config *config = follow_config(committer->follow);
    return (struct commit_batch){
        .config = config,
        .stamp = {config_history(config), follow_epoch(committer->follow)},
        .changes = change_list_new(),
        .requests = g_hash_table_new(g_str_hash, g_str_equal),
        .wanted = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
        .removed = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
    };
}

static void end_batch(struct commit_batch *batch)
{
    g_hash_table_unref(batch->requests);
    g_hash_table_unref(batch->wanted);
    g_hash_table_unref(batch->removed);
}

/* True if the item is part of the batch; else it has ended. */
static bool build_item(struct commit_batch *batch, struct commit_item *item)
{
    guint length = batch->changes->len;
    guint64 last_id = batch->last_id;
    g_autoptr(GError) error = NULL;
    if (item->build(batch, item->data, &error))
        return true;
    g_ptr_array_set_size(batch->changes, (gint)length);
    batch->last_id = last_id;
    end_item(item, error);
    return false;
}

static void add_counter(struct commit_batch *batch)
{
    if (batch->last_id != 0)
        g_ptr_array_add(batch->changes,
                        config_put(batch->config, COUNTER_KIND, COUNTER_JOB,
                                   json_make("{sI}", "value", (json_int_t)batch->last_id)));
}

/* Whether it is worth trying the items apart: the transaction was surely refused for what is in it.
 */
static bool may_split(const GError *error)
{
    return fettle_error_is(error, VERSION_CONFLICT) || fettle_error_is(error, WRONG_INPUT) ||
           fettle_error_is(error, ALREADY_EXISTS) || fettle_error_is(error, WRONG_STATE) ||
           fettle_error_is(error, LIMIT) || fettle_error_is(error, REFUSED);
}

/* A record was changed by its job's process a moment ago. Whether our copy has been brought up to
 * date, so that the item can be built anew; what is still on its way to the store is waited for. */
static bool catch_up(const struct committer *committer, const GError *error, guint tries)
{
    return fettle_error_is(error, VERSION_CONFLICT) && tries < LIMIT_COMMIT_TRIES &&
           (tries == 0 || env_sleep(committer->env, COMMIT_PAUSE_MS)) &&
           follow_refresh(committer->follow, NULL);
}

/* Commits `items` (array of struct commit_item *) as one transaction and ends each. `tries`: how
 * often they have met a newer record. */
static void commit_items(struct committer *committer, const GPtrArray *items, guint tries)
{
    struct commit_batch batch = begin_batch(committer);
    g_autoptr(GPtrArray) changes = batch.changes;
    g_autoptr(GPtrArray) built = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < items->len; i++) {
        struct commit_item *item = items->pdata[i];
        if (build_item(&batch, item))
            g_ptr_array_add(built, item);
    }
    end_batch(&batch);
    if (built->len == 0)
        return;
    add_counter(&batch);
    follow_commit(committer->follow, "change_jobs", committer->owner, changes, batch.stamp, 0,
                  &error);
    if (error && built->len > 1 && may_split(error)) {
        for (guint i = 0; i < built->len; i++) {
            g_autoptr(GPtrArray) single = g_ptr_array_new();
            g_ptr_array_add(single, built->pdata[i]);
            commit_items(committer, single, 0);
        }
        return;
    }
    if (error && catch_up(committer, error, tries)) {
        commit_items(committer, built, tries + 1);
        return;
    }
    if (error && task_killed()) {
        g_clear_error(&error);
        fettle_set_error(&error, KILLED, "luxid has ended");
    }
    for (guint i = 0; i < built->len; i++)
        end_item(built->pdata[i], error);
}

/* Takes what fits one transaction; at least one item. */
static GPtrArray *take_items(struct committer *committer)
{
    GPtrArray *items = g_ptr_array_new();
    guint changes = 1; /* the counter */
    size_t bytes = 0;
    struct commit_item *item;
    while ((item = g_queue_peek_head(&committer->items))) {
        if (items->len > 0 && (items->len >= LIMIT_COMMITS_PER_BATCH ||
                               changes + item->changes > LIMIT_CHANGES_PER_COMMIT ||
                               bytes + item->bytes > LIMIT_COMMIT_BYTES))
            break;
        changes += item->changes;
        bytes += item->bytes;
        g_ptr_array_add(items, g_queue_pop_head(&committer->items));
    }
    return items;
}

static void commit_loop(void *data)
{
    struct committer *committer = data;
    committer->task = task_self();
    for (;;) {
        if (g_queue_is_empty(&committer->items)) {
            if (!task_wait())
                break;
        } else {
            g_autoptr(GPtrArray) items = take_items(committer);
            commit_items(committer, items, 0);
            if (task_group_killed(committer->env->tasks))
                break;
        }
    }
    committer->task = NULL;
}

void committer_start(struct committer *committer, const char *livelock)
{
    committer->owner = owner_new();
    g_free(committer->owner->job);
    committer->owner->job = g_strdup(ROLE_LUXID);
    g_free(committer->owner->livelock);
    committer->owner->livelock = g_strdup(livelock);
    task_spawn(committer->env->tasks, commit_loop, committer);
}

void committer_add(struct committer *committer, const struct commit_item *item)
{
    g_queue_push_tail(&committer->items, g_memdup2(item, sizeof(*item)));
    if (committer->task)
        task_wake(committer->task);
}

/* --- from a task --- */

struct commit_wait {
    struct promise promise;
    GError *error;
    bool (*build)(struct commit_batch *batch, void *data, GError **error);
    void *data;
    bool abandoned; /* the waiting task was killed; whoever is left frees this */
};

static bool commit_wait_build(struct commit_batch *batch, void *data, GError **error)
{
    struct commit_wait *wait = data;
    if (wait->abandoned) {
        fettle_set_error(error, KILLED, "luxid has ended");
        return false;
    }
    return wait->build(batch, wait->data, error);
}

static void commit_wait_done(const GError *error, void *data)
{
    struct commit_wait *wait = data;
    if (wait->abandoned) {
        g_free(wait);
        return;
    }
    wait->error = error ? g_error_copy(error) : NULL;
    promise_complete(&wait->promise);
}

bool committer_run(struct committer *committer, const struct commit_item *item, GError **error)
{
    struct commit_wait *wait = g_new0(struct commit_wait, 1);
    struct commit_item waiting = *item;
    wait->build = item->build;
    wait->data = item->data;
    waiting.build = commit_wait_build;
    waiting.done = commit_wait_done;
    waiting.data = wait;
    committer_add(committer, &waiting);
    if (!promise_wait(&wait->promise)) {
        if (wait->promise.done) {
            g_clear_error(&wait->error);
            g_free(wait);
        } else {
            wait->abandoned = true;
        }
        fettle_set_error(error, KILLED, "luxid has ended");
        return false;
    }
    bool ok = !wait->error;
    if (!ok)
        g_propagate_error(error, wait->error);
    g_free(wait);
    return ok;
}
