/* See sqlite_copy.h. */
#include "io/sqlite/sqlite_copy.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/task.h"
#include "io/crash.h"
#include "io/loop.h"
#include "io/sqlite/sqlite_backup.h"
#include "io/sqlite/sqlite_private.h"

struct sqlite_copy {
    struct copy base;
    struct sqlite_store *store;
    char *damage;        /* why what was there when it was opened is put away; NULL: nothing was */
    GThreadPool *worker; /* one thread; struct work in order */
};

/* --- work that waits for the disk --- */

typedef bool (*work_fn)(struct sqlite_copy *copy, void *args, GError **error);

struct work {
    struct promise promise;
    work_fn fn;
    void *args;
    bool ok;
    GError *error;
};

static void work_done(void *data)
{
    struct work *work = data;
    promise_complete(&work->promise);
}

static void work_run(void *data, void *user)
{
    struct work *work = data;
    work->ok = work->fn(user, work->args, &work->error);
    loop_post(work_done, work);
}

/* In a task. The thread goes on whatever becomes of the task, so it is waited for to the end: a
 * transaction of the disk, nothing that another process could hold up. */
static bool run_work(struct sqlite_copy *copy, work_fn fn, void *args, GError **error)
{
    struct work work = {.fn = fn, .args = args};

    if (task_self() == NULL || task_killed()) {
        work.ok = fn(copy, args, &work.error);
    } else {
        g_thread_pool_push(copy->worker, &work, NULL);
        if (!promise_wait(&work.promise))
            while (!work.promise.done)
                g_main_context_iteration(NULL, TRUE);
    }
    if (work.error != NULL)
        g_propagate_error(error, work.error);
    return work.ok;
}

/* --- transactions --- */

/* Begins, runs `body`, finishes; nothing is left of a failure. */
static bool transaction(struct sqlite_copy *copy, work_fn body, void *args, GError **error)
{
    bool unknown;

    if (sqlite_store_begin(copy->store, error) && body(copy, args, error) &&
        sqlite_store_finish(copy->store, &unknown, error))
        return true;
    sqlite_store_rollback(copy->store);
    return false;
}

static bool log_batch(struct sqlite_copy *copy, const struct copy_batch *batch, GError **error)
{
    struct sqlite_store *store = copy->store;
    g_autofree char *id = g_strdup_printf("copy-%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT,
                                          batch->history, batch->serial);
    g_autoptr(GPtrArray) rows = store_rows_from_changes(batch->changes);

    if (!store_log_commit(store, id, batch->serial, rows->len, error))
        return false;
    for (guint i = 0; i < rows->len; i++) {
        const struct change *change = batch->changes->pdata[i];
        if (!store_put_row(store, rows->pdata[i], change->version, error) ||
            !store_log_row(store, id, batch->epoch, batch->serial, i, rows->pdata[i], error))
            return false;
    }
    store->pending.serial = batch->serial;
    store->pending.master.epoch = batch->epoch;
    return store_take_ids(store, batch->ids, error);
}

static bool apply_body(struct sqlite_copy *copy, void *args, GError **error)
{
    const struct copy_batch *batch = args;
    const struct store_meta *meta = &copy->store->meta;

    if (batch->history == meta->history && batch->serial > meta->serial)
        return log_batch(copy, batch, error);
    if (batch->history == meta->history && batch->serial == meta->serial &&
        batch->changes->len == 0) {
        copy->store->pending.master.epoch = batch->epoch;
        return true;
    }
    fettle_set_error(error, INTERNAL,
                     "changes up to history %" G_GUINT64_FORMAT " serial %" G_GUINT64_FORMAT
                     " do not follow history %" G_GUINT64_FORMAT " serial %" G_GUINT64_FORMAT,
                     batch->history, batch->serial, meta->history, meta->serial);
    return false;
}

static bool apply_work(struct sqlite_copy *copy, void *args, GError **error)
{
    return transaction(copy, apply_body, args, error);
}

/* --- refill: in memory until the end, as one that comes to none would keep the disk full --- */

/* There may be nothing. */
static void drop_incoming(struct sqlite_copy *copy)
{
    sqlite3_exec(copy->store->db, "DETACH incoming", NULL, NULL, NULL);
}

