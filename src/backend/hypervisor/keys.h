/*
 * Keys of transfers between guests, their replicas and incoming guests (TLS-PSK): files of the
 * unprivileged user, as which QEMU reads them, in a folder of ours; and the objects in QEMU that
 * stand for them. Used by block_jobs.c, migrate.c and incoming.c.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

enum key_end {
    KEY_CLIENT, /* read once, when the object is added */
    KEY_SERVER, /* read at each handshake, so it stays for as long as somebody may connect */
};

bool keys_write(const struct guest *guest, enum key_end end, const char *psk, GError **error);
void keys_remove(const struct guest *guest, enum key_end end);
/* In a task: adds the object `id`. */
bool keys_add(struct guest *guest, enum key_end end, const char *id, GError **error);
