/*
 * fettle-mond: what this node is like, over HTTP (docs/guide/monitoring.md). All thinking is
 * core/monitor's. It is a user of its own without any privilege, holds no credential of the cluster
 * and no connection to any daemon: what it shows are files that the host and the node daemon leave,
 * and, for little of it, what ConfD answers to datagrams signed with the key of this very node
 * (MON-04). So it lives without any of them.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/monitor/monitor.h"
#include "daemons/common/daemon.h"
#include "daemons/common/outside.h"
#include "daemons/mond/candidates.h"
#include "io/mond_place.h"
#include "io/real_env.h"

#define CERTIFICATE "mond.pem"

static struct {
    struct env *env;
    struct candidates *candidates;
    struct monitor *monitor;
} mond;

/* --- requests --- */

static void answer(struct http_answer *answer, void *data)
{
    http_exchange_answer(data, answer);
}

static void serve(struct http_exchange *exchange, void *data)
{
    monitor_serve(mond.monitor, http_exchange_request(exchange), answer, exchange);
}

/* With TLS, if the operator's certificate is there when it begins. */
static bool listen_there(GError **error)
{
    const struct node_config *config = real_env_config(mond.env);
    g_autofree char *path = g_build_filename(real_env_paths(mond.env)->etc, CERTIFICATE, NULL);
    return outside_open(
        &(struct outside_options){.address = config->mond_address,
                                  .port = (guint)config->mond_port,
                                  .settings = "mond_address and mond_port of node.json",
                                  .certificates = (const char *[]){path, NULL},
                                  .key = "",
                                  .without = OUTSIDE_PLAIN,
                                  .serve = serve},
        error);
}

/* --- the daemon --- */

/* Its user may make nothing in folders of root's, and finds its own. */
static struct env *setup(const char *root, GError **error)
{
    const struct real_env_options options = {.folders_made = geteuid() != 0};
    g_autoptr(node_paths_t) paths = node_paths_new(root, error);
    if (!paths || (!options.folders_made && !mond_place_make(paths, error)))
        return NULL;
    mond.env = real_env_new(root, ROLE_MOND, &options, error);
    if (!mond.env)
        return NULL;
    const struct node_config *config = real_env_config(mond.env);
    mond.candidates = candidates_new(mond.env, config->address, (guint)config->confd_port);
    mond.monitor = monitor_new(mond.env, config->name, candidates_ask, mond.candidates);
    return listen_there(error) ? mond.env : NULL;
}

static bool start(GError **error)
{
    monitor_start(mond.monitor);
    return true;
}

static void stop(void)
{
    outside_close();
    g_clear_pointer(&mond.monitor, monitor_free);
    g_clear_pointer(&mond.env, real_env_free);
    g_clear_pointer(&mond.candidates, candidates_free);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    static const struct daemon description = {
        .name = ROLE_MOND,
        .summary = "Monitoring of this node over HTTP: its guests, disks, replicas and daemons.",
        .setup = setup,
        .start = start,
        .stop = stop,
    };
    return daemon_main(argc, argv, &description);
}
