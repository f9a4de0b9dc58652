/*
 * Starting a guest's process, for itself or to wait for the memory of another one.
 */
#include "backend/hypervisor/accel.h"
#include "backend/hypervisor/qemu_private.h"
#include "backend/network/tap.h"
#include "backend/unprivileged.h"
#include "base/limits.h"
#include "io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the order of QEMU_FD_QMP and so on. */
static const char *const sockets[] = {"qmp.sock", "rescue.sock", "con.sock"};
#define SOCKETS G_N_ELEMENTS(sockets)

/* What QEMU is handed: what it would have opened itself, if it were root. */
struct handed {
    GArray *images, *volumes;
    int kernel, initrd; /* -1: none */
};

static void handed_clear(struct handed *handed)
{
    g_clear_pointer(&handed->images, g_array_unref);
    g_clear_pointer(&handed->volumes, g_array_unref);
    if (handed->kernel >= 0)
        close(handed->kernel);
    if (handed->initrd >= 0)
        close(handed->initrd);
}
G_STATIC_ASSERT(QEMU_FD_OTHERS - QEMU_FD_QMP + LIMIT_DISKS + LIMIT_NICS + LIMIT_GUEST_VOLUMES + 2 <=
                PROCESS_KEEP_FDS);
#define handed_auto __attribute__((cleanup(handed_clear))) struct handed

static bool make_folder(const struct guest *guest, GError **error)
{
    g_autofree char *folder = guest_path(guest, NULL);
    g_autofree char *consoles = g_build_filename(guest->qemu->paths->log, "guests", NULL);
    guest_remove_folder(guest);
    /* Others may pass, since QEMU reads the mirror's key there as another user; the files are shut.
     */
    return files_make_folder(folder, GUEST_FOLDER_MODE, error) &&
           files_make_folder(consoles, 0700, error);
}

static bool spawn_with(struct guest *guest, const GPtrArray *args, const GArray *fds,
                       GError **error)
{
    g_autofree char *errors = guest_path(guest, "stderr.log");
    struct process_options options = {
        .argv = (const char *const *)args->pdata,
        .errors_path = errors,
        .keep_fds = (const int *)(void *)fds->data,
        .keep_fd_count = fds->len,
        .exited = guest_exited,
        .data = guest,
    };
    /* Written before and after: whenever we die, the next node daemon finds the process
     * (guest_state.c). */
    if (!guest_state_write(guest, error))
        return false;
    guest->process = process_spawn(&options, error);
    if (guest->process == NULL)
        return false;
    g_hash_table_insert(guest->qemu->guests, guest->instance, guest_ref(guest));
    return guest_state_write(guest, error);
}

/* Keeps a descriptor, or passes the error of what made it on. */
static bool hand(GArray *fds, int fd)
{
    if (fd >= 0)
        g_array_append_val(fds, fd);
    return fd >= 0;
}

/* Made by us and handed over: a client can connect at once and gets the greeting when QEMU is ready
 * for it. */
static bool hand_sockets(const struct guest *guest, GArray *fds, GError **error)
{
    for (guint i = 0; i < SOCKETS; i++) {
        g_autofree char *path = guest_path(guest, sockets[i]);
        if (!hand(fds, unprivileged_listen(path, 1, 0, error)))
            return false;
    }
    return true;
}

static bool hand_log(const struct guest *guest, GArray *fds, GError **error)
{
    g_autofree char *path = g_strdup_printf("%s/guests/%s-%s.console", guest->qemu->paths->log,
                                            guest->name, guest->instance);
    if (hand(fds, open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)))
        return true;
    fettle_set_error(error, STORAGE, "guest %s: cannot write its console to %s: %s", guest->name,
                     path, g_strerror(errno));
    return false;
}

static bool hand_taps(const struct guest_spec *spec, GArray *fds, GError **error)
{
    for (guint i = 0; spec->taps != NULL && i < spec->taps->len; i++)
        if (!hand(fds, tap_open(spec->taps->pdata[i], error)))
            return false;
    return true;
}

static void close_fd(void *fd)
{
    close(*(int *)fd);
}

