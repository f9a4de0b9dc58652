/*
 * The queue of the etcd engine. One batch is on its way at a time: all commits that wait, as one
 * transaction that compares mastership and head. A barrier that was asked before a batch was sent
 * is answered by it; barriers alone are answered by a linearizable read.
 *
 * A batch whose answer is lost is looked up in the head, which names the batch that wrote it. If it
 * is not there it may still arrive; so the head is rewritten first, under its old revision: after
 * that the old transaction can only fail, and is sent anew (SAF-04).
 */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "io/etcd/etcd_private.h"
#include "io/etcd/etcd_value.h"
#include "io/loop.h"
#include "proto/records.h"
#include "proto/seal.h"

#define RETRY_MS 100

/* A commit, or a barrier (commit_id NULL). */
struct etcd_entry {
    char *commit_id;
    guint64 epoch;
    guint64 serial;
    GError *wrong;   /* it does not follow what is stored: refused, and no part of the batch */
    GPtrArray *puts; /* of char *: key, value (NULL: delete), key, value… */
    size_t bytes;
    engine_commit_fn committed;
    engine_barrier_fn passed;
    void *data;
};

struct etcd_batch {
    GPtrArray *entries;
    char id[37];
    guint64 serial; /* of the last commit; 0: barriers only */
};

/* --- entries --- */

static void entry_free(void *data)
{
    struct etcd_entry *entry = data;
    g_free(entry->commit_id);
    g_clear_pointer(&entry->puts, g_ptr_array_unref);
    g_clear_error(&entry->wrong);
    g_free(entry);
}

static struct etcd_entry *entry_of(const struct etcd_engine *engine,
                                   const struct engine_commit *commit)
{
    struct etcd_entry *entry = g_new0(struct etcd_entry, 1);

    entry->commit_id = g_strdup(commit->commit_id);
    entry->epoch = commit->epoch;
    entry->serial = commit->serial;
    entry->puts = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < commit->changes->len; i++) {
        const struct change *change = commit->changes->pdata[i];
        char *key = g_strdup_printf("%so/%s/%s", engine->prefix, change->kind, change->key);
        char *value = change->op == CHANGE_PUT ? etcd_object_text(change->kind, change->key,
                                                                  commit->serial, change->object)
                                               : NULL;
        g_ptr_array_add(entry->puts, key);
        g_ptr_array_add(entry->puts, value);
        entry->bytes += strlen(key) + (value != NULL ? strlen(value) : 0);
    }
    return entry;
}

static void entry_answer(const struct etcd_entry *entry, enum engine_result result,
                         const GError *error)
{
    if (entry->commit_id != NULL)
        entry->committed(result, error, entry->data);
    else
        entry->passed(result == ENGINE_DONE, entry->data);
}

/* --- the head --- */

char *etcd_head_text(const struct etcd_head *head)
{
    json_autoptr value = json_make("{s:I, s:I, s:s}", "history", (json_int_t)head->history,
                                   "serial", (json_int_t)head->serial, "batch", head->batch);
    return seal_to_text(value);
}

bool etcd_head_parse(const GPtrArray *kvs, struct etcd_head *ret_head, GError **error)
{
    json_int_t history = 0, serial = 0;
    const char *batch = "";

    *ret_head = (struct etcd_head){.revision = 0};
    if (kvs->len == 0)
        return true;
    const struct etcd_kv *kv = kvs->pdata[0];
    json_autoptr value = seal_from_text(kv->value, strlen(kv->value), KIB(4), NULL);
    if (value == NULL ||
        json_unpack(value, "{s:I, s:I, s:s}", "history", &history, "serial", &serial, "batch",
                    &batch) != 0 ||
        history <= 0 || serial <= 0 || strlen(batch) >= sizeof ret_head->batch) {
        g_autofree char *key = etcd_words(kv->key), *words = etcd_words(kv->value);
        fettle_set_error(error, CORRUPT, "etcd: the value of %s cannot be read: %s", key, words);
        return false;
    }
    ret_head->revision = kv->mod_revision;
    ret_head->history = (guint64)history;
    ret_head->serial = (guint64)serial;
    g_strlcpy(ret_head->batch, batch, sizeof ret_head->batch);
    return true;
}

