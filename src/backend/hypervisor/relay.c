/*
 * See relay.h.
 */
#include "backend/hypervisor/relay.h"

#include "backend/reach.h"
#include "base/limits.h"
#include "io/crash.h"
#include "io/files.h"
#include "io/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLUGIN "fettle-relay.so"
#define FOLDER "relay"
#define SOCKET FOLDER "/sock"
#define KEY FOLDER "/keys.psk"
#define LOG FOLDER "/log"
#define FORMAT 1
#define RELAY_POLL_MS 5
#define RELAY_REVIVE_MS 200 /* between two tries to start one that has ended */

struct relay {
    /* Kept */
    struct export_target *target;
    guint64 bytes[LIMIT_DISKS];
    bool refuse;              /* nothing may be forwarded any more */
    guint number;             /* the last process that was started, or is about to be */
    bool placed;              /* it is the one at the socket */
    guint64 pid, start_ticks; /* of the one at the socket; 0: none yet */

    struct process *process; /* the one at the socket; NULL: none */
    bool refusing;           /* it is one that refuses */
    bool reviving;           /* a task sees to it that there is one */
    bool ending;
    gint64 ended_ms; /* boot clock; since when there is none that is well; 0: there is */
};

static struct relay *relay_new(void)
{
    return g_new0(struct relay, 1);
}

void relay_free(struct relay *relay)
{
    if (relay == NULL)
        return;
    process_free(relay->process);
    export_target_free(relay->target);
    g_free(relay);
}

char *relay_socket(const struct guest *guest)
{
    return guest_path(guest, SOCKET);
}

bool relay_exists(const struct guest *guest)
{
    return guest->relay != NULL;
}

/* Names below the folder that belong to the N-th process. */
static char *numbered(const struct guest *guest, guint number, const char *suffix)
{
    g_autofree char *name = g_strdup_printf(FOLDER "/%u%s", number, suffix);
    return guest_path(guest, name);
}

/* The argument by which it is found if we die before its pid is written down. */
static char *socket_argument(const struct guest *guest, guint number)
{
    g_autofree char *path = numbered(guest, number, "");
    return g_strconcat("--unix=", path, NULL);
}

/* --- what is kept --- */

static char *state_name(const struct guest *guest)
{
    return g_strdup_printf("guests/%s/" FOLDER "/state.json", guest->instance);
}

static bool write_state(const struct guest *guest, GError **error)
{
    const struct relay *relay = guest->relay;
    json_t *bytes = json_array();
    for (guint i = 0; i < relay->target->disks->len; i++)
        json_array_append_new(bytes, json_integer((json_int_t)relay->bytes[i]));
    json_autoptr json = json_make("{s:i,s:o,s:o,s:b,s:i,s:b,s:I,s:I,s:b}", "format", FORMAT,
                                  "target", export_target_to_json(relay->target), "bytes", bytes,
                                  "refuse", relay->refuse, "number", (int)relay->number, "placed",
                                  relay->placed, "pid", (json_int_t)relay->pid, "start",
                                  (json_int_t)relay->start_ticks, "refusing", relay->refusing);
    g_autofree char *text = json_to_text(json);
    g_autofree char *name = state_name(guest);
    g_autofree char *path = files_path(guest->qemu->paths, FILE_RUN, name, error);
    return path != NULL && files_write_path(path, text, strlen(text), 0600, false, error);
}

static bool parse_bytes(const json_t *list, struct relay *relay)
{
    if (!json_is_array(list) || relay->target->disks->len > LIMIT_DISKS ||
        json_array_size(list) != relay->target->disks->len)
        return false;
    for (guint i = 0; i < relay->target->disks->len; i++) {
        json_int_t bytes = json_integer_value(json_array_get(list, i));
        if (bytes <= 0)
            return false;
        relay->bytes[i] = (guint64)bytes;
    }
    return true;
}

static bool parse_state(json_t *json, struct relay *relay)
{
    int format, refuse, number, placed, refusing;
    json_int_t pid, start;
    json_t *target, *bytes;
    if (json_unpack(json, "{s:i,s:o,s:o,s:b,s:i,s:b,s:I,s:I,s:b}", "format", &format, "target",
                    &target, "bytes", &bytes, "refuse", &refuse, "number", &number, "placed",
                    &placed, "pid", &pid, "start", &start, "refusing", &refusing) != 0 ||
        format != FORMAT || number < 0 || pid < 0 || start < 0)
        return false;
    relay->target = export_target_parse(target, RECORD_LAX, NULL);
    relay->refuse = refuse != 0;
    relay->number = (guint)number;
    relay->placed = placed != 0;
    relay->pid = (guint64)pid;
    relay->start_ticks = (guint64)start;
    relay->refusing = refusing != 0;
    return relay->target != NULL && parse_bytes(bytes, relay);
}

/* NULL: there is none, or nothing that can be used is known of it. */
static struct relay *read_state(const struct guest *guest)
{
    size_t len = 0;
    g_autofree char *name = state_name(guest);
    g_autofree char *text =
        files_read(guest->qemu->paths, FILE_RUN, name, LIMIT_STATE_FILE_BYTES, &len, NULL);
    json_autoptr json =
        text != NULL ? json_parse_limited(text, len, LIMIT_STATE_FILE_BYTES, NULL) : NULL;
    struct relay *relay = relay_new();
    if (json != NULL && parse_state(json, relay))
        return relay;
    relay_free(relay);
    return NULL;
}

/* --- files --- */

