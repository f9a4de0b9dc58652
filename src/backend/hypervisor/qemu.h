/*
 * The QEMU driver (proto/hypervisor.h): one plain QEMU process per guest, driven over QMP. Used by
 * fettle-noded.
 *
 * Guests outlive the node daemon: a session of their own, nothing inherited that dies with it, and
 * all that is needed to find them again in run/guests/UUID/:
 *
 *   state.json    what it was started for, its process, its mirror, its migration
 *   qmp.sock      for the node daemon
 *   rescue.sock   for whoever must act when the other is taken
 *   con.sock      what is typed on its serial line
 *   stderr.log    what QEMU said
 *   relay/        of its mirror (relay.h)
 *   psk/, psk-server/   keys of transfers, only while QEMU reads them
 *
 * The serial console is appended to log/guests/NAME-UUID.console.
 *
 * Images, tap devices, the file of the console, kernel and initrd stay root's; QEMU has them open
 * (SAF-105).
 */
#pragma once

#include "backend/guest_users.h"
#include "io/node_config.h"
#include "proto/hypervisor.h"

/* Both are kept by reference. Knows no guest before rediscover() was called. */
struct hypervisor *qemu_new(const struct node_paths *paths, struct guest_users *users);

/* Guests live on. */
void qemu_free(struct hypervisor *hypervisor);
