/*
 * The relay between a guest's QEMU and the exports of its replica (SAF-14), as an nbdkit plugin:
 * one process for all disks of a mirror, on the guest's own host, behind a Unix socket.
 *
 * Forwarding, it passes requests on and answers what the exports have done; every fault of theirs
 * means that it answers nothing, so that the guest's writes wait (remote.h). Refusing, it answers
 * every request with EIO: QEMU's writes go on without the replica, and nothing is under way any
 * more when their mirror is taken away. Which of the two it does is said at its start and never
 * changes; the node daemon puts a refusing one in the place of a forwarding one when it is on
 * record that the replica is stale (backend/hypervisor/relay.h).
 *
 * The socket is handed over (LISTEN_FDS).
 *
 *   socket=PATH               its name, by which the process is known to who started it
 *   disk=PORT,BYTES,EXPORT    for each disk; EXPORT is the name also on this side
 *   address=ADDRESS key=FILE  where the exports are, and the file that holds the key of the
 * transfer patient=true              forward also if nobody answers at the start (a restart)
 *   refuse=true               instead of both
 */
#define NBDKIT_API_VERSION 2
#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

#include "backend/plugin.h"
#include "backend/relay/remote.h"
#include "base/limits.h"

#include <nbdkit-plugin.h>

#include <errno.h>
#include <libnbd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static char *address, *key;
static bool refusing, patient;
static struct remote_place places[LIMIT_DISKS];
static struct remote *remotes[LIMIT_DISKS];
static unsigned disks;

struct client {
    unsigned disk;
    uint64_t number;
};

/* --- parameters --- */

static bool parse_port(const char *text)
{
    uint64_t port;
    return nbdkit_parse_uint64_t("port", text, &port) == 0 && port > 0 && port < 65536;
}

/* PORT,BYTES,EXPORT */
static int add_disk(const char *value)
{
    char *copy = strdup(value);
    char *bytes = copy != NULL ? strchr(copy, ',') : NULL;
    char *name = bytes != NULL ? strchr(bytes + 1, ',') : NULL;
    if (disks == LIMIT_DISKS) {
        nbdkit_error("more than %d disks", LIMIT_DISKS);
        return -1;
    }
    if (name == NULL || name[1] == '\0') {
        nbdkit_error("disk=%s: PORT,BYTES,EXPORT is needed", value);
        return -1;
    }
    *bytes++ = *name++ = '\0';
    struct remote_place *place = &places[disks];
    place->port = copy;
    place->name = name;
    if (!parse_port(copy) || nbdkit_parse_uint64_t("bytes", bytes, &place->bytes) < 0 ||
        place->bytes == 0 || place->bytes > INT64_MAX) {
        nbdkit_error("disk=%s: the port or the number of bytes is out of range", value);
        return -1;
    }
    disks++;
    return 0;
}

static int set_once(char **slot, const char *name, const char *value)
{
    if (*slot != NULL || value[0] == '\0') {
        nbdkit_error("parameter %s is %s", name, *slot != NULL ? "given twice" : "empty");
        return -1;
    }
    *slot = strdup(value);
    return *slot != NULL ? 0 : -1;
}

static int set_flag(bool *flag, const char *value)
{
    int parsed = nbdkit_parse_bool(value);
    *flag = parsed > 0;
    return parsed < 0 ? -1 : 0;
}

static int relay_config(const char *name, const char *value)
{
    if (strcmp(name, "socket") == 0)
        return 0;
    if (strcmp(name, "disk") == 0)
        return add_disk(value);
    if (strcmp(name, "address") == 0)
        return set_once(&address, name, value);
    if (strcmp(name, "key") == 0)
        return set_once(&key, name, value);
    if (strcmp(name, "patient") == 0)
        return set_flag(&patient, value);
    if (strcmp(name, "refuse") == 0)
        return set_flag(&refusing, value);
    nbdkit_error("unknown parameter %s; known are socket, disk, address, key, patient, refuse",
                 name);
    return -1;
}

static int relay_config_complete(void)
{
    if (disks == 0) {
        nbdkit_error("at least one disk=PORT,BYTES,EXPORT is needed");
        return -1;
    }
    if (refusing == (address != NULL) || refusing == (key != NULL)) {
        nbdkit_error("either address and key are needed, or refuse=true without them");
        return -1;
    }
    for (unsigned i = 0; i < disks; i++)
        for (unsigned j = 0; j < i; j++)
            if (strcmp(places[i].name, places[j].name) == 0) {
                nbdkit_error("two disks are named %s", places[i].name);
                return -1;
            }
    return 0;
}

