/*
 * Making a volume or a snapshot: data of its own under a name that has the claim in it (SAF-52),
 * blank or a copy; moving a volume: a copy of what it has, on another back end. Whether the source
 * was the same all the time judges the end (SAF-120).
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
    struct volume_member *from = volume_work_from(work, error);
    bool made = from && volume_point(work, work->member, resource->type, name, resource->size,
                                     ret_point, error);
    if (made && !*ret_point)
        made = driver->ops->copy(driver, from->backend, source->resource_type, source->data,
                                 backend, resource->type, name, resource->size, error);
    *ret_point = *ret_point || (from && from->backend->kind == BACKEND_RBD);
    g_clear_pointer(&from, volume_member_unref);
    return made;
}

enum work_done volume_create(const struct volume_work *work, struct work_end *end, GError **error)
{
    const struct work_source *source = work->row->source;
    if (source && source->resource_type == RESOURCE_IMAGE)
        return volume_download(work, end, error);
    g_autofree char *name = volume_data_name(work->resource.uuid, work->claim);
    bool made = make(work, name, &end->point, error);
    enum work_done done = volume_done(made);
    if (done != WORK_IS_DONE)
        return done;
    g_free(end->data);
    end->data = g_steal_pointer(&name);
    return WORK_IS_DONE;
}
