/*
 * Images: made, made larger, made anew, removed; see disks.h.
 */
#include "core/node/disks.h"

#include "base/log.h"
#include "core/node/cancel.h"
#include "core/node/confirm.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"
#include "core/node/reconcile.h"
#include "core/node/replica.h"

json_t *disks_image_info(struct node_core *node, struct epoch_fence_op *op, const void *args,
                         GError **error)
{
    const struct image_info_args *image = args;
    struct image_info info = {0};
    if (!node->storage->ops->source_size(node->storage, image->os_type, &info.bytes, error))
        return NULL;
    return image_info_to_json(&info);
}

/* --- the instance's own --- */

/* A request about the primary's images is of a newer record than the one by which a replica was
 * opened here: another is no word that this node has become the primary. */
static bool own_check(const struct guest *guest, const struct epoch_fence_op *op,
                      guint64 generation, GError **error)
{
    const struct guest_record *record = guest->record;
    struct stamp asked = {epoch_fence_op_stamp(op).history, generation};
    struct stamp copied = {record->replica_history, record->replica_generation};
    if (!*record->replica || stamp_compare(asked, copied) > 0)
        return true;
    g_autofree char *name = guest_name(guest);
    guest_set_over(generation, name, record->replica_generation, error);
    return false;
}

/* By the record a replica's images are the instance's, though the job that said so died before it
 * told this node: else the next start would put them in the place of what is written now. `disks`:
 * those that are to be theirs. */
static bool own_take_place(struct guest *guest, const GPtrArray *disks, guint count, GError **error)
{
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    for (guint i = 0; i < count; i++)
        g_ptr_array_add(kept, disks->pdata[i]);
    return replica_promote(guest, kept, false, error);
}

/* A request that was delayed on its way must not blank images that were used since. */
static bool create_check(const struct guest *guest, const struct epoch_fence_op *op,
                         const struct disks_create_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    struct stamp used = {record->history, record->generation};
    struct stamp asked = {epoch_fence_op_stamp(op).history, args->generation};
    bool anew = args->generation > 0 && stamp_compare(asked, used) >= 0;
    g_autofree char *name = guest_name(guest);
    if (guest->damage) {
        fettle_set_error(error, CORRUPT, "%s", guest->damage);
        return false;
    }
    if (!*args->replica && record->generation > 0 && !anew) {
        fettle_set_error(error, UNSAFE,
                         "the images of %s were already used here under generation "
                         "%" G_GUINT64_FORMAT "; they are not made anew",
                         name, record->generation);
        return false;
    }
    if (args->set_aside && (!*args->replica || args->generation == 0)) {
        fettle_set_error(error, WRONG_INPUT,
                         "replica: new disks of %s need a name to wait under, and the generation "
                         "that is to own them",
                         name);
        return false;
    }
    if (args->set_aside && stamp_compare(asked, used) <= 0) {
        fettle_set_error(error, REFUSED,
                         "new disks of %s for generation %" G_GUINT64_FORMAT
                         " are over: generation %" G_GUINT64_FORMAT " was already used here",
                         name, args->generation, record->generation);
        return false;
    }
    if (*args->replica && strcmp(args->replica, record->replica) == 0) {
        fettle_set_error(error, UNSAFE,
                         "replica %s of %s was already opened under generation "
                         "%" G_GUINT64_FORMAT "; its images are not made anew",
                         args->replica, name, record->replica_generation);
        return false;
    }
    return *args->replica || args->generation == 0 || own_check(guest, op, args->generation, error);
}

static bool is_asked_again(const struct guest_record *record, const struct disks_create_args *args)
{
    return strcmp(record->made, args->replica) == 0 && record->made_generation == args->generation;
}

/* Everything that is here of the instance is kept for a person (SAF-19), but for images that an
 * earlier job has made and that nothing was ever written to. */
static bool create_set_aside(struct guest *guest, const struct disks_create_args *args,
                             GError **error)
{
    struct storage *storage = guest->node->storage;
    const struct guest_record *record = guest->record;
    if (is_asked_again(record, args))
        return true;
    if (!disks_forget_made(guest, error))
        return false;
    if (*record->replica) {
        if (!replica_close_export(guest, error) ||
            !storage->ops->set_aside(storage, record->instance, record->replica,
                                     record->replica_generation, error))
            return false;
        replica_forget(guest);
    }
    return storage->ops->set_aside(storage, record->instance, "", MAX(record->generation, 1),
                                   error);
}

