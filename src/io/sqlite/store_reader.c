/* See store_reader.h. Checksums are those of sqlite_check.c. */
#include "io/sqlite/store_reader.h"
#include "io/sqlite/sqlite_private.h"
#include "proto/change.h"

#include <errno.h>
#include <sys/stat.h>

#define BUSY_MS 200
#define LONGEST_CATCH_UP 4096 /* serials; who is further behind gets everything anew */

struct store_reader {
    struct store_reader_client client;
    char *path;
    struct sqlite_store *store; /* only its handle and meta are used; NULL: not open */
    sqlite3_stmt *data_version;
    dev_t device; /* of the open file */
    ino_t inode;
    gint64 seen_version;    /* what SQLite numbered the last state that was given */
    bool given;             /* the client has something */
    struct store_meta meta; /* of what it has */
    char *last_commit;      /* id of the commit that ended it; "": not in the log */
};

struct store_reader *store_reader_new(const char *path, const struct store_reader_client *client)
{
    struct store_reader *reader = g_new0(struct store_reader, 1);
    reader->client = *client;
    reader->path = g_strdup(path);
    return reader;
}

static void reader_close(struct store_reader *reader)
{
    if (!reader->store)
        return;
    sqlite3_finalize(g_steal_pointer(&reader->data_version));
    sqlite3_close(reader->store->db);
    g_free(reader->store->path);
    g_free(g_steal_pointer(&reader->store));
}

void store_reader_free(struct store_reader *reader)
{
    if (!reader)
        return;
    reader_close(reader);
    g_free(reader->last_commit);
    g_free(reader->path);
    g_free(reader);
}

/* --- opening --- */

static bool run(struct store_reader *reader, const char *sql, GError **error)
{
    return sqlite3_exec(reader->store->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           store_error(reader->store, sql, error);
}

/* The store itself is not open for writing (WCF-02); what SQLite writes all the same is what
 * readers of a write-ahead log must: the index beside it. */
static bool open_handle(struct store_reader *reader, GError **error)
{
    struct sqlite_store *store = g_new0(struct sqlite_store, 1);
    store->path = g_strdup(reader->path);
    store->lock_fd = -1;
    reader->store = store;
    if (sqlite3_open_v2(reader->path, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return store_error(store, "open", error);
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (!run(reader, "PRAGMA query_only=1", error) || !store_check_form(store, error))
        return false;
    return sqlite3_prepare_v3(store->db, "PRAGMA data_version", -1, SQLITE_PREPARE_PERSISTENT,
                              &reader->data_version, NULL) == SQLITE_OK ||
           store_error(store, "prepare", error);
}

static bool reader_open(struct store_reader *reader, const struct stat *about, GError **error)
{
    if (!open_handle(reader, error)) {
        reader_close(reader);
        return false;
    }
    reader->device = about->st_dev;
    reader->inode = about->st_ino;
    reader->seen_version = -1;
    return true;
}

static bool read_data_version(struct store_reader *reader, gint64 *ret_version, GError **error)
{
    sqlite3_reset(reader->data_version);
    bool ok = sqlite3_step(reader->data_version) == SQLITE_ROW;
    if (ok)
        *ret_version = sqlite3_column_int64(reader->data_version, 0);
    else
        store_error(reader->store, "data_version", error);
    sqlite3_reset(reader->data_version);
    return ok;
}

/* --- small queries --- */

typedef sqlite3_stmt statement_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(statement_t, sqlite3_finalize)

static sqlite3_stmt *ask(struct store_reader *reader, const char *sql, guint64 number,
                         GError **error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(reader->store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        store_error(reader->store, sql, error);
        return NULL;
    }
    if (sqlite3_bind_parameter_count(statement) > 0)
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)number);
    return statement;
}

static const char *text(sqlite3_stmt *row, int column)
{
    const char *value = (const char *)sqlite3_column_text(row, column);
    return value ? value : "";
}

/* The text in the first column of the first row; "" if there is none. */
static char *ask_text(struct store_reader *reader, const char *sql, guint64 number, GError **error)
{
    g_autoptr(statement_t) statement = ask(reader, sql, number, error);
    if (!statement)
        return NULL;
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW || result == SQLITE_DONE)
        return g_strdup(result == SQLITE_ROW ? text(statement, 0) : "");
    store_error(reader->store, sql, error);
    return NULL;
}

