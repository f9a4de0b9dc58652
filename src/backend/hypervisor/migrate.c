/*
 * The side of a live migration that the guest leaves (SAF-17). QEMU pauses it before switch-over
 * until migrate_continue(); with return-path it takes nothing for done that the other side has not
 * acknowledged. When a migration comes to nothing QEMU lets the guest go on by itself, but only if
 * its processors ran when it began; the rest is done here.
 */
#include "backend/hypervisor/block_jobs.h"
#include "backend/hypervisor/keys.h"
#include "backend/hypervisor/migration_socket.h"
#include "backend/storage/nbd_probe.h"
#include "base/limits.h"
#include "io/loop.h"

#include <string.h>

#define MIGRATE_POLL_MS 10

void migration_clear(struct migration *migration)
{
    migration_socket_let_go(migration);
    if (migration->listener >= 0)
        close(migration->listener);
    migration->listener = -1;
    g_clear_pointer(&migration->uuid, g_free);
    g_clear_pointer(&migration->address, g_free);
    g_clear_pointer(&migration->failure, g_free);
    g_clear_pointer(&migration->copy_failure, g_free);
}

void migration_init(struct migration *migration)
{
    memset(migration, 0, sizeof *migration);
    migration->uuid = g_strdup("");
    migration->address = g_strdup("");
    migration->socket = -1;
    migration->listener = -1;
}

void migration_reset(struct migration *migration)
{
    migration_clear(migration);
    migration_init(migration);
}

/* A number of its own each time: what has hung may still hold the key of before. */
static char *creds_name(const struct guest *guest)
{
    return g_strdup_printf("kout%u", guest->migration.number);
}

/* --- where it stands --- */

static enum migration_step step_of(const char *status)
{
    static const struct {
        const char *status;
        enum migration_step step;
    } known[] = {
        {"none", STEP_NONE},      {"cancelled", STEP_NONE}, {"pre-switchover", STEP_STOPPED},
        {"device", STEP_STOPPED}, {"completed", STEP_DONE}, {"failed", STEP_FAILED}};
    for (guint i = 0; i < G_N_ELEMENTS(known); i++)
        if (g_strcmp0(status, known[i].status) == 0)
            return known[i].step;
    return STEP_COPYING; /* setup, active, cancelling, and what newer versions may say */
}

/* What QEMU says of the sending. A process that was never told to send, since a node daemon died
 * right before, says "completed" of its own arrival, but has no amounts to tell. */
static const char *sending_status(const json_t *info)
{
    const char *status = json_string_value(json_object_get(info, "status"));
    bool arrived = g_strcmp0(status, "completed") == 0 && json_object_get(info, "ram") == NULL;
    return arrived || status == NULL ? "none" : status;
}

/* QEMU's answer and its step. Until QEMU was told to send, the answer is an empty object: what it
 * would say is of an earlier migration. */
static json_t *ask(struct guest *guest, enum migration_step *ret_step, GError **error)
{
    const struct migration *migration = &guest->migration;
    if (migration->side == SIDE_SOURCE && migration->sent && migration->tasks == 0) {
        json_t *info = guest_execute(guest, "query-migrate", NULL, LIMIT_QMP_COMMAND_MS, error);
        if (info != NULL) {
            *ret_step = step_of(sending_status(info));
            migration_socket_note(guest, sending_status(info));
        }
        return info;
    }
    *ret_step = migration->side != SIDE_SOURCE ? STEP_NONE
                : migration->failure != NULL   ? STEP_FAILED
                                               : STEP_COPYING;
    return json_object();
}

bool migrate_step(struct guest *guest, enum migration_step *ret_step, GError **error)
{
    json_autoptr info = ask(guest, ret_step, error);
    return info != NULL;
}

static guint64 number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value != NULL ? (guint64)MAX(json_number_value(value), 0) : 0;
}

