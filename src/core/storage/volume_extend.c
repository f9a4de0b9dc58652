/* Making a volume larger, by what can make nothing smaller (SAF-53). */
#include "core/storage/volume_private.h"

enum work_done volume_extend(const struct volume_work *work, struct work_end *end, GError **error)
{
    struct volume_member *member = work->member;
    struct volume_driver *driver = member->service->env->volumes;
    bool grown =
        driver->ops->grow(driver, member->backend, work->resource.data, work->row->size, error);
    if (task_killed())
        return WORK_IS_LOST;
    end->size = grown ? work->row->size : 0;
    return grown ? WORK_IS_DONE : WORK_HAS_FAILED;
}
