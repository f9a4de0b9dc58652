/*
 * Making a volume or a snapshot: data of its own under a name that has the claim in it (SAF-52),
 * blank or a copy. Whether the source was the same all the time judges the end (SAF-120).
 */
#include "core/storage/volume_private.h"

static bool make(const struct volume_work *work, const char *name, bool *ret_point, GError **error)
{
    const struct backend *backend = work->member->backend;
    struct volume_driver *driver = work->member->service->env->volumes;
    const struct work_source *source = work->row->source;
    const struct resource *resource = &work->resource;
    if (!source)
        return driver->ops->create(driver, backend, resource->type, name, resource->size, error);
    if (!volume_point(work, work->member, resource->type, name, resource->size, ret_point, error))
        return false;
    return *ret_point || driver->ops->copy(driver, backend, source->resource_type, source->data,
                                           resource->type, name, resource->size, error);
}

enum work_done volume_create(const struct volume_work *work, struct work_end *end, GError **error)
{
    g_autofree char *name = volume_data_name(work->resource.uuid, work->claim);
    bool made = make(work, name, &end->point, error);
    enum work_done done = volume_done(made);
    if (done != WORK_IS_DONE)
        return done;
    g_free(end->data);
    end->data = g_steal_pointer(&name);
    return WORK_IS_DONE;
}
