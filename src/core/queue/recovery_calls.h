/*
 * What people ask of recovery. RetryRecovery: judge anew what was left behind on an instance, or
 * why it is in ERROR (RCV-30); luxid only notes the wish, the watcher's next pass judges.
 * PlanRecovery: what that pass would do, and what hosts show.
 */
#pragma once

#include "core/queue/context.h"

void recovery_calls_retry(struct queue_context *context, struct rpc_request *request,
                          const struct luxi_retry_recovery_args *args);
void recovery_calls_plan(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_plan_recovery_args *args);
