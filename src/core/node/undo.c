/*
 * See undo.h.
 */
#include "core/node/undo.h"

#include "base/limits.h"
#include "core/node/cancel.h"
#include "core/node/disks.h"

/* The state of its process. A monitor that does not answer is no proof that nothing runs. */
static bool look_at_process(struct guest *guest, enum guest_state *ret_state, GError **error)
{
    if (guest->live)
        guest_query(guest);
    *ret_state = guest->live            ? guest->shutdown ? GUEST_SHUTDOWN : guest->last_state
                 : guest->incoming_live ? GUEST_INCOMING
                                        : GUEST_ABSENT;
    if (!guest->live || *ret_state != GUEST_ABSENT)
        return true;
    g_autofree char *name = guest_name(guest);
    fettle_set_error(error, TEMPORARY, "the process of %s does not tell its state", name);
    return false;
}

/* Shared images are in no list. */
static bool look_at_shared(struct guest *guest, guint count, bool *ret_whole, GError **error)
{
    struct storage *storage = guest->node->storage;
    g_autoptr(GError) failure = NULL;
    const char *marker = storage->ops->shared(storage, NULL);
    if (!marker || !*marker) {
        fettle_set_error(error, TEMPORARY,
                         "the shared folder is not mounted here, or its server does not answer: "
                         "whether the images are there is not known");
        return false;
    }
    g_autoptr(GPtrArray) files =
        storage->ops->files(storage, guest->record->instance, "", count, &failure);
    *ret_whole = files != NULL;
    if (files || fettle_error_is(failure, UNKNOWN_ENTITY))
        return true;
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

/* A folder on disks that have failed may list nothing, or anything. */
static bool disks_work(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct storage_space space = {0};
    if (!storage->ops->space(storage, &space, error))
        return false;
    if (space.total_mib > 0)
        return true;
    fettle_set_error(error, TEMPORARY,
                     "the disks here do not work: whether the images are there is not known");
    return false;
}

/* Images that were to be promoted, or wait to be taken (SAF-22), are here under another name; they
 * are taken disk by disk. */
static bool look_at_images(struct guest *guest, guint count, bool *ret_whole, GError **error)
{
    struct storage *storage = guest->node->storage;
    if (!disks_work(guest, error))
        return false;
    guint64 all = (G_GUINT64_CONSTANT(1) << count) - 1, there = 0;
    g_autoptr(GPtrArray) sets = storage->ops->list(storage, false, error);
    for (guint i = 0; sets && i < sets->len; i++) {
        const struct image_set *set = sets->pdata[i];
        if (!strcmp(set->instance, guest->record->instance))
            there |= set->disks;
    }
    *ret_whole = (all & ~there) == 0;
    return sets != NULL;
}

/* In a task of its own, as it may not come back. */
static bool look_run(struct node_core *node, void *thing)
{
    struct guest *guest = thing;
    struct undo_look *undo = &guest->undo;
    bool whole = false;
    g_autoptr(GError) error = NULL;
    (undo->shared ? look_at_shared : look_at_images)(guest, undo->disks, &whole, &error);
    undo->whole = whole;
    g_clear_error(&undo->error);
    undo->error = g_steal_pointer(&error);
    return true;
}

/* Whoever asked asks again, and then whoever looks for marks of dead jobs. */
static bool not_told(bool shared, GError **error)
{
    if (task_killed())
        return node_killed(error);
    fettle_set_error(error, TEMPORARY,
                     "%s not answer here: whether the images are there is not known",
                     shared ? "the shared folder does" : "the disks do");
    return false;
}

/* Holds the guest's lock no longer than UNDO_LOOK_MS, whatever hangs (SAF-91). */
static bool look_for_images(struct guest *guest, const struct disks_undo_args *args,
                            bool *ret_whole, GError **error)
{
    struct undo_look *undo = &guest->undo;
    struct look_round *round = look_round_new(guest->node);
    undo->shared = args->disk_template == TEMPLATE_SHAREDFILE;
    undo->disks = args->disks->len;
    look_round_add(round, &undo->look, look_run, guest);
    bool told =
        look_round_wait_long(round, UNDO_LOOK_MS) && look_round_answered(round, &undo->look);
    look_round_free(round);
    if (!told)
        return not_told(undo->shared, error);
    *ret_whole = undo->whole;
    if (undo->error)
        g_propagate_error(error, g_error_copy(undo->error));
    return undo->error == NULL;
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
    if (!guest_lock(guest, error))
        return NULL;
    bool ok = undo_locked(guest, op, undo, &result, error);
    guest_unlock(guest);
    return ok ? disks_undo_result_to_json(&result) : NULL;
}