static bool begin_work(struct sqlite_copy *copy, void *args, GError **error)
{
    crash_point("sqlite: refill");
    drop_incoming(copy);
    return store_run(copy->store,
                     "ATTACH ':memory:' AS incoming; CREATE TABLE incoming." STORE_REFILL_TABLE,
                     error);
}

static bool refill_object(sqlite3_stmt *put, sqlite3_stmt *delete, const struct change *change)
{
    bool is_put = change->op == CHANGE_PUT;
    g_autofree char *json = is_put ? json_to_text(change->object) : NULL;
    sqlite3_stmt *statement = is_put ? put : delete;

    sqlite3_reset(statement);
    sqlite3_bind_text(statement, 1, change->kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, change->key, -1, SQLITE_STATIC);
    if (is_put) {
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)change->version);
        sqlite3_bind_text(statement, 4, json, -1, SQLITE_STATIC);
    }
    int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result == SQLITE_DONE;
}

static bool refill_objects(struct sqlite_copy *copy, const GPtrArray *changes, GError **error)
{
    sqlite3 *db = copy->store->db;
    sqlite3_stmt *put = NULL, *delete = NULL;
    bool ok = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO incoming.refill VALUES(?1,?2,?3,?4)",
                                 -1, &put, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(db, "DELETE FROM incoming.refill WHERE kind=?1 AND key=?2", -1,
                                 &delete, NULL) == SQLITE_OK;

    for (guint i = 0; ok && i < changes->len; i++)
        ok = refill_object(put, delete, changes->pdata[i]);
    if (!ok)
        store_error(copy->store, "refill", error);
    sqlite3_finalize(put);
    sqlite3_finalize(delete);
    return ok;
}

static bool piece_work(struct sqlite_copy *copy, void *args, GError **error)
{
    bool ok = store_run(copy->store, "BEGIN IMMEDIATE", error) && refill_objects(copy, args, error);

    crash_point("sqlite: refill");
    ok = ok && store_run(copy->store, "COMMIT", error);
    if (!ok)
        sqlite_store_rollback(copy->store);
    return ok;
}

static bool take_refilled(struct sqlite_copy *copy, GError **error)
{
    struct sqlite_store *store = copy->store;
    sqlite3_stmt *all = NULL;
    bool ok = true;
    int result;

    if (sqlite3_prepare_v2(store->db, "SELECT kind, key, version, json FROM incoming.refill", -1,
                           &all, NULL) != SQLITE_OK)
        return store_error(store, "refill", error);
    while (ok && (result = sqlite3_step(all)) == SQLITE_ROW) {
        struct store_row row = {CHANGE_PUT, (char *)sqlite3_column_text(all, 0),
                                (char *)sqlite3_column_text(all, 1),
                                (char *)sqlite3_column_text(all, 3)};
        ok = store_put_row(store, &row, (guint64)sqlite3_column_int64(all, 2), error);
    }
    if (ok && result != SQLITE_DONE)
        ok = store_error(store, "refill", error);
    sqlite3_finalize(all);
    return ok;
}

static bool end_body(struct sqlite_copy *copy, void *args, GError **error)
{
    const struct copy_batch *end = args;
    struct sqlite_store *store = copy->store;

    store->pending = (struct store_meta){.history = end->history,
                                         .serial = end->serial,
                                         .log_from = end->serial,
                                         .role = COPY_FOLLOWS,
                                         .master.epoch = end->epoch};
    store->pending_log_rows = store->pending_id_rows = 0;
    store_scrub_end(store);
    return store_run(store,
                     "DELETE FROM objects; DELETE FROM changes; DELETE FROM commits; "
                     "DELETE FROM ids; DROP TABLE IF EXISTS main.refill",
                     error) &&
           take_refilled(copy, error) && store_take_ids(store, end->ids, error);
}

static bool end_work(struct sqlite_copy *copy, void *args, GError **error)
{
    bool ok = transaction(copy, end_body, args, error);

    drop_incoming(copy);
    store_empty_log(copy->store);
    return ok;
}

/* --- role --- */

struct role_args {
    enum copy_role role;
    const struct copy_batch *last;
};

