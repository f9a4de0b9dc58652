/*
 * SubmitJob and SubmitManyJobs: opcodes are checked and completed with their defaults, jobs get
 * their ids in the same transaction that makes them durable, and only then is the id answered
 * (LUX-06, SAF-31).
 */
#pragma once

#include "core/queue/context.h"

/* Both take the request over. */
/* `anyway`: also while the queue is drained. */
void submit_job(struct queue_context *context, struct rpc_request *request, const json_t *ops,
                bool anyway);
void submit_many_jobs(struct queue_context *context, struct rpc_request *request,
                      const json_t *jobs);

/* --- submit_parse.c: what is submitted, without the queue that it comes to --- */

/* A job of these opcodes, which are in the words of a face, checked and completed, without an id
 * yet; NULL with the path of what is wrong. */
struct job *submit_parse(const struct queue_context *context, enum face face, const json_t *ops,
                         GError **error);
