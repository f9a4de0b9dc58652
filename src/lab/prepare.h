/*
 * What is on a node's disks before it is first used: folders, identity, images to make instances
 * from. As an installer and an administrator would have left it.
 */
#pragma once

#include "lab/layout.h"

/* The lab's certificate authority, on node 1: call with node 1 mounted, before any prepare_node().
 */
bool prepare_authority(const struct layout *layout, GError **error);

/* Folders; with an identity also certificates, etc/node.json and the counting guest's images.
 * Survives a power cut. */
bool prepare_node(const struct layout *layout, guint node, GError **error);
