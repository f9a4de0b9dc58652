/*
 * Deleting a volume or a snapshot. The step that takes its data out of the record is the point of
 * no return: only then is it removed, and never named again (SAF-53).
 */
#include <string.h>

#include "core/storage/volume_private.h"

#define MOST_NAMES 16

/* What its data was, as far as it is in the trash. */
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
            trash->resource_type == work->resource.type &&
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
    if (driver->ops->remove(driver, work->member->backend, work->resource.type, name, &local)) {
        g_ptr_array_add(end->removed, g_strdup(name));
        volume_member_measures(work->member);
        return true;
    }
    if (fettle_error_is(local, WRONG_STATE))
        return true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* They went before it, as far as they could (CLN-60): there is nothing to wait for. */
static bool has_snapshots(const struct volume_work *work, struct work_end *end)
{
    g_autoptr(GPtrArray) snapshots =
        config_volume_snapshots(volume_member_config(work->member), work->row->resource_id);
    if (work->resource.type != RESOURCE_VOLUME || snapshots->len == 0)
        return false;
    struct resource first = resource_read(RESOURCE_SNAPSHOT, snapshots->pdata[0]);
    end->failed = true;
    g_free(end->why);
    end->why = g_strdup_printf("snapshot %.200s of it is %s", resource_name(&first), first.status);
    return true;
}

enum work_done volume_delete(const struct volume_work *work, struct work_end *end, GError **error)
{
    if (has_snapshots(work, end))
        return WORK_IS_DONE;
    if (*work->resource.data && !volume_work_unname(work, error))
        return WORK_IS_LOST;
    bool ok = true;
    struct volume_proof proof = volume_proof_of(work->member);
    g_autoptr(GPtrArray) names = names_of(work);
    for (guint i = 0; i < names->len && ok && volume_proof_asked(work->member, &proof); i++)
        ok = !volume_trash_of(work->member, names->pdata[i]) ||
             remove_name(work, names->pdata[i], end, error);
    if (!ok && !task_killed())
        return WORK_HAS_FAILED;
    if (!task_killed() && volume_proof_holds(work->member, &proof))
        return WORK_IS_DONE;
    if (ok)
        fettle_set_error(error, REFUSED, "%s: the master is another by now", work->key);
    return WORK_IS_LOST;
}
