/*
 * The wish that a job under way ends, carried out: its process is asked (SIGTERM), and, if that is
 * on record, killed after a while (SIGKILL), again and again until the job has ended. What is
 * wished stands on the job's record (`cancel`, `kill_us`), so that it outlives luxid. Who is
 * killed: only the process that the job's file names, by its pid and start time, or, if that file
 * is damaged, the one that holds its lock file; and only while that was not seen free (env.h,
 * job_signal).
 */
#pragma once

#include "core/queue/context.h"

/* Carries out what is on record; nothing, if nothing is. Once for each wish, and when luxid has
 * found a job alive that an earlier luxid left. */
void job_end_carry_out(struct queue_context *context, struct queue_job *job);