/* What an older generation left here is over by the record: its process ends. */
static bool create_clear_the_way(struct guest *guest, const struct disks_create_args *args,
                                 GError **error)
{
    if (!outgoing_drop(guest))
        return node_killed(error);
    if (guest->live && !guest_kill(guest, error))
        return false;
    /* What a guest was copied to is the primary's by the record that makes its disks anew, also
     * those that stay. */
    bool own = args->set_aside || !*args->replica;
    if (!incoming_end(guest, error) ||
        !(own ? incoming_promote(guest, error) : incoming_discard(guest, error)))
        return false;
    g_clear_pointer(&guest->record->incoming, instance_free);
    if (args->set_aside)
        return create_set_aside(guest, args, error);
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_ptr_array_extend(all, args->disks, NULL, NULL);
    g_ptr_array_extend(all, args->kept, NULL, NULL);
    return *args->replica || own_take_place(guest, all, all->len, error);
}

/* From now on nothing of an older generation may touch the images. Those of a generation that is
 * not committed yet are remembered before they are made: none of them is ever left unknown. */
static bool create_record_used(struct guest *guest, const struct epoch_fence_op *op,
                               const struct disks_create_args *args, GError **error)
{
    struct guest_record *record = guest->record;
    if (args->set_aside) {
        text_set(&record->made, args->replica);
        record->made_generation = args->generation;
        if (record->phase != PHASE_NONE)
            guest_move(guest, PHASE_SUPERSEDED, "images set aside for new ones");
    } else if (!*args->replica) {
        record->history = epoch_fence_op_stamp(op).history;
        record->generation = args->generation;
        record->clean = false;
        record->sound = SOUND_UNKNOWN;
        export_target_free(g_steal_pointer(&record->target));
        guest_move(guest, PHASE_STOPPED, "its images are made anew");
    }
    return guest_save(guest, error);
}

bool disks_take_made(struct guest *guest, guint64 history, guint64 generation, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (!storage->ops->promote(storage, record->instance, record->made, MAX(record->generation, 1),
                               error))
        return false;
    log_info("", "new images of instance %s became its own", record->instance);
    record->history = history;
    record->generation = generation;
    record->clean = false;
    record->sound = SOUND_UNKNOWN;
    export_target_free(g_steal_pointer(&record->target));
    text_set(&record->made, "");
    guest_move(guest, PHASE_STOPPED, "its images were made anew");
    return guest_save(guest, error);
}

bool disks_forget_made(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (!*record->made)
        return guest_save_rest(guest, error);
    if (!storage->ops->remove(storage, record->instance, record->made, error))
        return false;
    log_info("", "new images of instance %s that no record names were removed", record->instance);
    text_set(&record->made, "");
    return guest_save(guest, error);
}

static bool create_locked(struct guest *guest, const struct epoch_fence_op *op,
                          const struct disks_create_args *args, GError **error)
{
    struct storage *storage = guest->node->storage;
    if (!create_check(guest, op, args, error))
        return false;
    /* The record does not know of the generation yet, so the master must know of the job. */
    if (args->set_aside && !confirm_one(guest->node, op, CONFIRM_NEW_DISKS, args->instance,
                                        args->generation, args->replica, error))
        return false;
    if (args->generation > 0 &&
        (!create_clear_the_way(guest, args, error) || !create_record_used(guest, op, args, error)))
        return false;
    if (cancel_asked(guest)) {
        fettle_set_error(error, CANCELED, "given up before the images were begun");
        return false;
    }
    return storage->ops->create(storage, args->instance, args->replica, args->disk_template,
                                args->disks, args->os_type, error);
}

