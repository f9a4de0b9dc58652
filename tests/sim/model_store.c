/* The disk, and the store as a copy; see model_store.h. The store as an engine is
 * model_store_engine.c. */
#include <string.h>

#include "helper/commit_ids.h"
#include "model_store_private.h"
#include "proto/digest.h"
#include "proto/records.h"

static void row_free(void *data)
{
    struct row *row = data;
    g_free(row->kind);
    g_free(row->key);
    json_decref(row->object);
    g_free(row);
}

static GHashTable *table_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, row_free);
}

struct model_store *model_store_new(const char *node, const struct model_store_events *events)
{
    struct model_store *store = g_new0(struct model_store, 1);
    store->node = g_strdup(node);
    store->events = *events;
    store->objects = table_new();
    store->filling = table_new();
    store->ids = commit_ids_new();
    return store;
}

void model_store_free(struct model_store *store)
{
    g_hash_table_unref(store->objects);
    g_hash_table_unref(store->filling);
    g_hash_table_unref(store->ids);
    g_free(store->node);
    g_free(store);
}

const char *model_store_node(const struct model_store *store)
{
    return store->node;
}

/* --- rows --- */

static void put_row(struct model_store *store, GHashTable *table, const struct change *change,
                    guint64 version)
{
    char *name = g_strdup_printf("%s %s", change->kind, change->key);
    const struct row *old = g_hash_table_lookup(table, name);
    guint64 *digest = table == store->objects ? &store->at.digest : &store->filling_digest;
    if (old)
        *digest ^= digest_object(old->kind, old->key, old->version);
    if (change->op == CHANGE_DELETE) {
        g_hash_table_remove(table, name);
        g_free(name);
        return;
    }
    struct row *row = g_new(struct row, 1);
    *row = (struct row){g_strdup(change->kind), g_strdup(change->key), version,
                        json_incref(change->object)};
    *digest ^= digest_object(row->kind, row->key, version);
    g_hash_table_replace(table, name, row);
}

void store_put_changes(struct model_store *store, const GPtrArray *changes, guint64 serial)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        put_row(store, store->objects, change, serial ? serial : change->version);
    }
}

void store_moved(struct model_store *store, const struct copy_position *before)
{
    store->events.moved(store, before, store->events.data);
}

static void empty(struct model_store *store)
{
    g_hash_table_remove_all(store->objects);
    g_hash_table_remove_all(store->filling);
    g_hash_table_remove_all(store->ids);
    store->filling_digest = 0;
    store->at = (struct copy_position){.role = COPY_FOLLOWS};
    store->master = (struct mastership){0};
}

void model_store_fill(struct model_store *store, guint64 history, const GPtrArray *changes)
{
    empty(store);
    store->state = STORE_WHOLE;
    store->at.role = COPY_ENGINE;
    store->at.history = history;
    store->at.serial = 1;
    store->at.epoch = store->master.epoch = 1;
    store_put_changes(store, changes, 1);
}

void model_store_restore(struct model_store *store, guint64 history, guint64 epoch,
                         const GPtrArray *objects, guint64 serial, const GPtrArray *changes)
{
    empty(store);
    store->state = STORE_WHOLE;
    store->at.role = COPY_ENGINE;
    store->at.history = history;
    store->at.serial = serial;
    store->at.epoch = store->master.epoch = epoch;
    store_put_changes(store, objects, 0);
    store_put_changes(store, changes, serial);
}

void model_store_know(struct model_store *store, const char *id, guint64 serial)
{
    commit_ids_put(store->ids, id, serial);
}

void model_store_lose(struct model_store *store)
{
    empty(store);
    store->state = STORE_NONE;
}

void model_store_step_down(struct model_store *store)
{
    if (model_store_is_damaged(store))
        model_store_lose(store);
    store->at.role = COPY_FOLLOWS;
    store->at.epoch = MAX(store->at.epoch, store->master.epoch);
}

void model_store_damage(struct model_store *store)
{
    empty(store);
    store->state = STORE_DAMAGED;
}

bool model_store_is_damaged(const struct model_store *store)
{
    return store->state == STORE_DAMAGED;
}

bool model_store_role(const struct model_store *store, enum copy_role *ret_role)
{
    if (store->state != STORE_WHOLE)
        return false;
    *ret_role = store->at.role;
    return true;
}

void model_store_fail(struct model_store *store, guint count)
{
    store->fail = count;
}

/* --- transactions --- */

bool store_fails(struct model_store *store, GError **error)
{
    if (store->fail == 0)
        return false;
    store->fail--;
    fettle_set_error(error, STORAGE, "%s: the disk has failed", store->node);
    return true;
}

guint store_sync_ms(struct model_store *store)
{
    return store->events.sync_ms(store, store->events.data);
}

/* The disk is at it; whether the transaction is done. A process that ends meanwhile never knows. */
static bool sync_in_task(struct opened_copy *opened, GError **error)
{
    struct model_store *store = opened->store;
    guint ms = store_sync_ms(store);
    if (!ms || env_sleep(opened->env, ms))
        return !store_fails(store, error);
    if (store->events.random(2, store->events.data) == 0)
        return true;
    fettle_set_error(error, KILLED, "the process ended before its transaction");
    return false;
}

/* --- the store as a copy --- */

