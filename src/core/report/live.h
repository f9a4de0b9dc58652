/*
 * What node daemons say right now, for one query: each node is asked once, all at the same time,
 * and none is waited for longer than LIMIT_REPORT_WAIT_MS.
 */
#pragma once

#include "core/config/follow.h"

enum live_state {
    LIVE_ANSWERED,
    LIVE_REFUSED, /* with an error: it is there, and tells nothing (SAF-91) */
    LIVE_SILENT,
    LIVE_OFFLINE,
};

struct live;

/* In a task. `nodes`: set of node UUIDs (char * keys, borrowed). Never fails; NULL only if the
 * process is killed. */
struct live *live_fetch(const struct env *env, struct follow *follow, GHashTable *nodes);
void live_free(struct live *live);
/* The report of a node; NULL with the reason in `ret_state` (SILENT too for a node that was not
 * asked). */
const struct node_report *live_report(const struct live *live, const char *node,
                                      enum live_state *ret_state);
/* The error with which a node has answered; NULL: it has not. */
const char *live_refusal(const struct live *live, const char *node);
/* What that report says first of an instance; NULL: nothing, or there is none. */
const struct guest_report *live_guest(const struct live *live, const char *node,
                                      const char *instance);
