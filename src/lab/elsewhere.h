/*
 * Mounts of the lab that live on in mount namespaces of others. Whoever copies the mount namespace
 * while a node has power – `ip netns exec` of anybody does, and so does a container that starts –
 * has the node's file systems too, and a loop device stays busy as long as one copy of them does.
 * Used by disk.c.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

/* Unmounts the device in every other mount namespace; what is busy there is detached lazily. Ends
 * nothing, and cannot fail: what stays is told by elsewhere_user(). */
void elsewhere_unmount(dev_t device);

/* A process that has the device still: "process 4711 (bash), which has it mounted", or "…, which
 * has a file or its working folder in there". NULL: none is seen. */
char *elsewhere_user(dev_t device);

/* Paths in /proc have blanks and the like as \ooo; g_free() the plain text. */
char *elsewhere_unescape(const char *text);
