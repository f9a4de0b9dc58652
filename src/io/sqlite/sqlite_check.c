/* Reading a store with suspicion: every row against its checksum, the whole against its digest,
 * serials without gaps. See sqlite_store.h. */
#include "io/sqlite/sqlite_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

guint64 store_sum_object(const char *kind, const char *key, guint64 version, const char *json)
{
    guint64 sum = store_sum_text(store_sum_text(STORE_SUM_START, kind), key);
    return store_sum_text(store_sum_number(sum, version), json);
}

guint64 store_sum_change(guint64 serial, guint place, guint64 epoch, const char *commit_id,
                         const struct store_row *row)
{
    guint64 sum = store_sum_number(store_sum_number(STORE_SUM_START, serial), place);

    sum = store_sum_text(store_sum_number(sum, epoch), commit_id);
    sum = store_sum_text(store_sum_text(sum, row->kind), row->key);
    return store_sum_text(store_sum_number(sum, (guint64)row->op), row->json);
}

guint64 store_sum_commit(const char *commit_id, guint64 serial, guint count)
{
    return store_sum_number(store_sum_number(store_sum_text(STORE_SUM_START, commit_id), serial),
                            count);
}

bool store_corrupt(const struct sqlite_store *store, const char *what, GError **error)
{
    if (store->meta.role == COPY_ENGINE)
        fettle_set_error(error, CORRUPT,
                         "%s is damaged: %s. The cluster does not start from it. Look at the disk "
                         "it is on. If another candidate has a copy: systemctl stop fettle.target "
                         "here, then fettle cluster master-failover there. If none has: fettle "
                         "cluster restore FILE, with a backup",
                         store->path, what);
    else
        fettle_set_error(error, CORRUPT,
                         "%s is damaged: %s. It is a copy: look at the disk it is on; wconfd puts "
                         "it away as %s.damaged and makes it anew from the master, when there is "
                         "one",
                         store->path, what, store->path);
    return false;
}

/* What says nothing about the content: no space, no memory, a disk that fails, another process that
 * has it locked. */
