/*
 * Starts the nbdkit processes of an opening: their key, their ports, their words, and the wait for
 * their greetings.
 */
#include "backend/reach.h"
#include "backend/storage/export_private.h"
#include "backend/storage/nbd_probe.h"
#include "backend/unprivileged.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PLUGIN "fettle-failstop.so"

static char *path_of(const struct export *export, const char *kind)
{
    return export_state_path(export->storage->paths, export->state->target->replica, kind);
}

char *export_disk_path(const struct export *export, const char *kind, guint disk)
{
    return export_state_disk_path(export->storage->paths, export->state->target->replica, kind,
                                  disk);
}

/* The key as nbdkit wants it. It reads it at each handshake, as the unprivileged user. */
static bool write_psk(const struct export *export, GError **error)
{
    guint32 uid = export->user;
    g_autofree char *path = path_of(export, EXPORT_KEY);
    g_autofree char *line = g_strdup_printf("qemu:%s\n", export->state->target->psk);
    return reach_check(path, uid, error) && files_give_path(path, line, strlen(line), uid, error);
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

/* What nbdkit is called with. It is handed the image, and the listening control socket after it. */
static GPtrArray *nbdkit_words(const struct export *export, guint disk, const char *plugin,
                               const char *image)
{
    const struct export_state *state = export->state;
    g_autofree char *psk = path_of(export, EXPORT_KEY);
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    unprivileged_words(argv, export->user, NULL);
    const char *fixed[] = {"nbdkit", "-f", "--tls=require", "-i", state->target->address};
    for (guint i = 0; i < G_N_ELEMENTS(fixed); i++)
        g_ptr_array_add(argv, g_strdup(fixed[i]));
    g_ptr_array_add(argv, g_strdup_printf("--tls-psk=%s", psk));
    g_ptr_array_add(
        argv,
        g_strdup_printf("--port=%" G_GUINT64_FORMAT,
                        ((const struct export_disk *)state->target->disks->pdata[disk])->port));
    g_ptr_array_add(argv, g_strdup(plugin));
    g_ptr_array_add(argv, g_strdup_printf("file=%s", image));
    g_ptr_array_add(argv, g_strdup("file_fd=3"));
    g_ptr_array_add(argv, g_strdup_printf("history=%" G_GUINT64_FORMAT, state->history));
    g_ptr_array_add(argv, g_strdup_printf("replica=%s", state->target->replica));
    g_ptr_array_add(argv, g_strdup_printf("generation=%" G_GUINT64_FORMAT, state->generation));
    g_ptr_array_add(argv, g_strdup_printf("disk=%u", disk));
    g_ptr_array_add(argv, g_strdup("control_fd=4"));
    g_ptr_array_add(argv, g_strdup_printf("lazy=%s", export->durable ? "false" : "true"));
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* Opened again for each process: a lock of the image belongs to what is open, which is closed here
 * as soon as the process has it. -1 with the error. */
static int open_image(const char *image, GError **error)
{
    g_autoptr(GPtrArray) one = g_ptr_array_new();
    g_ptr_array_add(one, (char *)image);
    return unprivileged_first(unprivileged_open(one, O_RDWR, true, LIMIT_EXPORT_READY_MS, error));
}

static int listen_for_control(const struct export *export, guint disk, GError **error)
{
    g_autofree char *path = export_disk_path(export, EXPORT_CONTROL, disk);
    unlink(path);
    return unprivileged_listen(path, SOMAXCONN, 0, error);
}

static struct process *spawn_with(struct export *export, const struct process_options *given,
                                  guint disk, const char *image, GError **error)
{
    int fds[2] = {open_image(image, error), -1};
    struct process_options options = *given;
    struct process *process = NULL;
    options.keep_fds = fds;
    options.keep_fd_count = G_N_ELEMENTS(fds);
    if (fds[0] < 0)
        return NULL;
    fds[1] = listen_for_control(export, disk, error);
    if (fds[1] >= 0) {
        process = process_spawn(&options, error);
        close(fds[1]);
    }
    close(fds[0]);
    return process;
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
    return spawn_with(export, &options, disk, image, error);
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
    g_autofree char *log = export_disk_path(export, EXPORT_LOG, disk);
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

bool export_start(struct export *export, const GPtrArray *images, GError **error)
{
    export->user = guest_users_take(export->storage->users);
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
