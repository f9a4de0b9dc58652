/* See sqlite_engine.h. */
#include "io/sqlite/sqlite_engine.h"
#include "io/crash.h"
#include "io/loop.h"
#include "io/sqlite/sqlite_damage.h"
#include "io/sqlite/sqlite_store.h"

#include <string.h>

/* Of the write-ahead log, 4 KiB each: when it is moved into the file. */
#define CHECKPOINT_PAGES 1000
#define CHECKPOINT_PAGES_BUSY 4000

struct sqlite_engine {
    struct engine base;
    gatomicrefcount refs; /* the owner, each batch on its way to the loop */
    GMutex store_lock;    /* for load and campaign; the worker has it while it commits */
    struct sqlite_store *store;
    guint64 epoch;

    GThread *worker;
    GMutex queue_lock;
    GCond queue_filled;
    GCond queue_idle;
    GQueue queue; /* struct entry */
    bool busy;    /* a batch is being committed */
    bool closing;

    /* loop only */
    GHashTable *unfinished; /* commit ids under way */
    bool closed;
    struct store_damage *damage;
    /* worker only: an error left it open whether a commit is stored; a restart reads what is */
    bool broken;
    gint64 scrubbed; /* when the last step of its scrub was (monotonic clock) */
};

/* A commit, or a barrier (commit_id NULL). */
struct entry {
    char *commit_id;
    guint64 epoch;
    guint64 serial;
    GPtrArray *rows;
    engine_commit_fn committed;
    engine_barrier_fn passed;
    void *data;

    enum engine_result result;
    GError *error;
    bool still_master;
};

/* What the worker has finished at once. */
struct batch {
    struct sqlite_engine *engine;
    GPtrArray *entries;
};

static void entry_free(void *data)
{
    struct entry *entry = data;
    g_free(entry->commit_id);
    g_clear_pointer(&entry->rows, g_ptr_array_unref);
    g_clear_error(&entry->error);
    g_free(entry);
}

static void engine_unref(struct sqlite_engine *engine)
{
    if (!g_atomic_ref_count_dec(&engine->refs))
        return;
    g_hash_table_unref(engine->unfinished);
    store_damage_free(engine->damage);
    g_mutex_clear(&engine->store_lock);
    g_mutex_clear(&engine->queue_lock);
    g_cond_clear(&engine->queue_filled);
    g_cond_clear(&engine->queue_idle);
    g_free(engine);
}

/* --- the worker --- */

/* Waits for work; an empty batch means that it was idle for long, or the end. */
static GPtrArray *take_batch(struct sqlite_engine *engine, bool *ret_end)
{
    GPtrArray *entries = g_ptr_array_new_with_free_func(entry_free);
    gint64 until = engine->scrubbed + SCRUB_STEP_MS * 1000;
    bool waits = true;

    g_mutex_lock(&engine->queue_lock);
    while (waits && g_queue_is_empty(&engine->queue) && !engine->closing)
        waits = g_cond_wait_until(&engine->queue_filled, &engine->queue_lock, until);
    while (!g_queue_is_empty(&engine->queue) && entries->len < LIMIT_COMMITS_PER_BATCH)
        g_ptr_array_add(entries, g_queue_pop_head(&engine->queue));
    engine->busy = entries->len > 0;
    *ret_end = entries->len == 0 && engine->closing;
    g_mutex_unlock(&engine->queue_lock);
    return entries;
}

/* The whole transaction failed: the same answer to everybody in it. */
static void fail_all(GPtrArray *entries, enum engine_result result, const GError *error)
{
    for (guint i = 0; i < entries->len; i++) {
        struct entry *entry = entries->pdata[i];
        if (entry->commit_id == NULL || entry->error != NULL)
            continue;
        entry->result = result;
        entry->error = g_error_copy(error);
    }
}

static bool add_all(struct sqlite_engine *engine, GPtrArray *entries, GError **error)
{
    for (guint i = 0; i < entries->len; i++) {
        struct entry *entry = entries->pdata[i];
        bool refused = false;
        g_autoptr(GError) local = NULL;
        if (entry->commit_id == NULL ||
            sqlite_store_add(engine->store, entry->commit_id, entry->epoch, entry->serial,
                             entry->rows, &refused, &local))
            continue;
        if (!refused) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
        entry->result = ENGINE_REFUSED;
        entry->error = g_steal_pointer(&local);
    }
    return true;
}

