/*
 * node_report: what this node has, and what really runs on it: guests, replicas, its own daemons.
 * node_alive: whether it answers at all, whatever it has.
 * Given within LOOK_WAIT_MS, whatever hangs here (SAF-90).
 */
#pragma once

#include "core/node/guest.h"

json_t *report_alive(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error);
json_t *report_node(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error);
