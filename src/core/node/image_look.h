/*
 * The images of one instance on this node, looked at in bounded time, whatever hangs (SAF-90, 91):
 * for undo.c and collect.c, which hold the guest's lock meanwhile. What cannot be looked at is
 * TEMPORARY, and never told as missing.
 *
 * Images that were to be promoted, or wait to be taken (SAF-22), are here under other names; shared
 * ones are in no list.
 */
#pragma once

#include "core/node/node_private.h"

/* Waits until that moment of the boot clock, at most. Its sets on this node's own disks: struct
 * image_set; a folder on disks that have failed may list nothing, or anything, so it is TEMPORARY.
 * NULL: error. */
GPtrArray *image_look_sets(struct node_core *node, const char *instance, gint64 until_ms,
                           GError **error);
/* The same of the disks under its own name, in order: struct sight_disk. `shared`: they are in the
 * folder that all nodes mount. */
GPtrArray *image_look_disks(struct node_core *node, const char *instance, bool shared, guint count,
                            gint64 until_ms, GError **error);
GHashTable *image_look_table(void); /* node->size_looks */
