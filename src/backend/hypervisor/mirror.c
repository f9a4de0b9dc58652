/*
 * A guest's mirror: one write-blocking QEMU job per disk, through a relay, onto the exports of its
 * replica.
 */
#include "backend/hypervisor/bitmaps.h"
#include "backend/hypervisor/block_jobs.h"
#include "backend/hypervisor/incremental.h"
#include "backend/hypervisor/quiesce.h"
#include "backend/hypervisor/relay.h"
#include "backend/storage/nbd_probe.h"
#include "base/limits.h"
#include "io/loop.h"

#include <string.h>

#define RELEASE_POLL_MS 10

bool mirror_query(struct guest *guest, struct mirror_info *ret_mirror, GError **error)
{
    struct mirror_info info = {MIRROR_NONE, 0};
    if (guest->mirror.attached && !incremental_query(guest, &info)) {
        json_autoptr jobs =
            guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
        if (jobs == NULL)
            return false;
        struct jobs_progress progress;
        block_jobs_look(guest, &guest->mirror, jobs, &progress);
        info.state = relay_is_lost(guest) ? MIRROR_LOST : progress.state;
        guest->written.done = progress.done;
        /* Writes of the guest that are under way count as not done yet; ready is ready. */
        info.progress = progress.all > 0 ? (guint)MIN(progress.done * 100 / progress.all, 99) : 0;
        if (info.state == MIRROR_READY)
            info.progress = 100;
    }
    *ret_mirror = info;
    return true;
}

/* --- giving up --- */

/* A migration that ends lets the guest go on in QEMU, and its writes with it, at a moment of its
 * own. */
static bool await_no_migration(struct guest *guest, GError **error)
{
    gint64 deadline = loop_boot_ms() + LIMIT_MIGRATION_END_MS;
    enum migration_step step = STEP_NONE;
    do {
        if (!guest->migration.sent)
            return true;
        if (!migrate_step(guest, &step, error))
            return false;
        if (step != STEP_COPYING && step != STEP_STOPPED)
            return true;
    } while (loop_sleep(RELEASE_POLL_MS) && loop_boot_ms() < deadline);
    fettle_set_error(error, TEMPORARY,
                     "guest %s: its writes go on, but its mirror is taken away only when its "
                     "migration is over; cancel that",
                     guest->name);
    return false;
}

/* No write is under way meanwhile. A guest that cannot be let go on is so when this is repeated. */
static bool take_away(struct guest *guest, GError **error)
{
    if (!quiesce_begin(guest, error))
        return false;
    bool gone = block_jobs_cancel(guest, &guest->mirror, error) &&
                block_jobs_forget(guest, &guest->mirror, error);
    return quiesce_end(guest, gone ? error : NULL) && gone;
}

/* The guest goes on as soon as its relay refuses; the rest is done while it stands still for some
 * milliseconds. A mirror that has no relay, because an older version of us has attached it or none
 * can be started, ends as what goes direct does, at the risk that block_jobs_add_mirror() tells of.
 */
