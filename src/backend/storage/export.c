/*
 * Exports of replicas: one nbdkit process with the fail-stop plugin per disk (SAF-14), a fresh key
 * and free ports for each opening. They outlive the node daemon; run/exports/REPLICA.json names
 * them.
 *
 * An opening is all or nothing, and stays so: when one of a replica's exports ends, the others are
 * ended too.
 */
#include "backend/reach.h"
#include "backend/storage/export_state.h"
#include "backend/storage/greeting.h"
#include "backend/storage/probe.h"
#include "backend/storage/settle.h"
#include "backend/storage/storage_private.h"
#include "base/limits.h"
#include "io/crash.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PLUGIN "fettle-failstop.so"
#define PSK_BYTES 32

struct export
{
    struct file_storage *storage;
    struct export_state *state;
    GPtrArray *processes; /* struct process, one per disk that was started */
    bool closing;         /* by us: an exit is no news */
    bool ended;           /* one has ended by itself */
    bool durable;         /* since it began; unknown, and so false, of an adopted one */
};

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

static void export_process_exited(struct process *process, void *data)
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

/* --- opening --- */

static char *random_psk(void)
{
    guint8 bytes[PSK_BYTES];
    char *hex = g_malloc0(2 * PSK_BYTES + 1);
    ssize_t got = getrandom(bytes, sizeof bytes, 0);
    g_assert(got == (ssize_t)sizeof bytes);
    for (guint i = 0; i < PSK_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    return hex;
}

static char *path_of(const struct export *export, const char *kind)
{
    return export_state_path(export->storage->paths, export->state->target->replica, kind);
}

static char *disk_path_of(const struct export *export, const char *kind, guint disk)
{
    return export_state_disk_path(export->storage->paths, export->state->target->replica, kind,
                                  disk);
}

/* The key as nbdkit wants it. It reads it at each handshake, as the unprivileged user. */
static bool write_psk(const struct export *export, GError **error)
{
    guint32 uid = export->storage->images.uid;
    g_autofree char *path = path_of(export, EXPORT_KEY);
    g_autofree char *line = g_strdup_printf("qemu:%s\n", export->state->target->psk);
    if (!reach_check(path, uid, error) ||
        !files_write_path(path, line, strlen(line), 0600, false, error))
        return false;
    if (uid != 0 && chown(path, uid, uid) != 0) {
        fettle_set_error(error, STORAGE, "cannot change the owner of %s: %s", path,
                         g_strerror(errno));
        return false;
    }
    return true;
}

/* Of the ciphers that go with a key of this kind GnuTLS prefers ChaCha20, which costs ten times as
 * much as AES where the processor helps with that: measured, a third of the speed of a copy. nbdkit
 * lets nobody choose, so the library is told. */
static bool write_tls(const struct export *export, GError **error)
{
    static const char text[] = "[overrides]\ntls-disabled-cipher = CHACHA20-POLY1305\n";
    g_autofree char *path = path_of(export, EXPORT_TLS);
    return files_write_path(path, text, strlen(text), 0644, false, error);
}

static bool processor_helps_with_aes(void)
{
    g_autofree char *text = NULL; /* "flags" of x86, "Features" of Arm; nobody else says it so */
    if (!g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL))
        return false;
    return strstr(text, " aes ") != NULL;
}

/* A port that was free a moment ago; nbdkit cannot be given a bound socket by posix_spawn, since it
 * wants its own pid in the environment. 0 with the error if the address is none of this host. */
static guint free_port(const char *address, GError **error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof bound;
    int failure = getaddrinfo(address, "0", &hints, &found);
    if (failure != 0) {
        fettle_set_error(error, WRONG_INPUT, "address \"%s\" of an export: %s", address,
                         gai_strerror(failure));
        return 0;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
              getsockname(fd, (struct sockaddr *)&bound, &len) == 0;
    if (!ok)
        fettle_set_error(error, ENVIRONMENT, "cannot listen on %s for an export: %s", address,
                         g_strerror(errno));
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    if (!ok)
        return 0;
    return ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                             : ((struct sockaddr_in *)&bound)->sin_port);
}

/* What nbdkit is called with. */
static GPtrArray *nbdkit_words(const struct export *export, guint disk, const char *plugin,
                               const char *image)
{
    const struct export_state *state = export->state;
    guint32 uid = export->storage->images.uid;
    g_autofree char *psk = path_of(export, EXPORT_KEY);
    g_autofree char *control = disk_path_of(export, EXPORT_CONTROL, disk);
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    const char *fixed[] = {"nbdkit", "-f", "--tls=require", "-i", state->target->address};
    for (guint i = 0; i < G_N_ELEMENTS(fixed); i++)
        g_ptr_array_add(argv, g_strdup(fixed[i]));
    g_ptr_array_add(argv, g_strdup_printf("--tls-psk=%s", psk));
    g_ptr_array_add(
        argv,
        g_strdup_printf("--port=%" G_GUINT64_FORMAT,
                        ((const struct export_disk *)state->target->disks->pdata[disk])->port));
    if (uid != 0) {
        /* Numbers are taken as they are; the group first, as nbdkit does. */
        g_ptr_array_add(argv, g_strdup_printf("--group=%u", uid));
        g_ptr_array_add(argv, g_strdup_printf("--user=%u", uid));
    }
    g_ptr_array_add(argv, g_strdup(plugin));
    g_ptr_array_add(argv, g_strdup_printf("file=%s", image));
    g_ptr_array_add(argv, g_strdup_printf("history=%" G_GUINT64_FORMAT, state->history));
    g_ptr_array_add(argv, g_strdup_printf("replica=%s", state->target->replica));
    g_ptr_array_add(argv, g_strdup_printf("generation=%" G_GUINT64_FORMAT, state->generation));
    g_ptr_array_add(argv, g_strdup_printf("disk=%u", disk));
    g_ptr_array_add(argv, g_strdup_printf("control=%s", control));
    g_ptr_array_add(argv, g_strdup_printf("lazy=%s", export->durable ? "false" : "true"));
    g_ptr_array_add(argv, NULL);
    return argv;
}

