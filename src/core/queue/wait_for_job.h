/*
 * WaitForJobChange: calls that wait until fields or the log of a job differ from what the caller
 * knows. They are pushed when the job's record or file changes, never polled.
 */
#pragma once

#include "core/queue/context.h"

struct waiters;

struct waiters *wait_for_job_new(struct queue_context *context);
/* Answers nobody: the process ends. */
void wait_for_job_free(struct waiters *waiters);
/* Takes the request over: answers [values, log entries] at once if there is news, else when there
 * is, "nochange" when the wait is over, null for a job that does not exist. */
void wait_for_job_add(struct waiters *waiters, struct rpc_request *request,
                      const struct luxi_wait_for_job_change_args *args);
/* Something about the job may have changed. */
void wait_for_job_notify(struct waiters *waiters, guint64 id);
