/*
 * The serial line of a guest. Procedures of noded's methods.
 */
#pragma once

#include "core/node/node_private.h"

json_t *console_read(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error);
json_t *console_write(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);
