/*
 * Tap devices of guests: made before a process is, removed after its exit. An instance without
 * network cards never comes near struct network_driver.
 */
#pragma once

#include "core/node/guest.h"

enum taps_for {
    TAPS_RUN,
    TAPS_INCOMING, /* the guest still runs elsewhere: its routes stay there until it has moved */
};

/* Names of the tap devices, in order of the cards; free with g_ptr_array_unref(). NULL: error, with
 * nothing left of those that were made. */
GPtrArray *taps_create(struct guest *guest, const struct instance *instance, enum taps_for what,
                       GError **error);
/* With no process left: removes what `instance` (NULL: none known) has. A failure is put right by
 * taps_sweep(). */
void taps_remove(struct guest *guest, const struct instance *instance);
/* The guest runs here now: neighbours of this host are told of its routed cards, some times, in a
 * task of its own. */
void taps_announce(struct guest *guest);
/* Removes tap devices of instances that have no process here, if there may be any. False: the node
 * daemon was killed. */
bool taps_sweep(struct node_core *node);
