/*
 * Image files of one node (docs/design/procedures.md, "Folders of a node"). Blocking: called by
 * file_storage.c and create.c in a worker thread. An image is complete and synced under its name,
 * or it is not there.
 *
 * Images of an instance lie in one of two folders: `disks`, which is this node's own, or `shared`,
 * which all nodes mount (template sharedfile). Which one is not told but found: by name in `disks`
 * first, then in `shared`. The rule for what is shared (SAF-19, SAF-21): it belongs to no node, so
 * no node that returns may judge it. It is never set aside, promoted or demoted, it is not listed
 * among a node's images, and it is made anew or removed only because a job says so, and not while a
 * process of any node has it open.
 */
#pragma once

#include "proto/storage.h"

#include <stdbool.h>

struct images {
    char *disks;   /* INSTANCE.diskN.FORMAT, INSTANCE.REPLICA.diskN.FORMAT */
    char *aside;   /* INSTANCE[.REPLICA].gN.diskN.FORMAT */
    char *shared;  /* INSTANCE.diskN.FORMAT; need not exist */
    char *sources; /* images to create from */
};

/* A file name taken apart. */
struct disk_image {
    char *path;
    char *instance;
    char *replica; /* "" */
    guint disk;
    enum disk_format format;
    guint64 generation; /* of what is kept aside; else 0 */
};

/* --- names (disk_image_names.c) --- */

/* Instances and replicas are named by UUIDs; anything else, above all a slash, is WRONG_INPUT.
 * `replica` may be "". */
bool images_check_names(const char *instance, const char *replica, GError **error);

/* Where an image is, or would be, in `folder`. */
char *images_path(const char *folder, const char *instance, const char *replica, guint disk,
                  enum disk_format format);

/* Images in a folder, sorted by name; `instance` and `replica` NULL: of all. GPtrArray of struct
 * disk_image. A shared folder that does not exist is empty. */
GPtrArray *images_find(const struct images *images, const char *folder, const char *instance,
                       const char *replica, GError **error);
/* The images of an instance or replica wherever they are. While this node has some of its own the
 * shared folder is not looked at, so that its server's death holds up nobody else. */
GPtrArray *images_find_set(const struct images *images, const char *instance, const char *replica,
                           GError **error);
bool image_is_shared(const struct images *images, const struct disk_image *image);

/* The one file of a disk. UNKNOWN_ENTITY if it is missing; CORRUPT if there are two, in both
 * folders or in both formats: nobody can tell which is current. Without `shared` only the node's
 * own disks are looked at, because the shared folder hangs: TEMPORARY if it is not there. */
char *images_file(const struct images *images, const char *instance, const char *replica,
                  guint disk, bool shared, GError **error);
/* The same for disks 0 to count - 1. */
GPtrArray *images_files(const struct images *images, const char *instance, const char *replica,
                        guint count, bool shared, GError **error);

/* WRONG_STATE if a process has the image open: QEMU locks what it opens, on a shared folder for all
 * nodes to see. */
bool images_check_unused(const char *path, GError **error);

/* --- whole sets (disk_images.c) --- */

bool images_sync(const struct images *images, const char *instance, const char *replica,
                 GError **error);
/* image_check.c: all of disks 0 to count - 1 are there, and can be read from the disk. `shared` as
 * for images_file(). */
bool images_check(const struct images *images, const char *instance, const char *replica,
                  guint count, bool shared, GError **error);
/* A qcow2 image of ours: its size inside, in bytes. CORRUPT: its header is damaged, or names a file
 * that its data are in or that it rests on; STORAGE. */
bool images_check_header(const char *path, guint64 *ret_bytes, GError **error);
/* All those of qcow2 among these files. */
bool images_check_headers(const GPtrArray *files, GError **error);
bool images_promote(const struct images *images, const char *instance, const char *replica,
                    guint64 aside_generation, GError **error);
bool images_demote(const struct images *images, const char *instance, const char *replica,
                   GError **error);
bool images_set_aside(const struct images *images, const char *instance, const char *replica,
                      guint64 generation, GError **error);
bool images_remove(const struct images *images, const char *instance, const char *replica,
                   GError **error);
/* Those of disk `first` and beyond only. */
bool images_trim(const struct images *images, const char *instance, const char *replica,
                 guint first, GError **error);
bool images_remove_aside(const struct images *images, const char *instance, GError **error);
/* Each set of this node's own, with the disks that have an image; GPtrArray of struct image_set,
 * sorted by instance and replica. */
GPtrArray *images_list(const struct images *images, bool aside, GError **error);

/* Names of whatever else is in `disks`, sorted, one more than `most` at most. */
GPtrArray *images_strays(const struct images *images, guint most, GError **error);

bool images_sync_file(const char *path, int open_flags, GError **error);
bool images_sync_folder(const char *folder, GError **error);

/* NO_RESOURCES for a full disk, STORAGE for everything else: "cannot WHAT PATH: errno". Returns
 * false. */
bool images_fail(const char *what, const char *path, GError **error);
