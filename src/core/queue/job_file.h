/*
 * Job files: run/queue/job-N, one record `job` each. luxid writes a job's file before the
 * confirmation, its process alone after it (LUX-31). Written without a sync: they must survive a
 * process, not a power cut. All of these may wait, so they are called from tasks.
 */
#pragma once

#include "proto/env.h"

#define JOB_FILE_FOLDER "" /* of the area FILE_QUEUE */

/* "job-17"; free with g_free(). */
char *job_file_name(guint64 id);
/* False if the name is not that of a job file. */
bool job_file_parse_name(const char *name, guint64 *ret_id);

bool job_file_write(const struct env *env, const struct job *job, GError **error);
/* NULL with UNKNOWN_ENTITY if there is none, CORRUPT if it is no record of this job, else what
 * reading failed with. */
struct job *job_file_read(const struct env *env, guint64 id, GError **error);
/* Moves a file that cannot be used out of the way, as bad-NAME-TIME, and reports it. */
void job_file_set_aside(const struct env *env, const char *name, const char *why);
