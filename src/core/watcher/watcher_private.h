/*
 * What the duties of the watcher share: its state, what one pass sees, what they put on record, how
 * they submit jobs, and what holds them back. Only core/watcher/ and the rooms of its duties
 * include this.
 */
#pragma once

#include "core/config/ages.h"
#include "core/config/decisions.h"
#include "core/config/follow.h"
#include "core/report/reports.h"
#include "core/watcher/watcher.h"

/* A failure that looks have found again and again, one after the other. It is certain after
 * LIMIT_REPAIR_FAULT_S and LIMIT_REPAIR_FAULT_PASSES; a look that finds things well ends it, and
 * one that does not come, or that is none, is neither. */
struct suspicion {
    guint passes;             /* in which it was found; 0: there is none */
    guint64 pass;             /* the last of them */
    gint64 since_ms, last_ms; /* boot clock: of the first and of the last */
    char *text;               /* what the first found; continues the node's name */
};
void suspicion_clear(struct suspicion *suspicion);

struct watcher {
    const struct env *env;
    const struct watcher_duties *duties;
    struct repair *repair; /* what auto-repair keeps (core/repair/repair_private.h) */
    struct follow *follow;
    struct owner *owner;
    struct decisions *decisions;
    struct ages *ages;
    struct reports *reports; /* of this pass; NULL: it has none yet */
    GHashTable *nodes;       /* node uuid -> struct node_memory */
    guint64 pass;            /* number of this pass */
    guint64 reports_serial; /* of the copy when the reports were asked for: newer objects are judged
                               next time */

    /* What only the file of a duty sees into. */
    struct watcher_loop *loop; /* watcher.c */
    struct watcher_brake *brake;
    struct watcher_jobs *jobs;
    struct watcher_promotion *promotion;
    struct watcher_services *services;
};

/* What the watcher remembers of a node between passes. */
struct node_memory {
    gint64 silent_ms;       /* boot clock, since when; 0: it answers, or has never answered us */
    gint64 unheard_ms;      /* by the boot clock, since when it does not answer; 0: it does */
    bool answered;          /* at some time since this watcher started */
    struct suspicion disks; /* that they have failed, by its own trial */
    struct suspicion state; /* that its state cannot be written, so that it can start nothing */
    /* Boot clock: since when disks of it fail, by its trial or by what a guest was answered; 0:
     * they do not. */
    gint64 suspect_ms;     /* perhaps … */
    gint64 failed_ms;      /* … and for certain */
    gint64 services_ms;    /* boot clock: when its services were put on record anew; 0: never */
    guint64 services_pass; /* the last whose commit was to do that */
    guint promotions;      /* jobs that were to make it a master candidate, and failed */
};

/* What one pass sees, with the copy of whoever asks what it would do: nothing is remembered, and
 * nothing may be committed or submitted with it. In a task; NULL: the process is killed. */
struct watcher *watcher_view(const struct env *env, struct follow *follow,
                             const struct watcher_duties *duties);
void watcher_view_free(struct watcher *view);

/* Seconds since 1970. */
gint64 watcher_now(const struct watcher *watcher);
/* What the holder's node says of the guest of an instance; NULL if that node has not reported.
 * `ret_reported` tells a node without this guest from a node without a report. */
const struct guest_report *watcher_guest(const struct watcher *watcher,
                                         const struct instance *instance, bool *ret_reported);
/* Whether that is no guest: what waits for a migration that is on record no more is none either, as
 * its job may have died after the record had moved. `guest` NULL: the node has none. */
bool watcher_guest_absent(const struct instance *instance, const struct guest_report *guest);
/* The node's own name if it is known, and whether it is there and not said to be dead. */
bool watcher_node_online(const struct watcher *watcher, const char *node);
const struct cluster *watcher_cluster(const struct watcher *watcher);
const struct replica *watcher_replica(const struct watcher *watcher,
                                      const struct instance *instance);
/* Adds a decision (stolen) to changes if it is new. */
bool watcher_record(const struct watcher *watcher, struct decision *decision, GPtrArray *changes);
const struct decision *watcher_latest(const struct watcher *watcher, const char *subject,
                                      const char *author);
/* The newest that is an event. */
const struct decision *watcher_latest_event(const struct watcher *watcher, const char *subject,
                                            const char *author);

GPtrArray *watcher_changes_new(void); /* of struct change */
/* Commits tags and decisions, by compare-and-set; a conflict is no fault: the next pass sees what
 * is there now. Nothing to commit is no fault either. */
bool watcher_commit(struct watcher *watcher, GPtrArray *changes);
/* The same as another change of proto/changes.def. */
bool watcher_commit_as(struct watcher *watcher, const char *change, GPtrArray *changes);
/* Changes of many subjects (stolen), each all or nothing, in as few commits as may be; one that is
 * refused does not hold up the others. False if any was refused. */
