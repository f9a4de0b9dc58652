/*
 * The side of a live migration that the guest comes to (SAF-17): a process that has its images open
 * but takes them over (locks them, writes to them) only when everything has arrived, and whose CPUs
 * stand still until run(). Its images may be locked and written by the export of a replica until
 * then, and may be renamed at any time: QEMU opens nothing by name again.
 */
#include "backend/hypervisor/block_jobs.h"
#include "backend/hypervisor/keys.h"
#include "backend/psk.h"
#include "base/endpoint.h"
#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CREDS "kin"
#define NBD_SOCKET "nbd"

struct getting_ready {
    const struct guest_spec *spec;
    const struct incoming_spec *incoming;
    struct migration_target *target;
};

/* --- getting ready --- */

/* late-block-activate: what both sides share, images or volumes, is taken over when the CPUs run;
 * an old process that goes on after all finds it free. Images of this side's own then are, too:
 * what was exported was taken over for that, and what is mirrored before is raw, whose reader needs
 * nothing of it. announce-rounds: only the node daemon knows when the guest is here to stay, and
 * calls announce(). */
static bool set_up_receiver(struct guest *guest, const struct guest_spec *spec, GError **error)
{
    bool volumes = spec->volumes != NULL && spec->volumes->len > 0;
    bool shared = volumes || spec->instance->disk_template == TEMPLATE_SHAREDFILE;
    return guest_command(guest, "migrate-set-capabilities",
                         json_make("{s:[{s:s,s:b},{s:s,s:b},{s:s,s:b}]}", "capabilities",
                                   "capability", "events", "state", 1, "capability", "return-path",
                                   "state", 1, "capability", "late-block-activate", "state",
                                   shared),
                         LIMIT_QMP_COMMAND_MS, error) &&
           guest_command(guest, "migrate-set-parameters",
                         json_make("{s:s,s:i}", "tls-creds", CREDS, "announce-rounds", 0),
                         LIMIT_QMP_COMMAND_MS, error);
}

/* QEMU takes a free port and tells it. */
static bool listen_for_memory(struct guest *guest, struct migration_target *target, GError **error)
{
    g_autofree char *place = endpoint_text(target->address, 0);
    g_autofree char *uri = g_strconcat("tcp:", place, NULL);
    if (!guest_command(guest, "migrate-incoming", json_make("{s:s}", "uri", uri),
                       LIMIT_QMP_COMMAND_MS, error))
        return false;
    json_autoptr info = guest_execute(guest, "query-migrate", NULL, LIMIT_QMP_COMMAND_MS, error);
    const json_t *first = json_array_get(json_object_get(info, "socket-address"), 0);
    const char *port = json_string_value(json_object_get(first, "port"));
    target->port = port != NULL ? g_ascii_strtoull(port, NULL, 10) : 0;
    if (info != NULL && target->port == 0)
        fettle_set_error(error, HYPERVISOR, "guest %s: QEMU does not tell where it waits",
                         guest->name);
    return target->port != 0;
}

/* Bound and listened to by us and handed over, so the port is known and nobody's else. -1 with the
 * error. */
