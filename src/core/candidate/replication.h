/*
 * Keeps a candidate's copy up to date from the master's wconfd (docs/design/mastership.md, "The
 * copy"): one task that asks, applies, asks again. What it asks with is durable here, so the
 * question is the acknowledgement.
 */
#pragma once

#include "proto/copy.h"
#include "proto/env.h"

struct replication;

/* `changed` comes from the loop whenever what replication_state() says has changed. May be NULL. */
struct replication *replication_new(const struct env *env, struct copy *copy,
                                    void (*changed)(void *data), void *data);
void replication_start(struct replication *replication);
/* From the next start on it asks this node's own wconfd, which is the master. */
void replication_own(struct replication *replication);
/* The copy is not touched any more when it returns, unless a call of its is on its way to the disk:
 * `replication_stop` in a task waits for that too. A question that waits for its answer is given
 * up. */
void replication_free(struct replication *replication);
bool replication_stop(struct replication *replication);

struct replication_state {
    gint64 contact_ms; /* boot clock, of the master's last answer; -1: none yet */
    const char *why;   /* why it gets nothing, or is being refilled; NULL: all is well */
    bool not_wanted;   /* this node is no candidate */
    bool damaged;      /* `why` says how; it is made anew when a master answers */
};
void replication_state(const struct replication *replication, struct replication_state *ret_state);
/* Somebody has read the copy, and it is damaged. */
void replication_damaged(struct replication *replication, const char *what);
