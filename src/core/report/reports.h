/*
 * What node daemons say right now: each is asked once for its report, all at the same time, and
 * what they answer is one index: node -> report, instance -> guest, replica -> images, and who has
 * refused, with which error. Asked by luxid for a query or a forecast, by the watcher in each pass,
 * by jobs.
 */
#pragma once

#include "core/config/follow.h"

enum report_state {
    REPORT_GIVEN,
    REPORT_REFUSED,    /* with an error: it is there, and tells nothing (SAF-91) */
    REPORT_UNREADABLE, /* it has answered, and not with a report: to the watcher that is silence */
    REPORT_SILENT,     /* or it was not asked */
    REPORT_OFFLINE,    /* on record, so it was not asked */
};

struct reports;

/* In a task. `nodes`: UUIDs (char *), asked in that order; NULL: all on record. None is waited for
 * longer than LIMIT_REPORT_WAIT_MS. Never fails; NULL only if the process is killed. */
struct reports *reports_ask(const struct env *env, struct follow *follow, const GPtrArray *nodes);
/* The same for a job, which acts on the answers: what was well a moment ago is looked at anew for
 * it, and each is waited for as long as the method allows. */
struct reports *reports_ask_to_act(const struct env *env, struct follow *follow,
                                   const GPtrArray *nodes, struct stamp stamp, guint job);
void reports_free(struct reports *reports);

/* What is returned below lives as long as `reports`; where that is NULL, nobody was asked. */

/* The reports (const struct node_report *) in the order in which they were asked for; NULL: none
 * were. */
const GPtrArray *reports_list(const struct reports *reports);
/* The report of a node, by whom was asked, whatever it calls itself; NULL: it has given none … */
const struct node_report *reports_of(const struct reports *reports, const char *node);
/* … for this reason. */
enum report_state reports_state(const struct reports *reports, const char *node);
/* The error with which a node has answered, or what is wrong with its report; NULL: neither. */
const char *reports_refusal(const struct reports *reports, const char *node);
/* The same of all: node UUID -> that text, for placement; NULL: none were asked. */
GHashTable *reports_refusals(const struct reports *reports);
/* What that report says first of an instance; NULL: nothing, or there is none. */
const struct guest_report *reports_guest(const struct reports *reports, const char *node,
                                         const char *instance);
/* The disks of the instance that have an image of that replica there, as in record image_set. False
 * without an answer: a node of another version may not say which it has, and disks that do not
 * answer say nothing. That is no news of missing ones. */
bool reports_images(const struct reports *reports, const char *node,
                    const struct instance *instance, const char *replica, guint64 *ret_disks);
