/* See sqlite_store.h. This file: opening, creating. Transactions are sqlite_commit.c, checking is
 * sqlite_check.c. */
#include "io/sqlite/sqlite_store.h"
#include "io/crash.h"
#include "io/sqlite/sqlite_private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define BUSY_MS 5000

static const char *const marks = "PRAGMA application_id=" G_STRINGIFY(
    STORE_APPLICATION_ID) "; PRAGMA user_version=" G_STRINGIFY(STORE_FORMAT);

/* All that a store has, to the letter: a trigger, a view or a condition would be somebody else's
 * words among ours. */
static const char *const tables[] = {
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE objects(kind TEXT, key TEXT, version INTEGER NOT NULL, json TEXT NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID",
    "CREATE TABLE changes(serial INTEGER, place INTEGER, epoch INTEGER NOT NULL,"
    " commit_id TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, op INTEGER NOT NULL,"
    " json TEXT, sum INTEGER NOT NULL, PRIMARY KEY(serial, place)) WITHOUT ROWID",
    "CREATE TABLE commits(commit_id TEXT PRIMARY KEY, serial INTEGER NOT NULL,"
    " count INTEGER NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID",
    /* Stores of earlier versions are without it. */
    "CREATE TABLE ids(serial INTEGER PRIMARY KEY, commit_id TEXT NOT NULL UNIQUE,"
    " sum INTEGER NOT NULL)",
    "CREATE TABLE " STORE_REFILL_TABLE, /* of earlier versions, whose refill was cut off */
};
#define TABLE_IDS 4
#define TABLES_AT_FIRST 5

static const char *const log_mode = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL";

static const char *const statements[STATEMENT_COUNT] = {
    [STATEMENT_OBJECT_OLD] = "SELECT sum, version FROM objects WHERE kind=?1 AND key=?2",
    [STATEMENT_OBJECT_PUT] = "INSERT OR REPLACE INTO objects VALUES(?1,?2,?3,?4,?5)",
    [STATEMENT_OBJECT_DELETE] = "DELETE FROM objects WHERE kind=?1 AND key=?2",
    [STATEMENT_CHANGE_ADD] = "INSERT INTO changes VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [STATEMENT_COMMIT_ADD] = "INSERT INTO commits VALUES(?1,?2,?3,?4)",
    [STATEMENT_META_SET] = "INSERT OR REPLACE INTO meta VALUES(?1,?2)",
    [STATEMENT_LOG_OLDEST] = "SELECT serial FROM changes ORDER BY serial, place LIMIT 1 OFFSET ?1",
    [STATEMENT_LOG_TRIM] = "DELETE FROM changes WHERE serial<=?1",
    [STATEMENT_COMMITS_TRIM] = "DELETE FROM commits WHERE serial<=?1",
    [STATEMENT_ID_PUT] = "INSERT OR REPLACE INTO ids VALUES(?1,?2,?3)",
    [STATEMENT_IDS_SURPLUS] = "SELECT serial FROM ids ORDER BY serial DESC LIMIT 1 OFFSET ?1",
    [STATEMENT_IDS_TRIM] = "DELETE FROM ids WHERE serial<=?1",
    [STATEMENT_LOOKUP] = ("SELECT serial FROM commits WHERE commit_id=?1 UNION ALL "
                          "SELECT serial FROM ids WHERE commit_id=?1 LIMIT 1"),
    [STATEMENT_CHANGES] = ("SELECT serial,kind,key,op,json FROM changes WHERE serial>?1 "
                           "ORDER BY serial, place LIMIT ?2"),
    [STATEMENT_LOG_RANGE] = ("SELECT a.value, b.value FROM meta a, meta b "
                             "WHERE a.key='log_from' AND b.key='serial'"),
};

/* --- words to SQLite --- */

bool store_error(struct sqlite_store *store, const char *doing, GError **error)
{
    if ((sqlite3_errcode(store->db) & 0xff) == SQLITE_FULL)
        fettle_set_error(error, STORAGE,
                         "%s: no space left on its disk (%s); free some, nothing was changed",
                         store->path, doing);
    else
        fettle_set_error(error, STORAGE, "%s: %s: %s", store->path, doing,
                         sqlite3_errmsg(store->db));
    return false;
}

bool store_run(struct sqlite_store *store, const char *sql, GError **error)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           store_error(store, sql, error);
}

/* --- opening --- */

static struct sqlite_store *open_database(const char *path, int flags, GError **error)
{
    struct sqlite_store *store = g_new0(struct sqlite_store, 1);

    store->path = g_strdup(path);
    store->lock_fd = store->file_fd = -1;
    if (sqlite3_open_v2(path, &store->db, flags | SQLITE_OPEN_FULLMUTEX, NULL) != SQLITE_OK) {
        store_error(store, "open", error);
        sqlite_store_close(store);
        return NULL;
    }
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return store;
}

/* In write-ahead mode a second handle reads the last commit while the first one writes the next. */
static bool prepare(struct sqlite_store *store, GError **error)
{
    if (sqlite3_open_v2(store->path, &store->reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_FULLMUTEX,
                        NULL) != SQLITE_OK)
        return store_unreadable(store, store->reader, error);
    sqlite3_extended_result_codes(store->reader, 1);
    sqlite3_busy_timeout(store->reader, BUSY_MS);
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3 *db = i >= STATEMENT_FIRST_READING ? store->reader : store->db;
        if (sqlite3_prepare_v3(db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &store->statements[i], NULL) != SQLITE_OK)
            return store_unreadable(store, db, error);
    }
    return true;
}

