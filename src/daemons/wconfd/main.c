/*
 * fettle-wconfd: the configuration, locks and confirmations of the cluster, on run/wconfd.sock. All
 * thinking is core/wconfd's and core/candidate's; here it gets its environment, its store and its
 * socket. What the store says of itself decides whether this is the master's or keeps a copy. With
 * --bootstrap it makes the store of a new cluster instead, with --restore it puts a backup back.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/log.h"
#include "core/candidate/seat.h"
#include "core/host/announced.h"
#include "core/wconfd/wconf.h"
#include "daemons/common/daemon.h"
#include "daemons/wconfd/open.h"
#include "daemons/wconfd/restore.h"
#include "io/etcd/etcd_ensemble.h"
#include "io/loop.h"
#include "io/net/authority.h"
#include "io/net/rpc_server.h"
#include "io/real_env.h"
#include "io/sqlite/sqlite_copy.h"
#include "io/sqlite/sqlite_engine.h"

#define ENGINE_LOOK_MS 1000u

static struct {
    gboolean bootstrap;
    char *restore; /* file */
    struct env *env;
    struct seat *seat;
    struct opened opened;
    guint timer;      /* until the next look at etc/engine.json */
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
    if (!params || !wconf_bootstrap_check(params, error)) {
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

/* Another engine is another process, except for a master, which has its seat to lose. */
static void refresh_cb(void *data)
{
    struct opened *opened = &wconfd.opened;
    g_autoptr(GError) reason = NULL;
    bool changed = false;
    if (!opened_refresh(opened, &changed, &reason) && !seat_is_master(wconfd.seat)) {
        daemon_quit(reason);
        return;
    }
    if (changed)
        seat_set_engine(wconfd.seat, opened->kind, opened->barred, opened->undecided);
    wconfd.timer = loop_timer(ENGINE_LOOK_MS, refresh_cb, NULL);
}

static struct env *setup(const char *root, GError **error)
{
    wconfd.env = real_env_new(root, ROLE_WCONFD, NULL, error);
    if (!wconfd.env)
        return NULL;
    const struct node_paths *paths = real_env_paths(wconfd.env);
    g_autofree char *socket = node_paths_socket(paths, ROLE_WCONFD);
    struct opened *opened = &wconfd.opened;
    if (!opened_init(opened, wconfd.env, error))
        return NULL;
    wconfd.env->authority = authority_new(paths, "authority");
    wconfd.env->ensemble = etcd_ensemble_new(paths, wconfd.env->node_uuid);
    wconfd.seat = seat_new(wconfd.env, opened->copy);
    seat_set_engine(wconfd.seat, opened->kind, opened->barred, opened->undecided);
    seat_set_step(wconfd.seat, opened->step);
    seat_on_end(wconfd.seat, seat_ended, NULL);
    struct rpc_server_options listen = {.path = socket,
                                        .role = ROLE_WCONFD,
                                        .node_uuid = wconfd.env->node_uuid,
                                        .reads_records = true,
                                        .handle = handle,
                                        .complain = complain};
    wconfd.server = rpc_server_new(&listen, error);
    return wconfd.server ? wconfd.env : NULL;
}

/* The epoch of the master that has taken the place of this node's store; 0: none has. A damaged
 * store cannot ask the others, but this node may have been told. */
static guint64 replaced_by(const GError *reason)
{
    struct mastership record = {0};
    struct engine *engine = wconfd.env->engine;
    bool known = engine && engine->ops->observe(engine, &record, NULL);
    if (!known || engine->replicated)
        return 0;
    if (fettle_error_is(reason, STALE_EPOCH))
        return record.epoch;
    record_autoptr(announce_args) announced = announced_read(wconfd.env);
    return fettle_error_is(reason, CORRUPT) && announced && announced->epoch > record.epoch &&
                   strcmp(announced->master_node, wconfd.env->node_uuid) != 0
               ? announced->epoch
               : 0;
}

static bool start(GError **error)
{
    g_autoptr(GError) local = NULL;
    if (seat_start(wconfd.seat, &local)) {
        if (wconfd.opened.copy)
            refresh_cb(NULL);
        return true;
    }
    wconfd.replaced = replaced_by(local);
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* Somebody else's store is the engine: the next start goes on with a copy. What is here becomes
 * one, which the next master of this cluster may be made of; what is damaged is only put away. */
static void put_store_away(void)
{
    g_autoptr(GError) why = NULL;
    g_autoptr(GError) error = NULL;
    bool stays = sqlite_copy_step_down(wconfd.opened.path, wconfd.replaced, &why);
    if (!stays)
        log_warning("", "the store is put away whole, and this node begins without one: %s",
                    why->message);
    if (!stays && !sqlite_copy_put_away(wconfd.opened.path, wconfd.replaced, &error))
        log_error("", "%s", error->message);
    else
        log_warning("",
                    "the store of epoch %" G_GUINT64_FORMAT
                    " is kept as %s.epoch-%" G_GUINT64_FORMAT
                    ": it may have changes that the new master does not have",
                    wconfd.replaced, wconfd.opened.path, wconfd.replaced);
}

static void stop(void)
{
    g_clear_pointer(&wconfd.server, rpc_server_free);
    loop_timer_cancel(wconfd.timer);
    opened_close_engine(&wconfd.opened);
    g_clear_pointer(&wconfd.seat, seat_free);
    struct authority *authority = wconfd.env ? wconfd.env->authority : NULL;
    struct ensemble *ensemble = wconfd.env ? wconfd.env->ensemble : NULL;
    g_clear_pointer(&wconfd.env, real_env_free); /* ends what asks it */
    if (wconfd.replaced)
        put_store_away();
    opened_clear(&wconfd.opened);
    etcd_ensemble_free(ensemble);
    authority_free(authority);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
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
