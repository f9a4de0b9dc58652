/*
 * The bytes of one file in another one: shared where the file system can
 * (FICLONE), else copied, with the holes left out.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The first `bytes` of `source`, or all if it has fewer, into the empty file `target`, which has
 * their length then. False: errno says why. */
bool dir_copy_bytes(int source, int target, guint64 bytes);
