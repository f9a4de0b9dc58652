/*
 * See relay.h.
 */
#include "backend/hypervisor/relay_private.h"

#include "base/limits.h"
#include "io/crash.h"
#include "io/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RELAY_REVIVE_MS 200 /* between two tries to start one that has ended */

char *relay_socket(const struct guest *guest)
{
    return guest_path(guest, RELAY_SOCKET);
}

bool relay_exists(const struct guest *guest)
{
    return guest->relay != NULL;
}

/* --- which process is there --- */

static void begin_reviving(struct guest *guest);

/* News only if it is the one at the socket, and nobody is about to end it. */
static void relay_exited(struct process *process, void *data)
{
    struct guest *guest = data;
    struct relay *relay = guest->relay;
    if (relay == NULL || relay->process != process || relay->ending || relay->reviving ||
        guest->gone)
        return;
    begin_reviving(guest);
}

/* From now on QEMU connects to this one; the one before is ended, so that QEMU does. */
static bool place(struct guest *guest, struct process *process, GError **error)
{
    struct relay *relay = guest->relay;
    g_autofree char *mine = relay_numbered(guest, relay->number);
    g_autofree char *socket = relay_socket(guest);
    struct process *before = relay->process;
    crash_point("relay: rename socket");
    if (rename(mine, socket) != 0) {
        fettle_set_error(error, STORAGE, "cannot rename %s: %s", mine, g_strerror(errno));
        process_kill(process, NULL);
        process_free(process);
        return false;
    }
    relay->process = process;
    if (before != NULL) {
        if (!process_kill(before, error)) {
            relay->process = before;
            process_kill(process, NULL);
            process_free(process);
            return false;
        }
        process_free(before);
    }
    relay->pid = process_pid(process);
    relay->start_ticks = process_start_ticks(process);
    relay->placed = true;
    relay->refusing = relay->refuse;
    relay->ended_ms = 0;
    return relay_state_write(guest, error);
}

static bool next(struct guest *guest, bool patient, GError **error)
{
    struct process *process = relay_spawn(guest, patient, relay_exited, error);
    return process != NULL && place(guest, process, error);
}

static bool is_well(const struct relay *relay)
{
    return relay->process != NULL && !process_ended(relay->process) &&
           relay->refusing == relay->refuse;
}

/* One task at a time changes it. */
static bool lock(struct guest *guest, GError **error)
{
    if (task_mutex_lock(&guest->relaying))
        return true;
    fettle_set_error(error, KILLED, "the process that saw to a relay has ended");
    return false;
}

/* --- it has ended by itself --- */

static void revive(struct guest *guest)
{
    while (guest->relay != NULL && !guest->gone && lock(guest, NULL)) {
        g_autoptr(GError) error = NULL;
        struct relay *relay = guest->relay;
        bool over = relay == NULL || relay->ending || guest->gone || is_well(relay) ||
                    (next(guest, true, &error) && is_well(relay));
        task_mutex_unlock(&guest->relaying);
        if (over || !loop_sleep(RELAY_REVIVE_MS))
            break;
    }
    if (guest->relay != NULL)
        guest->relay->reviving = false;
}

static void begin_reviving(struct guest *guest)
{
    guest->relay->reviving = true;
    guest->relay->ended_ms = loop_boot_ms();
    guest_spawn(guest, revive);
}

bool relay_is_lost(const struct guest *guest)
{
    const struct relay *relay = guest->relay;
    return relay != NULL && relay->ended_ms != 0 &&
           loop_boot_ms() - relay->ended_ms >= LIMIT_RELAY_LOST_MS;
}

/* --- calls --- */

static bool end_locked(struct guest *guest, GError **error)
{
    struct relay *relay = guest->relay;
    if (relay == NULL)
        return true;
    relay->ending = true;
    if (relay->process != NULL && !process_kill(relay->process, error))
        return false;
    relay_files_remove(guest);
    relay_free(g_steal_pointer(&guest->relay));
    return true;
}

