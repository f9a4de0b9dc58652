/*
 * Stopping a generation (SAF-11): powerdown, pause, every mirror ended in sync, killed, synced.
 * What it answers is remembered, so that a repeated question gets the same answer, and a generation
 * that never came here can never come later.
 */
#include "base/log.h"
#include "core/guest/giving_up.h"
#include "core/guest/incoming.h"
#include "core/guest/lifecycle.h"
#include "core/guest/mirror_watch.h"
#include "core/guest/outgoing.h"
#include "core/guest/return.h"

#define STOP_POLL_MS 100
#define STOP_QUERY_MS 1000
#define PRESS_AGAIN_MS 4000  /* the button of a guest that has not listened yet */
#define SETTLE_WAIT_MS 15000 /* for the stale procedure of a lost replica */

static bool stop_record(struct guest *guest, bool clean, const char *why, GError **error)
{
    guest->record->clean = clean;
    export_target_free(g_steal_pointer(&guest->record->target));
    guest->record->attached = false;
    guest_move(guest, PHASE_STOPPED, why);
    return guest_save(guest, error);
}

/* The generation never ran here: from now on it never will (a delayed start is refused). */
static bool stop_never_started(struct guest *guest, const struct fence_op *op, guint64 generation,
                               GError **error)
{
    struct guest_record *record = guest->record;
    if (!outgoing_drop(guest))
        return node_killed(error);
    if (!incoming_end(guest, error) || (guest->live && !guest_kill(guest, error)))
        return false;
    if (!mirror_watch_stop(guest))
        return node_killed(error);
    record->history = fence_op_stamp(op).history;
    record->generation = generation;
    set_string(&record->boot_id, guest->node->env->boot_id);
    return stop_record(guest, false, "it was never started", error);
}

/* Waits for the guest to switch itself off. Events may be lost, so it is asked, too; and so may the
 * button be, if it is pressed before the guest has come so far as to look at it. */
static void stop_wait_powerdown(struct guest *guest, const struct fence_op *op, guint64 timeout_ms)
{
    struct hypervisor *hv = guest->node->hv;
    guint64 waited = 0;
    for (; waited < timeout_ms && guest->live && !guest->shutdown; waited += STOP_POLL_MS) {
        if (fence_overtaken(op) || giving_up_asked(guest) ||
            !env_sleep(guest->node->env, STOP_POLL_MS))
            return;
        if (waited % STOP_QUERY_MS == 0)
            guest_query(guest);
        if (waited > 0 && waited % PRESS_AGAIN_MS == 0 && guest->live && !guest->shutdown)
            hv->ops->powerdown(hv, guest->record->instance, guest->record->generation, NULL);
    }
}

/* Asks the guest to shut down, if its disks can take it. True: it has, or is gone. */
static bool stop_powerdown(struct guest *guest, const struct fence_op *op, guint64 timeout_ms)
{
    struct hypervisor *hv = guest->node->hv;
    g_autoptr(GError) error = NULL;
    if (guest->shutdown || !guest->live)
        return true;
    if (timeout_ms == 0 || guest->last_state != GUEST_RUNNING)
        return false;
    if (!hv->ops->powerdown(hv, guest->record->instance, guest->record->generation, &error))
        return guest->shutdown || !guest->live;
    stop_wait_powerdown(guest, op, timeout_ms);
    return guest->shutdown || !guest->live;
}

/* Whether it may be ended now that it has had its time. */
static bool stop_goes_on(const struct guest *guest, const struct fence_op *op, bool down,
                         bool given_up, GError **error)
{
    g_autofree char *name = guest_name(guest);
    if (task_killed())
        return node_killed(error);
    if (!down && fence_overtaken(op))
        fettle_set_error(error, STALE_EPOCH,
                         "a new master announced itself while the guest was shutting down; the "
                         "guest was left alone");
    else if (!down && given_up)
        fettle_set_error(error, CANCELED,
                         "%s was asked to shut down and has not done so; it was left alone, as its "
                         "job was canceled",
                         name);
    else
        return true;
    return false;
}

/* Why the copies cannot be told to be equal, for whoever wonders. */
static bool stop_unclean(const struct guest *guest, const char *why)
{
    g_autofree char *fields = g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT,
                                              guest->record->instance, guest->record->generation);
    if (!task_killed())
        log_warning(fields, "the guest ends without a clean close: %s", why);
    return false;
}

