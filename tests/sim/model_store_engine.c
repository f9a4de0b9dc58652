/* The model of a store as the engine of a master; see model_store.h. */
#include <string.h>

#include "helper/commit_ids.h"
#include "model_store_private.h"
#include "proto/records.h"

/* A commit, or a barrier (id NULL). */
struct entry {
    char *id;
    guint64 epoch, serial;
    GPtrArray *changes;
    engine_commit_fn committed;
    engine_barrier_fn passed;
    void *data;
};

struct opened_engine {
    struct engine base;
    struct model_store *store;
    const struct env *env;
    guint64 epoch;
    GQueue queue; /* struct entry that wait for the disk */
    GQueue batch; /* those that it is at */
    guint timer;  /* of the batch */
    bool broken;  /* it was left open whether a commit is stored */
};

static struct opened_engine *of(struct engine *base)
{
    return (struct opened_engine *)base;
}

static void entry_free(void *data)
{
    struct entry *entry = data;
    g_free(entry->id);
    if (entry->changes)
        g_ptr_array_unref(entry->changes);
    g_free(entry);
}

/* --- commits --- */

static void store_entry(struct model_store *store, const struct entry *entry)
{
    struct copy_position before = store->at;
    store_put_changes(store, entry->changes, entry->serial);
    store->at.serial = entry->serial;
    commit_ids_put(store->ids, entry->id, entry->serial);
    store_moved(store, &before);
    store->events.committed(store, entry->id, entry->epoch, store->events.data);
}

static enum engine_result commit_entry(struct opened_engine *engine, const struct entry *entry,
                                       bool failed, bool stored, GError **error)
{
    const struct model_store *store = engine->store;
    if (engine->broken || failed) {
        fettle_set_error(error, STORAGE, "the disk has failed");
        if (!engine->broken && stored && entry->serial == store->at.serial + 1)
            store_entry(engine->store, entry);
        return failed && stored ? ENGINE_UNKNOWN : ENGINE_REFUSED;
    }
    if (!engine_commit_follows(entry->epoch, entry->serial, store->master.epoch, store->at.serial,
                               error))
        return ENGINE_REFUSED;
    store_entry(engine->store, entry);
    return ENGINE_DONE;
}

static void batch_begin(struct opened_engine *engine);

/* The whole batch is one transaction. */
static void batch_done(void *data)
{
    struct opened_engine *engine = data;
    struct model_store *store = engine->store;
    g_autoptr(GError) failure = NULL;
    GQueue batch = engine->batch;
    engine->timer = 0;
    g_queue_init(&engine->batch);
    bool failed = store_fails(store, &failure);
    bool stored = failed && store->events.random(2, store->events.data) == 0;
    struct entry *entry;
    while ((entry = g_queue_pop_head(&batch))) {
        g_autoptr(GError) error = NULL;
        if (entry->id) {
            enum engine_result result = commit_entry(engine, entry, failed, stored, &error);
            entry->committed(result, error, entry->data);
        } else {
            entry->passed(!engine->broken && store->master.epoch == engine->epoch, entry->data);
        }
        entry_free(entry);
    }
    engine->broken = engine->broken || stored;
    if (!g_queue_is_empty(&engine->queue))
        batch_begin(engine);
}

static void batch_begin(struct opened_engine *engine)
{
    bool commits = false;
    if (engine->timer)
        return;
    engine->batch = engine->queue;
    g_queue_init(&engine->queue);
    for (const GList *link = engine->batch.head; link; link = link->next)
        commits = commits || ((const struct entry *)link->data)->id;
    guint ms = commits ? store_sync_ms(engine->store) : 0;
    engine->timer = engine->env->ops->timer(engine->env, ms, batch_done, engine);
}

static void engine_commit(struct engine *base, const struct engine_commit *commit,
                          engine_commit_fn done, void *data)
{
    struct entry *entry = g_new0(struct entry, 1);
    *entry = (struct entry){.id = g_strdup(commit->commit_id),
                            .epoch = commit->epoch,
                            .serial = commit->serial,
                            .changes = g_ptr_array_ref((GPtrArray *)commit->changes),
                            .committed = done,
                            .data = data};
    g_queue_push_tail(&of(base)->queue, entry);
    batch_begin(of(base));
}

