/*
 * Hosts without QEMU: disks that fail, disks without room, and the guests that stand still because
 * of it; see fake_hv.h.
 */
#include "helper/fake_hv_private.h"

/* --- what is held --- */

guint fake_guest_under_way(const struct fake_guest *guest)
{
    guint count = 0;
    for (guint i = 0; i < guest->writes->len; i++)
        count += !g_array_index(guest->writes, struct fake_write, i).stopped;
    return count;
}

void fake_guest_stands_no_more(const struct fake_guest *guest)
{
    struct fake_host *host = guest->host;
    gint64 now_ms = host->env->ops->boot_ms(host->env);
    if (guest->io.stop != IO_STOP_NONE)
        g_hash_table_replace(host->stood, g_strdup(guest->instance),
                             g_memdup2(&now_ms, sizeof now_ms));
}

void fake_guest_repeat(struct fake_guest *guest)
{
    for (guint i = 0; i < guest->writes->len; i++) {
        struct fake_write *write = &g_array_index(guest->writes, struct fake_write, i);
        if (write->stopped)
            fake_truth_issue(guest, write); /* by this generation, if the guest has moved */
        write->stopped = false;
    }
    fake_guest_stands_no_more(guest);
    guest->io.stop = IO_STOP_NONE;
    guest->finished = false;
    fake_guest_wake(guest);
}

bool fake_host_stood_still(const struct fake_host *host, const char *instance, guint within_ms)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    gint64 now_ms = host->env->ops->boot_ms(host->env);
    const gint64 *until_ms = g_hash_table_lookup(host->stood, instance);
    return (guest && guest->io.stop != IO_STOP_NONE) ||
           (until_ms && now_ms - *until_ms < (gint64)within_ms);
}

enum io_stop fake_host_io_stop(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest ? guest->io.stop : IO_STOP_NONE;
}

/* No room: the hypervisor stops the guest, and waits for all other writes, with its monitor, while
 * it does. Its replica gets no such write. */
void fake_guest_finds_no_room(struct fake_guest *guest, struct fake_write *write)
{
    write->stopped = true;
    if (guest->state != GUEST_RUNNING)
        return;
    guest->state = GUEST_PAUSED;
    guest->io.stop = IO_STOP_NO_SPACE;
    guest->disk_short |= guest->host->full;
    guest->volume_short |= !guest->host->full;
}

bool fake_guest_lacks_room(const struct fake_guest *guest)
{
    return guest->host->full ||
           (guest->host->volumes_full && guest->volumes && guest->volumes->len > 0);
}

void fake_host_hold(struct fake_host *host, const char *instance)
{
    struct fake_guest *guest = fake_guest_find(host, instance);
    if (!guest || guest->state != GUEST_RUNNING)
        return;
    guest->state = GUEST_PAUSED;
    guest->io.stop = IO_STOP_FAILED;
    guest->held = true;
}

enum guest_state fake_guest_told(const struct fake_guest *guest)
{
    bool held = guest->state == GUEST_PAUSED && guest->io.stop != IO_STOP_NONE;
    return held ? GUEST_RUNNING : guest->state;
}

/* --- ops --- */

static bool io_query_fails(const struct fake_host *host, GError **error)
{
    struct made_fault *fault = g_hash_table_lookup(host->faults, "io_query");
    if (!fault || fault->count == 0)
        return false;
    fault->count--;
    fettle_set_error(error, HYPERVISOR, "io_query: failed as the test wanted");
    return true;
}

/* In no time: it goes with each query. */
static bool op_io_query(struct hypervisor *hv, const char *instance, guint64 generation,
                        struct io_info *ret_io, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    if (io_query_fails(host, error))
        return false;
    struct fake_guest *guest = NULL;
    if (fake_guest_find(host, instance)) {
        guest = fake_guest_for(host, instance, generation, error);
        if (!guest)
            return false;
    }
    *ret_io = guest ? guest->io : (struct io_info){0};
    return true;
}

/* One drive, which has read as much as its guest is old. */
static bool op_figures(struct hypervisor *hv, const char *instance, guint64 generation,
                       struct guest_stats *stats, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    if (!fake_guest_for(host, instance, generation, error) || io_query_fails(host, error))
        return false;
    struct drive_stats *drive = drive_stats_new();
    g_free(drive->name);
    drive->name = g_strdup("vd0");
    drive->read_bytes = generation * 512;
    g_ptr_array_add(stats->drives, drive);
    return true;
}

