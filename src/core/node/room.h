/*
 * Guests that the hypervisor has stopped by itself, because a request of their disks or volumes
 * found no room: they go on when there is some (SAF-27). One task of the node daemon looks at every
 * guest, whatever events have told or not, and nobody else lets such a guest go on here.
 */
#pragma once

#include "core/node/guest.h"

/* Begins to look, until the node daemon ends. */
void room_start(struct node_core *node);

/* One that stands still so cannot do what it is asked to. True: it does not stand still so. `what`
 * says what it cannot do, as in "it cannot shut down". WRONG_STATE otherwise, with what helps. By
 * what guest_look_io() has heard last. */
bool room_check(struct guest *guest, const char *what, GError **error);