static bool is_of_the_host(int code)
{
    static const int codes[] = {SQLITE_FULL,  SQLITE_BUSY,     SQLITE_LOCKED,
                                SQLITE_NOMEM, SQLITE_CANTOPEN, SQLITE_PERM};

    for (guint i = 0; i < G_N_ELEMENTS(codes); i++)
        if ((code & 0xff) == codes[i])
            return true;
    return (code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_SHORT_READ &&
           code != SQLITE_IOERR_CORRUPTFS;
}

bool store_unreadable(const struct sqlite_store *store, sqlite3 *db, GError **error)
{
    if (!is_of_the_host(sqlite3_extended_errcode(db)))
        return store_corrupt(store, sqlite3_errmsg(db), error);
    fettle_set_error(error, STORAGE,
                     "%s cannot be opened: %s%s. Nothing was changed, and nothing says that the "
                     "file is damaged: wconfd opens it when this is mended",
                     store->path, sqlite3_errmsg(db),
                     (sqlite3_errcode(db) & 0xff) == SQLITE_FULL ? "; free some space" : "");
    return false;
}

static bool row_corrupt(const struct sqlite_store *store, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

static bool row_corrupt(const struct sqlite_store *store, GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    return store_corrupt(store, what, error);
}

/* --- small queries --- */

static bool ask(struct sqlite_store *store, const char *sql, sqlite3_stmt **ret_statement,
                GError **error)
{
    if (sqlite3_prepare_v2(store->db, sql, -1, ret_statement, NULL) == SQLITE_OK)
        return true;
    return store_unreadable(store, store->db, error);
}

/* Steps; false at the end, and at a failure, which then stands in `error`. */
static bool next(struct sqlite_store *store, sqlite3_stmt *statement, bool *ret_failed,
                 GError **error)
{
    int result = sqlite3_step(statement);

    *ret_failed = result != SQLITE_ROW && result != SQLITE_DONE;
    if (*ret_failed)
        store_unreadable(store, store->db, error);
    return result == SQLITE_ROW;
}

static const char *text(sqlite3_stmt *statement, int column)
{
    return (const char *)sqlite3_column_text(statement, column);
}

static const char *text_or_empty(sqlite3_stmt *statement, int column)
{
    const char *value = text(statement, column);
    return value != NULL ? value : "";
}

static guint64 number(sqlite3_stmt *statement, int column)
{
    return (guint64)sqlite3_column_int64(statement, column);
}

static bool pragma_number(struct sqlite_store *store, const char *sql, gint64 *ret_number,
                          GError **error)
{
    sqlite3_stmt *statement = NULL;
    bool failed = true;

    if (ask(store, sql, &statement, error) && next(store, statement, &failed, error))
        *ret_number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return !failed;
}

static bool is_of_later_version(const struct sqlite_store *store, gint64 format, GError **error)
{
    fettle_set_error(error, CORRUPT,
                     "%s has format %" G_GINT64_FORMAT
                     ", this version of Fettle knows %d and %d: a "
                     "later one has written it. Nothing was changed: install that one again, or "
                     "restore a backup that this one can read",
                     store->path, format, STORE_FORMAT - 1, STORE_FORMAT);
    return false;
}

/* Other tables, triggers, views, conditions: what nobody but us may have put there. What SQLite
 * notes of tables for its plans, when a person asks it to (ANALYZE), does nothing. */
static bool check_schema(struct sqlite_store *store, GError **error)
{
    sqlite3_stmt *statement = NULL;
    bool failed = true;

    bool ok = ask(store,
                  "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND NOT "
                  "(type='table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))",
                  &statement, error);
    while (ok && next(store, statement, &failed, error)) {
        ok = store_is_ours(text_or_empty(statement, 2));
        if (!ok)
            row_corrupt(store, error, "its %s \"%s\" is none of a store",
                        text_or_empty(statement, 0), text_or_empty(statement, 1));
    }
    sqlite3_finalize(statement);
    return ok && !failed;
}

bool store_check_form(struct sqlite_store *store, GError **error)
{
    gint64 id = 0, format = 0;

    if (!pragma_number(store, "PRAGMA application_id", &id, error) ||
        !pragma_number(store, "PRAGMA user_version", &format, error))
        return false;
    if (id != STORE_APPLICATION_ID)
        return store_corrupt(store, "it is not a store of Fettle", error);
    if (format > STORE_FORMAT)
        return is_of_later_version(store, format, error);
    if (format != STORE_FORMAT && format != STORE_FORMAT - 1)
        return row_corrupt(store, error,
                           "its format is %" G_GINT64_FORMAT ", this version knows %d and %d",
                           format, STORE_FORMAT - 1, STORE_FORMAT);
    return check_schema(store, error);
}

/* --- the parts --- */

static bool check_structure(struct sqlite_store *store, GError **error)
{
    sqlite3_stmt *statement = NULL;
    bool failed = true;
    bool ok = false;

    if (ask(store, "PRAGMA quick_check(1)", &statement, error) &&
        next(store, statement, &failed, error)) {
        ok = strcmp(text_or_empty(statement, 0), "ok") == 0;
        if (!ok)
            store_corrupt(store, text_or_empty(statement, 0), error);
    }
    sqlite3_finalize(statement);
    return ok;
}

static bool meta_take(struct store_meta *meta, guint64 *check, const char *key, const char *value)
{
    const struct {
        const char *key;
        guint64 *number;
        char *text;
        size_t size;
    } rows[] = {
        {"history", &meta->history, NULL, 0},
        {"serial", &meta->serial, NULL, 0},
        {"digest", &meta->digest, NULL, 0},
        {"log_from", &meta->log_from, NULL, 0},
        {"epoch", &meta->master.epoch, NULL, 0},
        {"node", NULL, meta->master.node, sizeof meta->master.node},
        {"boot_id", NULL, meta->master.boot_id, sizeof meta->master.boot_id},
        {"journal_id", NULL, meta->master.journal_id, sizeof meta->master.journal_id},
        {"versions", &meta->versions, NULL, 0},
        {"role", &meta->role, NULL, 0},
        {"check", check, NULL, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].key, key) != 0)
            continue;
        if (rows[i].number != NULL)
            return g_ascii_string_to_unsigned(value, 10, 0, G_MAXUINT64, rows[i].number, NULL);
        return g_strlcpy(rows[i].text, value, rows[i].size) < rows[i].size;
    }
    return false;
}

