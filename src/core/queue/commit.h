/*
 * Commits of luxid: one transaction under way at a time, everything that comes meanwhile goes into
 * the next one, so that a burst of submissions or starts costs one sync. An item builds its changes
 * when its transaction is put together, against the copy of the configuration that has every
 * earlier one. If a transaction of several items fails, each is tried again by itself, so that one
 * item never harms another.
 */
#pragma once

#include "core/config/follow.h"

struct committer;

/* A transaction that is being put together. */
struct commit_batch {
    const struct config *config;
    struct stamp stamp;
    GPtrArray *changes;   /* of struct change */
    guint64 last_id;      /* last job id given out; 0: none in this transaction */
    GHashTable *requests; /* request id -> struct job * that this transaction submits under it */
    GHashTable *wanted;   /* set of ids, guint64 *, that jobs which it submits depend on */
    GHashTable *removed;  /* set of ids, guint64 *, of the records that it removes */
};

struct commit_item {
    /* Appends the item's changes. False: nothing is left to do or it cannot be done any more; the
     * item ends with `error` (NULL: it ends well), what it has appended is dropped. */
    bool (*build)(struct commit_batch *batch, void *data, GError **error);
    /* Comes exactly once, from the committer's task: `error` NULL, or why nothing was committed.
     * KILLED: the process ends; only memory may be freed then. Must not wait. */
    void (*done)(const GError *error, void *data);
    void *data;
    guint changes; /* at most so many changes */
    size_t bytes;  /* of about this size as text */
};

struct committer *committer_new(const struct env *env, struct follow *follow);
void committer_free(struct committer *committer);
/* `livelock`: luxid's own lock file. Starts the task. */
void committer_start(struct committer *committer, const char *livelock);
/* The item is copied. */
void committer_add(struct committer *committer, const struct commit_item *item);
/* The same from a task, which waits for the end; `item->done` is not used. */
bool committer_run(struct committer *committer, const struct commit_item *item, GError **error);

/* The next job id, committed with the batch (the counter only grows, ids are never used twice). */
guint64 commit_job_id(struct commit_batch *batch);
/* What the item has built rests on which jobs there are: if an earlier transaction, whose fate was
 * unknown when this one was put together, has submitted or removed some, it is refused and built
 * anew. So it is for all that take an id. */
void commit_rest_on_jobs(struct commit_batch *batch);
/* About the size of a job's record as text; NULL: 0. */
size_t commit_job_bytes(const struct job *job);
/* Adds an id to `wanted` or `removed`. */
void commit_note_id(GHashTable *ids, guint64 id);
/* Puts a job's record. */
void commit_put_job(struct commit_batch *batch, const struct job *job);
