/*
 * Steps that several instance opcodes share: changing an instance and its replica in one commit
 * (instance.c), starting (SAF-10), stopping (SAF-11), waiting for a copy (instance_run.c), and what
 * they need (instance_check.c). Each function is safe to be cut off after any call; what it leaves
 * behind is said in docs/design/procedures.md.
 */
#pragma once

#include "core/ops/op.h"
#include "core/report/report_lookup.h"

/* An instance and its replica while a change is made: copies of the newest record. */
struct instance_edit {
    struct op *op;
    struct instance *instance;
    struct replica *replica; /* NULL if it has none */
    bool replica_changed;    /* set by edit_replica() */
    bool settled;            /* set by edit_mark(): nothing is left to be done */
    GPtrArray *changes;      /* further changes of the same commit */
};
typedef bool (*instance_edit_fn)(struct instance_edit *edit, void *data, GError **error);

/* Commits what `fn` makes of the instance and, if changed, its replica, as the change of that name
 * (proto/changes.def); `fn` may be called again
 * with newer records, so it decides anew each time. UNKNOWN_ENTITY if the instance is gone. */
bool instance_edit(struct op *op, const char *change, const char *uuid, instance_edit_fn fn,
                   void *data, GError **error);
/* Says that this job is at work; TASK_NONE says that nobody is, and ends a fault. Who changes the
 * mark of a fault that keeps others off ends that as well (SAF-84). */
void edit_mark(struct instance_edit *edit, enum task_state mark);
/* Nobody is at work any more, and nothing came of it: a fault that kept nobody off stays. */
void edit_give_up(struct instance_edit *edit);
/* New state of the replica under the instance's (new) generation; raises its sync number. */
void edit_replica(struct instance_edit *edit, enum replica_state state, const char *why);

/* New disks, one for each struct disk_spec (NULL: none), in a list that owns them. */
GPtrArray *instance_new_disks(const struct op *op, const GPtrArray *specs);

/* A copy of the record, with what a fault keeps in force as its mark (SAF-84), as
 * op_find_instance() gives it; NULL with UNKNOWN_ENTITY. */
struct instance *instance_now(const struct op *op, const char *uuid, GError **error);

/* Clears the mark. */
bool instance_settle(struct op *op, const char *uuid, GError **error);
/* After a failure: clears the mark if the failure tells what is there now; otherwise leaves it, so
 * that the watcher finds out. Keeps `error` as it is. */
void instance_settle_after(struct op *op, const char *uuid, const GError *error);

/* The end of a failed body: instance_settle_after(), then `failure` (stolen) is the error. */
bool instance_fail(struct op *op, const char *uuid, GError *failure, GError **error);

/* Records the replica as stale (no error if there is none, or it is so already). */
bool instance_set_stale(struct op *op, const char *uuid, const char *why, GError **error);

/* --- volumes (instance_volumes.c) --- */

/* What its node is told of the volumes that it has: an array that owns its struct guest_volume. */
GPtrArray *instance_volumes(const struct op *op, const char *uuid);
/* WRONG_STATE: the node does not see the back end of one of them. */
bool instance_need_served(const struct op *op, const struct instance *instance,
                          const char *node_uuid, GError **error);
/* TEMPORARY: a dead job left it half attached, or half detached. */
void instance_set_unsettled(const struct op *op, const struct instance *instance,
                            const struct volume *volume, GError **error);
/* The generation is over, and its process with it: what its guest was to give up is nobody's, what
 * it was to get the next one has (SAF-124). */
void instance_renew_attachments(const struct op *op, const char *uuid, GPtrArray *changes);
/* One volume as the node is told of it. */
struct guest_volume *instance_volume(const struct op *op, const struct volume *volume);

struct instance_start {
    enum task_state mark;
    bool run;              /* false: the guest stays paused; for a copy only */
    bool wish_up;          /* record that it should run */
    const char *statement; /* a person's word that its own images are the ones to go on with,
                              whatever its replica has; NULL: nobody said so */
};
/* Starts the next generation on the primary node, with a mirror if the replica's node is there and
 * without one (replica recorded stale before) if it is not. Leaves the mark. What a crash has left
 * open is closed first. UNSAFE if its replica has every acknowledged write and its own images may
 * not (SAF-24). */
bool instance_start(struct op *op, const char *uuid, const struct instance_start *how,
                    GError **error);

/* Makes its node refuse whatever a job may still ask of it that died over a task which removes
 * images, by the mark on record or by a fault (SAF-81); no call if there is none. TEMPORARY: it has
 * not answered, and what it has of the instance is not to be relied upon yet. */
bool instance_refuse_dead(struct op *op, const struct instance *instance, const char *node,
                          GError **error);
/* replica_open, and nobody calls that but by this: after instance_refuse_dead(). */
struct export_target *instance_open_exports(struct op *op, const struct instance *instance,
                                            const char *node, const struct replica_open_args *args,
                                            guint patience_ms, GError **error);
/* Opens the replica's exports for the present generation. If that fails the guest starts without
 * it, but only after `stale` is on record (SAF-10); `*ret_target` is NULL then, as it is for a
 * replica that is stale already. False: not even that could be recorded. */
bool instance_open_replica(struct op *op, const struct instance *instance,
                           struct export_target **ret_target, guint64 *ret_sync, GError **error);
/* In the job's log and in the replica's `why`: what it was is not kept while it is copied. */
bool instance_tell_of_one_copy(struct op *op, const struct instance *instance, const char *node,
                               GError **error);

/* UNSAFE if the replica has every acknowledged write and the instance's own images, which nobody
 * writes to, may not: a copy from them would be the end of what the replica has (SAF-24). `replica`
 * may be NULL. */
