/*
 * The node that a guest moves to; see incoming.h.
 */
#include "core/node/migration/incoming.h"

#include "base/log.h"
#include "core/node/confirm.h"
#include "core/node/migration/outgoing.h"
#include "core/node/reconcile.h"
#include "core/node/taps.h"

#define TAKE_WAIT_MS 5000 /* for the last of what the other side says is here */
#define TAKE_POLL_MS 20

const char *incoming_migration(const struct guest *guest)
{
    return guest->incoming_live ? guest->record->incoming->migration : "";
}

guint64 incoming_generation(const struct guest *guest)
{
    return guest->record->incoming ? guest->record->incoming->generation + 1 : 0;
}

/* The disks are copied into images of this node's own, named by the migration. */
static bool has_own_images(const struct instance *instance)
{
    return instance->disk_template == TEMPLATE_FILE && instance->disks->len > 0;
}

/* --- ending --- */

bool incoming_end(struct guest *guest, GError **error)
{
    struct node_core *node = guest->node;
    const struct guest_record *record = guest->record;
    if (!record->incoming)
        return true;
    guint64 generation = incoming_generation(guest);
    if (guest->incoming_live &&
        !node->hv->ops->kill(node->hv, record->instance, generation, error)) {
        g_prefix_error(error, "the incoming guest of migration %s could not be ended: ",
                       record->incoming->migration);
        return false;
    }
    if (guest->incoming_live)
        log_info("", "instance %s: incoming guest of migration %s ended", record->instance,
                 record->incoming->migration);
    guest->incoming_live = false;
    g_clear_pointer(&guest->incoming_target, migration_target_free);
    taps_remove(guest, record->incoming);
    return !task_killed() || node_killed(error);
}

static bool incoming_forget(struct guest *guest, GError **error)
{
    g_clear_pointer(&guest->record->incoming, instance_free);
    return guest_save(guest, error);
}

bool incoming_discard(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    const struct guest_record *record = guest->record;
    if (!record->incoming)
        return true;
    if (!incoming_end(guest, error))
        return false;
    if (has_own_images(record->incoming) &&
        !storage->ops->remove(storage, record->instance, record->incoming->migration, error))
        return false;
    return incoming_forget(guest, error);
}

bool incoming_promote(struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    const struct guest_record *record = guest->record;
    if (!record->incoming || !has_own_images(record->incoming))
        return true;
    if (!storage->ops->promote(storage, record->instance, record->incoming->migration,
                               MAX(record->generation, 1), error))
        return false;
    log_info("", "images that instance %s was copied to by migration %s became its own",
             record->instance, record->incoming->migration);
    return true;
}

/* --- becoming the guest --- */

/* The other side has said that everything is here, so it is only a moment. */
static bool take_wait(struct guest *guest, const char *migration, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    for (guint waited = 0;; waited += TAKE_POLL_MS) {
        g_autoptr(GError) why = NULL;
        if (hv->ops->incoming_finish(hv, guest->record->instance, incoming_generation(guest),
                                     migration, &why))
            return true;
        if (task_killed())
            return node_killed(error);
        if (!fettle_error_is(why, TEMPORARY) || waited >= TAKE_WAIT_MS) {
            g_propagate_error(error, g_steal_pointer(&why));
            return false;
        }
        if (!env_sleep(guest->node->env, TAKE_POLL_MS))
            return node_killed(error);
    }
}

bool incoming_take(struct guest *guest, const char *migration, GError **error)
{
    g_autoptr(GError) why = NULL;
    g_autofree char *name = guest_name(guest);
    if (strcmp(incoming_migration(guest), migration) != 0) {
        fettle_set_error(error, WRONG_STATE,
                         "no incoming guest of migration %s waits here; %s can be started from its "
                         "images",
                         migration, name);
        return false;
    }
    if (take_wait(guest, migration, &why))
        return true;
    if (task_killed())
        return node_killed(error);
    if (!incoming_end(guest, error))
        return false;
    fettle_set_error(error, WRONG_STATE,
                     "the incoming guest of migration %s is not whole (%s) and was ended; %s can "
                     "be started from its images",
                     migration, why->message, name);
    return false;
}

/* --- open --- */

static bool open_check(const struct guest *guest, const struct epoch_fence_op *op,
                       const struct instance *instance, GError **error)
{
    const struct guest_record *record = guest->record;
    const char *node = guest->node->env->node_uuid;
    struct stamp used = {record->history, record->generation};
    struct stamp wanted = {epoch_fence_op_stamp(op).history, instance->generation + 1};
    if (!*instance->migration || strcmp(instance->migration_node, node) != 0 ||
        strcmp(instance->holder, node) == 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "instance.migration_node: the record of %s does not say that it moves to "
                         "this node",
                         instance->name);
        return false;
    }
    if (guest->damage) {
        fettle_set_error(error, CORRUPT, "%s", guest->damage);
        return false;
    }
    if (stamp_compare(wanted, used) <= 0) {
        guest_set_over(wanted.epoch, instance->name, used.epoch, error);
        return false;
    }
    if (strcmp(guest->incoming_over, instance->migration) == 0) {
        fettle_set_error(error, REFUSED, "migration %s of %s was closed here", instance->migration,
                         instance->name);
        return false;
    }
    return true;
}