bool store_load_meta(struct sqlite_store *store, GError **error)
{
    struct store_meta meta = {0};
    sqlite3_stmt *statement = NULL;
    guint64 check = 0;
    guint count = 0;
    bool failed = true, ok;

    ok = ask(store, "SELECT key, value FROM meta", &statement, error);
    while (ok && next(store, statement, &failed, error)) {
        ok = meta_take(&meta, &check, text_or_empty(statement, 0), text_or_empty(statement, 1));
        count++;
        if (!ok)
            row_corrupt(store, error, "the row \"%s\" of its table meta makes no sense",
                        text_or_empty(statement, 0));
    }
    sqlite3_finalize(statement);
    if (!ok || failed)
        return false;
    store->old_format = count == 9;
    bool whole = store->old_format ? count == 9 && check == store_meta_sum_old(&meta)
                                   : count == 11 && check == store_meta_sum(&meta);
    if (!whole)
        return store_corrupt(store, "its table meta does not match its checksum", error);
    store->meta = meta;
    return true;
}

struct loading {
    bool (*each)(const char *kind, const char *key, guint64 version, const char *text, void *data);
    void *data;
    guint64 digest, versions;
};

static bool load_object(struct sqlite_store *store, sqlite3_stmt *row, struct loading *loading,
                        GError **error)
{
    const char *kind = text_or_empty(row, 0);
    const char *key = text_or_empty(row, 1);
    guint64 version = number(row, 2);
    const char *json = text_or_empty(row, 3);
    guint64 sum = store_sum_object(kind, key, version, json);

    if (sum != number(row, 4) || version == 0 || version > store->meta.serial)
        return row_corrupt(store, error, "object %s %s does not match its checksum", kind, key);
    loading->digest ^= sum;
    loading->versions ^= digest_object(kind, key, version);
    return loading->each == NULL || loading->each(kind, key, version, json, loading->data) ||
           row_corrupt(store, error, "object %s %s is no JSON object", kind, key);
}

static bool load_objects(struct sqlite_store *store, struct loading *loading, GError **error)
{
    sqlite3_stmt *statement = NULL;
    bool failed = true;

    bool ok = ask(store, "SELECT kind, key, version, json, sum FROM objects", &statement, error);
    while (ok && next(store, statement, &failed, error))
        ok = load_object(store, statement, loading, error);
    sqlite3_finalize(statement);
    if (!ok || failed)
        return false;
    if (store->old_format)
        store->meta.versions = loading->versions;
    if (loading->digest != store->meta.digest || loading->versions != store->meta.versions)
        return store_corrupt(store, "an object is missing, or older than what was committed",
                             error);
    return true;
}

/* A commit in the log, with the changes of it that were not met yet. */
struct logged {
    guint64 serial;
    guint count;
};

/* Commits must be exactly the serials (log_from, serial]; those of a copy, which takes many at
 * once, are some of them, in order. Fills `all` with struct logged. */
static bool check_commits(struct sqlite_store *store, GArray *all, GError **error)
{
    sqlite3_stmt *statement = NULL;
    bool failed = true;
    guint64 last = store->meta.log_from;

    bool ok = ask(store, "SELECT commit_id, serial, count, sum FROM commits ORDER BY serial",
                  &statement, error);
    while (ok && next(store, statement, &failed, error)) {
        struct logged one = {number(statement, 1), (guint)number(statement, 2)};
        bool follows = store->meta.role == COPY_ENGINE ? one.serial == last + 1 : one.serial > last;
        ok = follows && number(statement, 3) ==
                            store_sum_commit(text_or_empty(statement, 0), one.serial, one.count);
        if (!ok)
            row_corrupt(store, error,
                        "the commit behind serial %" G_GUINT64_FORMAT " is damaged or missing",
                        last);
        last = one.serial;
        g_array_append_val(all, one);
    }
    sqlite3_finalize(statement);
    if (ok && !failed && last != store->meta.serial)
        return row_corrupt(store, error,
                           "its serial is %" G_GUINT64_FORMAT
                           ", but its commits end with %" G_GUINT64_FORMAT,
                           store->meta.serial, last);
    return ok && !failed;
}

static int compare_logged(const void *a, const void *b)
{
    const struct logged *one = a, *other = b;
    return one->serial < other->serial ? -1 : one->serial > other->serial;
}

