/*
 * What the parts of the file storage share: file_storage.c (the calls), create.c (creating and
 * growing), export.c (exports).
 */
#pragma once

#include "backend/storage/disk_images.h"
#include "backend/storage/file_storage.h"
#include "backend/storage/image_call.h"
#include "backend/storage/shared.h"
#include "base/task.h"

struct file_storage {
    struct storage base;
    const struct node_paths *paths;
    struct images images;
    struct guest_users *users;
    struct storage_events events;
    gint64 shared_ms; /* boot clock: when the look at the shared folder began that is under way */
    char marker[SHARED_MARKER_BYTES]; /* of the shared folder, as it was seen last */
    GHashTable *creating;             /* instance -> struct image_plan */
    GHashTable *exports;              /* replica -> struct export */
    struct task_mutex opening;        /* exports are opened and closed one after the other */
};

/* file_storage.c */
bool file_storage_sync(struct storage *storage, const char *instance, const char *replica,
                       GError **error);
GPtrArray *file_storage_files(struct storage *storage, const char *instance, const char *replica,
                              guint count, GError **error);
/* What is exported must not be replaced or renamed: the copies would diverge without anybody
 * noticing. WRONG_STATE. */
bool storage_check_not_exported(const struct file_storage *storage, const char *replica,
                                GError **error);

/* Whether what is done with that set may reach for the shared folder: the node's own disks have
 * none of it. Stops nobody else if they hang. */
bool storage_may_be_shared(struct storage *storage, const char *instance, const char *replica);

/* create.c */
bool storage_create(struct storage *storage, const char *instance, const char *replica,
                    enum disk_template disk_template, const GPtrArray *disks, const char *os_type,
                    GError **error);
bool storage_renew(struct storage *storage, const char *instance, const char *replica,
                   enum disk_template disk_template, const GPtrArray *disks, guint first,
                   GError **error);
void storage_give_up(struct storage *storage, const char *instance);
bool storage_progress(struct storage *storage, const char *instance, guint64 *ret_done,
                      guint64 *ret_total);
bool storage_grow(struct storage *storage, const char *instance, const char *replica, guint disk,
                  guint64 size_mib, GError **error);

/* export.c */
bool export_open(struct storage *storage, guint64 history, const char *instance,
                 const char *replica, guint64 generation, const GPtrArray *disks,
                 const char *address, bool durable, struct export_target **ret_target,
                 GError **error);
bool export_settle(struct storage *storage, const struct export_target *target, GError **error);
bool export_close(struct storage *storage, const char *instance, const char *replica,
                  GError **error);
GPtrArray *export_rediscover(struct storage *storage, GError **error);
/* Whether a process of ours exports the images of that set now. */
bool export_is_open(const struct file_storage *storage, const char *replica);
void export_free(void *data);
