/*
 * Network cards of guests on a Linux host (proto/network.h), by the programs ip and ovs-vsctl. Used
 * by fettle-noded.
 *
 *   bridged      the tap device is a port of the Linux bridge nic->link
 *   routed       no bridge: a host route leads to nic->ip through the tap device, which answers ARP
 *                for everybody else (as Ganeti's routed mode); nic->link names a routing table
 *   openvswitch  the tap device is a port of the Open vSwitch bridge nic->link
 *
 * A tap device is persistent: it outlives QEMU and the node daemon, and is found again by its
 * alias.
 */
#pragma once

#include "proto/network.h"

/* `qemu_uid`: user that may open the tap devices; 0, or if we are not root: only ourselves. */
struct network_driver *network_linux_new(guint32 qemu_uid);
/* Tap devices live on. */
void network_linux_free(struct network_driver *network);
