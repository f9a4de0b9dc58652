/*
 * Starting a generation (SAF-10): confirmed, recorded as used, prepared with stopped processors,
 * mirrored or on record as not mirrored, and only then run.
 */
#include "core/node/lifecycle.h"

#include "base/log.h"
#include "core/node/confirm.h"
#include "core/node/disks.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"
#include "core/node/mirror_watch.h"
#include "core/node/reconcile.h"
#include "core/node/replica.h"
#include "core/node/taps.h"
#include "core/node/volume/volumes.h"

#define READY_WAIT_MS 10000
#define READY_POLL_MS 50
#define STALE_WAIT_MS 10000

static bool start_check(const struct node_core *node, const struct guest_start_args *args,
                        GError **error)
{
    const struct instance *instance = args->instance;
    if (strcmp(instance->holder, node->env->node_uuid) != 0 ||
        strcmp(instance->primary_node, node->env->node_uuid) != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "instance: generation %" G_GUINT64_FORMAT " of %s is held by %s, not by "
                         "this node",
                         instance->generation, instance->name,
                         *instance->holder ? instance->holder : "nobody");
        return false;
    }
    if (instance->generation == 0) {
        fettle_set_error(error, WRONG_INPUT, "instance.generation: must be at least 1");
        return false;
    }
    if (*args->migration && strcmp(args->migration, instance->migration) != 0) {
        fettle_set_error(error, WRONG_INPUT, "migration: the record of %s does not name it",
                         instance->name);
        return false;
    }
    if (args->target && args->target->disks->len != instance->disks->len) {
        fettle_set_error(error, WRONG_INPUT, "target.disks: %u exports for %u disks",
                         args->target->disks->len, instance->disks->len);
        return false;
    }
    return true;
}

static bool start_launch(struct guest *guest, const struct guest_start_args *args, GError **error);
static void start_abandon(struct guest *guest);

/* A guest that has moved here and whose start was cut off before it was told to run: it can go on
 * from there, with all that it has in memory. */
static bool start_is_unfinished(const struct guest *guest, const struct guest_start_args *args)
{
    const struct guest_record *record = guest->record;
    bool moved = guest->live && *args->migration && record->spec &&
                 strcmp(record->spec->migration, args->migration) == 0;
    return moved && (record->phase == PHASE_USED ||
                     (record->phase == PHASE_STARTED && guest->last_state == GUEST_PAUSED));
}

/* What was done of it is found again; what was not is done now. */
static bool start_resume(struct guest *guest, const struct guest_start_args *args, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    const struct guest_record *record = guest->record;
    if (!reconcile_adopt(guest, error))
        return false;
    if (record->phase == PHASE_STARTED)
        return !args->run || hv->ops->run(hv, record->instance, record->generation, error);
    guest->replica_state = REPLICA_SYNCING;
    guest->replica_sync = args->sync;
    if (start_launch(guest, args, error))
        return true;
    start_abandon(guest);
    return false;
}

/* The very generation was used here before: that it lives is success, otherwise it is over. */
static bool start_again(struct guest *guest, const struct guest_start_args *args, GError **error)
{
    if (guest->live)
        guest_query(guest);
    if (start_is_unfinished(guest, args))
        return start_resume(guest, args, error);
    if (guest->live && guest->record->phase == PHASE_STARTED)
        return reconcile_adopt(guest, error);
    g_autofree char *name = guest_name(guest);
    fettle_set_error(error, REFUSED,
                     "generation %" G_GUINT64_FORMAT " was already used here: %s needs a higher "
                     "one to be started",
                     guest->record->generation, name);
    return false;
}

/* Ends a generation that failed to start; it stays used. */
static void start_abandon(struct guest *guest)
{
    g_autoptr(GError) error = NULL;
    if (task_killed())
        return;
    if (!guest_kill(guest, &error) && !task_killed())
        log_error("", "%s", error->message);
}

/* What an older generation left: its process ends, and so does one that waits for another
 * migration than this start names; a replica that was promoted by the record, or images that the
 * guest was copied to, become the instance's images (SAF-16, 17). */
static bool start_clear_the_way(struct guest *guest, const struct guest_start_args *args,
                                guint64 history, GError **error)
{
    const GPtrArray *disks = args->instance->disks;
    const char *migration = args->migration;
    const char *made = guest->record->made;
    if (!outgoing_drop(guest))
        return node_killed(error);
    if (guest->live) {
        if (!guest_kill(guest, error))
            return false;
        guest_move(guest, PHASE_STOPPED, "a newer generation starts");
    }
    if (!mirror_watch_stop(guest)) /* the guest may have ended by itself since the lock */
        return node_killed(error);
    bool waits = *migration && strcmp(incoming_migration(guest), migration) == 0;
    if ((!waits && !incoming_end(guest, error)) || !replica_promote(guest, disks, false, error) ||
        !incoming_promote(guest, error))
        return false;
    bool new_disks = *made && disks->len && !strcmp(((struct disk *)disks->pdata[0])->uuid, made);
    return !new_disks || disks_take_made(guest, history, args->instance->generation - 1, error);
}