static bool own(const struct guest *guest, const char *path, GError **error)
{
    guint32 uid = guest->qemu->uid;
    if (uid == 0 || chown(path, uid, uid) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot change the owner of %s: %s", path, g_strerror(errno));
    return false;
}

/* nbdkit makes its socket there as the unprivileged user, and QEMU connects as that. */
static bool make_files(const struct guest *guest, GError **error)
{
    g_autofree char *folder = guest_path(guest, FOLDER);
    g_autofree char *key = guest_path(guest, KEY);
    g_autofree char *line = g_strdup_printf("qemu:%s\n", guest->relay->target->psk);
    if (g_mkdir_with_parents(folder, 0700) != 0) {
        fettle_set_error(error, STORAGE, "cannot make folder %s: %s", folder, g_strerror(errno));
        return false;
    }
    return reach_check(folder, guest->qemu->uid, error) && own(guest, folder, error) &&
           files_write_path(key, line, strlen(line), 0600, false, error) && own(guest, key, error);
}

static void remove_files(const struct guest *guest)
{
    g_autofree char *folder = guest_path(guest, FOLDER);
    guest_remove_tree(folder);
}

/* --- one process --- */

static void add(GPtrArray *argv, char *word)
{
    g_ptr_array_add(argv, word);
}

/* It needs no privilege from the start on. */
static void add_user(GPtrArray *argv, guint32 uid)
{
    if (uid == 0)
        return;
    add(argv, g_strdup("setpriv"));
    add(argv, g_strdup_printf("--reuid=%u", uid));
    add(argv, g_strdup_printf("--regid=%u", uid));
    add(argv, g_strdup("--clear-groups"));
    add(argv, g_strdup("--no-new-privs"));
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
    g_autofree char *key = guest_path(guest, KEY);
    add(argv, g_strconcat("address=", relay->target->address, NULL));
    add(argv, g_strconcat("key=", key, NULL));
    if (patient)
        add(argv, g_strdup("patient=true"));
}

static GPtrArray *command_line(const struct guest *guest, bool patient)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    add_user(argv, guest->qemu->uid);
    add(argv, g_strdup("nbdkit"));
    add(argv, g_strdup("-f"));
    add(argv, socket_argument(guest, guest->relay->number));
    add(argv, g_strdup("--pidfile"));
    add(argv, numbered(guest, guest->relay->number, ".pid"));
    add(argv, program_path(PLUGIN));
    add_parameters(argv, guest, patient);
    add(argv, NULL);
    return argv;
}

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

/* nbdkit writes its pid file when it listens. */
static bool await_ready(struct process *process, const char *pid_file)
{
    gint64 deadline = loop_boot_ms() + LIMIT_EXPORT_READY_MS;
    while (!process_ended(process) && loop_boot_ms() < deadline) {
        if (g_file_test(pid_file, G_FILE_TEST_EXISTS))
            return true;
        if (!loop_sleep(RELAY_POLL_MS))
            return false;
    }
    return false;
}

/* The next process, ready at its own socket; NULL with the reason. */
static struct process *spawn_next(struct guest *guest, bool patient, GError **error)
{
    struct relay *relay = guest->relay;
    g_autofree char *plugin = program_path(PLUGIN);
    g_autofree char *log = guest_path(guest, LOG);
    if (!g_file_test(plugin, G_FILE_TEST_IS_REGULAR)) {
        fettle_set_error(error, ENVIRONMENT, "the nbdkit plugin %s is missing", plugin);
        return NULL;
    }
    /* Written before it is started: whenever we die, the next node daemon finds it. */
    relay->number++;
    relay->placed = false;
    if (!write_state(guest, error))
        return NULL;
    unlink(log);
    g_autofree char *pid_file = numbered(guest, relay->number, ".pid");
    g_autoptr(GPtrArray) argv = command_line(guest, patient);
    struct process_options options = {
        .argv = (const char *const *)argv->pdata,
        .errors_path = log,
        .exited = relay_exited,
        .data = guest,
    };
    struct process *process = process_spawn(&options, error);
    if (process == NULL || await_ready(process, pid_file))
        return process;
    if (!task_killed() && process_kill(process, NULL))
        explain(log, error);
    else
        fettle_set_error(error, TIMEOUT, "its relay does not start in %u ms",
                         LIMIT_EXPORT_READY_MS);
    process_free(process);
    return NULL;
}

/* From now on QEMU connects to this one; the one before is ended, so that QEMU does. */
static bool place(struct guest *guest, struct process *process, GError **error)
{
    struct relay *relay = guest->relay;
    g_autofree char *mine = numbered(guest, relay->number, "");
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
    return write_state(guest, error);
}

static bool next(struct guest *guest, bool patient, GError **error)
{
    struct process *process = spawn_next(guest, patient, error);
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
    remove_files(guest);
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
    if (make_files(guest, error) && next(guest, false, error))
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
    g_autofree char *argument = socket_argument(guest, guest->relay->number);
    guint64 pid = process_find_by_argument(argument);
    struct process *process =
        process_adopt(pid, pid != 0 ? process_read_start_ticks(pid) : 0, NULL, NULL, NULL);
    if (process != NULL)
        process_kill(process, NULL);
    process_free(process);
}

void relay_rediscover(struct guest *guest)
{
    struct relay *relay = guest->relay = read_state(guest);
    if (relay == NULL)
        return;
    if (!relay->placed)
        end_unknown(guest);
    relay->process = process_adopt(relay->pid, relay->start_ticks, relay_exited, guest, NULL);
    if (guest->process == NULL || guest->gone) {
        relay_end(guest, NULL);
    } else if (!is_well(relay)) {
        begin_reviving(guest);
    }
}
