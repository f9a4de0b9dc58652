/*
 * Backups: a compressed file with a checksum made of a volume or a snapshot, and new data for a
 * volume made of one. What a volume has is never written to: the end of the work swaps it (SAF-53).
 */
#include "core/storage/volume_private.h"

/* Of what a guest has it is made of a copy of its own, that has the volume's name and this claim,
 * and goes afterwards; what stays of it the sweep finds. */
static bool back_up(const struct volume_work *work, struct volume_member *from, const char *name,
                    struct work_end *end, GError **error)
{
    struct volume_driver *driver = work->member->service->env->volumes;
    const struct work_source *source = work->row->source;
    g_autofree char *point = volume_data_name(source->resource_id, work->claim), *sum = NULL;
    bool ready =
        volume_point(work, from, RESOURCE_VOLUME, point, work->resource.size, &end->point, error);
    bool made =
        ready && driver->ops->back_up(driver, from->backend, source->resource_type,
                                      end->point ? point : source->data, work->member->backend,
                                      name, work->resource.size, &end->bytes, &sum, error);
    if ((!ready || end->point) && !task_killed() &&
        !driver->ops->remove(driver, from->backend, RESOURCE_VOLUME, point, NULL))
        from->sweep_ms = 0;
    end->point = end->point || from->backend->kind == BACKEND_RBD;
    if (made)
        text_set(&end->sum, sum);
    return made;
}

enum work_done volume_back_up(const struct volume_work *work, struct work_end *end, GError **error)
{
    g_autofree char *name = volume_data_name(work->resource.uuid, work->claim);
    struct volume_member *from = volume_work_from(work, error);
    bool made = from && back_up(work, from, name, end, error);
    g_clear_pointer(&from, volume_member_unref);
    enum work_done done = volume_done(made);
    if (done == WORK_IS_DONE)
        text_set(&end->data, name);
    return done;
}

enum work_done volume_restore(const struct volume_work *work, struct work_end *end, GError **error)
{
    struct volume_driver *driver = work->member->service->env->volumes;
    struct resource volume = resource_partner(volume_member_config(work->member), work->row);
    g_autofree char *name = volume_data_name(work->row->partner_id, work->claim);
    struct volume_member *from = volume_work_from(work, error);
    bool made = from && driver->ops->restore(driver, from->backend, work->record,
                                             work->member->backend, name, volume.size, error);
    g_clear_pointer(&from, volume_member_unref);
    enum work_done done = volume_done(made);
    if (done != WORK_IS_DONE)
        return done;
    text_set(&end->data, name);
    return WORK_IS_DONE;
}