bool relay_end(struct guest *guest, GError **error)
{
    if (!lock(guest, error))
        return false;
    bool ended = end_locked(guest, error);
    task_mutex_unlock(&guest->relaying);
    return ended;
}

static void end_in_background(struct guest *guest)
{
    if (relay_end(guest, NULL))
        guest_remove_leftovers(guest);
}

void relay_abandon(struct guest *guest)
{
    if (guest->relay == NULL)
        return;
    if (guest->relay->process != NULL)
        process_signal(guest->relay->process, SIGKILL);
    guest_spawn(guest, end_in_background);
}

static bool start_locked(struct guest *guest, const struct export_target *target,
                         const guint64 *bytes, GError **error)
{
    if (!end_locked(guest, error))
        return false;
    struct relay *relay = guest->relay = relay_new();
    relay->target = export_target_copy(target);
    memcpy(relay->bytes, bytes, target->disks->len * sizeof *bytes);
    if (relay_files_make(guest, error) && next(guest, false, error))
        return true;
    end_locked(guest, NULL);
    return false;
}

bool relay_start(struct guest *guest, const struct export_target *target, const guint64 *bytes,
                 GError **error)
{
    g_assert(target->disks->len <= LIMIT_DISKS);
    if (!lock(guest, error))
        return false;
    bool started = start_locked(guest, target, bytes, error);
    task_mutex_unlock(&guest->relaying);
    return started;
}

bool relay_refuse(struct guest *guest, GError **error)
{
    if (!lock(guest, error))
        return false;
    struct relay *relay = guest->relay;
    g_assert(relay != NULL);
    relay->refuse = true;
    bool refused = is_well(relay) || next(guest, false, error);
    if (refused && !is_well(relay)) {
        fettle_set_error(error, TEMPORARY, "its relay has ended as soon as it was started");
        refused = false;
    }
    task_mutex_unlock(&guest->relaying);
    return refused;
}

/* --- after a restart --- */

/* A process that was started but not put in its place, or is there without our knowing. */
static void end_unknown(const struct guest *guest)
{
    static const char *const words[] = {RELAY_ARGUMENT, RELAY_ARGUMENT_BEFORE};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *argument = relay_argument(guest, guest->relay->number, words[i]);
        guint64 pid = process_find_by_argument(argument);
        struct process *process =
            process_adopt(pid, pid != 0 ? process_read_start_ticks(pid) : 0, NULL, NULL, NULL);
        if (process != NULL)
            process_kill(process, NULL);
        process_free(process);
    }
}

/* Whether it is the same user's as the guest's QEMU: what is kept may be that user's own words, and
 * whoever is named there gets a signal of ours (SAF-104). */
static bool is_of_guest(const struct guest *guest, const struct process *process)
{
    guint32 uid, wanted = guest->user != 0 ? guest->user : geteuid();
    if (guest->process != NULL && !process_user(guest->process, &wanted))
        return false;
    return process_user(process, &uid) && uid == wanted;
}

/* What is kept is ours from then on, whoever wrote it. */
static void adopt(struct guest *guest)
{
    struct relay *relay = guest->relay;
    relay->process = process_adopt(relay->pid, relay->start_ticks, relay_exited, guest, NULL);
    bool stranger = relay->process != NULL && !is_of_guest(guest, relay->process);
    if (stranger) {
        process_free(g_steal_pointer(&relay->process));
        relay->pid = relay->start_ticks = 0;
    }
    if (stranger || !relay->placed)
        end_unknown(guest);
    relay_state_write(guest, NULL);
}

void relay_rediscover(struct guest *guest)
{
    struct relay *relay = guest->relay = relay_state_read(guest);
    if (relay == NULL)
        return;
    adopt(guest);
    if (guest->process == NULL || guest->gone) {
        relay_end(guest, NULL);
    } else if (!is_well(relay)) {
        begin_reviving(guest);
    }
}
