/* See volumes_by_kind.h. */
#include "backend/volume/volumes_by_kind.h"

#include "backend/volume/dir_transfer.h"
#include "backend/volume/dir_volumes.h"
#include "backend/volume/rbd_volumes.h"
#include "backend/volume/volume_children.h"

struct volumes_by_kind {
    struct volume_driver driver; /* first */
    char *program;
    struct volume_children *children;
    struct volume_driver *kinds[2]; /* by enum backend_kind */
};

static struct volume_driver *of(struct volume_driver *driver, const struct backend *backend)
{
    return ((struct volumes_by_kind *)driver)->kinds[backend->kind];
}

/* Of what goes from one back end to another: directories' does not know the others. */
static struct volume_driver *between(struct volume_driver *driver, const struct backend *from,
                                     const struct backend *backend)
{
    return of(driver, from->kind == BACKEND_DIR ? backend : from);
}

static bool by_kind_open(struct volume_driver *driver, const struct backend *backend,
                         const struct cluster *cluster, bool make, GError **error)
{
    driver = of(driver, backend);
    return driver->ops->open(driver, backend, cluster, make, error);
}

static bool by_kind_space(struct volume_driver *driver, const struct backend *backend,
                          guint64 *ret_free, guint64 *ret_total, GError **error)
{
    driver = of(driver, backend);
    return driver->ops->space(driver, backend, ret_free, ret_total, error);
}

static bool by_kind_create(struct volume_driver *driver, const struct backend *backend,
                           enum resource_type type, const char *name, guint64 size_gib,
                           GError **error)
{
    driver = of(driver, backend);
    return driver->ops->create(driver, backend, type, name, size_gib, error);
}

static bool by_kind_prepare(struct volume_driver *driver, const struct backend *backend,
                            enum resource_type type, const char *name, guint64 size_gib,
                            GError **error)
{
    driver = of(driver, backend);
    return driver->ops->prepare(driver, backend, type, name, size_gib, error);
}

static bool by_kind_settle(struct volume_driver *driver, const struct backend *backend,
                           enum resource_type type, const char *name, guint64 size_gib,
                           GError **error)
{
    driver = of(driver, backend);
    return driver->ops->settle(driver, backend, type, name, size_gib, error);
}

static bool by_kind_copy(struct volume_driver *driver, const struct backend *from,
                         enum resource_type source_type, const char *source,
                         const struct backend *backend, enum resource_type type, const char *name,
                         guint64 size_gib, GError **error)
{
    driver = between(driver, from, backend);
    return driver->ops->copy(driver, from, source_type, source, backend, type, name, size_gib,
                             error);
}

static bool by_kind_back_up(struct volume_driver *driver, const struct backend *from,
                            enum resource_type source_type, const char *source,
                            const struct backend *backend, const char *name, guint64 size_gib,
                            guint64 *ret_bytes, char **ret_sum, GError **error)
{
    driver = between(driver, from, backend);
    return driver->ops->back_up(driver, from, source_type, source, backend, name, size_gib,
                                ret_bytes, ret_sum, error);
}

static bool by_kind_restore(struct volume_driver *driver, const struct backend *from,
                            const struct backup *backup, const struct backend *backend,
                            const char *name, guint64 size_gib, GError **error)
{
    driver = between(driver, from, backend);
    return driver->ops->restore(driver, from, backup, backend, name, size_gib, error);
}

static bool by_kind_upload(struct volume_driver *driver, const struct backend *from,
                           const char *source, const struct backend *backend, const char *name,
                           enum disk_format format, guint64 size_gib, struct image_sums *ret_sums,
                           GError **error)
{
    driver = between(driver, from, backend);
    return driver->ops->upload(driver, from, source, backend, name, format, size_gib, ret_sums,
                               error);
}

static bool by_kind_measure(struct volume_driver *driver, const struct backend *backend,
                            const char *name, enum disk_format format,
                            const struct image_sums *said, struct image_sums *ret_sums,
                            GError **error)
{
    driver = of(driver, backend);
    return driver->ops->measure(driver, backend, name, format, said, ret_sums, error);
}

static bool by_kind_download(struct volume_driver *driver, const struct backend *from,
                             const struct image *image, const struct backend *backend,
                             const char *name, guint64 size_gib, GError **error)
{
    driver = between(driver, from, backend);
    return driver->ops->download(driver, from, image, backend, name, size_gib, error);
}

