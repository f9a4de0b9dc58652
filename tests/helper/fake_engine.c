/* An engine in memory; see fake_engine.h. */
#include "helper/fake_engine.h"

#include <string.h>

#include "helper/commit_ids.h"
#include "proto/change.h"
#include "proto/records.h"

struct stored_object {
    char *kind;
    char *key;
    guint64 version;
    json_t *object;
};

/* A queued commit, or a barrier (`commit_id` NULL). */
struct queued {
    struct fake_engine *engine;
    char *commit_id;
    guint64 epoch;
    guint64 serial;
    GPtrArray *changes;
    engine_commit_fn committed;
    engine_barrier_fn passed;
    void *data;
    guint turn; /* of the process that asked: a crash drops older ones */
    enum engine_result result;
    GError *wrong; /* NULL with a failure: the disk's */
    bool master;
};

struct fake_engine {
    struct engine base;
    const char *damage;
    guint64 history;
    guint64 serial;
    struct mastership master;
    GHashTable *objects;    /* "kind key" -> struct stored_object */
    GHashTable *commit_ids; /* id -> serial (pointer) */
    GPtrArray *log;         /* struct change, all */
    GQueue queue;
    bool held;
    bool deposed;
    bool silent;
    guint64 last_epoch; /* of a replicated engine, whose seat may be nobody's */
    char heir[37];      /* to whom it was handed; "": to nobody */
    int resign_code;
    bool left;
    struct engine_left moved; /* of a replicated one; epoch 0: it was not left */
    enum engine_result next;
    bool next_stored;
    guint turn;
    guint commits;
};

static void stored_free(void *data)
{
    struct stored_object *stored = data;
    g_free(stored->kind);
    g_free(stored->key);
    json_decref(stored->object);
    g_free(stored);
}

static GPtrArray *copy_changes(const GPtrArray *changes)
{
    GPtrArray *copies = change_list_new();
    for (guint i = 0; changes && i < changes->len; i++)
        g_ptr_array_add(copies, change_copy(changes->pdata[i]));
    return copies;
}

static void store(struct fake_engine *engine, const char *commit_id, guint64 serial,
                  const GPtrArray *changes)
{
    for (guint i = 0; i < changes->len; i++) {
        struct change *change = change_copy(changes->pdata[i]);
        change->version = serial;
        g_ptr_array_add(engine->log, change);
        char *name = g_strdup_printf("%s %s", change->kind, change->key);
        if (change->op == CHANGE_DELETE) {
            g_hash_table_remove(engine->objects, name);
            g_free(name);
            continue;
        }
        struct stored_object *stored = g_new(struct stored_object, 1);
        *stored = (struct stored_object){g_strdup(change->kind), g_strdup(change->key), serial,
                                         json_incref(change->object)};
        g_hash_table_replace(engine->objects, name, stored);
    }
    engine->serial = serial;
    if (commit_id)
        commit_ids_put(engine->commit_ids, commit_id, serial);
    engine->commits++;
}

static void queued_free(void *data)
{
    struct queued *queued = data;
    g_free(queued->commit_id);
    if (queued->changes)
        g_ptr_array_unref(queued->changes);
    g_clear_error(&queued->wrong);
    g_free(queued);
}

static void queued_call_back(void *data)
{
    struct queued *queued = data;
    if (queued->turn == queued->engine->turn) {
        if (queued->passed) {
            queued->passed(queued->master, queued->data);
        } else {
            g_autoptr(GError) error = NULL;
            if (queued->wrong)
                error = g_steal_pointer(&queued->wrong);
            else if (queued->result != ENGINE_DONE)
                fettle_set_error(&error, STORAGE, "disk full (made by the test)");
            queued->committed(queued->result, error, queued->data);
        }
    }
    queued_free(queued);
}

/* Work is posted through a task, because that is the poster that everybody shares. */
static void post_call_back(struct queued *queued)
{
    struct task_group *group = task_group_new();
    task_spawn(group, queued_call_back, queued);
    task_group_unref(group);
}

