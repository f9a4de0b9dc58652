/*
 * A point in time of a volume that a guest writes to (SAF-59): QEMU copies the volume as it was at
 * one moment into a file beside it, and keeps for that what the guest overwrites.
 *
 *     device -> pN (copy-before-write) -> volume       N: the claim, which never comes again
 *               pN keeps in pNt, the file, what the guest overwrites
 *               pNs (snapshot-access) reads pN as it was
 *               pNj (mirror) copies pNs into pNm, the same file
 *
 * The file is both the filter's store and the job's target: where both write, they write the same
 * bytes, those of that moment. The job is a mirror, which leaves holes, as a backup of QEMU's does
 * not; it opens the file once more, without its lock, as it shares its target with nobody. What
 * finds no room, or takes too long, breaks the copy and not the guest's
 * write; whatever the copy reads after that is an error, which ends the job. So
 * one that is ready has copied the moment, and QEMU keeps either until it is dismissed: what has
 * come of it is asked, never remembered. Measured on QEMU 7.2: `qom-set drive` to the node that the
 * device has is an assertion of QEMU's, so it is looked at first; putting in and taking out keep a
 * guest for 2 to 40 ms.
 */
#include "backend/hypervisor/qemu_private.h"
#include "backend/unprivileged.h"
#include "io/loop.h"

#include <string.h>
#include <unistd.h>

#define POLL_MS 50
#define WRITE_WAITS_S 10 /* at most, of the guest, for what it overwrites to be kept */

/* Its names; SUFFIX: "", s, t, m, j; f after t and m: their files. */
static char *name_of(guint64 claim, const char *suffix)
{
    return g_strdup_printf("p%" G_GUINT64_FORMAT "%s", claim, suffix);
}

static int set_of(const struct guest_volume *volume)
{
    return volume_set(volume->slot) + LIMIT_VOLUME_SLOT + 1;
}

/* --- what is there --- */

/* Its job; `null` if there is none. NULL: no answer. */
static json_t *find_job(struct guest *guest, guint64 claim, GError **error)
{
    g_autofree char *name = name_of(claim, "j");
    json_autoptr jobs = guest_execute(guest, "query-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        json_t *job = json_array_get(jobs, i);
        if (g_strcmp0(json_string_value(json_object_get(job, "id")), name) == 0)
            return json_incref(job);
    }
    return jobs ? json_null() : NULL;
}

static bool has_status(const json_t *job, const char *status)
{
    return g_strcmp0(json_string_value(json_object_get(job, "status")), status) == 0;
}

static bool is_concluded(const json_t *job)
{
    return has_status(job, "concluded");
}

/* By somebody who wants the guest or the volume for something else, and dismisses it next. */
static bool is_given_up(const json_t *job)
{
    const char *why = json_string_value(json_object_get(job, "error"));
    return is_concluded(job) && (!why || strcmp(why, g_strerror(ECANCELED)) == 0);
}

static char *backend_of(const struct guest_volume *volume)
{
    g_autofree char *name = g_strdup_printf(VOLUME_DRIVE, volume->attachment);
    return g_strdup_printf("/machine/peripheral/%s/virtio-backend", name);
}

/* The node that the guest's device writes to; NULL without an error: there is no device. */
static char *drive_of(struct guest *guest, const struct guest_volume *volume, GError **error)
{
    g_autofree char *device = backend_of(volume);
    g_autoptr(GError) local = NULL;
    json_autoptr drive =
        guest_execute(guest, "qom-get", json_make("{s:s,s:s}", "path", device, "property", "drive"),
                      LIMIT_QMP_COMMAND_MS, &local);
    if (drive)
        return g_strdup(json_string_value(drive));
    if (!fettle_error_is(local, UNKNOWN_ENTITY))
        g_propagate_error(error, g_steal_pointer(&local));
    return NULL;
}

static bool set_drive(struct guest *guest, const struct guest_volume *volume, const char *from,
                      const char *to, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autofree char *device = backend_of(volume), *drive = drive_of(guest, volume, &local);
    if (local) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    if (g_strcmp0(drive, from) != 0)
        return g_strcmp0(drive, to) == 0 || !drive;
    return guest_command(
        guest, "qom-set",
        json_make("{s:s,s:s,s:s}", "path", device, "property", "drive", "value", to),
        LIMIT_QMP_DRAIN_MS, error);
}

