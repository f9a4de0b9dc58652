/* See store_world.h. */
#include "unit/core/world/store_world.h"

#include "core/config/named_change.h"

#include <string.h>

struct entry {
    guint64 version;
    json_t *object;
};

struct wait {
    struct store_world *store;
    struct rpc_request *request;
    guint64 serial;
    guint timer;
};

struct store_world {
    struct env *env;
    guint64 history, epoch, serial;
    GHashTable *objects; /* "kind/key" -> struct entry * */
    json_t *log;         /* of change objects, oldest first */
    GQueue waits;        /* struct wait * */
    GQueue held;         /* struct rpc_request *: commits */
    bool hold;
    GError *fail_next;
    guint commits;
    char *pending;
    json_t *status; /* members of cluster_status that the test has set */
    json_t *locks;
    json_t *waiters;
};

static void entry_free(gpointer data)
{
    struct entry *entry = data;

    json_decref(entry->object);
    g_free(entry);
}

/* --- change stream --- */

static json_t *object_change(const char *path, const struct entry *entry)
{
    g_autofree char *kind = g_strndup(path, strcspn(path, "/"));

    return json_make("{ss, ss, ss, sI, sO}", "op", "put", "kind", kind, "key",
                     path + strlen(kind) + 1, "version", (json_int_t)entry->version, "object",
                     entry->object);
}

static json_t *all_objects(const struct store_world *store)
{
    json_t *changes = json_array();
    GHashTableIter iter;
    gpointer path, entry;

    g_hash_table_iter_init(&iter, store->objects);
    while (g_hash_table_iter_next(&iter, &path, &entry))
        json_array_append_new(changes, object_change(path, entry));
    return changes;
}

/* Versions in the log rise: what is newer stands at its end. */
static json_t *changes_since(const struct store_world *store, guint64 serial)
{
    json_t *changes = json_array();
    size_t from = json_array_size(store->log);

    while (from > 0 && (guint64)json_integer_value(json_object_get(
                           json_array_get(store->log, from - 1), "version")) > serial)
        from--;
    for (size_t i = from; i < json_array_size(store->log); i++)
        json_array_append(changes, json_array_get(store->log, i));
    return changes;
}

static void answer_changes(struct store_world *store, struct rpc_request *request, guint64 serial)
{
    bool snapshot = serial == 0;

    rpc_answer(request, json_make("{sI, sI, sI, sb, so}", "history", (json_int_t)store->history,
                                  "epoch", (json_int_t)store->epoch, "serial",
                                  (json_int_t)store->serial, "snapshot", snapshot, "changes",
                                  snapshot ? all_objects(store) : changes_since(store, serial)));
}

static void end_wait(struct wait *wait)
{
    struct store_world *store = wait->store;

    if (wait->timer != 0)
        store->env->ops->timer_cancel(store->env, wait->timer);
    g_queue_remove(&store->waits, wait);
    answer_changes(store, wait->request, wait->serial);
    g_free(wait);
}

static void wait_over(void *data)
{
    struct wait *wait = data;

    wait->timer = 0;
    end_wait(wait);
}

static void tell_all(struct store_world *store)
{
    struct wait *wait;

    while ((wait = g_queue_peek_head(&store->waits)) != NULL)
        end_wait(wait);
}

static void call_wait_changes(struct store_world *store, struct rpc_request *request)
{
    guint64 serial = (guint64)json_integer_value(json_object_get(request->args, "serial"));
    guint wait_ms = (guint)json_integer_value(json_object_get(request->args, "wait_ms"));
    struct wait *wait;

    if (serial < store->serial || wait_ms == 0) {
        answer_changes(store, request, serial);
        return;
    }
    wait = g_new0(struct wait, 1);
    *wait = (struct wait){store, request, serial, 0};
    wait->timer = store->env->ops->timer(store->env, wait_ms, wait_over, wait);
    g_queue_push_tail(&store->waits, wait);
}

/* --- commits --- */

static void apply(struct store_world *store, const char *op, const char *kind, const char *key,
                  json_t *object)
{
    char *path = g_strdup_printf("%s/%s", kind, key);
    struct entry *entry = g_new0(struct entry, 1);
    json_t *change = json_make("{ss, ss, ss, sI}", "op", op, "kind", kind, "key", key, "version",
                               (json_int_t)store->serial);

    if (object != NULL)
        json_object_set(change, "object", object);
    json_array_append_new(store->log, change);
    entry->version = store->serial;
    entry->object = json_incref(object);
    if (object != NULL) {
        g_hash_table_replace(store->objects, path, entry);
        return;
    }
    g_hash_table_remove(store->objects, path);
    entry_free(entry);
    g_free(path);
}

static bool versions_fit(const struct store_world *store, const json_t *changes, GError **error)
{
    size_t i;
    const json_t *change;

    json_array_foreach(changes, i, change) {
        const char *kind = json_string_value(json_object_get(change, "kind"));
        const char *key = json_string_value(json_object_get(change, "key"));
        g_autofree char *path = g_strdup_printf("%s/%s", kind, key);
        const struct entry *entry = g_hash_table_lookup(store->objects, path);
        guint64 version = (guint64)json_integer_value(json_object_get(change, "version"));

        if (version != (entry == NULL ? 0 : entry->version)) {
            fettle_set_error(error, VERSION_CONFLICT, "%s %s changed since it was read", kind, key);
            return false;
        }
    }
    return true;
}

