/*
 * disks_undo: what a dead job has left half made or half removed on this node goes, and what runs
 * or is whole stays (SAF-23). The node decides, by what it finds under the guest's lock: whatever a
 * master believes was true a moment ago.
 */
#pragma once

#include "core/node/guest.h"

json_t *undo_disks(struct node_core *node, struct epoch_fence_op *op, const void *args,
                   GError **error);
