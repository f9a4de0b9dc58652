/*
 * Network cards of guests on one node: the interface that core/ thinks against; backend/network/
 * and the simulator implement it. Calls run in a task. A tap device is named by (instance, index of
 * the card); it belongs to the user that guests run as and outlives the node daemon.
 */
#pragma once

#include "proto/records.h"

struct network_driver;

struct network_ops {
    /* Whether the card could be connected here; ENVIRONMENT names the bridge that is missing. */
    bool (*check)(struct network_driver *network, const struct nic *nic, GError **error);
    /* Makes the tap device of a card and connects it; the same one if it is there already. A routed
     * card whose address is left out gets its device only: the route would draw the traffic of a
     * guest that still runs elsewhere. Free the name with g_free(). */
    char *(*tap_create)(struct network_driver *network, const char *instance, guint index,
                        const struct nic *nic, GError **error);
    /* Removes all tap devices of an instance; no error if there are none. */
    bool (*tap_remove)(struct network_driver *network, const char *instance, GError **error);
    /* Tells the neighbours, once, that the address of a routed card is here now: gratuitous ARP on
     * each network that this host answers ARP on for others. Nothing to do for other cards, nor for
     * IPv6: its neighbours ask again when nobody answers at the old place. */
    bool (*nic_announce)(struct network_driver *network, const struct nic *nic, GError **error);
    /* UUIDs of the instances that have tap devices: GPtrArray of char *. */
    GPtrArray *(*list)(struct network_driver *network, GError **error);
    /* Every tap device of guests, as "INSTANCE NAME BRIDGE"; no BRIDGE: it is in none. GPtrArray of
     * char *. */
    GPtrArray *(*taps)(struct network_driver *network, GError **error);
    /* Adds a struct card_stats for each tap device of the instance. Does not wait. */
    void (*count)(struct network_driver *network, const char *instance, GPtrArray *ret_cards);
    /* Names of the bridges of this node: GPtrArray of char *. May be some seconds old,
     * unless a device came, went or was renamed. */
    GPtrArray *(*bridges)(struct network_driver *network, GError **error);

    /* --- an address of the host itself: the master IP --- */
    /* ENVIRONMENT if there is no such device. */
    bool (*device_check)(struct network_driver *network, const char *device, GError **error);
    /* Devices that carry the address: GPtrArray of char *. Does not wait. */
    GPtrArray *(*address_devices)(struct network_driver *network, const char *address,
                                  GError **error);
    /* Adds it; no error if it is there. Traffic that the host begins keeps its own source. */
    bool (*address_add)(struct network_driver *network, const char *device, const char *address,
                        guint netmask, GError **error);
    /* Removes it from the device, whatever its prefix; no error if there is none of the two. */
    bool (*address_remove)(struct network_driver *network, const char *device, const char *address,
                           GError **error);
    /* Tells the neighbours, once, that it is here now: gratuitous ARP, unsolicited neighbour
     * advertisement. */
    bool (*address_announce)(struct network_driver *network, const char *device,
                             const char *address, GError **error);
};

struct network_driver {
    const struct network_ops *ops;
};
