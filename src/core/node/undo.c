/*
 * See undo.h.
 */
#include "core/node/undo.h"

#include "base/limits.h"
#include "core/node/cancel.h"
#include "core/node/disks.h"
#include "core/node/image_look.h"

/* The state of its process. A monitor that does not answer is no proof that nothing runs. */
static bool look_at_process(struct guest *guest, enum guest_state *ret_state, GError **error)
{
    if (guest->live)
        guest_query(guest);
    *ret_state = guest_state_known(guest);
    if (!guest->live || *ret_state != GUEST_ABSENT)
        return true;
    g_autofree char *name = guest_name(guest);
    fettle_set_error(error, TEMPORARY, "the process of %s does not tell its state", name);
    return false;
}

static bool look_at_shared(struct guest *guest, guint count, gint64 until_ms, bool *ret_whole,
                           GError **error)
{
    g_autoptr(GPtrArray) disks =
        image_look_disks(guest->node, guest->record->instance, true, count, until_ms, error);
    *ret_whole = disks != NULL;
    for (guint i = 0; disks && i < count; i++) {
        const struct sight_disk *disk = disks->pdata[i];
        if (*disk->damage) {
            fettle_set_error(error, CORRUPT, "%s", disk->damage);
            return false;
        }
        *ret_whole = *ret_whole && disk->bytes > 0;
    }
    return disks != NULL;
}

/* Those that wait under another name are taken disk by disk. */
static bool look_at_own(struct guest *guest, guint count, gint64 until_ms, bool *ret_whole,
                        GError **error)
{
    g_autoptr(GPtrArray) sets =
        image_look_sets(guest->node, guest->record->instance, until_ms, error);
    guint64 all = (G_GUINT64_CONSTANT(1) << count) - 1, there = 0;
    for (guint i = 0; sets && i < sets->len; i++)
        there |= ((const struct image_set *)sets->pdata[i])->disks;
    *ret_whole = (all & ~there) == 0;
    return sets != NULL;
}

/* Holds the guest's lock no longer than UNDO_LOOK_MS, whatever hangs (SAF-91). */
static bool look_for_images(struct guest *guest, const struct disks_undo_args *args,
                            bool *ret_whole, GError **error)
{
    const struct env *env = guest->node->env;
    gint64 until = env->ops->boot_ms(env) + UNDO_LOOK_MS;
    return (args->disk_template == TEMPLATE_SHAREDFILE ? look_at_shared : look_at_own)(
        guest, args->disks->len, until, ret_whole, error);
}

static bool look(struct guest *guest, const struct disks_undo_args *args,
                 struct disks_undo_result *ret, GError **error)
{
    ret->generation = guest->record->generation;
    ret->whole = args->disks->len == 0;
    return look_at_process(guest, &ret->state, error) &&
           (ret->whole || look_for_images(guest, args, &ret->whole, error));
}

static bool undo_locked(struct guest *guest, const struct epoch_fence_op *op,
                        const struct disks_undo_args *args, struct disks_undo_result *ret,
                        GError **error)
{
    if (!look(guest, args, ret, error))
        return false;
    if (args->look || ret->whole || ret->state != GUEST_ABSENT)
        return true;
    ret->removed = disks_remove_all(guest, op, args->generation, error);
    return ret->removed;
}

json_t *undo_disks(struct node_core *node, struct epoch_fence_op *op, const void *args,
                   GError **error)
{
    const struct disks_undo_args *undo = args;
    struct disks_undo_result result = {0};
    struct guest *guest = guest_get(node, undo->instance, error);
    if (!guest)
        return NULL;
    cancel_dead(guest);
    if (!guest_lock(guest, op, error))
        return NULL;
    bool ok = undo_locked(guest, op, undo, &result, error);
    guest_unlock(guest);
    return ok ? disks_undo_result_to_json(&result) : NULL;
}