static bool by_kind_grow(struct volume_driver *driver, const struct backend *backend,
                         const char *name, guint64 size_gib, GError **error)
{
    driver = of(driver, backend);
    return driver->ops->grow(driver, backend, name, size_gib, error);
}

static bool by_kind_remove(struct volume_driver *driver, const struct backend *backend,
                           enum resource_type type, const char *name, GError **error)
{
    driver = of(driver, backend);
    return driver->ops->remove(driver, backend, type, name, error);
}

static struct volume_data *by_kind_look(struct volume_driver *driver, const struct backend *backend,
                                        enum resource_type type, const char *name, GError **error)
{
    driver = of(driver, backend);
    return driver->ops->look(driver, backend, type, name, error);
}

static GPtrArray *by_kind_find(struct volume_driver *driver, const struct backend *backend,
                               enum resource_type type, const char *uuid, GError **error)
{
    driver = of(driver, backend);
    return driver->ops->find(driver, backend, type, uuid, error);
}

static GPtrArray *by_kind_list(struct volume_driver *driver, const struct backend *backend,
                               GError **error)
{
    driver = of(driver, backend);
    return driver->ops->list(driver, backend, error);
}

static bool by_kind_check(struct volume_driver *driver, const struct backend *backend,
                          struct volume_check *check, GError **error)
{
    driver = of(driver, backend);
    return driver->ops->check(driver, backend, check, error);
}

/* Those that there are, are of directories. */
static struct volume_transfer *by_kind_transfer(struct volume_driver *driver,
                                                const struct backend *backend, const char *name,
                                                guint64 bytes, const char *address, GError **error)
{
    driver = of(driver, backend);
    return driver->ops->transfer(driver, backend, name, bytes, address, error);
}

static guint by_kind_hanging(struct volume_driver *driver, const struct backend *backend)
{
    driver = of(driver, backend);
    return driver->ops->hanging(driver, backend);
}

static const struct volume_driver_ops by_kind_ops = {.open = by_kind_open,
                                                     .space = by_kind_space,
                                                     .create = by_kind_create,
                                                     .prepare = by_kind_prepare,
                                                     .settle = by_kind_settle,
                                                     .copy = by_kind_copy,
                                                     .back_up = by_kind_back_up,
                                                     .restore = by_kind_restore,
                                                     .upload = by_kind_upload,
                                                     .measure = by_kind_measure,
                                                     .download = by_kind_download,
                                                     .grow = by_kind_grow,
                                                     .remove = by_kind_remove,
                                                     .look = by_kind_look,
                                                     .find = by_kind_find,
                                                     .list = by_kind_list,
                                                     .check = by_kind_check,
                                                     .transfer = by_kind_transfer,
                                                     .transfer_state = dir_transfer_state,
                                                     .transfer_end = dir_transfer_end,
                                                     .hanging = by_kind_hanging};

struct volume_driver *volumes_by_kind_new(const char *program, const char *folder, guint limit_ms)
{
    struct volumes_by_kind *by_kind = g_new0(struct volumes_by_kind, 1);
    by_kind->driver.ops = &by_kind_ops;
    by_kind->program = g_strdup(program);
    by_kind->children = volume_children_new(limit_ms);
    by_kind->kinds[BACKEND_DIR] = dir_volumes_new(program, folder, by_kind->children, limit_ms);
    by_kind->kinds[BACKEND_RBD] =
        rbd_volumes_new(by_kind->program, by_kind->kinds[BACKEND_DIR], by_kind->children);
    return &by_kind->driver;
}

struct volume_driver *volumes_by_kind_dir(struct volume_driver *driver)
{
    return ((struct volumes_by_kind *)driver)->kinds[BACKEND_DIR];
}

void volumes_by_kind_free(struct volume_driver *driver)
{
    struct volumes_by_kind *by_kind = (struct volumes_by_kind *)driver;
    if (!driver)
        return;
    rbd_volumes_free(by_kind->kinds[BACKEND_RBD]);
    dir_volumes_free(by_kind->kinds[BACKEND_DIR]);
    volume_children_free(by_kind->children);
    g_free(by_kind->program);
    g_free(by_kind);
}
