/*
 * Makes a cluster of a lab's nodes with the commands that a user would type, so that the lab walks
 * the same path.
 */
#pragma once

#include "lab/lab.h"
#include "lab/layout.h"

/* `fettle cluster init` on node 1, the master's daemons started, `fettle node add` for the others.
 */
bool form_cluster(const struct layout *layout, const struct lab_options *options, GError **error);