/* --- out --- */

static bool remove_node(struct guest *guest, guint64 claim, const char *suffix, GError **error)
{
    g_autofree char *name = name_of(claim, suffix);
    bool there;
    return guest_has_node(guest, name, &there, error) &&
           (!there || guest_command(guest, "blockdev-del", json_make("{s:s}", "node-name", name),
                                    LIMIT_QMP_DRAIN_MS, error));
}

static void remove_set(struct guest *guest, const struct guest_volume *volume)
{
    guest_command(guest, "remove-fd", json_make("{s:i}", "fdset-id", set_of(volume)),
                  LIMIT_QMP_COMMAND_MS, NULL);
}

/* Whether it is there no more: only then anything is drained, as what it writes to may hang. */
static bool end_job(struct guest *guest, guint64 claim, guint wait_ms, bool *ret_gone,
                    GError **error)
{
    g_autofree char *name = name_of(claim, "j");
    *ret_gone = false;
    for (guint waited = 0;; waited += POLL_MS) {
        json_autoptr job = find_job(guest, claim, error);
        if (!job)
            return false;
        *ret_gone = json_is_null(job);
        if (*ret_gone || waited > wait_ms)
            return true;
        guest_command(guest, is_concluded(job) ? "job-dismiss" : "job-cancel",
                      json_make("{s:s}", "id", name), LIMIT_QMP_COMMAND_MS, NULL);
        if (!is_concluded(job) && !loop_sleep(POLL_MS)) {
            fettle_set_error(error, KILLED, "the node daemon ends");
            return false;
        }
    }
}

static bool take_out(struct guest *guest, const struct guest_volume *volume, guint64 claim,
                     guint wait_ms, bool *ret_gone, GError **error)
{
    g_autofree char *filter = name_of(claim, ""), *node = volume_node(volume->attachment);
    bool ended = false;
    *ret_gone = false;
    if (!end_job(guest, claim, wait_ms, &ended, error))
        return false;
    if (!ended)
        return true;
    if (!remove_node(guest, claim, "m", error) || !remove_node(guest, claim, "s", error) ||
        !set_drive(guest, volume, filter, node, error) || !remove_node(guest, claim, "", error) ||
        !remove_node(guest, claim, "t", error))
        return false;
    remove_set(guest, volume);
    *ret_gone = true;
    return true;
}

bool point_close(struct hypervisor *hv, const char *instance, guint64 generation,
                 const struct guest_volume *volume, guint64 claim, guint wait_ms, bool *ret_gone,
                 GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    *ret_gone = !g_hash_table_contains(qemu->guests, instance);
    if (*ret_gone)
        return true;
    guest_autoptr guest = guest_find(qemu, instance, generation, error);
    return guest && take_out(guest, volume, claim, wait_ms, ret_gone, error);
}

/* --- in --- */

static bool give_file(struct guest *guest, const struct guest_volume *volume, const char *path,
                      GError **error)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    g_ptr_array_add(paths, (char *)path);
    int fd = unprivileged_first(
        unprivileged_open(paths, volume_open_flags(false), false, LIMIT_GUEST_READY_MS, error));
    if (fd < 0)
        return false;
    remove_set(guest, volume);
    bool given = guest_give_descriptor(guest, "add-fd",
                                       json_make("{s:i}", "fdset-id", set_of(volume)), fd, error);
    close(fd);
    return given;
}

static bool add_file(struct guest *guest, const struct guest_volume *volume, guint64 claim,
                     const char *suffix, const char *locking, GError **error)
{
    g_autofree char *node = name_of(claim, suffix), *file = g_strconcat(node, "f", NULL);
    g_autofree char *name = g_strdup_printf("/dev/fdset/%d", set_of(volume));
    return guest_command(guest, "blockdev-add",
                         json_make("{s:s,s:s,s:s,s:{s:b},s:{s:s,s:s,s:s,s:s,s:s,s:{s:b}}}",
                                   "driver", "raw", "node-name", node, "discard", "unmap", "cache",
                                   "direct", 1, "file", "driver", "file", "filename", name,
                                   "node-name", file, "discard", "unmap", "locking", locking,
                                   "cache", "direct", 1),
                         LIMIT_QMP_COMMAND_MS, error);
}

