/*
 * Storage of a node on plain files (proto/storage.h): raw and qcow2 images under var/disks or, for
 * the template sharedfile, in a folder that all nodes mount; replicas exported by one nbdkit
 * process per disk. Used by fettle-noded.
 */
#pragma once

#include "backend/guest_users.h"
#include "io/node_config.h"
#include "proto/storage.h"

/* `paths` is kept by reference. `shared_dir`: as in etc/node.json, a relative one from the root
 * folder; NULL or "": shared/ below var/. `users`: that exports run as, kept by reference. Never
 * fails: what is wrong with the folders is said by the first call that needs them. */
struct storage *file_storage_new(const struct node_paths *paths, const char *shared_dir,
                                 struct guest_users *users);

/* Exports live on. */
void file_storage_free(struct storage *storage);
