/*
 * One instance in one pass of auto-repair: what is seen of it, its tags, and how they are changed.
 * Shared by the two halves of a pass, repair_triage.c and repair_step.c.
 */
#pragma once

#include "core/repair/repair_private.h"

#define REPAIR_AUTHOR "watcher/repair"

/* A tag of a repair; of a pending one all copies. */
struct record_tag {
    struct repair_tag tag;
    GPtrArray *texts; /* char *: every copy of it, to be replaced together */
};

/* Copies throughout: the configuration changes while a commit or submission waits. */
struct repair_case {
    struct instance *instance;
    struct watched *watched;
    struct repair_policy policy;
    struct repair_plan plan;
    const char *doubt;  /* why it may be broken although nothing certain says so; NULL: it is not */
    GPtrArray *pending; /* struct record_tag *: oldest first (ARP-36), one per id */
    GPtrArray *results; /* struct record_tag *: oldest first */
    bool failed;        /* a failure result stands (ARP-59) */
};

/* NULL if there is no such instance any more. */
struct repair_case *repair_case_examine(struct watcher *watcher, const char *uuid);
void repair_case_free(struct repair_case *subject);
/* Whether there is nothing at all to think about: healthy, not suspended, no repair open, no
 * record that says anything else. Cheap, because nearly all instances are well nearly always. */
bool repair_case_is_well(struct watcher *watcher, struct repair_policies *policies,
                         const struct instance *instance);
/* A mark over which a failover goes: nothing is half made. */
bool repair_case_is_about_power(enum task_state mark);
/* Whether a job is at work on it. What a dead job left on an online node is settled first
 * (core/recovery/), and a migration that died in the middle always; the rest on a dead node only
 * the repair can. */
bool repair_case_at_work(struct watcher *watcher, const struct instance *instance);

/* A record with the policy, the evidence and the active repair filled in. */
struct decision *repair_case_decide(const struct repair_case *subject, enum verdict verdict,
                                    const char *state, const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Says in a record of failure why nothing else is tried in place of the step that failed. */
void repair_case_reject_others(const struct repair_case *subject, struct decision *decision);

/* --- changes of tags, for one commit --- */

void repair_case_put_tag(const struct watcher *watcher, const struct repair_case *subject,
                         const char *text, GPtrArray *changes);
/* Adds a job (0: none) to the pending tag: a new copy in, the old ones out (ARP-31, ARP-32). */
void repair_case_note_job(const struct watcher *watcher, const struct repair_case *subject,
                          const struct record_tag *record, guint64 job, GPtrArray *changes);
/* A pending tag becomes a result. */
void repair_case_conclude(const struct watcher *watcher, const struct repair_case *subject,
                          const struct record_tag *record, enum repair_outcome outcome,
                          GPtrArray *changes);
/* The newest successes and enoperms stay, `added` new ones among them; failures are a
 * person's to remove (ARP-60). */
void repair_case_trim_results(const struct watcher *watcher, const struct repair_case *subject,
                              guint added, GPtrArray *changes);

/* --- the two halves --- */

/* repair_triage.c: brings it to pending as far as its policy allows; returns whether it has a
 * pending repair that may go on. */
bool repair_triage(struct watcher *watcher, struct repair_case *subject, GPtrArray *changes);
/* repair_step.c: one step further with the active pending repair. What a wait puts on record is
 * added to `changes`, which the caller commits; everything else is committed at once. */
void repair_step_take(struct watcher *watcher, struct repair_case *subject, GPtrArray *changes);
