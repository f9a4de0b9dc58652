/* `fettle why JOB` of a job that is under way: what it is at, whether it is to end, and what it
 * waits for; for why_job.c. */
#pragma once

#include "cli/cli.h"

/* Fields of a request for locks that waits. */
extern const char *const why_wait_fields[];
enum { WHY_JOB, WHY_SINCE, WHY_BLOCKERS, WHY_NODES };

/* The request that a job waits with; NULL: it waits with none. */
const json_t *why_waiter_of(const json_t *waiters, const char *job);
/* The newest entry of a job's log, JSON null if it has none; borrowed. `fields`: those of the row.
 */
json_t *why_last_entry(const json_t *row, const char *const *fields);
/* The lines below "Job 17 is running". `pending`: of a job of a master that is over, the nodes that
 * have not heard of this one yet; NULL: it is none. */
void why_running_print(guint64 id, const json_t *row, const char *const *fields,
                       const json_t *waiters, const json_t *pending);
