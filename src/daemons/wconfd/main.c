/*
 * fettle-wconfd: the configuration, locks and confirmations of the cluster, on run/wconfd.sock. All
 * thinking is core/config's; here it gets its environment, its store and its socket. What the store
 * says of itself decides whether this is the master's or keeps a copy. With --bootstrap it makes
 * the store of a new cluster instead, with --restore it puts a backup back.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "core/config/announced.h"
#include "core/config/seat.h"
#include "core/config/wconf.h"
#include "daemons/common/daemon.h"
#include "daemons/wconfd/restore.h"
#include "io/authority.h"
#include "io/real_env.h"
#include "io/rpc_server.h"
#include "io/sqlite_copy.h"
#include "io/sqlite_engine.h"

static struct {
    gboolean bootstrap;
    char *restore; /* file */
    struct env *env;
    struct seat *seat;
    struct copy *copy; /* NULL: this node's store is the engine */
    char *store;
    guint64 replaced; /* epoch of a mastership that is over: its store is to be put away */
    struct rpc_server *server;
} wconfd;

static const GOptionEntry options[] = {
    {"bootstrap", 0, 0, G_OPTION_ARG_NONE, &wconfd.bootstrap,
     "Make a new cluster's store, with OP_CLUSTER_INIT on standard input, and exit", NULL},
    {"restore", 0, 0, G_OPTION_ARG_FILENAME, &wconfd.restore,
     "Put a backup in the place of the store, and exit; `fettle cluster restore` does it", "FILE"},
    {NULL},
};

/* --- a new cluster --- */

static json_t *read_input(GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char buffer[4096];
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, stdin)) > 0 && text->len <= LIMIT_HELLO_BYTES)
        g_string_append_len(text, buffer, (gssize)got);
    return json_parse_limited(text->str, text->len, LIMIT_HELLO_BYTES, error);
}

/* The opcode as submitted, or its parameters alone. */
static struct op_cluster_init *parse_input(json_t *input, GError **error)
{
    const struct opcode *opcode = NULL;
    struct op_common *common = NULL;
    void *params = NULL;
    if (json_is_object(input) && !json_object_get(input, "OP_ID"))
        json_object_set_new(input, "OP_ID", json_string("OP_CLUSTER_INIT"));
    if (!opcode_parse(input, &common, &params, &opcode, error))
        return NULL;
    op_common_free(common);
    if (opcode->params == &op_cluster_init_record)
        return params;
    fettle_set_error(error, WRONG_INPUT, "OP_ID: must be OP_CLUSTER_INIT, not %s", opcode->id);
    record_free(opcode->params, params);
    return NULL;
}

static char *random_digits(size_t bytes)
{
    GString *text = g_string_new(NULL);
    for (size_t i = 0; i < bytes; i++) {
        guint8 byte;
        g_assert(getrandom(&byte, 1, 0) == 1);
        g_string_append_printf(text, "%02x", byte);
    }
    return g_string_free(text, FALSE);
}

static bool bootstrap(const struct node_paths *paths, GError **error)
{
    json_autoptr input = read_input(error);
    record_autoptr(op_cluster_init) params = input ? parse_input(input, error) : NULL;
    if (!params) {
        g_prefix_error(error, "standard input: ");
        return false;
    }
    record_autoptr(node_config) node = node_config_read(paths, error);
    if (!node || !node_paths_make(paths, error))
        return false;
    g_autofree char *group = g_uuid_string_random();
    g_autofree char *store = g_build_filename(paths->var, "store.db", NULL);
    g_autoptr(GPtrArray) changes = wconf_bootstrap_changes(
        params, node->cluster_uuid, node->node_uuid, (guint)node->port, group);
    g_autofree char *key = random_digits(CONFD_KEY_BYTES);
    g_ptr_array_add(changes, wconf_bootstrap_secret("confd", key));
    return sqlite_engine_create(store, 1, changes, error);
}

static bool once(const char *root, bool *ret_done, GError **error)
{
    *ret_done = wconfd.bootstrap || wconfd.restore;
    if (!*ret_done)
        return true;
    g_autoptr(node_paths_t) paths = node_paths_new(root, error);
    g_autofree char *file = g_steal_pointer(&wconfd.restore);
    return paths && (file ? wconfd_restore(paths, file, error) : bootstrap(paths, error));
}

/* --- the daemon --- */

static void handle(struct rpc_request *request, void *data)
{
    seat_handle(wconfd.seat, request);
}