static void engine_barrier(struct engine *base, engine_barrier_fn done, void *data)
{
    struct entry *entry = g_new0(struct entry, 1);
    entry->passed = done;
    entry->data = data;
    g_queue_push_tail(&of(base)->queue, entry);
    batch_begin(of(base));
}

/* --- the rest of the interface --- */

static bool engine_load(struct engine *base, guint64 *ret_history, guint64 *ret_serial,
                        void (*each)(const char *kind, const char *key, guint64 version,
                                     json_t *object, void *data),
                        void *data, GError **error)
{
    *ret_history = of(base)->store->at.history;
    *ret_serial = of(base)->store->at.serial;
    model_store_each(of(base)->store, each, data);
    return true;
}

static bool engine_observe(struct engine *base, struct mastership *ret_master, GError **error)
{
    *ret_master = of(base)->store->master;
    return true;
}

static bool engine_campaign(struct engine *base, struct mastership *me, GError **error)
{
    struct opened_engine *engine = of(base);
    struct model_store *store = engine->store;
    struct mastership *stored = &store->master;
    if (stored->epoch && !strcmp(stored->node, me->node) && !strcmp(stored->boot_id, me->boot_id) &&
        !strcmp(stored->journal_id, me->journal_id)) {
        me->epoch = stored->epoch;
    } else {
        if (!env_sleep(engine->env, store_sync_ms(store)) &&
            store->events.random(2, store->events.data) == 0) {
            fettle_set_error(error, KILLED, "the process has ended");
            return false;
        }
        if (store_fails(store, error))
            return false;
        struct copy_position before = store->at;
        me->epoch = MAX(stored->epoch + 1, me->epoch);
        *stored = *me;
        stored->leap = 0;
        store->at.epoch = me->epoch;
        store->at.serial = MAX(store->at.serial, me->leap);
        store_moved(store, &before);
    }
    engine->epoch = me->epoch;
    return true;
}

static bool engine_resign(struct engine *base, const char *next, GError **error)
{
    fettle_set_error(error, WRONG_STATE,
                     "the store of this node is the engine; another node becomes master by "
                     "`fettle cluster master-failover` there");
    return false;
}

static void engine_on_lost(struct engine *base, void (*lost)(const char *why, void *data),
                           void *data)
{
}

static guint64 engine_lookup(struct engine *base, const char *commit_id)
{
    return commit_ids_find(of(base)->store->ids, commit_id);
}

static bool engine_each_id(struct engine *base,
                           void (*each)(const char *commit_id, guint64 serial, void *data),
                           void *data, GError **error)
{
    commit_ids_each(of(base)->store->ids, each, data);
    return true;
}

/* The process ends, perhaps in the middle of a batch: that is stored as a whole or not at all. */
static void engine_close(struct engine *base)
{
    struct opened_engine *engine = of(base);
    struct model_store *store = engine->store;
    bool stored = !engine->broken && store->events.random(2, store->events.data) == 0;
    if (engine->timer)
        engine->env->ops->timer_cancel(engine->env, engine->timer);
    engine->timer = 0;
    struct entry *entry;
    while ((entry = g_queue_pop_head(&engine->batch))) {
        if (stored && entry->id && entry->serial == store->at.serial + 1 &&
            entry->epoch == store->master.epoch)
            store_entry(store, entry);
        entry_free(entry);
    }
    g_queue_clear_full(&engine->queue, entry_free);
}

static const struct engine_ops engine_ops = {
    .load = engine_load,
    .observe = engine_observe,
    .campaign = engine_campaign,
    .resign = engine_resign,
    .on_lost = engine_on_lost,
    .commit = engine_commit,
    .barrier = engine_barrier,
    .lookup = engine_lookup,
    .each_id = engine_each_id,
    .close = engine_close,
};

struct engine *model_store_engine(struct model_store *store, const struct env *env)
{
    struct opened_engine *engine = g_new0(struct opened_engine, 1);
    engine->base.ops = &engine_ops;
    engine->store = store;
    engine->env = env;
    return &engine->base;
}
