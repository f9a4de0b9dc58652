/* See identity_store.h. */
#include "io/sqlite/identity_store.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "io/crash.h"
#include "io/pool.h"
#include "proto/digest.h"

#define IDENTITY_APPLICATION_ID 0x46544944 /* "FTID" */
#define IDENTITY_FORMAT 1
#define IDENTITY_BUSY_MS 5000 /* another process commits */
#define COMMITS_WAITING 1024

static const char *const tables =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "PRAGMA application_id=" G_STRINGIFY(
        IDENTITY_APPLICATION_ID) ";"
                                 "PRAGMA user_version=" G_STRINGIFY(
                                     IDENTITY_FORMAT) ";"
                                                      "CREATE TABLE meta(key TEXT PRIMARY KEY, "
                                                      "value INTEGER NOT NULL) WITHOUT ROWID;"
                                                      "CREATE TABLE objects(kind TEXT, key TEXT, "
                                                      "object TEXT NOT NULL, sum INTEGER NOT NULL,"
                                                      " PRIMARY KEY(kind, key)) WITHOUT ROWID;"
                                                      "INSERT INTO meta VALUES('version', 1);";

struct sqlite_identity {
    struct identity_store base;
    char *path;
    sqlite3 *reader, *writer; /* of the loop; of the thread that commits */
    sqlite3_stmt *ask_version;
    struct pool *pool;
};

/* --- words --- */

static bool corrupt(const char *path, const char *why, GError **error)
{
    fettle_set_error(
        error, CORRUPT,
        "%s: %s; put it back from a copy, or set it aside with its -wal and make a new "
        "one by `fettle api init`",
        path, why);
    return false;
}

static bool failed(const char *path, sqlite3 *db, const char *doing, GError **error)
{
    int code = sqlite3_errcode(db) & 0xff;
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return corrupt(path, sqlite3_errmsg(db), error);
    if (code == SQLITE_BUSY)
        fettle_set_error(error, TEMPORARY, "%s: another process has it for too long; try again",
                         path);
    else
        fettle_set_error(error, STORAGE, "%s: cannot %s: %s", path, doing, sqlite3_errmsg(db));
    return false;
}

static gint64 sum_of(const char *kind, const char *key, const char *object)
{
    return (gint64)digest_text(digest_text(digest_text(DIGEST_START, kind), key), object);
}

/* --- one statement --- */

/* Binds texts and runs it to its end; `number` for the place behind them, if it has one. */
static bool run(const char *path, sqlite3 *db, const char *sql, const char *const *words,
                gint64 number, GError **error)
{
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK;
    int place = 1;
    for (; good && words && *words; words++)
        good = sqlite3_bind_text(statement, place++, *words, -1, SQLITE_STATIC) == SQLITE_OK;
    if (good && sqlite3_bind_parameter_count(statement) >= place)
        good = sqlite3_bind_int64(statement, place, number) == SQLITE_OK;
    int step = SQLITE_ROW;
    while (good && step == SQLITE_ROW)
        step = sqlite3_step(statement);
    good = good && step == SQLITE_DONE;
    if (!good)
        failed(path, db, "write", error);
    sqlite3_finalize(statement);
    return good;
}

/* The only number that it answers. */
static bool ask_number(const char *path, sqlite3 *db, const char *sql, gint64 *ret, GError **error)
{
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW;
    if (good)
        *ret = sqlite3_column_int64(statement, 0);
    else
        failed(path, db, "read", error);
    sqlite3_finalize(statement);
    return good;
}

static bool put_row(const char *path, sqlite3 *db, const char *kind, const char *key,
                    const char *object, GError **error)
{
    const char *const words[] = {kind, key, object, NULL};
    return object ? run(path, db, "INSERT OR REPLACE INTO objects VALUES(?1,?2,?3,?4)", words,
                        sum_of(kind, key, object), error)
                  : run(path, db, "DELETE FROM objects WHERE kind=?1 AND key=?2",
                        (const char *const[]){kind, key, NULL}, 0, error);
}

/* --- reading --- */

static bool get_version(struct identity_store *base, guint64 *ret_version, GError **error)
{
    struct sqlite_identity *store = (struct sqlite_identity *)base;
    bool good = sqlite3_step(store->ask_version) == SQLITE_ROW;
    if (good)
        *ret_version = (guint64)sqlite3_column_int64(store->ask_version, 0);
    else
        failed(store->path, store->reader, "read", error);
    sqlite3_reset(store->ask_version);
    return good;
}

