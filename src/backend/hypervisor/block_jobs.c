/*
 * See block_jobs.h.
 */
#include "backend/hypervisor/block_jobs.h"

#include "backend/hypervisor/keys.h"
#include "backend/hypervisor/relay.h"
#include "base/limits.h"
#include "io/loop.h"

#include <string.h>

#define YANK_SETTLES_MS 50 /* measured: a few */

/* For ever: should the relay end, QEMU waits for the next one. A shorter delay would end by itself,
 * and the guest would go on before anybody has recorded that the replica is stale (SAF-14). */
#define HOLD_WRITES_S G_GINT64_CONSTANT(4294967295)

char *block_jobs_name(const struct job_set *set, guint disk)
{
    return g_strdup_printf("%c%u-%u", set->kind, set->number, disk);
}

char *block_jobs_disk(guint disk)
{
    return g_strdup_printf("d%u", disk);
}

static char *creds_name(const struct job_set *set)
{
    return g_strdup_printf("k%c%u", set->kind, set->number);
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

/* A job that an error has paused still says that it is ready. Nobody else pauses jobs. */
static enum mirror_state job_state(const json_t *job)
{
    const char *status = json_string_value(json_object_get(job, "status"));
    if (job == NULL || g_strcmp0(status, "aborting") == 0 || g_strcmp0(status, "concluded") == 0 ||
        g_strcmp0(status, "null") == 0 || json_is_true(json_object_get(job, "paused")) ||
        g_strcmp0(json_string_value(json_object_get(job, "io-status")), "ok") != 0)
        return MIRROR_LOST;
    return json_is_true(json_object_get(job, "ready")) ? MIRROR_READY : MIRROR_SYNCING;
}

void block_jobs_look(const struct guest *guest, const struct job_set *set, const json_t *jobs,
                     struct jobs_progress *ret_progress)
{
    struct jobs_progress progress = {MIRROR_READY, 0, 0, true};
    bool lost = false, syncing = false;
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(set, i);
        const json_t *job = find_job(jobs, name);
        enum mirror_state state = job_state(job);
        guint64 done = (guint64)json_integer_value(json_object_get(job, "offset"));
        guint64 all = (guint64)json_integer_value(json_object_get(job, "len"));
        lost = lost || state == MIRROR_LOST;
        syncing = syncing || state == MIRROR_SYNCING;
        progress.done += done;
        progress.all += all;
        progress.idle = progress.idle && state == MIRROR_READY && done == all;
    }
    progress.state = lost ? MIRROR_LOST : syncing ? MIRROR_SYNCING : MIRROR_READY;
    *ret_progress = progress;
}

enum job_outcome block_jobs_outcome(const struct guest *guest, const struct job_set *set)
{
    enum job_outcome least = JOB_DONE;
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(set, i);
        enum job_outcome outcome =
            (enum job_outcome)GPOINTER_TO_INT(g_hash_table_lookup(guest->outcomes, name));
        if (outcome == JOB_FAILED)
            return JOB_FAILED;
        least = MIN(least, outcome);
    }
    return least;
}

void block_jobs_outcome_clear(struct guest *guest, const struct job_set *set)
{
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(set, i);
        g_hash_table_remove(guest->outcomes, name);
    }
}

/* --- starting --- */

void block_jobs_number(struct guest *guest, struct job_set *set)
{
    set->number = ++guest->attachment;
}

static bool add_key(struct guest *guest, const struct job_set *set, const char *psk, GError **error)
{
    g_autofree char *creds = creds_name(set);
    bool added =
        keys_write(guest, KEY_CLIENT, psk, error) && keys_add(guest, KEY_CLIENT, creds, error);
    keys_remove(guest, KEY_CLIENT);
    return added;
}

static bool add_node(struct guest *guest, const struct job_set *set, guint disk, json_t *server,
                     const char *name, const char *creds, gint64 reconnect_delay_s, GError **error)
{
    g_autofree char *node = block_jobs_name(set, disk);
    json_autoptr arguments =
        json_make("{s:s,s:s,s:o,s:s,s:I}", "driver", "nbd", "node-name", node, "server", server,
                  "export", name, "reconnect-delay", (json_int_t)reconnect_delay_s);
    if (creds != NULL)
        json_object_set_new(arguments, "tls-creds", json_string(creds));
    if (guest_command(guest, "blockdev-add", json_incref(arguments), LIMIT_QMP_DRAIN_MS, error))
        return true;
    g_prefix_error(error, "disk %u: ", disk);
    return false;
}

