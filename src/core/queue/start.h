/*
 * Starting a job process, step by step as docs/design/architecture.md 6 and LUX-17 to LUX-29 say:
 * `started` on record, luxid's own lock file in the job file, the starter, its lock file in the job
 * file, the confirmation. A starter that ends before the confirmation ends the job in error, with
 * nothing run; after it luxid does nothing (LUX-24).
 */
#pragma once

#include "core/queue/context.h"

struct starting;

/* Begins the procedure for a queued job, which thereby takes a slot. Comes back to the tracker when
 * the job runs or has ended; if the job cannot be recorded as started it is queued again. */
void start_job(struct queue_context *context, struct queue_job *job);
/* Writes into a job's record that it is started, by the mastership of the transaction. */
void start_mark(const struct queue_context *context, const struct commit_batch *batch,
                struct job *job);
/* A record that came with the change stream says that the job is started, and luxid has done no
 * more than that: the job has been submitted as started, or a commit whose fate was unknown has
 * been made after all. The procedure goes on from there. `fresh`: nobody has known the job before;
 * else nothing is done unless it was queued. */
void start_if_recorded(struct queue_context *context, struct queue_job *job, bool fresh);
/* Frees what procedures that a kill has cut short left behind. */
void start_clear(struct queue_context *context);
