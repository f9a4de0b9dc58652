/*
 * Jobs of masterships that are over, whose processes still run on this node (SAF-06). Nobody does
 * what they ask for any more; that they end is for whoever looks at the host, and so that nothing
 * of theirs is left when the node becomes master again.
 */
#pragma once

#include "proto/env.h"

/* Ends the process of a job by what its file says, if it was started under less than `newest`.
 * Whether it was. */
bool old_jobs_end_one(const struct env *env, const struct job *file, struct stamp newest);
/* All on this node; in a task, while luxid stands by. `newest`: of a mastership that has begun,
 * wherever it is. That this node's wconfd does not call itself the master is no reason: one that
 * was restarted may go on under its epoch, with its jobs (SAF-01). */
void old_jobs_end(const struct env *env, struct stamp newest);
