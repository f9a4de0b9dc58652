/*
 * list_strays: what is on this node that its node daemon has not made – processes of hypervisors,
 * and files among the images –, for the watcher to compare with the record (RCV-26). Only looks.
 */
#pragma once

#include "core/node/node_private.h"

struct strays_look;
struct strays_look *strays_look_new(void);
void strays_look_free(struct strays_look *strays);

json_t *strays_list(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error);
