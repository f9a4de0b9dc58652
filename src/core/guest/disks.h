/*
 * Images on this node: made, made larger, removed. Procedures of noded's methods; see
 * procedures.md.
 */
#pragma once

#include "core/guest/guest.h"

json_t *disks_image_info(struct node_core *node, struct fence_op *op, const void *args,
                         GError **error);
json_t *disks_create(struct node_core *node, struct fence_op *op, const void *args, GError **error);
json_t *disks_remove(struct node_core *node, struct fence_op *op, const void *args, GError **error);
json_t *disks_grow(struct node_core *node, struct fence_op *op, const void *args, GError **error);
json_t *disks_how_far(struct node_core *node, struct fence_op *op, const void *args,
                      GError **error);
