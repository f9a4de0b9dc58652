/*
 * Looks at things that may not answer – a guest's monitor, a folder, a tool – each beside the
 * others and with its own time, so that a report is given in bounded time whatever hangs (SAF-90).
 * Used by report.c, for guests and for parts.c.
 *
 * Of one thing there is one look at a time. Looks are numbered: what was asked at some moment is
 * answered by a look of a number that had not begun by then, and by no earlier one.
 */
#pragma once

#include "core/node/node_private.h"

/* Of one thing; embedded in it, zero at first. */
struct look {
    guint64 begun;     /* looks so far */
    guint64 ended;     /* number of the last one that has ended */
    guint64 answered;  /* number of the last one that was answered */
    bool late;         /* the last that was waited for was not answered in time */
    GPtrArray *rounds; /* struct look_round *: who waits; NULL: nobody ever did */
};

/* In a task of its own: looks, and keeps what is seen. False: no answer. */
typedef bool (*look_fn)(struct node_core *node, void *thing);

/* All looks for one question. */
struct look_round;
struct look_round *look_round_new(struct node_core *node);
/* Begins a look at the thing, or at the end of the one that is under way, as it may have seen what
 * is over. The thing must live as long as the node. */
void look_round_add(struct look_round *round, struct look *look, look_fn fn, void *thing);
/* Until all are over, but at most LOOK_WAIT_MS; for those that were late the last time only
 * LOOK_LATE_MS, as they most probably are again. Looks go on without us. False: killed. */
bool look_round_wait(struct look_round *round);
/* The same where nobody waits for a report: up to `ms`, also for those that were late. */
bool look_round_wait_long(struct look_round *round, guint ms);
/* Whether the thing has answered a look that began after it was added. */
bool look_round_answered(const struct look_round *round, const struct look *look);
/* By the boot clock. */
gint64 look_round_now(const struct look_round *round);
void look_round_free(struct look_round *round);

void look_clear(struct look *look);
