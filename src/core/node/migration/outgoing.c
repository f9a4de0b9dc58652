/*
 * A guest that moves to another node: the task that drives it; see outgoing.h.
 */
#include "core/node/migration/outgoing_private.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/node/mirror_watch.h"
#include "core/node/reconcile.h"

gint64 outgoing_now(const struct outgoing *out)
{
    const struct env *env = out->guest->node->env;
    return env->ops->boot_ms(env);
}

void outgoing_give_up(struct outgoing *out, const char *why, const char *detail)
{
    if (!out->give_up)
        out->give_up = g_strdup_printf("%s%s%.300s", why, detail ? ": " : "", detail ? detail : "");
}

bool outgoing_is_over(const struct outgoing *out)
{
    const struct guest_record *record = out->guest->record;
    return task_killed() || out->dropped || record->generation != out->generation ||
           (!out->guest->live && record->phase != PHASE_MIGRATED);
}

enum migration_state outgoing_state(const struct guest *guest)
{
    return guest->outgoing ? guest->migration->state : MIGRATION_NONE;
}

/* --- what is known --- */

static void note_info(struct outgoing *out, const struct migration_info *info)
{
    struct migration_status *status = out->guest->migration;
    guint64 whole = info->transferred + info->remaining;
    if (info->step == STEP_NONE || info->step == STEP_FAILED)
        return;
    status->progress = info->step == STEP_DONE ? 100 : whole ? info->transferred * 100 / whole : 0;
    status->transferred_mib = info->transferred / MIB(1);
    status->remaining_mib = info->remaining / MIB(1);
    status->mib_per_s = info->bytes_per_s / MIB(1);
    status->downtime_ms = info->downtime_ms;
    if (info->transferred != out->moved_bytes || !out->moved_ms) {
        out->moved_bytes = info->transferred;
        out->moved_ms = outgoing_now(out);
    }
}

bool outgoing_look(struct outgoing *out, struct migration_info *ret_info)
{
    struct hypervisor *hv = out->guest->node->hv;
    g_autoptr(GError) error = NULL;
    *ret_info = (struct migration_info){0};
    if (!hv->ops->migrate_query(hv, out->guest->record->instance, out->generation, ret_info,
                                &error))
        return false;
    note_info(out, ret_info);
    return true;
}

void outgoing_note_end(struct outgoing *out, enum migration_state state, const char *why)
{
    struct guest *guest = out->guest;
    struct guest_record *record = guest->record;
    g_autofree char *fields =
        g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT " MIGRATION=%s",
                        record->instance, out->generation, out->migration);
    log_info(fields, "migration %s%s%s", enum_word(&migration_state_words, (int)state),
             why ? ": " : "", why ? why : "");
    guest->migration->state = state;
    text_set(&guest->migration->why, why ? why : "");
    record->migrating = state;
    text_set(&record->migration_why, why ? why : "");
}

void outgoing_save(struct guest *guest)
{
    g_autoptr(GError) error = NULL;
    if (!guest_save(guest, &error) && !fettle_error_is(error, KILLED))
        log_warning("", "%s", error->message);
}

/* --- giving up --- */

/* The guest goes on here; its mirror, if it has one, is watched again. */
static void taken_back(struct outgoing *out)
{
    struct guest *guest = out->guest;
    outgoing_note_end(out, out->canceled ? MIGRATION_CANCELED : MIGRATION_FAILED, out->give_up);
    outgoing_save(guest);
    if (task_killed() || !guest->live || !guest->record->target || guest->watch)
        return;
    /* Once the master was asked, stale wins: the mirror may have ended. */
    mirror_watch_start(guest, out->stale_asked ? "its migration was given up" : NULL);
}

/* Nothing gets through to the monitor any more, and nothing that is not written yet was
 * acknowledged: the guest ends, and is started again from its images. */
static void kill_frozen(struct outgoing *out)
{
    struct guest *guest = out->guest;
    g_autoptr(GError) error = NULL;
    log_error("",
              "instance %s: QEMU has not answered for %u ms in the middle of a migration and "
              "is ended",
              guest->record->instance, MOVE_FROZEN_KILL_MS);
    if (!guest_end_process(guest, &error) && !task_killed())
        log_error("", "%s", error->message);
    guest->node->taps_left = true;
    reconcile_kick(guest->node);
}