/* As the real ones do it. */
static bool follows(const struct fake_engine *engine, struct queued *queued)
{
    if (engine->deposed)
        fettle_set_error(&queued->wrong, NOT_MASTER, "another node is the master");
    return !queued->wrong &&
           engine_commit_follows(queued->epoch, queued->serial, engine->master.epoch,
                                 engine->serial, &queued->wrong);
}

static void process_commit(struct fake_engine *engine, struct queued *queued)
{
    queued->result = follows(engine, queued) ? engine->next : ENGINE_REFUSED;
    bool stored = queued->result == ENGINE_DONE || (!queued->wrong && engine->next_stored);
    engine->next = ENGINE_DONE;
    engine->next_stored = false;
    if (stored)
        store(engine, queued->commit_id, queued->serial, queued->changes);
}

static void process_queue(struct fake_engine *engine)
{
    struct queued *queued;
    while (!engine->held && (queued = g_queue_pop_head(&engine->queue))) {
        queued->master = !engine->deposed;
        if (!queued->passed)
            process_commit(engine, queued);
        post_call_back(queued);
    }
}

static bool engine_load(struct engine *base, guint64 *ret_history, guint64 *ret_serial,
                        void (*each)(const char *kind, const char *key, guint64 version,
                                     json_t *object, void *data),
                        void *data, GError **error)
{
    struct fake_engine *engine = (struct fake_engine *)base;
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, engine->objects);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct stored_object *stored = value;
        each(stored->kind, stored->key, stored->version, stored->object, data);
    }
    for (guint i = 0; engine->base.replicated && i < engine->log->len; i++) {
        const struct change *change = engine->log->pdata[i];
        if (change->op == CHANGE_DELETE)
            each(change->kind, change->key, change->version, NULL, data);
    }
    *ret_history = engine->history;
    *ret_serial = engine->serial;
    return true;
}

static bool may_campaign(const struct fake_engine *engine, const struct mastership *me,
                         GError **error)
{
    bool taken = engine->base.replicated && engine->master.epoch;
    if (engine->deposed)
        fettle_set_error(error, NOT_MASTER, "another node is the master");
    else if (engine->moved.epoch)
        fettle_set_error(error, NOT_MASTER, "the engine was left");
    else if (engine->silent)
        fettle_set_error(error, TEMPORARY, "etcd does not answer (made by the test)");
    else if (taken && strcmp(engine->master.node, me->node) != 0)
        fettle_set_error(error, NOT_MASTER, "the master is node %s", engine->master.node);
    else if (*engine->heir && strcmp(engine->heir, me->node) != 0)
        fettle_set_error(error, NOT_MASTER, "mastership was handed to node %s", engine->heir);
    else
        return true;
    return false;
}

static bool engine_campaign(struct engine *base, struct mastership *me, GError **error)
{
    struct fake_engine *engine = (struct fake_engine *)base;
    if (!may_campaign(engine, me, error))
        return false;
    bool same = engine->master.epoch && !strcmp(engine->master.node, me->node) &&
                !strcmp(engine->master.boot_id, me->boot_id) &&
                !strcmp(engine->master.journal_id, me->journal_id);
    me->epoch = same ? engine->master.epoch : MAX(engine->last_epoch + 1, me->epoch);
    if (!same && me->leap)
        engine->serial = me->leap;
    engine->master = *me;
    engine->master.leap = 0;
    engine->last_epoch = me->epoch;
    engine->heir[0] = '\0';
    return true;
}

static void engine_commit(struct engine *base, const struct engine_commit *commit,
                          engine_commit_fn done, void *data)
{
    struct fake_engine *engine = (struct fake_engine *)base;
    struct queued *queued = g_new0(struct queued, 1);
    queued->engine = engine;
    queued->commit_id = g_strdup(commit->commit_id);
    queued->epoch = commit->epoch;
    queued->serial = commit->serial;
    queued->changes = copy_changes(commit->changes);
    queued->committed = done;
    queued->data = data;
    queued->turn = engine->turn;
    g_queue_push_tail(&engine->queue, queued);
    process_queue(engine);
}

