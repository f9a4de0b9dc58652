/*
 * What is due in the upkeep of a member of etcd, which etcd leaves to its users: old revisions are
 * dropped by the leader's node each hour and when a million were made; a file that is more than
 * half free is rewritten by its own node. One that has reached its limit (alarm NOSPACE, with which
 * no member takes changes) is made smaller at once, and the alarm is taken back when it fits. Pure:
 * the caller looks, asks here, acts.
 */
#pragma once

#include "proto/members.h"
#include "proto/records.h"

struct member_maintenance {
    guint64 limit;          /* of its file */
    bool leads;             /* the member led at the last look: what follows is known */
    gint64 compacted_ms;    /* boot clock; when it was dropped to … */
    guint64 compacted;      /* … this revision, or when the count began there */
    guint64 seen;           /* revision at the last look */
    bool defragmented;      /* once, at … */
    gint64 defragmented_ms; /* … this time */
    bool full;              /* it has reached its limit, at … */
    gint64 full_ms;         /* … this time */
    bool tried;             /* since then room was made, at … */
    gint64 tried_ms;        /* … this time the last time */
    bool waits;             /* for the other members, as was said */
};

struct member_maintenance_due {
    guint64 compact; /* what is older than this revision is to be dropped; 0: nothing */
    bool defragment;
    bool urgent; /* the file has reached its limit: no member takes changes, so not even a turn */
    bool disarm; /* it has room again, and its alarm NOSPACE is to be taken back */
};

/* After a look at `now_ms` that found the member as `status`; remembers what it needs for the next.
 * Nothing is due from a member that is not healthy. What is dropped is older than the last look:
 * readers of many pages, who read at one revision, are faster than that. */
struct member_maintenance_due member_maintenance_look(struct member_maintenance *upkeep,
                                                      const struct member_status *status,
                                                      gint64 now_ms);
/* Whether a defragmentation that is due may begin at this moment. A member answers nobody
 * meanwhile, so all others have to be well. With a file at its limit no member takes changes, and
 * nobody can take a turn: the one with the lowest id goes first. But room is worth more then than a
 * majority: who has waited for so many turns as it has members before it, and one, goes on in any
 * case. */
bool member_maintenance_may_defragment(const struct member_maintenance *upkeep, bool urgent,
                                       const struct members_others *others, gint64 now_ms);
/* The compaction that was due is done; so is the defragmentation, or it cannot be for now. */
void member_maintenance_compacted(struct member_maintenance *upkeep, guint64 revision,
                                  gint64 now_ms);
void member_maintenance_defragmented(struct member_maintenance *upkeep, gint64 now_ms);