/* "g used", synced, before anything else can happen (SAF-10). */
static bool start_record_used(struct guest *guest, const struct guest_start_args *args,
                              guint64 history, GError **error)
{
    struct guest_record *record = guest->record;
    record->history = history;
    record->generation = args->instance->generation;
    record->clean = false;
    record->sound = SOUND_UNKNOWN;
    record->run = args->run;
    record->attached = false;
    record->sync = args->sync;
    text_set(&record->boot_id, guest->node->env->boot_id);
    instance_free(record->spec);
    record->spec = instance_copy(args->instance);
    export_target_free(record->target);
    record->target = args->target ? export_target_copy(args->target) : NULL;
    volumes_copy(record->volumes, args->volumes);
    text_set(&record->migration, "");
    record->migrating = MIGRATION_NONE;
    g_clear_pointer(&record->incoming, instance_free);
    g_clear_pointer(&guest->incoming_target, migration_target_free);
    guest->incoming_live = false;
    guest->adopted = false;
    guest->shutdown = false;
    guest->ending = false;
    guest->last_io = (struct io_info){0};
    guest->io_failed_ms = 0;
    guest->go_on_tries = 0;
    guest->volumes_looked = false;
    /* What its process before this one was like is over. */
    guest_heard(guest, guest->node->env->ops->boot_ms(guest->node->env), GUEST_PREPARED,
                (struct mirror_info){0});
    /* As committed: after a migration the replica has to be ready once before it is in sync. */
    guest->replica_state =
        args->full || *args->instance->migration ? REPLICA_SYNCING : REPLICA_IN_SYNC;
    guest->replica_sync = args->sync;
    guest_move(guest, PHASE_USED, NULL);
    return guest_save(guest, error);
}

static bool start_wait_ready(struct guest *guest, GError **error)
{
    for (guint waited = 0; waited < READY_WAIT_MS; waited += READY_POLL_MS) {
        if (guest_query(guest) && guest->last_mirror.state == MIRROR_READY)
            return true;
        if (guest->last_mirror.state == MIRROR_LOST)
            break;
        if (!env_sleep(guest->node->env, READY_POLL_MS))
            return node_killed(error);
    }
    fettle_set_error(error, TIMEOUT, "its mirror did not become ready");
    return false;
}

/* A start that was cut off may have attached it. */
static bool start_has_mirror(struct guest *guest)
{
    return guest->record->spec && *guest->record->spec->migration && guest_query(guest) &&
           (guest->last_mirror.state == MIRROR_SYNCING || guest->last_mirror.state == MIRROR_READY);
}

/* SAF-10: before the first instruction either the mirror is attached (and ready, if the replica is
 * on record as in-sync), or the replica is on record as stale. */
static bool start_mirror(struct guest *guest, bool full, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    struct guest_record *record = guest->record;
    g_autoptr(GError) why = NULL;
    bool there = start_has_mirror(guest);
    if ((there || hv->ops->mirror_start(hv, record->instance, record->generation, record->target,
                                        full ? COPY_EVERYTHING : COPY_NOTHING, &why)) &&
        (full || start_wait_ready(guest, &why))) {
        record->attached = true;
        return true;
    }
    if (fettle_error_is(why, KILLED) || task_killed())
        return node_killed(error);
    log_warning("", "instance %s starts without its replica: %s", record->spec->name, why->message);
    g_autofree char *reason = g_strdup_printf("its mirror did not start: %.200s", why->message);
    return mirror_give_up(guest, reason, STALE_WAIT_MS, error);
}

/* Whoever asks meanwhile is told what it will be: a process that waits for its first `cont`. */
static bool start_make(struct guest *guest, const struct guest_spec *spec, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    guest->live = true; /* from here on it may live, whatever prepare says */
    guest->making = true;
    guest->query_late = false;
    guest->last_state = GUEST_PREPARED;
    guest->last_mirror = (struct mirror_info){MIRROR_NONE, 0};
    bool ok = hv->ops->prepare(hv, spec, error);
    guest->making = false;
    return ok;
}

/* Images, tap devices and kernel are ready before the process is. */
static bool start_prepare(struct guest *guest, GError **error)
{
    struct node_core *node = guest->node;
    const struct instance *instance = guest->record->spec;
    struct guest_spec spec = {.instance = instance,
                              .accelerator = epoch_fence_announced(node->fence)->accelerator};
    g_autoptr(GPtrArray) images =
        node->storage->ops->files(node->storage, instance->uuid, "", instance->disks->len, error);
    if (!images || !guest_boot_files(node, instance, &spec, error))
        return false;
    g_autoptr(GPtrArray) taps = taps_create(guest, instance, TAPS_RUN, error);
    bool ok = taps != NULL;
    if (ok) {
        spec.images = images;
        spec.volumes = guest->record->volumes;
        spec.taps = taps;
        ok = start_make(guest, &spec, error);
    }
    guest_boot_files_clear(&spec);
    return ok;
}

