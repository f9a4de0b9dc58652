/*
 * `fettle-wconfd --restore FILE`: puts a backup in the place of the store, on a node where wconfd
 * does not run. `fettle cluster restore` is who starts it, after a person has agreed.
 */
#pragma once

#include "io/node_config.h"

/* Everything is looked at before anything is changed. WRONG_STATE: wconfd runs here, or this host
 * belongs to another cluster; CORRUPT, WRONG_INPUT: the file. */
bool wconfd_restore(const struct node_paths *paths, const char *file, GError **error);
