/* See sqlite_store.h. This file: transactions, the log of changes, mastership. */
#include "io/crash.h"
#include "io/sqlite/sqlite_private.h"
#include "proto/change.h"

#include <string.h>
#include <unistd.h>

/* --- rows --- */

void store_row_free(struct store_row *row)
{
    g_free(row->kind);
    g_free(row->key);
    g_free(row->json);
    g_free(row);
}

GPtrArray *store_rows_from_changes(const GPtrArray *changes)
{
    GPtrArray *rows = g_ptr_array_new_full(changes->len, (GDestroyNotify)store_row_free);

    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        struct store_row *row = g_new0(struct store_row, 1);
        row->op = change->op;
        row->kind = g_strdup(change->kind);
        row->key = g_strdup(change->key);
        row->json = change->op == CHANGE_PUT ? json_to_text(change->object) : NULL;
        g_ptr_array_add(rows, row);
    }
    return rows;
}

/* --- statements --- */

/* A statement ready for new values; `types` says what follows: t = const char * (NULL: null), i =
 * guint64. Texts are borrowed until it is reset, and none runs without new values. */
static sqlite3_stmt *bound(struct sqlite_store *store, enum store_statement which,
                           const char *types, va_list values)
{
    sqlite3_stmt *statement = store->statements[which];

    sqlite3_reset(statement);
    for (int i = 1; types[i - 1] != '\0'; i++)
        if (types[i - 1] == 't')
            sqlite3_bind_text(statement, i, va_arg(values, const char *), -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(statement, i, (sqlite3_int64)va_arg(values, guint64));
    return statement;
}

static bool run_bound(struct sqlite_store *store, GError **error, enum store_statement which,
                      const char *types, ...)
{
    va_list values;

    va_start(values, types);
    sqlite3_stmt *statement = bound(store, which, types, values);
    va_end(values);
    int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result == SQLITE_DONE || result == SQLITE_ROW || store_error(store, "write", error);
}

/* First column of the first row; false if there is none. */
static bool ask_number(struct sqlite_store *store, guint64 *ret_number, enum store_statement which,
                       const char *types, ...)
{
    va_list values;

    va_start(values, types);
    sqlite3_stmt *statement = bound(store, which, types, values);
    va_end(values);
    bool found = sqlite3_step(statement) == SQLITE_ROW;
    if (found)
        *ret_number = (guint64)sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return found;
}

/* --- meta --- */

static char *meta_number(guint64 number)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT, number);
}

static guint64 meta_sum(const struct store_meta *meta, bool old)
{
    guint64 sum = STORE_SUM_START;

    sum = store_sum_number(sum, meta->history);
    sum = store_sum_number(sum, meta->serial);
    sum = store_sum_number(sum, meta->digest);
    sum = store_sum_number(sum, meta->log_from);
    if (!old)
        sum = store_sum_number(store_sum_number(sum, meta->versions), meta->role);
    sum = store_sum_number(sum, meta->master.epoch);
    sum = store_sum_text(sum, meta->master.node);
    sum = store_sum_text(sum, meta->master.boot_id);
    return store_sum_text(sum, meta->master.journal_id);
}

guint64 store_meta_sum(const struct store_meta *meta)
{
    return meta_sum(meta, false);
}

guint64 store_meta_sum_old(const struct store_meta *meta)
{
    return meta_sum(meta, true);
}

#define META_ROWS 11

struct meta_row {
    const char *key;
    guint64 number;
    const char *text;
};

static void meta_rows(const struct store_meta *meta, struct meta_row *ret_rows)
{
    const struct meta_row rows[META_ROWS] = {
        {"history", meta->history, NULL},      {"serial", meta->serial, NULL},
        {"digest", meta->digest, NULL},        {"log_from", meta->log_from, NULL},
        {"epoch", meta->master.epoch, NULL},   {"node", 0, meta->master.node},
        {"boot_id", 0, meta->master.boot_id},  {"journal_id", 0, meta->master.journal_id},
        {"versions", meta->versions, NULL},    {"role", meta->role, NULL},
        {"check", store_meta_sum(meta), NULL},
    };
    memcpy(ret_rows, rows, sizeof rows);
}

