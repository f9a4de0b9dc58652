/*
 * Folders that another user may have had in hand: how root takes one for itself, and how a tree
 * goes. Used wherever a folder was, or in the version before was, QEMU's or etcd's (SAF-104).
 *
 * Nothing is followed: every step goes from an open folder to a name in it, so that no link and no
 * renaming leads out of the tree. A folder is made ours before its names are read, so that nobody
 * adds to it meanwhile. Blocking.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Removes what has this name, a file or a folder with all that is below it; that there is nothing
 * counts as removed. Another file system that is mounted below stays, which is an error; so are
 * more than LIMIT_TREE_ENTRIES names. The folder that the name stands in must be ours. */
bool tree_remove(const char *path, GError **error);

/* From its success on there is a folder of this name that we alone may change, with these mode
 * bits. Of what is in one that was another user's only the plain files and sockets among `keep`
 * stay (NULL-terminated; NULL: nothing does), whose contents are still that user's words. The
 * folder that the name stands in must be ours. */
bool tree_take(const char *path, guint mode, const char *const *keep, GError **error);
