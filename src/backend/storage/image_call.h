/*
 * Work on images in a worker thread, waited for by a task: copies and syncs take their time, and a
 * folder whose server is dead takes for ever. Used by file_storage.c and create.c.
 */
#pragma once

#include "backend/storage/disk_images.h"
#include "backend/storage/image_create.h"
#include "base/task.h"

/* One call. Owns copies of everything: its task may be killed while it runs. */
struct image_call {
    bool (*fn)(struct image_call *call, GError **error);
    struct images images;
    char *instance;
    char *replica;
    char *os_type;
    struct image_plan *plan;
    enum disk_template disk_template;
    GPtrArray *disks; /* struct disk */
    guint64 generation;
    guint64 bytes;
    struct storage_space space;
    guint disk, count;
    bool aside;
    bool shared; /* it may touch the folder that all nodes mount */
    enum disk_format format;
    char *path;
    GPtrArray *list;

    bool ok;
    GError *error;
    struct promise done;
    bool abandoned;
};

struct image_call *image_call_new(const struct images *images,
                                  bool (*fn)(struct image_call *call, GError **error),
                                  const char *instance, const char *replica);
/* What only looks does not wait for what copies: it gets a thread of its own, which hangs alone.
 * Otherwise as image_call_run(). */
struct image_call *image_call_look(struct image_call *call, GError **error);
/* What may hang with the shared folder waits for its like only. Runs it and waits; NULL with the
 * error if it failed, else to be freed. Takes the call. */
struct image_call *image_call_run(struct image_call *call, GError **error);
/* The same for a call without a result. */
bool image_call_finish(struct image_call *call, GError **error);
void image_call_free(struct image_call *call);

void images_clear(struct images *images);
