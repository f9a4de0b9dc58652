/*
 * Back ends of kind `dir`: a directory that several nodes see (proto/storage/volume_driver.h). Data
 * is PATH/volumes/UUID.CLAIM, of snapshots PATH/snapshots/UUID.CLAIM, raw and sparse, made under
 * that name at once: no record names it before it is whole. `fettle-backend` in PATH is the marker.
 */
#pragma once

#include "backend/volume/volume_children.h"
#include "proto/storage/volume_driver.h"

/* `program` runs dir_call_main() if DIR_CALL_OPTION is its first argument; each call has so much
 * time; sockets of transfers are in `folder`. Freed with dir_volumes_free(), after the tasks that
 * use it have ended; the children stay the caller's. */
struct volume_driver *dir_volumes_new(const char *program, const char *folder,
                                      struct volume_children *children, guint limit_ms);
void dir_volumes_free(struct volume_driver *driver);
/* What a process that died has left in `folder`. */
void dir_volumes_clear(const struct volume_driver *driver);

/* --- for the driver of another kind: its data on one side, a directory on the other --- */

/* Data of another kind, as qemu-img opens it (dir_backup.h); that is large enough, whole or blank.
 */
struct dir_outside {
    const char *backend; /* UUID: a child that touches it counts there, too */
    const char *file;
    const char *conf; /* a text that it needs for that, and reads as the file CHILD_TEXT */
};

/* back_up, restore, upload and download of the driver (proto/storage/volume_driver.h). The caller
 * marks a volume that is outside. */
bool dir_volumes_pack(struct volume_driver *driver, const struct dir_outside *outside,
                      const struct backend *backend, const char *name, guint64 size_gib,
                      guint64 *ret_bytes, char **ret_sum, GError **error);
bool dir_volumes_unpack(struct volume_driver *driver, const struct backend *from,
                        const struct backup *backup, const struct dir_outside *outside,
                        guint64 size_gib, GError **error);
bool dir_volumes_upload(struct volume_driver *driver, const struct dir_outside *outside,
                        const struct backend *backend, const char *name, enum disk_format format,
                        guint64 size_gib, struct image_sums *ret_sums, GError **error);
bool dir_volumes_download(struct volume_driver *driver, const struct backend *from,
                          const struct image *image, const struct dir_outside *outside,
                          guint64 size_gib, GError **error);
/* copy, into the directory, of the first `bytes`; and out of it. */
bool dir_volumes_take(struct volume_driver *driver, const struct dir_outside *outside,
                      const struct backend *backend, enum resource_type type, const char *name,
                      guint64 bytes, guint64 size_gib, GError **error);
bool dir_volumes_give(struct volume_driver *driver, const struct backend *from,
                      enum resource_type source_type, const char *source,
                      const struct dir_outside *outside, guint64 size_gib, GError **error);
/* One client, by NBD, and a child that runs these words, and the folder of its key or "", and
 * becomes qemu-nbd. `conf`: as dir_transfer_call. */
struct volume_transfer *dir_volumes_serve(struct volume_driver *driver,
                                          const struct backend *backend, const char *const *words,
                                          const char *conf, const char *address, GError **error);
/* How long an image of that length may take to be read, besides. */
guint64 dir_measure_ms(guint64 bytes);

/* --- for tests --- */

/* Else 10 s, and LIMIT_TRANSFER_STALL_MS. */
void dir_volumes_set_patience(struct volume_driver *driver, guint greet_ms, guint stall_ms);
