/* Inside of the care for this node's member of etcd: member_care.c (its turns), member_record.c
 * (what is wanted, on disk), member_methods.c (what others ask). */
#pragma once

#include "core/member/member_care.h"
#include "core/member/member_maintenance.h"

#define WHY_LOST                                                                                   \
    "its data is gone: var/etcd is not there; it must not begin anew as the member that it was "   \
    "(SAF-07): remove it from the members and add it as a new one"

struct member_care {
    const struct env *env;
    struct members *members;
    struct task_mutex lock;
    struct member_record *record; /* NULL: no member was ever started here, or it was removed */
    char *why;                    /* the last end or failed start; NULL: all is well */
    guint failures;               /* ends and failed starts since it was settled */
    guint64 restarts;             /* starts after an end that nobody had asked for */
    gint64 running_since_ms;
    guint timer;
    struct member_maintenance upkeep;
    bool in_turn; /* it was started anew: others stay as they are until it is well */
    guint users;  /* the owner, and each task */
    bool ended;
};

/* Ends one use of it: the owner's, or a task's. */
void member_care_release(struct member_care *care);

/* var/node/member.json. `record` is copied, on disk first. */
bool member_care_save(struct member_care *care, const struct member_record *record, GError **error);
bool member_care_save_run(struct member_care *care, bool run, GError **error);
bool member_care_forget(struct member_care *care, GError **error);
/* Leaves NULL if there is none; CORRUPT. */
bool member_care_load(struct member_care *care, GError **error);

/* The member has begun, and its data is not there. */
bool member_care_is_lost(const struct member_care *care);
/* Starts the member that is on record, with the lock held. */
bool member_care_start_process(struct member_care *care, GError **error);
/* Others may do what takes a member away for a while. */
void member_care_give_turn(struct member_care *care);
/* One turn is planned at a time: this one in place of any other; none. */
void member_care_turn_later(struct member_care *care, guint ms);
void member_care_no_turn(struct member_care *care);
