/*
 * Deleting a volume. The step that takes its data out of the record is the point of no return: only
 * then is it removed, and never named again (SAF-53).
 */
#include <string.h>

#include "core/storage/volume_private.h"

#define MOST_NAMES 16

/* What the volume's data was, as far as it is in the trash. */
static GPtrArray *names_of(const struct volume_work *work)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) all =
        config_backend_trash(volume_member_config(work->member), work->member->backend->uuid);
    for (guint i = 0; i < all->len && names->len < MOST_NAMES; i++) {
        const struct trash *trash = all->pdata[i];
        g_autofree char *uuid = NULL;
        guint64 claim;
        if (volume_data_parse(trash->name, &uuid, &claim) &&
            strcmp(uuid, work->row->resource_id) == 0)
            g_ptr_array_add(names, g_strdup(trash->name));
    }
    return names;
}

/* What a guest has open stays in the trash, for the sweep; so does what the master does not
 * confirm. */
static bool remove_name(const struct volume_work *work, const char *name, struct work_end *end,
                        GError **error)
{
    struct volume_driver *driver = work->member->service->env->volumes;
    g_autoptr(GError) local = NULL;
    if (driver->ops->remove(driver, work->member->backend, name, &local)) {
        g_ptr_array_add(end->removed, g_strdup(name));
        return true;
    }
    if (fettle_error_is(local, WRONG_STATE))
        return true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

enum work_done volume_delete(const struct volume_work *work, struct work_end *end, GError **error)
{
    if (*work->resource.data && !volume_work_unname(work, error))
        return WORK_IS_LOST;
    bool ok = true;
    struct volume_proof proof = volume_proof_of(work->member);
    g_autoptr(GPtrArray) names = names_of(work);
    for (guint i = 0; i < names->len && ok && volume_proof_asked(work->member, &proof); i++)
        ok = !volume_is_trash(work->member, names->pdata[i]) ||
             remove_name(work, names->pdata[i], end, error);
    if (!ok && !task_killed())
        return WORK_HAS_FAILED;
    if (!task_killed() && volume_proof_holds(work->member, &proof))
        return WORK_IS_DONE;
    if (ok)
        fettle_set_error(error, REFUSED, "%s: the master is another by now", work->key);
    return WORK_IS_LOST;
}
