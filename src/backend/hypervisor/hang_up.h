/*
 * Ends a TCP connection of a QEMU that cannot do it itself: the TLS handshake of a migration is
 * done by QEMU 7.2 in its main loop on a blocking socket, before `yank` knows the connection; with
 * a silent peer neither the monitor nor the guest gets any further. Used by migrate.c.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

/* Shuts every connection of the guest's process to `uri` ("tcp:ADDRESS:PORT") down, as a yank would
 * do, and every one that is just being made; does not wait. Without the privilege to do so nothing
 * happens. */
void hang_up(const struct guest *guest, const char *uri);
