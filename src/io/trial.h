/*
 * Whether a folder's disk works: a little is written there, synced and read, in a file that has
 * room for HEALTH_ROOM_BYTES. In a thread of its own, as a disk that does not answer would hold up
 * whatever else waits in the same. Used for the node's state (real_env.c) and its disks
 * (backend/storage/file_storage.c).
 *
 * No crash points: whoever asks for a report would move the numbers of all others, and a death in
 * here leaves nothing.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* In a task: waits as long as the disk does. NO_RESOURCES: it is full; STORAGE: anything else;
 * KILLED. */
bool trial_write(const char *folder, GError **error);