static void engine_barrier(struct engine *base, engine_barrier_fn done, void *data)
{
    struct fake_engine *engine = (struct fake_engine *)base;
    struct queued *queued = g_new0(struct queued, 1);
    queued->engine = engine;
    queued->passed = done;
    queued->data = data;
    queued->turn = engine->turn;
    g_queue_push_tail(&engine->queue, queued);
    process_queue(engine);
}

static guint64 engine_lookup(struct engine *base, const char *commit_id)
{
    struct fake_engine *engine = (struct fake_engine *)base;
    return commit_ids_find(engine->commit_ids, commit_id);
}

static bool engine_each_id(struct engine *base,
                           void (*each)(const char *commit_id, guint64 serial, void *data),
                           void *data, GError **error)
{
    commit_ids_each(((struct fake_engine *)base)->commit_ids, each, data);
    return true;
}

static bool engine_observe(struct engine *base, struct mastership *ret_master, GError **error)
{
    const struct fake_engine *engine = (struct fake_engine *)base;
    *ret_master = engine->master;
    if (engine->silent)
        fettle_set_error(error, TEMPORARY, "etcd does not answer (made by the test)");
    return !engine->silent;
}

static bool engine_resign(struct engine *base, const char *next, GError **error)
{
    struct fake_engine *engine = (struct fake_engine *)base;
    if (engine->resign_code)
        g_set_error_literal(error, FETTLE_ERROR, engine->resign_code, "made by the test");
    else if (!base->replicated)
        fettle_set_error(error, WRONG_STATE,
                         "the store of this node is the engine; another node becomes master by "
                         "`fettle cluster master-failover` there");
    if (engine->resign_code || !base->replicated)
        return false;
    engine->master.epoch = 0;
    g_strlcpy(engine->heir, next, sizeof engine->heir);
    return true;
}

static void engine_on_lost(struct engine *base, void (*lost)(const char *why, void *data),
                           void *data)
{
}

/* Stored or not as for commits; then nobody is master of it any more. */
static enum engine_result engine_leave(struct engine *base, const struct engine_commit *last,
                                       const char *node, GError **error)
{
    struct fake_engine *engine = (struct fake_engine *)base;
    enum engine_result result = engine->next;
    bool stored = result == ENGINE_DONE || engine->next_stored;
    g_assert_true(g_queue_is_empty(&engine->queue));
    engine->next = ENGINE_DONE;
    engine->next_stored = false;
    if (stored)
        store(engine, last->commit_id, last->serial, last->changes);
    engine->left = engine->left || stored;
    engine->deposed = engine->deposed || stored;
    if (result != ENGINE_DONE)
        fettle_set_error(error, STORAGE, "disk full (made by the test)");
    return result;
}

static bool engine_left(struct engine *base, struct engine_left *ret_left, GError **error)
{
    const struct fake_engine *engine = (struct fake_engine *)base;
    *ret_left = engine->moved;
    return true;
}

/* Everything since serial 1 is in the log, and mastership 1 was of this engine already. */
static guint64 engine_log_from(struct engine *base, guint64 *ret_epoch)
{
    *ret_epoch = 1;
    return base->replicated ? 1 : 0;
}

static const char *engine_damage(const struct engine *base)
{
    return ((const struct fake_engine *)base)->damage;
}

static void engine_close(struct engine *base)
{
}

static const struct engine_ops fake_engine_ops = {
    .load = engine_load,
    .observe = engine_observe,
    .campaign = engine_campaign,
    .resign = engine_resign,
    .on_lost = engine_on_lost,
    .commit = engine_commit,
    .barrier = engine_barrier,
    .lookup = engine_lookup,
    .each_id = engine_each_id,
    .log_from = engine_log_from,
    .leave = engine_leave,
    .left = engine_left,
    .damage = engine_damage,
    .close = engine_close,
};

