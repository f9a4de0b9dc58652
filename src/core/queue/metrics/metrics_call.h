/*
 * The call QueryMetrics: the document that the metrics of the cluster are taken from, by the rows
 * of proto/metrics/metric.def whose source is `cluster`. What is on record is counted, what has
 * ended was (tally.h), and what nodes said last is added (node_figures.h); of locks, copies and the
 * engine wconfd is asked. What nobody could tell is missing, and so are its metrics.
 */
#pragma once

#include "core/queue/context.h"

/* Takes the request over and answers it later. */
void metrics_call(struct queue_context *context, struct rpc_request *request);
