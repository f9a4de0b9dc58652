/*
 * Images and exports; see replica.h. A node keeps at most one replica of an instance: the one that
 * was opened here last. That is the one a record can make its images by failover, because only a
 * replica that was opened can have been in sync.
 */
#include "core/guest/replica.h"

#include "base/log.h"
#include "core/guest/confirm.h"
#include "core/guest/mirror_watch.h"

json_t *replica_image_info(struct node_core *node, struct fence_op *op, const void *args,
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

static void forget_replica(struct guest *guest)
{
    set_string(&guest->record->replica, "");
    guest->record->replica_generation = 0;
    guest->record->exported = false;
    guest->export_live = false;
}

static bool close_export(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    const struct guest_record *record = guest->record;
    if (!storage->ops->export_close(storage, record->instance, record->replica, error))
        return false;
    guest->export_live = false;
    return true;
}

/* What an older generation left here is over by the record: its process ends, and with `set_aside`
 * its images and those of a replica are kept for a person (SAF-19). */
static bool create_clear_the_way(struct guest *guest, const struct disks_create_args *args,
                                 GError **error)
{
    struct storage *storage = guest->node->storage;
    const struct guest_record *record = guest->record;
    if (guest->live && !guest_kill(guest, error))
        return false;
    if (!args->set_aside || (!*args->replica && record->generation == args->generation))
        return true; /* asked again: what is there now is what the first request has made */
    if (*record->replica) {
        if (!close_export(guest, error) ||
            !storage->ops->set_aside(storage, record->instance, record->replica,
                                     record->replica_generation, error))
            return false;
        forget_replica(guest);
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

json_t *replica_disks_create(struct node_core *node, struct fence_op *op, const void *args,
                             GError **error)
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
    if (!storage->ops->export_close(storage, instance, replica, error) ||
        !storage->ops->remove(storage, instance, replica, error))
        return false;
    if (strcmp(guest->record->replica, replica) != 0)
        return true;
    forget_replica(guest);
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
    if (guest->live && !guest_kill(guest, error))
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

json_t *replica_disks_remove(struct node_core *node, struct fence_op *op, const void *args,
                             GError **error)
{
    const struct disks_remove_args *gone = args;
    struct guest *guest = guest_get(node, gone->instance, error);
    if (!guest || !guest_lock(guest, error))
        return NULL;
    bool ok = remove_locked(guest, op, gone, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* What an older record left here: a guest of an older generation, another replica, an export under
 * an older name. The master has confirmed the new one, so these are over. */
static bool open_clear_the_way(struct guest *guest, const struct replica_open_args *args,
                               GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (guest->live) {
        if (!guest_kill(guest, error))
            return false;
        guest_move(guest, PHASE_STOPPED, "this node became its secondary");
    }
    if (!*record->replica)
        return true;
    bool same = strcmp(record->replica, args->replica) == 0;
    if (same && record->replica_generation == args->generation)
        return true;
    if (!close_export(guest, error))
        return false;
    return same || storage->ops->set_aside(storage, record->instance, record->replica,
                                           record->replica_generation, error);
}

/* Remembered before the first write can reach it: only what was opened here is ever promoted. */
static bool open_record(struct guest *guest, const struct replica_open_args *args, guint64 history,
                        GError **error)
{
    struct guest_record *record = guest->record;
    record_autoptr(replica_open_args) copy = replica_open_args_copy(args);
    GPtrArray *disks = record->replica_disks;
    record->replica_disks = copy->disks;
    copy->disks = disks;
    set_string(&record->replica, args->replica);
    record->replica_history = history;
    record->replica_generation = args->generation;
    record->exported = true;
    return guest_save(guest, error);
}

static struct export_target *open_locked(struct guest *guest, const struct fence_op *op,
                                         const struct replica_open_args *args, GError **error)
{
    struct node_core *node = guest->node;
    struct export_target *target = NULL;
    if (args->disks->len == 0) {
        fettle_set_error(error, WRONG_INPUT, "disks: must have at least one element");
        return NULL;
    }
    guint64 history = fence_op_stamp(op).history;
    if (!confirm_one(node, op, CONFIRM_EXPORT, args->instance, args->generation, args->replica,
                     error) ||
        !open_clear_the_way(guest, args, error) || !open_record(guest, args, history, error))
        return NULL;
    if (!node->storage->ops->export_open(node->storage, history, args->instance, args->replica,
                                         args->generation, args->disks, node->address, &target,
                                         error))
        return NULL;
    guest->export_live = true;
    return target;
}

json_t *replica_open(struct node_core *node, struct fence_op *op, const void *args, GError **error)
{
    const struct replica_open_args *open = args;
    struct guest *guest = guest_get(node, open->instance, error);
    if (!guest || !guest_lock(guest, error))
        return NULL;
    record_autoptr(export_target) target = open_locked(guest, op, open, error);
    guest_unlock(guest);
    return target ? export_target_to_json(target) : NULL;
}

bool replica_promote(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (!*record->replica)
        return true;
    g_assert(!guest->live);
    guint64 aside = MAX(record->generation, 1);
    if (!close_export(guest, error) ||
        !storage->ops->promote(storage, record->instance, record->replica, aside, error))
        return false;
    log_info("", "replica %s of instance %s became its images", record->replica, record->instance);
    /* Nothing may start here what the replica was the copy of. */
    struct stamp used = {record->history, record->generation};
    struct stamp copied = {record->replica_history, record->replica_generation};
    if (stamp_compare(copied, used) > 0) {
        record->history = copied.history;
        record->generation = copied.epoch;
    }
    guest_move(guest, PHASE_STOPPED, "promoted");
    record->clean = false;
    forget_replica(guest);
    return guest_save(guest, error);
}

static bool close_locked(struct guest *guest, const struct replica_close_args *args, GError **error)
{
    struct guest_record *record = guest->record;
    if (strcmp(record->replica, args->replica) != 0)
        /* Promoted, removed or set aside already, or never opened here: nothing is exported. */
        return guest->node->storage->ops->export_close(guest->node->storage, args->instance,
                                                       args->replica, error);
    if (args->generation < record->replica_generation) {
        fettle_set_error(error, REFUSED,
                         "replica %s was opened again for generation %" G_GUINT64_FORMAT
                         ", after generation %" G_GUINT64_FORMAT,
                         args->replica, record->replica_generation, args->generation);
        return false;
    }
    if (args->promote) {
        if (guest->live && !guest_kill(guest, error))
            return false;
        return replica_promote(guest, error);
    }
    if (!close_export(guest, error))
        return false;
    record->exported = false;
    return guest_save(guest, error);
}

json_t *replica_close(struct node_core *node, struct fence_op *op, const void *args, GError **error)
{
    const struct replica_close_args *close = args;
    struct guest *guest = guest_get(node, close->instance, error);
    if (!guest || !guest_lock(guest, error))
        return NULL;
    bool ok = close_locked(guest, close, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}
