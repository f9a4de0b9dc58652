/*
 * A candidate's own copy of the configuration: all objects at one serial, on its disk
 * (docs/design/mastership.md, "The copy"). One interface; behind it the SQLite store
 * (io/sqlite/sqlite_copy.c) or the simulator's. What wconfd applies to it, rconfd reads.
 *
 * Calls are made from a task and may wait, one at a time.
 */
#pragma once

#include "proto/record.h"

struct copy;

/* What the store is for. */
enum copy_role {
    COPY_ENGINE,  /* the SQLite engine: its wconfd may become master by itself */
    COPY_FOLLOWS, /* kept up to date from a master */
    COPY_RETIRED, /* of a node that is no candidate any more: nobody answers from it */
};

/* How far it is, durably. Everything zero: it is empty. */
struct copy_position {
    enum copy_role role;
    guint64 history;
    guint64 epoch; /* of the master that the last changes came from */
    guint64 serial;
    guint64 digest; /* over all objects; equal at equal serials of one history */
};

/* Changes of a master, applied as one transaction. `changes` is a GPtrArray of struct change whose
 * versions are their own serials. Without changes it may be of the serial that is there, to put a
 * later epoch on record. */
struct copy_batch {
    guint64 history, epoch;
    guint64 serial; /* that the copy has afterwards */
    const GPtrArray *changes;
    /* GPtrArray of struct stored_commit, in order of serial: the commits that these are of, or all
     * that are known with a refill. NULL: none. */
    const GPtrArray *ids;
};

struct copy_ops {
    /* At once, without waiting. */
    void (*position)(struct copy *copy, struct copy_position *ret_position);
    /* As engine_ops.load. CORRUPT: it has to be refilled. */
    bool (*load)(struct copy *copy,
                 void (*each)(const char *kind, const char *key, guint64 version, json_t *object,
                              void *data),
                 void *data, GError **error);
    /* Durable when it returns. STORAGE: nothing of it was done. */
    bool (*apply)(struct copy *copy, const struct copy_batch *batch, GError **error);
    /* A refill in pieces: what is there stays readable until the end, then the new content is there
     * at once; `end` tells its position and its ids, and has no changes. `begin` drops what an
     * earlier attempt has left; a later piece may put again, or delete, what an earlier one has
     * put. */
    bool (*refill_begin)(struct copy *copy, GError **error);
    bool (*refill_piece)(struct copy *copy, const GPtrArray *changes, GError **error);
    bool (*refill_end)(struct copy *copy, const struct copy_batch *end, GError **error);
    /* Becomes an engine whose next mastership has at least this epoch, with this as its last commit
     * (struct copy_batch; of a later serial), or a follower, or retired: in one transaction. */
    bool (*set_role)(struct copy *copy, enum copy_role role, const struct copy_batch *last,
                     GError **error);
    /* Reads a little of what is stored anew, to go on from there at the next call. CORRUPT: it is
     * damaged. STORAGE: it cannot be read now. NULL: there is nothing that could rot. */
    bool (*scrub)(struct copy *copy, GError **error);
    /* What is there is damaged: it is kept beside the copy, which is empty then. NULL with `scrub`.
     */
    bool (*renew)(struct copy *copy, GError **error);
    void (*close)(struct copy *copy);
};

struct copy {
    const struct copy_ops *ops;
};