bool block_jobs_open_direct(struct guest *guest, const struct job_set *set,
                            const struct export_target *target, GError **error)
{
    g_autofree char *creds = creds_name(set);
    if (!add_key(guest, set, target->psk, error))
        return false;
    for (guint i = 0; i < guest->disks; i++) {
        const struct export_disk *where = target->disks->pdata[i];
        g_autofree char *port = g_strdup_printf("%" G_GUINT64_FORMAT, where->port);
        json_t *server =
            json_make("{s:s,s:s,s:s}", "type", "inet", "host", target->address, "port", port);
        if (!add_node(guest, set, i, server, where->name, creds, 0, error))
            return false;
    }
    return true;
}

/* What QEMU shows the guest, in bytes. */
static bool disk_sizes(struct guest *guest, guint64 *bytes, GError **error)
{
    json_autoptr nodes = guest_execute(guest, "query-named-block-nodes",
                                       json_make("{s:b}", "flat", 1), LIMIT_QMP_COMMAND_MS, error);
    if (nodes == NULL)
        return false;
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *disk = block_jobs_disk(i);
        bytes[i] = 0;
        for (size_t n = 0; n < json_array_size(nodes); n++) {
            const json_t *node = json_array_get(nodes, n);
            if (g_strcmp0(json_string_value(json_object_get(node, "node-name")), disk) == 0)
                bytes[i] = (guint64)json_integer_value(
                    json_object_get(json_object_get(node, "image"), "virtual-size"));
        }
        if (bytes[i] == 0) {
            fettle_set_error(error, HYPERVISOR, "guest %s: QEMU does not tell the size of disk %u",
                             guest->name, i);
            return false;
        }
    }
    return true;
}

bool block_jobs_open_relayed(struct guest *guest, const struct job_set *set,
                             const struct export_target *target, GError **error)
{
    guint64 bytes[LIMIT_DISKS];
    g_assert(set == &guest->mirror);
    if (!disk_sizes(guest, bytes, error))
        return false;
    if (!relay_start(guest, target, bytes, error)) {
        g_prefix_error(error, "guest %s: ", guest->name);
        return false;
    }
    g_autofree char *path = relay_socket(guest);
    for (guint i = 0; i < guest->disks; i++) {
        const struct export_disk *where = target->disks->pdata[i];
        json_t *server = json_make("{s:s,s:s}", "type", "unix", "path", path);
        if (!add_node(guest, set, i, server, where->name, NULL, HOLD_WRITES_S, error))
            return false;
    }
    return true;
}

/*
 * When a write-blocking job of QEMU 7.2 ends with a write under way, QEMU clears bits in memory
 * that it has freed (block/mirror.c: in_flight_bitmap, active_write_settle()): nine of thirty
 * guests whose mirror was ended so died of it. So it must not end by itself: an error of its target
 * only pauses it ("stop"), and mirror_release() cancels it when the guest stands still. A job that
 * promises nothing gets the writes behind the guest's back, and ends at the first error.
 */
/* QEMU keeps to a speed from one filling of its buffer to the next, and its own buffer of 10 MiB is
 * seconds of a slow copy. */
static gint64 buffer_for(gint64 bytes_per_s)
{
    if (bytes_per_s == 0)
        return LIMIT_MIRROR_BUFFER_BYTES;
    return CLAMP(bytes_per_s / MIRROR_FILLS_PER_S, (gint64)MIRROR_BUFFER_LEAST_BYTES,
                 (gint64)LIMIT_MIRROR_BUFFER_BYTES);
}

bool block_jobs_add_mirror(struct guest *guest, const struct job_set *set, guint disk,
                           enum mirror_copy copy, bool promise, gint64 bytes_per_s, GError **error)
{
    g_autofree char *name = block_jobs_name(set, disk);
    g_autofree char *device = block_jobs_disk(disk);
    if (guest_command(
            guest, "blockdev-mirror",
            json_make("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I}", "job-id", name, "device", device,
                      "target", name, "sync", copy == COPY_NOTHING ? "none" : "full", "copy-mode",
                      promise ? "write-blocking" : "background", "on-source-error", "report",
                      "on-target-error", promise ? "stop" : "report", "speed",
                      (json_int_t)bytes_per_s, "buf-size", (json_int_t)buffer_for(bytes_per_s)),
            LIMIT_QMP_DRAIN_MS, error))
        return true;
    g_prefix_error(error, "disk %u: ", disk);
    return false;
}

/* --- taking away --- */

bool block_jobs_absent_is_fine(bool done, GError **failure, GError **error)
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

