/*
 * luxid's thinking: the LUXI methods, the job queue, the scheduler, starting job processes,
 * following job files, and queries on the configuration and live data. fettle-luxid wires it to the
 * LUXI socket; the simulator to its own.
 */
#pragma once

#include "proto/env.h"

struct luxi;

struct luxi *luxi_new(const struct env *env);
/* At most so many jobs are queued at once, in the place of LIMIT_QUEUED_JOBS; for tests. */
void luxi_limit_queue(struct luxi *luxi, guint jobs);
/* At most so many archived jobs are read for one query, in the place of LIMIT_ARCHIVE_ROWS; the
 * same. */
void luxi_limit_archive(struct luxi *luxi, guint jobs);
/* In a task: follows the configuration, reconciles job files with records, starts scheduling. */
bool luxi_start(struct luxi *luxi, GError **error);
/* One LUXI call: request->name is the method, request->args the positional array (not checked yet).
 */
void luxi_handle(struct luxi *luxi, struct rpc_request *request);
/* luxid is to end, and the next one goes on: no job is started any more. Whether none is being
 * started either; ask again until it says so. A job whose start is cut off ends in error (LUX-26,
 * 27).
 */
bool luxi_drain(struct luxi *luxi);
void luxi_free(struct luxi *luxi);
