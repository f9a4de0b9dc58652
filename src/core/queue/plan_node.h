/*
 * The call PlanNode: what auto-repair would do if a node failed or were drained
 * (core/repair/forecast.h), from luxid's copy of the configuration and what the nodes say now.
 */
#pragma once

#include "core/queue/context.h"

/* Takes the request over and answers it later. */
void plan_node(struct queue_context *context, struct rpc_request *request,
               const struct luxi_plan_node_args *args);
