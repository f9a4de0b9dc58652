/*
 * File systems of the lab: ext4 on a loop file that can lose its power, mounted and unmounted by
 * system calls. Loop devices free themselves with their last user (autoclear), so a crash at any
 * moment leaves none behind once nothing is mounted.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Makes a sparse file with an empty ext4 in it, for so many files. */
bool disk_create(const char *image, guint mib, guint files, GError **error);

/* Mounts it; refused while the image is still attached to a loop device, as two users would destroy
 * it. */
bool disk_mount(const char *image, const char *folder, GError **error);
bool disk_mount_tmpfs(const char *folder, GError **error);
bool disk_bind(const char *source, const char *folder, GError **error);

/* Whether a file system is mounted exactly there. */
bool disk_is_mounted(const char *folder);

/* What a power cut leaves: from now on nothing more reaches the image, neither data nor journal. */
bool disk_cut(const char *folder, GError **error);
/* The same for every ext4 mounted at or below `folder`, and what stands still goes on, to fail; for
 * cleaning up, so failures are passed over. */
void disk_cut_below(const char *folder);

/* Unmounts everything at and below `folder`, innermost first; what stays busy is detached lazily.
 */
bool disk_unmount_below(const char *folder, GError **error);

/* Waits until no loop device uses a file whose path begins with `path`, and takes its mounts out of
 * copies of the mount namespace that others have; STORAGE with the process that has it if one still
 * does after some seconds. */
bool disk_wait_detached(const char *path, GError **error);

/* What a kernel does to a file system after an error: it can be read, and nothing in it can be
 * written. The next mount ends it. */
bool disk_read_only(const char *folder, GError **error);

/* Its file system can be written to, or only be read. Refused while something in it is open for
 * writing. */
bool disk_set_writable(const char *folder, bool writable, GError **error);

/* Whoever writes to its file system, or opens something for writing, waits; not even SIGKILL ends
 * that. Until it is thawed; no error if it is not frozen. */
bool disk_freeze(const char *folder, GError **error);
bool disk_thaw(const char *folder, GError **error);

/* Fills the file system that `folder` is in with one file, until `leave_mib` MiB are free. */
bool disk_fill(const char *folder, guint leave_mib, GError **error);
bool disk_unfill(const char *folder, GError **error);
