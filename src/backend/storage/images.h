/*
 * Image files of one node (docs/design/procedures.md, "Folders of a node"). Blocking: called by
 * files.c in a worker thread. An image is complete and synced under its name, or it is not there.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct images {
    char *disks;   /* INSTANCE.diskN.raw, INSTANCE.REPLICA.diskN.raw */
    char *aside;   /* INSTANCE[.REPLICA].gN.diskN.raw */
    char *sources; /* images to create from: OS or OS.raw */
    guint32 uid;   /* who owns images; 0: nobody but us */
};

/* Removes what a creation left behind when the process died. */
void images_sweep(const struct images *images);

bool images_source_size(const struct images *images, const char *os_type, guint64 *ret_bytes,
                        GError **error);
/* `sizes_mib`: GArray of guint64. */
bool images_create(const struct images *images, const char *instance, const char *replica,
                   const GArray *sizes_mib, const char *os_type, GError **error);
char *images_path(const struct images *images, const char *instance, const char *replica,
                  guint disk);
bool images_sync(const struct images *images, const char *instance, const char *replica,
                 GError **error);
bool images_promote(const struct images *images, const char *instance, const char *replica,
                    guint64 aside_generation, GError **error);
bool images_set_aside(const struct images *images, const char *instance, const char *replica,
                      guint64 generation, GError **error);
bool images_remove(const struct images *images, const char *instance, const char *replica,
                   GError **error);
bool images_remove_aside(const struct images *images, const char *instance, GError **error);
/* "instance replica" of each set; GPtrArray of char *, sorted. */
GPtrArray *images_list(const struct images *images, bool aside, GError **error);

/* Instances and replicas are named by UUIDs; anything else, above all a slash, is WRONG_INPUT.
 * `replica` may be "". */
bool images_check_names(const char *instance, const char *replica, GError **error);

/* For image_create.c. */
bool images_sync_file(const char *path, int open_flags, GError **error);
bool images_sync_folder(const char *folder, GError **error);
