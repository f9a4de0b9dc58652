/*
 * The master IP: an address that the node of the present master carries, and no other
 * (docs/design/mastership.md, "The master IP"). The node daemon adds it when this node was
 * announced as the master and this node's wconfd says that it is, under that very epoch; it removes
 * it as soon as one of the two is over, and wherever else it finds it. Used by node.c.
 */
#pragma once

#include "core/node/node_private.h"

struct master_ip;

/* What is remembered of an earlier life is read when the first task runs. */
struct master_ip *master_ip_new(struct node_core *node);
/* Tasks that still run find that it has ended, and free it. The address stays: the next node daemon
 * sees to it. */
void master_ip_free(struct master_ip *ip);
/* Begins the care. */
void master_ip_start(struct master_ip *ip);
/* Something was announced: looks at once. */
void master_ip_kick(struct master_ip *ip);

json_t *master_ip_check(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error);