void etcd_remember_id(struct etcd_engine *engine, const char *id, guint64 serial)
{
    guint64 *known = g_hash_table_lookup(engine->ids, id);
    if (known != NULL) {
        *known = serial;
        return;
    }
    char *key = g_strdup(id);
    guint64 *value = g_new(guint64, 1);

    *value = serial;
    g_hash_table_insert(engine->ids, key, value);
    g_queue_push_tail(&engine->id_order, key);
    while (g_queue_get_length(&engine->id_order) > LIMIT_COMMIT_IDS)
        g_hash_table_remove(engine->ids, g_queue_pop_head(&engine->id_order));
}

/* --- a batch as a transaction --- */

/* A delete leaves nothing behind in the objects; who follows must hear of it from a later master.
 */
static void add_deletes(const struct etcd_engine *engine, const struct etcd_entry *entry,
                        json_t *ids)
{
    size_t skip = strlen(engine->prefix) + strlen("o/");
    for (guint n = 0; n < entry->puts->len; n += 2) {
        const char *key = entry->puts->pdata[n];
        if (entry->puts->pdata[n + 1] == NULL)
            json_array_append_new(ids, json_make("{s:s, s:I}", "deleted", key + skip, "serial",
                                                 (json_int_t)entry->serial));
    }
}

static json_t *commit_ids(const struct etcd_engine *engine, const struct etcd_batch *batch)
{
    json_t *ids = json_array();
    for (guint i = 0; i < batch->entries->len; i++) {
        const struct etcd_entry *entry = batch->entries->pdata[i];
        if (entry->commit_id == NULL || entry->wrong != NULL)
            continue;
        json_array_append_new(ids,
                              json_make("[s, I]", entry->commit_id, (json_int_t)entry->serial));
        add_deletes(engine, entry, ids);
    }
    return ids;
}

/* Later commits of one batch overwrite earlier ones, but etcd refuses a key twice in a
 * transaction. */
static void add_objects(const struct etcd_batch *batch, json_t *operations)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = batch->entries->len; i > 0; i--) {
        const struct etcd_entry *entry = batch->entries->pdata[i - 1];
        for (guint n = 0; entry->puts != NULL && n < entry->puts->len; n += 2) {
            char *key = entry->puts->pdata[n];
            const char *value = entry->puts->pdata[n + 1];
            if (g_hash_table_add(seen, key))
                json_array_append_new(operations,
                                      value != NULL ? etcd_put(key, value, 0) : etcd_delete(key));
        }
    }
}

static char *ids_key(const struct etcd_engine *engine, guint64 serial)
{
    return g_strdup_printf("%sc/%020" G_GUINT64_FORMAT, engine->prefix, serial);
}

static bool drops_carried(const struct etcd_engine *engine, const struct etcd_batch *batch)
{
    return engine->carried != 0 && batch->serial > engine->carried + LIMIT_COMMIT_IDS;
}

/* Ids are kept as far back as they are promised. */
static void drop_old_ids(const struct etcd_engine *engine, const struct etcd_batch *batch,
                         json_t *operations)
{
    if (batch->serial <= LIMIT_COMMIT_IDS)
        return;
    g_autofree char *from = ids_key(engine, 0);
    g_autofree char *end = ids_key(engine, batch->serial - LIMIT_COMMIT_IDS);
    json_array_append_new(operations, etcd_delete_range(from, end));
    if (drops_carried(engine, batch)) {
        g_autofree char *carried = etcd_engine_key(engine, "i/");
        json_array_append_new(operations, etcd_delete_prefix(carried));
    }
}

static json_t *guarded(const struct etcd_engine *engine)
{
    g_autofree char *key = etcd_engine_key(engine, "head");
    json_t *compares = etcd_engine_is_master(engine);
    json_array_append_new(compares, etcd_compare(key, ETCD_MOD_REVISION, engine->head.revision));
    return compares;
}

static json_t *batch_txn(const struct etcd_engine *engine, const struct etcd_batch *batch)
{
    struct etcd_head head = {.history = engine->head.history, .serial = batch->serial};
    json_t *operations = json_array();
    json_autoptr ids = commit_ids(engine, batch);
    g_autofree char *head_key = etcd_engine_key(engine, "head");
    g_autofree char *key = ids_key(engine, batch->serial);
    g_autofree char *ids_text = etcd_list_text(key + strlen(engine->prefix), ids);

    g_strlcpy(head.batch, batch->id, sizeof head.batch);
    g_autofree char *head_text = etcd_head_text(&head);
    add_objects(batch, operations);
    json_array_append_new(operations, etcd_put(head_key, head_text, 0));
    json_array_append_new(operations, etcd_put(key, ids_text, 0));
    drop_old_ids(engine, batch, operations);
    return etcd_txn(guarded(engine), operations, json_make("[o]", etcd_get(head_key)));
}

