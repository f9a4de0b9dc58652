/*
 * What the parts of luxid share: the world, the copy of the configuration, the index of jobs, the
 * committer, and each other. Filled by luxi.c; plain values, valid from luxi_new() to luxi_free().
 */
#pragma once

#include "core/query/query.h"
#include "core/queue/commit.h"
#include "core/queue/queue.h"

struct holds;
struct scheduler;
struct tracker;
struct waiters;
struct watches;
struct archiver;
struct tally;
struct node_figures;

struct queue_context {
    const struct env *env;
    struct follow *follow;
    struct queue *queue;
    struct committer *committer;
    struct scheduler *scheduler;
    struct holds *holds;
    struct tracker *tracker;
    struct waiters *waiters;
    struct watches *watches;
    struct archiver *archiver;
    struct tally *tally;
    struct node_figures *node_figures;
    GHashTable *starting; /* set of struct starting: start procedures under way (start.c) */
    char *livelock;       /* luxid's own lock file */
    guint begins;         /* jobs on their way to the store that are submitted as started */
    bool ends;            /* no job is started any more (luxi_drain) */
    guint64 happened;     /* serial up to which no later end of a job or decision is known */
    guint most_queued;    /* LIMIT_QUEUED_JOBS, but in tests */
    struct queries queries;
};

/* Its queries, when all else is filled. */
void context_init_queries(struct queue_context *context);

/* The committed record of a job; NULL if there is none. Valid until its next change. */
const struct job *context_record(const struct queue_context *context, guint64 id);
/* What clients see of it: the running job's file if it is ahead of the record. */
const struct job *context_view(const struct queue_context *context, guint64 id);
/* How many jobs may be under way at once. */
guint context_slots(const struct queue_context *context);
guint64 context_now_us(const struct queue_context *context);
