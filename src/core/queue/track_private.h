/* Inside of the tracker (track.h): track.c follows jobs and ends them on record, track_settle.c
 * finds out what has become of one whose process is gone. */
#pragma once

#include "core/queue/track.h"

struct tracker {
    struct queue_context *context;
    GHashTable *settling; /* id -> struct settling *: whose process is being judged */
    GHashTable *damaged;  /* set of ids, as guint64 *, whose file was set aside */
    GHashTable *before;   /* the same of those whose file an earlier version has in var/queue */
    GQueue changed;       /* ids whose file has changed, as guint64 * */
    struct task *reader;
};

/* A task that finds out what has become of a job. */
struct settling {
    struct tracker *tracker;
    guint64 id;
    struct task *task;
    bool event;   /* its lock file was closed a moment ago */
    bool doubted; /* said once that its lock file cannot be probed */
};

/* An end that is to be on record. */
struct ending {
    struct queue_context *context;
    guint64 id;
    struct job *file;     /* record to start from; NULL: the committed one */
    enum job_state state; /* for its unfinished opcodes */
    const json_t *result; /* of those; NULL: `file` is final as it is */
};

/* --- track.c --- */

bool track_record_final(const struct queue_context *context, guint64 id);
/* The job's file is to be read again. */
void track_read_soon(struct tracker *tracker, struct queue_job *job);
/* One try; true: the record is final now. */
bool track_commit_end(struct ending *ending);

/* --- track_settle.c --- */

/* Whether the job ran under the mastership that is now: only then its file counts. */
bool track_same_mastership(const struct queue_context *context, const struct job *job);
/* Begins to find out what has become of a job, unless that is under way. `event`: its lock file was
 * closed a moment ago. */
void track_settle(struct tracker *tracker, guint64 id, bool event);
