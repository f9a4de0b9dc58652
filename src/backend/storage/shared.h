/*
 * Whether the folder that all nodes mount (template sharedfile) is mounted here: it is if it has
 * the marker that was made in it when its first image was. A mount point without its mount has
 * none. Used by files.c and image_create.c.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define SHARED_MARKER "fettle-shared"

/* What is in the marker, a UUID, so that two folders can be told apart; owned by the caller. NULL:
 * there is none. Blocking. */
char *shared_read(const char *folder);
/* Makes the marker unless there is one, synced. Blocking. */
bool shared_mark(const char *folder, GError **error);

/* Looks at the folder of a server that may be dead: in a thread of its own, one at a time, so that
 * its death holds up nobody. */
struct shared_watch;
struct shared_watch *shared_watch_new(const char *folder);
void shared_watch_free(struct shared_watch *watch);
/* As shared_read(), "" for none; waits at most LIMIT_SHARED_LOOK_MS, then it counts as none. In a
 * task. Borrowed until the next call. */
const char *shared_watch_look(struct shared_watch *watch);