/* The images' locks are QEMU's from here on: they belong to what is open, so nothing of it stays
 * open here. */
static bool spawn_qemu(struct guest *guest, const struct guest_spec *spec, struct handed *handed,
                       const GPtrArray *args, GError **error)
{
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_set_clear_func(fds, close_fd);
    if (!hand_sockets(guest, fds, error) || !hand_log(guest, fds, error))
        return false;
    g_array_append_vals(fds, handed->images->data, handed->images->len);
    g_array_set_clear_func(handed->images, NULL);
    if (!hand_taps(spec, fds, error))
        return false;
    hand(fds, handed->kernel);
    hand(fds, handed->initrd);
    handed->kernel = handed->initrd = -1;
    g_array_append_vals(fds, handed->volumes->data, handed->volumes->len);
    g_array_set_clear_func(handed->volumes, NULL);
    return spawn_with(guest, args, fds, error);
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

/* 0, or why not. QEMU binds as this does, so a port that was left a moment ago is free. */
static int try_to_listen(const char *address, guint64 port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *at = NULL;
    int on = 1, failure = 0;
    g_autofree char *service = g_strdup_printf("%" G_GUINT64_FORMAT, port);
    if (getaddrinfo(address, service, &hints, &at) != 0)
        return EADDRNOTAVAIL;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 1) != 0)
        failure = errno;
    freeaddrinfo(at);
    if (fd >= 0)
        close(fd);
    return failure;
}

/* Asked before QEMU is, which would not say what to do. */
static bool display_can_listen(const struct instance *instance, GError **error)
{
    const char *address = instance->vnc_bind_address;
    int failure = *address ? try_to_listen(address, instance->network_port) : 0;
    if (failure == EADDRINUSE)
        fettle_set_error(error, ENVIRONMENT,
                         "another process of this host listens on port %" G_GUINT64_FORMAT
                         ", where its display has to be; end that process (ss -ltnp shows it), or "
                         "give the instance another port while it is stopped: fettle instance "
                         "modify --network-port PORT %s",
                         instance->network_port, instance->name);
    else if (failure)
        fettle_set_error(error, ENVIRONMENT,
                         "its display cannot listen on %s, port %" G_GUINT64_FORMAT ": %s", address,
                         instance->network_port, g_strerror(failure));
    return failure == 0;
}

/* From here to the spawned process nothing waits, so that nobody meets a guest without one
 * (SAF-28). */