static void commit_batch(struct sqlite_engine *engine, GPtrArray *entries)
{
    g_autoptr(GError) error = NULL;
    bool unknown = false;

    if (sqlite_store_is_copy(engine->store)) {
        fettle_set_error(&error, NOT_MASTER, "the engine is another one now");
        fail_all(entries, ENGINE_REFUSED, error);
        return;
    }
    if (engine->broken) {
        fettle_set_error(&error, STORAGE,
                         "the store had an error that left a commit unknown; wconfd has to be "
                         "restarted");
        fail_all(entries, ENGINE_REFUSED, error);
        return;
    }
    if (sqlite_store_begin(engine->store, &error) && add_all(engine, entries, &error) &&
        sqlite_store_finish(engine->store, &unknown, &error))
        return;
    sqlite_store_rollback(engine->store);
    engine->broken = unknown;
    fail_all(entries, unknown ? ENGINE_UNKNOWN : ENGINE_REFUSED, error);
}

static bool has_commit(const GPtrArray *entries)
{
    for (guint i = 0; i < entries->len; i++)
        if (((const struct entry *)entries->pdata[i])->commit_id != NULL)
            return true;
    return false;
}

/* Asked with the store's lock held, or by the loop while nothing is being committed. */
static bool is_master(const struct sqlite_engine *engine)
{
    return !engine->broken && !sqlite_store_is_copy(engine->store) &&
           sqlite_store_is_master(engine->store, engine->epoch);
}

/* Nothing is being committed any more; whether nothing waits. */
static bool batch_is_over(struct sqlite_engine *engine)
{
    g_mutex_lock(&engine->queue_lock);
    bool idle = g_queue_is_empty(&engine->queue);
    engine->busy = false;
    if (idle)
        g_cond_broadcast(&engine->queue_idle);
    g_mutex_unlock(&engine->queue_lock);
    return idle;
}

/* Behind an answer, where it makes nobody wait; before more if it has become long. */
static void tidy_log(struct sqlite_engine *engine, bool idle)
{
    g_mutex_lock(&engine->store_lock);
    if (sqlite_store_log_pages(engine->store) >= (idle ? CHECKPOINT_PAGES : CHECKPOINT_PAGES_BUSY))
        sqlite_store_checkpoint(engine->store);
    g_mutex_unlock(&engine->store_lock);
}

/* Behind an answer too, where it makes nobody wait; under load not so often. */
static void scrub_if_due(struct sqlite_engine *engine, bool idle)
{
    gint64 now = g_get_monotonic_time();

    if (now - engine->scrubbed < (idle ? SCRUB_STEP_MS : SCRUB_LONGEST_MS) * 1000)
        return;
    engine->scrubbed = now;
    g_mutex_lock(&engine->store_lock);
    if (!engine->broken)
        store_damage_look(engine->damage, engine->store);
    g_mutex_unlock(&engine->store_lock);
}

static void batch_done(void *data);

static void *worker(void *data)
{
    struct sqlite_engine *engine = data;

    for (;;) {
        bool end;
        GPtrArray *entries = take_batch(engine, &end);
        if (entries->len == 0) {
            g_ptr_array_unref(entries);
            if (end)
                return NULL;
            scrub_if_due(engine, true);
            continue;
        }
        g_mutex_lock(&engine->store_lock);
        if (has_commit(entries))
            commit_batch(engine, entries);
        bool master = is_master(engine);
        g_mutex_unlock(&engine->store_lock);
        for (guint i = 0; i < entries->len; i++)
            ((struct entry *)entries->pdata[i])->still_master = master;
        struct batch *batch = g_new(struct batch, 1);
        *batch = (struct batch){engine, entries};
        g_atomic_ref_count_inc(&engine->refs);
        loop_post(batch_done, batch);
        bool idle = batch_is_over(engine);
        tidy_log(engine, idle);
        scrub_if_due(engine, idle);
    }
}

static void batch_done(void *data)
{
    struct batch *batch = data;
    struct sqlite_engine *engine = batch->engine;

    for (guint i = 0; i < batch->entries->len && !engine->closed; i++) {
        struct entry *entry = batch->entries->pdata[i];
        if (entry->commit_id == NULL) {
            entry->passed(entry->still_master, entry->data);
            continue;
        }
        g_hash_table_remove(engine->unfinished, entry->commit_id);
        entry->committed(entry->result, entry->error, entry->data);
    }
    g_ptr_array_unref(batch->entries);
    g_free(batch);
    engine_unref(engine);
}