/* NULL: the row is not whole. */
static json_t *row_object(sqlite3_stmt *row)
{
    const char *words[3];
    for (int i = 0; i < 3; i++)
        words[i] = (const char *)sqlite3_column_text(row, i);
    if (!words[0] || !words[1] || !words[2] ||
        sum_of(words[0], words[1], words[2]) != sqlite3_column_int64(row, 3))
        return NULL;
    return json_parse_limited(words[2], strlen(words[2]), MIB(1), NULL);
}

static bool load_rows(struct sqlite_identity *store,
                      void (*visit)(const char *kind, const char *key, json_t *object, void *data),
                      void *data, GError **error)
{
    sqlite3_stmt *row = NULL;
    int step = sqlite3_prepare_v2(store->reader,
                                  "SELECT kind, key, object, sum FROM objects ORDER BY kind, key",
                                  -1, &row, NULL);
    if (step == SQLITE_OK)
        step = sqlite3_step(row);
    bool whole = true;
    for (; whole && step == SQLITE_ROW; step = sqlite3_step(row)) {
        json_t *object = row_object(row);
        whole = object;
        if (whole)
            visit((const char *)sqlite3_column_text(row, 0),
                  (const char *)sqlite3_column_text(row, 1), object, data);
    }
    if (!whole)
        corrupt(store->path, "a row of it is damaged", error);
    else if (step != SQLITE_DONE)
        whole = failed(store->path, store->reader, "read", error);
    sqlite3_finalize(row);
    return whole;
}

static bool load(struct identity_store *base,
                 void (*visit)(const char *kind, const char *key, json_t *object, void *data),
                 void *data, guint64 *ret_version, GError **error)
{
    struct sqlite_identity *store = (struct sqlite_identity *)base;
    if (!run(store->path, store->reader, "BEGIN", NULL, 0, error))
        return false;
    guint64 version;
    bool good = get_version(base, &version, error) && load_rows(store, visit, data, error);
    sqlite3_exec(store->reader, "COMMIT", NULL, NULL, NULL);
    if (good)
        *ret_version = version;
    return good;
}

/* --- a commit --- */

struct committing {
    struct sqlite_identity *store;
    GPtrArray *words; /* kind, key, object by turns; an object that is NULL is taken away */
    guint64 version;
    GError *error;
};

static void committing_free(void *data)
{
    struct committing *committing = data;
    g_ptr_array_unref(committing->words);
    g_clear_error(&committing->error);
    g_free(committing);
}

/* His failed logins go with a user. */
static bool forget_failures(const struct sqlite_identity *store, const char *kind, const char *key,
                            GError **error)
{
    return strcmp(kind, "api_user") != 0 ||
           run(store->path, store->writer, "DELETE FROM failures WHERE user=?1",
               (const char *const[]){key, NULL}, 0, error);
}

static bool write_rows(struct committing *committing, GError **error)
{
    struct sqlite_identity *store = committing->store;
    gint64 version;
    if (!ask_number(store->path, store->writer, "SELECT value FROM meta WHERE key='version'",
                    &version, error))
        return false;
    if ((guint64)version != committing->version) {
        fettle_set_error(error, VERSION_CONFLICT,
                         "%s: it is at version %" G_GINT64_FORMAT ", not %" G_GUINT64_FORMAT
                         " any more",
                         store->path, version, committing->version);
        return false;
    }
    char **words = (char **)committing->words->pdata;
    for (guint i = 0; i + 2 < committing->words->len; i += 3)
        if (!put_row(store->path, store->writer, words[i], words[i + 1], words[i + 2], error) ||
            (!words[i + 2] && !forget_failures(store, words[i], words[i + 1], error)))
            return false;
    return run(store->path, store->writer, "UPDATE meta SET value=?1 WHERE key='version'", NULL,
               version + 1, error);
}

static void commit_in_thread(void *data)
{
    struct committing *committing = data;
    struct sqlite_identity *store = committing->store;
    GError **error = &committing->error;
    if (!run(store->path, store->writer, "BEGIN IMMEDIATE", NULL, 0, error))
        return;
    bool good = write_rows(committing, error);
    crash_point("identity: commit");
    good = good && run(store->path, store->writer, "COMMIT", NULL, 0, error);
    crash_point("identity: committed");
    if (!good)
        sqlite3_exec(store->writer, "ROLLBACK", NULL, NULL, NULL);
}

