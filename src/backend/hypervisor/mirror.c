/*
 * A guest's mirror: one write-blocking QEMU job per disk onto the exports of its replica. The order
 * of commands here is the fruit of trials (docs/design/architecture.md, section 11); each comment
 * that says "first" means it.
 */
#include "backend/hypervisor/qemu_private.h"
#include "backend/reach.h"
#include "backend/storage/probe.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Held for ever: a shorter delay would end by itself, and the guest would go on before anybody has
 * recorded that the replica is stale (SAF-14). */
#define RECONNECT_DELAY_S G_GINT64_CONSTANT(4294967295)
#define JOB_POLL_MS 5

/* Name of both the block node and the job of a disk in this attachment. */
static char *job_name(const struct guest *guest, guint disk)
{
    return g_strdup_printf("m%u-%u", guest->attachment, disk);
}

static char *creds_name(const struct guest *guest)
{
    return g_strdup_printf("k%u", guest->attachment);
}

/* --- asking --- */

static const json_t *find_job(const json_t *jobs, const char *name)
{
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        if (g_strcmp0(json_string_value(json_object_get(job, "device")), name) == 0)
            return job;
    }
    return NULL;
}

static enum mirror_state job_state(const json_t *job)
{
    const char *status = json_string_value(json_object_get(job, "status"));
    if (job == NULL || g_strcmp0(status, "aborting") == 0 || g_strcmp0(status, "concluded") == 0 ||
        g_strcmp0(status, "null") == 0)
        return MIRROR_LOST;
    return json_is_true(json_object_get(job, "ready")) ? MIRROR_READY : MIRROR_SYNCING;
}

/* All disks together: lost if one is, else syncing if one is, else ready. */
static void summarize(const struct guest *guest, const json_t *jobs, struct mirror_info *ret_mirror)
{
    json_int_t done = 0, all = 0;
    bool lost = false, syncing = false;
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = job_name(guest, i);
        const json_t *job = find_job(jobs, name);
        enum mirror_state state = job_state(job);
        lost = lost || state == MIRROR_LOST;
        syncing = syncing || state == MIRROR_SYNCING;
        done += json_integer_value(json_object_get(job, "offset"));
        all += json_integer_value(json_object_get(job, "len"));
    }
    ret_mirror->state = lost ? MIRROR_LOST : syncing ? MIRROR_SYNCING : MIRROR_READY;
    /* Writes of the guest that are under way count as not done yet; ready is ready. */
    ret_mirror->progress = all > 0 ? (guint)MIN(done * 100 / all, 99) : 0;
    if (ret_mirror->state == MIRROR_READY)
        ret_mirror->progress = 100;
}

bool mirror_query(struct guest *guest, struct mirror_info *ret_mirror, GError **error)
{
    struct mirror_info info = {MIRROR_NONE, 0};
    if (guest->mirrored) {
        json_autoptr jobs =
            guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
        if (jobs == NULL)
            return false;
        summarize(guest, jobs, &info);
    }
    *ret_mirror = info;
    return true;
}

/* --- taking away --- */

/* What is asked to vanish may have vanished. */
static bool absent_is_fine(bool done, GError **failure, GError **error)
{
    if (done || *failure == NULL)
        return true;
    if (fettle_error_is(*failure, UNKNOWN_ENTITY) || fettle_error_is(*failure, HYPERVISOR)) {
        g_clear_error(failure);
        return true;
    }
    g_propagate_error(error, g_steal_pointer(failure));
    return false;
}

/* First step, for every disk: ends the network connections, and with them what hangs on them. Out
 * of band, so that it is answered even by a QEMU that waits for a disk. */
static bool yank_all(struct guest *guest, GError **error)
{
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = job_name(guest, i);
        GError *failure = NULL;
        if (!absent_is_fine(guest_yank(guest, name, &failure), &failure, error))
            return false;
    }
    return true;
}

/* Second step: ends the wait for a reconnection, which a yank does not. Before the first one it
 * would freeze QEMU. */
static bool cancel_all(struct guest *guest, GError **error)
{
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = job_name(guest, i);
        GError *failure = NULL;
        bool done = guest_command(guest, "block-job-cancel",
                                  json_make("{s:s,s:b}", "device", name, "force", 1),
                                  LIMIT_QMP_COMMAND_MS, &failure);
        if (!absent_is_fine(done, &failure, error))
            return false;
    }
    return true;
}

static bool any_job_left(const struct guest *guest, const json_t *jobs)
{
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = job_name(guest, i);
        if (find_job(jobs, name) != NULL)
            return true;
    }
    return false;
}

