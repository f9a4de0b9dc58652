/*
 * The archive of jobs on this node (core/job/archive.h), as the master's luxid has it written
 * and compares it with those of other candidates: archive_put, archive_list, archive_get.
 */
#pragma once

#include "core/node/node_private.h"

json_t *archive_calls_put(struct node_core *node, struct epoch_fence_op *op, const void *args,
                          GError **error);
json_t *archive_calls_list(struct node_core *node, struct epoch_fence_op *op, const void *args,
                           GError **error);
json_t *archive_calls_get(struct node_core *node, struct epoch_fence_op *op, const void *args,
                          GError **error);
