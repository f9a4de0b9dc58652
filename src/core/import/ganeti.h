/*
 * Reading a config.data of Ganeti (2.16 to 3.1) into the plan of an import. Nodes are found by
 * name: a host becomes a node here by its own invitation. Groups, networks, instances with disks
 * and network cards, tags, those job filters that decide here as they did there, and those settings
 * of the cluster that exist here are taken over; everything that has no counterpart is named in the
 * notes. Instances come stopped and without images.
 */
#pragma once

#include "core/import/import.h"

/* WRONG_INPUT: it is no such file, or of a version that is not known. What is wrong with single
 * objects goes to the problems, all of them. */
bool import_ganeti(struct import *import, const struct config *now, const json_t *data,
                   GError **error);
