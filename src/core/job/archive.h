/*
 * The archive of jobs on the disk of one node: var/queue/archive/F/job-ID, with F = ID divided by
 * ARCHIVE_FOLDER_JOBS, and the request ids of archived jobs (SAF-31). Nothing in it ever changes:
 * a job is archived in its final state, so what is there stays as it is, and two archives are made
 * equal by adding to each what the other has. Node daemons write it (core/node/archive_calls.c),
 * luxid reads its own node's; which jobs may go there, and when, is core/queue/archiver.h's.
 *
 * Everything is written as FILE_STATE: synced before the call is over. In tasks these may wait.
 */
#pragma once

#include "proto/env.h"

/* Puts the record of a job (a job_to_json()) into the archive of this node. WRONG_INPUT if it is no
 * record of a job, WRONG_STATE if it has not ended. One that is there already, undamaged, stays. */
bool archive_write(const struct env *env, const json_t *record, GError **error);
/* UNKNOWN_ENTITY if it is not there, CORRUPT if it cannot be understood. Free it. */
struct job *archive_read(const struct env *env, guint64 id, GError **error);
/* The same as it is on disk, fields that this version does not know included. */
json_t *archive_read_json(const struct env *env, guint64 id, GError **error);
/* Numbers of the folders, and ids of the jobs in one, ascending; arrays of guint64; unref them. */
GArray *archive_folders(const struct env *env, GError **error);
GArray *archive_ids(const struct env *env, guint64 folder, GError **error);
/* The archived job that was submitted with a request id; 0: none. */
guint64 archive_request(const struct env *env, const char *request_id);
