/* Inside of the care for this node's member of etcd: keeper.c (its turns), keeper_record.c (what is
 * wanted, on disk), keeper_methods.c (what others ask). */
#pragma once

#include "core/member/keeper.h"
#include "core/member/upkeep.h"

#define WHY_LOST                                                                                   \
    "its data is gone: var/etcd is not there; it must not begin anew as the member that it was "   \
    "(SAF-07): remove it from the members and add it as a new one"

struct keeper {
    const struct env *env;
    struct members *members;
    struct task_mutex lock;
    struct member_record *record; /* NULL: no member was ever started here, or it was removed */
    char *why;                    /* the last end or failed start; NULL: all is well */
    guint failures;               /* ends and failed starts since it was settled */
    guint64 restarts;             /* starts after an end that nobody had asked for */
    gint64 running_since_ms;
    guint timer;
    struct upkeep upkeep;
    guint users; /* the owner, and each task */
    bool ended;
};

/* Ends one use of it: the owner's, or a task's. */
void keeper_release(struct keeper *keeper);

/* var/node/member.json. `record` is copied, on disk first. */
bool keeper_save(struct keeper *keeper, const struct member_record *record, GError **error);
bool keeper_save_run(struct keeper *keeper, bool run, GError **error);
bool keeper_forget(struct keeper *keeper, GError **error);
/* Leaves NULL if there is none; CORRUPT. */
bool keeper_load(struct keeper *keeper, GError **error);

/* The member has begun, and its data is not there. */
bool keeper_is_lost(const struct keeper *keeper);
/* Starts the member that is on record, with the lock held. */
bool keeper_start_process(struct keeper *keeper, GError **error);
/* One turn is planned at a time: this one in place of any other; none. */
void keeper_turn_later(struct keeper *keeper, guint ms);
void keeper_no_turn(struct keeper *keeper);
