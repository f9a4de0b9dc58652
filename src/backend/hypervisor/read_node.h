/*
 * A second block node of each of a guest's images, by which they can be read beside the guest: of
 * the same file whatever its name has become, read-only, without locks. Raw images only: both nodes
 * go through the host's page cache, which is one. Used by incremental.c.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

/* In this attachment of the mirror. Free with g_free(). */
char *read_node_name(const struct guest *guest, guint disk);
/* All of them. WRONG_STATE if an image is not raw, or not known since the node daemon was
 * restarted. */
bool read_nodes_add(struct guest *guest, GError **error);
/* No error for those that are not there. */
bool read_nodes_remove(struct guest *guest, GError **error);
