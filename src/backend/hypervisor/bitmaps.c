/*
 * See bitmaps.h.
 */
#include "backend/hypervisor/bitmaps.h"

#include "backend/hypervisor/block_jobs.h"
#include "base/limits.h"
#include "io/loop.h"

#include <string.h>

#define PREFIX "since-"
#define IDLE_LOOKS 8 /* in a row, since a busy guest is idle for moments only */
#define IDLE_PAUSE_MS 3

static char *numbered(const struct guest *guest, guint number)
{
    return g_strdup_printf(PREFIX "%u-%s-%s", number, guest->replica, guest->replica_images);
}

char *bitmaps_name(const struct guest *guest)
{
    return numbered(guest, guest->written.number);
}

/* --- single ones --- */

bool bitmap_add(struct guest *guest, const char *node, const char *name, bool recording,
                GError **error)
{
    return guest_command(guest, "block-dirty-bitmap-add",
                         json_make("{s:s,s:s,s:i,s:b}", "node", node, "name", name, "granularity",
                                   BITMAP_GRANULARITY, "disabled", !recording),
                         LIMIT_QMP_COMMAND_MS, error);
}

bool bitmap_remove(struct guest *guest, const char *node, const char *name, GError **error)
{
    GError *failure = NULL;
    bool done = guest_command(guest, "block-dirty-bitmap-remove",
                              json_make("{s:s,s:s}", "node", node, "name", name),
                              LIMIT_QMP_COMMAND_MS, &failure);
    return block_jobs_absent_is_fine(done, &failure, error);
}

/* --- looking --- */

static json_t *ask_nodes(struct guest *guest, GError **error)
{
    return guest_execute(guest, "query-named-block-nodes", json_make("{s:b}", "flat", 1),
                         LIMIT_QMP_COMMAND_MS, error);
}

static const json_t *bitmaps_of(const json_t *nodes, guint disk)
{
    g_autofree char *device = block_jobs_disk(disk);
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        if (g_strcmp0(json_string_value(json_object_get(node, "node-name")), device) == 0)
            return json_object_get(node, "dirty-bitmaps");
    }
    return NULL;
}

static const json_t *find_bitmap(const json_t *nodes, guint disk, const char *name)
{
    const json_t *bitmaps = bitmaps_of(nodes, disk);
    for (size_t i = 0; i < json_array_size(bitmaps); i++) {
        const json_t *bitmap = json_array_get(bitmaps, i);
        if (g_strcmp0(json_string_value(json_object_get(bitmap, "name")), name) == 0)
            return bitmap;
    }
    return NULL;
}

bool bitmaps_count(struct guest *guest, const char *name, guint64 *ret_bytes, GError **error)
{
    json_autoptr nodes = ask_nodes(guest, error);
    guint64 bytes = 0;
    for (guint i = 0; nodes != NULL && i < guest->disks; i++) {
        const json_t *bitmap = find_bitmap(nodes, i, name);
        if (bitmap == NULL) {
            fettle_set_error(error, HYPERVISOR, "guest %s: disk %u has no bitmap %s", guest->name,
                             i, name);
            return false;
        }
        bytes += (guint64)json_integer_value(json_object_get(bitmap, "count"));
    }
    *ret_bytes = bytes;
    return nodes != NULL;
}

static bool sweep_disk(struct guest *guest, const json_t *nodes, guint disk, const char *prefix,
                       const char *keep, GError **error)
{
    const json_t *bitmaps = bitmaps_of(nodes, disk);
    g_autofree char *device = block_jobs_disk(disk);
    for (size_t i = 0; i < json_array_size(bitmaps); i++) {
        const json_t *bitmap = json_array_get(bitmaps, i);
        const char *name = json_string_value(json_object_get(bitmap, "name"));
        if (name != NULL && g_str_has_prefix(name, prefix) && g_strcmp0(name, keep) != 0 &&
            !bitmap_remove(guest, device, name, error))
            return false;
    }
    return true;
}

