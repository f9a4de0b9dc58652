/*
 * Half made data that was found without a record, and that no sweep may remove, becomes trash where
 * a person has said so (`recovery_rectify_unstable` = all, RCV-23): what says that it is whole,
 * what somebody has open, and what could not say it, stays. For things.c.
 */
#pragma once

#include "core/watcher/watcher_private.h"

/* In a task. `found`: struct stored_data of that back end (UUID) that were told before this pass;
 * members look at each of them once more. */
void things_discard(const struct watcher *watcher, const char *backend, const GPtrArray *found);
/* The same for `recovery plan`: a row (recovery_plan.h) for each that would be discarded. False:
 * the process is killed. */
bool things_discard_plan(const struct watcher *view, json_t *rows);
