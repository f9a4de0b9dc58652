/*
 * Images and exports; see replica.h. A node keeps at most one replica of an instance: the one that
 * was opened here last. That is the one a record can make its images by failover, because only a
 * replica that was opened can have been in sync.
 */
#include "core/node/replica.h"

#include "base/log.h"
#include "core/node/confirm.h"
#include "core/node/disks.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"
#include "core/node/mirror_watch.h"

void replica_forget(struct guest *guest)
{
    text_set(&guest->record->replica, "");
    text_set(&guest->record->replica_images, "");
    text_set(&guest->record->replica_holder, "");
    guest->record->replica_generation = 0;
    guest->record->replica_kept = 0;
    guest->record->exported = false;
    guest->export_live = false;
}

bool replica_close_export(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    const struct guest_record *record = guest->record;
    if (!storage->ops->export_close(storage, record->instance, record->replica, error))
        return false;
    guest->export_live = false;
    return true;
}

/* A guest that waits here to run from the replica: asked again before the switch, nothing is to be
 * done; after it, the replica is the guest's. Under any other record the migration is over. */
static bool open_clear_incoming(struct guest *guest, const struct replica_open_args *args,
                                GError **error)
{
    const struct guest_record *record = guest->record;
    if (!record->incoming)
        return true;
    if (strcmp(record->incoming->replica, args->replica) != 0 ||
        record->incoming->generation != args->generation)
        return incoming_discard(guest, error);
    if (!guest->incoming_live || record->exported)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "the incoming guest of migration %s is about to run from replica %s",
                     record->incoming->migration, args->replica);
    return false;
}

bool replica_is_left(const struct guest *guest, const char *replica)
{
    const struct guest_record *record = guest->record;
    return *replica &&
           (strcmp(record->left, replica) == 0 || strcmp(record->migration, replica) == 0);
}

bool replica_take_left(struct guest *guest, const char *replica, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (!replica_is_left(guest, replica) || strcmp(record->replica, replica) == 0)
        return true;
    if (!storage->ops->demote(storage, record->instance, replica, error))
        return false;
    log_info("", "images of instance %s became those of replica %s", record->instance, replica);
    g_autofree char *word = env_uuid(guest->node->env);
    text_set(&record->replica, replica);
    text_set(&record->replica_images, word);
    record->replica_history = record->history;
    record->replica_generation = record->generation;
    record->replica_kept = 0;
    if (record->phase == PHASE_MIGRATED)
        record->migrating = guest->migration->state = MIGRATION_MOVED;
    guest_move(guest, PHASE_SUPERSEDED, "its images are a replica's");
    return true;
}

/* This node is the primary, by the record: what it was to leave stays, also if a death has cut off
 * in the middle that images were given their other name. */
static bool take_back_left(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    guint64 aside = MAX(record->generation, 1);
    if (!*record->left)
        return true;
    if (!storage->ops->promote(storage, record->instance, record->left, aside, error))
        return false;
    text_set(&record->left, "");
    return true;
}

/* What an older record left here: a guest of an older generation, another replica, an export under
 * an older name. The master has confirmed the new one, so these are over. */
static bool open_clear_the_way(struct guest *guest, const struct replica_open_args *args,
                               GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (!outgoing_drop(guest))
        return node_killed(error);
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
    if (!replica_close_export(guest, error))
        return false;
    return same || storage->ops->set_aside(storage, record->instance, record->replica,
                                           record->replica_generation, error);
}

static bool open_has_room(struct guest *guest, const GPtrArray *disks)
{
    struct storage *storage = guest->node->storage;
    struct storage_space space = {0};
    g_autoptr(GError) error = NULL;
    bool told = storage->ops->space(storage, &space, &error);
    guint64 wanted = 0;
    for (guint i = 0; i < disks->len; i++)
        wanted += ((const struct disk *)disks->pdata[i])->size;
    if (told && space.free_mib > wanted)
        return true;
    if (!task_killed())
        log_warning("",
                    "images of replica %s are not kept aside while they are copied anew: "
                    "%" G_GUINT64_FORMAT " MiB are free, %" G_GUINT64_FORMAT " are needed",
                    guest->record->replica, space.free_mib, wanted);
    return false;
}

/* A full copy begins with zeros over the whole replica, which may be all that is whole if the
 * holder's disk fails meanwhile. So it is written to new images. Once for each generation that is
 * kept: what a copy that was cut off has left need not be. Noted before it is begun: from then on
 * no answer about the generation before can clear what is aside. */
