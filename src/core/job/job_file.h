/*
 * Job files: run/queue/job-N, one record `job` each. luxid writes a job's file before the
 * confirmation, its process alone after it (LUX-31). Written without a sync: they must survive a
 * process, not a power cut. All of these may wait, so they are called from tasks.
 *
 * Earlier versions had them in var/queue. A job that one of those has started goes on writing its
 * file there, also when luxid is a newer one: where the job has no file in run/queue, that one is
 * read.
 */
#pragma once

#include "proto/env.h"

struct job_file_place {
    enum file_area area;
    const char *folder; /* in it */
};
extern const struct job_file_place job_file_now;    /* run/queue */
extern const struct job_file_place job_file_before; /* var/queue, of earlier versions */

/* "job-17"; free with g_free(). */
char *job_file_name(guint64 id);
/* False if the name is not that of a job file. */
bool job_file_parse_name(const char *name, guint64 *ret_id);

bool job_file_write(const struct env *env, const struct job *job, GError **error);
/* NULL with UNKNOWN_ENTITY if there is none, CORRUPT if it is no record of this job, else what
 * reading failed with. */
struct job *job_file_read(const struct env *env, guint64 id, GError **error);
/* Names of what lies in a place, job files and others; array of char *, frees them. */
GPtrArray *job_file_list(const struct env *env, const struct job_file_place *place, GError **error);
/* Those that were set aside in either place, as `run/queue/bad-job-17-TIME`, sorted, at most
 * LIMIT_BAD_JOB_FILES; array of char *, frees them. */
GPtrArray *job_file_list_bad(const struct env *env);
/* One that is not there counts as removed. A failure is reported: the next start removes it. */
void job_file_remove(const struct env *env, const struct job_file_place *place, guint64 id);
/* Moves a file that cannot be used out of the way, as bad-NAME-TIME beside it, and reports it. */
void job_file_set_aside(const struct env *env, const struct job_file_place *place, const char *name,
                        const char *why);
