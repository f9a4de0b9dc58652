/*
 * What a guest has done since its process was made, for monitoring: from /proc, and from its
 * monitor, which is asked two things. Of the former there is an answer also while the latter is
 * silent.
 */
#include "backend/hypervisor/block_jobs.h"
#include "backend/hypervisor/qemu_private.h"
#include "backend/hypervisor/relay_private.h"
#include "io/loop.h"

static guint64 number_of(const json_t *stats, const char *name)
{
    return (guint64)MAX(json_integer_value(json_object_get(stats, name)), 0);
}

static struct drive_stats *drive_of(const json_t *entry, char *name)
{
    const json_t *stats = json_object_get(entry, "stats");
    struct drive_stats *drive = drive_stats_new();
    g_free(drive->name);
    drive->name = name;
    drive->read_bytes = number_of(stats, "rd_bytes");
    drive->written_bytes = number_of(stats, "wr_bytes");
    drive->reads = number_of(stats, "rd_operations");
    drive->writes = number_of(stats, "wr_operations");
    drive->flushes = number_of(stats, "flush_operations");
    drive->read_us = number_of(stats, "rd_total_time_ns") / 1000;
    drive->write_us = number_of(stats, "wr_total_time_ns") / 1000;
    drive->flush_us = number_of(stats, "flush_total_time_ns") / 1000;
    drive->failed = disk_io_failed(entry);
    return drive;
}

static bool look_at_drives(struct guest *guest, struct guest_stats *stats, GError **error)
{
    json_autoptr entries =
        guest_execute(guest, "query-blockstats", NULL, LIMIT_QMP_COMMAND_MS, error);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        char *name = json_is_string(json_object_get(entry, "qdev")) ? disk_io_drive(entry) : NULL;
        if (name && stats->drives->len < LIMIT_STATS_DRIVES)
            g_ptr_array_add(stats->drives, drive_of(entry, name));
        else
            g_free(name);
    }
    return entries != NULL;
}

static bool look_at_mirror(struct guest *guest, struct guest_stats *stats, GError **error)
{
    struct jobs_progress progress;
    if (!guest->mirror.attached)
        return true;
    json_autoptr jobs = guest_execute(guest, "query-block-jobs", NULL, LIMIT_QMP_COMMAND_MS, error);
    if (!jobs)
        return false;
    block_jobs_look(guest, &guest->mirror, jobs, &progress);
    stats->lag_bytes = progress.all > progress.done ? progress.all - progress.done : 0;
    return true;
}

static void look_at_relay(const struct guest *guest, struct guest_stats *stats)
{
    const struct relay *relay = guest->relay;
    if (!relay)
        return;
    stats->relay = !relay->process   ? RELAY_AWAY
                   : relay->refusing ? RELAY_REFUSING
                                     : RELAY_FORWARDING;
    stats->relay_starts = relay->number;
    stats->relay_away_ms = relay->ended_ms ? (guint64)MAX(loop_boot_ms() - relay->ended_ms, 0) : 0;
}

bool qemu_figures(struct hypervisor *hv, const char *instance, guint64 generation,
                  struct guest_stats *stats, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (!guest)
        return false;
    if (guest->process)
        process_figures(process_pid(guest->process), &stats->cpu_us, &stats->resident_bytes,
                        &stats->uptime_us);
    look_at_relay(guest, stats);
    return look_at_drives(guest, stats, error) && look_at_mirror(guest, stats, error);
}
