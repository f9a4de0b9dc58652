/*
 * The index of the job queue that luxid keeps in memory: every job by id, queued jobs in the order
 * in which they start, dependencies in both directions, request ids. It is pure bookkeeping on
 * records that others have committed or read: it neither commits nor starts anything. Every
 * operation costs at most the logarithm of the number of jobs, or the number of jobs that depend on
 * one.
 */
#pragma once

#include "core/job/job_state.h"

/* Where a job stands with luxid; `state` is what clients see. */
enum job_phase {
    JOB_PHASE_QUEUED,   /* waits for its turn or for other jobs */
    JOB_PHASE_STARTING, /* from the moment it was picked to the confirmation */
    JOB_PHASE_RUNNING,  /* a process may be at work, or its death is being settled */
    JOB_PHASE_ENDED,    /* final state on record, no process */
};

struct queue_job {
    guint64 id;
    unsigned state; /* enum job_state */
    enum job_phase phase;
    bool busy;       /* luxid has a commit about it under way (queue_set_busy) */
    gint64 priority; /* while queued */
    bool killing;    /* somebody waits until its process may be killed, or for its end after that */
    bool unread;     /* its file has changed since it was read last */
    char *livelock;  /* of the process that is responsible for it; NULL: none known */
    struct job *live; /* what the job file said last, without a final state that is not on record;
                         NULL: the record */
    char *doom; /* why it can never start: a dependency ended otherwise than wanted; NULL: it can */
    enum job_state doom_state; /* what it ends in then */
    char *held; /* why it is set aside beside its turn and dependencies (hold.h); NULL: it is not */
    guint64 held_by;      /* the job behind which that is for locks; 0: none */
    gint64 held_at_us;    /* wall time since which it has been held back, whatever for; 0: never */
    gint64 held_since_ms; /* boot time since which that is for locks; 0: it never was */
    GPtrArray *locks;     /* what it will ask for, as last predicted; hold.c's */
    guint locks_age;

    /* private to queue.c */
    GSequenceIter *ready;
    gint64 due_us;      /* jobs start in this order */
    GArray *dependents; /* struct dependent: jobs that wait for this one */
    guint unmet;        /* dependencies that have not ended */
    char *request;      /* its request id; NULL: none */
};

struct queue;

struct queue *queue_new(void);
void queue_free(struct queue *queue);

/* Takes in a committed record: a new job, or one that changed. `live` and the state follow; a final
 * state never changes again. Returns true if the visible state changed or the job is new. */
bool queue_put(struct queue *queue, const struct job *record);
/* The record is gone from the store. */
void queue_forget(struct queue *queue, guint64 id);
/* Takes in what a running job's file says; a final state in it is not shown before it is on record
 * (SAF-30). `file` is stolen. True if anything may have changed for clients. */
bool queue_put_live(struct queue *queue, struct queue_job *job, struct job *file);

struct queue_job *queue_find(const struct queue *queue, guint64 id);
/* Ids of all jobs, ascending; array of guint64. */
GArray *queue_ids(const struct queue *queue);
/* Ids of the jobs in a phase other than QUEUED and ENDED, ascending. */
GArray *queue_active_ids(const struct queue *queue);
void queue_set_phase(struct queue *queue, struct queue_job *job, enum job_phase phase);
/* While busy a job is neither started nor canceled. */
void queue_set_busy(struct queue *queue, struct queue_job *job, bool busy);
/* Jobs that hold a slot: starting or running. */
guint queue_active(const struct queue *queue);
guint queue_waiting(const struct queue *queue);

/* The job that starts next among those whose dependencies are met and that are not set aside: the
 * most urgent, then the oldest. An hour of waiting counts as much as 12 steps of priority, so
 * nobody starves (LIMIT_PRIORITY_STEP_S). NULL if there is none. */
struct queue_job *queue_next(const struct queue *queue);
/* How many start before it; -1: it is none of those that queue_next() looks at. */
gint queue_place(const struct queue_job *job);
/* `why` (stolen) NULL: it is not set aside any more. */
void queue_set_held(struct queue *queue, struct queue_job *job, char *why);
/* It will never start: it has to be ended in that state. `why` is stolen. */
void queue_doom(struct queue *queue, struct queue_job *job, enum job_state state, char *why);
/* The next job that has to be ended without having started; each is given out once. */
struct queue_job *queue_next_doomed(struct queue *queue);

/* The job that carries a request id, 0 if none. */
guint64 queue_request(const struct queue *queue, const char *request_id);
