/*
 * Back ends of kind `dir`: a directory that several nodes see (proto/storage/volume_driver.h). Data
 * is PATH/volumes/UUID.CLAIM, of snapshots PATH/snapshots/UUID.CLAIM, raw and sparse, made under
 * that name at once: no record names it before it is whole. `fettle-backend` in PATH is the marker.
 */
#pragma once

#include "proto/storage/volume_driver.h"

/* `program` runs dir_call_main() if DIR_CALL_OPTION is its first argument; each call has so much
 * time; sockets of transfers are in `folder`. Freed with dir_volumes_free(), after the tasks that
 * use it have ended. */
struct volume_driver *dir_volumes_new(const char *program, const char *folder, guint limit_ms);
void dir_volumes_free(struct volume_driver *driver);
/* What a process that died has left in `folder`. */
void dir_volumes_clear(const struct volume_driver *driver);

/* --- for tests --- */

/* Else 10 s, and LIMIT_TRANSFER_STALL_MS. */
void dir_volumes_set_patience(struct volume_driver *driver, guint greet_ms, guint stall_ms);
/* How long an image of that length may take to be read, besides. */
guint64 dir_measure_ms(guint64 bytes);
