/*
 * What the parts of the file storage share: files.c (images), export.c (exports).
 */
#pragma once

#include "backend/storage/file_storage.h"
#include "backend/storage/images.h"
#include "base/task.h"

struct file_storage {
    struct storage base;
    const struct node_paths *paths;
    struct images images;
    struct storage_events events;
    GHashTable *exports;       /* replica -> struct export */
    struct task_mutex opening; /* exports are opened and closed one after the other */
};

/* In a task: runs fn(images, …) in a worker thread. See files.c. */
bool file_storage_sync(struct storage *storage, const char *instance, const char *replica,
                       GError **error);
GPtrArray *file_storage_files(struct storage *storage, const char *instance, const char *replica,
                              guint count, GError **error);

/* export.c */
bool export_open(struct storage *storage, guint64 history, const char *instance,
                 const char *replica, guint64 generation, const GPtrArray *disks,
                 const char *address, struct export_target **ret_target, GError **error);
bool export_close(struct storage *storage, const char *instance, const char *replica,
                  GError **error);
GPtrArray *export_rediscover(struct storage *storage, GError **error);
/* Whether a process of ours exports the images of that set now. */
bool export_is_open(const struct file_storage *storage, const char *replica);
void export_free(void *data);
