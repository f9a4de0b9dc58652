/*
 * A guest that moves to another node, on the node that it leaves (procedures.md, "Migration"). A
 * task beside the guest drives the migration to its end, whatever becomes of the job that began it
 * and of the mastership under which it began: like the mirror watch it is the node's own, and all
 * that it does elsewhere is a compare-and-set on what the master has on record.
 *
 * While memory is copied the task holds nothing, and any procedure may want the guest back. For the
 * switch it takes the guest's lock, and keeps it until the guest goes on here, or its process is
 * gone and that is on disk (phase migrated). From then on the task only tells the master.
 */
#pragma once

#include "core/node/guest.h"

/* Procedures of noded's methods. */
json_t *outgoing_start(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error);
json_t *outgoing_wait(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);
json_t *outgoing_cancel(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error);

/* With the guest locked: gives the migration up, if there is one, and waits until that is done; the
 * guest then is here as before. WRONG_STATE: it has left; TIMEOUT: neither yet. */
bool outgoing_stop(struct guest *guest, const char *why, GError **error);
/* With the guest locked, by a procedure that ends the guest here because the master's record says
 * so: the task goes without a further deed. False: the node daemon was killed. */
bool outgoing_drop(struct guest *guest);
/* For the mirror watch: the replica is lost, so the migration will not be completed. Waits a little
 * for its end, because a guest that stands still for it cannot write. */
void outgoing_lost(struct guest *guest, const char *why);

/* Where the guest's migration stands, as node_report tells it. */
enum migration_state outgoing_state(const struct guest *guest);
/* At the start of the node daemon, everything being rediscovered: takes up what was under way. */
bool outgoing_resume(struct guest *guest, GError **error);
