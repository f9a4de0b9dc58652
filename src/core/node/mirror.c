/*
 * Attaching, detaching and waiting for the mirror of a running guest; see mirror.h.
 */
#include "core/node/mirror.h"

#include "base/log.h"
#include "core/node/confirm.h"
#include "core/node/mirror_watch.h"
#include "core/node/reconcile.h"

#define WAIT_POLL_MS 50
#define STALE_WAIT_MS 10000
#define PROBE_TIMEOUT_MS 2000

/* With nothing attached: the target is remembered first, so that a restart finds an unfinished
 * mirror and gives it up. */
static bool attach_start(struct guest *guest, const struct mirror_attach_args *args, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    struct guest_record *record = guest->record;
    record->target = export_target_copy(args->target);
    record->attached = false;
    record->sync = args->sync;
    guest->replica_state = REPLICA_SYNCING;
    guest->replica_sync = args->sync;
    if (!guest_save(guest, error)) {
        export_target_free(g_steal_pointer(&record->target));
        return false;
    }
    g_autoptr(GError) why = NULL;
    if (hv->ops->mirror_start(hv, record->instance, record->generation, record->target,
                              args->since ? COPY_WRITTEN_SINCE : COPY_EVERYTHING, &why)) {
        record->attached = true;
        if (guest_save(guest, &why)) {
            mirror_watch_start(guest, NULL);
            return true;
        }
    }
    if (task_killed())
        return node_killed(error);
    /* Some disks may be mirrored: the watch records stale, however long that takes, and releases.
     */
    mirror_watch_start(guest, "its mirror did not start");
    g_propagate_prefixed_error(error, g_steal_pointer(&why), "the mirror did not start: ");
    return false;
}

/* Whoever asks hears both nodes, but that does not mean that they hear each other. Nothing is begun
 * then, so that this can be told from a copy that fails. */
static bool reaches(struct node_core *node, const struct export_target *target, GError **error)
{
    if (node->storage->ops->probe(node->storage, target, PROBE_TIMEOUT_MS))
        return true;
    if (task_killed())
        return node_killed(error);
    fettle_set_error(error, PARTED, "the export of replica %s at %s does not answer here",
                     target->replica, target->address);
    return false;
}

static bool attach_locked(struct guest *guest, const struct epoch_fence_op *op,
                          const struct mirror_attach_args *args, GError **error)
{
    const struct guest_record *record = guest->record;
    const char *replica = args->target->replica;
    g_autofree char *name = guest_name(guest);
    if (!guest_check_generation(guest, args->generation, error) || !reconcile_adopt(guest, error) ||
        !guest_check_stays(guest, error))
        return false;
    if (record->target && strcmp(record->target->replica, replica) == 0 && guest->watch &&
        guest->replica_state != REPLICA_STALE)
        return true;
    if (record->target) {
        fettle_set_error(error, WRONG_STATE, "%s still has a mirror to replica %s; detach it first",
                         name, record->target->replica);
        return false;
    }
    if (record->spec && args->target->disks->len != record->spec->disks->len) {
        fettle_set_error(error, WRONG_INPUT, "target.disks: %u exports for %u disks",
                         args->target->disks->len, record->spec->disks->len);
        return false;
    }
    return confirm_one(guest->node, op, CONFIRM_MIRROR, record->instance, args->generation, replica,
                       error) &&
           reaches(guest->node, args->target, error) && attach_start(guest, args, error);
}

json_t *mirror_attach(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct mirror_attach_args *attach = args;
    struct guest *guest = guest_get(node, attach->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = attach_locked(guest, op, attach, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

/* Only what nobody would promote may be let go. */
static bool detach_check(struct guest *guest, GError **error)
{
    g_autofree char *name = guest_name(guest);
    switch (confirm_replica_look(guest)) {
    case REPLICA_WORD_GONE:
        guest->replica_state = REPLICA_STALE;
        return true;
    case REPLICA_WORD_ACCEPTED:
        if (guest->replica_state == REPLICA_STALE)
            return true;
        fettle_set_error(error, UNSAFE,
                         "the replica of %s is on record as %s; it must be recorded stale before "
                         "its mirror may end",
                         name, enum_word(&replica_state_words, (int)guest->replica_state));
        return false;
    case REPLICA_WORD_REFUSED:
        fettle_set_error(error, REFUSED, "generation %" G_GUINT64_FORMAT " of %s is superseded",
                         guest->record->generation, name);
        return false;
    case REPLICA_WORD_CHANGED:
    case REPLICA_WORD_NO_ANSWER:
        break;
    }
    fettle_set_error(error, TEMPORARY,
                     "the master did not say how the replica of %s stands; nothing was changed, "
                     "try again",
                     name);
    return false;
}

static bool detach_locked(struct guest *guest, guint64 generation, GError **error)
{
    if (!guest_check_generation(guest, generation, error) || !reconcile_adopt(guest, error) ||
        !guest_check_stays(guest, error) || !mirror_watch_stop(guest))
        return false;
    if (!guest->record->target)
        return true;
    bool ok = detach_check(guest, error) &&
              mirror_give_up(guest, "it was replaced", STALE_WAIT_MS, error);
    if (!ok && guest->live && guest->record->target && !task_killed())
        mirror_watch_start(guest, NULL);
    return ok;
}

json_t *mirror_detach(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct guest_args *detach = args;
    struct guest *guest = guest_get(node, detach->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = detach_locked(guest, detach->generation, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

static struct mirror_status status_of(const struct guest *guest)
{
    struct mirror_status status = {.state = MIRROR_SYNCING};
    if (!guest->record->target || guest->replica_state == REPLICA_STALE)
        status.state = MIRROR_LOST;
    else if (guest->replica_state == REPLICA_IN_SYNC)
        status.state = MIRROR_READY;
    status.progress = status.state == MIRROR_READY ? 100 : MIN(guest->last_mirror.progress, 100);
    return status;
}

/* Only looks, so it needs no lock; the watch does the work. */
json_t *mirror_wait(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error)
{
    const struct mirror_wait_args *wait = args;
    struct guest *guest = guest_lookup(node, wait->instance);
    if (!guest) {
        fettle_set_error(error, WRONG_STATE,
                         "generation %" G_GUINT64_FORMAT " of instance %s does not run on this "
                         "node",
                         wait->generation, wait->instance);
        return NULL;
    }
    for (guint64 waited = 0;; waited += WAIT_POLL_MS) {
        if (!guest_check_generation(guest, wait->generation, error))
            return NULL;
        struct mirror_status status = status_of(guest);
        if (status.state != MIRROR_SYNCING || waited >= wait->wait_ms || epoch_fence_overtaken(op))
            return mirror_status_to_json(&status);
        if (!env_sleep(node->env, WAIT_POLL_MS)) {
            node_killed(error);
            return NULL;
        }
    }
}
