/*
 * Images: made, made larger, removed; see disks.h.
 */
#include "core/guest/disks.h"

#include "core/guest/incoming.h"
#include "core/guest/outgoing.h"
#include "core/guest/replica.h"
#include "core/guest/return.h"

json_t *disks_image_info(struct node_core *node, struct fence_op *op, const void *args,
                         GError **error)
{
    const struct image_info_args *image = args;
    struct image_info info = {0};
    if (!node->storage->ops->source_size(node->storage, image->os_type, &info.bytes, error))
        return NULL;
    return image_info_to_json(&info);
}

/* A request that was delayed on its way must not blank images that were used since. */
static bool create_check(const struct guest *guest, const struct fence_op *op,
                         const struct disks_create_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    struct stamp used = {record->history, record->generation};
    struct stamp asked = {fence_op_stamp(op).history, args->generation};
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
    if (*args->replica && strcmp(args->replica, record->replica) == 0) {
        fettle_set_error(error, UNSAFE,
                         "replica %s of %s was already opened under generation "
                         "%" G_GUINT64_FORMAT "; its images are not made anew",
                         args->replica, name, record->replica_generation);
        return false;
    }
    return true;
}

/* What an older generation left here is over by the record: its process ends, and with `set_aside`
 * its images and those of a replica are kept for a person (SAF-19). */