GPtrArray *watcher_batch_new(void);
void watcher_batch_add(GPtrArray *batch, GPtrArray *changes);
bool watcher_batch_commit(struct watcher *watcher, const GPtrArray *batch);
bool watcher_batch_commit_as(struct watcher *watcher, const char *change, const GPtrArray *batch);

/* Milliseconds to wait after the n-th try: 2 s, 4 s, 8 s, … */
gint64 watcher_pause_ms(guint tries);

#define REPAIR_SHADOW "Shadow mode: " /* how sentences begin that say what would be done */

/* --- brake.c: what holds repair back --- */
struct watcher_brake *watcher_brake_new(void);
void watcher_brake_free(struct watcher_brake *brake);

/* Pulls the storm brake, or puts on record that somebody released it. */
void watcher_brake(struct watcher *watcher);
/* The configuration came from a backup, and nobody has had it compared with the nodes yet. */
bool watcher_is_restored(const struct watcher *watcher);
/* Why the storm brake stops every step, as a sentence; NULL: it is off. Free with g_free(). */
char *watcher_braked(const struct watcher *watcher, const char **ret_next);
/* Why no step of a repair may be submitted now, as a sentence; NULL if one may. `first`: it would
 * be the repair's first; `urgent`: the guest is down until then. */
char *watcher_held_back(struct watcher *watcher, bool first, bool urgent, const char **ret_next);
bool watcher_shadow(const struct watcher *watcher);

/* --- silent_nodes.c: nodes that do not answer --- */
void watcher_tell_silent_nodes(struct watcher *watcher);

/* --- candidates.c: too few master candidates (ARP-71) --- */
struct watcher_promotion *watcher_promotion_new(void);
void watcher_promotion_free(struct watcher_promotion *promotion);
void watcher_tend_candidates(struct watcher *watcher);

/* --- service_records.c: which daemons nodes run, on record --- */
struct watcher_services *watcher_services_new(void);
void watcher_services_free(struct watcher_services *services);
void watcher_register_services(struct watcher *watcher);
/* Whether an object of that kind may be made as far as is seen: not the first of a new kind
 * (objects.def) while a candidate's configuration daemon runs another version, which could not load
 * it. A commit is refused then too (core/wconfd/wconf_followers.c); this asks without one. */
bool watcher_may_make(const struct watcher *watcher, const char *kind);

/* --- jobs.c --- */
struct watcher_jobs *watcher_jobs_new(void);
void watcher_jobs_free(struct watcher_jobs *jobs);

enum job_outcome {
    JOB_UNDER_WAY,
    JOB_SUCCEEDED,
    JOB_NO_ROOM, /* failed for lack of resources: to be waited for */
    JOB_AWAY,    /* failed because nodes do not reach each other: to be waited for too */
    JOB_SAFE,    /* failed, and trying again is safe: it changed nothing, or it died and reality is
                    looked at anew */
    JOB_FAILED,
    JOB_LOST, /* nobody knows it any more */
};
enum job_outcome watcher_job_outcome(const struct watcher *watcher, guint64 job,
                                     char **ret_message);
/* Whether it has a final state. */
bool watcher_job_ended(const struct job *job);
/* Whether it may have changed anything without having reached its end: it died, or one of its
 * opcodes succeeded before another failed. */
bool watcher_job_broke_off(const struct watcher *watcher, guint64 job);
/* The step of a repair that a request id stands for, such as "failover"; NULL if it is no such id.
 * Free with g_free(). */
char *watcher_request_step(const char *request_id);
/* Of the jobs on record whose request id is `prefix`/NUMBER the one with the highest number; 0 and
 * number 0: there is none. So a watcher that was started anew counts on from the one before: under
 * a number of that it would be given the old job, and no new one (SAF-31). */
guint64 watcher_last_try(const struct watcher *watcher, const char *prefix, guint64 *ret_number);
/* Submits one job under a request id, so that a repetition after a crash gives the same job
 * (SAF-31). `opcodes` is a list, stolen. 0 on error, with the reason. */
guint64 watcher_submit(struct watcher *watcher, json_t *opcodes, const char *request_id,
                       const char *reason, gint64 reason_time, GError **error);
/* Puts the decision on record, then submits; the order makes a crash in between repeat the same
 * submission. `decision` and `opcodes` are stolen; `since` in seconds since 1970. 0: it did not
 * happen, which is logged, and is to be tried again. */
guint64 watcher_act(struct watcher *watcher, struct decision *decision, json_t *opcodes,
                    const char *request_id, gint64 since);

/* Ids of the jobs of a repair, in order; NULL if there are none. Borrowed, for this pass. */
const GArray *watcher_repair_jobs(struct watcher *watcher, const char *repair_id);
/* A pass begins: they are looked for anew. */
void watcher_jobs_begin(struct watcher *watcher);
/* How many repairs are under way, and how many began within the last hour; with the steps of this
 * pass that were counted since. */
void watcher_count_repairs(struct watcher *watcher, guint *ret_running, guint *ret_begun);
/* Counts a step that was submitted; `first`: it is its repair's first. */
void watcher_count_step(struct watcher *watcher, bool first);
