/*
 * What a backup is as a file: qcow2, compressed, resting on nothing. For dir_call.c, in its child:
 * the two that convert become qemu-img, so that what hangs or is ended is one process.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* SHA-512 of a whole file, in hexadecimal, and its length; NULL: errno says why. */
char *dir_backup_sum(int fd, guint64 *ret_bytes);
/* Whether it is such a file, of a disk of at most `bytes`, and would have qemu-img read no other
 * file. CORRUPT; the message goes on after its name. */
bool dir_backup_check(int fd, guint64 bytes, GError **error);

/* Becomes qemu-img, which makes a backup of the first `bytes` of a raw file, or makes a raw file of
 * a backup, in the empty one `target`. Returns only with an error. */
void dir_backup_pack(int source, guint64 bytes, int target, GError **error);
void dir_backup_unpack(int source, int target, GError **error);
