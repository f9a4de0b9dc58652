/*
 * The calls of the QEMU driver that are one command each, and what the host offers. Starting:
 * prepare.c; asking: qemu_query.c; mirrors: mirror.c; migration: migrate.c, incoming.c.
 */
#include "backend/hypervisor/qemu.h"

#include "backend/hypervisor/accel.h"
#include "backend/hypervisor/pool.h"
#include "backend/hypervisor/qemu_private.h"
#include "backend/hypervisor/quiesce.h"
#include "backend/hypervisor/relay.h"
#include "base/limits.h"
#include "io/loop.h"

#include <stdio.h>
#include <string.h>

#define LEAVE_WAIT_MS 3000 /* of a process whose guest has gone elsewhere */

static void qemu_set_events(struct hypervisor *hv, const struct hypervisor_events *events)
{
    ((struct qemu *)hv)->events = *events;
}

/* --- running --- */

static bool simple_command(struct hypervisor *hv, const char *instance, guint64 generation,
                           const char *command, guint timeout_ms, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    return guest != NULL && guest_command(guest, command, NULL, timeout_ms, error);
}

static bool check_run(struct guest *guest, GError **error)
{
    enum migration_step step = STEP_NONE;
    if (!incoming_check_arrived(guest, error) || !migrate_step(guest, &step, error))
        return false;
    if (step == STEP_DONE) {
        fettle_set_error(error, WRONG_STATE, "guest %s has moved away; it never runs here again",
                         guest->name);
        return false;
    }
    return true;
}

static bool run_guest(struct guest *guest, GError **error)
{
    /* From here on its images may differ from those of a mirror that has ended. */
    guest->finished = false;
    if (!guest_command(guest, "cont", NULL, LIMIT_QMP_DRAIN_MS, error))
        return false;
    if (guest->migration.side != SIDE_TARGET)
        return true;
    /* From here on an incoming guest is one like any other. */
    migration_reset(&guest->migration);
    return guest_state_write(guest, error);
}

static bool qemu_run(struct hypervisor *hv, const char *instance, guint64 generation,
                     GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL || !check_run(guest, error) || !quiesce_take_over(guest, error))
        return false;
    bool runs = run_guest(guest, error);
    quiesce_hand_back(guest);
    return runs;
}

static bool qemu_pause(struct hypervisor *hv, const char *instance, guint64 generation,
                       GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL || !quiesce_take_over(guest, error))
        return false;
    bool paused = guest_command(guest, "stop", NULL, LIMIT_QMP_DRAIN_MS, error);
    quiesce_hand_back(guest);
    return paused;
}

static bool qemu_powerdown(struct hypervisor *hv, const char *instance, guint64 generation,
                           GError **error)
{
    return simple_command(hv, instance, generation, "system_powerdown", LIMIT_QMP_COMMAND_MS,
                          error);
}

static bool qemu_reset(struct hypervisor *hv, const char *instance, guint64 generation,
                       GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    g_autofree char *status = NULL;
    if (guest == NULL || !quiesce_hold(guest, error))
        return false;
    /* One that QEMU has stopped by itself would wait to be started after it. */
    bool reset =
        guest_status(guest, &status, error) &&
        guest_command(guest, "system_reset", NULL, LIMIT_QMP_DRAIN_MS, error) &&
        (!disk_io_stopped(status) || guest_command(guest, "cont", NULL, LIMIT_QMP_DRAIN_MS, error));
    quiesce_hand_back(guest);
    return reset;
}

/* Who has images of a Ceph open and is killed counts as there for half a minute, for which the
 * guest's writes wait where it has gone to; who ends by himself says so. */
static void let_leave(struct guest *guest)
{
    if (guest->migration.side != SIDE_SOURCE || !guest->migration.sent || !volume_in_pool(guest))
        return;
    guest_command(guest, "quit", NULL, LEAVE_WAIT_MS, NULL);
    process_wait(guest->process, LEAVE_WAIT_MS);
}

static bool qemu_kill(struct hypervisor *hv, const char *instance, guint64 generation,
                      GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    if (g_hash_table_contains(qemu->starting, instance)) {
        fettle_set_error(error, WRONG_STATE, "the guest of instance %s is being started", instance);
        return false;
    }
    if (g_hash_table_lookup(qemu->guests, instance) == NULL)
        return true;
    guest_autoptr guest = guest_find(qemu, instance, generation, error);
    if (guest == NULL)
        return false;
    guest->killed = true;
    let_leave(guest);
    if (process_kill(guest->process, error) && relay_end(guest, error)) {
        guest_remove_leftovers(guest);
        return true;
    }
    g_prefix_error(error, "guest %s: ", guest->name);
    return false;
}

/* RARP from the host's side of each network card; more than once, since the first may be lost on a
 * bridge that is still learning. */
static bool qemu_announce(struct hypervisor *hv, const char *instance, guint64 generation,
                          GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    return guest != NULL && guest_command(guest, "announce-self",
                                          json_make("{s:i,s:i,s:i,s:i}", "initial", 50, "max", 550,
                                                    "rounds", 5, "step", 100),
                                          LIMIT_QMP_COMMAND_MS, error);
}

