/*
 * What noded is asked about a guest that moves to another node: to begin, to wait for the end, to
 * give it up; see outgoing.h.
 */
#include "core/node/migration/outgoing_private.h"

#include "base/limits.h"
#include "core/node/mirror_watch.h"
#include "core/node/reconcile.h"
#include "core/node/volume/points.h"

static bool start_check_target(const struct guest *guest, const struct migration_start_args *args,
                               GError **error)
{
    const struct instance *spec = guest->record->spec;
    bool copies = spec && spec->disk_template == TEMPLATE_FILE && spec->disks->len > 0;
    guint exports = args->target->disks ? args->target->disks->disks->len : 0;
    if (spec && exports != (copies ? spec->disks->len : 0)) {
        fettle_set_error(error, WRONG_INPUT,
                         "target.disks: %u exports for %u disks that are copied", exports,
                         copies ? spec->disks->len : 0);
        return false;
    }
    if (strcmp(args->target_node, guest->node->env->node_uuid) == 0) {
        fettle_set_error(error, WRONG_INPUT, "target_node: the guest is there already");
        return false;
    }
    return true;
}

static bool start_check_guest(struct guest *guest, GError **error)
{
    const struct guest_record *record = guest->record;
    g_autofree char *name = guest_name(guest);
    bool mirrored = record->spec && record->spec->disk_template == TEMPLATE_MIRROR;
    if (record->phase != PHASE_STARTED || guest->shutdown || !record->run) {
        fettle_set_error(error, WRONG_STATE, "%s does not run", name);
        return false;
    }
    if (mirrored && (!record->target || !guest->watch || guest->replica_state != REPLICA_IN_SYNC ||
                     !mirror_reachable(guest))) {
        fettle_set_error(error, WRONG_STATE, "the replica of %s is not in sync", name);
        return false;
    }
    return true;
}

/* True, with `*ret_again`: this very migration is under way. */
static bool start_check_again(const struct guest *guest, const char *migration, bool *ret_again,
                              GError **error)
{
    const struct guest_record *record = guest->record;
    g_autofree char *name = guest_name(guest);
    bool same = strcmp(record->migration, migration) == 0;
    *ret_again = same && guest->outgoing;
    if (*ret_again)
        return true;
    if (same) {
        fettle_set_error(error, REFUSED, "migration %s of %s is over (%s)", migration, name,
                         enum_word(&migration_state_words, (int)record->migrating));
        return false;
    }
    if (guest->outgoing) {
        fettle_set_error(error, WRONG_STATE, "%s is being moved by migration %s", name,
                         record->migration);
        return false;
    }
    return true;
}

/* On disk before anything is sent, so that a restart finds what it has to end. */
static bool start_record(struct guest *guest, const struct migration_start_args *args,
                         GError **error)
{
    struct guest_record *record = guest->record;
    text_set(&record->migration, args->target->migration);
    text_set(&record->migration_node, args->target_node);
    text_set(&record->migration_why, "");
    record->migrating = MIGRATION_COPYING;
    if (guest_save(guest, error))
        return true;
    record->migrating = MIGRATION_FAILED;
    return false;
}

static bool start_sending(struct guest *guest, const struct migration_start_args *args,
                          GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    struct outgoing *out = outgoing_task_new(guest);
    struct migration_limits limits = {(guint)args->bandwidth, (guint)args->downtime_ms, args->live};
    g_autoptr(GError) why = NULL;
    out->disks = args->target->disks ? export_target_copy(args->target->disks) : NULL;
    out->deadline_ms = out->began_ms + (gint64)args->timeout_ms;
    bool ok = hv->ops->migrate_start(hv, guest->record->instance, out->generation, args->target,
                                     &limits, &why);
    /* A start without an answer may have begun all the same: the task makes sure that it ends. */
    if (!ok)
        outgoing_give_up(out, "it did not start", why->message);
    outgoing_task_start(out);
    if (!ok)
        g_propagate_prefixed_error(error, g_steal_pointer(&why), "the migration did not start: ");
    return ok;
}