static bool open_keep(struct guest *guest, const struct replica_open_args *args, guint64 history,
                      GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (args->keep == 0 || strcmp(record->replica, args->replica) != 0 ||
        record->replica_kept == args->keep)
        return true;
    if (!open_has_room(guest, args->disks))
        return !task_killed() || node_killed(error);
    if (!replica_close_export(guest, error))
        return false; /* of an opening that found no room for them */
    g_autofree char *word = env_uuid(guest->node->env);
    record->replica_history = history;
    record->replica_generation = args->generation;
    record->exported = false;
    text_set(&record->replica_images, word);
    guest->aside_cleared[0] = '\0';
    if (!guest_save(guest, error) ||
        !storage->ops->set_aside(storage, args->instance, args->replica, args->keep, error) ||
        !storage->ops->create(storage, args->instance, args->replica, TEMPLATE_MIRROR, args->disks,
                              "", error))
        return false;
    log_info("",
             "images of replica %s of instance %s are kept aside as they were at generation "
             "%" G_GUINT64_FORMAT,
             args->replica, args->instance, args->keep);
    record->replica_kept = args->keep;
    return true;
}

/* Remembered before the first write can reach it: only what was opened here is ever promoted. */
static bool open_record(struct guest *guest, const struct replica_open_args *args, guint64 history,
                        const char *holder, GError **error)
{
    struct guest_record *record = guest->record;
    record_autoptr(replica_open_args) copy = replica_open_args_copy(args);
    GPtrArray *disks = record->replica_disks;
    record->replica_disks = copy->disks;
    copy->disks = disks;
    if (!*record->replica_images || strcmp(record->replica, args->replica) != 0) {
        g_autofree char *word = env_uuid(guest->node->env);
        text_set(&record->replica_images, word);
    }
    if (strcmp(record->replica, args->replica) != 0)
        record->replica_kept = 0;
    if (strcmp(record->made, args->replica) == 0)
        text_set(&record->made, "");
    text_set(&record->replica, args->replica);
    record->replica_history = history;
    record->replica_generation = args->generation;
    text_set(&record->replica_holder, holder);
    record->exported = true;
    return guest_save(guest, error);
}

static struct export_target *open_locked(struct guest *guest, const struct epoch_fence_op *op,
                                         const struct replica_open_args *args, GError **error)
{
    struct node_core *node = guest->node;
    struct export_target *target = NULL;
    if (args->disks->len == 0) {
        fettle_set_error(error, WRONG_INPUT, "disks: must have at least one element");
        return NULL;
    }
    guint64 history = epoch_fence_op_stamp(op).history;
    enum replica_state state = REPLICA_IN_SYNC;
    g_autofree char *holder = NULL;
    if (!confirm_export(node, op, args->instance, args->generation, args->replica, &state, &holder,
                        error) ||
        !open_clear_incoming(guest, args, error) || !open_clear_the_way(guest, args, error) ||
        !replica_take_left(guest, args->replica, error) ||
        (state != REPLICA_IN_SYNC && !open_keep(guest, args, history, error)) ||
        !open_record(guest, args, history, holder, error))
        return NULL;
    if (!node->storage->ops->export_open(node->storage, history, args->instance, args->replica,
                                         args->generation, args->disks, node->address,
                                         state == REPLICA_IN_SYNC, &target, error))
        return NULL;
    guest->export_live = true;
    text_set(&target->images, guest->record->replica_images);
    text_set(&target->node, node->env->node_uuid);
    target->kept = args->keep > 0 && guest->record->replica_kept == args->keep;
    return target;
}