static bool damaged(struct store_reader *reader, const char *what, const char *kind,
                    const char *key, GError **error)
{
    fettle_set_error(error, CORRUPT, "%s is damaged: %s %s %s does not match its checksum",
                     reader->path, what, kind, key);
    return false;
}

/* Ends a walk over rows: whether it came to their end. */
static bool walked(struct store_reader *reader, int result, GError **error)
{
    return result == SQLITE_DONE || store_error(reader->store, "read", error);
}

/* --- giving --- */

static struct change *make_change(struct store_reader *reader, enum change_op op, const char *kind,
                                  const char *key, guint64 version, const char *json,
                                  GError **error)
{
    json_t *object =
        op == CHANGE_PUT ? json_parse_limited(json, strlen(json), LIMIT_FRAME_BYTES, NULL) : NULL;
    if (op == CHANGE_DELETE || object)
        return change_make(op, kind, key, version, object);
    damaged(reader, "the JSON of", kind, key, error);
    return NULL;
}

static bool give_object(struct store_reader *reader, sqlite3_stmt *row, guint64 *digest,
                        GError **error)
{
    const char *kind = text(row, 0), *key = text(row, 1), *json = text(row, 3);
    guint64 version = (guint64)sqlite3_column_int64(row, 2);
    guint64 sum = store_sum_object(kind, key, version, json);
    *digest ^= sum;
    if (sum != (guint64)sqlite3_column_int64(row, 4))
        return damaged(reader, "object", kind, key, error);
    if (!reader->client.keeps(kind))
        return true;
    record_autoptr(change) change =
        make_change(reader, CHANGE_PUT, kind, key, version, json, error);
    return change && reader->client.change(change, reader->client.data, error);
}

static bool give_all(struct store_reader *reader, GError **error)
{
    g_autoptr(statement_t) rows =
        ask(reader, "SELECT kind, key, version, json, sum FROM objects", 0, error);
    guint64 digest = 0;
    int result = SQLITE_DONE;
    if (!rows)
        return false;
    reader->client.begin(reader->client.data);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW)
        if (!give_object(reader, rows, &digest, error))
            return false;
    if (!walked(reader, result, error))
        return false;
    if (digest == reader->store->meta.digest)
        return true;
    fettle_set_error(error, CORRUPT,
                     "%s is damaged: an object is missing, or older than what was committed",
                     reader->path);
    return false;
}

/* A change that is wanted is added to the list. */
static bool read_change(struct store_reader *reader, sqlite3_stmt *row, GPtrArray *list,
                        GError **error)
{
    const char *json = (const char *)sqlite3_column_text(row, 7);
    struct store_row stored = {(enum change_op)sqlite3_column_int(row, 6), (char *)text(row, 4),
                               (char *)text(row, 5), (char *)json};
    guint64 serial = (guint64)sqlite3_column_int64(row, 0);
    guint64 sum = store_sum_change(serial, (guint)sqlite3_column_int(row, 1),
                                   (guint64)sqlite3_column_int64(row, 2), text(row, 3), &stored);
    if (sum != (guint64)sqlite3_column_int64(row, 8))
        return damaged(reader, "the change of", stored.kind, stored.key, error);
    if (!reader->client.keeps(stored.kind))
        return true;
    struct change *change =
        make_change(reader, stored.op, stored.kind, stored.key, serial, json ? json : "", error);
    if (change)
        g_ptr_array_add(list, change);
    return change != NULL;
}