static bool await_jobs_gone(struct guest *guest, GError **error)
{
    gint64 deadline = loop_boot_ms() + LIMIT_MIRROR_END_MS;
    do {
        json_autoptr jobs =
            guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
        if (jobs == NULL)
            return false;
        if (!any_job_left(guest, jobs))
            return true;
    } while (loop_sleep(JOB_POLL_MS) && loop_boot_ms() < deadline);
    fettle_set_error(error, TIMEOUT, "guest %s: its mirror has not ended in %u ms", guest->name,
                     LIMIT_MIRROR_END_MS);
    return false;
}

/* The nodes, then the key that they used; and the record says that there is no mirror. */
static bool forget_mirror(struct guest *guest, GError **error)
{
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = job_name(guest, i);
        GError *failure = NULL;
        bool done = guest_command(guest, "blockdev-del", json_make("{s:s}", "node-name", name),
                                  LIMIT_QMP_COMMAND_MS, &failure);
        if (!absent_is_fine(done, &failure, error))
            return false;
    }
    g_autofree char *creds = creds_name(guest);
    GError *failure = NULL;
    bool done = guest_command(guest, "object-del", json_make("{s:s}", "id", creds),
                              LIMIT_QMP_COMMAND_MS, &failure);
    if (!absent_is_fine(done, &failure, error))
        return false;
    guest->mirrored = false;
    return guest_state_write(guest, error);
}

static bool release(struct guest *guest, GError **error)
{
    return yank_all(guest, error) && cancel_all(guest, error) && await_jobs_gone(guest, error) &&
           forget_mirror(guest, error);
}

bool mirror_release(struct hypervisor *hv, const char *instance, guint64 generation, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL)
        return false;
    return !guest->mirrored || release(guest, error);
}

/* --- starting --- */

/* QEMU reads the key once, as the unprivileged user, when the object is added. */
static bool write_key(const struct guest *guest, const char *folder, const char *psk,
                      GError **error)
{
    guint32 uid = guest->qemu->uid;
    g_autofree char *file = g_build_filename(folder, "keys.psk", NULL);
    g_autofree char *line = g_strdup_printf("qemu:%s\n", psk);
    if (!reach_check(folder, uid, error))
        return false;
    if (g_mkdir_with_parents(folder, 0700) != 0) {
        fettle_set_error(error, STORAGE, "cannot make folder %s: %s", folder, g_strerror(errno));
        return false;
    }
    if (!files_write_path(file, line, strlen(line), 0600, false, error))
        return false;
    if (uid != 0 && (chown(file, uid, uid) != 0 || chown(folder, uid, uid) != 0)) {
        fettle_set_error(error, STORAGE, "cannot change the owner of %s: %s", folder,
                         g_strerror(errno));
        return false;
    }
    return true;
}

static bool add_key(struct guest *guest, const char *psk, GError **error)
{
    g_autofree char *folder = guest_path(guest, "psk");
    g_autofree char *file = g_build_filename(folder, "keys.psk", NULL);
    g_autofree char *creds = creds_name(guest);
    bool added =
        write_key(guest, folder, psk, error) &&
        guest_command(guest, "object-add",
                      json_make("{s:s,s:s,s:s,s:s,s:s}", "qom-type", "tls-creds-psk", "id", creds,
                                "endpoint", "client", "dir", folder, "username", "qemu"),
                      LIMIT_QMP_COMMAND_MS, error);
    unlink(file);
    rmdir(folder);
    return added;
}

static json_t *blockdev_arguments(const struct guest *guest, const struct export_target *target,
                                  guint disk)
{
    const struct export_disk *where = target->disks->pdata[disk];
    g_autofree char *node = job_name(guest, disk);
    g_autofree char *creds = creds_name(guest);
    g_autofree char *port = g_strdup_printf("%" G_GUINT64_FORMAT, where->port);
    return json_make("{s:s,s:s,s:{s:s,s:s,s:s},s:s,s:s,s:I}", "driver", "nbd", "node-name", node,
                     "server", "type", "inet", "host", target->address, "port", port, "export",
                     where->name, "tls-creds", creds, "reconnect-delay",
                     (json_int_t)RECONNECT_DELAY_S);
}

/* on-target-error is moot, since the export answers no errors; "report" is what ends the job when
 * it is yanked. */
static json_t *mirror_arguments(const struct guest *guest, guint disk, enum mirror_copy copy)
{
    g_autofree char *name = job_name(guest, disk);
    g_autofree char *device = g_strdup_printf("d%u", disk);
    return json_make("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "job-id", name, "device", device, "target",
                     name, "sync", copy == COPY_NOTHING ? "none" : "full", "copy-mode",
                     "write-blocking", "on-source-error", "report", "on-target-error", "report");
}

