/*
 * What a backup is as a file: qcow2, compressed, resting on nothing; an image likewise, or raw. For
 * dir_call.c, in its child:
 * the two that convert become qemu-img, so that what hangs or is ended is one process.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* SHA-512 of a whole file, in hexadecimal, and its length; NULL: errno says why. */
char *dir_backup_sum(int fd, guint64 *ret_bytes);
/* The same of an image: MD5 and SHA-512. */
bool dir_image_sums(int fd, guint64 *ret_bytes, char *ret_md5, char *ret_sha512);
/* Whether it is such a file, of a disk of at most `bytes`, how large that is, and that it would
 * have qemu-img read no other file. CORRUPT; the message goes on after its name. */
bool dir_backup_check(int fd, guint64 bytes, guint64 *ret_size, GError **error);
/* The same of what it begins with, which is LIMIT_QCOW2_HEADER_BYTES or all of it. */
bool dir_backup_check_start(const guint8 *start, gsize len, guint64 bytes, guint64 *ret_size,
                            GError **error);

/* What qemu-img reads or writes: a file that is open here, or, of another kind of back end, what it
 * opens by itself: a `file` of its block layer, as JSON. */
struct dir_image {
    int fd;
    const char *outside; /* NULL: none */
};

/* Becomes qemu-img, which makes a backup of the first `bytes` of a raw image; makes a raw image of
 * a backup; makes one of the first `bytes` of another, of all of it for 0. A file that it writes is
 * empty before, another target is large enough and blank. Returns only with an error. */
void dir_backup_pack(const struct dir_image *source, guint64 bytes, int target, GError **error);
void dir_backup_unpack(int source, const struct dir_image *target, GError **error);
void dir_backup_copy(const struct dir_image *source, guint64 bytes, const struct dir_image *target,
                     GError **error);
/* As packing, uncompressed, in that format. */
void dir_backup_upload(const struct dir_image *source, guint64 bytes, const char *format,
                       int target, GError **error);
