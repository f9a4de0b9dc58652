/*
 * What comes next of a pending repair, and why: judged from what is seen, changing nothing
 * (requirements-auto-repair.md, section 5). For repair_step.c, which does it.
 */
#pragma once

#include "core/repair/history.h"

enum repair_act {
    REPAIR_ACT_WAIT_JOB, /* a job of its own is under way */
    REPAIR_ACT_WAIT,
    REPAIR_ACT_HEALTHY, /* the end: success … */
    REPAIR_ACT_FAILURE, /* … or failure … */
    REPAIR_ACT_ENOPERM, /* … or more is needed than it is allowed */
    REPAIR_ACT_STEP
};

struct repair_next {
    enum repair_act act;
    char *what, *when;       /* for the record: the reason, and when it is looked at next or NULL */
    struct repair_goal goal; /* of a step: where it would lead */
};

/* `any_job`: a job of any pending repair of this instance is under way. */
struct repair_next repair_next_judge(struct watcher *watcher, const struct repair_case *subject,
                                     const struct record_tag *record,
                                     const struct repair_history *history, bool any_job);
void repair_next_clear(struct repair_next *next);
/* What a submitted step will take counts for those that come after it in this pass. */
void repair_next_take_room(struct watcher *watcher, const struct repair_case *subject,
                           const struct repair_goal *goal);
