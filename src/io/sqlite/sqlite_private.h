/*
 * Shared by the files of the store only (sqlite_*.c but the engine, store_reader.c): the open store
 * and its checksums.
 */
#pragma once

#include "io/sqlite/sqlite_store.h"
#include "proto/digest.h"

#include <sqlite3.h>
#include <string.h>

#define STORE_APPLICATION_ID 0x46544c45 /* "FTLE" */
/* Format 1 had neither role nor versions; it is brought up with the first transaction. */
#define STORE_FORMAT 2

/* Where a copy collects all of a configuration before it takes the place of what it had. */
#define STORE_REFILL_TABLE                                                                         \
    "refill(kind TEXT, key TEXT, version INTEGER NOT NULL, json TEXT NOT NULL,"                    \
    " PRIMARY KEY(kind, key)) WITHOUT ROWID"

enum store_statement {
    /* of the writing handle */
    STATEMENT_OBJECT_OLD,
    STATEMENT_OBJECT_PUT,
    STATEMENT_OBJECT_DELETE,
    STATEMENT_CHANGE_ADD,
    STATEMENT_COMMIT_ADD,
    STATEMENT_META_SET,
    STATEMENT_LOG_OLDEST,
    STATEMENT_LOG_TRIM,
    STATEMENT_COMMITS_TRIM,
    STATEMENT_ID_PUT,
    STATEMENT_IDS_SURPLUS,
    STATEMENT_IDS_TRIM,
    /* of the reading handle */
    STATEMENT_LOOKUP,
    STATEMENT_CHANGES,
    STATEMENT_LOG_RANGE,
    STATEMENT_COUNT
};
#define STATEMENT_FIRST_READING STATEMENT_LOOKUP

struct store_meta {
    guint64 history;
    guint64 serial;
    guint64 digest;   /* checksums of all objects, xor-ed */
    guint64 log_from; /* the change log has everything after this serial */
    guint64 versions; /* digest of kinds, keys and versions (proto/digest.h) */
    guint64 role;     /* enum copy_role */
    struct mastership master;
};

/* Of some objects, xor-ed: their checksums, and the digest of their versions. */
struct store_sums {
    guint64 objects, versions;
};

struct sqlite_store {
    char *path;
    sqlite3 *db;
    sqlite3 *reader; /* for the loop while the worker commits */
    int lock_fd;
    int file_fd;     /* of the store itself; -1: not open. Closed after all handles */
    bool old_format; /* format 1, until the first transaction */
    guint log_pages; /* with deferred checkpoints: in the write-ahead log */
    bool whole;      /* found so, or written: what is not stays as it is, with its -wal */
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct store_meta meta;    /* as committed */
    struct store_meta pending; /* of the open transaction */
    guint64 log_rows, id_rows;
    guint64 pending_log_rows, pending_id_rows;
    struct store_scrub *scrub;            /* what is read anew; NULL: nothing is */
    struct store_sums seen, pending_seen; /* of the objects that it has read */
};

/* FNV-1a, 64 bits: any change of a single byte changes the sum. */
#define STORE_SUM_START DIGEST_START
#define store_sum_bytes digest_bytes

/* With the NUL, so that fields do not run together; NULL counts as a byte of its own. */
static inline guint64 store_sum_text(guint64 sum, const char *text)
{
    return text != NULL ? store_sum_bytes(sum, text, strlen(text) + 1)
                        : store_sum_bytes(sum, "\xff", 1);
}

static inline guint64 store_sum_number(guint64 sum, guint64 number)
{
    return store_sum_bytes(sum, &number, sizeof number);
}

guint64 store_sum_object(const char *kind, const char *key, guint64 version, const char *json);
guint64 store_sum_change(guint64 serial, guint place, guint64 epoch, const char *commit_id,
                         const struct store_row *row);
guint64 store_sum_commit(const char *commit_id, guint64 serial, guint count);
guint64 store_meta_sum(const struct store_meta *meta);
guint64 store_meta_sum_old(const struct store_meta *meta); /* of format 1 */

/* What one row changes in the set of objects. `version` is the row's own. */
bool store_put_row(struct sqlite_store *store, const struct store_row *row, guint64 version,
                   GError **error);
/* The same, and in the change log. */
bool store_log_row(struct sqlite_store *store, const char *commit_id, guint64 epoch, guint64 serial,
                   guint place, const struct store_row *row, GError **error);
/* In the open transaction: one more id of a commit that is not in the log; those that are too old
 * go. Each serial has one. */
bool store_put_id(struct sqlite_store *store, const char *commit_id, guint64 serial,
                  GError **error);
bool store_trim_ids(struct sqlite_store *store, GError **error);
/* The ids of all commits of the log up to there, which is about to be cut off. */
bool store_keep_ids(struct sqlite_store *store, guint64 upto, GError **error);
/* GPtrArray of struct stored_commit; NULL: none. */
bool store_take_ids(struct sqlite_store *store, const GPtrArray *ids, GError **error);
/* CORRUPT if one is damaged. */
bool store_check_ids(struct sqlite_store *store, GError **error);
bool store_log_commit(struct sqlite_store *store, const char *commit_id, guint64 serial,
                      guint changes, GError **error);
/* The log of an engine has no gaps, that of a copy may: it begins here. */
bool store_begin_log(struct sqlite_store *store, GError **error);
bool store_run(struct sqlite_store *store, const char *sql, GError **error);
/* All of the write-ahead log goes into the file, and its room back to the disk. A log that is torn
 * stays: it would be cut off, and what a person could still save of it would be gone. */
void store_empty_log(struct sqlite_store *store);

/* What stands in the lock file: how far the store had come when something was last answered;
 * g_free() it. */
char *store_note_format(const struct store_meta *meta);

/* Syncs a file or folder. */
bool store_sync_path(const char *path, GError **error);

/* STORAGE with what SQLite says; returns false. */
bool store_error(struct sqlite_store *store, const char *doing, GError **error);
/* CORRUPT with the file and what to do; returns false. */
bool store_corrupt(const struct sqlite_store *store, const char *what, GError **error);
/* It cannot be read: CORRUPT, or STORAGE if what SQLite says of it is about the host and not about
 * what is in the file; returns false. */
bool store_unreadable(const struct sqlite_store *store, sqlite3 *db, GError **error);
/* An object that is put, or taken away, in the open transaction. */
void store_scrub_note(struct sqlite_store *store, const char *kind, const char *key, guint64 sum,
                      guint64 version);
/* The next step begins anew. */
void store_scrub_end(struct sqlite_store *store);
/* Reads the table meta, against its checksum. */
bool store_load_meta(struct sqlite_store *store, GError **error);
/* Whether a table is made of these words, and so one of ours. */
bool store_is_ours(const char *sql);
/* Is it one of our stores, of a format that we know, and nothing else in it? */
bool store_check_form(struct sqlite_store *store, GError **error);
