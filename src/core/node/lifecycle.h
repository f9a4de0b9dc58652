/*
 * Starting and stopping generations (SAF-10, 11). Procedures of noded's methods; see procedures.md.
 */
#pragma once

#include "core/node/guest.h"

json_t *lifecycle_start(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error);
json_t *lifecycle_reset(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error);
/* stop.c */
json_t *lifecycle_stop(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error);
