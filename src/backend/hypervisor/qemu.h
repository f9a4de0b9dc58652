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
 *   pid           QEMU's own pid file
 *   stderr.log    what QEMU said
 *   relay/        of its mirror (relay.h)
 *   psk/, psk-server/   keys of transfers, only while QEMU reads them
 *
 * The serial console is appended to log/guests/NAME-UUID.console.
 */
#pragma once

#include "io/node_config.h"
#include "proto/hypervisor.h"

/* `paths` is kept by reference. `qemu_uid`: user (and group) that QEMU becomes; 0, or if we are not
 * root: it stays what we are. Knows no guest before rediscover() was called. */
struct hypervisor *qemu_new(const struct node_paths *paths, guint32 qemu_uid);

/* Guests live on. */
void qemu_free(struct hypervisor *hypervisor);