bool outgoing_take_back(struct outgoing *out)
{
    struct guest *guest = out->guest;
    struct hypervisor *hv = guest->node->hv;
    const struct guest_record *record = guest->record;
    g_autoptr(GError) error = NULL;
    if (hv->ops->migrate_cancel(hv, record->instance, out->generation, &error)) {
        taken_back(out);
        return true;
    }
    if (outgoing_is_over(out))
        return false;
    if (fettle_error_is(error, WRONG_STATE)) {
        struct migration_info info = {0};
        out->done = outgoing_look(out, &info) && info.step == STEP_DONE;
        g_free(info.why);
        if (!out->done)
            guest_query(guest); /* its exit may not have been told */
        return false;
    }
    /* A mirror whose replica is gone may be what the monitor waits for (SAF-15). */
    if (!guest->watch && record->target && guest->replica_state == REPLICA_STALE &&
        mirror_record_stale(guest, "its migration was given up", 0, NULL))
        hv->ops->mirror_release(hv, record->instance, out->generation, NULL);
    gint64 now = outgoing_now(out);
    if (!out->frozen_ms)
        out->frozen_ms = now;
    else if (now - out->frozen_ms >= MOVE_FROZEN_KILL_MS)
        kill_frozen(out);
    return false;
}

/* --- copying --- */

/* Exports that the migration itself copies to: a target that is gone would hold the guest's writes.
 */
static void watch_target(struct outgoing *out)
{
    struct node_core *node = out->guest->node;
    gint64 began = outgoing_now(out);
    if (!out->disks || (out->probed_ms && began - out->probed_ms < MOVE_PROBE_INTERVAL_MS))
        return;
    bool ok = node->storage->ops->probe(node->storage, out->disks, MOVE_PROBE_MS);
    out->probed_ms = outgoing_now(out);
    if (ok)
        out->failing_ms = 0;
    else if (!out->failing_ms)
        out->failing_ms = began;
    if (out->failing_ms && (guint64)(out->probed_ms - out->failing_ms) >=
                               epoch_fence_announced(node->fence)->replica_lost_ms)
        outgoing_give_up(out, "its target does not answer any more", NULL);
}

static void watch_copying(struct outgoing *out)
{
    gint64 now = outgoing_now(out);
    if (out->deadline_ms && now >= out->deadline_ms)
        outgoing_give_up(out, "it took longer than it was allowed to", NULL);
    else if (out->moved_ms && now - out->moved_ms >= MOVE_STALL_MS)
        outgoing_give_up(out, "nothing was sent for a minute", NULL);
    else if (out->guest->shutdown)
        outgoing_give_up(out, "the guest switched itself off", NULL);
    else
        watch_target(out);
}

/* Nobody else acts on the guest: procedures that wait for this task must find it waiting. */
static void with_lock(struct outgoing *out, void (*deed)(struct outgoing *out))
{
    if (out->guest->procedure.locked || !guest_lock(out->guest, NULL, NULL))
        return;
    if (!outgoing_is_over(out))
        deed(out);
    guest_unlock(out->guest);
}

static void leave(struct outgoing *out)
{
    outgoing_leave(out);
}

/* One look while the guest is here. */
static void look(struct outgoing *out)
{
    struct migration_info info = {0};
    if (!outgoing_look(out, &info)) {
        guest_query(out->guest); /* its exit may not have been told */
        if (!outgoing_is_over(out))
            watch_copying(out);
        return;
    }
    switch (info.step) {
    case STEP_COPYING:
        watch_copying(out);
        break;
    case STEP_STOPPED:
        with_lock(out, outgoing_switch);
        break;
    case STEP_DONE:
        with_lock(out, leave);
        break;
    case STEP_FAILED:
    case STEP_NONE:
        outgoing_give_up(out, info.why ? info.why : "QEMU tells no reason", NULL);
        break;
    }
    g_free(info.why);
}

/* Until the guest has left, is taken back, or has ended. True: it has left. */
static bool run_until_left(struct outgoing *out)
{
    struct guest *guest = out->guest;
    while (!outgoing_is_over(out) && guest->record->phase != PHASE_MIGRATED) {
        bool back = false;
        if (guest->adopted && out->done)
            with_lock(out, leave);
        else if (guest->adopted && out->give_up)
            back = outgoing_take_back(out);
        else if (guest->adopted)
            look(out);
        /* The switch itself may have taken it back. */
        if (back || guest->record->migrating != MIGRATION_COPYING) {
            if (guest->record->phase != PHASE_MIGRATED)
                return false;
            break;
        }
        guint pause = out->give_up ? MOVE_RETRY_MS : MOVE_POLL_MS;
        if (!env_sleep(guest->node->env, pause))
            return false;
    }
    return !outgoing_is_over(out);
}

/* --- the task --- */

static void outgoing_free(struct outgoing *out)
{
    export_target_free(out->disks);
    g_free(out->migration);
    g_free(out->target_node);
    g_free(out->give_up);
    g_free(out);
}