/* With the watch stopped: paused and every mirror ended in sync, with in-sync on record. A failure
 * costs the clean close, nothing else: every acknowledged write is on the replica all the same. */
static bool stop_mirror(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    const struct guest_record *record = guest->record;
    g_autoptr(GError) error = NULL;
    bool mirrored = record->target && guest->replica_state == REPLICA_IN_SYNC;
    if (record->target && guest->replica_state == REPLICA_STALE)
        return stop_unclean(guest, "its replica is on record as stale");
    if (record->target && !mirror_reachable(guest)) /* a pause would hang (SAF-15) */
        return stop_unclean(guest, "its replica does not answer");
    if (!hv->ops->pause(hv, record->instance, record->generation, &error))
        return stop_unclean(guest, error->message);
    if (record->target && !mirrored)
        return stop_unclean(guest, "its replica is not on record as in sync yet");
    return mirrored && (hv->ops->mirror_finish(hv, record->instance, record->generation, &error) ||
                        stop_unclean(guest, error->message));
}

static bool stop_live(struct guest *guest, const struct fence_op *op,
                      const struct guest_stop_args *args, bool *ret_forced, GError **error)
{
    if (!return_adopt(guest, error) || !outgoing_stop(guest, "the guest is being stopped", error))
        return false;
    guest_query(guest);
    bool settled = mirror_watch_settle(guest, SETTLE_WAIT_MS);
    giving_up_begin(guest, op);
    bool down = settled && stop_powerdown(guest, op, args->timeout_ms);
    bool given_up = giving_up_asked(guest);
    giving_up_end(guest);
    if (!stop_goes_on(guest, op, down, given_up, error))
        return false;
    if (!mirror_watch_stop(guest))
        return node_killed(error);

    bool finished = guest->live && stop_mirror(guest);
    if (task_killed() || !guest_kill(guest, error))
        return task_killed() ? node_killed(error) : false;
    g_autoptr(GError) why = NULL;
    bool synced = guest_sync(guest, &why);
    if (!synced && !task_killed())
        log_error("", "images of instance %s: %s", guest->record->instance, why->message);
    *ret_forced = !down && guest->record->run; /* one that only copied had nothing to shut down */
    return stop_record(guest, finished && synced, *ret_forced ? "forced" : "shut down", error);
}

/* After an error of stop_live() the guest may run on: somebody must watch its mirror again. */
static void stop_resume_watch(struct guest *guest)
{
    if (guest->live && guest->adopted && guest->record->target && !guest->watch && !task_killed())
        mirror_watch_start(guest, NULL);
}

static bool stop_locked(struct guest *guest, const struct fence_op *op,
                        const struct guest_stop_args *args, bool *ret_forced, GError **error)
{
    struct guest_record *record = guest->record;
    if (!return_renew(guest, error))
        return false;
    struct stamp used = {record->history, record->generation};
    struct stamp wanted = {fence_op_stamp(op).history, args->generation};
    if (stamp_compare(wanted, used) > 0)
        return stop_never_started(guest, op, args->generation, error);
    if (args->generation < record->generation)
        return guest_check_generation(guest, args->generation, error);
    if (record->phase == PHASE_STOPPED)
        return true; /* said before; record->clean tells how */
    if (record->phase == PHASE_MIGRATED) {
        g_autofree char *name = guest_name(guest);
        fettle_set_error(error, WRONG_STATE, "%s has been handed over to node %s by migration %s",
                         name, record->migration_node, record->migration);
        return false;
    }
    if (guest->live) {
        bool ok = stop_live(guest, op, args, ret_forced, error);
        if (!ok)
            stop_resume_watch(guest);
        return ok;
    }
    *ret_forced = true;
    return stop_record(guest, false, "it was gone already", error);
}

json_t *lifecycle_stop(struct node_core *node, struct fence_op *op, const void *args,
                       GError **error)
{
    const struct guest_stop_args *stop = args;
    bool forced = false;
    struct guest *guest = guest_get(node, stop->instance, error);
    if (!guest || !guest_lock(guest, error))
        return NULL;
    bool ok = stop_locked(guest, op, stop, &forced, error);
    bool clean = guest->record->clean;
    guest_unlock(guest);
    if (!ok)
        return NULL;
    struct guest_stop_result result = {.clean = clean, .forced = forced};
    return guest_stop_result_to_json(&result);
}
