/*
 * LUXI calls that are more than a line of luxi.c. Each takes the request over and answers it, now
 * or later; `args` is the method's record.
 */
#pragma once

#include "core/queue/context.h"

/* --- job_verbs.c: what users ask of a job --- */

/* [whether it worked, a sentence]. */
void call_cancel_job(struct queue_context *context, struct rpc_request *request,
                     const struct luxi_cancel_job_args *args);
void call_change_job_priority(struct queue_context *context, struct rpc_request *request,
                              const struct luxi_change_job_priority_args *args);

/* --- rule_calls.c: rules about jobs (rules.h) --- */

/* The UUID of the new or replaced rule. */
void call_replace_filter(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_replace_filter_args *args);
void call_delete_filter(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_delete_filter_args *args);

/* --- drain_pause.c: what is switched off for a while --- */

void call_set_drain_flag(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_set_drain_flag_args *args);
/* Until when, in seconds since 1970; null: not. */
void call_set_watcher_pause(struct queue_context *context, struct rpc_request *request,
                            const struct luxi_set_watcher_pause_args *args);
