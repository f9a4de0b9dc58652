/*
 * Images on this node, and the replicas that it exports for other nodes (SAF-14, 16). Procedures of
 * noded's methods; see procedures.md.
 */
#pragma once

#include "core/guest/guest.h"

json_t *replica_image_info(struct node_core *node, struct fence_op *op, const void *args,
                           GError **error);
json_t *replica_disks_create(struct node_core *node, struct fence_op *op, const void *args,
                             GError **error);
json_t *replica_disks_remove(struct node_core *node, struct fence_op *op, const void *args,
                             GError **error);
json_t *replica_open(struct node_core *node, struct fence_op *op, const void *args, GError **error);
json_t *replica_close(struct node_core *node, struct fence_op *op, const void *args,
                      GError **error);

/* With the guest locked, not live: the replica that was opened here, if any, becomes the instance's
 * images. Only after the record says so (this node is the primary). Idempotent. */
bool replica_promote(struct guest *guest, GError **error);
