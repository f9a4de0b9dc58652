/*
 * What a repair has done so far, from the jobs that its tag and their request ids name: which steps
 * succeeded, what failed since. For repair_step.c.
 */
#pragma once

#include "core/repair/repair_case.h"

struct repair_history {
    bool under_way;
    bool blank;     /* the last job broke off while it made disks anew */
    guint steps;    /* that succeeded */
    guint failures; /* since the last success */
    guint tries;    /* of these, those that count: not for lack of room or of a way between nodes */
    guint vain;     /* jobs that do not count, the last ones in a row */
    guint64 job;    /* the last one; 0: none */
    gint64 ended_us; /* when that one ended, in microseconds since 1970 */
    enum job_outcome last;
    char *step;            /* what that one was to do, as in its request id; NULL: nobody knows */
    char *message;         /* of the last failure */
    GHashTable *failed_on; /* UUID of a node that a failed job names -> "failed it in job 17" */
    bool node_failed;      /* the last job did, and named one */
};

/* Adds the jobs that carry the repair's id and are not in its list: submitted just before a crash
 * (A-6). */
void repair_find_lost_jobs(struct watcher *watcher, struct repair_tag *tag);
struct repair_history repair_history_read(const struct watcher *watcher,
                                          const struct repair_tag *tag);
void repair_history_clear(struct repair_history *history);