static bool commit(struct identity_store *base, GPtrArray *changes, guint64 version,
                   guint64 *ret_version, GError **error)
{
    struct committing *committing = g_new0(struct committing, 1);
    committing->store = (struct sqlite_identity *)base;
    committing->version = version;
    committing->words = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        g_ptr_array_add(committing->words, g_strdup(change->kind));
        g_ptr_array_add(committing->words, g_strdup(change->key));
        g_ptr_array_add(committing->words,
                        change->op == CHANGE_PUT ? json_to_text(change->object) : NULL);
    }
    if (!pool_run(committing->store->pool, commit_in_thread, committing_free, committing, error))
        return false;
    bool good = !committing->error;
    if (good)
        *ret_version = version + 1;
    else
        g_propagate_error(error, g_steal_pointer(&committing->error));
    committing_free(committing);
    return good;
}

/* --- logins that failed --- */

struct noting {
    struct sqlite_identity *store;
    char *user;
    gint64 at_us;
    GError *error;
};

static void noting_free(void *data)
{
    struct noting *noting = data;
    g_free(noting->user);
    g_clear_error(&noting->error);
    g_free(noting);
}

/* Which came later says the row: the clock may have been set back meanwhile. */
static bool note_row(const struct noting *noting, GError **error)
{
    const struct sqlite_identity *store = noting->store;
    const char *const user[] = {noting->user, NULL};
    return run(store->path, store->writer, "INSERT INTO failures VALUES(?1,?2)", user,
               noting->at_us, error) &&
           run(store->path, store->writer,
               "DELETE FROM failures WHERE user=?1 AND rowid NOT IN (SELECT rowid FROM failures "
               "WHERE user=?1 ORDER BY rowid DESC LIMIT ?2)",
               user, IDENTITY_FAILURES, error) &&
           run(store->path, store->writer, "COMMIT", NULL, 0, error);
}

static void note_in_thread(void *data)
{
    struct noting *noting = data;
    struct sqlite_identity *store = noting->store;
    if (run(store->path, store->writer, "BEGIN IMMEDIATE", NULL, 0, &noting->error) &&
        !note_row(noting, &noting->error))
        sqlite3_exec(store->writer, "ROLLBACK", NULL, NULL, NULL);
}

static bool note(struct sqlite_identity *store, const char *user, gint64 at_us, GError **error)
{
    struct noting *noting = g_new(struct noting, 1);
    *noting = (struct noting){store, g_strdup(user), at_us, NULL};
    if (!pool_run(store->pool, note_in_thread, noting_free, noting, error))
        return false;
    bool good = !noting->error;
    if (!good)
        g_propagate_error(error, g_steal_pointer(&noting->error));
    noting_free(noting);
    return good;
}

static bool failures(struct identity_store *base, const char *user, gint64 note_us,
                     gint64 ret_us[IDENTITY_FAILURES], GError **error)
{
    struct sqlite_identity *store = (struct sqlite_identity *)base;
    sqlite3_stmt *row = NULL;
    if (note_us && !note(store, user, note_us, error))
        return false;
    memset(ret_us, 0, IDENTITY_FAILURES * sizeof *ret_us);
    int step = sqlite3_prepare_v2(
        store->reader, "SELECT at FROM failures WHERE user=?1 ORDER BY rowid DESC", -1, &row, NULL);
    if (step == SQLITE_OK && sqlite3_bind_text(row, 1, user, -1, SQLITE_STATIC) == SQLITE_OK)
        step = sqlite3_step(row);
    for (guint i = 0; i < IDENTITY_FAILURES && step == SQLITE_ROW; step = sqlite3_step(row))
        ret_us[i++] = sqlite3_column_int64(row, 0);
    bool good = step == SQLITE_DONE || step == SQLITE_ROW ||
                failed(store->path, store->reader, "read", error);
    sqlite3_finalize(row);
    return good;
}

/* --- opened, made --- */

static const struct identity_ops ops = {load, get_version, commit, failures};

static sqlite3 *open_file(const char *path, GError **error)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        failed(path, db, "open", error);
        sqlite3_close(db);
        return NULL;
    }
    sqlite3_busy_timeout(db, IDENTITY_BUSY_MS);
    sqlite3_exec(db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
    return db;
}

