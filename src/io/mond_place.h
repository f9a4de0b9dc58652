/*
 * What fettle-mond of a node may read and write, and nobody else but root: its own folder below
 * run/, what daemons leave for it in run/stats, and what it is told in var/mond. It is the user
 * MOND_USER; where the host has none, as in a lab, it is root. Used by fettle-noded.
 */
#pragma once

#include "io/node_config.h"

#define MOND_USER "fettle-mond" /* that the package makes, and the unit names */

/* Makes the folders, or gives them to that user. What is written into the latter two is its
 * group's from then on (io/files.h). STORAGE. */
bool mond_place_make(const struct node_paths *paths, GError **error);
