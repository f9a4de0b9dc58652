/*
 * Looks at a folder of a server that may be dead: in a thread of its own, one at a time, so that
 * its death holds up nobody. Used by files.c, for the shared folder and for that of the images.
 */
#pragma once

/* `look` runs in that thread: what it finds, owned by the caller, or NULL for nothing. */
struct lookout;
struct lookout *lookout_new(const char *folder, char *(*look)(const char *folder));
void lookout_free(struct lookout *lookout);
/* What `look` finds now; NULL: nothing, or not within LIMIT_LOOK_MS. In a task. Borrowed until the
 * next call. */
const char *lookout_see(struct lookout *lookout);
