/*
 * Decides which job starts when: the most urgent first, then the oldest, once the jobs that it
 * depends on have ended as wanted and nothing else holds them back (hold.h), and never more at once
 * than `max_running_jobs` (LUX-12). Jobs that can never start, because a dependency ended otherwise
 * or a rule rejects them, are ended.
 */
#pragma once

#include "core/queue/context.h"

struct scheduler *scheduler_new(struct queue_context *context);
void scheduler_free(struct scheduler *scheduler);
void scheduler_start(struct scheduler *scheduler);
/* Something has changed: looks at the queue at the next turn of the loop. Cheap, any number of
 * times. */
void scheduler_kick(struct scheduler *scheduler);
