/*
 * The calls of the QEMU driver: starting, running, pausing, killing, asking, finding again.
 * Mirrors: mirror.c.
 */
#include "backend/hypervisor/qemu.h"

#include "backend/hypervisor/accel.h"
#include "backend/hypervisor/qemu_private.h"
#include "backend/reach.h"
#include "base/limits.h"
#include "io/files.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void qemu_set_events(struct hypervisor *hv, const struct hypervisor_events *events)
{
    ((struct qemu *)hv)->events = *events;
}

/* --- starting --- */

/* Made by us and handed over: a client can connect at once and gets the greeting when QEMU is ready
 * for it. */
static int listen_at(const char *path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        fettle_set_error(error, ENVIRONMENT, "socket name %s is longer than %zu bytes", path,
                         sizeof address.sun_path - 1);
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(path, 0600) == 0 && listen(fd, 1) == 0)
        return fd;
    fettle_set_error(error, STORAGE, "cannot make socket %s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool make_folder(const struct guest *guest, GError **error)
{
    g_autofree char *folder = guest_path(guest, NULL);
    g_autofree char *consoles = g_build_filename(guest->qemu->paths->log, "guests", NULL);
    guest_remove_folder(guest);
    /* Others may pass, since QEMU reads the mirror's key there as another user; the files are shut.
     */
    if (g_mkdir_with_parents(folder, 0711) == 0 && chmod(folder, 0711) == 0 &&
        g_mkdir_with_parents(consoles, 0755) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot make folder %s: %s", folder, g_strerror(errno));
    return false;
}

static bool spawn_with(struct guest *guest, const GPtrArray *args, const int *sockets,
                       GError **error)
{
    g_autofree char *errors = guest_path(guest, "stderr.log");
    struct process_options options = {
        .argv = (const char *const *)args->pdata,
        .errors_path = errors,
        .keep_fds = sockets,
        .keep_fd_count = 2,
        .exited = guest_exited,
        .data = guest,
    };
    /* Written before and after: whenever we die, the next node daemon finds the process
     * (guest_state.c). */
    if (!guest_state_write(guest, error))
        return false;
    guest->process = process_spawn(&options, error);
    return guest->process != NULL && guest_state_write(guest, error);
}

static bool spawn_qemu(struct guest *guest, const GPtrArray *args, GError **error)
{
    g_autofree char *usual = guest_path(guest, "qmp.sock");
    g_autofree char *rescue = guest_path(guest, "rescue.sock");
    int sockets[2] = {-1, -1};
    sockets[0] = listen_at(usual, error);
    sockets[1] = sockets[0] >= 0 ? listen_at(rescue, error) : -1;
    bool spawned = sockets[1] >= 0 && spawn_with(guest, args, sockets, error);
    for (guint i = 0; i < 2; i++)
        if (sockets[i] >= 0)
            close(sockets[i]);
    return spawned;
}

/* QEMU's own words are the reason that helps. */
static void explain_failure(const struct guest *guest, GError **failure, GError **error)
{
    g_autofree char *path = guest_path(guest, "stderr.log");
    g_autofree char *said = files_read_path(path, LIMIT_COMPLAINT_BYTES, NULL, NULL);
    if (said != NULL && g_strstrip(said)[0] != '\0')
        fettle_set_error(error, HYPERVISOR, "guest %s: QEMU does not start: %s", guest->name, said);
    else
        g_propagate_prefixed_error(error, g_steal_pointer(failure),
                                   "guest %s: QEMU does not start: ", guest->name);
    g_clear_error(failure);
}

static bool start_guest(struct guest *guest, const struct guest_spec *spec, GError **error)
{
    bool kvm = false;
    if (!accel_choose(guest->qemu->paths, spec->accelerator, &kvm, error))
        return false;
    g_autoptr(GPtrArray) args = qemu_args(guest, spec, kvm, error);
    if (args == NULL || !make_folder(guest, error) || !spawn_qemu(guest, args, error))
        return false;
    GError *failure = NULL;
    bool ready = guest_connect(guest, LIMIT_GUEST_READY_MS, &failure);
    if (!ready) {
        /* It may be about to say why: its exit comes after its words. */
        process_kill(guest->process, NULL);
        explain_failure(guest, &failure, error);
    }
    return ready;
}

static bool check_prepare(const struct qemu *qemu, const struct instance *instance, GError **error)
{
    const struct guest *there = g_hash_table_lookup(qemu->guests, instance->uuid);
    if (there == NULL)
        return true;
    if (there->generation == instance->generation)
        fettle_set_error(error, ALREADY_EXISTS,
                         "guest %s of generation %" G_GUINT64_FORMAT " is there already",
                         there->name, there->generation);
    else
        fettle_set_error(error, REFUSED,
                         "guest %s of generation %" G_GUINT64_FORMAT " is there; %" G_GUINT64_FORMAT
                         " cannot be started beside it",
                         there->name, there->generation, instance->generation);
    return false;
}

static bool qemu_prepare(struct hypervisor *hv, const struct guest_spec *spec, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    const struct instance *instance = spec->instance;
    if (!check_prepare(qemu, instance, error))
        return false;
    guest_autoptr guest = guest_new(qemu, instance->uuid, instance->generation);
    g_free(guest->name);
    guest->name = g_strdup(instance->name);
    guest->memory = instance->memory;
    guest->disks = spec->images != NULL ? spec->images->len : 0;
    g_hash_table_insert(qemu->guests, guest->instance, guest_ref(guest));
    bool started = start_guest(guest, spec, error) && !guest->gone;
    if (started) {
        guest->prepared = true;
        return true;
    }
    if (error != NULL && *error == NULL)
        fettle_set_error(error, HYPERVISOR, "guest %s: QEMU ended at once", guest->name);
    if (guest->process != NULL && !process_kill(guest->process, NULL)) {
        guest->prepared = true; /* still there: stays known, and its end will be told */
        return false;
    }
    guest_remove_folder(guest);
    g_hash_table_remove(qemu->guests, guest->instance);
    return false;
}

/* --- running --- */

static bool simple_command(struct hypervisor *hv, const char *instance, guint64 generation,
                           const char *command, guint timeout_ms, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    return guest != NULL && guest_command(guest, command, NULL, timeout_ms, error);
}

static bool qemu_run(struct hypervisor *hv, const char *instance, guint64 generation,
                     GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL)
        return false;
    guest->finished =
        false; /* from here on its images may differ from those of a mirror that has ended */
    return guest_command(guest, "cont", NULL, LIMIT_QMP_COMMAND_MS, error);
}

static bool qemu_pause(struct hypervisor *hv, const char *instance, guint64 generation,
                       GError **error)
{
    return simple_command(hv, instance, generation, "stop", LIMIT_QMP_DRAIN_MS, error);
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
    return simple_command(hv, instance, generation, "system_reset", LIMIT_QMP_DRAIN_MS, error);
}

static bool qemu_kill(struct hypervisor *hv, const char *instance, guint64 generation,
                      GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    if (g_hash_table_lookup(qemu->guests, instance) == NULL)
        return true;
    guest_autoptr guest = guest_find(qemu, instance, generation, error);
    if (guest == NULL)
        return false;
    if (guest->process == NULL) {
        fettle_set_error(error, WRONG_STATE, "guest %s is being started", guest->name);
        return false;
    }
    if (process_kill(guest->process, error))
        return true;
    g_prefix_error(error, "guest %s: ", guest->name);
    return false;
}

/* --- asking --- */

/* A guest that waits for its first `cont` is prepared; one that runs while it sleeps (S3) runs;
 * whatever else holds its CPUs still is paused. */
static enum guest_state state_of(const json_t *status)
{
    const char *word = json_string_value(json_object_get(status, "status"));
    if (json_is_true(json_object_get(status, "running")) || g_strcmp0(word, "suspended") == 0)
        return GUEST_RUNNING;
    if (g_strcmp0(word, "prelaunch") == 0)
        return GUEST_PREPARED;
    return g_strcmp0(word, "shutdown") == 0 ? GUEST_SHUTDOWN : GUEST_PAUSED;
}

static bool query_guest(struct guest *guest, enum guest_state *ret_state,
                        struct mirror_info *ret_mirror, GError **error)
{
    json_autoptr status = guest_execute(guest, "query-status", NULL, LIMIT_QMP_COMMAND_MS, error);
    struct mirror_info mirror = {MIRROR_NONE, 0};
    if (status == NULL || !mirror_query(guest, &mirror, error))
        return false;
    *ret_state = state_of(status);
    *ret_mirror = mirror;
    return true;
}

static bool qemu_query(struct hypervisor *hv, const char *instance, guint64 generation,
                       enum guest_state *ret_state, struct mirror_info *ret_mirror, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    struct mirror_info none = {MIRROR_NONE, 0};
    guest_autoptr guest = NULL;
    if (g_hash_table_lookup(qemu->guests, instance) != NULL) {
        guest = guest_find(qemu, instance, generation, error);
        if (guest == NULL)
            return false;
        g_autoptr(GError) failure = NULL;
        if (query_guest(guest, ret_state, ret_mirror, &failure))
            return true;
        if (!guest->gone) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
    }
    *ret_state = GUEST_ABSENT;
    *ret_mirror = none;
    return true;
}

/* --- after a restart --- */

/* One that does not answer is reported as running, with its mirror lost: of all that it may be,
 * that is what must be treated most carefully. */
static struct guest_report *report_guest(struct guest *guest)
{
    struct guest_report *report = guest_report_new();
    struct mirror_info mirror = {guest->mirrored ? MIRROR_LOST : MIRROR_NONE, 0};
    enum guest_state state = GUEST_RUNNING;
    query_guest(guest, &state, &mirror, NULL);
    g_free(report->instance);
    g_free(report->replica);
    report->instance = g_strdup(guest->instance);
    report->generation = guest->generation;
    report->state = state;
    report->mirror = mirror.state;
    report->replica = g_strdup(guest->mirrored ? guest->replica : "");
    report->progress = mirror.progress;
    report->memory = guest->memory;
    return report;
}

static bool rediscover_one(struct qemu *qemu, const char *instance, GPtrArray *reports,
                           GError **error)
{
    if (g_hash_table_lookup(qemu->guests, instance) != NULL)
        return true;
    if (!guest_state_exists(qemu, instance)) {
        /* It is written before a process is started, so there is none. */
        guest_autoptr leftover = guest_new(qemu, instance, 0);
        guest_remove_folder(leftover);
        return true;
    }
    guest_autoptr guest = guest_state_read(qemu, instance, error);
    if (guest == NULL)
        return false;
    if (guest->process == NULL) {
        guest_remove_folder(guest); /* it ended while nobody watched */
        return true;
    }
    guest->prepared = true;
    g_hash_table_insert(qemu->guests, guest->instance, guest_ref(guest));
    struct guest_report *report = report_guest(guest);
    if (guest->gone)
        guest_report_free(report);
    else
        g_ptr_array_add(reports, report);
    return true;
}

static GPtrArray *qemu_rediscover(struct hypervisor *hv, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    g_autoptr(GPtrArray) names = files_list(qemu->paths, FILE_RUN, "guests", error);
    g_autoptr(GPtrArray) reports =
        g_ptr_array_new_with_free_func((GDestroyNotify)guest_report_free);
    if (names == NULL)
        return NULL;
    for (guint i = 0; i < names->len; i++)
        if (g_uuid_string_is_valid(names->pdata[i]) &&
            !rediscover_one(qemu, names->pdata[i], reports, error))
            return NULL;
    return g_steal_pointer(&reports);
}

/* --- the host --- */

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

static const struct hypervisor_ops qemu_ops = {
    .set_events = qemu_set_events,
    .prepare = qemu_prepare,
    .run = qemu_run,
    .pause = qemu_pause,
    .powerdown = qemu_powerdown,
    .reset = qemu_reset,
    .kill = qemu_kill,
    .query = qemu_query,
    .mirror_start = mirror_start,
    .mirror_finish = mirror_finish,
    .mirror_release = mirror_release,
    .rediscover = qemu_rediscover,
    .host = qemu_host,
};

struct hypervisor *qemu_new(const struct node_paths *paths, guint32 qemu_uid)
{
    struct qemu *qemu = g_new0(struct qemu, 1);
    qemu->base.ops = &qemu_ops;
    qemu->paths = paths;
    qemu->uid = reach_effective_uid(qemu_uid);
    qemu->guests =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)guest_unref);
    return &qemu->base;
}

void qemu_free(struct hypervisor *hypervisor)
{
    struct qemu *qemu = (struct qemu *)hypervisor;
    if (qemu == NULL)
        return;
    g_hash_table_unref(qemu->guests);
    g_free(qemu);
}