static bool check_resize(const struct guest *guest, guint disk, GError **error)
{
    if (!incoming_check_arrived(guest, error))
        return false;
    if (disk >= guest->disks) {
        fettle_set_error(error, WRONG_INPUT, "guest %s has no disk %u, but %u disks", guest->name,
                         disk, guest->disks);
        return false;
    }
    if (guest->mirror.attached || guest->copy.attached) {
        fettle_set_error(error, WRONG_STATE,
                         "guest %s: disk %u cannot change its size while it is mirrored; release "
                         "the mirror first",
                         guest->name, disk);
        return false;
    }
    return true;
}

static bool qemu_disk_resize(struct hypervisor *hv, const char *instance, guint64 generation,
                             guint disk, guint64 bytes, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL || !check_resize(guest, disk, error))
        return false;
    g_autofree char *node = g_strdup_printf("d%u", disk);
    return guest_command(guest, "block_resize",
                         json_make("{s:s,s:I}", "node-name", node, "size", (json_int_t)bytes),
                         LIMIT_QMP_DRAIN_MS, error);
}

/* --- the host --- */

/* "QEMU emulator version 7.2.22 (Debian …)" */
static void read_version(struct qemu *qemu)
{
    const char *argv[] = {"qemu-system-x86_64", "--version", NULL};
    g_autofree char *said = NULL;
    if (g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL,
                     NULL, NULL, &said, NULL, NULL, NULL) &&
        said != NULL)
        sscanf(said, "QEMU emulator version %31[0-9.]", qemu->version);
}

/* Of the program that the next guest gets, so it is looked up once for each node daemon: an upgrade
 * of QEMU restarts that. */
static const char *qemu_version(struct hypervisor *hv)
{
    struct qemu *qemu = (struct qemu *)hv;
    if (qemu->version[0] == '\0')
        read_version(qemu);
    return qemu->version;
}

/* A line "NAME: N kB" of /proc/meminfo, in MiB; 0 if there is none. */
static guint64 meminfo_mib(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line != NULL ? g_ascii_strtoull(line + strlen(name), NULL, 10) / 1024 : 0;
}

static bool qemu_host(struct hypervisor *hv, guint64 *ret_memory_total, guint64 *ret_memory_free,
                      guint *ret_cpus)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/meminfo", &text, NULL, NULL) ||
        meminfo_mib(text, "MemTotal:") == 0)
        return false;
    *ret_memory_total = meminfo_mib(text, "MemTotal:");
    *ret_memory_free = meminfo_mib(text, "MemAvailable:");
    *ret_cpus = g_get_num_processors();
    return true;
}

static char *qemu_without_kvm(struct hypervisor *hv)
{
    return accel_without_kvm(((struct qemu *)hv)->accel);
}

static guint qemu_users(struct hypervisor *hv, guint *ret_used)
{
    return guest_users_count(((struct qemu *)hv)->users, ret_used);
}

static const struct hypervisor_ops qemu_ops = {
    .set_events = qemu_set_events,
    .prepare = qemu_prepare,
    .run = qemu_run,
    .pause = qemu_pause,
    .powerdown = qemu_powerdown,
    .reset = qemu_reset,
    .kill = qemu_kill,
    .query = qemu_query,
    .io_query = qemu_io_query,
    .figures = qemu_figures,
    .drives = qemu_drives,
    .go_on = qemu_go_on,
    .mirror_start = mirror_start,
    .mirror_finish = mirror_finish,
    .mirror_release = mirror_release,
    .mirror_remember = mirror_remember,
    .incoming_prepare = incoming_prepare,
    .incoming_finish = incoming_finish,
    .migrate_start = migrate_start,
    .migrate_query = migrate_query,
    .migrate_continue = migrate_continue,
    .migrate_cancel = migrate_cancel,
    .announce = qemu_announce,
    .disk_resize = qemu_disk_resize,
    .pool_look = pool_look,
    .volume_open = volume_open,
    .volume_attach = volume_attach,
    .volume_resize = volume_resize,
    .volume_detach = volume_detach,
    .point_open = point_open,
    .point_look = point_look,
    .point_close = point_close,
    .console_read = qemu_console_read,
    .console_write = qemu_console_write,
    .version = qemu_version,
    .without_kvm = qemu_without_kvm,
    .rediscover = qemu_rediscover,
    .strays = qemu_strays,
    .host = qemu_host,
    .users = qemu_users,
};

struct hypervisor *qemu_new(const struct node_paths *paths, struct guest_users *users)
{
    struct qemu *qemu = g_new0(struct qemu, 1);
    qemu->base.ops = &qemu_ops;
    qemu->paths = paths;
    qemu->users = users;
    qemu->tasks = task_group_new();
    const struct accel_options usual = {.uid = guest_users_shared(users)};
    qemu->accel = accel_new(paths, qemu->tasks, &usual);
    qemu->starting = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    qemu->guests =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)guest_unref);
    consoles_watch(qemu);
    return &qemu->base;
}

void qemu_free(struct hypervisor *hypervisor)
{
    struct qemu *qemu = (struct qemu *)hypervisor;
    if (qemu == NULL)
        return;
    loop_timer_cancel(qemu->trimming);
    task_group_kill(qemu->tasks);
    task_group_unref(qemu->tasks);
    accel_unref(qemu->accel);
    g_hash_table_unref(qemu->starting);
    g_hash_table_unref(qemu->guests);
    g_free(qemu);
}