static bool add_disks(struct guest *guest, struct migration_info *info, GError **error)
{
    struct jobs_progress disks = {.done = guest->migration.disk_bytes,
                                  .all = guest->migration.disk_bytes};
    if (guest->copy.attached) {
        json_autoptr jobs =
            guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
        if (jobs == NULL)
            return false;
        block_jobs_look(guest, &guest->copy, jobs, &disks);
        guest->migration.disk_bytes = disks.all;
    }
    info->transferred += disks.done;
    info->total += disks.all;
    info->remaining += disks.all - MIN(disks.done, disks.all);
    return true;
}

/* The side that could not go on often knows more than the one that was cut off. */
#define NO_REASON                                                                                  \
    "QEMU gives no reason; if that of the target has ended by itself, the log of fettle-noded "    \
    "there has what it said"

static void describe(const struct guest *guest, const json_t *answer, struct migration_info *info)
{
    const json_t *ram = json_object_get(answer, "ram");
    const char *why = json_string_value(json_object_get(answer, "error-desc"));
    info->transferred = number(ram, "transferred");
    info->remaining = number(ram, "remaining");
    info->total = number(ram, "total");
    info->downtime_ms = (guint)number(
        answer, json_object_get(answer, "downtime") != NULL ? "downtime" : "expected-downtime");
    if (info->step == STEP_FAILED)
        info->why = g_strdup(why != NULL                        ? why
                             : guest->migration.failure != NULL ? guest->migration.failure
                                                                : NO_REASON);
}

bool migrate_query(struct hypervisor *hv, const char *instance, guint64 generation,
                   struct migration_info *ret_info, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    struct migration_info info = {0};
    json_autoptr answer = guest != NULL ? ask(guest, &info.step, error) : NULL;
    if (answer == NULL)
        return false;
    describe(guest, answer, &info);
    if (info.step != STEP_NONE && !add_disks(guest, &info, error)) {
        g_free(info.why);
        return false;
    }
    gint64 took_ms = loop_boot_ms() - guest->migration.started_ms;
    if (info.step == STEP_COPYING && guest->migration.started_ms > 0 && took_ms > 0)
        info.bytes_per_s = info.transferred * 1000 / (guint64)took_ms;
    *ret_info = info;
    return true;
}

/* --- starting --- */

static bool check_start(struct guest *guest, const struct migration_target *target,
                        const struct migration_limits *limits, GError **error)
{
    g_autofree char *status = NULL;
    if (guest->migration.side != SIDE_NONE) {
        fettle_set_error(error, WRONG_STATE,
                         "guest %s is part of migration %s already; cancel that first", guest->name,
                         guest->migration.uuid);
        return false;
    }
    if (target->disks != NULL && target->disks->disks->len != guest->disks) {
        fettle_set_error(error, WRONG_INPUT, "guest %s has %u disks, its target has %u",
                         guest->name, guest->disks, target->disks->disks->len);
        return false;
    }
    if (!guest_status(guest, &status, error))
        return false;
    if (strcmp(status, "running") != 0 && strcmp(status, "paused") != 0 &&
        !disk_io_stopped(status)) {
        fettle_set_error(error, WRONG_STATE,
                         "guest %s is in state %s; only one that runs or is paused can migrate",
                         guest->name, status);
        return false;
    }
    if (target->disks != NULL && !nbd_probe(target->disks, LIMIT_PROBE_MS)) {
        fettle_set_error(error, UNREACHABLE,
                         "guest %s: the incoming guest's disks on %s do not answer", guest->name,
                         target->address);
        return false;
    }
    guest->migration.resume = !limits->live && strcmp(status, "running") == 0;
    guest->migration.paused = strcmp(status, "paused") == 0;
    return true;
}

