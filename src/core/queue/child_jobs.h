/*
 * Jobs that other jobs ask for: the result of an opcode such as OP_NODE_EVACUATE has `jobs`, a list
 * of lists of opcodes. luxid puts them on record in the very transaction that makes the job's end
 * final, so that none is lost and none comes twice, whoever dies when; in that record each list has
 * become [true, job id] or [false, reason].
 *
 * A job process therefore leaves the commit of such an end to luxid, which finds it in the job file
 * (LUX-35).
 */
#pragma once

#include "core/queue/commit.h"
#include "core/queue/context.h"

/* How many an ended job asks for (op_wants_jobs), and about their size as text. */
guint child_jobs_count(const struct job *job, size_t *ret_bytes);
/* Puts them into the transaction and their ids into the results of `job`. */
void child_jobs_add(struct queue_context *context, struct commit_batch *batch, struct job *job);