static bool give_up(struct guest *guest, GError **error)
{
    g_autoptr(GError) failure = NULL;
    if (!guest->mirror.attached)
        return quiesce_recover(guest, error);
    if (!relay_exists(guest) || (!relay_refuse(guest, &failure) && !task_killed()))
        return block_jobs_yank(guest, &guest->mirror, error) && incremental_give_up(guest, error) &&
               block_jobs_release(guest, &guest->mirror, error);
    if (failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    return incremental_give_up(guest, error) && await_no_migration(guest, error) &&
           take_away(guest, error);
}

bool mirror_release(struct hypervisor *hv, const char *instance, guint64 generation, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    return guest != NULL && give_up(guest, error);
}

/* --- starting --- */

/* One job per disk, or what ends in these jobs. */
static bool attach_jobs(struct guest *guest, enum mirror_copy copy, GError **error)
{
    if (copy == COPY_WRITTEN_SINCE) {
        incremental_start(guest);
        return true;
    }
    for (guint i = 0; i < guest->disks; i++)
        if (!block_jobs_add_mirror(guest, &guest->mirror, i, copy, true, 0, error))
            return false;
    return true;
}

static void tell_resyncing(const struct guest *guest, const char *why)
{
    const struct hypervisor_events *events = &guest->qemu->events;
    if (events->resyncing != NULL)
        events->resyncing(guest->instance, guest->generation, why, events->data);
}

static bool attach(struct guest *guest, const struct export_target *target, enum mirror_copy copy,
                   GError **error)
{
    if (!block_jobs_open_relayed(guest, &guest->mirror, target, error))
        return false;
    if (copy != COPY_WRITTEN_SINCE)
        return attach_jobs(guest, copy, error);
    g_autoptr(GError) why = NULL;
    bool known = incremental_prepare(guest, &why);
    tell_resyncing(guest, known ? NULL : why->message);
    if (known)
        return attach_jobs(guest, copy, error);
    bitmaps_void(guest);
    return guest_state_write(guest, error) && attach_jobs(guest, COPY_EVERYTHING, error);
}

/* What is known of another replica, or of one that gets a new copy, is of no use any more. */
static void name_replica(struct guest *guest, const struct export_target *target,
                         enum mirror_copy copy)
{
    if (copy != COPY_WRITTEN_SINCE)
        bitmaps_void(guest);
    else
        bitmaps_know(guest, target);
    g_free(guest->replica);
    g_free(guest->replica_images);
    guest->replica = g_strdup(target->replica);
    guest->replica_images = g_strdup(target->images);
}

static bool check_start(const struct guest *guest, const struct export_target *target,
                        GError **error)
{
    if (!incoming_check_arrived(guest, error))
        return false;
    if (guest->mirror.attached) {
        fettle_set_error(error, WRONG_STATE,
                         "guest %s mirrors to replica %s already; release that first", guest->name,
                         guest->replica);
        return false;
    }
    if (target->disks->len != guest->disks || guest->disks == 0) {
        fettle_set_error(error, WRONG_INPUT, "guest %s has %u disks, replica %s has %u",
                         guest->name, guest->disks, target->replica, target->disks->len);
        return false;
    }
    /* QEMU would hold its monitor up while it tries to connect. */
    if (!nbd_probe(target, LIMIT_PROBE_MS)) {
        fettle_set_error(error, UNREACHABLE,
                         "guest %s: the exports of replica %s on %s do not answer", guest->name,
                         target->replica, target->address);
        return false;
    }
    return true;
}

bool mirror_start(struct hypervisor *hv, const char *instance, guint64 generation,
                  const struct export_target *target, enum mirror_copy copy, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL || !check_start(guest, target, error))
        return false;
    /* Recorded first: a node daemon that comes back must look for what may be there. */
    block_jobs_number(guest, &guest->mirror);
    guest->mirror.attached = true;
    guest->finished = false;
    name_replica(guest, target, copy);
    g_hash_table_remove_all(guest->outcomes);
    if (!guest_state_write(guest, error)) {
        guest->mirror.attached = false;
        return false;
    }
    if (attach(guest, target, copy, error))
        return true;
    /* If this fails too, the mirror reads as lost and is released by whoever sees that. */
    give_up(guest, NULL);
    return false;
}

/* --- ending in sync --- */

/* Told to end when it is ready and the guest makes no more writes, a job ends with both sides
 * equal. */
static bool check_finish(struct guest *guest, const struct job_set *set, GError **error)
{
    json_autoptr jobs = NULL;
    json_autoptr status = guest_execute(guest, "query-status", NULL, LIMIT_QMP_COMMAND_MS, error);
    if (status != NULL)
        jobs = guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
    if (jobs == NULL)
        return false;
    if (json_is_true(json_object_get(status, "running"))) {
        fettle_set_error(error, WRONG_STATE,
                         "guest %s runs; its mirror can be ended in sync only while it is paused",
                         guest->name);
        return false;
    }
    struct jobs_progress progress;
    block_jobs_look(guest, set, jobs, &progress);
    if (progress.state == MIRROR_READY)
        return true;
    fettle_set_error(error, WRONG_STATE, "guest %s: its mirror is %s, not ready", guest->name,
                     enum_word(&mirror_state_words, (int)progress.state));
    return false;
}

/* Also the copy of its disks that goes with a migration is a mirror that must end in sync. */
bool mirror_finish(struct hypervisor *hv, const char *instance, guint64 generation, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL)
        return false;
    struct job_set *sets[] = {&guest->mirror, &guest->copy};
    if (!guest->mirror.attached && !guest->copy.attached) {
        if (guest->finished)
            return true; /* asked again */
        fettle_set_error(error, WRONG_STATE, "guest %s has no mirror that could be ended in sync",
                         guest->name);
        return false;
    }
    for (guint i = 0; i < G_N_ELEMENTS(sets); i++)
        if (sets[i]->attached &&
            (!check_finish(guest, sets[i], error) || !block_jobs_finish(guest, sets[i], error)))
            return false;
    guest->finished = true;
    return true;
}
