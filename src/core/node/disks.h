/*
 * Images on this node: made, made larger, removed. Procedures of noded's methods; see
 * procedures.md.
 */
#pragma once

#include "core/node/guest.h"

json_t *disks_image_info(struct node_core *node, struct epoch_fence_op *op, const void *args,
                         GError **error);
json_t *disks_create(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error);
json_t *disks_remove(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error);
json_t *disks_grow(struct node_core *node, struct epoch_fence_op *op, const void *args,
                   GError **error);
json_t *disks_renew(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error);
json_t *disks_how_far(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);

/* With the guest locked: its process ends, and everything of it goes; nothing starts it here again
 * under this generation. REFUSED if a higher one was used here. */
bool disks_remove_all(struct guest *guest, const struct epoch_fence_op *op, guint64 generation,
                      GError **error);

/* New images that wait here (SAF-22; record->made is set), with the guest locked and not live. They
 * become the instance's, by the record of this generation; what stood there is kept aside. */
bool disks_take_made(struct guest *guest, guint64 history, guint64 generation, GError **error);
/* No record names them, or ever will: removed. No error if there are none. */
bool disks_forget_made(struct guest *guest, GError **error);
