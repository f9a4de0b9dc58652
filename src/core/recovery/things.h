/*
 * Things without a record: what hosts have that no record knows is told once when it is seen, and
 * once when it is gone, and left alone (docs/design/recovery.md; RCV-26). A duty of the watcher's
 * loop.
 */
#pragma once

#include "core/watcher/watcher.h"

struct things;

struct things *things_new(void);
void things_free(struct things *things);
/* In a task: one pass over all hosts that have given a report in it. */
void things_run(struct things *things, struct watcher *watcher);
