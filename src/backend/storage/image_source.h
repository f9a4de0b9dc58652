/*
 * Images to create instances from: what is in var/images, and whether it may be used. For
 * image_create.c and create.c; blocking.
 *
 * A source is OS, OS.raw or OS.qcow2. A name that ends with .raw is raw whatever is in it; of
 * others the first bytes tell whether it is qcow2. A qcow2 image may rest on others (backing
 * files), or have its data in another file, only if those lie in var/images too: an image is
 * somebody else's work, and must not make us copy files of the host into a guest. QEMU is given the
 * whole chain by name, so it follows nothing that stands in a header.
 */
#pragma once

#include "backend/storage/disk_images.h"
#include "base/json.h"

struct source_layer {
    char *path;
    enum disk_format format;
    char *data_path; /* NULL: none of its own */
    guint64 bytes;   /* of the disk */
};

struct image_source {
    char *name;        /* as it was asked for */
    GPtrArray *layers; /* struct source_layer; each rests on the next one */
};

/* WRONG_INPUT if the name leaves the folder or the image refers to what it may not;
 * UNKNOWN_ENTITY if it, or what it rests on, is not there; CORRUPT if it cannot be read. */
struct image_source *image_source_open(const struct images *images, const char *os_type,
                                       GError **error);
void image_source_free(struct image_source *source);
typedef struct image_source image_source_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(image_source_t, image_source_free)

/* Names (char *) of all files in `folder` that are no hidden ones; NULL if they cannot be read, or
 * are more than LIMIT_SOURCES. Blocking. */
GPtrArray *image_source_names(const char *folder);

/* The top layer: its disk's size and the format of the whole. */
const struct source_layer *image_source_top(const struct image_source *source);
/* "json:{…}" for qemu-img: layer `from` and what it rests on. Free with g_free(). */
char *image_source_argument(const struct image_source *source, guint from);
