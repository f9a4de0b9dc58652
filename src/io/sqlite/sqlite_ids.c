/*
 * Ids of commits that are not in the store's log any more, or never were: a copy has none but what
 * its master tells. They go along when a copy becomes the engine (docs/design/mastership.md,
 * "Commits that are repeated"); see sqlite_private.h.
 */
#include "base/error.h"
#include "base/limits.h"
#include "io/sqlite/sqlite_private.h"

static sqlite3_stmt *ask(struct sqlite_store *store, const char *sql, GError **error)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &rows, NULL) == SQLITE_OK)
        return rows;
    store_error(store, "ids of commits", error);
    return NULL;
}

static const char *id_of(sqlite3_stmt *row)
{
    const char *id = (const char *)sqlite3_column_text(row, 1);
    return id != NULL ? id : "";
}

static bool ended(struct sqlite_store *store, sqlite3_stmt *rows, int result, GError **error)
{
    sqlite3_finalize(rows);
    return result == SQLITE_DONE || store_error(store, "ids of commits", error);
}

bool store_check_ids(struct sqlite_store *store, GError **error)
{
    sqlite3_stmt *rows = ask(store, "SELECT serial, commit_id, sum FROM ids", error);
    int result = SQLITE_DONE;
    store->id_rows = 0;
    while (rows != NULL && (result = sqlite3_step(rows)) == SQLITE_ROW) {
        guint64 serial = (guint64)sqlite3_column_int64(rows, 0);
        store->id_rows++;
        guint64 sum = (guint64)sqlite3_column_int64(rows, 2);
        if (sum == store_sum_commit(id_of(rows), serial, 0))
            continue;
        sqlite3_finalize(rows);
        g_autofree char *what = g_strdup_printf("the id of the commit of serial %" G_GUINT64_FORMAT
                                                " does not match its checksum",
                                                serial);
        return store_corrupt(store, what, error);
    }
    return rows != NULL && ended(store, rows, result, error);
}

/* A copy's own log is of batches that nobody repeats: their ids are no UUIDs. */
bool store_keep_ids(struct sqlite_store *store, guint64 upto, GError **error)
{
    sqlite3_stmt *rows =
        ask(store, "SELECT serial, commit_id FROM commits WHERE serial<=?1", error);
    int result = SQLITE_DONE;
    if (rows == NULL)
        return false;
    sqlite3_bind_int64(rows, 1, (sqlite3_int64)upto);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        guint64 serial = (guint64)sqlite3_column_int64(rows, 0);
        if (g_uuid_string_is_valid(id_of(rows)) &&
            !store_put_id(store, id_of(rows), serial, error)) {
            sqlite3_finalize(rows);
            return false;
        }
    }
    return ended(store, rows, result, error) && store_trim_ids(store, error);
}

bool store_take_ids(struct sqlite_store *store, const GPtrArray *ids, GError **error)
{
    for (guint i = 0; ids != NULL && i < ids->len; i++) {
        const struct stored_commit *commit = ids->pdata[i];
        if (!store_put_id(store, commit->id, commit->serial, error))
            return false;
    }
    return store_trim_ids(store, error);
}

bool sqlite_store_each_id(struct sqlite_store *store,
                          void (*each)(const char *commit_id, guint64 serial, void *data),
                          void *data, GError **error)
{
    sqlite3_stmt *rows = ask(store,
                             "SELECT serial, commit_id FROM ids UNION ALL "
                             "SELECT serial, commit_id FROM commits ORDER BY serial",
                             error);
    int result = SQLITE_DONE;
    while (rows != NULL && (result = sqlite3_step(rows)) == SQLITE_ROW)
        if (g_uuid_string_is_valid(id_of(rows)))
            each(id_of(rows), (guint64)sqlite3_column_int64(rows, 0), data);
    return rows != NULL && ended(store, rows, result, error);
}
