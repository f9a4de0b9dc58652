/*
 * Jobs that have been given up, each for one instance (SAF-81): from the moment at which that is
 * noted, whatever such a job has asked or asks of this node about that instance is refused, also
 * what is under way to it or waits here for its turn. Noted by collect.c; asked by node.c for every
 * request, and by guest_lock() again.
 *
 * Kept, synced, in var/node/ended_jobs.json for the epoch of whoever gave them up: jobs of others
 * are refused by their epoch (SAF-06), so they are forgotten when a later one is noted for.
 */
#pragma once

#include "core/node/node_private.h"

struct ended_jobs *ended_jobs_new(void);
void ended_jobs_free(struct ended_jobs *ended);
/* In a task. CORRUPT with the file's name if it is there and cannot be used: a node that has
 * forgotten whom it refuses must not guess. */
bool ended_jobs_load(struct node_core *node, GError **error);

/* In a task: notes those of `subjects` (struct collect_subject) that name a dead job, all in one
 * write; it is on the disk when this returns true. STORAGE: it is not, or the disk has not answered
 * for LIMIT_NOTE_MS, and those jobs are refused all the same as long as this node daemon lives.
 * LIMIT: they would be more than LIMIT_ENDED_JOBS, and none was noted. STALE_EPOCH: a later master
 * has announced itself. */
bool ended_jobs_note(struct node_core *node, const struct epoch_fence_op *op,
                     const GPtrArray *subjects, GError **error);
/* Whether a request of that stamp and job (0: of none) may do anything about the instance;
 * STALE_EPOCH, logged once for each. */
bool ended_jobs_admit(struct node_core *node, struct stamp stamp, guint job, const char *instance,
                      GError **error);
