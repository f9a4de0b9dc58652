/*
 * Images: a file with its sums made of a volume, and volumes made of one. Neither the volume nor
 * the image that is read changes meanwhile, by the record: that one is being uploaded, this one is
 * the source of a row (SAF-120).
 */
#include "core/storage/volume_private.h"

enum work_done volume_upload(const struct volume_work *work, struct work_end *end, GError **error)
{
    struct volume_driver *driver = work->member->service->env->volumes;
    struct resource image = resource_partner(volume_member_config(work->member), work->row);
    g_autofree char *name = volume_data_name(work->row->partner_id, work->claim);
    struct volume_member *from = volume_work_from(work, error);
    struct image_sums sums;
    bool made = from && driver->ops->upload(driver, from->backend, work->resource.data,
                                            work->member->backend, name, image.disk_format,
                                            work->resource.size, &sums, error);
    g_clear_pointer(&from, volume_member_unref);
    enum work_done done = volume_done(made);
    if (done == WORK_IS_DONE)
        volume_work_measured(end, name, &sums);
    return done;
}

/* It says so while it reads, as with Cinder (CLN-09). */
enum work_done volume_download(const struct volume_work *work, struct work_end *end, GError **error)
{
    struct volume_driver *driver = work->member->service->env->volumes;
    g_autofree char *name = volume_data_name(work->resource.uuid, work->claim);
    if (!volume_work_becomes(work, "downloading", error))
        return WORK_IS_LOST;
    const char *uuid = work->row->source->resource_id;
    record_autoptr(image) image =
        resource_copy(volume_member_config(work->member), RESOURCE_IMAGE, uuid);
    struct volume_member *from = image ? volume_work_from(work, error) : NULL;
    if (!image)
        fettle_set_error(error, WRONG_STATE, "image %s is off record", uuid);
    bool made = from && driver->ops->download(driver, from->backend, image, work->member->backend,
                                              name, work->resource.size, error);
    g_clear_pointer(&from, volume_member_unref);
    enum work_done done = volume_done(made);
    if (done == WORK_IS_DONE)
        text_set(&end->data, name);
    return done;
}

void volume_work_measured(struct work_end *end, const char *name, const struct image_sums *sums)
{
    text_set(&end->data, name);
    text_set(&end->sum, sums->os_hash_value);
    text_set(&end->checksum, sums->checksum);
    end->bytes = sums->size;
    end->virtual_size = sums->virtual_size;
}
