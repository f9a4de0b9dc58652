/*
 * What a guest's own disks have answered, and letting one go on that QEMU has stopped by itself
 * (SAF-27). Disks and volumes are told to QEMU with werror=enospc: a request that finds no room
 * stops the guest in run state `io-error` and is held, to be repeated by `cont`; any other failure
 * is told to the guest. Measured on QEMU 7.2: what is held is counted nowhere, what is told to the
 * guest is counted once; `io-status` of query-block stays "nospace" for ever after the guest has
 * gone on, so it says of a drive that it cannot be the reason, and never that it is.
 */
#include "backend/hypervisor/qemu_private.h"
#include "backend/hypervisor/quiesce.h"

#include <string.h>

bool disk_io_stopped(const char *status)
{
    return g_strcmp0(status, "io-error") == 0;
}

guint64 disk_io_failed(const json_t *entry)
{
    static const char *const counters[] = {"failed_rd_operations", "failed_wr_operations",
                                           "failed_flush_operations"};
    const json_t *stats = json_object_get(entry, "stats");
    guint64 sum = 0;
    for (guint i = 0; i < G_N_ELEMENTS(counters); i++)
        sum += (guint64)MAX(json_integer_value(json_object_get(stats, counters[i])), 0);
    return sum;
}

/* Of the disk as the guest sees it, by the device that it hangs on. */
static guint64 failed_of_disk(const json_t *entries, guint disk)
{
    g_autofree char *device = g_strdup_printf("/machine/peripheral/vd%u/", disk);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        const char *qdev = json_string_value(json_object_get(entry, "qdev"));
        if (qdev != NULL && g_str_has_prefix(qdev, device))
            return disk_io_failed(entry);
    }
    return 0;
}

static void count(struct guest *guest, const json_t *entries, struct io_info *info)
{
    for (guint i = 0; i < guest->disks; i++) {
        guint64 failed = failed_of_disk(entries, i);
        if (failed > guest->io_errors[i])
            guest->io_disk = i;
        guest->io_errors[i] = failed;
        info->errors += failed;
    }
    info->disk = info->errors > 0 ? guest->io_disk : 0;
}

bool qemu_io_query(struct hypervisor *hv, const char *instance, guint64 generation,
                   struct io_info *ret_io, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    struct io_info info = {0, 0, IO_STOP_NONE};
    g_autofree char *status = NULL;
    if (g_hash_table_lookup(qemu->guests, instance) == NULL) {
        *ret_io = info;
        return true;
    }
    guest_autoptr guest = guest_find(qemu, instance, generation, error);
    if (guest == NULL || !guest_status(guest, &status, error))
        return false;
    json_autoptr entries =
        guest_execute(guest, "query-blockstats", NULL, LIMIT_QMP_COMMAND_MS, error);
    if (entries == NULL)
        return false;
    count(guest, entries, &info);
    if (disk_io_stopped(status) && guest->migration.side != SIDE_TARGET)
        info.stop = IO_STOP_NO_SPACE;
    *ret_io = info;
    return true;
}

/* By the name of the device that the guest sees: "/machine/peripheral/vd0/virtio-backend". */
char *disk_io_drive(const json_t *entry)
{
    const char *qdev = json_string_value(json_object_get(entry, "qdev"));
    const char *device = json_string_value(json_object_get(entry, "device"));
    static const char begin[] = "/machine/peripheral/";
    if (qdev != NULL && g_str_has_prefix(qdev, begin))
        return g_strndup(qdev + strlen(begin), strcspn(qdev + strlen(begin), "/"));
    return g_strdup(device != NULL && device[0] != '\0' ? device : qdev);
}

GPtrArray *qemu_drives(struct hypervisor *hv, const char *instance, guint64 generation,
                       bool short_of_room, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    json_autoptr entries =
        guest != NULL ? guest_execute(guest, "query-block", NULL, LIMIT_QMP_COMMAND_MS, error)
                      : NULL;
    if (entries == NULL)
        return NULL;
    GPtrArray *drives = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; i < MIN(json_array_size(entries), LIMIT_SIGHT_NAMES); i++) {
        const json_t *entry = json_array_get(entries, i);
        const char *status = json_string_value(json_object_get(entry, "io-status"));
        if (short_of_room && g_strcmp0(status, "nospace") != 0)
            continue;
        char *name = disk_io_drive(entry);
        if (name != NULL)
            g_ptr_array_add(drives, name);
    }
    return drives;
}

static bool check_go_on(struct guest *guest, GError **error)
{
    g_autofree char *status = NULL;
    const char *why = NULL;
    if (!guest_status(guest, &status, error))
        return false;
    if (!disk_io_stopped(status))
        why = status;
    else if (guest->migration.side != SIDE_NONE)
        why = "part of a migration";
    else if (guest->finished)
        why = "without the mirror that was ended in sync";
    if (why == NULL)
        return true;
    fettle_set_error(
        error, WRONG_STATE,
        "guest %s does not go on by itself: it is %s, not only stopped for lack of room",
        guest->name, why);
    return false;
}

bool qemu_go_on(struct hypervisor *hv, const char *instance, guint64 generation, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL || !quiesce_hold(guest, error))
        return false;
    bool goes_on =
        check_go_on(guest, error) && guest_command(guest, "cont", NULL, LIMIT_QMP_DRAIN_MS, error);
    quiesce_hand_back(guest);
    return goes_on;
}
