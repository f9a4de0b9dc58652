/*
 * The replicas that this node exports for other nodes (SAF-14, 16). Procedures of noded's methods;
 * see procedures.md.
 */
#pragma once

#include "core/node/guest.h"

json_t *replica_open(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error);
/* PERMISSION: by the master's word of when it was opened, `from_node` does not hold the instance.
 */
json_t *replica_settle(struct node_core *node, const char *from_node, const void *args,
                       GError **error);
json_t *replica_close(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);

json_t *replica_leave(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);

/* Whether images of the guest that was here are to be that replica's, or are already. */
bool replica_is_left(const struct guest *guest, const char *replica);
/* With the guest locked: images that were left for that replica (of a guest that has gone over in a
 * migration, or whose node is no primary any more) become its images; to be saved. Only after the
 * record says so. Idempotent; nothing happens if none were left for it. */
bool replica_take_left(struct guest *guest, const char *replica, GError **error);
/* With the guest locked, not live: the replica that was opened here, if any, becomes the instance's
 * images. Only after the record says so (this node is the primary). UNSAFE, with nothing changed,
 * if it was opened as a copy of other disks than those on record (`disks`; empty: unknown), which
 * no promotion can be about (SAF-22). `equal`: by a clean close on record they equal those that the
 * instance had. Idempotent. */
bool replica_promote(struct guest *guest, const GPtrArray *disks, bool equal, GError **error);
/* With the guest locked: its exports end, their exit seen, the images synced. */
bool replica_close_export(struct guest *guest, GError **error);
/* This node has no replica of the instance any more; to be saved. */
void replica_forget(struct guest *guest);
