/*
 * Back ends of kind `rbd`: images in a pool of a Ceph (proto/storage/volume_driver.h), by its own
 * commands. Data are images `volumes.UUID.CLAIM`, of snapshots `snapshots.UUID.CLAIM`; they say
 * that they are whole by their image-meta `fettle.whole`.
 *
 * A copy in one back end is a clone of a point in time, whoever writes meanwhile, and shares what
 * nobody has written since. What it was made of can be removed first: then that is WRONG_STATE, and
 * its name is tried again until the copy is gone. An
 * image of Fettle is an image `images.UUID.CLAIM`, of whole sectors. Backups are not kept here.
 */
#pragma once

#include "backend/volume/volume_children.h"
#include "proto/storage/volume_driver.h"

/* `program` runs rbd_export_main() if RBD_EXPORT_OPTION is its first argument; `directories` is the
 * driver of back ends that are no pools (dir_volumes.h). Freed with rbd_volumes_free(), after the
 * tasks that use it have ended; what is given stays the caller's. */
struct volume_driver *rbd_volumes_new(const char *program, struct volume_driver *directories,
                                      struct volume_children *children);
void rbd_volumes_free(struct volume_driver *driver);