static struct opened_copy *of(struct copy *base)
{
    return (struct opened_copy *)base;
}

static void position(struct copy *base, struct copy_position *ret_position)
{
    *ret_position = of(base)->store->at;
}

static bool load(struct copy *base,
                 void (*each)(const char *kind, const char *key, guint64 version, json_t *object,
                              void *data),
                 void *data, GError **error)
{
    model_store_each(of(base)->store, each, data);
    return true;
}

static bool can_apply(const struct model_store *store, const struct copy_batch *batch,
                      GError **error)
{
    if (batch->history == store->at.history &&
        (batch->serial > store->at.serial ||
         (batch->serial == store->at.serial && batch->changes->len == 0)))
        return true;
    fettle_set_error(error, INTERNAL,
                     "changes up to serial %" G_GUINT64_FORMAT
                     " do not follow serial %" G_GUINT64_FORMAT,
                     batch->serial, store->at.serial);
    return false;
}

static void take_ids(struct model_store *store, const GPtrArray *ids)
{
    for (guint i = 0; ids && i < ids->len; i++) {
        const struct stored_commit *commit = ids->pdata[i];
        commit_ids_put(store->ids, commit->id, commit->serial);
    }
}

static void take_batch(struct model_store *store, const struct copy_batch *batch)
{
    take_ids(store, batch->ids);
    store_put_changes(store, batch->changes, 0);
    store->at.serial = batch->serial;
    store->at.epoch = batch->epoch;
    store->master.epoch = batch->epoch;
}

static bool apply(struct copy *base, const struct copy_batch *batch, GError **error)
{
    struct model_store *store = of(base)->store;
    struct copy_position before = store->at;
    if (!sync_in_task(of(base), error) || !can_apply(store, batch, error))
        return false;
    take_batch(store, batch);
    store_moved(store, &before);
    return true;
}

static bool refill_begin(struct copy *base, GError **error)
{
    struct model_store *store = of(base)->store;
    if (!sync_in_task(of(base), error))
        return false;
    g_hash_table_remove_all(store->filling);
    store->filling_digest = 0;
    return true;
}

static bool refill_piece(struct copy *base, const GPtrArray *changes, GError **error)
{
    struct model_store *store = of(base)->store;
    if (!sync_in_task(of(base), error))
        return false;
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        put_row(store, store->filling, change, change->version);
    }
    return true;
}

static bool refill_end(struct copy *base, const struct copy_batch *end, GError **error)
{
    struct model_store *store = of(base)->store;
    struct copy_position before = store->at;
    if (!sync_in_task(of(base), error))
        return false;
    g_hash_table_unref(store->objects);
    store->objects = store->filling;
    store->filling = table_new();
    g_hash_table_remove_all(store->ids);
    take_ids(store, end->ids);
    store->at = (struct copy_position){COPY_FOLLOWS, end->history, end->epoch, end->serial,
                                       store->filling_digest};
    store->master = (struct mastership){.epoch = end->epoch};
    store->filling_digest = 0;
    store->refills++;
    store_moved(store, &before);
    return true;
}

static bool set_role(struct copy *base, enum copy_role role, const struct copy_batch *last,
                     GError **error)
{
    struct model_store *store = of(base)->store;
    struct copy_position before = store->at;
    if (!sync_in_task(of(base), error) || (last && !can_apply(store, last, error)))
        return false;
    if (role == COPY_ENGINE)
        store->events.takes_over(store, last, store->events.data);
    if (last)
        take_batch(store, last);
    store->at.role = role;
    store_moved(store, &before);
    if (last)
        store->events.committed(store, NULL, last->epoch, store->events.data);
    return true;
}

static void close_copy(struct copy *base)
{
    g_free(base);
}

static const struct copy_ops copy_ops = {position,   load,     apply, refill_begin, refill_piece,
                                         refill_end, set_role, NULL,  NULL,         close_copy};

struct copy *model_store_copy(struct model_store *store, const struct env *env)
{
    struct opened_copy *opened = g_new0(struct opened_copy, 1);
    if (store->state != STORE_WHOLE)
        empty(store);
    store->state = STORE_WHOLE;
    opened->base.ops = &copy_ops;
    opened->store = store;
    opened->env = env;
    return &opened->base;
}

/* --- questions --- */

void model_store_position(const struct model_store *store, struct copy_position *ret_position)
{
    *ret_position = store->at;
}

guint64 model_store_record(const struct model_store *store)
{
    return store->master.epoch;
}

void model_store_each(const struct model_store *store,
                      void (*each)(const char *kind, const char *key, guint64 version,
                                   json_t *object, void *data),
                      void *data)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, store->objects);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct row *row = value;
        each(row->kind, row->key, row->version, row->object, data);
    }
}

guint64 model_store_version(const struct model_store *store, const char *kind, const char *key)
{
    g_autofree char *name = g_strdup_printf("%s %s", kind, key);
    const struct row *row = g_hash_table_lookup(store->objects, name);
    return row ? row->version : 0;
}

guint64 model_store_lookup(const struct model_store *store, const char *commit_id)
{
    return commit_ids_find(store->ids, commit_id);
}

guint model_store_count(const struct model_store *store)
{
    return g_hash_table_size(store->objects);
}

guint model_store_refills(const struct model_store *store)
{
    return store->refills;
}