static bool record(struct guest *guest, const struct migration_target *target,
                   const struct migration_limits *limits, GError **error)
{
    struct migration *migration = &guest->migration;
    migration_clear(migration);
    migration->uuid = g_strdup(target->migration);
    migration->address = g_strdup(target->address);
    migration->port = target->port;
    migration->side = SIDE_SOURCE;
    migration->sent = migration->giving_up = false;
    migration->disk_bytes = 0;
    migration->number = ++guest->attachment;
    migration->started_ms = loop_boot_ms();
    if (target->disks != NULL) {
        block_jobs_number(guest, &guest->copy);
        guest->copy.attached = true;
    }
    return guest_state_write(guest, error);
}

static bool set_up_sender(struct guest *guest, const struct migration_target *target,
                          const struct migration_limits *limits, GError **error)
{
    g_autofree char *creds = creds_name(guest);
    bool keyed = keys_write(guest, KEY_CLIENT, target->psk, error) &&
                 keys_add(guest, KEY_CLIENT, creds, error);
    keys_remove(guest, KEY_CLIENT);
    return keyed &&
           guest_command(guest, "migrate-set-capabilities",
                         json_make("{s:[{s:s,s:b},{s:s,s:b},{s:s,s:b}]}", "capabilities",
                                   "capability", "events", "state", 1, "capability", "return-path",
                                   "state", 1, "capability", "pause-before-switchover", "state", 1),
                         LIMIT_QMP_COMMAND_MS, error) &&
           guest_command(guest, "migrate-set-parameters",
                         json_make("{s:s,s:s,s:I,s:I}", "tls-creds", creds, "tls-hostname",
                                   target->address, "max-bandwidth",
                                   (json_int_t)limits->bandwidth_mib * (json_int_t)MIB(1),
                                   "downtime-limit", (json_int_t)limits->downtime_ms),
                         LIMIT_QMP_COMMAND_MS, error);
}

/* The disks are copied at once, so each gets its part of what the migration may send. */
static bool copy_disks(struct guest *guest, const struct export_target *disks,
                       const struct migration_limits *limits, GError **error)
{
    gint64 part = (gint64)(MIB((guint64)limits->bandwidth_mib) / MAX(guest->disks, 1));
    if (!block_jobs_open_direct(guest, &guest->copy, disks, error))
        return false;
    for (guint i = 0; i < guest->disks; i++)
        if (!block_jobs_add_mirror(guest, &guest->copy, i, COPY_EVERYTHING, false, part, error))
            return false;
    return true;
}

/* Recorded before QEMU is told: a node daemon that comes back must ask it then. */
static bool send_memory(struct guest *guest, GError **error)
{
    guest->migration.tasks++;
    bool begun = migration_socket_connect(guest, error);
    if (begun) {
        guest->migration.sent = true;
        begun = guest_state_write(guest, error) && migration_socket_begin(guest, error);
    }
    guest->migration.tasks--;
    return begun;
}

/* --- when it has come to nothing --- */

/* A guest that migrates live is let go on by QEMU, unless that had stopped it by itself before the
 * switch; one that was paused for it is so by us. */
static bool go_on(struct guest *guest, GError **error)
{
    g_autofree char *status = NULL;
    do {
        if (guest->migration.paused)
            return true;
        g_clear_pointer(&status, g_free);
        if (!guest_status(guest, &status, error))
            return false;
    } while (strcmp(status, "finish-migrate") == 0 && loop_sleep(MIGRATE_POLL_MS));
    /* `postmigrate`: its memory had been sent as a whole when it failed. */
    if (strcmp(status, "postmigrate") != 0 &&
        !(guest->migration.resume && strcmp(status, "paused") == 0))
        return true;
    guest->finished = false;
    return guest_command(guest, "cont", NULL, LIMIT_QMP_DRAIN_MS, error);
}

/* In the background: it failed without anybody having cancelled it. */
static void settle_failure(struct guest *guest)
{
    enum migration_step step = STEP_NONE;
    if (!guest->migration.giving_up && migrate_step(guest, &step, NULL) && step == STEP_FAILED)
        go_on(guest, NULL);
}

