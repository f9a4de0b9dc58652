/*
 * Volumes of a running guest (SAF-57, SAF-124). The hypervisor is asked what it has; the note of
 * this node says what it may have, so that a guest that was asked to give one up is asked on by the
 * next node daemon.
 */
#pragma once

#include "core/node/guest.h"

/* Replaces a list of struct guest_volume; NULL: by none. */
void volumes_copy(GPtrArray *to, const GPtrArray *volumes);
/* Whether the master's record has each of them as this generation's. */
bool volumes_confirm(struct node_core *node, const struct epoch_fence_op *op,
                     const struct guest_start_args *args, GError **error);
/* With the guest locked, before it runs: the master learns who has those in pools open (SAF-58). */
bool volumes_tell_clients(struct guest *guest, GError **error);
/* As the note has it; NULL: it has not. */
struct guest_volume *volumes_find(const struct guest *guest, const char *uuid);
/* A guest that lives here and has the volume; NULL: none. */
struct guest *volumes_guest_with(struct node_core *node, const char *volume);
/* Whether its guest is asked to give one up. */
bool volumes_leave(const struct guest *guest);
/* Looks whether it has, and tells the master; with a procedure under way it is tried again later.
 */
void volumes_finish(struct guest *guest);

/* Once in the life of a process, and of a node daemon, and again after a refusal or a failure:
 * tells its guest what has grown when nobody could be told, as in a migration. Does not wait: a
 * look may hang. */
void volumes_catch_up(struct guest *guest);

/* Now and then: whether the master's record gives it what it has open. After a restore of the store
 * it may not, and nothing else would tell: nobody is at work there. */
void volumes_watch(struct guest *guest);
/* Of any guest here, as a fault of the node (SAF-92); NULL: there is none. Free with g_free(). */
char *volumes_strange_text(const struct node_core *node);

json_t *volumes_attach(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error);
/* No error either if no guest here has it, or knows it as so large already. */
json_t *volumes_grown(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error);
json_t *volumes_detach(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error);