/* What differs from what is stored: most of it is the same in all commits of a mastership. A store
 * that has never been stored to, or is of the format before, gets every row. */
static bool write_meta(struct sqlite_store *store, const struct store_meta *meta, GError **error)
{
    struct meta_row old[META_ROWS], new[META_ROWS];
    bool all = !store->whole || store->old_format;

    meta_rows(&store->meta, old);
    meta_rows(meta, new);
    for (size_t i = 0; i < META_ROWS; i++) {
        if (!all && new[i].number == old[i].number && g_strcmp0(new[i].text, old[i].text) == 0)
            continue;
        g_autofree char *number = meta_number(new[i].number);
        if (!run_bound(store, error, STATEMENT_META_SET, "tt", new[i].key,
                       new[i].text != NULL ? new[i].text : number))
            return false;
    }
    return true;
}

/* --- transactions --- */

bool sqlite_store_begin(struct sqlite_store *store, GError **error)
{
    store->pending = store->meta;
    store->pending_log_rows = store->log_rows;
    store->pending_id_rows = store->id_rows;
    store->pending_seen = store->seen;
    crash_point("sqlite: begin");
    return store_run(store, "BEGIN IMMEDIATE", error);
}

void sqlite_store_rollback(struct sqlite_store *store)
{
    if (!sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}

/* Takes what is there out of the digests. */
static void drop_old(struct sqlite_store *store, const struct store_row *row)
{
    sqlite3_stmt *old = store->statements[STATEMENT_OBJECT_OLD];

    sqlite3_reset(old);
    sqlite3_bind_text(old, 1, row->kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(old, 2, row->key, -1, SQLITE_STATIC);
    if (sqlite3_step(old) == SQLITE_ROW) {
        guint64 sum = (guint64)sqlite3_column_int64(old, 0);
        guint64 version = (guint64)sqlite3_column_int64(old, 1);
        store->pending.digest ^= sum;
        store->pending.versions ^= digest_object(row->kind, row->key, version);
        store_scrub_note(store, row->kind, row->key, sum, version);
    }
    sqlite3_reset(old);
}

bool store_put_row(struct sqlite_store *store, const struct store_row *row, guint64 version,
                   GError **error)
{
    drop_old(store, row);
    if (row->op != CHANGE_PUT)
        return run_bound(store, error, STATEMENT_OBJECT_DELETE, "tt", row->kind, row->key);
    guint64 sum = store_sum_object(row->kind, row->key, version, row->json);
    store->pending.digest ^= sum;
    store->pending.versions ^= digest_object(row->kind, row->key, version);
    store_scrub_note(store, row->kind, row->key, sum, version);
    return run_bound(store, error, STATEMENT_OBJECT_PUT, "ttiti", row->kind, row->key, version,
                     row->json, sum);
}

bool store_log_row(struct sqlite_store *store, const char *commit_id, guint64 epoch, guint64 serial,
                   guint place, const struct store_row *row, GError **error)
{
    guint64 line = store_sum_change(serial, place, epoch, commit_id, row);

    store->pending_log_rows++;
    return run_bound(store, error, STATEMENT_CHANGE_ADD, "iiitttiti", serial, (guint64)place, epoch,
                     commit_id, row->kind, row->key, (guint64)row->op, row->json, line);
}

bool store_log_commit(struct sqlite_store *store, const char *commit_id, guint64 serial,
                      guint changes, GError **error)
{
    return run_bound(store, error, STATEMENT_COMMIT_ADD, "tiii", commit_id, serial,
                     (guint64)changes, store_sum_commit(commit_id, serial, changes));
}

bool store_put_id(struct sqlite_store *store, const char *commit_id, guint64 serial, GError **error)
{
    store->pending_id_rows++;
    return run_bound(store, error, STATEMENT_ID_PUT, "iti", serial, commit_id,
                     store_sum_commit(commit_id, serial, 0));
}

/* By their number, as serials leap; some at a time. */
bool store_trim_ids(struct sqlite_store *store, GError **error)
{
    guint64 upto = 0;
    if (store->pending_id_rows <= LIMIT_COMMIT_IDS + LIMIT_IDS_PIECE)
        return true;
    store->pending_id_rows = LIMIT_COMMIT_IDS;
    return !ask_number(store, &upto, STATEMENT_IDS_SURPLUS, "i", (guint64)LIMIT_COMMIT_IDS) ||
           run_bound(store, error, STATEMENT_IDS_TRIM, "i", upto);
}

bool store_begin_log(struct sqlite_store *store, GError **error)
{
    store->pending.log_from = store->pending.serial;
    store->pending_log_rows = 0;
    return store_keep_ids(store, store->pending.serial, error) &&
           store_run(store, "DELETE FROM changes; DELETE FROM commits", error);
}

bool sqlite_store_add(struct sqlite_store *store, const char *commit_id, guint64 epoch,
                      guint64 serial, const GPtrArray *rows, bool *ret_refused, GError **error)
{
    *ret_refused = true;
    if (!engine_commit_follows(epoch, serial, store->pending.master.epoch, store->pending.serial,
                               error))
        return false;
    *ret_refused = false;
    if (!store_log_commit(store, commit_id, serial, rows->len, error))
        return false;
    for (guint i = 0; i < rows->len; i++)
        if (!store_put_row(store, rows->pdata[i], serial, error) ||
            !store_log_row(store, commit_id, epoch, serial, i, rows->pdata[i], error))
            return false;
    store->pending.serial = serial;
    return true;
}

/* Cuts the change log at a whole serial, some rows at a time so that it is not done in every
 * commit. */
static bool trim_log(struct sqlite_store *store, GError **error)
{
    guint64 upto = 0;

    if (store->pending_log_rows <= LIMIT_CHANGE_LOG + LIMIT_CHANGE_LOG / 16)
        return true;
    guint64 surplus = store->pending_log_rows - LIMIT_CHANGE_LOG;
    if (!ask_number(store, &upto, STATEMENT_LOG_OLDEST, "i", surplus - 1))
        return true;
    if (!run_bound(store, error, STATEMENT_LOG_TRIM, "i", upto))
        return false;
    store->pending_log_rows -= (guint64)sqlite3_changes(store->db);
    store->pending.log_from = upto;
    return store_keep_ids(store, upto, error) &&
           run_bound(store, error, STATEMENT_COMMITS_TRIM, "i", upto);
}

/* Notes how far the store has come beside it, without syncing: what is noted was answered, so a
 * store that is behind its note has lost something (its write-ahead log, most likely). */
static void note_progress(const struct sqlite_store *store)
{
    g_autofree char *note = store_note_format(&store->meta);

    if (store->lock_fd >= 0)
        (void)!pwrite(store->lock_fd, note, strlen(note), 0);
}

bool sqlite_store_finish(struct sqlite_store *store, bool *ret_unknown, GError **error)
{
    *ret_unknown = false;
    if (!trim_log(store, error) || !write_meta(store, &store->pending, error) ||
        (store->old_format &&
         !store_run(store, "PRAGMA user_version=" G_STRINGIFY(STORE_FORMAT), error)))
        return false;
    crash_point("sqlite: commit");
    if (!store_run(store, "COMMIT", error)) {
        /* Out of space while writing leaves no commit behind; a failed sync may. */
        *ret_unknown = (sqlite3_errcode(store->db) & 0xff) != SQLITE_FULL;
        return false;
    }
    crash_point("sqlite: committed");
    store->meta = store->pending;
    store->old_format = false;
    store->whole = true;
    store->log_rows = store->pending_log_rows;
    store->id_rows = store->pending_id_rows;
    store->seen = store->pending_seen;
    note_progress(store);
    return true;
}

void sqlite_store_leave(struct sqlite_store *store)
{
    store->pending.role = COPY_FOLLOWS;
}

bool sqlite_store_is_copy(const struct sqlite_store *store)
{
    return store->meta.role != COPY_ENGINE;
}

/* --- the write-ahead log --- */

static int note_log_pages(void *data, sqlite3 *db, const char *name, int pages)
{
    struct sqlite_store *store = data;
    store->log_pages = (guint)pages;
    return SQLITE_OK;
}

void sqlite_store_defer_checkpoints(struct sqlite_store *store)
{
    sqlite3_wal_hook(store->db, note_log_pages, store);
}

guint sqlite_store_log_pages(const struct sqlite_store *store)
{
    return store->log_pages;
}

void sqlite_store_checkpoint(struct sqlite_store *store)
{
    int pages = 0, moved = 0;
    crash_point("sqlite: checkpoint");
    if (sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved) ==
        SQLITE_OK)
        store->log_pages = pages > moved ? (guint)(pages - moved) : 0;
}

/* --- mastership --- */

const struct mastership *sqlite_store_master(const struct sqlite_store *store)
{
    return &store->meta.master;
}

/* The log begins behind it. */
static bool leap_to(struct sqlite_store *store, guint64 serial, GError **error)
{
    if (serial <= store->pending.serial)
        return true;
    store->pending.serial = serial;
    return store_begin_log(store, error);
}

bool sqlite_store_campaign(struct sqlite_store *store, struct mastership *me, GError **error)
{
    const struct mastership *stored = &store->meta.master;
    bool unknown;

    if (strcmp(stored->node, me->node) == 0 && strcmp(stored->boot_id, me->boot_id) == 0 &&
        strcmp(stored->journal_id, me->journal_id) == 0 && stored->epoch != 0) {
        me->epoch = stored->epoch;
        return true;
    }
    if (!sqlite_store_begin(store, error))
        return false;
    guint64 epoch = MAX(stored->epoch + 1, me->epoch);
    store->pending.master = *me;
    store->pending.master.epoch = epoch;
    store->pending.master.leap = 0;
    if (!leap_to(store, me->leap, error) || !sqlite_store_finish(store, &unknown, error)) {
        sqlite_store_rollback(store);
        return false;
    }
    me->epoch = epoch;
    return true;
}

bool sqlite_store_is_master(const struct sqlite_store *store, guint64 epoch)
{
    return store->meta.master.epoch == epoch;
}

/* --- reading back --- */

guint64 sqlite_store_lookup(struct sqlite_store *store, const char *commit_id)
{
    guint64 serial = 0;
    return ask_number(store, &serial, STATEMENT_LOOKUP, "t", commit_id) ? serial : 0;
}

static struct change *change_of(sqlite3_stmt *row)
{
    const char *kind = (const char *)sqlite3_column_text(row, 1);
    const char *key = (const char *)sqlite3_column_text(row, 2);
    const char *json = (const char *)sqlite3_column_text(row, 4);
    json_t *object =
        json != NULL ? json_parse_limited(json, strlen(json), LIMIT_FRAME_BYTES, NULL) : NULL;

    return change_make((enum change_op)sqlite3_column_int(row, 3), kind, key,
                       (guint64)sqlite3_column_int64(row, 0), object);
}

static bool log_reaches(struct sqlite_store *store, guint64 since)
{
    sqlite3_stmt *statement = store->statements[STATEMENT_LOG_RANGE];

    sqlite3_reset(statement);
    bool reaches = sqlite3_step(statement) == SQLITE_ROW &&
                   since >= (guint64)sqlite3_column_int64(statement, 0) &&
                   since <= (guint64)sqlite3_column_int64(statement, 1);
    sqlite3_reset(statement);
    return reaches;
}

bool sqlite_store_changes(struct sqlite_store *store, guint64 since, guint max,
                          GPtrArray *ret_changes)
{
    sqlite3_stmt *statement = store->statements[STATEMENT_CHANGES];

    if (!log_reaches(store, since))
        return false;
    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)since);
    sqlite3_bind_int64(statement, 2, max);
    while (sqlite3_step(statement) == SQLITE_ROW)
        g_ptr_array_add(ret_changes, change_of(statement));
    sqlite3_reset(statement);
    return true;
}
