/*
 * collect: what this node has of instances whose tasks were left behind, each looked at after it
 * was asked and after everything that was being done to it here had ended; and before that the end
 * of the rights of the dead jobs here (SAF-81). It changes nothing of any guest, image or network.
 */
#pragma once

#include "core/node/guest.h"

json_t *collect_run(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error);
