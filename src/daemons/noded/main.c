/*
 * fettle-noded: the node daemon. Wires core/node to QEMU, the disks and the bus; the bus opens
 * only when it is known what runs here. Guests and exports live on when it ends.
 */
#include <sys/stat.h>

#include "backend/guest_users.h"
#include "backend/hypervisor/qemu.h"
#include "backend/members/etcd.h"
#include "backend/network/network_linux.h"
#include "backend/storage/file_storage.h"
#include "base/log.h"
#include "core/node/node.h"
#include "daemons/common/daemon.h"
#include "daemons/noded/forget.h"
#include "daemons/noded/join.h"
#include "daemons/noded/rest_certificate.h"
#include "io/mond_place.h"
#include "io/net/authority.h"
#include "io/net/bus.h"
#include "io/rapid_place.h"
#include "io/real_env.h"

static struct {
    struct env *env;
    struct node_core *core;
    struct bus *bus;
    struct rest_certificate *rest;
    struct guest_users *users;
    gboolean forget, alone;
    char *statement;
} noded;

static const GOptionEntry noded_options[] = {
    {"forget-mastership", 0, 0, G_OPTION_ARG_NONE, &noded.forget,
     "Forget a mastership that no other candidate follows, and exit; the node daemon must not run",
     NULL},
    {"statement", 0, 0, G_OPTION_ARG_STRING, &noded.statement, "With that: who says so, and why",
     "TEXT"},
    {"alone", 0, 0, G_OPTION_ARG_NONE, &noded.alone,
     "With that: the statement stands for nodes that do not answer", NULL},
    {NULL},
};

static bool noded_once(const char *root, bool *ret_done, GError **error)
{
    g_autofree char *statement = g_steal_pointer(&noded.statement);
    *ret_done = noded.forget;
    if (noded.forget)
        return noded_forget(root, noded.alone, statement, error);
    if (!statement && !noded.alone)
        return true;
    fettle_set_error(error, WRONG_INPUT, "--statement and --alone go with --forget-mastership");
    return false;
}

static void noded_handle(struct rpc_request *request, void *data)
{
    node_core_handle(noded.core, request);
}

static const GPtrArray *noded_members(void *data)
{
    return node_core_members(noded.core);
}

static const char *noded_master(void *data)
{
    return node_core_master(noded.core);
}

static bool noded_admit(const char *from_node, const char *from_role, const struct method *method,
                        struct stamp stamp, GError **error, void *data)
{
    return node_core_admit(noded.core, from_node, from_role, method, stamp, error);
}

static void noded_master_reachable(void *data)
{
    node_core_master_reachable(noded.core);
}

static void noded_complain(const char *line, void *data)
{
    log_warning("", "%s", line);
}

static void noded_changed(void *data)
{
    bus_members_changed(noded.bus);
    rest_certificate_kick(noded.rest);
}

static bool noded_renewed(GError **error, void *data)
{
    rest_certificate_kick(noded.rest);
    return noded.bus == NULL || bus_renew(noded.bus, error);
}

static struct env *noded_setup(const char *root, GError **error)
{
    noded.env = real_env_new(root, ROLE_NODED, NULL, error);
    if (!noded.env)
        return NULL;
    const struct node_config *config = real_env_config(noded.env);
    const struct node_paths *paths = real_env_paths(noded.env);
    if (!mond_place_make(paths, error) || !rapid_place_make(paths, error))
        return NULL;
    noded.users = guest_users_new(config);
    noded.env->hypervisor = qemu_new(paths, noded.users);
    noded.env->storage = file_storage_new(paths, config->shared_dir, noded.users);
    noded.env->network = network_linux_new();
    noded.env->members = etcd_host_new(paths, config);
    noded.env->authority = authority_new(paths, "vouchers");
    authority_on_renewed(noded.env->authority, noded_renewed, NULL);
    noded.core = node_core_new(noded.env, config->cluster_uuid, config->address);
    g_autofree char *images = g_build_filename(paths->var, "images", NULL);
    node_core_set_image_folder(noded.core, images);
    node_core_set_monitored(noded.core);
    return noded.env;
}

static bool noded_start(GError **error)
{
    if (!node_core_start(noded.core, error))
        return false;
    const struct bus_options options = {
        .paths = real_env_paths(noded.env),
        .config = real_env_config(noded.env),
        .handle = noded_handle,
        .members = noded_members,
        .master = noded_master,
        .admit = noded_admit,
        .master_reachable = noded_master_reachable,
        .complain = noded_complain,
    };
    noded.bus = bus_new(&options, error);
    if (!noded.bus)
        return false;
    real_env_set_bus(noded.env, noded.bus);
    noded.rest = rest_certificate_new(noded.env, real_env_paths(noded.env), noded.core);
    node_core_set_changed(noded.core, noded_changed, NULL);
    return true;
}

static void noded_stop(void)
{
    if (!noded.env)
        return;
    rest_certificate_free(noded.rest);
    node_core_free(noded.core);
    if (noded.bus)
        bus_free(noded.bus);
    if (noded.env->network)
        network_linux_free(noded.env->network);
    if (noded.env->storage)
        file_storage_free(noded.env->storage);
    if (noded.env->hypervisor)
        qemu_free(noded.env->hypervisor);
    /* Its tasks, which end in here, still look at it. */
    struct members *members = noded.env->members;
    struct authority *authority = noded.env->authority;
    real_env_free(noded.env);
    authority_free(authority);
    etcd_host_free(members);
    guest_users_unref(noded.users);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    static const struct daemon daemon = {
        .name = "noded",
        .summary = "The node daemon: guests, disks and mirrors of this host, and its connections "
                   "to other hosts. `fettle-noded join` makes this host a node.",
        .options = noded_options,
        .once = noded_once,
        .setup = noded_setup,
        .start = noded_start,
        .stop = noded_stop,
    };
    if (argc > 1 && strcmp(argv[1], "join") == 0)
        return noded_join(argc - 1, argv + 1);
    return daemon_main(argc, argv, &daemon);
}