static bool start_guest(struct guest *guest, const struct guest_spec *spec, struct handed *handed,
                        bool incoming, bool kvm, GError **error)
{
    if (!display_can_listen(spec->instance, error))
        return false;
    g_autoptr(GPtrArray) args = qemu_args(guest, spec, incoming, kvm, error);
    guest->console = console_size(guest->qemu, guest->instance);
    if (args == NULL || !make_folder(guest, error) || !spawn_qemu(guest, spec, handed, args, error))
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
    if (g_hash_table_contains(qemu->starting, instance->uuid)) {
        fettle_set_error(error, ALREADY_EXISTS, "guest %s is being started", instance->name);
        return false;
    }
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

/* For read_node.h. The metadata of a qcow2 image are in QEMU's memory, so nobody else can read
 * what the guest wrote; such an image stays unknown. So does a shared one, which no mirror copies:
 * its folder may not answer, and this is the daemon's loop (SAF-91). */
static void remember_image(struct guest *guest, guint disk, const struct guest_spec *spec, int fd)
{
    const GPtrArray *disks = spec->instance->disks;
    struct stat status;
    bool raw = disk < disks->len && ((struct disk *)disks->pdata[disk])->format == FORMAT_RAW;
    bool local = spec->instance->disk_template != TEMPLATE_SHAREDFILE;
    if (raw && local && fstat(fd, &status) == 0)
        guest->images[disk] = (struct image_file){status.st_dev, status.st_ino};
}

static struct guest *make_guest(struct qemu *qemu, const struct guest_spec *spec,
                                const struct handed *handed, const struct incoming_spec *incoming)
{
    const struct instance *instance = spec->instance;
    struct guest *guest = guest_new(qemu, instance->uuid, instance->generation);
    g_free(guest->name);
    guest->name = g_strdup(instance->name);
    guest->user = guest_users_take(guest->users);
    guest->memory = instance->memory;
    guest->disks = spec->images != NULL ? MIN(spec->images->len, LIMIT_DISKS) : 0;
    for (guint i = 0; i < guest->disks; i++)
        remember_image(guest, i, spec, g_array_index(handed->images, int, i));
    if (incoming != NULL) {
        g_free(guest->migration.uuid);
        guest->migration.uuid = g_strdup(incoming->migration);
        guest->migration.side = SIDE_TARGET;
        guest->migration.serving = incoming->serve_disks;
    }
    return guest;
}

/* Images of this node's own become root's, whosever an older version made them; what nodes share
 * stays as it is. */
static bool open_files(const struct guest_spec *spec, bool fences, struct handed *ret_handed,
                       GError **error)
{
    bool shared = spec->instance->disk_template == TEMPLATE_SHAREDFILE;
    ret_handed->images = unprivileged_open(spec->images, O_RDWR | (shared ? O_DIRECT : 0), !shared,
                                           LIMIT_GUEST_READY_MS, error);
    if (ret_handed->images == NULL)
        return false;
    ret_handed->volumes = volumes_open(spec->volumes, fences, error);
    if (ret_handed->volumes == NULL)
        return false;
    if (spec->kernel == NULL)
        return true;
    ret_handed->kernel = unprivileged_read(spec->kernel, LIMIT_GUEST_READY_MS, error);
    if (ret_handed->kernel < 0 || spec->initrd == NULL)
        return ret_handed->kernel >= 0;
    ret_handed->initrd = unprivileged_read(spec->initrd, LIMIT_GUEST_READY_MS, error);
    return ret_handed->initrd >= 0;
}

/* `fences`: whoever else has a volume of it open has no right to it; what may wait for long before
 * there is a process. */
static bool get_ready(struct qemu *qemu, const struct guest_spec *spec, bool fences,
                      struct handed *ret_handed, bool *ret_kvm, GError **error)
{
    const char *instance = spec->instance->uuid;
    g_hash_table_add(qemu->starting, g_strdup(instance));
    bool ready = accel_choose(qemu->accel, spec->accelerator, ret_kvm, error) &&
                 open_files(spec, fences, ret_handed, error);
    if (!task_killed())
        g_hash_table_remove(qemu->starting, instance);
    return ready;
}

/* Whatever there is of it goes; if it does not, it stays known. */
static void unmake_guest(struct guest *guest)
{
    guest->killed = true;
    if (guest->process != NULL && !process_kill(guest->process, NULL)) {
        guest->prepared = true; /* its end will be told */
        return;
    }
    guest_remove_folder(guest);
    g_hash_table_remove(guest->qemu->guests, guest->instance);
}

bool prepare_guest(struct qemu *qemu, const struct guest_spec *spec,
                   const struct incoming_spec *incoming,
                   bool (*ready)(struct guest *guest, void *data, GError **error), void *data,
                   GError **error)
{
    bool kvm = false;
    handed_auto handed = {NULL, NULL, -1, -1};
    if (!check_prepare(qemu, spec->instance, error) ||
        !get_ready(qemu, spec, incoming == NULL, &handed, &kvm, error))
        return false;
    guest_autoptr guest = make_guest(qemu, spec, &handed, incoming);
    bool started = start_guest(guest, spec, &handed, incoming != NULL, kvm, error) &&
                   (ready == NULL || ready(guest, data, error)) && !guest->gone;
    if (started) {
        guest->prepared = true;
        return true;
    }
    if (error != NULL && *error == NULL)
        fettle_set_error(error, HYPERVISOR, "guest %s: QEMU ended at once", guest->name);
    unmake_guest(guest);
    return false;
}

bool qemu_prepare(struct hypervisor *hv, const struct guest_spec *spec, GError **error)
{
    return prepare_guest((struct qemu *)hv, spec, NULL, NULL, NULL, error);
}
