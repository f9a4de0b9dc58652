/*
 * The file behind the SQLite engine: its tables, its checksums, one transaction after another.
 * Blocking and without threads; sqlite_engine.c puts the queue and the worker around it.
 *
 * Tables: meta(key, value); objects(kind, key, version, json); changes(epoch, serial, …), the
 * change log; commits(commit_id, serial), of that log; ids(serial, commit_id), of commits that are
 * not in it: of this store's own that were cut off it, and of those that a copy was told. Each row
 * has a checksum; meta has one over itself (`check`) and one over the set of objects (`digest`: the
 * checksums of all rows, xor-ed), so that a lost or an old row is noticed.
 */
#pragma once

#include "proto/copy.h"
#include "proto/engine.h"
#include "proto/records.h"

struct sqlite_store;

/* One change as it is stored. */
struct store_row {
    enum change_op op;
    char *kind;
    char *key;
    char *json; /* NULL for a delete */
};

bool sqlite_store_create(const char *path, enum copy_role role, guint64 history,
                         const GPtrArray *rows, GError **error);
struct sqlite_store *sqlite_store_open(const char *path, GError **error);
void sqlite_store_close(struct sqlite_store *store);

/* Reads and checks everything, then gives each object. `each` may be NULL. */
bool sqlite_store_load(struct sqlite_store *store,
                       void (*each)(const char *kind, const char *key, guint64 version,
                                    json_t *object, void *data),
                       void *data, GError **error);
/* The same in one pass, with each object as text; `each` (may be NULL) says whether it is JSON.
 * What was given before a failure is worth nothing. */
bool sqlite_store_load_text(struct sqlite_store *store,
                            bool (*each)(const char *kind, const char *key, guint64 version,
                                         const char *text, void *data),
                            void *data, GError **error);
guint64 sqlite_store_history(const struct sqlite_store *store);
guint64 sqlite_store_serial(const struct sqlite_store *store);

/* The mastership record; epoch 0: there was none yet. Borrowed. */
const struct mastership *sqlite_store_master(const struct sqlite_store *store);
bool sqlite_store_campaign(struct sqlite_store *store, struct mastership *me, GError **error);
/* Whether the mastership record is that of `epoch`: as it was last committed, since nobody else
 * writes a store whose lock file this process has. */
bool sqlite_store_is_master(const struct sqlite_store *store, guint64 epoch);

/* A transaction: begin, any number of commits, finish. After any failure but a refused commit:
 * rollback. */
bool sqlite_store_begin(struct sqlite_store *store, GError **error);
/* `ret_refused` tells whether only this commit is wrong (then nothing of it was done) and the
 * transaction goes on. */
bool sqlite_store_add(struct sqlite_store *store, const char *commit_id, guint64 epoch,
                      guint64 serial, const GPtrArray *rows, bool *ret_refused, GError **error);
/* False with `*ret_unknown`: perhaps stored. */
bool sqlite_store_finish(struct sqlite_store *store, bool *ret_unknown, GError **error);
void sqlite_store_rollback(struct sqlite_store *store);
/* From now on a commit does not move the write-ahead log into the file, however long that is, and
 * the caller does it when nobody waits. */
void sqlite_store_defer_checkpoints(struct sqlite_store *store);
/* Pages in the log that are not known to be in the file. */
guint sqlite_store_log_pages(const struct sqlite_store *store);
/* Moves them, as far as readers allow. A failure does no harm: the log is kept. */
void sqlite_store_checkpoint(struct sqlite_store *store);
/* Beside everything else, between transactions: reads a little of what is stored past all caches,
 * each row against its checksum, the objects against their digest, and goes on from there at the
 * next call; `ret_end` tells that all was read once. CORRUPT: damaged. STORAGE: it cannot be read
 * now. Whichever: begins anew. */
bool sqlite_store_scrub(struct sqlite_store *store, bool *ret_end, GError **error);
/* In the open transaction: the store becomes a copy of what another engine has from now on. */
void sqlite_store_leave(struct sqlite_store *store);
/* Whether it is one (again). */
bool sqlite_store_is_copy(const struct sqlite_store *store);

guint64 sqlite_store_lookup(struct sqlite_store *store, const char *commit_id);
/* Every id that can be looked up, in order of serial. CORRUPT. */
bool sqlite_store_each_id(struct sqlite_store *store,
                          void (*each)(const char *commit_id, guint64 serial, void *data),
                          void *data, GError **error);
bool sqlite_store_changes(struct sqlite_store *store, guint64 since, guint max,
                          GPtrArray *ret_changes);

void store_row_free(struct store_row *row);
/* GPtrArray of struct store_row from one of struct change. */
GPtrArray *store_rows_from_changes(const GPtrArray *changes);
