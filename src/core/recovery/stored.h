/*
 * Recovery of what is stored: a volume or a snapshot in a status of work that nobody has – after a
 * restore, a hand in the store – is judged by what a member of its back end shows
 * (docs/design/recovery.md; RCV-73 to 78). A duty of the watcher's loop. It changes records, by
 * `settle_resources`, and no data; one with a row of work is cleanup's (RCV-13).
 */
#pragma once

#include "core/recovery/recovery_plan.h"
#include "core/recovery/stored_sights.h"

struct stored;

struct stored *stored_new(void);
void stored_free(struct stored *stored);
/* In a task: one pass. */
void stored_run(struct stored *stored, struct watcher *watcher);
/* Whether what is counted of a resource still stands. */
bool stored_counts(const struct config *config, const struct stuck *stuck);
/* What the pass would do with one or with all of them, and what members show: rows as those of
 * recovery_plan(). False: the process is killed. */
bool stored_plan(struct watcher *view, const struct recovery_question *question, json_t *rows);
