/*
 * Exports of replicas: one nbdkit process with the fail-stop plugin per disk (SAF-14), a fresh key
 * and free ports for each opening. They outlive the node daemon; run/exports/REPLICA.json names
 * them.
 *
 * An opening is all or nothing, and stays so: when one of a replica's exports ends, the others are
 * ended too.
 */
#include "backend/psk.h"
#include "backend/storage/export_private.h"
#include "backend/storage/nbd_greeting.h"
#include "backend/storage/settle.h"
#include "base/limits.h"
#include "io/crash.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct export *export_new(struct file_storage *storage, struct export_state *state)
{
    struct export *export = g_new0(struct export, 1);
    export->storage = storage;
    export->state = state;
    export->processes = g_ptr_array_new_with_free_func((GDestroyNotify)process_free);
    return export;
}

void export_free(void *data)
{
    struct export *export = data;
    guest_users_give_back(export->storage->users, export->user);
    g_ptr_array_unref(export->processes);
    export_state_free(export->state);
    g_free(export);
}

static struct export *export_find(const struct file_storage *storage, const char *replica)
{
    return g_hash_table_lookup(storage->exports, replica);
}

static bool export_alive(const struct export *export)
{
    return !export->ended && !export->closing &&
           export->processes->len == export->state->target->disks->len;
}

bool export_is_open(const struct file_storage *storage, const char *replica)
{
    const struct export *export = export_find(storage, replica);
    if (export == NULL)
        return false;
    for (guint i = 0; i < export->processes->len; i++)
        if (!process_ended(export->processes->pdata[i]))
            return true;
    return false;
}

void export_process_exited(struct process *process, void *data)
{
    struct export *export = data;
    if (export->closing || export->ended)
        return;
    export->ended = true;
    for (guint i = 0; i < export->processes->len; i++)
        process_signal(export->processes->pdata[i], SIGKILL);
    const struct storage_events *events = &export->storage->events;
    const struct export_state *state = export->state;
    if (events->export_ended != NULL)
        events->export_ended(state->instance, state->target->replica, state->generation,
                             events->data);
}

/* --- opening and closing --- */

/* SIGKILL, exits seen, files removed; the export is forgotten. Killing is clean: every answered
 * write is in the file, and what may be promised to anybody is synced. */
static bool close_export(struct export *export, GError **error)
{
    struct file_storage *storage = export->storage;
    export->closing = true;
    for (guint i = 0; i < export->processes->len; i++)
        process_signal(export->processes->pdata[i], SIGKILL);
    for (guint i = 0; i < export->processes->len; i++)
        if (!process_kill(export->processes->pdata[i], error))
            return false;
    g_autofree char *replica = g_strdup(export->state->target->replica);
    export_state_remove(storage->paths, export->state);
    g_hash_table_remove(storage->exports, replica);
    return true;
}

static struct export_target *new_target(const char *replica, const char *address, guint64 history,
                                        guint64 generation, guint disks)
{
    struct export_target *target = export_target_new();
    g_free(target->replica);
    g_free(target->address);
    g_free(target->psk);
    target->replica = g_strdup(replica);
    target->address = g_strdup(address);
    target->psk = psk_new();
    for (guint i = 0; i < disks; i++) {
        struct export_disk *disk = export_disk_new();
        g_free(disk->name);
        disk->name = g_strdup_printf("%" G_GUINT64_FORMAT ".%s.%" G_GUINT64_FORMAT ".%u", history,
                                     replica, generation, i);
        disk->port = 1; /* not chosen yet; a number that a record may have */
        g_ptr_array_add(target->disks, disk);
    }
    return target;
}

/* What is open already is kept if it is the same, refused if it is newer, closed if it is older or
 * broken. */
static bool settle_existing(struct export *existing, guint64 history, guint64 generation,
                            guint disks, bool *ret_keep, GError **error)
{
    const struct export_state *state = existing->state;
    int order = stamp_compare((struct stamp){state->history, state->generation},
                              (struct stamp){history, generation});
    *ret_keep = order == 0 && export_alive(existing) && state->target->disks->len == disks;
    if (*ret_keep)
        return true;
    if (order > 0) {
        fettle_set_error(error, REFUSED,
                         "replica %s is exported for history %" G_GUINT64_FORMAT
                         ", generation %" G_GUINT64_FORMAT
                         ", which is newer than %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT,
                         state->target->replica, state->history, state->generation, history,
                         generation);
        return false;
    }
    return close_export(existing, error);
}

/* The plugin hands out the bytes of the file: those of a qcow2 file are not the disk's. */
static bool check_raw(const GPtrArray *images, GError **error)
{
    for (guint i = 0; i < images->len; i++)
        if (!g_str_has_suffix(images->pdata[i], ".raw")) {
            fettle_set_error(error, WRONG_STATE,
                             "image %s cannot be exported: only those in format raw can",
                             (const char *)images->pdata[i]);
            return false;
        }
    return true;
}

/* --- settling --- */

static int control_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    crash_point("export: settle");
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Holds nothing of the export while it waits: that may be closed meanwhile, and then its processes
 * do not answer. */
static bool settle(const struct export *export, GError **error)
{
    static const struct greeting settled = {SETTLED, sizeof SETTLED - 1, NULL, 0};
    g_autofree char *replica = g_strdup(export->state->target->replica);
    guint count = export->processes->len;
    int fds[LIMIT_DISKS];
    if (export->durable)
        return true;
    g_assert(count <= LIMIT_DISKS);
    for (guint i = 0; i < count; i++) {
        g_autofree char *path = export_disk_path(export, EXPORT_CONTROL, i);
        fds[i] = control_connect(path);
    }
    if (nbd_greeting_await(&settled, fds, count, LIMIT_SETTLE_MS))
        return true;
    fettle_set_error(error, STORAGE,
                     "the exports of replica %s have not said within %u ms that everything is on "
                     "stable storage; nothing is promised, ask again",
                     replica, LIMIT_SETTLE_MS);
    return false;
}

