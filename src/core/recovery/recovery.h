/*
 * Recovery of stuck tasks: what a job that died has left of an instance is settled by what hosts
 * really show, record first, jobs second (docs/design/recovery.md; RCV-01 to 45). A duty of the
 * watcher's loop: it changes records, by compare-and-set under the instance's lock, and has
 * ordinary jobs finish what is half made. It calls nothing of a node but `collect`.
 */
#pragma once

#include "core/watcher/watcher.h"

struct recovery;

/* Why an instance is another healer's for now, continues "it waits: "; NULL: it is not (RCV-42).
 * Free with g_free(). */
typedef char *(*recovery_waits_fn)(struct watcher *watcher, const struct instance *instance);

struct recovery *recovery_new(recovery_waits_fn waits);
void recovery_free(struct recovery *recovery);
/* Whether there is anything to look at: cheap, of every instance in every pass. */
bool recovery_concerns(const struct watcher *watcher, const struct instance *instance);
/* In a task: one pass over those (UUIDs, char *). */
void recovery_run(struct recovery *recovery, struct watcher *watcher, const GPtrArray *uuids);
/* Whether a job is under way that finishes what another has left of it. */
bool recovery_finishes(const struct recovery *recovery, const struct watcher *watcher,
                       const char *instance);
