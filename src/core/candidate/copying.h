/*
 * Keeps a candidate's copy up to date from the master's wconfd (docs/design/mastership.md, "The
 * copy"): one task that asks, applies, asks again. What it asks with is durable here, so the
 * question is the acknowledgement.
 */
#pragma once

#include "proto/copy.h"
#include "proto/env.h"

struct copying;

/* `changed` comes from the loop whenever what copying_state() says has changed. May be NULL. */
struct copying *copying_new(const struct env *env, struct copy *copy, void (*changed)(void *data),
                            void *data);
void copying_start(struct copying *copying);
/* From the next start on it asks this node's own wconfd, which is the master. */
void copying_own(struct copying *copying);
/* The copy is not touched any more when it returns, unless a call of its is on its way to the disk:
 * `copying_stop` in a task waits for that too. A question that waits for its answer is given up. */
void copying_free(struct copying *copying);
bool copying_stop(struct copying *copying);

struct copying_state {
    gint64 contact_ms; /* boot clock, of the master's last answer; -1: none yet */
    const char *why;   /* why it gets nothing, or is being refilled; NULL: all is well */
    bool not_wanted;   /* this node is no candidate */
    bool damaged;      /* `why` says how; it is made anew when a master answers */
};
void copying_state(const struct copying *copying, struct copying_state *ret_state);
/* Somebody has read the copy, and it is damaged. */
void copying_damaged(struct copying *copying, const char *what);
