/*
 * The node that a guest moves to (procedures.md, "Migration"): a process that waits for another
 * one's memory. It is no generation of this node yet: nothing is used, it never runs by itself, and
 * only guest_start of generation g+1 with the migration that it was opened for makes it the guest.
 * Whatever else happens to the instance here ends it first.
 *
 * record->incoming is kept from before the process is made until it has become the guest or was
 * closed, so that nothing of it is forgotten when the node daemon or the node dies.
 */
#pragma once

#include "core/node/guest.h"

/* Procedures of noded's methods. */
json_t *incoming_open(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);
json_t *incoming_switch(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error);
json_t *incoming_close(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error);

/* UUID of the migration that a process waits for here, "" if none does; and the generation that it
 * would run as. */
const char *incoming_migration(const struct guest *guest);
guint64 incoming_generation(const struct guest *guest);

/* With the guest locked: ends the process that waits, if any, its exit seen. Images that were made
 * for it stay (they may be the current ones by now). */
bool incoming_end(struct guest *guest, GError **error);
/* The same, and the images that were made for it are removed. Only if the master's record, or a job
 * that knows it, says that the migration has not moved the guest here. */
bool incoming_discard(struct guest *guest, GError **error);
/* With the guest locked and nothing of it live: images that were made for an incoming guest become
 * the instance's, because the record says that it has moved here. */
bool incoming_promote(struct guest *guest, GError **error);
/* The process that waits has everything and becomes record->spec's generation; from then on it is
 * the caller's as one that was prepared. WRONG_STATE: it is gone or not whole, and has been ended.
 */
bool incoming_take(struct guest *guest, const char *migration, GError **error);

/* At the start of the node daemon: a process that waits was found. */
bool incoming_found(struct guest *guest, const struct guest_report *found, GError **error);
/* With the guest locked: what the master says of it (reconcile.c). False: the node daemon was
 * killed.
 */
bool incoming_apply(struct guest *guest, const struct confirm_result *answer);