static bool attach(struct guest *guest, const struct export_target *target, enum mirror_copy copy,
                   GError **error)
{
    if (!add_key(guest, target->psk, error))
        return false;
    for (guint i = 0; i < guest->disks; i++)
        if (!guest_command(guest, "blockdev-add", blockdev_arguments(guest, target, i),
                           LIMIT_QMP_DRAIN_MS, error) ||
            !guest_command(guest, "blockdev-mirror", mirror_arguments(guest, i, copy),
                           LIMIT_QMP_DRAIN_MS, error)) {
            g_prefix_error(error, "disk %u: ", i);
            return false;
        }
    return true;
}

static bool check_start(const struct guest *guest, const struct export_target *target,
                        GError **error)
{
    if (guest->mirrored) {
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
    guest->attachment++;
    guest->mirrored = true;
    guest->finished = false;
    g_free(guest->replica);
    guest->replica = g_strdup(target->replica);
    g_hash_table_remove_all(guest->outcomes);
    if (!guest_state_write(guest, error)) {
        guest->mirrored = false;
        return false;
    }
    if (attach(guest, target, copy, error))
        return true;
    /* If this fails too, the mirror reads as lost and is released by whoever sees that. */
    release(guest, NULL);
    return false;
}

/* --- ending in sync --- */

/* Told to end when it is ready and the guest makes no more writes, a job ends with both sides
 * equal. */
static bool check_finish(struct guest *guest, GError **error)
{
    json_autoptr status = guest_execute(guest, "query-status", NULL, LIMIT_QMP_COMMAND_MS, error);
    struct mirror_info mirror;
    if (status == NULL || !mirror_query(guest, &mirror, error))
        return false;
    if (json_is_true(json_object_get(status, "running"))) {
        fettle_set_error(error, WRONG_STATE,
                         "guest %s runs; its mirror can be ended in sync only while it is paused",
                         guest->name);
        return false;
    }
    if (mirror.state != MIRROR_READY) {
        fettle_set_error(error, WRONG_STATE, "guest %s: its mirror is %s, not ready", guest->name,
                         enum_word(&mirror_state_words, (int)mirror.state));
        return false;
    }
    return true;
}

static enum job_outcome outcome_of_all(const struct guest *guest)
{
    bool unknown = false;
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = job_name(guest, i);
        enum job_outcome outcome =
            (enum job_outcome)GPOINTER_TO_INT(g_hash_table_lookup(guest->outcomes, name));
        if (outcome == JOB_FAILED)
            return JOB_FAILED;
        unknown = unknown || outcome == JOB_UNKNOWN;
    }
    return unknown ? JOB_UNKNOWN : JOB_DONE;
}

/* By events only, and only over one connection: a job that is not there any more may have ended in
 * either way. */
static bool await_completion(struct guest *guest, const struct qmp *connection, GError **error)
{
    gint64 deadline = loop_boot_ms() + LIMIT_MIRROR_END_MS;
    enum job_outcome outcome;
    while ((outcome = outcome_of_all(guest)) == JOB_UNKNOWN && guest->qmp == connection &&
           qmp_is_open(connection))
        if (!loop_sleep(JOB_POLL_MS) || loop_boot_ms() >= deadline)
            break;
    if (outcome == JOB_DONE)
        return true;
    fettle_set_error(error, HYPERVISOR, "guest %s: its mirror %s, so the replica may differ",
                     guest->name,
                     outcome == JOB_FAILED ? "ended with an error" : "was not seen to end");
    return false;
}

bool mirror_finish(struct hypervisor *hv, const char *instance, guint64 generation, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL)
        return false;
    if (!guest->mirrored && guest->finished)
        return true; /* asked again */
    if (!guest->mirrored) {
        fettle_set_error(error, WRONG_STATE, "guest %s has no mirror that could be ended in sync",
                         guest->name);
        return false;
    }
    if (!check_finish(guest, error))
        return false;
    const struct qmp *connection = guest->qmp;
    g_hash_table_remove_all(guest->outcomes);
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = job_name(guest, i);
        if (!guest_command(guest, "block-job-cancel", json_make("{s:s}", "device", name),
                           LIMIT_QMP_DRAIN_MS, error))
            return false;
    }
    if (!await_completion(guest, connection, error) || !forget_mirror(guest, error))
        return false;
    guest->finished = true;
    return true;
}
