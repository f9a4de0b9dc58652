/*
 * One qemu-nbd for one client: the bytes of an image, to or from a file in a directory. It is a
 * child at the back end (volume_children.h) that has opened the file as each call does, relative to
 * the directory whose marker it has read, and then becomes qemu-nbd. That ends with its client, and
 * with us. For dir_volumes.c and dir_call.c.
 *
 * The socket is made here, and handed over listening. Its key is in no file: qemu-nbd reads it from
 * memory, by a name that leads there (FOLDER/keys.psk).
 */
#pragma once

#include "backend/volume/volume_children.h"
#include "proto/storage/volume_driver.h"

/* --- in the service --- */

#define TRANSFER_CONF "/proc/self/fd/5"

struct dir_transfer_call {
    struct volume_children *children;
    const char *folder;       /* for sockets; it is made */
    const char *backend;      /* UUID */
    const char *const *words; /* ended by NULL */
    const char *conf; /* its image is in a pool: only at a port it is seen whether a client gets
                       * further. The child reads this text as the file TRANSFER_CONF; else NULL */
    guint limit_ms;
    guint greet_ms, stall_ms; /* whoever comes to a port has to show his key, and to get further */
};
/* As volume_driver_ops.transfer. */
struct volume_transfer *dir_transfer_start(const struct dir_transfer_call *call,
                                           const char *address, GError **error);
enum volume_transfer_state dir_transfer_state(const struct volume_transfer *transfer);
bool dir_transfer_end(struct volume_transfer *transfer);
/* Of the folder, when no transfer of it lives. */
void dir_transfer_clear(const char *folder);

/* --- in the child --- */

/* Does not return unless with an error. `folder`: as above; "": whoever comes needs no key. */
void dir_transfer_serve(int fd, bool writes, const char *folder, GError **error);
/* Of what qemu-img opens (dir_backup.h). */
void dir_transfer_serve_file(const char *file, bool writes, const char *folder, GError **error);