/* --- what became of it --- */

enum outcome {
    OUTCOME_DONE,
    OUTCOME_NOT_DONE,
    OUTCOME_OPEN,
    OUTCOME_LOST,
    OUTCOME_FULL, /* etcd says that it has no space, which it also says of what it has just done */
};

static enum outcome head_tells(struct etcd_engine *engine, const struct etcd_batch *batch,
                               const GPtrArray *kvs)
{
    g_autoptr(GError) error = NULL;
    struct etcd_head head;

    if (kvs == NULL || !etcd_head_parse(kvs, &head, &error)) {
        etcd_engine_lose(engine, "%s", error != NULL ? error->message : "etcd has no head");
        return OUTCOME_LOST;
    }
    if (strcmp(head.batch, batch->id) == 0) {
        engine->head = head;
        return OUTCOME_DONE;
    }
    if (*engine->fence != '\0' && strcmp(head.batch, engine->fence) == 0) {
        engine->head = head;
        engine->fence[0] = '\0';
    }
    if (head.revision == engine->head.revision)
        return OUTCOME_NOT_DONE;
    etcd_engine_lose(engine, "somebody else has written the configuration in etcd");
    return OUTCOME_LOST;
}

static enum outcome read_head(struct etcd_engine *engine, const struct etcd_batch *batch)
{
    g_autofree char *key = etcd_engine_key(engine, "head");
    g_autoptr(GError) error = NULL;
    json_autoptr answer = etcd_engine_call(engine, ETCD_RANGE, etcd_range(key), &error);

    if (answer == NULL)
        return OUTCOME_OPEN;
    g_autoptr(GPtrArray) kvs = etcd_kvs(answer, NULL, &error);
    return head_tells(engine, batch, kvs);
}

static enum outcome no_answer(struct etcd_engine *engine, const GError *error)
{
    if (fettle_error_is(error, STORAGE))
        return OUTCOME_FULL;
    if (!fettle_error_is(error, PROTOCOL))
        return OUTCOME_OPEN;
    etcd_engine_lose(engine, "%s", error->message);
    return OUTCOME_LOST;
}

/* Rewrites the head under its old revision: what was sent before cannot arrive any more. What it
 * writes stays the same until it is known what came of it: of several that are on their way any one
 * may be done. */
static enum outcome fence_out(struct etcd_engine *engine)
{
    g_autoptr(GError) error = NULL;
    struct etcd_head head = engine->head;
    g_autofree char *key = etcd_engine_key(engine, "head");
    g_autofree char *nonce = g_uuid_string_random();

    if (*engine->fence == '\0')
        g_strlcpy(engine->fence, nonce, sizeof engine->fence);
    g_strlcpy(head.batch, engine->fence, sizeof head.batch);
    g_autofree char *text = etcd_head_text(&head);
    json_t *then = json_make("[o]", etcd_put(key, text, 0));
    json_t *otherwise = json_make("[o]", etcd_get(key));
    json_autoptr answer =
        etcd_engine_call(engine, ETCD_TXN, etcd_txn(guarded(engine), then, otherwise), &error);
    if (answer == NULL && fettle_error_is(error, STORAGE))
        return OUTCOME_FULL;
    if (answer == NULL || !etcd_succeeded(answer))
        return OUTCOME_OPEN;
    engine->head = head;
    engine->head.revision = etcd_revision(answer);
    engine->fence[0] = '\0';
    return OUTCOME_DONE;
}

/* One sending. */
static enum outcome send_batch(struct etcd_engine *engine, const struct etcd_batch *batch)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = etcd_engine_call(engine, ETCD_TXN, batch_txn(engine, batch), &error);

    if (answer == NULL)
        return no_answer(engine, error);
    if (!etcd_succeeded(answer)) {
        g_autoptr(GPtrArray) kvs = etcd_txn_kvs(answer, 0, NULL);
        enum outcome outcome = head_tells(engine, batch, kvs);
        if (outcome == OUTCOME_NOT_DONE) {
            etcd_engine_lose(engine, "etcd says that another is master");
            return OUTCOME_LOST;
        }
        return outcome;
    }
    if (drops_carried(engine, batch))
        engine->carried = 0;
    engine->head.revision = etcd_revision(answer);
    engine->head.serial = batch->serial;
    g_strlcpy(engine->head.batch, batch->id, sizeof engine->head.batch);
    return OUTCOME_DONE;
}