bool instance_need_sound(const struct op *op, const struct instance *instance,
                         const struct replica *replica, GError **error);

/* The same of one that runs, by what its guest has been told (gathered before): UNSAFE if requests
 * to its own disks have failed while its replica is in-sync. */
bool instance_need_own_disks(const struct op *op, const struct instance *instance, GError **error);

struct instance_stop {
    enum task_state mark;
    enum task_state after; /* mark that the record of the close gets: TASK_NONE if this was all */
    bool wish_down;        /* record that it should not run, before anything else */
    bool wish_up;          /* that it should, as it is started next */
    guint64 timeout_ms;
};
/* Stops the current generation, if there is one, and records the close. CANCELED: the guest had not
 * obeyed when somebody ended the job; it runs on, and the record is as before. */
bool instance_stop(struct op *op, const char *uuid, const struct instance_stop *how,
                   GError **error);

/* guest_stop on its holder; the result is to be freed. With a timeout the wait for the guest can be
 * given up: CANCELED for people, the mark cleared and admin_state `before` on record again. */
struct guest_stop_result *instance_end_guest(struct op *op, const struct instance *instance,
                                             guint64 timeout_ms, enum admin_state before,
                                             GError **error);

/* Waits until the running copy is on record as in-sync, with its progress in the job's log. STORAGE
 * if the replica was lost, TIMEOUT if the copy got no further for MIRROR_STALL_MS. */
bool instance_wait_mirror(struct op *op, const char *uuid, GError **error);

/* Gathers the reports of up to two nodes ("" is skipped, offline ones too). */
bool instance_gather(struct op *op, const char *node_a, const char *node_b, GError **error);
/* Nodes that may have something of it: its own, the target of a migration, its holder. */
guint instance_hosts(const struct instance *instance, const char *nodes[4]);
/* The reports of those. */
bool instance_gather_hosts(struct op *op, const struct instance *instance, GError **error);
/* Of all nodes that are not offline. */
bool instance_gather_online(struct op *op, GError **error);
/* WRONG_STATE if the node is offline, TEMPORARY if its report was not gathered. `role`: "primary"
 * or "secondary". */
bool instance_need_node(const struct op *op, const struct instance *instance, const char *node_uuid,
                        const char *role, GError **error);
/* TEMPORARY if the report that was gathered of the node has its disks from memory: who concludes
 * something from what is not on them, or is to act on them, waits (SAF-90). */
bool instance_need_disks(const struct op *op, const char *node_uuid, GError **error);
/* Locks the room that larger disks of it take: on its nodes, or in the folder that all mount. */
void instance_lock_room(struct op *op, const struct instance *instance);
/* Whether so much more, in MiB, is there; asks for it, reports are gathered. NO_RESOURCES: `who`
 * ("disk 0 of instance \"web1\"") needs it; what is said of a node begins with `field`
 * ("add_disks: ", or ""). */
bool instance_need_room(struct op *op, const struct instance *instance, const char *field,
                        const char *who, guint64 more, GError **error);
/* A file of var/images on a node; NULL with UNKNOWN_ENTITY that says where `what` is missing and
 * which `field` wants it. */
struct image_info *instance_need_image(struct op *op, const char *node_uuid, const char *field,
                                       const char *what, const char *name, GError **error);
/* Whether the node has what a guest is booted from that is not booted from its disk ("": it is).
 * UNKNOWN_ENTITY if not. */
bool instance_need_boot_files(struct op *op, const char *node_uuid, const char *kernel,
                              const char *initrd, GError **error);
/* WRONG_STATE for an instance that a dead job left half made, half removed, half migrated or with
 * half made disks. */
bool instance_need_whole(const struct op *op, const struct instance *instance, GError **error);
/* TEMPORARY while the mark of a dead job stands, unless it is `own`: what this one finishes itself.
 * Whoever commits over it drops with the mark what that job was to do: a guest that is to be
 * stopped would run on, one whose disk is half written would start. For an instance that is whole.
 */
bool instance_need_settled(const struct op *op, const struct instance *instance,
                           enum task_state own, GError **error);
/* A job died while an image was being written onto its disk: it can only be installed anew. */
bool instance_half_installed(const struct instance *instance);
/* Since when the replica has its state, for messages; free with g_free(). */
char *instance_replica_since(const struct replica *replica);
/* Where an instance can go (ops_failover.c); the choice is left in op->primary, and kept if it is
 * made again. `named`: as the user says, "" for none: then the node of its replica ("" if it has
 * none), or for a template without one the best node by placement. `live`: a guest that runs is to
 * go there as it runs, so not to an older QEMU. Gathers reports. */
bool instance_choose_target(struct op *op, const struct instance *instance, const char *named,
                            bool live, GError **error);
/* WRONG_INPUT if op->primary is where it is already, or not where its replica is. */
bool instance_check_target(const struct op *op, const struct instance *instance, GError **error);
/* Failover to op->primary as OP_INSTANCE_FAILOVER does it: what forbids it, and doing it. An
 * instance that does not run is moved without being started. */
bool instance_failover_check(struct op *op, const struct instance *instance, GError **error);
bool instance_failover(struct op *op, const struct instance *instance, guint64 timeout_ms,
                       GError **error);

/* Removes guest, disks and record (ops_remove.c). With `go_on` a node that fails is passed over;
 * names of such nodes are appended to `left`. */
bool instance_remove(struct op *op, const char *uuid, guint64 timeout_ms, bool go_on, GString *left,
                     GError **error);
/* Its last part, when no guest runs: the disks on all nodes but `except` ("": none), the record. */
bool instance_remove_rest(struct op *op, const struct instance *instance, const char *except,
                          bool go_on, GString *left, GError **error);