static bool create_clear_the_way(struct guest *guest, const struct disks_create_args *args,
                                 GError **error)
{
    struct storage *storage = guest->node->storage;
    const struct guest_record *record = guest->record;
    if (!outgoing_drop(guest))
        return node_killed(error);
    if (guest->live && !guest_kill(guest, error))
        return false;
    /* What a guest was copied to may be the current images by now: kept, if anything is. */
    if (!incoming_end(guest, error) ||
        !(args->set_aside ? incoming_promote(guest, error) : incoming_discard(guest, error)))
        return false;
    g_clear_pointer(&guest->record->incoming, instance_free);
    if (!args->set_aside || (!*args->replica && record->generation == args->generation))
        return true; /* asked again: what is there now is what the first request has made */
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

/* From now on nothing of an older generation may touch the images. */
static bool create_record_used(struct guest *guest, const struct fence_op *op,
                               const struct disks_create_args *args, GError **error)
{
    struct guest_record *record = guest->record;
    if (!*args->replica) {
        record->history = fence_op_stamp(op).history;
        record->generation = args->generation;
        record->clean = false;
        export_target_free(g_steal_pointer(&record->target));
        guest_move(guest, PHASE_STOPPED, "its images are made anew");
    } else if (args->set_aside && record->phase != PHASE_NONE) {
        guest_move(guest, PHASE_SUPERSEDED, "images set aside for a new replica");
    }
    return guest_save(guest, error);
}

static bool create_locked(struct guest *guest, const struct fence_op *op,
                          const struct disks_create_args *args, GError **error)
{
    struct storage *storage = guest->node->storage;
    if (!create_check(guest, op, args, error))
        return false;
    if (args->generation > 0 &&
        (!create_clear_the_way(guest, args, error) || !create_record_used(guest, op, args, error)))
        return false;
    return storage->ops->create(storage, args->instance, args->replica, args->disk_template,
                                args->disks, args->os_type, error);
}

json_t *disks_create(struct node_core *node, struct fence_op *op, const void *args, GError **error)
{
    const struct disks_create_args *create = args;
    struct guest *guest = guest_get(node, create->instance, error);
    if (!guest || !guest_lock(guest, error))
        return NULL;
    bool ok = create_locked(guest, op, create, error);
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
    if (strcmp(guest->record->replica, replica) != 0)
        return true;
    replica_forget(guest);
    return guest_save(guest, error);
}

/* Every replica of the instance that has images here, opened or not. */
static bool remove_all_replicas(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    g_autoptr(GPtrArray) all = storage->ops->list(storage, false, error);
    if (!all)
        return false;
    for (guint i = 0; i < all->len; i++) {
        g_auto(GStrv) words = g_strsplit(all->pdata[i], " ", 2);
        if (words[0] && words[1] && *words[1] && strcmp(words[0], guest->record->instance) == 0 &&
            !remove_replica(guest, words[1], error))
            return false;
    }
    return !*guest->record->replica || remove_replica(guest, guest->record->replica, error);
}

static bool remove_everything(struct guest *guest, const struct fence_op *op, guint64 generation,
                              GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (!outgoing_drop(guest))
        return node_killed(error);
    if (!incoming_discard(guest, error) || (guest->live && !guest_kill(guest, error)))
        return false;
    /* First the memory that nothing may start, then the images. */
    record->history = fence_op_stamp(op).history;
    record->generation = MAX(record->generation, generation);
    record->clean = false;
    export_target_free(g_steal_pointer(&record->target));
    guest_move(guest, PHASE_REMOVED, NULL);
    return guest_save(guest, error) && remove_all_replicas(guest, error) &&
           storage->ops->remove(storage, record->instance, "", error) &&
           storage->ops->remove_aside(storage, record->instance, error);
}

static bool remove_locked(struct guest *guest, const struct fence_op *op,
                          const struct disks_remove_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    bool whole = !*args->replica;
    guint64 known = whole ? MAX(record->generation, record->replica_generation)
                    : strcmp(args->replica, record->replica) == 0 ? record->replica_generation
                                                                  : 0;
    struct stamp have = {MIN(record->history, fence_op_stamp(op).history), known};
    struct stamp asked = {fence_op_stamp(op).history, args->generation};
    if (stamp_compare(asked, have) < 0) {
        fettle_set_error(error, REFUSED,
                         "images of instance %s were used here under generation "
                         "%" G_GUINT64_FORMAT ", the request knows of %" G_GUINT64_FORMAT " only",
                         args->instance, known, args->generation);
        return false;
    }
    return whole ? remove_everything(guest, op, args->generation, error)
                 : remove_replica(guest, args->replica, error);
}

json_t *disks_remove(struct node_core *node, struct fence_op *op, const void *args, GError **error)
{
    const struct disks_remove_args *gone = args;
    struct guest *guest = guest_get(node, gone->instance, error);
    if (!guest || !guest_lock(guest, error))
        return NULL;
    bool ok = remove_locked(guest, op, gone, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* --- larger --- */

static bool grow_check(struct guest *guest, const struct fence_op *op,
                       const struct disk_grow_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    struct stamp used = {record->history, record->generation};
    struct stamp asked = {fence_op_stamp(op).history, args->generation};
    g_autofree char *name = guest_name(guest);
    if (stamp_compare(asked, used) < 0) {
        fettle_set_error(error, REFUSED,
                         "generation %" G_GUINT64_FORMAT " of %s is over: generation "
                         "%" G_GUINT64_FORMAT " was already used here",
                         args->generation, name, record->generation);
        return false;
    }
    if (guest->incoming_live) {
        fettle_set_error(error, WRONG_STATE, "%s is being moved here by migration %s", name,
                         record->incoming->migration);
        return false;
    }
    if (!guest->live || *args->replica)
        return true;
    if (!return_adopt(guest, error) || !guest_check_stays(guest, error))
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

static bool grow_locked(struct guest *guest, const struct fence_op *op,
                        const struct disk_grow_args *args, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct hypervisor *hv = guest->node->hv;
    guint disk = (guint)args->disk;
    if (!grow_check(guest, op, args, error))
        return false;
    if (!grow_is_hypervisors(guest, args) &&
        !storage->ops->grow(storage, args->instance, args->replica, disk, args->size, error))
        return false;
    return !guest->live || *args->replica ||
           hv->ops->disk_resize(hv, args->instance, guest->record->generation, disk,
                                args->size * MIB(1), error);
}

json_t *disks_grow(struct node_core *node, struct fence_op *op, const void *args, GError **error)
{
    const struct disk_grow_args *grow = args;
    struct guest *guest = guest_get(node, grow->instance, error);
    if (!guest || !guest_lock(guest, error))
        return NULL;
    bool ok = grow_locked(guest, op, grow, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

json_t *disks_how_far(struct node_core *node, struct fence_op *op, const void *args, GError **error)
{
    const struct disks_progress_args *asked = args;
    struct disks_progress progress = {0};
    progress.running = node->storage->ops->progress(node->storage, asked->instance,
                                                    &progress.done_mib, &progress.total_mib);
    return disks_progress_to_json(&progress);
}