void migrate_event(struct guest *guest, const char *status)
{
    if (guest->migration.side == SIDE_SOURCE && guest->migration.sent &&
        !guest->migration.giving_up && g_strcmp0(status, "failed") == 0)
        guest_spawn(guest, settle_failure);
    migration_socket_note(guest, status);
}

/* Its own part of QEMU is not under way any more when this is called. */
static bool clean_up(struct guest *guest, GError **error)
{
    GError *failure = NULL;
    g_autofree char *creds = creds_name(guest);
    if (!guest_command(guest, "migrate-set-parameters",
                       json_make("{s:s,s:s}", "tls-creds", "", "tls-hostname", ""),
                       LIMIT_QMP_COMMAND_MS, error))
        return false;
    bool removed = guest_command(guest, "object-del", json_make("{s:s}", "id", creds),
                                 LIMIT_QMP_COMMAND_MS, &failure);
    if (!block_jobs_absent_is_fine(removed, &failure, error) || !go_on(guest, error))
        return false;
    guest->finished = false; /* also of one that stands still, and may go on when there is room */
    migration_reset(&guest->migration);
    return guest_state_write(guest, error);
}

/* --- the disks first --- */

static bool disks_ready(struct guest *guest, struct jobs_progress *ret_progress, GError **error)
{
    json_autoptr jobs = guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
    if (jobs == NULL)
        return false;
    block_jobs_look(guest, &guest->copy, jobs, ret_progress);
    return true;
}

static void fail_copying(struct guest *guest, GError *failure)
{
    g_autoptr(GError) reason = failure;
    if (guest->migration.giving_up || task_killed())
        return;
    if (reason == NULL)
        reason = g_error_new(FETTLE_ERROR, FETTLE_ERROR_HYPERVISOR,
                             "the copy of its disks has ended with an error: %s",
                             guest->migration.copy_failure != NULL ? guest->migration.copy_failure
                                                                   : "QEMU tells no reason");
    guest->migration.sent = false;
    guest->migration.failure = g_strdup(reason->message);
    block_jobs_release(guest, &guest->copy, NULL);
    go_on(guest, NULL);
    guest_state_write(guest, NULL);
}

/* In the background: sends the memory when the disks are in sync. A loss after that shows when the
 * copy is to be ended in sync. */
static void follow_disks(struct guest *guest)
{
    struct jobs_progress progress = {MIRROR_SYNCING, 0, 0, false};
    GError *failure = NULL;
    guest->migration.tasks++;
    while (!guest->migration.giving_up && progress.state == MIRROR_SYNCING &&
           disks_ready(guest, &progress, &failure) && progress.state == MIRROR_SYNCING)
        if (!loop_sleep(MIGRATE_POLL_MS))
            break;
    if (!guest->migration.giving_up && !task_killed() &&
        (progress.state != MIRROR_READY || failure != NULL || !send_memory(guest, &failure)))
        fail_copying(guest, g_steal_pointer(&failure));
    g_clear_error(&failure);
    guest->migration.tasks--;
}

static bool start(struct guest *guest, const struct migration_target *target,
                  const struct migration_limits *limits, GError **error)
{
    if (!set_up_sender(guest, target, limits, error))
        return false;
    if (guest->migration.resume && !guest_command(guest, "stop", NULL, LIMIT_QMP_DRAIN_MS, error))
        return false;
    if (target->disks == NULL)
        return send_memory(guest, error);
    if (!copy_disks(guest, target->disks, limits, error))
        return false;
    guest_spawn(guest, follow_disks);
    return true;
}

bool migrate_start(struct hypervisor *hv, const char *instance, guint64 generation,
                   const struct migration_target *target, const struct migration_limits *limits,
                   GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL)
        return false;
    if (guest->migration.side == SIDE_SOURCE &&
        strcmp(guest->migration.uuid, target->migration) == 0)
        return true; /* asked again */
    if (!check_start(guest, target, limits, error))
        return false;
    if (record(guest, target, limits, error) && start(guest, target, limits, error))
        return true;
    migrate_cancel(hv, instance, generation, NULL);
    return false;
}