static bool start_locked(struct guest *guest, const struct migration_start_args *args,
                         GError **error)
{
    bool again = false;
    if (!guest_check_generation(guest, args->generation, error) || !reconcile_adopt(guest, error) ||
        !start_check_again(guest, args->target->migration, &again, error))
        return false;
    if (again)
        return true;
    guest_query(guest);
    return start_check_target(guest, args, error) && start_check_guest(guest, error) &&
           points_end(guest, NULL, error) && start_record(guest, args, error) &&
           start_sending(guest, args, error);
}

json_t *outgoing_start(struct node_core *node, struct epoch_fence_op *op, const void *args,
                       GError **error)
{
    const struct migration_start_args *start = args;
    struct guest *guest = guest_get(node, start->instance, error);
    if (!guest || !guest_lock(guest, op, error))
        return NULL;
    bool ok = start_locked(guest, start, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}

static bool status_is_final(const struct migration_status *status)
{
    return status->state != MIGRATION_COPYING && status->state != MIGRATION_SWITCHING;
}

/* Of that migration; `none` if another one, or nothing, is known here. */
static json_t *status_of(const struct guest *guest, const char *migration)
{
    static const struct migration_status none = {.state = MIGRATION_NONE, .why = (char *)""};
    bool known = guest && strcmp(guest->record->migration, migration) == 0;
    return migration_status_to_json(known ? guest->migration : &none);
}

/* Only looks, so it needs no lock. */
json_t *outgoing_wait(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct migration_wait_args *wait = args;
    struct guest *guest = guest_lookup(node, wait->instance);
    for (guint64 waited = 0;; waited += MOVE_WAIT_POLL_MS) {
        bool mine = guest && strcmp(guest->record->migration, wait->migration) == 0;
        if (!mine || status_is_final(guest->migration) || waited >= wait->wait_ms ||
            epoch_fence_overtaken(op))
            return status_of(guest, wait->migration);
        if (!env_sleep(node->env, MOVE_WAIT_POLL_MS)) {
            node_killed(error);
            return NULL;
        }
    }
}

/* Never started here: from now on it never will (a delayed start is refused). */
static bool cancel_unknown(struct guest *guest, const char *migration, GError **error)
{
    struct guest_record *record = guest->record;
    if (record->generation == 0 || guest->outgoing || record->phase == PHASE_MIGRATED)
        return true;
    text_set(&record->migration, migration);
    text_set(&record->migration_node, "");
    text_set(&record->migration_why, "it was given up before it began");
    record->migrating = guest->migration->state = MIGRATION_CANCELED;
    text_set(&guest->migration->why, record->migration_why);
    return guest_save(guest, error);
}

/* Needs no lock: the task takes back the guest by itself, also in the middle of the switch. */
json_t *outgoing_cancel(struct node_core *node, struct epoch_fence_op *op, const void *args,
                        GError **error)
{
    const struct migration_args *cancel = args;
    struct guest *guest = guest_get(node, cancel->instance, error);
    if (!guest)
        return NULL;
    if (strcmp(guest->record->migration, cancel->migration) != 0) {
        if (!guest_lock(guest, op, error))
            return NULL;
        bool other = strcmp(guest->record->migration, cancel->migration) != 0;
        bool ok = !other || cancel_unknown(guest, cancel->migration, error);
        guest_unlock(guest);
        if (!ok)
            return NULL;
    }
    struct outgoing *out = guest->outgoing;
    if (out && strcmp(out->migration, cancel->migration) == 0) {
        out->canceled = out->canceled || !out->give_up;
        outgoing_give_up(out, "it was canceled", NULL);
        outgoing_await_end(guest, out, TIMEOUT_NORMAL_MS / 2);
        if (task_killed()) {
            node_killed(error);
            return NULL;
        }
    }
    return status_of(guest, cancel->migration);
}