static struct process *spawn_nbdkit(struct export *export, guint disk, const char *image,
                                    const char *log, GError **error)
{
    g_autofree char *plugin = program_path(PLUGIN);
    if (!g_file_test(plugin, G_FILE_TEST_IS_REGULAR)) {
        fettle_set_error(error, ENVIRONMENT, "the nbdkit plugin %s is missing", plugin);
        return NULL;
    }
    g_autoptr(GPtrArray) argv = nbdkit_words(export, disk, plugin, image);
    g_autofree char *tls = path_of(export, EXPORT_TLS);
    g_autofree char *priorities = g_strconcat("GNUTLS_SYSTEM_PRIORITY_FILE=", tls, NULL);
    const char *environment[] = {g_file_test(tls, G_FILE_TEST_EXISTS) ? priorities : NULL, NULL};
    struct process_options options = {
        .argv = (const char *const *)argv->pdata,
        .environment = environment,
        .errors_path = log,
        .exited = export_process_exited,
        .data = export,
    };
    return process_spawn(&options, error);
}

/* Whether one disk's server greets; false early if its process has ended. */
static bool await_greeting(const struct export *export, struct export_disk *disk,
                           const struct process *process)
{
    g_autoptr(GPtrArray) one = g_ptr_array_new();
    g_ptr_array_add(one, disk);
    struct export_target target = {.address = export->state->target->address, .disks = one};
    gint64 deadline = loop_boot_ms() + LIMIT_EXPORT_READY_MS;
    do {
        if (nbd_probe(&target, LIMIT_PROBE_MS))
            return !process_ended(process);
    } while (loop_sleep(LIMIT_EXPORT_POLL_MS) && !process_ended(process) &&
             loop_boot_ms() < deadline);
    return false;
}

/* The first error that nbdkit named; what follows is advice. */
static char *complaint(const char *log)
{
    g_autofree char *text = files_read_path(log, LIMIT_COMPLAINT_BYTES, NULL, NULL);
    if (text == NULL || g_strstrip(text)[0] == '\0')
        return g_strdup("no reason given");
    const char *error = strstr(text, "error: ");
    const char *start = error != NULL ? error + strlen("error: ") : text;
    return g_strndup(start, strcspn(start, "\n"));
}

/* Starts the server of one disk on a free port; another process may take the port first, so several
 * are tried. */
static bool open_disk(struct export *export, guint disk, const char *image, GError **error)
{
    struct export_disk *where = export->state->target->disks->pdata[disk];
    g_autofree char *log = disk_path_of(export, EXPORT_LOG, disk);
    for (guint try = 0; try < LIMIT_EXPORT_PORT_TRIES; try++) {
        unlink(log);
        where->port = free_port(export->state->target->address, error);
        struct process *process =
            where->port == 0 ? NULL : spawn_nbdkit(export, disk, image, log, error);
        if (process == NULL)
            return false;
        g_ptr_array_add(export->processes, process);
        struct export_process *name =
            &g_array_index(export->state->processes, struct export_process, disk);
        *name = (struct export_process){process_pid(process), process_start_ticks(process)};
        if (!export_state_write(export->storage->paths, export->state, error))
            return false;
        if (await_greeting(export, where, process))
            return true;
        g_autofree char *words = complaint(log);
        bool taken = strstr(words, "already in use") != NULL;
        if (!process_kill(process, error))
            return false;
        g_ptr_array_remove(export->processes, process);
        if (!taken) {
            fettle_set_error(error, STORAGE, "export of %s does not start: %s", image, words);
            return false;
        }
    }
    fettle_set_error(error, STORAGE, "export of %s: no free port on %s in %d tries", image,
                     export->state->target->address, LIMIT_EXPORT_PORT_TRIES);
    return false;
}

static bool open_disks(struct export *export, const GPtrArray *images, GError **error)
{
    if (!write_psk(export, error) || (processor_helps_with_aes() && !write_tls(export, error)))
        return false;
    /* Written before and after each start: whenever we die, the next node daemon finds them. */
    if (!export_state_write(export->storage->paths, export->state, error))
        return false;
    export->closing = true; /* an exit while opening is seen here, it is no event */
    for (guint i = 0; i < images->len; i++)
        if (!open_disk(export, i, images->pdata[i], error))
            return false;
    export->closing = false;
    for (guint i = 0; i < export->processes->len; i++)
        if (process_ended(export->processes->pdata[i])) {
            fettle_set_error(error, STORAGE, "export of %s ended at once",
                             (const char *)images->pdata[i]);
            return false;
        }
    return true;
}

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
    target->psk = random_psk();
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
    bool same = state->history == history && state->generation == generation;
    *ret_keep = same && export_alive(existing) && state->target->disks->len == disks;
    if (*ret_keep)
        return true;
    if (!same && (state->history > history ||
                  (state->history == history && state->generation > generation))) {
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
        g_autofree char *path = disk_path_of(export, EXPORT_CONTROL, i);
        fds[i] = control_connect(path);
    }
    if (greeting_await(&settled, fds, count, LIMIT_SETTLE_MS))
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
    if (open_disks(export, images, error))
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