bool store_is_ours(const char *sql)
{
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        if (strcmp(tables[i], sql) == 0)
            return true;
    return false;
}

static bool make_tables(struct sqlite_store *store, GError **error)
{
    for (guint i = 0; i < TABLES_AT_FIRST; i++)
        if (!store_run(store, tables[i], error))
            return false;
    return true;
}

static bool has_table(sqlite3 *db, const char *name)
{
    return sqlite3_table_column_metadata(db, "main", name, NULL, NULL, NULL, NULL, NULL, NULL) ==
           SQLITE_OK;
}

/* One process per store: a second wconfd would number its commits on its own. */
static bool lock_store(struct sqlite_store *store, GError **error)
{
    g_autofree char *path = g_strconcat(store->path, ".lock", NULL);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    store->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->lock_fd >= 0 && fcntl(store->lock_fd, F_OFD_SETLK, &lock) == 0)
        return true;
    if (store->lock_fd >= 0 && (errno == EAGAIN || errno == EACCES))
        fettle_set_error(error, WRONG_STATE,
                         "%s is in use by another process; only one wconfd may run on a node",
                         store->path);
    else
        fettle_set_error(
            error, STORAGE,
            "cannot lock %s: %s; wconfd has to write there: look at the disk, mount it "
            "writable again, and it starts",
            path, g_strerror(errno));
    return false;
}

struct sqlite_store *sqlite_store_open(const char *path, GError **error)
{
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        fettle_set_error(
            error, UNKNOWN_ENTITY,
            "no cluster here: there is no %s. Make one: fettle cluster init; join one: "
            "fettle node invite, there; put one back: fettle cluster restore FILE",
            path);
        return NULL;
    }
    struct sqlite_store *store = open_database(path, SQLITE_OPEN_READWRITE, error);
    if (store == NULL)
        return NULL;
    if (!lock_store(store, error)) {
        sqlite_store_close(store);
        return NULL;
    }
    bool logs = store_check_form(store, error) &&
                (sqlite3_exec(store->db, log_mode, NULL, NULL, NULL) == SQLITE_OK ||
                 store_unreadable(store, store->db, error));
    bool has_ids =
        logs && (has_table(store->db, "ids") ||
                 sqlite3_exec(store->db, tables[TABLE_IDS], NULL, NULL, NULL) == SQLITE_OK ||
                 store_unreadable(store, store->db, error));
    if (!has_ids || !prepare(store, error)) {
        sqlite_store_close(store);
        return NULL;
    }
    return store;
}

void store_empty_log(struct sqlite_store *store)
{
    if (store->whole)
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

void sqlite_store_close(struct sqlite_store *store)
{
    if (store == NULL)
        return;
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    store_scrub_end(store);
    sqlite3_close(store->reader);
    crash_point("sqlite: close");
    /* The last handle would do it; but fettle-rconfd may have one too, and whoever copies the file
     * while wconfd is stopped wants all of it. */
    store_empty_log(store);
    sqlite3_close(store->db);
    if (store->file_fd >= 0)
        close(store->file_fd);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    g_free(store->path);
    g_free(store);
}

guint64 sqlite_store_history(const struct sqlite_store *store)
{
    return store->meta.history;
}

guint64 sqlite_store_serial(const struct sqlite_store *store)
{
    return store->meta.serial;
}

/* --- creating --- */

static bool fill_new(struct sqlite_store *store, guint64 history, const GPtrArray *rows,
                     GError **error)
{
    g_autofree char *commit_id = g_uuid_string_random();
    bool refused = false, unknown = false;

    store->meta.history = history;
    return store_run(store, log_mode, error) && store_run(store, marks, error) &&
           make_tables(store, error) && prepare(store, error) && sqlite_store_begin(store, error) &&
           sqlite_store_add(store, commit_id, 0, 1, rows, &refused, error) &&
           sqlite_store_finish(store, &unknown, error);
}

bool store_sync_path(const char *path, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    crash_point("sqlite: fsync");
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (!ok)
        fettle_set_error(error, STORAGE, "cannot sync %s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Of a store that was here before: its note would tell that this one has lost something, its
 * write-ahead log would be taken for this one's. */
static void remove_traces(const char *path)
{
    static const char *const endings[] = {".lock", "-wal", "-shm"};
    for (guint i = 0; i < G_N_ELEMENTS(endings); i++) {
        g_autofree char *trace = g_strconcat(path, endings[i], NULL);
        g_unlink(trace);
    }
}

bool sqlite_store_create(const char *path, enum copy_role role, guint64 history,
                         const GPtrArray *rows, GError **error)
{
    g_autofree char *temporary = g_strconcat(path, ".new", NULL);
    g_autofree char *folder = g_path_get_dirname(path);

    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        fettle_set_error(error, ALREADY_EXISTS,
                         "%s exists: this node has a cluster; it is not overwritten", path);
        return false;
    }
    g_unlink(temporary);
    remove_traces(path);
    crash_point("sqlite: create");
    struct sqlite_store *store =
        open_database(temporary, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, error);
    if (store == NULL)
        return false;
    store->meta.role = role;
    bool ok = fill_new(store, history, rows, error);
    /* Closing moves everything from the log into the file itself. */
    sqlite_store_close(store);
    ok = ok && g_chmod(temporary, 0600) == 0 && store_sync_path(temporary, error);
    crash_point("sqlite: rename");
    if (ok && g_rename(temporary, path) != 0) {
        fettle_set_error(error, STORAGE, "cannot rename %s to %s: %s", temporary, path,
                         g_strerror(errno));
        ok = false;
    }
    if (!ok)
        g_unlink(temporary);
    return ok && store_sync_path(folder, error);
}
