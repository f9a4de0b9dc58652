/*
 * The connection that a guest's memory leaves by. We make it and hand it over, and hold an end of
 * our own until QEMU itself can end it (`yank`), which it can not before the TLS handshake is done:
 * with a silent peer the migration could neither go on nor be cancelled. Nobody else's descriptors
 * are looked at for that, which would take privileges that the node daemon has not. Used by
 * migrate.c.
 *
 * The connection does not block. On one that QEMU 7.2 makes itself the handshake does, in its main
 * loop: with a silent peer neither the monitor nor the guest would get any further. So a guest
 * whose node daemon is restarted in mid-handshake runs on; its migration then ends when the waiting
 * process on the other side does.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

/* In a task: connects to where the guest's memory goes. UNREACHABLE; KILLED if the migration is
 * given up meanwhile. */
bool migration_socket_connect(struct guest *guest, GError **error);
/* In a task: tells QEMU to send through it. */
bool migration_socket_begin(struct guest *guest, GError **error);
/* Ends the connection if we still have an end of it; does not wait. */
void migration_socket_hang_up(const struct guest *guest);
/* QEMU's word for where the migration stands: whether our end is still needed. */
void migration_socket_note(struct guest *guest, const char *status);
/* Closes our end, by which the connection does not end. */
void migration_socket_let_go(struct migration *migration);
