/*
 * fettle-mond: what this node is like, over HTTP (docs/guide/monitoring.md). All thinking is
 * core/monitor's. It is a user of its own without any privilege, holds no credential of the cluster
 * and no connection to any daemon: what it shows are files that the host and the node daemon leave,
 * and, for little of it, what ConfD answers to datagrams signed with the key of this very node
 * (MON-04). So it lives without any of them.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/monitor/monitor.h"
#include "daemons/common/daemon.h"
#include "daemons/mond/candidates.h"
#include "io/http/http_server.h"
#include "io/mond_place.h"
#include "io/real_env.h"

#define CERTIFICATE "mond.pem"

static struct {
    struct env *env;
    struct candidates *candidates;
    struct monitor *monitor;
    struct http_server *server;
    struct http_server *outside; /* on a socket that it was given; NULL: none */
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

static void complain(const char *line, void *data)
{
    log_warning("", "%s", line);
}

/* --- listening --- */

/* Certificate and key of the operator. NULL without an error: there is none, so no TLS. */
static GTlsCertificate *read_certificate(GError **error)
{
    g_autofree char *path = g_build_filename(real_env_paths(mond.env)->etc, CERTIFICATE, NULL);
    g_autoptr(GError) local = NULL;
    if (access(path, F_OK) != 0)
        return NULL;
    GTlsCertificate *read = g_tls_certificate_new_from_file(path, &local);
    if (!read)
        fettle_set_error(error, ENVIRONMENT,
                         "%s: %s; it is to have certificate and key, and to be readable by the "
                         "user that this runs as",
                         path, local->message);
    return read;
}

static struct http_server *listen_at(const char *address, int fd, GTlsCertificate *certificate,
                                     GError **error)
{
    static const struct http_server_events events = {.serve = serve, .complain = complain};
    const struct http_server_options options = {.address = address,
                                                .port = (guint)real_env_config(mond.env)->mond_port,
                                                .fd = fd,
                                                .settings =
                                                    "mond_address and mond_port of node.json",
                                                .certificate = certificate};
    return http_server_new(&options, &events, NULL, error);
}

/* On all addresses: by IPv6, which takes IPv4 along, or by that alone where the host has no other.
 */
static bool listen_there(GError **error)
{
    const char *address = real_env_config(mond.env)->mond_address;
    int given = http_server_given_socket();
    g_autoptr(GError) local = NULL;
    g_autoptr(GTlsCertificate) certificate = read_certificate(&local);
    if (!local && given)
        mond.outside = listen_at("127.0.0.1", given, certificate, &local);
    if (!local && *address)
        mond.server = listen_at(address, 0, certificate, &local);
    else if (!local && !(mond.server = listen_at("::", 0, certificate, NULL)))
        mond.server = listen_at("0.0.0.0", 0, certificate, &local);
    if (local)
        g_propagate_error(error, g_steal_pointer(&local));
    return mond.server;
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
    g_clear_pointer(&mond.server, http_server_free);
    g_clear_pointer(&mond.outside, http_server_free);
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
