/*
 * All kinds of back ends behind one driver (proto/storage/volume_driver.h): each call is that of
 * its back end's kind. fettle-volumed has one, and its kinds share their children, so the bounds of
 * volume_children.h are those of the process.
 */
#pragma once

#include "proto/storage/volume_driver.h"

/* `program` runs dir_call_main() or rbd_export_main() if DIR_CALL_OPTION or RBD_EXPORT_OPTION is
 * its first argument; each call has so much time; sockets of transfers are in `folder`. Freed with
 * volumes_by_kind_free(), after the tasks that use it have ended. */
struct volume_driver *volumes_by_kind_new(const char *program, const char *folder, guint limit_ms);
void volumes_by_kind_free(struct volume_driver *driver);
/* That of directories (dir_volumes.h), which serves all transfers. */
struct volume_driver *volumes_by_kind_dir(struct volume_driver *driver);
