/*
 * The epoch fence of a node (SAF-02, 05, 06): the highest (history, epoch) that was announced or
 * promised, the master, the members, and the operations under way with the epoch that each of them
 * came from. What it knows is synced before it is answered: announcements to var/node/state.json,
 * promises (docs/design/mastership.md) to var/node/promise.json. Used by node.c for every request,
 * by the bus through node.h, and by the procedures to notice that they have been overtaken.
 */
#pragma once

#include "proto/env.h"
#include "proto/records.h"

struct epoch_fence;
struct epoch_fence_op; /* one operation under way */

struct epoch_fence *epoch_fence_new(const struct env *env, const char *cluster_uuid);
void epoch_fence_free(struct epoch_fence *fence);
/* Called whenever an announcement was taken over in memory. */
void epoch_fence_set_changed(struct epoch_fence *fence, void (*changed)(void *data), void *data);
/* In a task. CORRUPT with the file's name if one is there and cannot be used: a node that has
 * forgotten its epoch must not guess one. */
bool epoch_fence_load(struct epoch_fence *fence, GError **error);

/* May a request of this node, method and stamp pass? PERMISSION, STALE_EPOCH, TEMPORARY. */
bool epoch_fence_admit(const struct epoch_fence *fence, const char *from_node,
                       const char *from_role, const struct method *method, struct stamp stamp,
                       GError **error);

/* Registers an operation that a node, and a job (0: none) there, has asked for; `method` is
 * borrowed and outlives it. STALE_EPOCH, TEMPORARY as above; LIMIT beyond LIMIT_NODE_OPERATIONS. */
struct epoch_fence_op *epoch_fence_enter(struct epoch_fence *fence, struct stamp stamp,
                                         const char *from_node, guint job, const char *method,
                                         GError **error);
void epoch_fence_leave(struct epoch_fence_op *op);
/* A higher epoch has been announced since: whatever can end early should. */
bool epoch_fence_overtaken(const struct epoch_fence_op *op);
struct stamp epoch_fence_op_stamp(const struct epoch_fence_op *op);
const char *epoch_fence_op_from(const struct epoch_fence_op *op); /* UUID of the asking node */
guint epoch_fence_op_job(const struct epoch_fence_op *op);
const char *epoch_fence_op_method(const struct epoch_fence_op *op);

/* In a task: takes the announcement over, synced, and returns when every operation of a lower epoch
 * has ended. STALE_EPOCH, PERMISSION (another cluster, not from the master it names, or from who
 * may be none: believe.h), WRONG_INPUT (beyond any clock), STORAGE. */
bool epoch_fence_announce(struct epoch_fence *fence, const char *from_node,
                          const struct announce_args *args, GError **error);

/* In a task: promises an epoch to a node, or refuses it with what it has seen or promised; synced
 * when it returns. Granted: if it is higher than all of those, or that very promise again; and if
 * no other node has begun a mastership later than `args->since`. Epoch 0 is never granted: a
 * question for what is known here. PERMISSION (it is not of the node that it names, or of who may
 * be no master: believe.h), WRONG_INPUT (beyond any clock), STORAGE. The result is to be freed. */
struct promise_epoch_result *epoch_fence_promise(struct epoch_fence *fence, const char *from_node,
                                                 const struct promise_epoch_args *args,
                                                 GError **error);

/* What was announced last; epoch 0 before the first. */
struct stamp epoch_fence_stamp(const struct epoch_fence *fence);
/* The highest that was announced or promised: whatever is lower is refused. */
struct stamp epoch_fence_highest(const struct epoch_fence *fence);
/* Its content; the fence's own, and only until the calling task waits: the next announcement
 * replaces it. */
const struct announce_args *epoch_fence_announced(const struct epoch_fence *fence);