/* What is not done is fenced out and sent again; neither can be done with a full etcd. */
static enum outcome push_again(struct etcd_engine *engine, const struct etcd_batch *batch)
{
    enum outcome outcome = fence_out(engine);
    return outcome == OUTCOME_DONE ? send_batch(engine, batch) : outcome;
}

/* Until it is known, or the lease is over, or etcd is full and it was not done. */
static enum outcome push_batch(struct etcd_engine *engine, const struct etcd_batch *batch)
{
    enum outcome outcome = send_batch(engine, batch);
    bool full = false;

    while (outcome == OUTCOME_OPEN || outcome == OUTCOME_NOT_DONE || outcome == OUTCOME_FULL) {
        full = full || outcome == OUTCOME_FULL;
        if (outcome == OUTCOME_NOT_DONE && full)
            etcd_engine_lose(engine, "etcd takes no changes: a member's file has reached its "
                                     "limit; see fettle cluster engine status");
        if (engine->closed || !etcd_engine_holds(engine))
            return OUTCOME_OPEN;
        if (outcome == OUTCOME_NOT_DONE)
            outcome = push_again(engine, batch);
        else
            outcome = outcome == OUTCOME_FULL || loop_sleep(RETRY_MS) ? read_head(engine, batch)
                                                                      : OUTCOME_OPEN;
    }
    return outcome;
}

static enum outcome read_master(struct etcd_engine *engine)
{
    g_autofree char *key = etcd_engine_key(engine, "master");
    json_autoptr answer = etcd_engine_call(engine, ETCD_RANGE, etcd_range(key), NULL);
    g_autoptr(GPtrArray) kvs = answer != NULL ? etcd_kvs(answer, NULL, NULL) : NULL;

    if (kvs == NULL)
        return OUTCOME_OPEN;
    const struct etcd_kv *kv = kvs->len > 0 ? kvs->pdata[0] : NULL;
    if (kv != NULL && kv->create_revision == engine->created && kv->mod_revision == engine->taken)
        return OUTCOME_DONE;
    etcd_engine_lose(engine, "etcd says that another is master");
    return OUTCOME_LOST;
}

static enum outcome push_barriers(struct etcd_engine *engine)
{
    enum outcome outcome = read_master(engine);

    while (outcome == OUTCOME_OPEN && !engine->closed && etcd_engine_holds(engine) &&
           loop_sleep(RETRY_MS))
        outcome = read_master(engine);
    return outcome;
}

/* --- the worker --- */

static void batch_free(struct etcd_batch *batch)
{
    g_ptr_array_unref(batch->entries);
    g_free(batch);
}

/* etcd would refuse all that goes along with it. */
static bool check_size(struct etcd_entry *entry)
{
    guint changes = entry->puts->len / 2;
    if (changes <= LIMIT_COMMIT_CHANGES)
        return true;
    fettle_set_error(&entry->wrong, LIMIT, "a commit of %u changes; a transaction of etcd takes %d",
                     changes, LIMIT_COMMIT_CHANGES);
    return false;
}

/* Whether it goes along; a commit that does not follow those before it stays out. */
static void check_entry(const struct etcd_engine *engine, struct etcd_batch *batch,
                        struct etcd_entry *entry)
{
    guint64 last = batch->serial != 0 ? batch->serial : engine->head.serial;
    if (entry->commit_id == NULL)
        return;
    if (engine_commit_follows(entry->epoch, entry->serial, etcd_engine_epoch(engine), last,
                              &entry->wrong) &&
        check_size(entry))
        batch->serial = entry->serial;
    else
        g_ptr_array_set_size(entry->puts, 0);
}

static struct etcd_batch *take_batch(struct etcd_engine *engine)
{
    struct etcd_batch *batch = g_new0(struct etcd_batch, 1);
    size_t bytes = 0;
    guint operations = 0;
    g_autofree char *id = g_uuid_string_random();

    g_strlcpy(batch->id, id, sizeof batch->id);
    batch->entries = g_ptr_array_new_with_free_func(entry_free);
    while (!g_queue_is_empty(&engine->queue) && batch->entries->len < LIMIT_COMMITS_PER_BATCH) {
        struct etcd_entry *entry = g_queue_peek_head(&engine->queue);
        guint more = entry->puts != NULL ? entry->puts->len / 2 : 0;
        if (operations > 0 && (operations + more > LIMIT_ETCD_OPERATIONS ||
                               bytes + entry->bytes > LIMIT_ETCD_BATCH_BYTES))
            break;
        operations += more;
        bytes += entry->bytes;
        check_entry(engine, batch, entry);
        g_ptr_array_add(batch->entries, g_queue_pop_head(&engine->queue));
    }
    return batch;
}

