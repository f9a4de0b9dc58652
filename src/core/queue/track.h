/*
 * Jobs under way: luxid follows their files and watches their lock files, and settles what has
 * become of those whose process is gone (LUX-33 to LUX-36, SAF-30). The lock file alone decides on
 * life and death.
 */
#pragma once

#include "core/queue/context.h"

struct tracker *tracker_new(struct queue_context *context);
void tracker_free(struct tracker *tracker);
/* In a task, before any job is started: sets damaged job files aside, takes up the jobs that an
 * earlier luxid has left running, settles the others. */
void tracker_start(struct tracker *tracker);

/* The job's process has been confirmed; its lock file is job->livelock. */
void tracker_follow(struct tracker *tracker, struct queue_job *job);
/* The record of a queued job says that an older mastership has started it: settles that. */
void tracker_take_up(struct tracker *tracker, struct queue_job *job);
/* The job's record has become final. */
void tracker_recorded(struct tracker *tracker, guint64 id);

/* Ends a job on record: all unfinished opcodes in `state` with [class, [message, code]] as result.
 * Waits, and tries again until the record is final; false if luxid is killed. */
bool tracker_end_job(struct queue_context *context, guint64 id, enum job_state state,
                     enum fettle_error code, const char *message);
/* Final state on record and no process any more: the slot is free, the job file is removed. In a
 * task. */
void tracker_finish(struct queue_context *context, guint64 id);