/* --- the start --- */

/* The socket appears after this, so who finds it finds exports that have answered. */
static int relay_get_ready(void)
{
    for (unsigned i = 0; i < disks && !refusing; i++) {
        places[i].address = address;
        places[i].key = key;
        remotes[i] = remote_new(&places[i]);
        if (remotes[i] == NULL) {
            nbdkit_error("disk %u: %s", i, strerror(errno));
            return -1;
        }
        if (!patient && !remote_check(remotes[i]))
            return -1;
    }
    return 0;
}

static int relay_after_fork(void)
{
    plugin_end_at_once();
    for (unsigned i = 0; i < disks && !refusing; i++)
        if (!remote_start(remotes[i])) {
            nbdkit_error("disk %u: no thread can be started", i);
            return -1;
        }
    return 0;
}

/* --- requests --- */

static void *relay_open(int readonly)
{
    const char *asked = nbdkit_export_name();
    struct client *client = calloc(1, sizeof *client);
    while (client != NULL && asked != NULL && client->disk < disks &&
           strcmp(places[client->disk].name, asked) != 0)
        client->disk++;
    if (client == NULL || asked == NULL || client->disk == disks) {
        nbdkit_error("export %s was asked for, which is not relayed here",
                     asked != NULL ? asked : "(none)");
        free(client);
        return NULL;
    }
    if (!refusing)
        client->number = remote_client(remotes[client->disk]);
    return client;
}

static void relay_close(void *handle)
{
    free(handle);
}

static int64_t relay_get_size(void *handle)
{
    return (int64_t)places[((const struct client *)handle)->disk].bytes;
}

static int relay(const struct client *client, const struct remote_request *request)
{
    if (refusing) {
        nbdkit_set_error(EIO);
        return -1;
    }
    remote_do(remotes[client->disk], client->number, request);
    return 0;
}

static uint32_t fua(uint32_t flags)
{
    return (flags & NBDKIT_FLAG_FUA) != 0 ? LIBNBD_CMD_FLAG_FUA : 0;
}

static int relay_pread(void *handle, void *buffer, uint32_t count, uint64_t offset, uint32_t flags)
{
    const struct remote_request request = {REMOTE_READ, buffer, count, offset, 0};
    return relay(handle, &request);
}

static int relay_pwrite(void *handle, const void *buffer, uint32_t count, uint64_t offset,
                        uint32_t flags)
{
    const struct remote_request request = {REMOTE_WRITE, (void *)buffer, count, offset, fua(flags)};
    return relay(handle, &request);
}

static int relay_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
    const struct remote_request request = {REMOTE_TRIM, NULL, count, offset, fua(flags)};
    return relay(handle, &request);
}

static int relay_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
    bool hole = (flags & NBDKIT_FLAG_MAY_TRIM) != 0;
    const struct remote_request request = {REMOTE_ZERO, NULL, count, offset,
                                           fua(flags) | (hole ? 0 : LIBNBD_CMD_FLAG_NO_HOLE)};
    return relay(handle, &request);
}

static int relay_flush(void *handle, uint32_t flags)
{
    const struct remote_request request = {REMOTE_FLUSH, NULL, 0, 0, 0};
    return relay(handle, &request);
}

static int yes(void *handle)
{
    return 1;
}

static int relay_can_fua(void *handle)
{
    return NBDKIT_FUA_NATIVE;
}

static struct nbdkit_plugin plugin = {
    .name = "fettle-relay",
    .version = FETTLE_VERSION,
    .description = "Relay between a guest and the exports of its replica",
    .load = plugin_outlive_parent,
    .config = relay_config,
    .config_complete = relay_config_complete,
    .config_help = "[socket=PATH] disk=PORT,BYTES,EXPORT… and either address=ADDRESS key=FILE "
                   "[patient=true] or refuse=true",
    .get_ready = relay_get_ready,
    .after_fork = relay_after_fork,
    .open = relay_open,
    .close = relay_close,
    .get_size = relay_get_size,
    .can_write = yes,
    .can_flush = yes,
    .can_trim = yes,
    .can_zero = yes,
    .can_fua = relay_can_fua,
    .pread = relay_pread,
    .pwrite = relay_pwrite,
    .trim = relay_trim,
    .zero = relay_zero,
    .flush = relay_flush,
};

struct nbdkit_plugin *plugin_init(void); /* the macro defines it without a prototype */
NBDKIT_REGISTER_PLUGIN(plugin)
