/*
 * A set of QEMU block jobs that copy a guest's disks to NBD servers of another node, one job and
 * one block node for each disk, all or none. A mirror is one, the copy that goes with a migration
 * is one. Used by mirror.c and migrate.c.
 *
 * There are two ways to the other side. The targets of a mirror are opened by
 * block_jobs_open_relayed(): its writes wait while the other side is unreachable, and go on by
 * relay_refuse(), which leaves nothing under way. Those of a copy that promises nothing are opened
 * by block_jobs_open_direct(): a lost one ends its job.
 *
 * While requests of a set are held only queries and `yank` are safe (docs/design/architecture.md,
 * section 11): whatever drains a disk freezes QEMU's monitor.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

#define JOB_POLL_MS 5

struct jobs_progress {
    enum mirror_state state; /* lost if one is, else syncing if one is, else ready */
    guint64 done, all;       /* bytes */
    bool idle; /* ready, and every write that a disk has confirmed its target has confirmed too */
};

/* Name of both the block node and the job of a disk in this attachment; free with g_free(). */
char *block_jobs_name(const struct job_set *set, guint disk);
/* "d0": the node of the guest's own disk; free with g_free(). */
char *block_jobs_disk(guint disk);

/* What query-block-jobs said of them. */
void block_jobs_look(const struct guest *guest, const struct job_set *set, const json_t *jobs,
                     struct jobs_progress *ret_progress);

/* What events have told of all of them since block_jobs_outcome_clear(): failed if one did, else
 * unknown, ready or done as the one that is least far. A connection to QEMU that was lost meanwhile
 * has taken its events along. */
enum job_outcome block_jobs_outcome(const struct guest *guest, const struct job_set *set);
void block_jobs_outcome_clear(struct guest *guest, const struct job_set *set);

/* Gives the set a number that was never used; not on record yet. */
void block_jobs_number(struct guest *guest, struct job_set *set);
/*
 * Attaching the targets of a set: one block node per disk, named block_jobs_name(), to which jobs
 * of any kind may then copy. The set has its number, and is on record as attached, before;
 * block_jobs_forget() takes the nodes away again, also those of an attachment that failed in the
 * middle.
 *
 * Relayed (guest->mirror only, for the guest has one relay): what is sent to a node is on stable
 * storage on the other side when it is answered. What the other side does not do – because it is
 * gone, silent, or answers errors – is not answered at all, until relay_refuse(). UNREACHABLE with
 * the reason if it cannot be done from the start; WRONG_INPUT if an export is smaller than its
 * disk.
 */
bool block_jobs_open_relayed(struct guest *guest, const struct job_set *set,
                             const struct export_target *target, GError **error);
/* Direct: a target that is lost answers with errors. */
bool block_jobs_open_direct(struct guest *guest, const struct job_set *set,
                            const struct export_target *target, GError **error);

/* A mirror job from a disk to its node. `promise`, for a relayed node: a write of the guest is
 * answered when it is on both sides (else: some time later, and at the latest when the job is ended
 * in sync). An error of the target then pauses the job: it reads as lost from that moment on, never
 * again as ready, and QEMU refuses to end it in sync. `bytes_per_s`: most that the copy takes; 0:
 * all it can get. */
bool block_jobs_add_mirror(struct guest *guest, const struct job_set *set, guint disk,
                           enum mirror_copy copy, bool promise, gint64 bytes_per_s, GError **error);

/* True if `done`, or if `failure` says that what was asked to vanish is not there; else the failure
 * is passed on. */
bool block_jobs_absent_is_fine(bool done, GError **failure, GError **error);

/* Ends the network connections of a set that goes direct, and with them what hangs on them. Out of
 * band, so that it is answered even by a QEMU that waits for a disk. */
bool block_jobs_yank(struct guest *guest, const struct job_set *set, GError **error);
/* Ends its jobs, in sync or not. Only after a yank, or when nothing is held. For a mirror also only
 * while the guest makes no writes: see block_jobs_add_mirror() in block_jobs.c. */
bool block_jobs_cancel(struct guest *guest, const struct job_set *set, GError **error);
/* Removes the block nodes of a set that no job uses; one that is not there is fine. */
bool block_jobs_remove_nodes(struct guest *guest, const struct job_set *set, GError **error);
/* The jobs' end is seen, their nodes, key and relay are taken away; the set is on record as not
 * attached. */
bool block_jobs_forget(struct guest *guest, struct job_set *set, GError **error);
/* All three, if it is attached: for what goes direct. */
bool block_jobs_release(struct guest *guest, struct job_set *set, GError **error);

/* Ends ready jobs of a guest that makes no more writes with both sides equal. Error: at least one
 * did not end by COMPLETED without error. */
bool block_jobs_finish(struct guest *guest, struct job_set *set, GError **error);