static int listen_for_disks(const char *address, guint64 *ret_port, GError **error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof bound;
    char port[NI_MAXSERV];
    int failure = getaddrinfo(address, "0", &hints, &found);
    if (failure != 0) {
        fettle_set_error(error, WRONG_INPUT, "address \"%s\" of an incoming guest: %s", address,
                         gai_strerror(failure));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool listening =
        fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        listen(fd, LIMIT_DISKS) == 0 && getsockname(fd, (struct sockaddr *)&bound, &len) == 0 &&
        getnameinfo((struct sockaddr *)&bound, len, NULL, 0, port, sizeof port, NI_NUMERICSERV) ==
            0;
    freeaddrinfo(found);
    if (listening) {
        *ret_port = g_ascii_strtoull(port, NULL, 10);
        return fd;
    }
    fettle_set_error(error, ENVIRONMENT, "cannot listen on %s for the disks of a guest: %s",
                     address, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool start_server(struct guest *guest, const char *address, guint64 *ret_port,
                         GError **error)
{
    int fd = listen_for_disks(address, ret_port, error);
    if (fd < 0)
        return false;
    bool started = guest_give_descriptor(guest, "getfd", json_make("{s:s}", "fdname", NBD_SOCKET),
                                         fd, error) &&
                   guest_command(guest, "nbd-server-start",
                                 json_make("{s:{s:s,s:{s:s}},s:s}", "addr", "type", "fd", "data",
                                           "str", NBD_SOCKET, "tls-creds", CREDS),
                                 LIMIT_QMP_COMMAND_MS, error);
    guest->migration.listener = fd;
    return started;
}

/* Nobody comes in any more: what is sent to it is dropped before there is a connection. QEMU 7.2 is
 * not told to stop listening (nbd-server-stop): it then waits, in its main loop and for ever, for
 * whoever is connected and has said nothing yet. Without its exports the server gives nothing. A
 * node daemon that was restarted meanwhile has no end of the socket, and leaves it as it is. */
static void deafen(struct guest *guest)
{
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &drop};
    int *fd = &guest->migration.listener;
    if (*fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
        log_warning("", "guest %s: the port that its disks came in by stays open: %s", guest->name,
                    g_strerror(errno));
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* An export takes over the image at once, so that it can be written. */
static bool serve_disk(struct guest *guest, struct export_target *target, guint disk, guint64 port,
                       GError **error)
{
    struct export_disk *where = export_disk_new();
    g_autofree char *id = g_strdup_printf("e%u", disk);
    g_autofree char *node = g_strdup_printf("d%u", disk);
    g_free(where->name);
    where->name = g_strdup_printf("%s.%u", target->replica, disk);
    where->port = port;
    g_ptr_array_add(target->disks, where);
    return guest_command(guest, "block-export-add",
                         json_make("{s:s,s:s,s:s,s:s,s:b}", "type", "nbd", "id", id, "node-name",
                                   node, "name", where->name, "writable", 1),
                         LIMIT_QMP_COMMAND_MS, error);
}

static bool serve_disks(struct guest *guest, struct migration_target *target, GError **error)
{
    guint64 port = 0;
    if (!start_server(guest, target->address, &port, error))
        return false;
    struct export_target *disks = export_target_new();
    g_free(disks->replica);
    g_free(disks->address);
    g_free(disks->psk);
    disks->replica = g_strdup(target->migration);
    disks->address = g_strdup(target->address);
    disks->psk = g_strdup(target->psk);
    target->disks = disks;
    for (guint i = 0; i < guest->disks; i++)
        if (!serve_disk(guest, disks, i, port, error))
            return false;
    return true;
}

static bool get_ready(struct guest *guest, void *data, GError **error)
{
    struct getting_ready *getting = data;
    struct migration_target *target = getting->target;
    return keys_write(guest, KEY_SERVER, target->psk, error) &&
           keys_add(guest, KEY_SERVER, CREDS, error) &&
           set_up_receiver(guest, getting->spec, error) &&
           listen_for_memory(guest, target, error) &&
           (!getting->incoming->serve_disks || serve_disks(guest, target, error));
}

bool incoming_prepare(struct hypervisor *hv, const struct guest_spec *spec,
                      const struct incoming_spec *incoming, struct migration_target **ret_target,
                      GError **error)
{
    record_autoptr(migration_target) target = migration_target_new();
    struct getting_ready getting = {spec, incoming, target};
    if (!g_uuid_string_is_valid(incoming->migration)) {
        fettle_set_error(error, WRONG_INPUT, "migration \"%s\" is no UUID", incoming->migration);
        return false;
    }
    g_free(target->migration);
    g_free(target->address);
    g_free(target->psk);
    target->migration = g_strdup(incoming->migration);
    target->address = g_strdup(incoming->address);
    target->psk = psk_new();
    if (!prepare_guest((struct qemu *)hv, spec, incoming, get_ready, &getting, error))
        return false;
    *ret_target = g_steal_pointer(&target);
    return true;
}

/* --- taking over --- */

bool incoming_check_arrived(const struct guest *guest, GError **error)
{
    if (guest->migration.side != SIDE_TARGET || guest->migration.arrived)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "guest %s is an incoming one of migration %s, of which not everything has "
                     "arrived",
                     guest->name, guest->migration.uuid);
    return false;
}

static bool stop_serving(struct guest *guest, GError **error)
{
    for (guint i = 0; i < guest->disks; i++) {
        g_autofree char *id = g_strdup_printf("e%u", i);
        GError *failure = NULL;
        bool done = guest_command(guest, "block-export-del",
                                  json_make("{s:s,s:s}", "id", id, "mode", "hard"),
                                  LIMIT_QMP_DRAIN_MS, &failure);
        if (!block_jobs_absent_is_fine(done, &failure, error))
            return false;
    }
    deafen(guest);
    return true;
}

static bool check_whole(struct guest *guest, GError **error)
{
    json_autoptr info = guest_execute(guest, "query-migrate", NULL, LIMIT_QMP_COMMAND_MS, error);
    if (info == NULL)
        return false;
    const char *status = json_string_value(json_object_get(info, "status"));
    const char *why = json_string_value(json_object_get(info, "error-desc"));
    if (g_strcmp0(status, "completed") == 0)
        return true;
    if (g_strcmp0(status, "failed") == 0)
        fettle_set_error(error, HYPERVISOR, "guest %s: its migration has failed: %s", guest->name,
                         why != NULL ? why : "QEMU gives no reason");
    else
        fettle_set_error(error, TEMPORARY, "guest %s: not everything has arrived yet", guest->name);
    return false;
}

static bool take_over(struct guest *guest, GError **error)
{
    if (!check_whole(guest, error) || (guest->migration.serving && !stop_serving(guest, error)))
        return false;
    guest->migration.arrived = true;
    if (!guest_state_write(guest, error)) {
        guest->migration.arrived = false;
        return false;
    }
    keys_remove(guest, KEY_SERVER);
    return true;
}

bool incoming_finish(struct hypervisor *hv, const char *instance, guint64 generation,
                     const char *migration, GError **error)
{
    guest_autoptr guest = guest_find((struct qemu *)hv, instance, generation, error);
    if (guest == NULL)
        return false;
    if (guest->migration.side != SIDE_TARGET || strcmp(guest->migration.uuid, migration) != 0) {
        fettle_set_error(error, REFUSED, "guest %s is not the incoming one of migration %s",
                         guest->name, migration);
        return false;
    }
    return guest->migration.arrived || take_over(guest, error);
}