static void outgoing_run(void *data)
{
    struct outgoing *out = data;
    struct guest *guest = out->guest;
    struct node_core *node = guest->node;
    bool left = guest->record->phase == PHASE_MIGRATED || run_until_left(out);
    if (left)
        outgoing_tell(out);
    bool open = guest->record->migrating == MIGRATION_COPYING ||
                guest->record->migrating == MIGRATION_SWITCHING;
    if (open && !task_killed() && strcmp(guest->record->migration, out->migration) == 0) {
        outgoing_note_end(out, MIGRATION_FAILED,
                          out->dropped
                              ? "the record says that the guest is not this node's any more"
                          : out->give_up ? out->give_up
                                         : "the guest ended");
        if (!out->dropped)
            outgoing_save(guest);
    }
    guest->outgoing = NULL;
    reconcile_kick(node);
    outgoing_free(out);
    node_release(node);
}

struct outgoing *outgoing_task_new(struct guest *guest)
{
    const struct guest_record *record = guest->record;
    struct outgoing *out = g_new0(struct outgoing, 1);
    g_assert(!guest->outgoing);
    out->guest = guest;
    out->generation = record->generation;
    out->migration = g_strdup(record->migration);
    out->target_node = g_strdup(record->migration_node);
    out->began_ms = outgoing_now(out);
    migration_status_free(guest->migration);
    guest->migration = migration_status_new();
    guest->migration->state = record->migrating;
    guest->migration->clean = record->clean;
    guest->outgoing = out;
    return out;
}

void outgoing_task_start(struct outgoing *out)
{
    node_hold(out->guest->node);
    task_spawn(out->guest->node->env->tasks, outgoing_run, out);
}

bool outgoing_resume(struct guest *guest, GError **error)
{
    struct guest_record *record = guest->record;
    bool moved = record->phase == PHASE_MIGRATED && record->migrating == MIGRATION_SWITCHING;
    bool copying = record->phase == PHASE_STARTED && record->migrating == MIGRATION_COPYING;
    guest->migration->state = record->migrating;
    text_set(&guest->migration->why, record->migration_why);
    guest->migration->clean = record->clean;
    if (moved || (copying && guest->live)) {
        struct outgoing *out = outgoing_task_new(guest);
        if (copying)
            outgoing_give_up(out, "the node daemon was restarted in the middle of it", NULL);
        outgoing_task_start(out);
        return true;
    }
    if (!copying)
        return true;
    record->migrating = guest->migration->state = MIGRATION_FAILED;
    text_set(&record->migration_why, "the guest ended");
    text_set(&guest->migration->why, record->migration_why);
    return guest_save(guest, error);
}

/* --- for procedures --- */

bool outgoing_await_end(struct guest *guest, const struct outgoing *out, guint wait_ms)
{
    for (guint waited = 0; guest->outgoing == out && waited < wait_ms; waited += MOVE_WAIT_POLL_MS)
        if (!env_sleep(guest->node->env, MOVE_WAIT_POLL_MS))
            return false;
    return guest->outgoing != out;
}

bool outgoing_stop(struct guest *guest, const char *why, GError **error)
{
    struct outgoing *out = guest->outgoing;
    if (!out)
        return true;
    g_autofree char *name = guest_name(guest);
    outgoing_give_up(out, why, NULL);
    for (guint waited = 0; guest->outgoing == out && waited < MOVE_STOP_WAIT_MS;
         waited += MOVE_WAIT_POLL_MS) {
        if (out->done || guest->record->phase == PHASE_MIGRATED) {
            fettle_set_error(error, WRONG_STATE,
                             "%s has been handed over to node %s by migration %s", name,
                             out->target_node, out->migration);
            return false;
        }
        if (!env_sleep(guest->node->env, MOVE_WAIT_POLL_MS))
            return node_killed(error);
    }
    if (guest->outgoing != out)
        return true;
    fettle_set_error(error, TIMEOUT, "migration %s of %s did not end in %u ms", out->migration,
                     name, MOVE_STOP_WAIT_MS);
    return false;
}

bool outgoing_drop(struct guest *guest)
{
    struct outgoing *out = guest->outgoing;
    if (out)
        out->dropped = true;
    while (out && guest->outgoing == out)
        if (!env_sleep(guest->node->env, MOVE_WAIT_POLL_MS))
            return false;
    return !task_killed();
}

void outgoing_lost(struct guest *guest, const char *why)
{
    struct outgoing *out = guest->outgoing;
    if (!out)
        return;
    outgoing_give_up(out, "its replica is lost", why);
    outgoing_await_end(guest, out, MOVE_LOST_WAIT_MS);
}