static bool role_body(struct sqlite_copy *copy, void *args, GError **error)
{
    const struct role_args *wanted = args;
    struct sqlite_store *store = copy->store;

    if (wanted->last != NULL && !apply_body(copy, (void *)wanted->last, error))
        return false;
    store->pending.role = wanted->role;
    return wanted->role != COPY_ENGINE || store_begin_log(store, error);
}

static bool role_work(struct sqlite_copy *copy, void *args, GError **error)
{
    return transaction(copy, role_body, args, error);
}

/* --- files --- */

/* Reads its meta rows, and all else with suspicion. */
static struct sqlite_store *open_whole(const char *path, GError **error)
{
    struct sqlite_store *store = sqlite_store_open(path, error);

    if (store == NULL || sqlite_store_load(store, NULL, NULL, error))
        return store;
    sqlite_store_close(store);
    return NULL;
}

/* Under another name, beside it. The file itself last: while it is there this is done again. */
static bool put_away(const char *path, const char *suffix, GError **error)
{
    static const char *const endings[] = {"-shm", "-wal", ""};

    for (guint i = 0; i < G_N_ELEMENTS(endings); i++) {
        g_autofree char *from = g_strconcat(path, endings[i], NULL);
        g_autofree char *to = g_strconcat(path, suffix, endings[i], NULL);
        crash_point("sqlite: put away");
        if (g_rename(from, to) != 0 && errno != ENOENT) {
            fettle_set_error(error, STORAGE, "cannot rename %s to %s: %s", from, to,
                             g_strerror(errno));
            return false;
        }
    }
    return true;
}

static struct sqlite_store *make_empty(const char *path, GError **error)
{
    g_autoptr(GPtrArray) nothing = g_ptr_array_new();

    if (!sqlite_store_create(path, COPY_FOLLOWS, 0, nothing, error))
        return NULL;
    return open_whole(path, error);
}

/* --- the interface --- */

static void copy_position(struct copy *base, struct copy_position *ret)
{
    const struct store_meta *meta = &((struct sqlite_copy *)base)->store->meta;
    *ret = (struct copy_position){.role = (enum copy_role)meta->role,
                                  .history = meta->history,
                                  .epoch = meta->master.epoch,
                                  .serial = meta->serial,
                                  .digest = meta->versions};
}

struct load_args {
    void (*each)(const char *kind, const char *key, guint64 version, json_t *object, void *data);
    void *data;
};

static bool load_work(struct sqlite_copy *copy, void *args, GError **error)
{
    const struct load_args *load = args;
    return sqlite_store_load(copy->store, load->each, load->data, error);
}

static bool copy_load(struct copy *base,
                      void (*each)(const char *kind, const char *key, guint64 version,
                                   json_t *object, void *data),
                      void *data, GError **error)
{
    struct load_args args = {each, data};
    return run_work((struct sqlite_copy *)base, load_work, &args, error);
}

static bool copy_apply(struct copy *base, const struct copy_batch *batch, GError **error)
{
    return run_work((struct sqlite_copy *)base, apply_work, (void *)batch, error);
}

static bool copy_refill_begin(struct copy *base, GError **error)
{
    return run_work((struct sqlite_copy *)base, begin_work, NULL, error);
}

static bool copy_refill_piece(struct copy *base, const GPtrArray *changes, GError **error)
{
    return run_work((struct sqlite_copy *)base, piece_work, (void *)changes, error);
}

static bool copy_refill_end(struct copy *base, const struct copy_batch *end, GError **error)
{
    return run_work((struct sqlite_copy *)base, end_work, (void *)end, error);
}

static bool copy_set_role(struct copy *base, enum copy_role role, const struct copy_batch *last,
                          GError **error)
{
    struct role_args args = {role, last};
    return run_work((struct sqlite_copy *)base, role_work, &args, error);
}

static bool scrub_work(struct sqlite_copy *copy, void *args, GError **error)
{
    bool end;
    return sqlite_store_scrub(copy->store, &end, error);
}

static bool copy_scrub(struct copy *base, GError **error)
{
    return run_work((struct sqlite_copy *)base, scrub_work, NULL, error);
}

