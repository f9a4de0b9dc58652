/*
 * What guests are like: one that is asked about, and all that outlived the node daemon.
 */
#include "backend/hypervisor/qemu_private.h"
#include "backend/hypervisor/relay.h"
#include "backend/hypervisor/still.h"
#include "base/limits.h"
#include "io/files.h"

#include <string.h>

/* --- asking --- */

/* A guest that waits for its first `cont` is prepared; one that runs while it sleeps (S3) runs, and
 * so does one that stands still for a moment or that QEMU has stopped by itself; whatever else
 * holds its CPUs still is paused. */
static enum guest_state state_of(const struct guest *guest, const json_t *status)
{
    const char *word = json_string_value(json_object_get(status, "status"));
    if (guest->migration.side == SIDE_TARGET && !guest->migration.arrived)
        return GUEST_INCOMING;
    if (json_is_true(json_object_get(status, "running")) || g_strcmp0(word, "suspended") == 0 ||
        (guest->resume && !guest->off && g_strcmp0(word, "paused") == 0) ||
        (guest->migration.side != SIDE_TARGET && disk_io_stopped(word)))
        return GUEST_RUNNING;
    /* A guest that has arrived waits for its first `cont` here too. */
    if (g_strcmp0(word, "prelaunch") == 0 ||
        (guest->migration.side == SIDE_TARGET &&
         (g_strcmp0(word, "paused") == 0 || disk_io_stopped(word))))
        return GUEST_PREPARED;
    return g_strcmp0(word, "shutdown") == 0 || guest->off ? GUEST_SHUTDOWN : GUEST_PAUSED;
}

/* The run state does not tell: a guest that was paused for its migration stands in the same one
 * after a failure as after the end, and QEMU says that the migration is over a moment before it
 * leaves "finish-migrate". So the migration itself is asked. */
static bool tell_migrated(struct guest *guest, enum guest_state *ret_state, GError **error)
{
    enum migration_step step = STEP_NONE;
    if (!migrate_step(guest, &step, error))
        return false;
    if (step == STEP_DONE)
        *ret_state = GUEST_MIGRATED;
    return true;
}

static bool query_guest(struct guest *guest, enum guest_state *ret_state,
                        struct mirror_info *ret_mirror, GError **error)
{
    json_autoptr status = guest_execute(guest, "query-status", NULL, LIMIT_QMP_COMMAND_MS, error);
    struct mirror_info mirror = {MIRROR_NONE, 0};
    if (status == NULL || !mirror_query(guest, &mirror, error))
        return false;
    enum guest_state state = state_of(guest, status);
    if (!tell_migrated(guest, &state, error))
        return false;
    *ret_state = state;
    *ret_mirror = mirror;
    return true;
}

bool qemu_query(struct hypervisor *hv, const char *instance, guint64 generation,
                enum guest_state *ret_state, struct mirror_info *ret_mirror, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    struct mirror_info none = {MIRROR_NONE, 0};
    guest_autoptr guest = NULL;
    if (g_hash_table_lookup(qemu->guests, instance) != NULL) {
        guest = guest_find(qemu, instance, generation, error);
        if (guest == NULL)
            return false;
        g_autoptr(GError) failure = NULL;
        if (query_guest(guest, ret_state, ret_mirror, &failure))
            return true;
        /* One that hangs up is about to end. */
        if (fettle_error_is(failure, UNREACHABLE) && !guest->gone)
            process_wait(guest->process, LIMIT_LAST_WORDS_MS);
        if (!guest->gone) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
    }
    *ret_state = GUEST_ABSENT;
    *ret_mirror = none;
    return true;
}

/* --- after a restart --- */

static enum migration_state migration_state_of(struct guest *guest)
{
    static const enum migration_state states[] = {
        [STEP_NONE] = MIGRATION_CANCELED,     [STEP_COPYING] = MIGRATION_COPYING,
        [STEP_STOPPED] = MIGRATION_SWITCHING, [STEP_DONE] = MIGRATION_MOVED,
        [STEP_FAILED] = MIGRATION_FAILED,
    };
    enum migration_step step = STEP_STOPPED; /* of what it may be the one to be careful with */
    if (guest->migration.side == SIDE_NONE)
        return MIGRATION_NONE;
    if (guest->migration.side == SIDE_TARGET)
        return guest->migration.arrived ? MIGRATION_MOVED : MIGRATION_COPYING;
    migrate_step(guest, &step, NULL);
    return states[step];
}

/* One that does not answer is reported as running, with its mirror lost: of all that it may be,
 * that is what must be treated most carefully. */
static struct guest_report *report_guest(struct guest *guest)
{
    struct guest_report *report = guest_report_new();
    struct mirror_info mirror = {guest->mirror.attached ? MIRROR_LOST : MIRROR_NONE, 0};
    enum guest_state state = GUEST_RUNNING;
    query_guest(guest, &state, &mirror, NULL);
    g_free(report->instance);
    g_free(report->replica);
    report->instance = g_strdup(guest->instance);
    report->generation = guest->generation;
    report->state = state;
    report->mirror = mirror.state;
    report->replica = g_strdup(guest->mirror.attached ? guest->replica : "");
    report->progress = mirror.progress;
    report->memory = guest->memory;
    g_free(report->migration);
    report->migration = g_strdup(guest->migration.uuid);
    report->migrating = migration_state_of(guest);
    return report;
}

static bool rediscover_one(struct qemu *qemu, const char *instance, GPtrArray *reports,
                           GError **error)
{
    if (g_hash_table_lookup(qemu->guests, instance) != NULL)
        return true;
    if (!guest_state_exists(qemu, instance)) {
        /* It is written before a process is started, so there is none. */
        guest_autoptr leftover = guest_new(qemu, instance, 0);
        guest_remove_folder(leftover);
        return true;
    }
    guest_autoptr guest = guest_state_read(qemu, instance, error);
    if (guest == NULL)
        return false;
    relay_rediscover(guest);
    if (guest->process == NULL) {
        guest_remove_folder(guest); /* it ended while nobody watched */
        return true;
    }
    guest->prepared = true;
    /* One whose mirror was being taken away goes on when that is done. */
    if (guest->incremental.active)
        still_recover(guest, NULL);
    g_hash_table_insert(qemu->guests, guest->instance, guest_ref(guest));
    struct guest_report *report = report_guest(guest);
    if (guest->gone)
        guest_report_free(report);
    else
        g_ptr_array_add(reports, report);
    return true;
}

GPtrArray *qemu_rediscover(struct hypervisor *hv, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    g_autoptr(GPtrArray) names = files_list(qemu->paths, FILE_RUN, "guests", error);
    g_autoptr(GPtrArray) reports =
        g_ptr_array_new_with_free_func((GDestroyNotify)guest_report_free);
    if (names == NULL)
        return NULL;
    for (guint i = 0; i < names->len; i++)
        if (g_uuid_string_is_valid(names->pdata[i]) &&
            !rediscover_one(qemu, names->pdata[i], reports, error))
            return NULL;
    return g_steal_pointer(&reports);
}