/* Whether it is one of ours, of a format that we know, and whole. */
static bool check(const struct sqlite_identity *store, GError **error)
{
    gint64 id, format;
    if (!ask_number(store->path, store->reader, "PRAGMA application_id", &id, error) ||
        !ask_number(store->path, store->reader, "PRAGMA user_version", &format, error))
        return false;
    if (id != IDENTITY_APPLICATION_ID)
        return corrupt(store->path, "it has no identities of the API in it", error);
    if (format != IDENTITY_FORMAT) {
        fettle_set_error(error, CORRUPT,
                         "%s: it is of format %" G_GINT64_FORMAT
                         ", and this version knows format %d; run the version that wrote it",
                         store->path, format, IDENTITY_FORMAT);
        return false;
    }
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(store->reader, "PRAGMA quick_check(1)", -1, &statement, NULL) ==
                    SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW;
    if (!good)
        failed(store->path, store->reader, "read", error);
    else if (g_strcmp0((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
        good = corrupt(store->path, (const char *)sqlite3_column_text(statement, 0), error);
    sqlite3_finalize(statement);
    return good;
}

static bool open_all(struct sqlite_identity *store, GError **error)
{
    store->reader = open_file(store->path, error);
    store->writer = store->reader ? open_file(store->path, error) : NULL;
    if (!store->writer || !check(store, error) ||
        !run(store->path, store->writer, /* one that an earlier version has made has none */
             "CREATE TABLE IF NOT EXISTS failures(user TEXT NOT NULL, at INTEGER NOT NULL)", NULL,
             0, error))
        return false;
    return sqlite3_prepare_v3(store->reader, "SELECT value FROM meta WHERE key='version'", -1,
                              SQLITE_PREPARE_PERSISTENT, &store->ask_version, NULL) == SQLITE_OK ||
           failed(store->path, store->reader, "read", error);
}

struct identity_store *identity_store_open(const char *path, GError **error)
{
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "%s: there are no identities; run `fettle api init`", path);
        return NULL;
    }
    struct sqlite_identity *store = g_new0(struct sqlite_identity, 1);
    store->base.ops = &ops;
    store->path = g_strdup(path);
    store->pool = pool_new("changes of identities", 1, COMMITS_WAITING);
    if (open_all(store, error))
        return &store->base;
    identity_store_close(&store->base);
    return NULL;
}

void identity_store_close(struct identity_store *base)
{
    struct sqlite_identity *store = (struct sqlite_identity *)base;
    pool_free(store->pool);
    sqlite3_finalize(store->ask_version);
    sqlite3_close(store->writer);
    sqlite3_close(store->reader);
    g_free(store->path);
    g_free(store);
}

static bool sync_path(const char *path, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    crash_point("identity: fsync");
    bool good = fd >= 0 && fsync(fd) == 0;
    if (!good)
        fettle_set_error(error, STORAGE, "cannot sync %s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return good;
}

static bool fill(const char *path, const GPtrArray *changes, GError **error)
{
    sqlite3 *db = open_file(path, error);
    bool good = db &&
                (sqlite3_exec(db, tables, NULL, NULL, NULL) == SQLITE_OK ||
                 failed(path, db, "make", error)) &&
                run(path, db, "BEGIN", NULL, 0, error);
    for (guint i = 0; good && i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        g_autofree char *object = json_to_text(change->object);
        good = put_row(path, db, change->kind, change->key, object, error);
    }
    good = good && run(path, db, "COMMIT", NULL, 0, error);
    sqlite3_close(db); /* and its log is in the file */
    return good;
}

/* Under another name first: it is there with all that is in it, or not at all. */
bool identity_store_create(const char *path, const GPtrArray *changes, GError **error)
{
    g_autofree char *temporary = g_strconcat(path, ".new", NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    g_unlink(temporary); /* of one that has died */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        fettle_set_error(error, STORAGE, "cannot make %s: %s", temporary, g_strerror(errno));
        return false;
    }
    close(fd);
    bool good = fill(temporary, changes, error) && sync_path(temporary, error);
    crash_point("identity: link");
    if (good && link(temporary, path) < 0) {
        good = false;
        if (errno == EEXIST)
            fettle_set_error(error, ALREADY_EXISTS, "%s: there are identities already", path);
        else
            fettle_set_error(error, STORAGE, "cannot name %s: %s", path, g_strerror(errno));
    }
    g_unlink(temporary);
    return good && sync_path(folder, error);
}
