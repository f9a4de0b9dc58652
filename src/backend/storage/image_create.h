/*
 * Making the images of an instance or a replica, in steps: a plan that has been checked, temporary
 * files, their content, and then all names at once. What takes another program's help (qcow2) is
 * done between the steps by create.c, in a task; the steps themselves block.
 */
#pragma once

#include "backend/storage/disk_images.h"
#include "backend/storage/image_source.h"

/* Bytes copied so far and in all; written by one thread, read by another. The other way round:
 * whether it is to be given up. */
struct copy_progress {
    guint64 done, total;
    gint canceled;
};

struct planned_image {
    char *path;
    char *temporary;
    enum disk_format format;
    guint64 mib;
};

struct image_plan {
    char *folder;                /* where they go */
    bool shared;                 /* that is the shared one */
    GPtrArray *planned;          /* struct planned_image, in order of disks */
    struct image_source *source; /* content of the first one; NULL: all are empty */
    struct copy_progress progress;
    guint renamed;
};

/* Checks what is wanted and makes nothing: the images of disk `first` and of those after it.
 * WRONG_INPUT: names, format, a source that does not fit; WRONG_STATE: a guest has the images open;
 * ENVIRONMENT: no shared folder. Reference-counted, since a thread may outlive the task that waits
 * for it. */
struct image_plan *image_plan_new(const struct images *images, const char *instance,
                                  const char *replica, enum disk_template disk_template,
                                  const GPtrArray *disks, guint first, const char *os_type,
                                  GError **error);
struct image_plan *image_plan_ref(struct image_plan *plan);
void image_plan_unref(struct image_plan *plan);

/* Whether the content of the first image is for qemu-img to copy. */
bool image_plan_converts(const struct image_plan *plan);

/* Raw temporary files in full size; with its content if we copy that ourselves. */
bool image_plan_fill(const struct images *images, struct image_plan *plan, GError **error);
/* CANCELED if somebody has said so: true otherwise. */
bool image_plan_goes_on(const struct image_plan *plan, GError **error);
/* Everything under its name, synced. What stood there before goes only now. */
bool image_plan_finish(const struct images *images, struct image_plan *plan, GError **error);
/* After a failure: half a new set is none. */
void image_plan_undo(const struct image_plan *plan);

/* Whether it is the name of an image that is being made, or was when its maker died. */
bool images_is_temporary(const char *name);
/* Removes what creations of an instance (NULL: of all) left in a folder when their process died. */
void images_sweep(const char *folder, const char *instance);