static void enqueue(struct sqlite_engine *engine, struct entry *entry)
{
    g_mutex_lock(&engine->queue_lock);
    g_queue_push_tail(&engine->queue, entry);
    g_cond_signal(&engine->queue_filled);
    g_mutex_unlock(&engine->queue_lock);
}

/* --- the interface --- */

/* Behind a load, before the first commit. */
static bool tell_position(struct sqlite_engine *engine, guint64 *ret_history, guint64 *ret_serial)
{
    *ret_history = sqlite_store_history(engine->store);
    *ret_serial = sqlite_store_serial(engine->store);
    return true;
}

static bool engine_load_text(struct engine *base, guint64 *ret_history, guint64 *ret_serial,
                             bool (*each)(const char *kind, const char *key, guint64 version,
                                          const char *text, void *data),
                             void *data, GError **error)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;

    g_mutex_lock(&engine->store_lock);
    bool ok = sqlite_store_load_text(engine->store, each, data, error);
    g_mutex_unlock(&engine->store_lock);
    return ok && tell_position(engine, ret_history, ret_serial);
}

static bool engine_load(struct engine *base, guint64 *ret_history, guint64 *ret_serial,
                        void (*each)(const char *kind, const char *key, guint64 version,
                                     json_t *object, void *data),
                        void *data, GError **error)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;

    g_mutex_lock(&engine->store_lock);
    bool ok = sqlite_store_load(engine->store, each, data, error);
    g_mutex_unlock(&engine->store_lock);
    return ok && tell_position(engine, ret_history, ret_serial);
}

static bool engine_campaign(struct engine *base, struct mastership *me, GError **error)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;

    g_mutex_lock(&engine->store_lock);
    bool ok = sqlite_store_campaign(engine->store, me, error);
    if (ok)
        engine->epoch = me->epoch;
    g_mutex_unlock(&engine->store_lock);
    return ok;
}

static bool engine_observe(struct engine *base, struct mastership *ret_master, GError **error)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;

    g_mutex_lock(&engine->store_lock);
    *ret_master = *sqlite_store_master(engine->store);
    g_mutex_unlock(&engine->store_lock);
    return true;
}

static bool engine_resign(struct engine *base, const char *next, GError **error)
{
    fettle_set_error(error, WRONG_STATE,
                     "the store of this node is the engine; another node becomes master by "
                     "`fettle cluster master-failover` there");
    return false;
}

/* A store that fails says so in the answer of each commit; nobody else can take it away. */
static void engine_on_lost(struct engine *base, void (*lost)(const char *why, void *data),
                           void *data)
{
}

static void engine_commit(struct engine *base, const struct engine_commit *commit,
                          engine_commit_fn done, void *data)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;
    struct entry *entry = g_new0(struct entry, 1);

    entry->commit_id = g_strdup(commit->commit_id);
    entry->epoch = commit->epoch;
    entry->serial = commit->serial;
    entry->rows = store_rows_from_changes(commit->changes);
    entry->committed = done;
    entry->data = data;
    g_hash_table_add(engine->unfinished, g_strdup(commit->commit_id));
    enqueue(engine, entry);
}

/* Whether nothing is under way; then it is looked at here, without waking a thread for it. The
 * answer still comes from the loop, when this turn is over; and so behind the answers of commits
 * that the worker has done, but of which nobody has heard yet. */
static bool barrier_at_once(struct sqlite_engine *engine, struct entry *entry)
{
    g_mutex_lock(&engine->queue_lock);
    bool idle = g_queue_is_empty(&engine->queue) && !engine->busy;
    g_mutex_unlock(&engine->queue_lock);
    if (!idle || g_hash_table_size(engine->unfinished) > 0)
        return false;
    entry->still_master = is_master(engine);
    struct batch *batch = g_new(struct batch, 1);
    *batch = (struct batch){engine, g_ptr_array_new_with_free_func(entry_free)};
    g_ptr_array_add(batch->entries, entry);
    g_atomic_ref_count_inc(&engine->refs);
    loop_after_turn(batch_done, batch);
    return true;
}

static void engine_barrier(struct engine *base, engine_barrier_fn done, void *data)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;
    struct entry *entry = g_new0(struct entry, 1);

    entry->passed = done;
    entry->data = data;
    if (!barrier_at_once(engine, entry))
        enqueue(engine, entry);
}

/* For lookups of a commit that is still under way: rare, so waiting for the disk is right. */
static void wait_until_idle(struct sqlite_engine *engine)
{
    g_mutex_lock(&engine->queue_lock);
    while (engine->busy || !g_queue_is_empty(&engine->queue))
        g_cond_wait(&engine->queue_idle, &engine->queue_lock);
    g_mutex_unlock(&engine->queue_lock);
}

