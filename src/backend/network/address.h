/*
 * Addresses of the host itself on Linux: the master IP (proto/network.h). Part of
 * network_linux_new().
 */
#pragma once

#include "proto/network.h"

bool address_device_check(struct network_driver *network, const char *device, GError **error);
GPtrArray *address_devices(struct network_driver *network, const char *address, GError **error);
bool address_add(struct network_driver *network, const char *device, const char *address,
                 guint netmask, GError **error);
bool address_remove(struct network_driver *network, const char *device, const char *address,
                    GError **error);
/* Needs CAP_NET_RAW. Nothing to do on a device that is no Ethernet. */
bool address_announce(struct network_driver *network, const char *device, const char *address,
                      GError **error);
/* That the address (IPv4) of a guest is reached through this host, on every Ethernet device that is
 * up and has proxy ARP, but not to guests. */
bool address_announce_routed(const char *address, GError **error);