/* The worker has nothing to do, and once in the life of a copy the loop may stand still for it.
 * What cannot be made anew leaves this process the old one, under its new name. */
static bool copy_renew(struct copy *base, GError **error)
{
    struct sqlite_copy *copy = (struct sqlite_copy *)base;
    g_autofree char *path = g_strdup(copy->store->path);
    struct sqlite_store *empty = put_away(path, ".damaged", error) ? make_empty(path, error) : NULL;

    if (empty == NULL)
        return false;
    copy->store->whole = false;
    sqlite_store_close(copy->store);
    copy->store = empty;
    return true;
}

static void copy_close(struct copy *base)
{
    struct sqlite_copy *copy = (struct sqlite_copy *)base;

    g_thread_pool_free(copy->worker, FALSE, TRUE);
    sqlite_store_close(copy->store);
    g_free(copy->damage);
    g_free(copy);
}

static const struct copy_ops ops = {
    .position = copy_position,
    .load = copy_load,
    .apply = copy_apply,
    .refill_begin = copy_refill_begin,
    .refill_piece = copy_refill_piece,
    .refill_end = copy_refill_end,
    .set_role = copy_set_role,
    .scrub = copy_scrub,
    .renew = copy_renew,
    .close = copy_close,
};

/* --- opening --- */

bool sqlite_copy_role(const char *path, enum copy_role *ret_role, GError **error)
{
    g_autoptr(GError) reason = NULL;

    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return false;
    struct sqlite_store *store = sqlite_store_open(path, &reason);
    bool ok = store != NULL && store_load_meta(store, &reason);
    if (ok)
        *ret_role = (enum copy_role)store->meta.role;
    else
        g_propagate_error(error, g_steal_pointer(&reason));
    sqlite_store_close(store);
    return ok;
}

bool sqlite_copy_put_away(const char *path, guint64 epoch, GError **error)
{
    g_autofree char *suffix = g_strdup_printf(".epoch-%" G_GUINT64_FORMAT, epoch);
    return put_away(path, suffix, error);
}

bool sqlite_copy_step_down(const char *path, guint64 epoch, GError **error)
{
    g_autofree char *aside = g_strdup_printf("%s.epoch-%" G_GUINT64_FORMAT, path, epoch);
    struct store_summary summary;
    bool unknown;

    crash_point("sqlite: step down");
    g_unlink(aside); /* of a try that was not finished: what it was made of is still an engine */
    if (!sqlite_store_copy(path, aside, &summary, error))
        return false;
    struct sqlite_store *store = open_whole(path, error);
    bool ok = store != NULL && sqlite_store_begin(store, error);
    if (ok) {
        sqlite_store_leave(store);
        ok = sqlite_store_finish(store, &unknown, error);
    }
    sqlite_store_close(store);
    return ok;
}

static bool is_copy(const struct sqlite_store *store, GError **error)
{
    if (store->meta.role != COPY_ENGINE)
        return true;
    fettle_set_error(error, WRONG_STATE, "%s is the engine of a master, not a copy", store->path);
    return false;
}

struct copy *sqlite_copy_open(const char *path, GError **error)
{
    g_autoptr(GError) reason = NULL;
    struct sqlite_store *store = NULL;
    bool there = g_file_test(path, G_FILE_TEST_EXISTS);

    if (there)
        store = open_whole(path, &reason);
    if (!there ||
        (store == NULL && fettle_error_is(reason, CORRUPT) && put_away(path, ".damaged", error)))
        store = make_empty(path, error);
    else if (store == NULL && reason != NULL && (error == NULL || *error == NULL))
        g_propagate_error(error, g_steal_pointer(&reason));
    if (store == NULL || !is_copy(store, error)) {
        sqlite_store_close(store);
        return NULL;
    }
    struct sqlite_copy *copy = g_new0(struct sqlite_copy, 1);
    copy->base.ops = &ops;
    copy->store = store;
    copy->damage = reason != NULL ? g_strdup(reason->message) : NULL;
    copy->worker = g_thread_pool_new(work_run, copy, 1, TRUE, NULL);
    return &copy->base;
}

const char *sqlite_copy_damage(const struct copy *base)
{
    return ((const struct sqlite_copy *)base)->damage;
}