/* Over a handle of its own, which never waits for a commit. */
static guint64 engine_lookup(struct engine *base, const char *commit_id)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;

    if (g_hash_table_contains(engine->unfinished, commit_id))
        wait_until_idle(engine);
    return sqlite_store_lookup(engine->store, commit_id);
}

/* With the writing handle: before the first commit, as load(). */
static bool engine_each_id(struct engine *base,
                           void (*each)(const char *commit_id, guint64 serial, void *data),
                           void *data, GError **error)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;

    g_mutex_lock(&engine->store_lock);
    bool ok = sqlite_store_each_id(engine->store, each, data, error);
    g_mutex_unlock(&engine->store_lock);
    return ok;
}

static bool add_last(struct sqlite_engine *engine, const struct engine_commit *last, GError **error)
{
    g_autoptr(GPtrArray) rows = store_rows_from_changes(last->changes);
    bool refused;
    if (!sqlite_store_add(engine->store, last->commit_id, last->epoch, last->serial, rows, &refused,
                          error))
        return false;
    sqlite_store_leave(engine->store);
    return true;
}

/* A short wait for the disk, once in the life of an engine: the loop may stand still for it. */
static enum engine_result engine_leave(struct engine *base, const struct engine_commit *last,
                                       const char *node, GError **error)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;
    bool unknown = false;

    wait_until_idle(engine);
    g_mutex_lock(&engine->store_lock);
    bool ok = !engine->broken && sqlite_store_begin(engine->store, error) &&
              add_last(engine, last, error);
    crash_point("engine: leave");
    ok = ok && sqlite_store_finish(engine->store, &unknown, error);
    crash_point("engine: left");
    if (!ok)
        sqlite_store_rollback(engine->store);
    if (engine->broken && error != NULL && *error == NULL)
        fettle_set_error(error, STORAGE, "the store had an error; wconfd has to be restarted");
    engine->broken = engine->broken || unknown;
    g_mutex_unlock(&engine->store_lock);
    return ok ? ENGINE_DONE : unknown ? ENGINE_UNKNOWN : ENGINE_REFUSED;
}

static const char *engine_damage(const struct engine *base)
{
    return store_damage_text(((const struct sqlite_engine *)base)->damage);
}

static void engine_close(struct engine *base)
{
    struct sqlite_engine *engine = (struct sqlite_engine *)base;

    g_mutex_lock(&engine->queue_lock);
    engine->closing = true;
    g_cond_signal(&engine->queue_filled);
    g_mutex_unlock(&engine->queue_lock);
    g_thread_join(engine->worker);
    sqlite_store_close(engine->store);
    engine->closed = true;
    engine_unref(engine);
}

static const struct engine_ops ops = {
    .load = engine_load,
    .load_text = engine_load_text,
    .observe = engine_observe,
    .campaign = engine_campaign,
    .resign = engine_resign,
    .on_lost = engine_on_lost,
    .commit = engine_commit,
    .barrier = engine_barrier,
    .lookup = engine_lookup,
    .each_id = engine_each_id,
    .leave = engine_leave,
    .damage = engine_damage,
    .close = engine_close,
};

void sqlite_engine_on_damaged(struct engine *base, void (*tell)(const char *what))
{
    store_damage_on(((struct sqlite_engine *)base)->damage, tell);
}

struct engine *sqlite_engine_open(const char *path, GError **error)
{
    struct sqlite_store *store = sqlite_store_open(path, error);

    if (store == NULL)
        return NULL;
    struct sqlite_engine *engine = g_new0(struct sqlite_engine, 1);
    engine->base.ops = &ops;
    g_atomic_ref_count_init(&engine->refs);
    g_mutex_init(&engine->store_lock);
    g_mutex_init(&engine->queue_lock);
    g_cond_init(&engine->queue_filled);
    g_cond_init(&engine->queue_idle);
    g_queue_init(&engine->queue);
    engine->store = store;
    engine->damage = store_damage_new();
    engine->scrubbed = g_get_monotonic_time();
    sqlite_store_defer_checkpoints(store);
    engine->unfinished = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    engine->worker = g_thread_new("store", worker, engine);
    return &engine->base;
}

bool sqlite_engine_create(const char *path, guint64 history, const GPtrArray *changes,
                          GError **error)
{
    g_autoptr(GPtrArray) rows = store_rows_from_changes(changes);
    return sqlite_store_create(path, COPY_ENGINE, history, rows, error);
}
