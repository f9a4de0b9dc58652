/*
 * fettle-mond: what this node is like, over HTTP (docs/guide/monitoring.md). All thinking is
 * core/monitor's. It is a user of its own without any privilege, holds no credential of the cluster
 * and no connection to any daemon: what it shows are files that the host and the node daemon leave,
 * and, for little of it, what ConfD answers to datagrams signed with the key of this very node
 * (MON-04). So it lives without any of them.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/monitor/monitor.h"
#include "daemons/common/daemon.h"
#include "daemons/mond/candidates.h"
#include "io/http/http_server.h"
#include "io/http/tls_files.h"
#include "io/mond_place.h"
#include "io/real_env.h"

#define CERTIFICATE "mond.pem"

static struct {
    struct env *env;
    struct candidates *candidates;
    struct monitor *monitor;
    struct tls_files *tls; /* NULL: no TLS */
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

/* Certificate and key of the operator, if there are any when it begins. One that cannot be reached
 * is no reason to speak without. */
static bool open_tls(GError **error)
{
    g_autofree char *path = g_build_filename(real_env_paths(mond.env)->etc, CERTIFICATE, NULL);
    g_autoptr(GError) local = NULL;
    struct stat about;
    bool none = lstat(path, &about) != 0 && errno == ENOENT;
    if (none || (mond.tls = tls_files_open(path, "", &local)))
        return true;
    fettle_set_error(error, ENVIRONMENT,
                     "%s; the file is to have certificate and key, and to be readable by the user "
                     "that this runs as",
                     local->message);
    return false;
}

/* Whoever has renewed it need not start this anew. */
static void arrives(void *data)
{
    g_autoptr(GError) error = NULL;
    if (mond.tls && tls_files_look(mond.tls, &error)) {
        http_server_renew(mond.server, tls_files_certificate(mond.tls));
        if (mond.outside)
            http_server_renew(mond.outside, tls_files_certificate(mond.tls));
        log_info("", "new connections are shown another certificate, that of " CERTIFICATE);
    } else if (error) {
        log_warning("", "the certificate has changed, and the one before is shown on: %s",
                    error->message);
    }
}

static struct http_server *listen_at(const char *address, int fd, GError **error)
{
    static const struct http_server_events events = {
        .arrives = arrives, .serve = serve, .complain = complain};
    const struct http_server_options options = {
        .address = address,
        .port = (guint)real_env_config(mond.env)->mond_port,
        .fd = fd,
        .settings = "mond_address and mond_port of node.json",
        .certificate = mond.tls ? tls_files_certificate(mond.tls) : NULL};
    return http_server_new(&options, &events, NULL, error);
}

/* On all addresses: by IPv6, which takes IPv4 along, or by that alone where the host has no other.
 */
static bool listen_there(GError **error)
{
    const char *address = real_env_config(mond.env)->mond_address;
    int given = http_server_given_socket();
    if (given && !(mond.outside = listen_at("127.0.0.1", given, error)))
        return false;
    mond.server = listen_at(*address ? address : "::", 0, *address ? error : NULL);
    if (!mond.server && !*address)
        mond.server = listen_at("0.0.0.0", 0, error);
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
    return open_tls(error) && listen_there(error) ? mond.env : NULL;
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
    g_clear_pointer(&mond.tls, tls_files_free);
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
