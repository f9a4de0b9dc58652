/*
 * Whether the folder that all nodes mount (template sharedfile) is mounted here: it is if it has
 * the marker that was made in it when its first image was. A mount point without its mount has
 * none. Used by file_storage.c and image_create.c.
 */
#pragma once

#include "proto/storage.h"

#include <glib.h>
#include <stdbool.h>
#include <sys/statvfs.h>

#define SHARED_MARKER "fettle-shared"
#define SHARED_MARKER_BYTES 37 /* of what is in it, with the NUL */

/* What is in the marker, a UUID, so that two folders can be told apart; owned by the caller. NULL:
 * there is none. Blocking. */
char *shared_read(const char *folder);
/* Makes the marker unless there is one, synced. Blocking. */
bool shared_mark(const char *folder, GError **error);
/* What a file system tells of its space. */
struct storage_space shared_space(const struct statvfs *space);
/* The same, with the space of the folder; 0 if that is not known. Blocking. */
char *shared_look(const char *folder, struct storage_space *ret_space);
