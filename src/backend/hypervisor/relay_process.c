/*
 * One process of a guest's relay; see relay_private.h.
 */
#include "backend/hypervisor/relay_private.h"

#include "backend/storage/nbd_probe.h"
#include "backend/unprivileged.h"
#include "base/limits.h"
#include "io/files.h"
#include "io/loop.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PLUGIN "fettle-relay.so"

static void add(GPtrArray *argv, char *word)
{
    g_ptr_array_add(argv, word);
}

static void add_parameters(GPtrArray *argv, const struct guest *guest, bool patient)
{
    const struct relay *relay = guest->relay;
    for (guint i = 0; i < relay->target->disks->len; i++) {
        const struct export_disk *disk = relay->target->disks->pdata[i];
        add(argv, g_strdup_printf("disk=%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%s", disk->port,
                                  relay->bytes[i], disk->name));
    }
    if (relay->refuse) {
        add(argv, g_strdup("refuse=true"));
        return;
    }
    g_autofree char *key = guest_path(guest, RELAY_KEY);
    add(argv, g_strconcat("address=", relay->target->address, NULL));
    add(argv, g_strconcat("key=", key, NULL));
    if (patient)
        add(argv, g_strdup("patient=true"));
}

/* The socket is handed over as systemd does it, which names the process that it is for: the shell
 * becomes setpriv, and that becomes nbdkit. */
static GPtrArray *command_line(const struct guest *guest, bool patient)
{
    static const char *const before[] = {"sh", "-c", "export LISTEN_PID=$$; exec \"$@\"", "sh"};
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < G_N_ELEMENTS(before); i++)
        add(argv, g_strdup(before[i]));
    unprivileged_words(argv, guest->user, NULL);
    add(argv, g_strdup("nbdkit"));
    add(argv, g_strdup("-f"));
    add(argv, program_path(PLUGIN));
    add(argv, relay_argument(guest, guest->relay->number, RELAY_ARGUMENT));
    add_parameters(argv, guest, patient);
    add(argv, NULL);
    return argv;
}

/* What nbdkit gave as the reason. */
static void explain(const char *log, GError **error)
{
    g_autofree char *said = files_read_path(log, LIMIT_COMPLAINT_BYTES, NULL, NULL);
    const char *reason = said != NULL ? strstr(said, "error: ") : NULL;
    const char *start = reason != NULL ? reason + strlen("error: ") : said != NULL ? said : "";
    g_autofree char *words = g_strndup(start, strcspn(start, "\n"));
    fettle_set_error(error, UNREACHABLE, "its relay does not start: %s",
                     words[0] != '\0' ? words : "no reason given");
}

/* With the listening socket, which is nobody else's from then on: when it ends, so does that. */
static struct process *spawn(struct guest *guest, bool patient, const char *log, int fd,
                             process_exit_fn exited, GError **error)
{
    static const char *const environment[] = {"LISTEN_FDS=1", NULL};
    g_autoptr(GPtrArray) argv = command_line(guest, patient);
    const struct process_options options = {
        .argv = (const char *const *)argv->pdata,
        .errors_path = log,
        .environment = environment,
        .keep_fds = &fd,
        .keep_fd_count = 1,
        .exited = exited,
        .data = guest,
    };
    struct process *process = process_spawn(&options, error);
    close(fd);
    return process;
}

struct process *relay_spawn(struct guest *guest, bool patient, process_exit_fn exited,
                            GError **error)
{
    struct relay *relay = guest->relay;
    g_autofree char *plugin = program_path(PLUGIN);
    g_autofree char *log = guest_path(guest, RELAY_LOG);
    if (!g_file_test(plugin, G_FILE_TEST_IS_REGULAR)) {
        fettle_set_error(error, ENVIRONMENT, "the nbdkit plugin %s is missing", plugin);
        return NULL;
    }
    /* Written before it is started: whenever we die, the next node daemon finds it. */
    relay->number++;
    relay->placed = false;
    if (!relay_state_write(guest, error))
        return NULL;
    g_autofree char *socket = relay_numbered(guest, relay->number);
    unlink(log);
    unlink(socket);
    int fd = unprivileged_listen(socket, SOMAXCONN, guest->user, error);
    if (fd < 0)
        return NULL;
    struct process *process = spawn(guest, patient, log, fd, exited, error);
    /* It greets when every export has answered, if it is to wait for that. */
    if (process == NULL || (nbd_probe_at(socket, LIMIT_EXPORT_READY_MS) && !process_ended(process)))
        return process;
    if (!task_killed() && process_kill(process, NULL))
        explain(log, error);
    else
        fettle_set_error(error, TIMEOUT, "its relay does not start in %u ms",
                         LIMIT_EXPORT_READY_MS);
    process_free(process);
    return NULL;
}
