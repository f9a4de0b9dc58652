/* What the parts of rbd_volumes.h share: rbd_volumes.c has data, rbd_images.c what is a file. */
#pragma once

#include "backend/volume/rbd_call.h"
#include "backend/volume/rbd_volumes.h"
#include "base/limits.h"

#define SECTOR 512u /* of which QEMU reads and serves whole ones */
#define SECTORS(bytes) (((bytes) + SECTOR - 1) / SECTOR * SECTOR)
#define GIB_BYTES(gib) ((gib)*1024 * MIB(1))

struct rbd_volumes {
    struct volume_driver driver; /* first */
    const char *program;
    struct volume_driver *directories;
    struct volume_children *children;
    struct rbd_confs *confs;
    char *cluster; /* UUID, since a back end was opened; NULL: none was */
};

static inline struct rbd_volumes *rbd_of(struct volume_driver *driver)
{
    return (struct rbd_volumes *)driver;
}

struct rbd_call rbd_call_at(struct volume_driver *driver, const struct backend *backend);
/* Before each call that touches an image (SAF-123). */
bool rbd_check_marker(struct volume_driver *driver, const struct rbd_call *call, GError **error);
/* `ok` again. Ceph lets who writes to a full pool wait until there is room: NO_RESOURCES, for what
 * came to no end there. */
bool rbd_or_full(struct volume_driver *driver, const struct backend *backend, bool ok,
                 GError **error);

/* --- data --- */

/* The image that has it; g_free() it. */
char *rbd_image_name(enum resource_type type, const char *name);
bool rbd_read_size(const struct rbd_call *call, enum resource_type type, const char *name,
                   guint64 *ret_bytes, GError **error);
/* To exactly that size. */
bool rbd_set_size(const struct rbd_call *call, enum resource_type type, const char *name,
                  guint64 bytes, GError **error);
bool rbd_say_whole(const struct rbd_call *call, enum resource_type type, const char *name,
                   guint64 bytes, GError **error);
/* Blank, and not said to be whole. */
bool rbd_make_image(const struct rbd_call *call, enum resource_type type, const char *name,
                    guint64 bytes, GError **error);

/* A moment of an image, while something is made of it; what a killed one leaves goes with the
 * image. At its end `ok` says whether that was made; the first error stays. */
struct moment {
    char *image, *spec;
};
bool rbd_take_moment(const struct rbd_call *call, enum resource_type type, const char *source,
                     const char *name, struct moment *ret_moment, GError **error);
bool rbd_end_moment(const struct rbd_call *call, struct moment *moment, bool ok, GError **error);

/* As qemu-img opens it, with its configuration in that file; `spec` may name a moment. g_free() it.
 */
char *rbd_file(const struct backend *backend, const char *spec, const char *conf);
/* Where qemu-img, which writes to `backend`, has the configuration of what it reads in a pool. */
const char *rbd_source_conf(const struct backend *backend);
/* A new image that `fill` writes; without it if that fails and can be told. */
bool rbd_fill(struct volume_driver *driver, const struct rbd_call *call, enum resource_type type,
              const char *name, guint64 size_gib,
              bool (*fill)(struct volume_driver *driver, const char *target, void *data,
                           GError **error),
              void *data, GError **error);
/* New data, at any other back end, of the first `bytes` of what qemu-img opens with its
 * configuration where rbd_source_conf() says. */
bool rbd_put(struct volume_driver *driver, const struct backend *from, const char *file,
             guint64 bytes, const struct backend *backend, enum resource_type type,
             const char *name, guint64 size_gib, GError **error);
bool rbd_copy(struct volume_driver *driver, const struct backend *from,
              enum resource_type source_type, const char *source, const struct backend *backend,
              enum resource_type type, const char *name, guint64 size_gib, GError **error);

/* --- backups and images: as in proto/storage/volume_driver.h --- */

bool rbd_back_up(struct volume_driver *driver, const struct backend *from,
                 enum resource_type source_type, const char *source, const struct backend *backend,
                 const char *name, guint64 size_gib, guint64 *ret_bytes, char **ret_sum,
                 GError **error);
bool rbd_restore(struct volume_driver *driver, const struct backend *from,
                 const struct backup *backup, const struct backend *backend, const char *name,
                 guint64 size_gib, GError **error);
bool rbd_upload(struct volume_driver *driver, const struct backend *from, const char *source,
                const struct backend *backend, const char *name, enum disk_format format,
                guint64 size_gib, struct image_sums *ret_sums, GError **error);
bool rbd_measure(struct volume_driver *driver, const struct backend *backend, const char *name,
                 enum disk_format format, const struct image_sums *said,
                 struct image_sums *ret_sums, GError **error);
bool rbd_download(struct volume_driver *driver, const struct backend *from,
                  const struct image *image, const struct backend *backend, const char *name,
                  guint64 size_gib, GError **error);
struct volume_transfer *rbd_transfer(struct volume_driver *driver, const struct backend *backend,
                                     const char *name, guint64 bytes, const char *address,
                                     GError **error);
