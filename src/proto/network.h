/*
 * Network cards of guests on one node: the interface that core/ thinks against; backend/network/
 * and the simulator implement it. Calls run in a task. A tap device is named by (instance, index of
 * the card); it belongs to the user that guests run as and outlives the node daemon.
 */
#pragma once

#include "proto/records.h"

struct network;

struct network_ops {
    /* Whether the card could be connected here; ENVIRONMENT names the bridge that is missing. */
    bool (*check)(struct network *network, const struct nic *nic, GError **error);
    /* Makes the tap device of a card and connects it; the same one if it is there already. A routed
     * card whose address is left out gets its device only: the route would draw the traffic of a
     * guest that still runs elsewhere. Free the name with g_free(). */
    char *(*tap_create)(struct network *network, const char *instance, guint index,
                        const struct nic *nic, GError **error);
    /* Removes all tap devices of an instance; no error if there are none. */
    bool (*tap_remove)(struct network *network, const char *instance, GError **error);
    /* UUIDs of the instances that have tap devices: GPtrArray of char *. */
    GPtrArray *(*list)(struct network *network, GError **error);
    /* Names of the bridges of this node: GPtrArray of char *. */
    GPtrArray *(*bridges)(struct network *network, GError **error);
};

struct network {
    const struct network_ops *ops;
};