/* What an older generation left here; the master has confirmed the migration, so it is over. A
 * replica stays as it is: the source writes to it until the end. */
static bool open_clear_the_way(struct guest *guest, GError **error)
{
    if (!incoming_discard(guest, error))
        return false;
    if (!guest->live)
        return true;
    if (!outgoing_drop(guest) || !guest_kill(guest, error))
        return task_killed() ? node_killed(error) : false;
    guest_move(guest, PHASE_STOPPED, "it runs on another node and moves back");
    return guest_save(guest, error);
}

/* Replica whose images the incoming guest opens; "" stands for the instance's own. */
static const char *open_images_of(const struct instance *instance)
{
    if (instance->disk_template == TEMPLATE_MIRROR)
        return instance->replica;
    return has_own_images(instance) ? instance->migration : "";
}

static bool open_images(struct guest *guest, const struct instance *instance, GPtrArray **ret_files,
                        GError **error)
{
    struct storage *storage = guest->node->storage;
    const char *replica = open_images_of(instance);
    if (instance->disk_template == TEMPLATE_MIRROR &&
        strcmp(guest->record->replica, instance->replica) != 0) {
        fettle_set_error(error, WRONG_STATE, "replica %s of %s was never opened on this node",
                         instance->replica, instance->name);
        return false;
    }
    if (has_own_images(instance) &&
        !storage->ops->create(storage, instance->uuid, replica, instance->disk_template,
                              instance->disks, "", error))
        return false;
    *ret_files = storage->ops->files(storage, instance->uuid, replica, instance->disks->len, error);
    return *ret_files != NULL;
}

/* The process is told the generation that it would run as; the record keeps the old one. */
static bool open_process(struct guest *guest, const struct instance *instance,
                         const GPtrArray *volumes, GError **error)
{
    struct node_core *node = guest->node;
    g_autoptr(GPtrArray) images = NULL;
    record_autoptr(instance) arriving = instance_copy(instance);
    arriving->generation++;
    struct guest_spec spec = {.instance = arriving,
                              .accelerator = epoch_fence_announced(node->fence)->accelerator};
    struct incoming_spec incoming = {.migration = instance->migration,
                                     .address = node->address,
                                     .serve_disks = has_own_images(instance)};
    if (!open_images(guest, instance, &images, error))
        return false;
    spec.images = images;
    spec.volumes = volumes;
    if (!guest_boot_files(node, instance, &spec, error))
        return false;
    g_autoptr(GPtrArray) taps = taps_create(guest, instance, TAPS_INCOMING, error);
    bool ok = taps != NULL;
    if (ok) {
        spec.taps = taps;
        guest->incoming_live = true; /* from here on it may live, whatever comes back */
        ok = node->hv->ops->incoming_prepare(node->hv, &spec, &incoming, &guest->incoming_target,
                                             error);
    }
    guest_boot_files_clear(&spec);
    return ok;
}

static bool open_locked(struct guest *guest, const struct epoch_fence_op *op,
                        const struct incoming_open_args *args, GError **error)
{
    const struct instance *instance = args->instance;
    struct guest_record *record = guest->record;
    if (!reconcile_renew(guest, error) || !open_check(guest, op, instance, error) ||
        !confirm_one(guest->node, op, CONFIRM_INCOMING, instance->uuid, instance->generation + 1,
                     instance->migration, error))
        return false;
    if (strcmp(incoming_migration(guest), instance->migration) == 0 && guest->incoming_target)
        return true; /* asked again: it waits */
    if (!open_clear_the_way(guest, error))
        return false;
    record->incoming = instance_copy(instance);
    if (!guest_save(guest, error)) {
        g_clear_pointer(&record->incoming, instance_free);
        return false;
    }
    if (open_process(guest, record->incoming, args->volumes, error))
        return true;
    if (task_killed())
        return node_killed(error);
    g_autoptr(GError) why = NULL;
    if (!incoming_discard(guest, &why) && !task_killed())
        log_error("", "%s", why->message);
    g_prefix_error(error, "instance %s: ", instance->name);
    return false;
}

