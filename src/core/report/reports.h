/*
 * What node daemons say right now, for one query: each node is asked once, all at the same time,
 * and none is waited for longer than LIMIT_REPORT_WAIT_MS.
 */
#pragma once

#include "core/config/follow.h"

enum report_state {
    REPORT_ANSWERED,
    REPORT_REFUSED, /* with an error: it is there, and tells nothing (SAF-91) */
    REPORT_SILENT,
    REPORT_OFFLINE,
};

struct reports;

/* In a task. `nodes`: set of node UUIDs (char * keys, borrowed). Never fails; NULL only if the
 * process is killed. */
struct reports *reports_ask(const struct env *env, struct follow *follow, GHashTable *nodes);
void reports_free(struct reports *reports);
/* The report of a node; NULL with the reason in `ret_state` (SILENT too for a node that was not
 * asked). */
const struct node_report *reports_find(const struct reports *reports, const char *node,
                                       enum report_state *ret_state);
/* The error with which a node has answered; NULL: it has not. */
const char *reports_refusal(const struct reports *reports, const char *node);
/* What that report says first of an instance; NULL: nothing, or there is none. */
const struct guest_report *reports_guest(const struct reports *reports, const char *node,
                                         const char *instance);
