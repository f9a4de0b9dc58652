/*
 * What a process that the nursery has forked does before it is a job's (architecture.md 6): it
 * makes and locks the job's lock file, sends "NAME PID START_TICKS\n" over the channel to luxid,
 * and waits for one byte. If the channel ends before that, the job does not start.
 */
#pragma once

#include "io/livelock.h"

/* Returns the lock file once the job may begin: the channel is closed then, and SIGTERM is held
 * back until the job listens. `channel` is closed in any case. CANCELED: luxid did not confirm. */
struct livelock *start_job(const struct node_paths *paths, guint64 job, int channel,
                           GError **error);
