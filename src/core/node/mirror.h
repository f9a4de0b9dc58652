/*
 * Attaching, detaching and waiting for the mirror of a running guest (SAF-18). Procedures of
 * noded's methods; see procedures.md.
 */
#pragma once

#include "core/node/guest.h"

json_t *mirror_attach(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);
json_t *mirror_detach(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);
json_t *mirror_wait(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error);
