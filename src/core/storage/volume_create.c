/* Creating a volume: data of its own under a name that has the claim in it (SAF-52). */
#include "core/storage/volume_private.h"

enum work_done volume_create(const struct volume_work *work, struct work_end *end, GError **error)
{
    struct volume_member *member = work->member;
    struct volume_driver *driver = member->service->env->volumes;
    g_autofree char *name = volume_data_name(work->resource.uuid, work->claim);
    bool made = driver->ops->create(driver, member->backend, name, work->resource.size, error);
    if (task_killed())
        return WORK_IS_LOST;
    if (!made)
        return WORK_HAS_FAILED;
    g_free(end->data);
    end->data = g_steal_pointer(&name);
    return WORK_IS_DONE;
}
