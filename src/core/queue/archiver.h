/*
 * Archiving jobs (docs/design/procedures.md, "Archive of jobs"): a job that has ended goes from the
 * store into files on every candidate. First each candidate that is not marked offline has the file
 * on its disk, then one commit deletes the record; so a job is on record, in the archive, or for a
 * moment both, whatever dies. The archiver also does so by itself with jobs of the age of the
 * cluster's `job_archive_age_s`, in small steps, and makes the archives of candidates equal that
 * come new or back. Part of luxid; made by luxi.c.
 */
#pragma once

#include "core/queue/context.h"

struct archiver *archiver_new(struct queue_context *context);
void archiver_free(struct archiver *archiver);
/* Its task begins; not before the copy of the configuration is there. */
void archiver_start(struct archiver *archiver);

/* Records of nodes have changed: a candidate that was away, however shortly, is compared again. */
void archiver_nodes_changed(struct archiver *archiver);
/* The cluster's record has: the age may be another. */
void archiver_cluster_changed(struct archiver *archiver);

/* ArchiveJob and AutoArchiveJobs; they take the request over. */
void call_archive_job(struct queue_context *context, struct rpc_request *request,
                      const struct luxi_archive_job_args *args);
void call_auto_archive_jobs(struct queue_context *context, struct rpc_request *request,
                            const struct luxi_auto_archive_jobs_args *args);

/* --- inside: archiver.c and archive_copy.c --- */

struct archiver {
    struct queue_context *context;
    guint users;            /* luxid, and the task, whose pause may end after it */
    struct task_mutex turn; /* one step, or one comparison of archives, at a time */
    struct ages *ages;      /* of jobs that ended */
    GHashTable *equal;      /* set of UUIDs of candidates whose archive has been compared */
    struct env_pause pause; /* between two looks of its task */
    bool complained;        /* somebody was told that it does not get on */
};

/* Candidates whose archives count, this node first: borrowed UUIDs; unref it. */
GPtrArray *archiver_candidates(const struct archiver *archiver);
/* Puts records (a list of job_to_json()) into the archive of one candidate. Errors name the node.
 */
bool archiver_put(const struct archiver *archiver, const char *node, json_t *jobs, GError **error);
/* Compares with every candidate that this was not done with since it came, and adds on both sides
 * what is missing. Waits. */
bool archiver_make_equal(struct archiver *archiver, GError **error);