bool block_jobs_yank(struct guest *guest, const struct job_set *set, GError **error)
{
    for (guint i = 0; set->attached && i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(set, i);
        GError *failure = NULL;
        if (!block_jobs_absent_is_fine(guest_yank(guest, name, &failure), &failure, error))
            return false;
    }
    return true;
}

bool block_jobs_cancel(struct guest *guest, const struct job_set *set, GError **error)
{
    for (guint i = 0; set->attached && i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(set, i);
        GError *failure = NULL;
        bool done = guest_command(guest, "block-job-cancel",
                                  json_make("{s:s,s:b}", "device", name, "force", 1),
                                  LIMIT_QMP_COMMAND_MS, &failure);
        if (!block_jobs_absent_is_fine(done, &failure, error))
            return false;
    }
    return true;
}

static bool any_job_left(const struct guest *guest, const struct job_set *set, const json_t *jobs)
{
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(set, i);
        if (find_job(jobs, name) != NULL)
            return true;
    }
    return false;
}

static bool await_gone(struct guest *guest, const struct job_set *set, GError **error)
{
    gint64 deadline = loop_boot_ms() + LIMIT_MIRROR_END_MS;
    do {
        json_autoptr jobs =
            guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
        if (jobs == NULL)
            return false;
        if (!any_job_left(guest, set, jobs))
            return true;
    } while (loop_sleep(JOB_POLL_MS) && loop_boot_ms() < deadline);
    fettle_set_error(error, TIMEOUT, "guest %s: its mirror has not ended in %u ms", guest->name,
                     LIMIT_MIRROR_END_MS);
    return false;
}

bool block_jobs_remove_nodes(struct guest *guest, const struct job_set *set, GError **error)
{
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(set, i);
        GError *failure = NULL;
        bool done = guest_command(guest, "blockdev-del", json_make("{s:s}", "node-name", name),
                                  LIMIT_QMP_COMMAND_MS, &failure);
        if (!block_jobs_absent_is_fine(done, &failure, error))
            return false;
    }
    return true;
}

bool block_jobs_forget(struct guest *guest, struct job_set *set, GError **error)
{
    g_autofree char *creds = creds_name(set);
    GError *failure = NULL;
    if (!set->attached)
        return true;
    if (!await_gone(guest, set, error) || !block_jobs_remove_nodes(guest, set, error))
        return false;
    bool done = guest_command(guest, "object-del", json_make("{s:s}", "id", creds),
                              LIMIT_QMP_COMMAND_MS, &failure);
    if (!block_jobs_absent_is_fine(done, &failure, error) ||
        (set == &guest->mirror && !relay_end(guest, error)))
        return false;
    set->attached = false;
    return guest_state_write(guest, error);
}

/* A yank of a connection that stood ends the job by its error; a cancel is needed only by one that
 * waits for a reconnection. */
static bool leave_time_to_end(struct guest *guest, const struct job_set *set, GError **error)
{
    gint64 deadline = loop_boot_ms() + YANK_SETTLES_MS;
    bool left = true;
    while (left && loop_boot_ms() < deadline) {
        json_autoptr jobs =
            guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
        if (jobs == NULL)
            return false;
        left = any_job_left(guest, set, jobs);
        if (left && !loop_sleep(JOB_POLL_MS))
            break;
    }
    return true;
}

bool block_jobs_release(struct guest *guest, struct job_set *set, GError **error)
{
    if (!set->attached)
        return true;
    return block_jobs_yank(guest, set, error) && leave_time_to_end(guest, set, error) &&
           block_jobs_cancel(guest, set, error) && block_jobs_forget(guest, set, error);
}

/* --- ending in sync --- */

/* By events only, and only over one connection: a job that is not there any more may have ended in
 * either way. */
static bool await_completion(struct guest *guest, const struct job_set *set,
                             const struct qmp *connection, GError **error)
{
    gint64 deadline = loop_boot_ms() + LIMIT_MIRROR_END_MS;
    enum job_outcome outcome;
    while ((outcome = block_jobs_outcome(guest, set)) < JOB_DONE && guest->qmp == connection &&
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

bool block_jobs_finish(struct guest *guest, struct job_set *set, GError **error)
{
    const struct qmp *connection = guest->qmp;
    block_jobs_outcome_clear(guest, set);
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *name = block_jobs_name(set, i);
        if (!guest_command(guest, "block-job-cancel", json_make("{s:s}", "device", name),
                           LIMIT_QMP_DRAIN_MS, error))
            return false;
    }
    return await_completion(guest, set, connection, error) && block_jobs_forget(guest, set, error);
}