/* All are read before the first is given: what cannot be read changes nothing. */
static GPtrArray *read_changes(struct store_reader *reader, GError **error)
{
    g_autoptr(statement_t) rows =
        ask(reader,
            "SELECT serial, place, epoch, commit_id, kind, key, op, json, sum FROM changes "
            "WHERE serial>?1 ORDER BY serial, place",
            reader->meta.serial, error);
    g_autoptr(GPtrArray) list = change_list_new();
    int result = SQLITE_DONE;
    if (!rows)
        return NULL;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW)
        if (!read_change(reader, rows, list, error))
            return NULL;
    return walked(reader, result, error) ? g_steal_pointer(&list) : NULL;
}

static void drop(struct store_reader *reader)
{
    if (reader->given)
        reader->client.gone(reader->client.data);
    reader->given = false;
}

static bool give_changes(struct store_reader *reader, GError **error)
{
    g_autoptr(GPtrArray) changes = read_changes(reader, error);
    for (guint i = 0; changes && i < changes->len; i++)
        if (!reader->client.change(changes->pdata[i], reader->client.data, error)) {
            drop(reader);
            return false;
        }
    return changes != NULL;
}

/* --- what is new --- */

/* Whether the log of the store goes on where the client is: it must have the very commit that the
 * client has last; without one, its begin must be the same. */
static bool goes_on(struct store_reader *reader, bool *ret_goes_on, GError **error)
{
    const struct store_meta *now = &reader->store->meta, *had = &reader->meta;
    *ret_goes_on = false;
    if (!reader->given || now->history != had->history || now->serial < had->serial ||
        now->serial - had->serial > LONGEST_CATCH_UP || had->serial < now->log_from)
        return true;
    g_autofree char *commit =
        ask_text(reader, "SELECT commit_id FROM commits WHERE serial=?1", had->serial, error);
    if (!commit)
        return false;
    *ret_goes_on = strcmp(commit, reader->last_commit) == 0 &&
                   (*commit || now->log_from == had->log_from) &&
                   (now->serial != had->serial || now->digest == had->digest);
    return true;
}

static bool finish(struct store_reader *reader, GError **error)
{
    const struct store_meta *meta = &reader->store->meta;
    g_autofree char *commit =
        ask_text(reader, "SELECT commit_id FROM commits WHERE serial=?1", meta->serial, error);
    if (!commit)
        return false;
    reader->meta = *meta;
    reader->given = true;
    g_free(reader->last_commit);
    reader->last_commit = g_steal_pointer(&commit);
    const struct store_position position = {meta->history, meta->master.epoch, meta->serial,
                                            (enum copy_role)meta->role};
    reader->client.done(&position, reader->client.data);
    return true;
}

/* In a transaction: everything that is read is of one moment. */
static bool give_news(struct store_reader *reader, GError **error)
{
    g_autoptr(GError) partly = NULL;
    bool on = false;
    if (!store_load_meta(reader->store, error) || !goes_on(reader, &on, error))
        return false;
    if (on && give_changes(reader, &partly))
        return finish(reader, error);
    return give_all(reader, error) && finish(reader, error);
}

static bool read_news(struct store_reader *reader, gint64 version, GError **error)
{
    if (!run(reader, "BEGIN", error))
        return false;
    g_autoptr(GError) local = NULL;
    bool ok = give_news(reader, &local);
    sqlite3_exec(reader->store->db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_db_release_memory(reader->store->db);
    /* A damaged store is not read again before somebody changes it. */
    reader->seen_version = ok || fettle_error_is(local, CORRUPT) ? version : -1;
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&local));
    return ok;
}

bool store_reader_refresh(struct store_reader *reader, GError **error)
{
    struct stat about;
    gint64 version;
    if (stat(reader->path, &about) != 0) {
        int code = errno;
        if (code != ENOENT) {
            fettle_set_error(error, STORAGE, "%s: %s", reader->path, g_strerror(code));
            return false;
        }
        reader_close(reader);
        drop(reader);
        return true;
    }
    if (reader->store && (about.st_dev != reader->device || about.st_ino != reader->inode))
        reader_close(reader);
    if (!reader->store && !reader_open(reader, &about, error))
        return false;
    if (!read_data_version(reader, &version, error))
        return false;
    return version == reader->seen_version || read_news(reader, version, error);
}
