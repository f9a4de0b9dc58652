/*
 * The archive of jobs on this node (core/job/archive.h), as the master's luxid has it written
 * and compares it with those of other candidates: archive_put, archive_list, archive_get.
 */
#pragma once

#include "core/node/node_private.h"

json_t *archived_put(struct node_core *node, struct fence_op *op, const void *args, GError **error);
json_t *archived_list(struct node_core *node, struct fence_op *op, const void *args,
                      GError **error);
json_t *archived_get(struct node_core *node, struct fence_op *op, const void *args, GError **error);