struct fake_engine *fake_engine_new(guint64 history, const GPtrArray *changes)
{
    struct fake_engine *engine = g_new0(struct fake_engine, 1);
    engine->base.ops = &fake_engine_ops;
    engine->history = history;
    engine->objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, stored_free);
    engine->commit_ids = commit_ids_new();
    engine->log = change_list_new();
    engine->next = ENGINE_DONE;
    g_queue_init(&engine->queue);
    if (changes)
        store(engine, NULL, 1, changes);
    engine->commits = 0;
    return engine;
}

void fake_engine_free(struct fake_engine *engine)
{
    g_queue_clear_full(&engine->queue, queued_free);
    g_hash_table_unref(engine->objects);
    g_hash_table_unref(engine->commit_ids);
    g_ptr_array_unref(engine->log);
    g_free(engine);
}

struct engine *fake_engine_base(struct fake_engine *engine)
{
    return &engine->base;
}

void fake_engine_hold(struct fake_engine *engine)
{
    engine->held = true;
}

void fake_engine_release(struct fake_engine *engine)
{
    engine->held = false;
    process_queue(engine);
}

guint fake_engine_queued(const struct fake_engine *engine)
{
    return g_queue_get_length((GQueue *)&engine->queue);
}

void fake_engine_fail_next(struct fake_engine *engine, enum engine_result result, bool stored)
{
    engine->next = result;
    engine->next_stored = stored;
}

void fake_engine_depose(struct fake_engine *engine, bool deposed)
{
    engine->deposed = deposed;
}

void fake_engine_replicate(struct fake_engine *engine)
{
    engine->base.replicated = true;
}

void fake_engine_expire(struct fake_engine *engine)
{
    engine->master.epoch = 0;
}

void fake_engine_silence(struct fake_engine *engine, bool silent)
{
    engine->silent = silent;
}

void fake_engine_fail_resign(struct fake_engine *engine, enum fettle_error code)
{
    engine->resign_code = (int)code;
}

void fake_engine_crash(struct fake_engine *engine)
{
    engine->turn++;
    engine->held = false;
    g_queue_clear_full(&engine->queue, queued_free);
}

void fake_engine_lose(struct fake_engine *engine, guint64 serial, const GPtrArray *changes)
{
    guint64 next = engine_leap(engine->serial, 0);
    g_autoptr(GPtrArray) log = engine->log;
    engine->log = change_list_new();
    g_hash_table_remove_all(engine->objects);
    for (guint i = 0; i < log->len; i++) {
        struct change *change = log->pdata[i];
        g_autoptr(GPtrArray) one = g_ptr_array_new();
        g_ptr_array_add(one, change);
        if (change->version <= serial)
            store(engine, NULL, change->version, one);
    }
    store(engine, NULL, next, changes);
}

void fake_engine_move(struct fake_engine *engine, const struct engine_left *to)
{
    engine->moved = *to;
}

bool fake_engine_left(const struct fake_engine *engine)
{
    return engine->left;
}

guint64 fake_engine_serial(const struct fake_engine *engine)
{
    return engine->serial;
}

guint64 fake_engine_epoch(const struct fake_engine *engine)
{
    return engine->last_epoch;
}

guint fake_engine_commits(const struct fake_engine *engine)
{
    return engine->commits;
}

void fake_engine_changes(const struct fake_engine *engine, guint64 since, GPtrArray *ret_changes)
{
    guint first = engine->log->len; /* the log is in order of versions */
    while (first > 0 && ((const struct change *)engine->log->pdata[first - 1])->version > since)
        first--;
    for (guint i = first; i < engine->log->len; i++)
        g_ptr_array_add(ret_changes, change_copy(engine->log->pdata[i]));
}

void fake_engine_rot(struct fake_engine *engine, const char *what)
{
    engine->damage = what;
}