static bool check_change(struct sqlite_store *store, sqlite3_stmt *row, GArray *all, GError **error)
{
    struct store_row change = {(enum change_op)sqlite3_column_int(row, 6),
                               (char *)text_or_empty(row, 4), (char *)text_or_empty(row, 5),
                               (char *)text(row, 7)};
    guint64 serial = number(row, 0);
    guint64 place = number(row, 1);
    guint64 sum =
        store_sum_change(serial, (guint)place, number(row, 2), text_or_empty(row, 3), &change);

    struct logged *commit = bsearch(&(struct logged){serial, 0}, all->data, all->len,
                                    sizeof(struct logged), compare_logged);
    if (sum != number(row, 8) || commit == NULL)
        return row_corrupt(store, error,
                           "change %" G_GUINT64_FORMAT " of serial %" G_GUINT64_FORMAT
                           " does not match its checksum",
                           place, serial);
    commit->count--;
    store->log_rows++;
    return true;
}

static bool check_log(struct sqlite_store *store, GError **error)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct logged));
    sqlite3_stmt *statement = NULL;
    bool failed = true;

    store->log_rows = 0;
    bool ok =
        check_commits(store, all, error) &&
        ask(store, "SELECT serial, place, epoch, commit_id, kind, key, op, json, sum FROM changes",
            &statement, error);
    while (ok && next(store, statement, &failed, error))
        ok = check_change(store, statement, all, error);
    sqlite3_finalize(statement);
    if (!ok || failed)
        return false;
    for (guint i = 0; i < all->len; i++)
        if (g_array_index(all, struct logged, i).count != 0)
            return row_corrupt(store, error, "the change log has gaps at serial %" G_GUINT64_FORMAT,
                               g_array_index(all, struct logged, i).serial);
    return true;
}

char *store_note_format(const struct store_meta *meta)
{
    return g_strdup_printf("%020" G_GUINT64_FORMAT " %020" G_GUINT64_FORMAT " %020" G_GUINT64_FORMAT
                           "\n",
                           meta->history, meta->master.epoch, meta->serial);
}

/* Fixed widths: the order of the texts is the order of (history, epoch, serial). */
static bool check_progress(struct sqlite_store *store, GError **error)
{
    g_autofree char *now = store_note_format(&store->meta);
    size_t len = strlen(now);
    char noted[128] = "";

    /* A note that is not whole says nothing. */
    if (pread(store->lock_fd, noted, sizeof noted - 1, 0) != (ssize_t)len ||
        noted[len - 1] != '\n' || strspn(noted, "0123456789 \n") != len || strcmp(noted, now) <= 0)
        return true;
    return row_corrupt(store, error,
                       "it ends before what was answered (history, epoch and serial are %.*s, but "
                       "were %.*s); %s-wal is missing or cut. If this is a copy that was put back "
                       "on purpose, remove %s.lock",
                       (int)len - 1, now, (int)len - 1, noted, store->path, store->path);
}

bool sqlite_store_load_text(struct sqlite_store *store,
                            bool (*each)(const char *kind, const char *key, guint64 version,
                                         const char *text, void *data),
                            void *data, GError **error)
{
    struct loading loading = {each, data, 0, 0};

    store->whole = check_structure(store, error) && store_load_meta(store, error) &&
                   check_progress(store, error) && check_log(store, error) &&
                   store_check_ids(store, error) && load_objects(store, &loading, error);
    return store->whole;
}

struct json_loading {
    void (*each)(const char *kind, const char *key, guint64 version, json_t *object, void *data);
    void *data;
};

static bool each_json(const char *kind, const char *key, guint64 version, const char *text,
                      void *data)
{
    const struct json_loading *loading = data;
    json_autoptr object = json_parse_limited(text, strlen(text), LIMIT_FRAME_BYTES, NULL);

    if (object != NULL)
        loading->each(kind, key, version, object, loading->data);
    return object != NULL;
}

bool sqlite_store_load(struct sqlite_store *store,
                       void (*each)(const char *kind, const char *key, guint64 version,
                                    json_t *object, void *data),
                       void *data, GError **error)
{
    struct json_loading json = {each, data};
    struct loading loading = {each_json, &json, 0, 0};

    /* Nothing is handed out before everything was found whole. */
    return sqlite_store_load_text(store, NULL, NULL, error) &&
           (each == NULL || load_objects(store, &loading, error));
}