/* Where the guest is now; a switch that does not hear it learns it from the guest's first frame. */
static void start_announce(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    const struct guest_record *record = guest->record;
    g_autoptr(GError) error = NULL;
    if (record->spec->nics->len == 0 ||
        hv->ops->announce(hv, record->instance, record->generation, &error))
        return;
    if (!task_killed())
        log_warning("", "instance %s was not announced: %s", record->spec->name, error->message);
}

/* The process being there with its processors stopped: mirrored, on disk as started, run. */
static bool start_launch(struct guest *guest, const struct guest_start_args *args, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    struct guest_record *record = guest->record;
    if (record->target && !start_mirror(guest, args->full, error))
        return false;
    if (!volumes_tell_clients(guest, error))
        return false;
    guest_move(guest, PHASE_STARTED, record->target ? "mirrored" : "without mirror");
    if (!guest_save(guest, error))
        return false;
    if (args->run && !hv->ops->run(hv, record->instance, record->generation, error))
        return false;
    guest->adopted = true;
    if (args->run) {
        guest->last_state = GUEST_RUNNING;
        start_announce(guest);
        taps_announce(guest);
    }
    if (record->target && guest->live)
        mirror_watch_start(guest, NULL);
    return true;
}

/* The guest has moved here, and the routes to its cards with it. It runs without them rather than
 * not at all. */
static void start_routes(struct guest *guest, const struct instance *instance)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) taps = taps_create(guest, instance, TAPS_RUN, &error);
    if (!taps && !task_killed())
        log_error("", "instance %s: %s", instance->name, error->message);
}

/* From the process that waits here since the migration: WRONG_STATE with nothing used if it is not
 * whole. */
static bool start_migrated(struct guest *guest, const struct guest_start_args *args,
                           guint64 history, GError **error)
{
    if (!incoming_take(guest, args->migration, error))
        return false;
    start_routes(guest, args->instance);
    bool ok = start_record_used(guest, args, history, error);
    guest->live = true;
    ok = ok && start_launch(guest, args, error);
    if (!ok)
        start_abandon(guest);
    return ok;
}

static bool start_fresh(struct guest *guest, const struct guest_start_args *args, guint64 history,
                        GError **error)
{
    if (!start_record_used(guest, args, history, error))
        return false;
    bool ok = start_prepare(guest, error) && start_launch(guest, args, error);
    if (!ok)
        start_abandon(guest);
    return ok;
}

static bool start_locked(struct guest *guest, const struct epoch_fence_op *op,
                         const struct guest_start_args *args, GError **error)
{
    const struct instance *instance = args->instance;
    if (!reconcile_renew(guest, error))
        return false;
    struct stamp used = {guest->record->history, guest->record->generation};
    struct stamp wanted = {epoch_fence_op_stamp(op).history, instance->generation};
    if (guest->damage) {
        fettle_set_error(error, CORRUPT,
                         "%s; start instance %s on another node, or remove the file "
                         "if you know that it runs nowhere",
                         guest->damage, instance->name);
        return false;
    }
    int order = stamp_compare(wanted, used);
    if (order == 0)
        return start_again(guest, args, error);
    if (order < 0) {
        g_autofree char *name = g_strdup_printf("instance %s", instance->name);
        guest_set_over(instance->generation, name, used.epoch, error);
        return false;
    }
    /* A start that was delayed on its way must not run what was stopped or moved since. */
    if (!confirm_one(guest->node, op, CONFIRM_START, instance->uuid, instance->generation, "",
                     error) ||
        !volumes_confirm(guest->node, op, args, error))
        return false;
    if (!start_clear_the_way(guest, args, wanted.history, error))
        return false;
    bool ok = *args->migration ? start_migrated(guest, args, wanted.history, error)
                               : start_fresh(guest, args, wanted.history, error);
    if (!ok)
        g_prefix_error(error, "instance %s: ", instance->name);
    return ok;
}

json_t *lifecycle_start(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error)
{
    const struct guest_start_args *start = args;
    if (!start_check(node, start, error))
        return NULL;
    struct guest *guest = guest_get(node, start->instance->uuid, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = start_locked(guest, op, start, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* A reset drains the disk, so the mirror must be whole (SAF-15); the watch stands aside meanwhile.
 */
static bool reset_locked(struct guest *guest, guint64 generation, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    g_autofree char *name = guest_name(guest);
    if (!guest_check_generation(guest, generation, error) || !reconcile_adopt(guest, error) ||
        !guest_check_stays(guest, error) || !mirror_watch_stop(guest))
        return false;
    bool mirrored = guest->record->target != NULL;
    bool whole = !mirrored || (guest->replica_state != REPLICA_STALE && mirror_reachable(guest));
    bool ok = false;
    if (!whole)
        fettle_set_error(error, TEMPORARY,
                         "the replica of %s cannot be reached, so a reset would hang; try again "
                         "when it is on record as stale",
                         name);
    else
        ok = hv->ops->reset(hv, guest->record->instance, generation, error);
    if (mirrored && guest->live && !task_killed())
        mirror_watch_start(guest, NULL);
    return ok;
}

json_t *lifecycle_reset(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error)
{
    const struct guest_args *reset = args;
    struct guest *guest = guest_get(node, reset->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = reset_locked(guest, reset->generation, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}
