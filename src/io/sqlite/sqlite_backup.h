/*
 * Copies of a store: taken while wconfd writes it, and put back while it does not
 * (docs/design/procedures.md, "Backup and restore"). See sqlite_store.h for the store itself.
 */
#pragma once

#include "proto/copy.h"
#include "proto/records.h"

struct store_summary {
    guint64 history;
    guint64 epoch;
    guint64 serial;
    enum copy_role role; /* of the one that was copied */
    char cluster[37];    /* its UUID */
    char name[64];       /* and name */
    char engine[16];     /* as its record says; empty: it says nothing */
};

/* Copies the store at `from`, which another process may be writing, to the new file `to`: one
 * moment of it, found whole and synced. UNKNOWN_ENTITY: there is none. CORRUPT: it is damaged, and
 * no copy is made. */
bool sqlite_store_copy(const char *from, const char *to, struct store_summary *ret_summary,
                       GError **error);

/* Removes what an opened store leaves beside its file. Needed before another file takes the name:
 * a write-ahead log that was left behind would be taken for its own. */
void sqlite_store_remove_traces(const char *path);

/* Of a file that nobody else has open: makes it a store of `history` in which nobody is master, one
 * serial further with `changes` (GPtrArray of struct change). */
bool sqlite_store_renew(const char *path, guint64 history, const GPtrArray *changes,
                        GError **error);

/* Keeps every wconfd from opening the store at `path`, until the descriptor is closed. -1 with
 * WRONG_STATE if one runs. */
int sqlite_store_reserve(const char *path, GError **error);
/* The highest history that the note beside the store tells of; 0: none. */
guint64 sqlite_store_noted_history(int reserved);
/* Puts the store `made` in the place of the reserved one at `path`, which is kept as
 * PATH.before-HISTORY if there is one. */
bool sqlite_store_replace(int reserved, const char *made, const char *path, guint64 history,
                          GError **error);