json_t *disks_create(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error)
{
    const struct disks_create_args *create = args;
    struct guest *guest = guest_get(node, create->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    cancel_begin(guest, op);
    bool ok = create_locked(guest, op, create, error);
    cancel_end(guest);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

static bool remove_replica(struct guest *guest, const char *replica, GError **error)
{
    struct storage *storage = guest->node->storage;
    const char *instance = guest->record->instance;
    const struct instance *incoming = guest->record->incoming;
    if (incoming &&
        (strcmp(incoming->replica, replica) == 0 || strcmp(incoming->migration, replica) == 0) &&
        !incoming_discard(guest, error))
        return false;
    if (!storage->ops->export_close(storage, instance, replica, error) ||
        !storage->ops->remove(storage, instance, replica, error))
        return false;
    bool made = strcmp(guest->record->made, replica) == 0;
    bool opened = strcmp(guest->record->replica, replica) == 0;
    if (made)
        text_set(&guest->record->made, "");
    if (opened)
        replica_forget(guest);
    return made || opened ? guest_save(guest, error) : guest_save_rest(guest, error);
}

/* Every replica of the instance that has images here, opened or not. */
static bool remove_all_replicas(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    g_autoptr(GPtrArray) all = storage->ops->list(storage, false, error);
    if (!all)
        return false;
    for (guint i = 0; i < all->len; i++) {
        const struct image_set *set = all->pdata[i];
        if (*set->replica && strcmp(set->instance, guest->record->instance) == 0 &&
            !remove_replica(guest, set->replica, error))
            return false;
    }
    return !*guest->record->replica || remove_replica(guest, guest->record->replica, error);
}

static bool remove_everything(struct guest *guest, const struct epoch_fence_op *op,
                              guint64 generation, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (!outgoing_drop(guest))
        return node_killed(error);
    if (!incoming_discard(guest, error) || (guest->live && !guest_kill(guest, error)))
        return false;
    /* First the memory that nothing may start, then the images. */
    record->history = epoch_fence_op_stamp(op).history;
    record->generation = MAX(record->generation, generation);
    record->clean = false;
    export_target_free(g_steal_pointer(&record->target));
    guest_move(guest, PHASE_REMOVED, NULL);
    return guest_save(guest, error) && remove_all_replicas(guest, error) &&
           storage->ops->remove(storage, record->instance, "", error) &&
           storage->ops->remove_aside(storage, record->instance, error);
}

/* A request that knows of a lower generation only than was used here is a late one. */
static bool remove_check(const struct guest *guest, const struct epoch_fence_op *op,
                         guint64 generation, guint64 known, GError **error)
{
    struct stamp have = {MIN(guest->record->history, epoch_fence_op_stamp(op).history), known};
    struct stamp asked = {epoch_fence_op_stamp(op).history, generation};
    if (stamp_compare(asked, have) >= 0)
        return true;
    fettle_set_error(error, REFUSED,
                     "images of instance %s were used here under generation "
                     "%" G_GUINT64_FORMAT ", the request knows of %" G_GUINT64_FORMAT " only",
                     guest->record->instance, known, generation);
    return false;
}

bool disks_remove_all(struct guest *guest, const struct epoch_fence_op *op, guint64 generation,
                      GError **error)
{
    const struct guest_record *record = guest->record;
    guint64 known = MAX(record->generation, record->replica_generation);
    return remove_check(guest, op, generation, known, error) &&
           remove_everything(guest, op, generation, error);
}

static bool remove_locked(struct guest *guest, const struct epoch_fence_op *op,
                          const struct disks_remove_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    if (!*args->replica)
        return disks_remove_all(guest, op, args->generation, error);
    guint64 known = strcmp(args->replica, record->replica) == 0 ? record->replica_generation : 0;
    return remove_check(guest, op, args->generation, known, error) &&
           remove_replica(guest, args->replica, error);
}

json_t *disks_remove(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error)
{
    const struct disks_remove_args *gone = args;
    struct guest *guest = guest_get(node, gone->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = remove_locked(guest, op, gone, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* --- larger --- */

static bool grow_check(struct guest *guest, const struct epoch_fence_op *op,
                       const struct disk_grow_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    struct stamp used = {record->history, record->generation};
    struct stamp asked = {epoch_fence_op_stamp(op).history, args->generation};
    g_autofree char *name = guest_name(guest);
    if (stamp_compare(asked, used) < 0) {
        guest_set_over(args->generation, name, record->generation, error);
        return false;
    }
    if (guest->incoming_live) {
        fettle_set_error(error, WRONG_STATE, "%s is being moved here by migration %s", name,
                         record->incoming->migration);
        return false;
    }
    if (*args->replica)
        return true;
    if (!guest->live)
        return own_check(guest, op, args->generation, error);
    if (!reconcile_adopt(guest, error) || !guest_check_stays(guest, error))
        return false;
    if (record->spec && args->disk >= record->spec->disks->len) {
        fettle_set_error(error, WRONG_INPUT, "disk: %s has %u disks", name,
                         record->spec->disks->len);
        return false;
    }
    if (record->target) {
        fettle_set_error(error, WRONG_STATE,
                         "%s has a mirror to replica %s; its disks grow without it", name,
                         record->target->replica);
        return false;
    }
    return true;
}

/* Its hypervisor has a qcow2 image in hand and makes it larger itself. */
static bool grow_is_hypervisors(const struct guest *guest, const struct disk_grow_args *args)
{
    const struct instance *spec = guest->record->spec;
    return guest->live && !*args->replica && spec &&
           ((const struct disk *)spec->disks->pdata[args->disk])->format == FORMAT_QCOW2;
}

static bool grow_locked(struct guest *guest, const struct epoch_fence_op *op,
                        const struct disk_grow_args *args, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct hypervisor *hv = guest->node->hv;
    guint disk = (guint)args->disk;
    if (!grow_check(guest, op, args, error) ||
        (!guest->live && !*args->replica && !own_take_place(guest, NULL, 0, error)))
        return false;
    if (!grow_is_hypervisors(guest, args) &&
        !storage->ops->grow(storage, args->instance, args->replica, disk, args->size, error))
        return false;
    return !guest->live || *args->replica ||
           hv->ops->disk_resize(hv, args->instance, guest->record->generation, disk,
                                args->size * MIB(1), error);
}

json_t *disks_grow(struct node_core *node, struct epoch_fence_op *op, const void *args,
                   GError **error)
{
    const struct disk_grow_args *grow = args;
    struct guest *guest = guest_get(node, grow->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = grow_locked(guest, op, grow, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* --- the last ones anew --- */

static bool renew_is_known(const struct guest *guest, const struct disks_renew_args *args)
{
    return *args->replica && strcmp(args->replica, guest->record->replica) == 0;
}

/* A request that was delayed on its way must not blank images that were used since. */
static bool renew_check(const struct guest *guest, const struct epoch_fence_op *op,
                        const struct disks_renew_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    struct stamp asked = {epoch_fence_op_stamp(op).history, args->generation}, used = {0, 0};
    g_autofree char *name = guest_name(guest);
    if (!*args->replica)
        used = (struct stamp){record->history, record->generation};
    else if (renew_is_known(guest, args))
        used = (struct stamp){record->replica_history, record->replica_generation};
    if (guest->damage)
        fettle_set_error(error, CORRUPT, "%s", guest->damage);
    else if (stamp_compare(asked, used) < 0)
        guest_set_over(args->generation, name, used.epoch, error);
    else if (guest->live || guest->incoming_live)
        fettle_set_error(error, TEMPORARY,
                         "a process of %s from before generation %" G_GUINT64_FORMAT
                         " is still here; it ends when the master has been asked about it",
                         name, args->generation);
    else
        return *args->replica || own_check(guest, op, args->generation, error);
    return false;
}

/* From now on nothing of an older generation may touch the images, and the replica is a copy of all
 * disks that are to be (replica_promote()). */
static bool renew_record_used(struct guest *guest, const struct epoch_fence_op *op,
                              const struct disks_renew_args *args, GError **error)
{
    struct guest_record *record = guest->record;
    if (!*args->replica) {
        record->history = epoch_fence_op_stamp(op).history;
        record->generation = args->generation;
        guest_move(guest, PHASE_STOPPED, "its last disks are made anew");
    } else {
        record_autoptr(disks_renew_args) copy = disks_renew_args_copy(args);
        GPtrArray *disks = record->replica_disks;
        record->replica_disks = copy->disks;
        copy->disks = disks;
        record->replica_history = epoch_fence_op_stamp(op).history;
        record->replica_generation = args->generation;
        record->exported = false;
    }
    return guest_save(guest, error);
}

static bool renew_locked(struct guest *guest, const struct epoch_fence_op *op,
                         const struct disks_renew_args *args, GError **error)
{
    struct storage *storage = guest->node->storage;
    bool known = renew_is_known(guest, args);
    guint kept = MIN((guint)args->first, args->disks->len);
    return renew_check(guest, op, args, error) && (!known || replica_close_export(guest, error)) &&
           (*args->replica || own_take_place(guest, args->disks, kept, error)) &&
           ((*args->replica && !known) || renew_record_used(guest, op, args, error)) &&
           storage->ops->renew(storage, args->instance, args->replica, args->disk_template,
                               args->disks, (guint)args->first, error);
}

json_t *disks_renew(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error)
{
    const struct disks_renew_args *renew = args;
    struct guest *guest = guest_get(node, renew->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = renew_locked(guest, op, renew, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

json_t *disks_how_far(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct disks_progress_args *asked = args;
    struct disks_progress progress = {0};
    progress.running = node->storage->ops->progress(node->storage, asked->instance,
                                                    &progress.done_mib, &progress.total_mib);
    return disks_progress_to_json(&progress);
}
