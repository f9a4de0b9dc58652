/*
 * What the parts of auto-repair share: what they remember of instances, and their steps through one
 * pass. Only core/repair/ includes this.
 */
#pragma once

#include "core/repair/plan.h"
#include "core/repair/policy.h"
#include "core/repair/repair_room.h"
#include "core/watcher/tries.h"

/* What the watcher remembers of one instance between passes. Nothing here is needed after a
 * restart. */
struct watched {
    unsigned state; /* of the repair machine */
    guint64 restart_generation;
    struct tries restarts;
    char *gone_replica;       /* whose images its node does not have … */
    guint64 gone_pass;        /* … since this pass */
    struct suspicion disks;   /* of the disks that its guest runs from … */
    guint64 disks_generation; /* … in this generation … */
    guint64 disks_errors;     /* … with so many errors, when it was asked last */
};

#define TEND_AUTHOR "watcher/tend" /* of what is on record about restarts */

struct repair {
    GHashTable *instances; /* uuid -> struct watched; only those that something was about */
    struct repair_policies *policies; /* of this pass's look at all instances; NULL: none began */
    struct placement_sums *sums;      /* of this pass; NULL: not needed yet */
    gint64 returned_ms; /* boot clock: when a node that had been silent answered again */

    /* What only the file of a duty sees into. */
    struct repair_scan *scan;
    struct n1_check *n1;
    struct recovery *recovery; /* core/recovery/ … */
    struct things *things;     /* … of what no record knows */
    struct stored *stored;     /* … of what is stored */
};

struct watched *watcher_watched(struct watcher *watcher, const char *instance);

/* The state machine of section 4; suspension is a property of the policy, not a state. */
enum repair_state { REPAIR_HEALTHY, REPAIR_NEEDED, REPAIR_PENDING, REPAIR_FAILED, REPAIR_STATES };
void watcher_move(struct watched *watched, const char *instance, enum repair_state to,
                  const char *why);

/* --- scan.c: tags of all objects, advice, records of what exists no more --- */
struct repair_scan *repair_scan_new(void);
void repair_scan_free(struct repair_scan *scan);
/* The copy of the configuration has changed, as follow.h tells it. */
void repair_scan_changed(struct repair_scan *scan, const GPtrArray *changes);
void watcher_scan(struct watcher *watcher);

/* --- evidence.c: what nodes say, as far as it can be a cause of repair --- */

/* Takes in the reports of this pass. */
void watcher_evidence_update(struct watcher *watcher);
/* Whether an object was changed after the reports of this pass were asked for: they prove nothing
 * about it, and it was not there in the pass before. */
bool watcher_newer_than_reports(const struct watcher *watcher, const char *kind, const char *key);
/* What is seen of an instance. Bad news count only if an earlier pass has had them too, failed
 * disks when they are certain. */
struct repair_evidence watcher_evidence(struct watcher *watcher, const struct instance *instance,
                                        const struct replica *replica);
/* Why what is seen of it cannot be called well although nothing is certain to be broken: a
 * sentence; NULL: it can. */
const char *watcher_evidence_doubt(const struct watcher *watcher, const struct instance *instance,
                                   const struct replica *replica);

/* Whether it is to be failed over because its own disks have failed, or because its node can start
 * nothing: then it is not started where it is, and what a dead job has left there is nothing to
 * wait for. */
bool watcher_leaves_primary(struct watcher *watcher, const struct instance *instance);

/* --- failed_disks.c: whether disks have failed, those with the state of a node too --- */

/* Takes in what the reports of this pass say of disks. */
void watcher_disks_update(struct watcher *watcher);
/* Fills in which disks of an instance are certain to have failed. Borrowed, for this pass. */
void watcher_disks_tell(const struct watcher *watcher, const struct instance *instance,
                        const struct replica *replica, struct repair_evidence *sight);
/* Whether some may have failed, and it is not certain yet. */
bool watcher_disks_doubted(const struct watcher *watcher, const struct instance *instance,
                           const struct replica *replica);
/* Whether the primary's node says that the disks which it would be started from fail, however short
 * a time it has said so. */
bool watcher_disks_fail(const struct watcher *watcher, const struct instance *instance);
/* Whether it is in this very pass that those it runs from were found to have failed. */
bool watcher_disks_seen_now(const struct watcher *watcher, const struct instance *instance);
/* Why a node can start nothing, for long enough to be sure of it; it continues the node's name.
 * Borrowed, for this pass; NULL: it is not known to. */
const char *watcher_state_failed(const struct watcher *watcher, const char *node);
/* Whether the node has said so in this very pass. */
bool watcher_state_seen_now(const struct watcher *watcher, const char *node);

/* --- clock.c: the wall clock of this node is set (SAF-93) --- */
void watcher_tell_clock(struct watcher *watcher);

/* --- fullness.c: disks that fill up, and guests that stand still because of it --- */
void watcher_tell_fullness(struct watcher *watcher);
/* Whether an earlier pass has put on record that it stands still for lack of room. */
bool watcher_told_no_room(const struct watcher *watcher, const struct instance *instance);
/* Enough for a guest that finds none elsewhere. */
bool watcher_node_has_room(const struct node_report *report);

/* --- n1_check.c: whether each node's loss could be taken (ARP-71) --- */
struct n1_check *n1_check_new(void);
void n1_check_free(struct n1_check *spare);
/* As repair_scan_changed(). */
void n1_check_changed(struct n1_check *spare, const GPtrArray *changes);
/* What the nodes have, as one number: another number, other sizes. */
void n1_check_sizes(struct n1_check *spare, guint64 sizes);
void watcher_n1_check(struct watcher *watcher);

/* --- neighbours.c: who waits for whom --- */
/* Whether a job of a repair is under way for it. */
bool watcher_repair_under_way(const struct watcher *watcher, const struct instance *instance);
/* Why recovery leaves an instance with a mark alone for now (core/recovery/recovery.h). */
char *watcher_keeps_recovery_off(struct watcher *watcher, const struct instance *instance);

/* --- restart.c: guests that should run and do not --- */
bool watcher_in_trouble(struct watcher *watcher, const struct instance *instance);
/* Tends those that were in trouble, by UUID. */
void watcher_tend(struct watcher *watcher, const GPtrArray *uuids);

/* --- repair.c: auto-repair --- */
/* Looks after those that were not simply well, by UUID. */
void watcher_repair(struct watcher *watcher, const GPtrArray *uuids);