/* As long as QEMU knows the volume to be, which the job asks for. */
static bool fit_file(struct guest *guest, const struct guest_volume *volume, guint64 claim,
                     GError **error)
{
    g_autofree char *node = name_of(claim, "t"), *of = volume_node(volume->attachment);
    guint64 bytes;
    return guest_node_bytes(guest, of, &bytes, error) &&
           guest_command(guest, "block_resize",
                         json_make("{s:s,s:I}", "node-name", node, "size", (json_int_t)bytes),
                         LIMIT_QMP_DRAIN_MS, error);
}

static bool add_filter(struct guest *guest, const struct guest_volume *volume, guint64 claim,
                       GError **error)
{
    g_autofree char *filter = name_of(claim, ""), *file = name_of(claim, "t");
    g_autofree char *of = volume_node(volume->attachment);
    return guest_command(guest, "blockdev-add",
                         json_make("{s:s,s:s,s:s,s:s,s:s,s:i}", "driver", "copy-before-write",
                                   "node-name", filter, "file", of, "target", file, "on-cbw-error",
                                   "break-snapshot", "cbw-timeout", WRITE_WAITS_S),
                         LIMIT_QMP_COMMAND_MS, error) &&
           set_drive(guest, volume, of, filter, error);
}

/* "full" would blank the file first, with what the filter has kept already. */
static bool begin_copy(struct guest *guest, guint64 claim, GError **error)
{
    g_autofree char *access = name_of(claim, "s"), *filter = name_of(claim, "");
    g_autofree char *file = name_of(claim, "m"), *job = name_of(claim, "j");
    return guest_command(guest, "blockdev-add",
                         json_make("{s:s,s:s,s:s}", "driver", "snapshot-access", "node-name",
                                   access, "file", filter),
                         LIMIT_QMP_COMMAND_MS, error) &&
           guest_command(guest, "blockdev-mirror",
                         json_make("{s:s,s:s,s:s,s:s,s:b,s:s,s:s}", "job-id", job, "device", access,
                                   "target", file, "sync", "top", "auto-dismiss", 0,
                                   "on-source-error", "report", "on-target-error", "report"),
                         LIMIT_QMP_DRAIN_MS, error);
}

bool point_open(struct hypervisor *hv, const char *instance, guint64 generation,
                const struct guest_volume *volume, guint64 claim, const char *path, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    json_autoptr job = guest ? find_job(guest, claim, error) : NULL;
    bool gone = false;
    if (!job)
        return false;
    if (!json_is_null(job))
        return true;
    if (give_file(guest, volume, path, error) && add_file(guest, volume, claim, "t", "on", error) &&
        fit_file(guest, volume, claim, error) &&
        add_file(guest, volume, claim, "m", "off", error) &&
        add_filter(guest, volume, claim, error) && begin_copy(guest, claim, error))
        return true;
    take_out(guest, volume, claim, 0, &gone, NULL); /* asked for again by who takes it back */
    return false;
}

/* --- what has come of it --- */

bool point_look(struct hypervisor *hv, const char *instance, guint64 generation, guint64 claim,
                struct point_status *status, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    json_autoptr job = guest ? find_job(guest, claim, error) : NULL;
    if (!job)
        return false;
    const char *why = json_string_value(json_object_get(job, "error"));
    status->state = json_is_null(job) || is_given_up(job) ? POINT_NONE
                    : has_status(job, "ready")            ? POINT_COPIED
                    : is_concluded(job)                   ? POINT_FAILED
                                                          : POINT_COPYING;
    status->done = (guint64)MAX(json_integer_value(json_object_get(job, "current-progress")), 0);
    text_set(&status->why, status->state == POINT_FAILED ? why : "");
    return true;
}
