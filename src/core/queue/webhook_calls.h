/*
 * The calls of webhooks (docs/design/outside.md, "Webhooks"): who wants events, and how that goes;
 * what has happened, in the order of serials; and, of the REST daemon alone, what it is to deliver
 * and how far it is. Each takes the request over and answers it, now or later.
 */
#pragma once

#include "core/queue/context.h"

void webhook_calls_query(struct queue_context *context, struct rpc_request *request);
void webhook_calls_take(struct queue_context *context, struct rpc_request *request);
void webhook_calls_happened(struct queue_context *context, struct rpc_request *request,
                            const struct luxi_query_happened_args *args);
void webhook_calls_keep(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_keep_webhook_marks_args *args);

/* --- webhook_happened.c --- */

/* Ended jobs, decisions and events that came after that place, oldest first, and whether there are
 * more than `most`. */
json_t *webhook_happened(const struct config *config, guint64 serial, const char *after,
                         const GPtrArray *patterns, guint most, bool *ret_more);
/* Whether an object is one of those: an ended job, a decision or an event. */
bool webhook_happens(const struct config *config, const char *kind, const char *key);