static void complain(const char *line, void *data)
{
    log_warning("", "%s", line);
}

static void seat_ended(const GError *reason, void *data)
{
    daemon_quit(reason);
}

/* Whether a store that is missing, or does not say what it is, can only be a copy: there is a
 * master, and it is another node. */
static bool is_elsewhere(const struct announce_args *announced, const GError *damaged)
{
    if (!announced)
        return false;
    return !damaged || (fettle_error_is(damaged, CORRUPT) &&
                        strcmp(announced->master_node, wconfd.env->node_uuid) != 0);
}

/* A node that was told about a cluster keeps a copy, if there is nothing else; any other has no
 * cluster yet. */
static bool open_store(GError **error)
{
    g_autoptr(GError) damaged = NULL;
    record_autoptr(announce_args) announced = announced_read(wconfd.env);
    enum copy_role role = COPY_ENGINE;
    bool there = sqlite_copy_role(wconfd.store, &role, &damaged);
    if (there ? role != COPY_ENGINE : is_elsewhere(announced, damaged))
        wconfd.copy = sqlite_copy_open(wconfd.store, error);
    else if (!damaged)
        wconfd.env->engine = sqlite_engine_open(wconfd.store, error);
    else
        g_propagate_error(error, g_steal_pointer(&damaged));
    return wconfd.env->engine || wconfd.copy;
}

static struct env *setup(const char *root, GError **error)
{
    wconfd.env = real_env_new(root, ROLE_WCONFD, NULL, error);
    if (!wconfd.env)
        return NULL;
    const struct node_paths *paths = real_env_paths(wconfd.env);
    g_autofree char *socket = node_paths_socket(paths, ROLE_WCONFD);
    wconfd.store = g_build_filename(paths->var, "store.db", NULL);
    if (!open_store(error))
        return NULL;
    wconfd.env->authority = authority_new(paths);
    wconfd.seat = seat_new(wconfd.env, wconfd.copy);
    seat_on_end(wconfd.seat, seat_ended, NULL);
    struct rpc_server_options listen = {.path = socket,
                                        .role = ROLE_WCONFD,
                                        .node_uuid = wconfd.env->node_uuid,
                                        .handle = handle,
                                        .complain = complain};
    wconfd.server = rpc_server_new(&listen, error);
    return wconfd.server ? wconfd.env : NULL;
}

static bool start(GError **error)
{
    g_autoptr(GError) local = NULL;
    if (seat_start(wconfd.seat, &local))
        return true;
    struct mastership record = {0};
    if (wconfd.env->engine && fettle_error_is(local, STALE_EPOCH) &&
        wconfd.env->engine->ops->observe(wconfd.env->engine, &record, NULL))
        wconfd.replaced = record.epoch;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* Somebody else's store is the engine: the next start makes a copy of that. */
static void put_store_away(void)
{
    g_autoptr(GError) error = NULL;
    if (!sqlite_copy_put_away(wconfd.store, wconfd.replaced, &error))
        log_error("", "%s", error->message);
    else
        log_warning("",
                    "the store of epoch %" G_GUINT64_FORMAT
                    " is kept as %s.epoch-%" G_GUINT64_FORMAT
                    ": it may have changes that the new master does not have",
                    wconfd.replaced, wconfd.store, wconfd.replaced);
}

static void stop(void)
{
    g_clear_pointer(&wconfd.server, rpc_server_free);
    if (wconfd.env && wconfd.env->engine)
        wconfd.env->engine->ops->close(wconfd.env->engine);
    g_clear_pointer(&wconfd.seat, seat_free);
    struct authority *authority = wconfd.env ? wconfd.env->authority : NULL;
    g_clear_pointer(&wconfd.env, real_env_free); /* ends what asks it */
    if (wconfd.copy)
        wconfd.copy->ops->close(wconfd.copy);
    if (wconfd.replaced)
        put_store_away();
    g_clear_pointer(&wconfd.store, g_free);
    authority_free(authority);
}

int main(int argc, char **argv)
{
    /* Requests come and go as many small pieces beside a few large buffers, each of which would
     * make glibc merge all of its fast bins. */
    mallopt(M_MXFAST, 0);
    return daemon_main(
        argc, argv,
        &(struct daemon){.name = "wconfd",
                         .summary = "Keep the configuration and the locks of the cluster.",
                         .options = options,
                         .once = once,
                         .setup = setup,
                         .start = start,
                         .stop = stop});
}
