/*
 * Where wconfd commits (docs/design/mastership.md). One interface, an engine behind it: SQLite
 * (io/sqlite/sqlite_engine.c), etcd (io/etcd/etcd_engine.c), the simulator's model (tests/sim). An
 * engine knows nothing of objects: it stores what it is given, durably and in order. All callbacks
 * come from the loop, in the order of the commits. load, observe, campaign and resign are called
 * from a task and may wait.
 */
#pragma once

#include "proto/record.h"

struct engine;

/* One transaction as it is stored. `serial` is the next one; `changes` is a GPtrArray of struct
 * change whose version is `serial`. Borrowed until the callback. */
struct engine_commit {
    const char *commit_id;
    guint64 epoch;
    guint64 serial;
    const GPtrArray *changes;
};

/* Whether a commit follows what is stored, in the same words by every engine. NOT_MASTER: it is of
 * another epoch; INTERNAL: its serial is not the next one. */
bool engine_commit_follows(guint64 epoch, guint64 serial, guint64 stored_epoch,
                           guint64 stored_serial, GError **error);
/* The serial that follows `serial` where somebody may have seen later ones, of a master that is
 * lost or of the history before: of ConfD's answers the highest counts, which knows neither. It is
 * that of no master before this moment, by the wall clock; at least LIMIT_SERIAL_LEAP higher. */
guint64 engine_leap(guint64 serial, gint64 wall_us);

enum engine_result {
    ENGINE_DONE,    /* durable */
    ENGINE_REFUSED, /* surely not stored: not master any more, disk full */
    ENGINE_UNKNOWN, /* look it up by its id before repeating */
};

typedef void (*engine_commit_fn)(enum engine_result result, const GError *error, void *data);
typedef void (*engine_barrier_fn)(bool still_master, void *data);

/* Mastership record (SAF-01). */
struct mastership {
    guint64 epoch;
    guint64 leap; /* no part of it: asks a campaign for an epoch of a store for this serial, which
                     changes nothing; 0: the present one stays */
    char node[37];
    char boot_id[64];
    char journal_id[37];
};

/* Where the configuration has gone (`moved` in etcd). */
struct engine_left {
    char node[37]; /* whose store is the engine, or is about to be */
    guint64 history, epoch, serial;
};

struct engine_ops {
    /* Reads everything: the store's history and serial, and each object once through `each` (object
     * borrowed). A torn or foreign store: CORRUPT, with the file and what is wrong. */
    bool (*load)(struct engine *engine, guint64 *ret_history, guint64 *ret_serial,
                 void (*each)(const char *kind, const char *key, guint64 version, json_t *object,
                              void *data),
                 void *data, GError **error);
    /* The same with each object as JSON text; `each` says whether it is JSON at all. What was given
     * before a failure is worth nothing. NULL: there is only `load`. */
    bool (*load_text)(struct engine *engine, guint64 *ret_history, guint64 *ret_serial,
                      bool (*each)(const char *kind, const char *key, guint64 version,
                                   const char *text, void *data),
                      void *data, GError **error);
    /* Who is master now; epoch 0: nobody. TEMPORARY: the engine does not answer. */
    bool (*observe)(struct engine *engine, struct mastership *ret_master, GError **error);
    /* Becomes master: keeps the epoch if the stored record is of the same node, boot and journal,
     * else it gets a higher one. Durable when it returns. NOT_MASTER: somebody else is; TEMPORARY:
     * the engine does not answer. */
    bool (*campaign)(struct engine *engine, struct mastership *me, GError **error);
    /* Gives it up, with nothing on its way any more. Others leave the first try to the node `next`
     * (UUID; "": to nobody). WRONG_STATE if this engine's mastership stays with its node;
     * TEMPORARY: nothing was done; UNKNOWN_RESULT: perhaps. */
    bool (*resign)(struct engine *engine, const char *next, GError **error);
    /* Calls `lost` once when mastership has ended or cannot be kept any more (SAF-08), or had when
     * this is called; commits and barriers fail from then on. */
    void (*on_lost)(struct engine *engine, void (*lost)(const char *why, void *data), void *data);
    /* Appends to the queue; many queued commits may share one sync. One that does not follow what
     * is stored (engine_commit_follows()) is refused alone. */
    void (*commit)(struct engine *engine, const struct engine_commit *commit, engine_commit_fn done,
                   void *data);
    /* Calls back after every commit queued before it, with whether mastership still held then. */
    void (*barrier)(struct engine *engine, engine_barrier_fn done, void *data);
    /* The serial that a commit id got; 0: not stored, as far back as ids are kept
     * (LIMIT_COMMIT_IDS at least). */
    guint64 (*lookup)(struct engine *engine, const char *commit_id);
    /* After load(): every id that lookup() knows, in order of serial. A torn store: CORRUPT. */
    bool (*each_id)(struct engine *engine,
                    void (*each)(const char *commit_id, guint64 serial, void *data), void *data,
                    GError **error);
    /* The step of a change of engine, when nothing is on its way: from then on nobody becomes
     * master of this one (docs/design/mastership.md, "Change of engine"). In a task. SQLite: `last`
     * is stored, and in the same transaction the store becomes a copy. etcd: `moved` is put, with
     * the serial before `last`, which is for the store of `node`, this one. UNKNOWN: the process
     * has to end; what is stored decides. */
    enum engine_result (*leave)(struct engine *engine, const struct engine_commit *last,
                                const char *node, GError **error);
    /* In a task: whether that was done, and by whom; epoch 0: it was not. A replicated engine only.
     * TEMPORARY, CORRUPT. */
    bool (*left)(struct engine *engine, struct engine_left *ret_left, GError **error);
    /* After load(): the serial after which that has given every change: deleted objects too, with
     * the serial of their deletion and no object, after all others. 0, or NULL in its place: it has
     * not. What a copy of the mastership `*ret_epoch`, or of a later one, has was never lost. */
    guint64 (*log_from)(struct engine *engine, guint64 *ret_epoch);
    /* What of it was found damaged since it was loaded, as far as this process has looked; NULL:
     * nothing. What is asked of it, and committed, is right all the same; nobody will be able to
     * load it. NULL in its place: it never is. */
    const char *(*damage)(const struct engine *engine);
    void (*close)(struct engine *engine);
};

struct engine {
    const struct engine_ops *ops;
    /* Kept by a majority of the candidates, so that a commit that is done is never lost, and a
     * mastership is nobody else's. Otherwise it is the store of one node: copies are waited for,
     * and a new mastership needs the promises of the other candidates' nodes. It is read after the
     * campaign, the store before. */
    bool replicated;
};