bool bitmaps_sweep(struct guest *guest, const char *prefix, const char *keep, GError **error)
{
    json_autoptr nodes = ask_nodes(guest, error);
    for (guint i = 0; nodes != NULL && i < guest->disks; i++)
        if (!sweep_disk(guest, nodes, i, prefix, keep, error))
            return false;
    return nodes != NULL;
}

/* --- what is known --- */

static bool all_record(struct guest *guest, const char *name)
{
    json_autoptr nodes = ask_nodes(guest, NULL);
    for (guint i = 0; i < guest->disks; i++) {
        const json_t *bitmap = find_bitmap(nodes, i, name);
        if (!json_is_true(json_object_get(bitmap, "recording")) ||
            json_is_true(json_object_get(bitmap, "inconsistent")))
            return false;
    }
    return guest->disks > 0;
}

bool bitmaps_know(struct guest *guest, const struct export_target *target)
{
    g_autofree char *name = bitmaps_name(guest);
    bool same = strcmp(guest->replica, target->replica) == 0 && target->images[0] != '\0' &&
                strcmp(guest->replica_images, target->images) == 0;
    if (guest->written.number != 0 && same && all_record(guest, name))
        return true;
    bitmaps_void(guest);
    return false;
}

void bitmaps_void(struct guest *guest)
{
    guest->written.number = guest->written.next = 0;
    guest->written.swept = bitmaps_sweep(guest, PREFIX, NULL, NULL);
}

/* --- new ones for old --- */

static void put_off(struct guest *guest)
{
    guest->written.next = 0;
    guest->written.swept = false;
    guest->written.turned_ms = loop_boot_ms();
}

static void begin_next(struct guest *guest)
{
    guint number = ++guest->attachment;
    g_autofree char *name = numbered(guest, number);
    guint64 done = guest->written.done;
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *device = block_jobs_disk(i);
        if (!bitmap_add(guest, device, name, true, NULL)) {
            put_off(guest);
            return;
        }
    }
    guest->written.next = number;
    guest->written.begun_at = done;
}

static bool seen_idle(struct guest *guest)
{
    for (guint i = 0; i < IDLE_LOOKS && guest->mirror.attached; i++) {
        struct jobs_progress progress;
        json_autoptr jobs =
            guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, NULL);
        if (jobs == NULL)
            return false;
        block_jobs_look(guest, &guest->mirror, jobs, &progress);
        if (progress.state != MIRROR_READY || progress.idle)
            return progress.idle;
        if (!loop_sleep(IDLE_PAUSE_MS))
            return false;
    }
    return false;
}

/* On record before the old ones go: whoever reads that finds bitmaps that tell everything. */
static void turn(struct guest *guest)
{
    guint before = guest->written.number;
    guest->written.number = guest->written.next;
    if (!guest_state_write(guest, NULL)) {
        guest->written.number = before;
        return;
    }
    g_autofree char *name = bitmaps_name(guest);
    guest->written.next = 0;
    guest->written.turned_ms = loop_boot_ms();
    guest->written.swept = bitmaps_sweep(guest, PREFIX, name, NULL);
}

static bool is_due(const struct written *written)
{
    return written->number == 0 || (written->done != written->begun_at &&
                                    loop_boot_ms() - written->turned_ms >= WRITTEN_TURN_MS);
}

static bool is_swept(struct guest *guest)
{
    g_autofree char *name = bitmaps_name(guest);
    if (!guest->written.swept)
        guest->written.swept = bitmaps_sweep(guest, PREFIX, name, NULL);
    return guest->written.swept;
}

void mirror_remember(struct hypervisor *hv, const char *instance, guint64 generation)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, NULL);
    if (guest == NULL || !guest->mirror.attached || guest->incremental.active ||
        guest->replica_images[0] == '\0' || guest->migration.side != SIDE_NONE)
        return;
    guint number = guest->mirror.number;
    if (guest->written.next == 0 && is_due(&guest->written) && is_swept(guest))
        begin_next(guest);
    if (guest->written.next != 0 && seen_idle(guest) && guest->mirror.attached &&
        guest->mirror.number == number)
        turn(guest);
}