static void run_worker(struct etcd_engine *engine);

struct told {
    struct etcd_engine *engine;
    struct etcd_batch *batch;
    enum outcome outcome;
};

static void answer_batch(struct etcd_engine *engine, const struct etcd_batch *batch,
                         enum outcome outcome)
{
    g_autoptr(GError) error = NULL;
    enum engine_result result = ENGINE_DONE;

    if (outcome != OUTCOME_DONE) {
        result = outcome == OUTCOME_LOST ? ENGINE_REFUSED : ENGINE_UNKNOWN;
        fettle_set_error(&error, NOT_MASTER, "%s",
                         engine->lost_why != NULL ? engine->lost_why
                                                  : "etcd did not answer while the lease held");
    }
    for (guint i = 0; i < batch->entries->len && !engine->closed; i++) {
        const struct etcd_entry *entry = batch->entries->pdata[i];
        if (entry->wrong != NULL) {
            entry_answer(entry, ENGINE_REFUSED, entry->wrong);
            continue;
        }
        if (result == ENGINE_DONE && entry->commit_id != NULL)
            etcd_remember_id(engine, entry->commit_id, entry->serial);
        entry_answer(entry, result, error);
    }
}

/* From the loop, as the interface promises. */
static void tell_cb(void *data)
{
    g_autofree struct told *told = data;
    struct etcd_engine *engine = told->engine;

    answer_batch(engine, told->batch, told->outcome);
    engine->batch = NULL;
    batch_free(told->batch);
    if (told->outcome != OUTCOME_DONE)
        etcd_engine_lose(engine, "etcd did not answer while the lease held");
    if (engine->lost_why != NULL)
        etcd_queue_fail(engine);
    run_worker(engine);
    etcd_engine_unref(engine);
}

static void worker_task(void *data)
{
    struct told *told = data;
    struct etcd_engine *engine = told->engine;

    told->outcome =
        told->batch->serial != 0 ? push_batch(engine, told->batch) : push_barriers(engine);
    loop_post(tell_cb, told);
}

static void run_worker(struct etcd_engine *engine)
{
    if (engine->batch != NULL || engine->closed || g_queue_is_empty(&engine->queue))
        return;
    struct told *told = g_new0(struct told, 1);
    engine->batch = take_batch(engine);
    etcd_engine_ref(engine);
    *told = (struct told){engine, engine->batch, OUTCOME_OPEN};
    task_spawn(engine->tasks, worker_task, told);
}

/* --- the interface --- */

static void later_cb(void *data)
{
    struct etcd_engine *engine = data;

    if (engine->lost_why != NULL)
        etcd_queue_fail(engine);
    run_worker(engine);
    etcd_engine_unref(engine);
}

/* At the next turn, so that all that comes in this one goes together. */
static void enqueue(struct etcd_engine *engine, struct etcd_entry *entry)
{
    if (g_queue_is_empty(&engine->queue) && engine->batch == NULL) {
        etcd_engine_ref(engine);
        loop_post(later_cb, engine);
    }
    g_queue_push_tail(&engine->queue, entry);
}

void etcd_queue_commit(struct engine *base, const struct engine_commit *commit,
                       engine_commit_fn done, void *data)
{
    struct etcd_engine *engine = (struct etcd_engine *)base;
    struct etcd_entry *entry = entry_of(engine, commit);

    entry->committed = done;
    entry->data = data;
    enqueue(engine, entry);
}

void etcd_queue_barrier(struct engine *base, engine_barrier_fn done, void *data)
{
    struct etcd_entry *entry = g_new0(struct etcd_entry, 1);

    entry->passed = done;
    entry->data = data;
    enqueue((struct etcd_engine *)base, entry);
}

void etcd_queue_fail(struct etcd_engine *engine)
{
    g_autoptr(GError) error = NULL;
    struct etcd_entry *entry;

    fettle_set_error(&error, NOT_MASTER, "%s", engine->lost_why);
    while (!engine->closed && engine->batch == NULL &&
           (entry = g_queue_pop_head(&engine->queue)) != NULL) {
        entry_answer(entry, ENGINE_REFUSED, error);
        entry_free(entry);
    }
}

void etcd_queue_drop(struct etcd_engine *engine)
{
    struct etcd_entry *entry;

    while ((entry = g_queue_pop_head(&engine->queue)) != NULL)
        entry_free(entry);
}
