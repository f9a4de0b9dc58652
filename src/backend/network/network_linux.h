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
 * alias. It is ours, and handed over to QEMU open (tap_open() of tap.h).
 */
#pragma once

#include "proto/network.h"

struct network_driver *network_linux_new(void);
/* Tap devices live on. */
void network_linux_free(struct network_driver *network);