static GPtrArray *op_drives(struct hypervisor *hv, const char *instance, guint64 generation,
                            bool short_of_room, GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    const struct fake_guest *guest = fake_op_begin(host, "drives", instance, NULL, error)
                                         ? fake_guest_for(host, instance, generation, error)
                                         : NULL;
    if (!guest)
        return NULL;
    GPtrArray *drives = g_ptr_array_new_with_free_func(g_free);
    bool disks = guest->image && (!short_of_room || guest->disk_short);
    bool volumes = guest->volumes && (!short_of_room || guest->volume_short);
    for (guint i = 0; disks && i < guest->image->count / FAKE_BLOCKS; i++)
        g_ptr_array_add(drives, g_strdup_printf("vd%u", i));
    for (guint i = 0; volumes && i < guest->volumes->len; i++)
        g_ptr_array_add(drives,
                        g_strdup_printf(VOLUME_DRIVE, (const char *)guest->volumes->pdata[i]));
    return drives;
}

static bool go_on_now(struct fake_guest *guest, GError **error)
{
    if (guest->state != GUEST_PAUSED || guest->io.stop == IO_STOP_NONE || guest->finished ||
        guest->to) {
        fettle_set_error(error, WRONG_STATE, "%s is not only stopped for lack of room",
                         guest->instance);
        return false;
    }
    if (guest->held)
        return true;
    fake_truth_resume(guest);
    guest->state = GUEST_RUNNING;
    fake_guest_repeat(guest);
    return true;
}

static bool op_go_on(struct hypervisor *hv, const char *instance, guint64 generation,
                     GError **error)
{
    struct fake_host *host = fake_host_of_hv(hv);
    bool late;
    if (!fake_op_begin(host, "go_on", instance, &late, error))
        return false;
    struct fake_guest *guest = fake_guest_for(host, instance, generation, error);
    return fake_op_end(host, "go_on", late, guest && go_on_now(guest, error), error);
}

GPtrArray *fake_op_sizes(struct storage *storage, const char *instance, bool shared, guint count,
                         GError **error)
{
    struct fake_host *host =
        (struct fake_host *)((char *)storage - G_STRUCT_OFFSET(struct fake_host, storage));
    if (!fake_op_begin(host, "sizes", instance, NULL, error))
        return NULL;
    const struct fake_image *image = fake_image_find(host, instance, "");
    GPtrArray *disks = g_ptr_array_new_with_free_func((GDestroyNotify)sight_disk_free);
    for (guint i = 0; i < count; i++) {
        struct sight_disk *disk = sight_disk_new();
        if (image && !(image->lost >> i & 1))
            disk->bytes = image->size_mib[i] * 1024 * 1024;
        g_ptr_array_add(disks, disk);
    }
    return disks;
}

void fake_room_fill(struct hypervisor_ops *ops)
{
    fake_attach_fill(ops);
    ops->io_query = op_io_query;
    ops->figures = op_figures;
    ops->drives = op_drives;
    ops->go_on = op_go_on;
}

/* --- what a test does --- */

void fake_host_set_full(struct fake_host *host, bool full)
{
    host->full = full;
}

void fake_host_set_volumes_full(struct fake_host *host, bool full)
{
    host->volumes_full = full;
}

bool fake_host_is_full(const struct fake_host *host)
{
    return host->full;
}

void fake_host_set_space_lies(struct fake_host *host, bool lies)
{
    host->space_lies = lies;
}

void fake_host_guest_pause(struct fake_host *host, const char *instance, bool paused)
{
    struct fake_guest *guest = fake_guest_find(host, instance);
    if (guest && guest->state == (paused ? GUEST_RUNNING : GUEST_PAUSED))
        guest->state = paused ? GUEST_PAUSED : GUEST_RUNNING;
}

bool fake_host_frozen(const struct fake_host *host, const char *instance)
{
    const struct fake_guest *guest = fake_guest_find(host, instance);
    return guest && guest->frozen;
}

bool fake_host_disks_failed(const struct fake_host *host)
{
    return host->disks_failed;
}

void fake_host_set_disks_failed(struct fake_host *host, bool failed)
{
    host->disks_failed = failed;
}

bool fake_room_look_at(struct storage *storage, const char *path, struct storage_file *ret_file,
                       GError **error)
{
    struct fake_host *host =
        (struct fake_host *)((char *)storage - G_STRUCT_OFFSET(struct fake_host, storage));
    if (!fake_op_begin(host, "look_at", "", NULL, error))
        return false;
    guint64 free_mib = host->volumes_full && !host->space_lies ? 0 : 1024;
    *ret_file = (struct storage_file){{1024, free_mib}, host->volume_bytes};
    return true;
}