/* --- handing over --- */

bool migrate_continue(struct hypervisor *hv, const char *instance, guint64 generation,
                      GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    enum migration_step step = STEP_NONE;
    json_autoptr info = guest != NULL ? ask(guest, &step, error) : NULL;
    if (info == NULL)
        return false;
    const char *status = json_string_value(json_object_get(info, "status"));
    if (step == STEP_DONE || g_strcmp0(status, "device") == 0)
        return true; /* asked again */
    if (step != STEP_STOPPED) {
        fettle_set_error(error, WRONG_STATE, "guest %s has no migration that waits to be continued",
                         guest->name);
        return false;
    }
    if (guest->mirror.attached || guest->copy.attached) {
        fettle_set_error(error, WRONG_STATE,
                         "guest %s: its mirror must be ended in sync before it is handed over",
                         guest->name);
        return false;
    }
    return guest_command(guest, "migrate-continue", json_make("{s:s}", "state", "pre-switchover"),
                         LIMIT_QMP_COMMAND_MS, error);
}

/* --- giving up --- */

/* Ends the connections first, so that nothing that follows waits for the other side. There may be
 * none any more. */
static bool yank_all(struct guest *guest, GError **error)
{
    GError *failure = NULL;
    bool done = !guest->migration.sent ||
                guest_yank_any(guest, json_make("{s:s}", "type", "migration"), &failure);
    migration_socket_hang_up(guest);
    return block_jobs_absent_is_fine(done, &failure, error) &&
           block_jobs_yank(guest, &guest->copy, error);
}

static bool await_end(struct guest *guest, enum migration_step *ret_step, GError **error)
{
    gint64 deadline = loop_boot_ms() + LIMIT_MIGRATION_END_MS;
    do {
        if (!migrate_step(guest, ret_step, error))
            return false;
        if (*ret_step != STEP_COPYING && *ret_step != STEP_STOPPED)
            return true;
    } while (loop_sleep(MIGRATE_POLL_MS) && loop_boot_ms() < deadline);
    fettle_set_error(error, TIMEOUT, "guest %s: its migration has not ended in %u ms", guest->name,
                     LIMIT_MIGRATION_END_MS);
    return false;
}

static bool moved_away(const struct guest *guest, GError **error)
{
    fettle_set_error(error, WRONG_STATE, "guest %s has moved away; its migration is done",
                     guest->name);
    return false;
}

static bool end_sending(struct guest *guest, GError **error)
{
    enum migration_step step = STEP_NONE;
    if (!guest->migration.sent)
        return true;
    if (!migrate_step(guest, &step, error))
        return false;
    if (step == STEP_DONE)
        return moved_away(guest, error);
    if (step == STEP_NONE || step == STEP_FAILED)
        return true;
    if (!guest_command(guest, "migrate_cancel", NULL, LIMIT_QMP_COMMAND_MS, error) ||
        !await_end(guest, &step, error))
        return false;
    /* It may have got there in the meantime. */
    return step != STEP_DONE || moved_away(guest, error);
}

static bool await_tasks(struct guest *guest)
{
    while (guest->migration.tasks > 0)
        if (!loop_sleep(MIGRATE_POLL_MS))
            return false;
    return true;
}

static bool give_up(struct guest *guest, GError **error)
{
    if (!yank_all(guest, error))
        return false;
    if (!await_tasks(guest)) {
        fettle_set_error(error, KILLED, "the process that cancelled a migration has ended");
        return false;
    }
    return end_sending(guest, error) && block_jobs_release(guest, &guest->copy, error) &&
           clean_up(guest, error);
}

bool migrate_cancel(struct hypervisor *hv, const char *instance, guint64 generation, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL)
        return false;
    if (guest->migration.side != SIDE_SOURCE)
        return true;
    guest->migration.giving_up = true;
    bool done = give_up(guest, error);
    guest->migration.giving_up = false;
    return done;
}
