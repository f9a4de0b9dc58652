/*
 * fettle-rconfd: signed answers about the configuration over UDP, from this node's own copy of it,
 * with or without a master. All thinking is core/confd's. It runs on every node and answers where
 * the copy says that the node is a master candidate; there only is a socket, so who asks anywhere
 * else is told at once by the host itself that nobody is there.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemons/common/daemon.h"
#include "daemons/rconfd/status.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/net/udp.h"
#include "io/real_env.h"
#include "io/sqlite/store_reader.h"

static struct {
    struct env *env;
    struct store_reader *reader;
    struct confd *confd;
    struct confd_copy *fresh; /* being filled, to take the place of the present one */
    char *key;                /* as it stands in var/confd.key */
    char *complaint;          /* the last one about the store */
    struct udp_server *server;
    struct rconfd_status status;
} rconfd;

/* --- the copy --- */

static void begin(void *data)
{
    confd_copy_free(rconfd.fresh);
    rconfd.fresh = confd_copy_new();
}

static bool change(const struct change *change, void *data, GError **error)
{
    struct confd_copy *copy = rconfd.fresh ? rconfd.fresh : confd_copy_of(rconfd.confd);
    return confd_copy_apply(copy, change, error);
}

static void done(const struct store_position *position, void *data)
{
    if (rconfd.fresh)
        confd_set_copy(rconfd.confd, g_steal_pointer(&rconfd.fresh));
    struct confd_copy *copy = confd_copy_of(rconfd.confd);
    confd_copy_set_position(copy, position->history, position->serial);
    confd_copy_set_retired(copy, position->role == COPY_RETIRED);
}

static void gone(void *data)
{
    confd_set_copy(rconfd.confd, NULL);
}

/* What was there before stays: an old answer says how old it is. */
static void refresh(void *data)
{
    g_autoptr(GError) error = NULL;
    bool ok = store_reader_refresh(rconfd.reader, &error);
    g_clear_pointer(&rconfd.fresh, confd_copy_free);
    if (!ok && g_strcmp0(rconfd.complaint, error->message) != 0)
        log_warning("", "the copy of the configuration cannot be read: %s", error->message);
    g_free(rconfd.complaint);
    rconfd.complaint = ok ? NULL : g_strdup(error->message);
}

/* --- the key, for tools of this host --- */

static void write_key(void)
{
    const struct config *config = confd_copy_config(confd_copy_of(rconfd.confd));
    const struct secret *secret = config_get(config, "secret", "confd", NULL);
    g_autofree char *path = g_build_filename(real_env_paths(rconfd.env)->var, "confd.key", NULL);
    g_autoptr(GError) error = NULL;
    if (g_strcmp0(rconfd.key, secret->value) == 0)
        return;
    g_autofree char *there = files_read_path(path, LIMIT_CONFD_KEY_BYTES, NULL, NULL);
    if (g_strcmp0(there, secret->value) != 0 &&
        !files_write_path(path, secret->value, strlen(secret->value), 0600, true, &error))
        log_warning("", "the key of ConfD cannot be written: %s", error->message);
    g_free(rconfd.key);
    rconfd.key = g_strdup(secret->value);
}

/* The copy says that this node is not to have it (any more). Where there is no copy nothing says
 * so: it may be on its way. */
static void drop_key(void)
{
    g_autofree char *path = g_build_filename(real_env_paths(rconfd.env)->var, "confd.key", NULL);
    if (!confd_copy_of(rconfd.confd))
        return;
    if (unlink(path) == 0)
        log_info("", "the key of ConfD was removed: this node does not answer any more");
    g_clear_pointer(&rconfd.key, g_free);
}

/* --- serving --- */

static char *answer(const char *from, const char *data, size_t len, size_t *ret_len, void *user)
{
    return confd_handle(rconfd.confd, loop_wall_us() / G_USEC_PER_SEC, from, data, len, ret_len);
}

static bool listen_to_clients(GError **error)
{
    if (rconfd.server)
        return true;
    const struct udp_options options = {.address = rconfd.status.address,
                                        .port = rconfd.status.port,
                                        .max_bytes = LIMIT_CONFD_REQUEST_BYTES,
                                        .answer = answer};
    rconfd.server = udp_server_new(&options, error);
    return rconfd.server != NULL;
}

static void serve(void)
{
    g_autoptr(GError) error = NULL;
    const char *why = confd_silent_because(rconfd.confd);
    if (why) {
        g_clear_pointer(&rconfd.server, udp_server_free);
        drop_key();
    } else if (!listen_to_clients(&error)) {
        why = error->message;
    } else {
        write_key();
    }
    rconfd_status_set(&rconfd.status, why);
}

static void look_cb(void *data)
{
    refresh(NULL);
    serve();
    rconfd_status_tick(&rconfd.status);
    loop_timer(CONFD_LOOK_MS, look_cb, NULL);
}

/* --- the daemon --- */

static struct env *setup(const char *root, GError **error)
{
    rconfd.env = real_env_new(root, ROLE_RCONFD, NULL, error);
    if (!rconfd.env)
        return NULL;
    const struct node_paths *paths = real_env_paths(rconfd.env);
    const struct node_config *config = real_env_config(rconfd.env);
    const struct store_reader_client client = {
        .keeps = confd_copy_keeps, .begin = begin, .change = change, .done = done, .gone = gone};
    g_autofree char *store = g_build_filename(paths->var, "store.db", NULL);
    rconfd.confd = confd_new(rconfd.env->node_uuid);
    confd_on_request(rconfd.confd, refresh, NULL);
    rconfd.reader = store_reader_new(store, &client);
    rconfd.status = (struct rconfd_status){.paths = paths,
                                           .confd = rconfd.confd,
                                           .address = config->address,
                                           .port = (guint)config->confd_port,
                                           .complained_ms = loop_boot_ms()};
    return rconfd.env;
}

static bool start(GError **error)
{
    look_cb(NULL);
    return true;
}

static void stop(void)
{
    g_clear_pointer(&rconfd.server, udp_server_free);
    g_clear_pointer(&rconfd.reader, store_reader_free);
    g_clear_pointer(&rconfd.confd, confd_free);
    g_clear_pointer(&rconfd.fresh, confd_copy_free);
    rconfd_status_clear(&rconfd.status);
    g_free(rconfd.key);
    g_free(rconfd.complaint);
    g_clear_pointer(&rconfd.env, real_env_free);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    static const struct daemon description = {
        .name = "rconfd",
        .summary =
            "Answer questions about the configuration over UDP (ConfD), from this node's own "
            "copy.",
        .setup = setup,
        .start = start,
        .stop = stop,
    };
    return daemon_main(argc, argv, &description);
}