bool export_settle(struct storage *base, const struct export_target *target, GError **error)
{
    struct file_storage *storage = (struct file_storage *)base;
    const struct export *export = export_find(storage, target->replica);
    /* Each opening has a key of its own. */
    if (export == NULL || !export_alive(export) ||
        strcmp(export->state->target->psk, target->psk) != 0) {
        fettle_set_error(error, WRONG_STATE,
                         "the exports of replica %s that this mirror was attached to are closed",
                         target->replica);
        return false;
    }
    return settle(export, error);
}

static struct export_target *open_locked(struct file_storage *storage, guint64 history,
                                         const char *instance, const char *replica,
                                         guint64 generation, guint disks, const char *address,
                                         bool durable, GError **error)
{
    g_autoptr(GPtrArray) images =
        file_storage_files(&storage->base, instance, replica, disks, error);
    if (images == NULL || !check_raw(images, error))
        return NULL;
    struct export *export = export_find(storage, replica);
    bool keep = false;
    if (export != NULL && !settle_existing(export, history, generation, disks, &keep, error))
        return NULL;
    if (keep)
        return !durable || settle(export, error) ? export_target_copy(export->state->target) : NULL;
    struct export_target *target = new_target(replica, address, history, generation, disks);
    export = export_new(storage, export_state_new(instance, history, generation, target));
    export->durable = durable;
    g_hash_table_insert(storage->exports, g_strdup(replica), export);
    if (export_start(export, images, error))
        return export_target_copy(target);
    /* If not even this succeeds, the next opening tries again; the first reason is the one to tell.
     */
    close_export(export, NULL);
    return NULL;
}

bool export_open(struct storage *base, guint64 history, const char *instance, const char *replica,
                 guint64 generation, const GPtrArray *disks, const char *address, bool durable,
                 struct export_target **ret_target, GError **error)
{
    struct file_storage *storage = (struct file_storage *)base;
    if (!images_check_names(instance, replica, error))
        return false;
    if (!task_mutex_lock(&storage->opening)) {
        fettle_set_error(error, KILLED, "the process that opened an export has ended");
        return false;
    }
    struct export_target *target = open_locked(storage, history, instance, replica, generation,
                                               disks->len, address, durable, error);
    task_mutex_unlock(&storage->opening);
    if (target != NULL)
        *ret_target = target;
    return target != NULL;
}

bool export_close(struct storage *base, const char *instance, const char *replica, GError **error)
{
    struct file_storage *storage = (struct file_storage *)base;
    if (!task_mutex_lock(&storage->opening)) {
        fettle_set_error(error, KILLED, "the process that closed an export has ended");
        return false;
    }
    struct export *export = export_find(storage, replica);
    bool closed = export == NULL || close_export(export, error);
    task_mutex_unlock(&storage->opening);
    return closed && file_storage_sync(base, instance, replica, error);
}

/* --- after a restart --- */

/* Adopts what still lives. A process whose pid could not be written down any more is found by its
 * image. */
static void adopt_processes(struct export *export)
{
    const struct export_state *state = export->state;
    for (guint i = 0; i < state->processes->len; i++) {
        struct export_process name = g_array_index(state->processes, struct export_process, i);
        if (name.pid == 0) {
            g_autofree char *image = images_path(export->storage->images.disks, state->instance,
                                                 state->target->replica, i, FORMAT_RAW);
            g_autofree char *argument = g_strconcat("file=", image, NULL);
            name.pid = process_find_by_argument(argument);
            name.start_ticks = name.pid != 0 ? process_read_start_ticks(name.pid) : 0;
            export->ended = true; /* it was never opened as a whole */
        }
        struct process *process =
            process_adopt(name.pid, name.start_ticks, export_process_exited, export, NULL);
        if (process != NULL)
            g_ptr_array_add(export->processes, process);
        else
            export->ended = true;
    }
}

static void rediscover_one(struct file_storage *storage, struct export_state *state,
                           GPtrArray *reports)
{
    struct export *export = export_new(storage, state);
    export->closing = true;
    adopt_processes(export);
    export->closing = false;
    g_hash_table_insert(storage->exports, g_strdup(state->target->replica), export);
    if (!export_alive(export)) {
        close_export(export, NULL);
        return;
    }
    struct replica_report *report = replica_report_new();
    g_free(report->instance);
    g_free(report->replica);
    report->instance = g_strdup(state->instance);
    report->replica = g_strdup(state->target->replica);
    report->generation = state->generation;
    report->exported = true;
    g_ptr_array_add(reports, report);
}

GPtrArray *export_rediscover(struct storage *base, GError **error)
{
    struct file_storage *storage = (struct file_storage *)base;
    g_autoptr(GPtrArray) states = export_state_read_all(storage->paths, error);
    if (states == NULL)
        return NULL;
    GPtrArray *reports = g_ptr_array_new_with_free_func((GDestroyNotify)replica_report_free);
    for (guint i = 0; i < states->len; i++) {
        struct export_state *state = g_steal_pointer(&states->pdata[i]);
        if (export_find(storage, state->target->replica) == NULL)
            rediscover_one(storage, state, reports);
        else
            export_state_free(state);
    }
    return reports;
}
