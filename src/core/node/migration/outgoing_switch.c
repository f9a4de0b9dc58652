/*
 * The switch of a migration: the promise to the replica ends before its mirror does, then its
 * exports are closed, then QEMU hands over; and only when the exit of the process here has been
 * seen and is on disk may the master hear of it (SAF-17).
 */
#include "core/node/migration/outgoing_private.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/node/confirm.h"
#include "core/node/mirror_watch.h"

static bool switch_replica_is_whole(struct outgoing *out)
{
    struct guest *guest = out->guest;
    return guest->replica_state == REPLICA_IN_SYNC && guest_query(guest) &&
           guest->last_mirror.state == MIRROR_READY && mirror_reachable(guest);
}

/* From here on nobody promotes the replica; a mirror that ends after that misleads nobody. */
static bool switch_stale(struct outgoing *out)
{
    g_autoptr(GError) error = NULL;
    out->stale_asked = true;
    if (mirror_record_stale(out->guest, "its instance is about to move there", MOVE_STALE_WAIT_MS,
                            &error))
        return true;
    outgoing_give_up(out, "the replica could not be recorded as stale", error->message);
    return false;
}

static bool switch_finish(struct outgoing *out)
{
    struct hypervisor *hv = out->guest->node->hv;
    g_autoptr(GError) error = NULL;
    if (hv->ops->mirror_finish(hv, out->guest->record->instance, out->generation, &error))
        return true;
    outgoing_give_up(out, "the copy of the disks could not be completed", error->message);
    return false;
}

static bool switch_is_passing(const GError *error)
{
    return fettle_error_is(error, TEMPORARY) || fettle_error_is(error, UNREACHABLE) ||
           fettle_error_is(error, STALE_EPOCH) || fettle_error_is(error, TIMEOUT) ||
           fettle_error_is(error, UNKNOWN_RESULT);
}

/* The other node closes the exports of the replica, so that QEMU there may open it. */
static bool switch_exports(struct outgoing *out)
{
    struct node_core *node = out->guest->node;
    struct migration_args args = {out->guest->record->instance, out->migration};
    gint64 deadline = outgoing_now(out) + MOVE_SWITCH_WAIT_MS;
    for (;;) {
        g_autoptr(GError) error = NULL;
        guint left = (guint)MAX(deadline - outgoing_now(out), MOVE_RETRY_MS);
        struct nothing *answer =
            env_call_record(node->env, out->target_node, ROLE_NODED, "incoming_switch", &args,
                            epoch_fence_stamp(node->fence), 0, left, &error);
        if (answer) {
            nothing_free(answer);
            return true;
        }
        bool again = switch_is_passing(error) && outgoing_now(out) < deadline;
        if (!again || !env_sleep(node->env, MOVE_POLL_MS)) {
            outgoing_give_up(out, "the target did not close its exports", error->message);
            return false;
        }
    }
}

/* Until QEMU says how it ended. */
static void switch_hand_over(struct outgoing *out)
{
    struct hypervisor *hv = out->guest->node->hv;
    gint64 deadline = outgoing_now(out) + MOVE_HAND_OVER_MS;
    g_autoptr(GError) error = NULL;
    /* Without an answer it may be under way all the same: only QEMU can tell. */
    if (!hv->ops->migrate_continue(hv, out->guest->record->instance, out->generation, &error) &&
        !fettle_error_is(error, TIMEOUT)) {
        outgoing_give_up(out, "QEMU did not hand over", error->message);
        return;
    }
    while (!outgoing_is_over(out) && !out->give_up) {
        struct migration_info info = {0};
        bool known = outgoing_look(out, &info);
        if (known && info.step == STEP_DONE)
            out->done = true;
        else if (known && info.step != STEP_STOPPED)
            outgoing_give_up(out, "QEMU could not hand over", info.why);
        else if (outgoing_now(out) >= deadline)
            outgoing_give_up(out, "QEMU did not hand over in time", info.why);
        g_free(info.why);
        if (out->done || !env_sleep(out->guest->node->env, MOVE_HAND_OVER_POLL_MS))
            return;
    }
}

static void switch_try(struct outgoing *out)
{
    struct guest *guest = out->guest;
    bool mirrored = guest->record->target != NULL;
    if (mirrored && !switch_replica_is_whole(out)) {
        outgoing_give_up(out, "its replica is lost", NULL);
        return;
    }
    if (mirrored && !switch_stale(out))
        return;
    if ((mirrored || out->disks) && !switch_finish(out))
        return;
    if (mirrored && !switch_exports(out))
        return;
    if (!task_killed() && !out->give_up)
        switch_hand_over(out);
}

void outgoing_switch(struct outgoing *out)
{
    struct guest *guest = out->guest;
    guest->migration->state = MIGRATION_SWITCHING;
    if (!mirror_watch_stop(guest))
        return;
    switch_try(out);
    while (out->give_up && !out->done && !outgoing_is_over(out) && !outgoing_take_back(out))
        if (!env_sleep(guest->node->env, MOVE_RETRY_MS))
            return;
    if (out->done)
        outgoing_leave(out);
}

/* --- leaving --- */

static bool leave_sync(struct guest *guest)
{
    g_autoptr(GError) error = NULL;
    if (guest_sync(guest, &error))
        return true;
    if (!task_killed())
        log_error("", "images of instance %s: %s", guest->record->instance, error->message);
    return false;
}

/* A node that cannot write even this tells the master all the same: the guest is not here. */
static bool leave_save(struct guest *guest)
{
    for (guint tries = 0; tries < LIMIT_MOVE_SAVE_TRIES; tries++) {
        g_autoptr(GError) error = NULL;
        if (guest_save(guest, &error))
            return true;
        if (task_killed() || !env_sleep(guest->node->env, MOVE_RETRY_MS))
            return false;
        log_error("", "%s", error->message);
    }
    guest->record->clean = false;
    return true;
}

bool outgoing_leave(struct outgoing *out)
{
    struct guest *guest = out->guest;
    struct guest_record *record = guest->record;
    g_autoptr(GError) error = NULL;
    out->done = true;
    /* A write that failed here may be on the other side. */
    bool well = (!guest->live || guest_look_io(guest)) && guest->last_io.errors == 0;
    if (!guest_kill(guest, &error)) {
        if (!task_killed())
            log_error("", "%s", error->message);
        return false;
    }
    /* QEMU hands over only after the mirrors have ended in sync. */
    record->clean = leave_sync(guest) && well;
    if (task_killed())
        return false;
    export_target_free(g_steal_pointer(&record->target));
    record->attached = false;
    record->migrating = MIGRATION_SWITCHING;
    guest->migration->clean = record->clean;
    guest_move(guest, PHASE_MIGRATED, "guest handed over, process gone");
    return leave_save(guest);
}