json_t *replica_open(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error)
{
    const struct replica_open_args *open = args;
    struct guest *guest = guest_get(node, open->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    record_autoptr(export_target) target = open_locked(guest, op, open, error);
    guest_unlock(guest);
    return target ? export_target_to_json(target) : NULL;
}

/* Only what mirrors to it knows when all of it was written. */
static bool settle_check(const struct guest_record *record, const char *from, GError **error)
{
    if (!*record->replica_holder || strcmp(from, record->replica_holder) == 0)
        return true;
    fettle_set_error(error, PERMISSION,
                     "replica %s is mirrored to by node %s, which holds generation "
                     "%" G_GUINT64_FORMAT " of instance %s; node %s may not settle it",
                     record->replica, record->replica_holder, record->replica_generation,
                     record->instance, from);
    return false;
}

/* Only looks and asks the exports, so it needs no lock: whoever closes them meanwhile makes it
 * fail, and what it has made durable stays so. */
json_t *replica_settle(struct node_core *node, const char *from_node, const void *args,
                       GError **error)
{
    const struct replica_settle_args *settle = args;
    const struct guest *guest = guest_lookup(node, settle->instance);
    const struct guest_record *record = guest ? guest->record : NULL;
    if (!record || !guest->export_live || strcmp(record->replica, settle->replica) != 0 ||
        record->replica_generation != settle->generation) {
        fettle_set_error(error, WRONG_STATE,
                         "replica %s is not exported here for generation %" G_GUINT64_FORMAT,
                         settle->replica, settle->generation);
        return NULL;
    }
    if (!settle_check(record, from_node, error))
        return NULL;
    return node->storage->ops->export_settle(node->storage, settle->target, error) ? json_object()
                                                                                   : NULL;
}

static bool has_disk(const GPtrArray *disks, const char *uuid)
{
    for (guint i = 0; i < disks->len; i++)
        if (strcmp(((const struct disk *)disks->pdata[i])->uuid, uuid) == 0)
            return true;
    return false;
}

/* What was copied here is what the record calls its disks. */
static bool promote_check(const struct guest *guest, const GPtrArray *disks, GError **error)
{
    const struct guest_record *record = guest->record;
    for (guint i = 0; i < disks->len; i++) {
        const struct disk *disk = disks->pdata[i];
        if (has_disk(record->replica_disks, disk->uuid))
            continue;
        g_autofree char *name = guest_name(guest);
        fettle_set_error(error, UNSAFE,
                         "replica %s of %s is no copy of disk %u (%s) on record, but of an earlier "
                         "one; nothing is started from it: make new disks with fettle instance "
                         "recreate-disks",
                         record->replica, name, i, disk->uuid);
        return false;
    }
    return true;
}

bool replica_promote(struct guest *guest, const GPtrArray *disks, bool equal, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (!take_back_left(guest, error))
        return false;
    if (!*record->replica)
        return true;
    if (!promote_check(guest, disks, error))
        return false;
    g_assert(!guest->live);
    guint64 aside = MAX(record->generation, 1);
    if (!replica_close_export(guest, error) ||
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
    record->clean = equal;
    record->sound = SOUND_UNKNOWN;
    replica_forget(guest);
    return guest_save(guest, error);
}

static bool close_locked(struct guest *guest, const struct epoch_fence_op *op,
                         const struct replica_close_args *args, GError **error)
{
    struct guest_record *record = guest->record;
    if (args->promote && strcmp(record->made, args->replica) == 0)
        return disks_take_made(guest, epoch_fence_op_stamp(op).history, args->generation, error);
    if (args->promote && *args->replica && strcmp(record->left, args->replica) == 0)
        return replica_promote(guest, args->disks, args->equal, error) && guest_save(guest, error);
    if (!args->promote && !replica_take_left(guest, args->replica, error))
        return false;
    if (strcmp(record->replica, args->replica) != 0)
        /* Promoted, removed or set aside already, or never opened here: nothing is exported. */
        return guest->node->storage->ops->export_close(guest->node->storage, args->instance,
                                                       args->replica, error) &&
               guest_save_rest(guest, error);
    if (args->generation < record->replica_generation) {
        fettle_set_error(error, REFUSED,
                         "replica %s was opened again for generation %" G_GUINT64_FORMAT
                         ", after generation %" G_GUINT64_FORMAT,
                         args->replica, record->replica_generation, args->generation);
        return false;
    }
    /* A guest that waits here has the replica's images open (SAF-16, 17). */
    if (!incoming_discard(guest, error))
        return false;
    if (args->promote) {
        if (!outgoing_drop(guest))
            return node_killed(error);
        if (guest->live && !guest_kill(guest, error))
            return false;
        return replica_promote(guest, args->disks, args->equal, error);
    }
    if (!replica_close_export(guest, error))
        return false;
    record->exported = false;
    return guest_save(guest, error);
}

json_t *replica_close(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct replica_close_args *close = args;
    struct guest *guest = guest_get(node, close->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = close_locked(guest, op, close, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* --- left behind --- */

static bool leave_check(const struct guest *guest, const struct epoch_fence_op *op,
                        const struct replica_leave_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    struct stamp asked = {epoch_fence_op_stamp(op).history, args->generation};
    struct stamp used = {record->history, record->generation};
    g_autofree char *name = guest_name(guest);
    if (guest->damage)
        fettle_set_error(error, CORRUPT, "%s", guest->damage);
    else if (stamp_compare(asked, used) < 0)
        guest_set_over(args->generation, name, record->generation, error);
    else if (guest->live || guest->incoming_live || record->phase != PHASE_STOPPED)
        fettle_set_error(error, WRONG_STATE, "no guest of %s has ended here: it %s", name,
                         guest->live                   ? "runs"
                         : record->phase == PHASE_NONE ? "never ran here"
                                                       : "was not closed");
    else if (*record->replica && strcmp(record->replica, args->replica) != 0)
        fettle_set_error(error, WRONG_STATE, "this node has replica %s of %s", record->replica,
                         name);
    else
        return true;
    return false;
}

/* Until the record speaks they stay what they are: a start takes the word back. */
static bool leave_locked(struct guest *guest, const struct epoch_fence_op *op,
                         const struct replica_leave_args *args, GError **error)
{
    struct guest_record *record = guest->record;
    if (!leave_check(guest, op, args, error))
        return false;
    if (*record->left)
        return guest_save(guest, error); /* what is on record may be it already */
    record_autoptr(replica_leave_args) copy = replica_leave_args_copy(args);
    GPtrArray *disks = record->replica_disks;
    record->replica_disks = copy->disks;
    copy->disks = disks;
    text_set(&record->left, args->replica);
    return guest_save(guest, error);
}

json_t *replica_leave(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct replica_leave_args *leave = args;
    struct guest *guest = guest_get(node, leave->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = leave_locked(guest, op, leave, error);
    struct replica_leave_result result = {.replica = guest->record->left,
                                          .equal = guest->record->clean};
    json_t *answer = ok ? replica_leave_result_to_json(&result) : NULL;
    guest_unlock(guest);
    return answer;
}
