/*
 * The duties of the watcher's loop (core/watcher/watcher.h), in their order: for the daemon and for
 * tests, which hand them over.
 */
#pragma once

#include "core/recovery/recovery_plan.h"

extern const struct watcher_duties repair_duties;

/* What recovery would do next, as one pass over that copy of the configuration would find it
 * (core/recovery/recovery_plan.h). In a task; NULL: the process is killed. */
json_t *repair_plan_recovery(const struct env *env, struct follow *follow,
                             const struct recovery_question *question);
