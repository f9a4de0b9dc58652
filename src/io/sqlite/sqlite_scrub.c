/* Reading what is stored anew while nobody asks for it, some rows at a time, so that a row that
 * rots on the disk is found while somebody still has it whole. See sqlite_store.h. */
#include "io/sqlite/sqlite_private.h"

#include <fcntl.h>
#include <unistd.h>

enum { TABLE_OBJECTS, TABLE_CHANGES, TABLE_COMMITS, TABLE_IDS, TABLE_COUNT };

/* Each begins behind the last row of the step before, whose key are the first columns. */
static const char *const queries[TABLE_COUNT] = {
    [TABLE_OBJECTS] = "SELECT kind, key, version, json, sum FROM objects "
                      "WHERE (kind, key)>(?1, ?2) ORDER BY kind, key",
    [TABLE_CHANGES] = "SELECT serial, place, epoch, commit_id, kind, key, op, json, sum "
                      "FROM changes WHERE (serial, place)>(?1, ?2) ORDER BY serial, place",
    [TABLE_COMMITS] = "SELECT commit_id, serial, count, sum FROM commits "
                      "WHERE commit_id>?1 ORDER BY commit_id",
    [TABLE_IDS] = "SELECT serial, commit_id, sum FROM ids WHERE serial>?1 ORDER BY serial",
};

struct store_scrub {
    sqlite3 *db; /* of its own: what others have read is not what is on the disk */
    guint table;
    bool begun;       /* the cursor is a row of this table */
    char *kind, *key; /* of the last object, or the id of the last commit, … */
    guint64 serial;   /* … or the place of the last change, or id */
    guint64 place;
};

/* What one step has still to read. */
struct budget {
    guint rows;
    size_t bytes;
};

static guint64 number(sqlite3_stmt *row, int column)
{
    return (guint64)sqlite3_column_int64(row, column);
}

static const char *text(sqlite3_stmt *row, int column)
{
    const char *value = (const char *)sqlite3_column_text(row, column);
    return value != NULL ? value : "";
}

static void set_cursor(struct store_scrub *scrub, const char *kind, const char *key)
{
    g_free(scrub->kind);
    g_free(scrub->key);
    scrub->kind = g_strdup(kind);
    scrub->key = g_strdup(key);
}

/* --- what is put meanwhile --- */

/* Where the cursor has passed, the sums follow what is written. */
void store_scrub_note(struct sqlite_store *store, const char *kind, const char *key, guint64 sum,
                      guint64 version)
{
    const struct store_scrub *scrub = store->scrub;

    if (scrub == NULL || scrub->table != TABLE_OBJECTS || !scrub->begun)
        return;
    int order = strcmp(kind, scrub->kind);
    if (order > 0 || (order == 0 && strcmp(key, scrub->key) > 0))
        return;
    store->pending_seen.objects ^= sum;
    store->pending_seen.versions ^= digest_object(kind, key, version);
}

void store_scrub_end(struct sqlite_store *store)
{
    struct store_scrub *scrub = store->scrub;

    store->seen = store->pending_seen = (struct store_sums){0, 0};
    if (scrub == NULL)
        return;
    sqlite3_close(scrub->db);
    set_cursor(scrub, NULL, NULL);
    g_free(scrub);
    store->scrub = NULL;
}

/* --- beginning --- */

/* What the kernel remembers of the file goes, once, so that the disk is asked; what is not written
 * yet stays. The descriptor is kept to the end: closing it would drop SQLite's locks. */
static void forget_pages(struct sqlite_store *store)
{
    if (store->file_fd < 0)
        store->file_fd = open(store->path, O_RDONLY | O_CLOEXEC);
    if (store->file_fd >= 0)
        posix_fadvise(store->file_fd, 0, 0, POSIX_FADV_DONTNEED);
}

static bool begin(struct sqlite_store *store, GError **error)
{
    struct store_scrub *scrub = g_new0(struct store_scrub, 1);

    forget_pages(store);
    store->scrub = scrub;
    if (sqlite3_open_v2(store->path, &scrub->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_FULLMUTEX,
                        NULL) != SQLITE_OK)
        return store_unreadable(store, scrub->db, error);
    sqlite3_extended_result_codes(scrub->db, 1);
    return true;
}

/* --- rows --- */

static bool is_whole_object(struct sqlite_store *store, sqlite3_stmt *row)
{
    const char *kind = text(row, 0), *key = text(row, 1);
    guint64 version = number(row, 2), sum = number(row, 4);

    store->seen.objects ^= sum;
    store->seen.versions ^= digest_object(kind, key, version);
    set_cursor(store->scrub, kind, key);
    return sum == store_sum_object(kind, key, version, text(row, 3));
}

static bool is_whole_change(struct sqlite_store *store, sqlite3_stmt *row)
{
    struct store_row change = {(enum change_op)sqlite3_column_int(row, 6), (char *)text(row, 4),
                               (char *)text(row, 5), (char *)sqlite3_column_text(row, 7)};

    store->scrub->serial = number(row, 0);
    store->scrub->place = number(row, 1);
    return number(row, 8) == store_sum_change(store->scrub->serial, (guint)store->scrub->place,
                                              number(row, 2), text(row, 3), &change);
}

static bool is_whole_commit(struct sqlite_store *store, sqlite3_stmt *row)
{
    set_cursor(store->scrub, text(row, 0), NULL);
    return number(row, 3) == store_sum_commit(text(row, 0), number(row, 1), (guint)number(row, 2));
}

