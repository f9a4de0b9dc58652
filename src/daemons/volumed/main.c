/*
 * fettle-volumed: the volume services of this node, one member for each back end that names it;
 * elsewhere it idles. All thinking is core/storage's. It asks the master's configuration daemon
 * through this node's noded. Its children at back ends are this program, too (DIR_CALL_OPTION,
 * RBD_EXPORT_OPTION).
 */
#include <string.h>
#include <sys/stat.h>

#include "backend/volume/dir_call.h"
#include "backend/volume/dir_volumes.h"
#include "backend/volume/rbd_export.h"
#include "backend/volume/volumes_by_kind.h"
#include "base/limits.h"
#include "base/log.h"
#include "core/storage/volume_service.h"
#include "daemons/common/daemon.h"
#include "io/net/rpc_server.h"
#include "io/process.h"
#include "io/real_env.h"

static struct env *env;
static struct volume_driver *driver;
static struct volume_service *service;
static struct rpc_server *server;

static void ended(const GError *error, void *data)
{
    daemon_quit(error);
}

static void handle(struct rpc_request *request, void *data)
{
    volume_service_handle(service, request);
}

static void complain(const char *line, void *data)
{
    log_warning("", "%s", line);
}

static struct env *setup(const char *root, GError **error)
{
    env = real_env_new(root, ROLE_VOLUMED, NULL, error);
    if (!env)
        return NULL;
    g_autofree char *program = program_path("fettle-volumed");
    g_autofree char *transfers = g_build_filename(real_env_paths(env)->run, "transfers", NULL);
    driver = volumes_by_kind_new(program, transfers, LIMIT_VOLUME_CALL_MS);
    env->volumes = driver;
    service = volume_service_new(env, ended, NULL);
    g_autofree char *socket = node_paths_socket(real_env_paths(env), ROLE_VOLUMED);
    server = rpc_server_new(&(struct rpc_server_options){.path = socket,
                                                         .role = ROLE_VOLUMED,
                                                         .node_uuid = env->node_uuid,
                                                         .handle = handle,
                                                         .complain = complain},
                            error);
    if (server) /* nobody else is volumed here */
        dir_volumes_clear(volumes_by_kind_dir(driver));
    return server ? env : NULL;
}

static bool start(GError **error)
{
    volume_service_start(service);
    volume_service_leave_figures(service);
    return true;
}

static void stop(void)
{
    g_clear_pointer(&server, rpc_server_free);
    g_clear_pointer(&service, volume_service_free);
    g_clear_pointer(&env, real_env_free);
    g_clear_pointer(&driver, volumes_by_kind_free);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    static const struct daemon description = {
        .name = "volumed",
        .summary = "The volume services of this node.",
        .setup = setup,
        .start = start,
        .stop = stop,
    };
    if (argc > 1 && strcmp(argv[1], DIR_CALL_OPTION) == 0)
        return dir_call_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], RBD_EXPORT_OPTION) == 0)
        return rbd_export_main(argc, argv);
    return daemon_main(argc, argv, &description);
}
