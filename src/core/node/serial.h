/*
 * The serial line of a guest. Procedures of noded's methods.
 */
#pragma once

#include "core/node/node_private.h"

json_t *serial_read(struct node_core *node, struct fence_op *op, const void *args, GError **error);
json_t *serial_write(struct node_core *node, struct fence_op *op, const void *args, GError **error);