static bool is_whole_id(struct sqlite_store *store, sqlite3_stmt *row)
{
    store->scrub->serial = number(row, 0);
    return number(row, 2) == store_sum_commit(text(row, 1), store->scrub->serial, 0);
}

static char *name_row(const struct store_scrub *scrub)
{
    if (scrub->table == TABLE_OBJECTS)
        return g_strdup_printf("object %s %s", scrub->kind, scrub->key);
    if (scrub->table == TABLE_COMMITS)
        return g_strdup_printf("commit %s", scrub->kind);
    return g_strdup_printf("%s of serial %" G_GUINT64_FORMAT,
                           scrub->table == TABLE_CHANGES ? "a change" : "the id of the commit",
                           scrub->serial);
}

static bool check_row(struct sqlite_store *store, sqlite3_stmt *row, GError **error)
{
    static bool (*const is_whole[TABLE_COUNT])(struct sqlite_store * store, sqlite3_stmt * row) = {
        is_whole_object, is_whole_change, is_whole_commit, is_whole_id};

    store->scrub->begun = true;
    if (is_whole[store->scrub->table](store, row))
        return true;
    g_autofree char *name = name_row(store->scrub);
    g_autofree char *what = g_strconcat(name, " does not match its checksum", NULL);
    return store_corrupt(store, what, error);
}

/* --- tables --- */

/* A sector that cannot be read is damage too: of a store that could be read before. */
static bool unreadable(struct sqlite_store *store, GError **error)
{
    if (sqlite3_extended_errcode(store->scrub->db) == SQLITE_IOERR_READ)
        return store_corrupt(store, "its disk cannot read all of it", error);
    return store_unreadable(store, store->scrub->db, error);
}

static void bind_cursor(const struct store_scrub *scrub, sqlite3_stmt *rows)
{
    bool texts = scrub->table == TABLE_OBJECTS || scrub->table == TABLE_COMMITS;

    if (texts) {
        sqlite3_bind_text(rows, 1, scrub->begun ? scrub->kind : "", -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(rows, 2, scrub->begun && scrub->key != NULL ? scrub->key : "", -1,
                          SQLITE_TRANSIENT);
    } else {
        sqlite3_bind_int64(rows, 1, scrub->begun ? (sqlite3_int64)scrub->serial : -1);
        sqlite3_bind_int64(rows, 2, scrub->begun ? (sqlite3_int64)scrub->place : -1);
    }
}

static size_t row_bytes(sqlite3_stmt *row)
{
    size_t bytes = 0;

    for (int i = 0; i < sqlite3_column_count(row); i++)
        bytes += (size_t)sqlite3_column_bytes(row, i);
    return bytes;
}

/* Rows of the table, as far as the budget goes; `ret_over`: there are no more. */
static bool walk(struct sqlite_store *store, struct budget *budget, bool *ret_over, GError **error)
{
    struct store_scrub *scrub = store->scrub;
    sqlite3_stmt *rows = NULL;
    int result = SQLITE_ROW;

    if (sqlite3_prepare_v2(scrub->db, queries[scrub->table], -1, &rows, NULL) != SQLITE_OK)
        return unreadable(store, error);
    bind_cursor(scrub, rows);
    bool ok = true;
    while (ok && budget->rows > 0 && budget->bytes > 0 &&
           (result = sqlite3_step(rows)) == SQLITE_ROW) {
        budget->rows--;
        budget->bytes -= MIN(row_bytes(rows), budget->bytes);
        ok = check_row(store, rows, error);
    }
    if (ok && result != SQLITE_ROW && result != SQLITE_DONE)
        ok = unreadable(store, error);
    *ret_over = result == SQLITE_DONE;
    sqlite3_finalize(rows);
    return ok;
}

/* All objects were read: they must be those that were committed, and so must the meta rows. */
static bool check_whole(struct sqlite_store *store, GError **error)
{
    struct sqlite_store read = {.path = store->path, .db = store->scrub->db, .lock_fd = -1};

    read.meta.role = store->meta.role;
    if (!store_load_meta(&read, error))
        return false;
    if (read.meta.serial != store->meta.serial || read.meta.digest != store->meta.digest ||
        store->seen.objects != store->meta.digest || store->seen.versions != store->meta.versions)
        return store_corrupt(store, "an object is missing, or older than what was committed",
                             error);
    return true;
}

static bool next_table(struct sqlite_store *store, GError **error)
{
    struct store_scrub *scrub = store->scrub;

    if (scrub->table == TABLE_OBJECTS && !check_whole(store, error))
        return false;
    scrub->table++;
    scrub->begun = false;
    set_cursor(scrub, NULL, NULL);
    return true;
}

bool sqlite_store_scrub(struct sqlite_store *store, bool *ret_end, GError **error)
{
    struct budget budget = {LIMIT_SCRUB_ROWS, LIMIT_SCRUB_BYTES};
    bool ok = store->scrub != NULL || begin(store, error);

    *ret_end = false;
    while (ok && !*ret_end && budget.rows > 0 && budget.bytes > 0) {
        bool over = false;
        ok = walk(store, &budget, &over, error) && (!over || next_table(store, error));
        *ret_end = ok && store->scrub->table == TABLE_COUNT;
    }
    if (!ok || *ret_end)
        store_scrub_end(store);
    else
        sqlite3_db_release_memory(store->scrub->db);
    return ok;
}
