/*
 * A set of QEMU block jobs that copy a guest's disks to NBD servers of another node, one job and
 * one block node for each disk, all or none. A mirror is one, the copy that goes with a migration
 * is one, the catching up of a replica is one. Used by mirror.c, resync.c and migrate.c.
 *
 * The order of commands is the fruit of trials (docs/design/architecture.md, section 11): while a
 * target is unreachable only queries and `yank` are safe; `block-job-cancel` is so after `yank`.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

/* Held for ever: a shorter delay would end by itself, and the guest would go on before anybody has
 * recorded that the replica is stale (SAF-14). */
#define JOBS_HOLD_WRITES G_GINT64_CONSTANT(4294967295)
/* A lost target fails the job at once, and the guest goes on: for copies that promise nothing. */
#define JOBS_LET_GO 0
#define JOB_POLL_MS 5

struct jobs_progress {
    enum mirror_state state; /* lost if one is, else syncing if one is, else ready */
    guint64 done, all;       /* bytes */
    bool idle; /* ready, and every write that a disk has confirmed its target has confirmed too */
};

/* Name of both the block node and the job of a disk in this attachment; free with g_free(). */
char *jobs_name(const struct job_set *set, guint disk);
/* "d0": the node of the guest's own disk; free with g_free(). */
char *jobs_disk(guint disk);

/* What query-block-jobs said of them. */
void jobs_look(const struct guest *guest, const struct job_set *set, const json_t *jobs,
               struct jobs_progress *ret_progress);

/* Gives the set a number that was never used; not on record yet. */
void jobs_number(struct guest *guest, struct job_set *set);
/* Adds the key; the node of one disk; a mirror job from a disk to its node. In this order.
 * `promise`: a write of the guest is answered when it is on both sides (else: some time later, and
 * at the latest when the job is ended in sync). `bytes_per_s`: most that the copy takes; 0: all it
 * can get. */
bool jobs_add_key(struct guest *guest, const struct job_set *set, const char *psk, GError **error);
bool jobs_add_node(struct guest *guest, const struct job_set *set,
                   const struct export_target *target, guint disk, gint64 reconnect_delay_s,
                   GError **error);
bool jobs_add_mirror(struct guest *guest, const struct job_set *set, guint disk,
                     enum mirror_copy copy, bool promise, gint64 bytes_per_s, GError **error);

/* True if `done`, or if `failure` says that what was asked to vanish is not there; else the failure
 * is passed on. */
bool jobs_absent_is_fine(bool done, GError **failure, GError **error);

/* First step of giving up, for every disk: ends the network connections, and with them what hangs
 * on them. Out of band, so that it is answered even by a QEMU that waits for a disk. */
bool jobs_yank(struct guest *guest, const struct job_set *set, GError **error);
/* Second step: ends the wait for a reconnection, which a yank does not. Before the first one it
 * would freeze QEMU. */
bool jobs_cancel(struct guest *guest, const struct job_set *set, GError **error);
/* Third: the jobs' end is seen, their nodes and key are taken away; the set is on record as not
 * attached. */
bool jobs_forget(struct guest *guest, struct job_set *set, GError **error);
/* All three, if it is attached. */
bool jobs_release(struct guest *guest, struct job_set *set, GError **error);

/* Ends ready jobs of a guest that makes no more writes with both sides equal. Error: at least one
 * did not end by COMPLETED without error. */
bool jobs_finish(struct guest *guest, struct job_set *set, GError **error);