json_t *incoming_open(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct incoming_open_args *open = args;
    struct guest *guest = guest_get(node, open->instance->uuid, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    json_t *answer = NULL;
    if (open_locked(guest, op, open, error))
        answer = migration_target_to_json(guest->incoming_target);
    guest_unlock(guest);
    return answer;
}

/* --- switch --- */

static bool switch_locked(struct guest *guest, const struct epoch_fence_op *op,
                          const char *migration, GError **error)
{
    struct storage *storage = guest->node->storage;
    struct guest_record *record = guest->record;
    if (strcmp(incoming_migration(guest), migration) != 0) {
        fettle_set_error(error, WRONG_STATE, "no incoming guest of migration %s waits here",
                         migration);
        return false;
    }
    if (strcmp(epoch_fence_op_from(op), record->incoming->holder) != 0) {
        fettle_set_error(error, PERMISSION,
                         "migration %s comes from node %s; node %s may not switch it over",
                         migration, record->incoming->holder, epoch_fence_op_from(op));
        return false;
    }
    if (record->incoming->disk_template != TEMPLATE_MIRROR)
        return true;
    if (!storage->ops->export_close(storage, record->instance, record->replica, error))
        return false;
    guest->export_live = false;
    record->exported = false;
    return guest_save(guest, error);
}

json_t *incoming_switch(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error)
{
    const struct migration_args *migration = args;
    struct guest *guest = guest_get(node, migration->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = switch_locked(guest, op, migration->migration, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* --- close --- */

/* The record says that this node is the primary since the migration: what waits here, and its
 * images, are the guest. */
static bool has_moved_here(const struct guest *guest, const struct confirm_result *answer)
{
    return !answer->removed && answer->generation >= incoming_generation(guest) &&
           strcmp(answer->primary_node, guest->node->env->node_uuid) == 0;
}

/* Asks how the migration stands; NULL: no answer. */
static struct confirm_answers *close_ask(struct guest *guest, GError **error)
{
    const struct instance *incoming = guest->record->incoming;
    record_autoptr(confirm_item) item = confirm_item_new();
    item->role = CONFIRM_INCOMING;
    text_set(&item->instance, incoming->uuid);
    item->generation = incoming->generation + 1;
    text_set(&item->replica, incoming->migration);
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    g_ptr_array_add(items, item);
    g_autoptr(GError) why = NULL;
    struct confirm_answers *answers = confirm_ask(guest->node, items, &why);
    if (!answers)
        fettle_set_error(error, TEMPORARY,
                         "the master did not say how migration %s stands (%s); nothing was "
                         "changed, try again",
                         incoming->migration, why->message);
    return answers;
}

static bool close_locked(struct guest *guest, const char *migration, GError **error)
{
    const struct guest_record *record = guest->record;
    bool became = record->spec && strcmp(record->spec->migration, migration) == 0 &&
                  (record->phase == PHASE_USED || record->phase == PHASE_STARTED);
    bool moved = false;
    if (record->incoming && strcmp(record->incoming->migration, migration) == 0) {
        struct confirm_answers *answers = close_ask(guest, error);
        if (!answers)
            return false;
        moved = has_moved_here(guest, answers->items->pdata[0]);
        confirm_answers_free(answers);
        if (!moved && !incoming_discard(guest, error))
            return false;
    }
    if (!became && !moved) { /* or it was closed before, or never opened here */
        g_strlcpy(guest->incoming_over, migration, sizeof guest->incoming_over);
        return true;
    }
    g_autofree char *name = guest_name(guest);
    fettle_set_error(error, WRONG_STATE, "%s has moved to this node by migration %s", name,
                     migration);
    return false;
}

json_t *incoming_close(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error)
{
    const struct migration_args *migration = args;
    struct guest *guest = guest_get(node, migration->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = close_locked(guest, migration->migration, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* --- return --- */

bool incoming_found(struct guest *guest, const struct guest_report *found, GError **error)
{
    const struct guest_record *record = guest->record;
    struct hypervisor *hv = guest->node->hv;
    if (record->incoming && strcmp(record->incoming->migration, found->migration) == 0 &&
        incoming_generation(guest) == found->generation) {
        guest->incoming_live = true;
        return true;
    }
    log_warning("", "instance %s: a guest that waits for migration %s is not known here, ended",
                found->instance, found->migration);
    g_autoptr(GError) why = NULL;
    if (!hv->ops->kill(hv, found->instance, found->generation, &why) && !task_killed())
        log_error("", "%s", why->message);
    return !task_killed() || node_killed(error);
}

bool incoming_apply(struct guest *guest, const struct confirm_result *answer)
{
    g_autoptr(GError) error = NULL;
    if (answer->answer == CONFIRM_CONFIRMED || has_moved_here(guest, answer))
        return true;
    if (answer->generation == 0 && !answer->removed)
        return true; /* the master knows nothing of the instance: no proof of anything */
    log_info("", "migration %s of instance %s is over", guest->record->incoming->migration,
             guest->record->instance);
    if (!incoming_discard(guest, &error) && !task_killed())
        log_warning("", "%s", error->message);
    return !task_killed();
}
