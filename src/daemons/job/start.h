/*
 * What a process that the nursery has forked does before it is a job's (architecture.md 6): it
 * makes and locks the job's lock file, sends "NAME PID START_TICKS\n" over the channel to luxid,
 * and waits for one byte. If the channel ends before that, the job does not start.
 */
#pragma once

#include "io/livelock.h"

/* The lock file, whose name has been told; SIGTERM is held back from then on until the job listens.
 * CANCELED: luxid is gone. */
struct livelock *start_named(const struct node_paths *paths, guint64 job, int channel,
                             GError **error);
/* Waits for the confirmation. False, CANCELED: luxid did not give it. */
bool start_confirmed(guint64 job, int channel, GError **error);