static void commit(struct store_world *store, struct rpc_request *request)
{
    const json_t *changes = json_object_get(request->args, "changes");
    g_autoptr(GError) error = g_steal_pointer(&store->fail_next);
    size_t i;
    const json_t *change;

    store->commits++;
    if (error == NULL && request->stamp.epoch != store->epoch)
        fettle_set_error(&error, STALE_EPOCH, "the epoch is %" G_GUINT64_FORMAT, store->epoch);
    if (error != NULL || !versions_fit(store, changes, &error)) {
        rpc_fail(request, error);
        return;
    }
    store->serial++;
    json_array_foreach(changes, i, change)
        apply(store, json_string_value(json_object_get(change, "op")),
              json_string_value(json_object_get(change, "kind")),
              json_string_value(json_object_get(change, "key")), json_object_get(change, "object"));
    rpc_answer(request, json_make("{sI}", "serial", (json_int_t)store->serial));
    tell_all(store);
}

static void call_commit(struct store_world *store, struct rpc_request *request)
{
    if (store->hold)
        g_queue_push_tail(&store->held, request);
    else
        commit(store, request);
}

/* --- the rest --- */

static void call_cluster_status(struct store_world *store, struct rpc_request *request)
{
    json_t *pending = json_array();

    if (store->pending != NULL)
        json_array_append_new(pending, json_string(store->pending));
    json_t *answer =
        json_make("{sI, sI, sI, ss, so}", "history", (json_int_t)store->history, "epoch",
                  (json_int_t)store->epoch, "serial", (json_int_t)store->serial, "master_node",
                  store->env->node_uuid, "nodes_pending", pending);
    json_object_update(answer, store->status);
    rpc_answer(request, answer);
}

static void handle(struct rpc_request *request, void *data)
{
    struct store_world *store = data;

    if (g_str_equal(request->name, "wait_changes"))
        call_wait_changes(store, request);
    else if (named_change_exists(request->name))
        call_commit(store, request);
    else if (g_str_equal(request->name, "cluster_status"))
        call_cluster_status(store, request);
    else if (g_str_equal(request->name, "list_all_locks"))
        rpc_answer(request, json_make("{sO}", "locks", store->locks));
    else if (g_str_equal(request->name, "list_lock_waiters"))
        rpc_answer(request, json_make("{sO}", "waiters", store->waiters));
    else
        rpc_answer(request, NULL);
}

struct store_world *store_world_new(struct env *env)
{
    struct store_world *store = g_new0(struct store_world, 1);

    store->env = env;
    store->history = 1;
    store->epoch = 1;
    store->serial = 1;
    store->objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, entry_free);
    store->log = json_array();
    store->status = json_object();
    store->locks = json_array();
    store->waiters = json_array();
    g_queue_init(&store->waits);
    g_queue_init(&store->held);
    fake_serve(env, handle, store);
    return store;
}

void store_world_free(struct store_world *store)
{
    struct wait *wait;

    while ((wait = g_queue_pop_head(&store->waits)) != NULL) {
        rpc_request_free(wait->request);
        g_free(wait);
    }
    for (struct rpc_request *request; (request = g_queue_pop_head(&store->held)) != NULL;)
        rpc_request_free(request);
    g_hash_table_unref(store->objects);
    json_decref(store->log);
    json_decref(store->status);
    json_decref(store->locks);
    json_decref(store->waiters);
    g_clear_error(&store->fail_next);
    g_free(store->pending);
    g_free(store);
}

void store_set_epoch(struct store_world *store, guint64 epoch)
{
    store->epoch = epoch;
}

void store_set_pending(struct store_world *store, const char *node)
{
    g_free(store->pending);
    store->pending = g_strdup(node);
}

void store_put(struct store_world *store, const char *kind, const char *key, json_t *object)
{
    store->serial++;
    apply(store, object == NULL ? "delete" : "put", kind, key, object);
    json_decref(object);
    tell_all(store);
}

json_t *store_get(const struct store_world *store, const char *kind, const char *key)
{
    g_autofree char *path = g_strdup_printf("%s/%s", kind, key);
    const struct entry *entry = g_hash_table_lookup(store->objects, path);

    return entry == NULL ? NULL : entry->object;
}

json_t *store_objects(const struct store_world *store)
{
    json_t *objects = json_object();
    GHashTableIter iter;
    gpointer path, entry;

    g_hash_table_iter_init(&iter, store->objects);
    while (g_hash_table_iter_next(&iter, &path, &entry))
        json_object_set(objects, path, ((const struct entry *)entry)->object);
    return objects;
}

void store_hold(struct store_world *store, bool hold)
{
    struct rpc_request *request;

    store->hold = hold;
    while (!hold && (request = g_queue_pop_head(&store->held)) != NULL)
        commit(store, request);
}

void store_fail_next(struct store_world *store, enum fettle_error code, const char *message)
{
    g_clear_error(&store->fail_next);
    store->fail_next = g_error_new_literal(FETTLE_ERROR, (gint)code, message);
}

guint store_commits(const struct store_world *store)
{
    return store->commits;
}

void store_set_waiters(struct store_world *store, json_t *waiters)
{
    json_decref(store->waiters);
    store->waiters = waiters;
}

void store_set_status(struct store_world *store, json_t *status)
{
    json_decref(store->status);
    store->status = status;
}

void store_set_locks(struct store_world *store, json_t *locks)
{
    json_decref(store->locks);
    store->locks = locks;
}
