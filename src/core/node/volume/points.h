/*
 * Points in time of volumes that guests here write to (SAF-59): a member of the back end asks for
 * one, by the claim of its work. The note of the guest has that claim before anything is put in and
 * until all of it is seen to be gone; what has come of it the hypervisor is asked. A claim that is
 * not on record any more is ended by the node itself, so none outlives its owner.
 */
#pragma once

#include "core/node/guest.h"

json_t *points_open(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error);
json_t *points_look(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error);
json_t *points_close(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error);

/* With the guest locked: ends what there is of that volume, of all of them (NULL), for what its
 * guest is to do more urgently. TEMPORARY: it does not end yet. */
bool points_end(struct guest *guest, const char *volume, GError **error);
/* Asks the master now and then whether the claim of the first one stands; if not it is ended. */
void points_watch(struct guest *guest);
