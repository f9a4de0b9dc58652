/* See outside.h. */
#include "daemons/common/outside.h"

#include "base/error.h"
#include "base/log.h"
#include "daemons/common/daemon.h"
#include "io/http/tls_files.h"
#include "io/loop.h"

#define CERTIFICATE_LOOK_MS 500u /* whether it is there by now */

static struct {
    struct outside_options options;
    char **certificates; /* NULL: it speaks without TLS */
    struct http_server_events events;
    struct tls_files *tls;      /* NULL: no TLS, or it waits */
    struct http_server *server; /* NULL: not yet, or on the given socket alone */
    struct http_server *given;  /* on a socket that it was given; NULL: none */
    guint look;                 /* timer */
} outside;

static void complain(const char *line, void *data)
{
    log_warning("", "%s", line);
}

static const char *const *certificates(void)
{
    return (const char *const *)outside.certificates;
}

static bool open_tls(GError **error)
{
    g_autoptr(GError) local = NULL;
    outside.tls = tls_files_open(certificates(), outside.options.key, &local);
    if (!outside.tls)
        fettle_set_error(error, ENVIRONMENT, "%s; %s to be readable by the user that this runs as",
                         local->message,
                         *outside.options.key ? "both files are"
                                              : "the file is to have certificate and key, and");
    return outside.tls;
}

/* A connection has come: whoever has renewed the certificate need not start anything anew. */
static void arrives(void *data)
{
    g_autoptr(GError) error = NULL;
    if (!outside.tls)
        return;
    if (tls_files_look(outside.tls, &error)) {
        struct http_server *const servers[] = {outside.server, outside.given};
        for (guint i = 0; i < G_N_ELEMENTS(servers); i++)
            if (servers[i])
                http_server_renew(servers[i], tls_files_certificate(outside.tls));
        log_info("", "new connections are shown another certificate: %s",
                 tls_files_shown(outside.tls));
    } else if (error) {
        log_warning("", "the certificate has changed, and the one before is shown on: %s",
                    error->message);
    }
}

static struct http_server *listen_at(const char *address, int fd, GError **error)
{
    const struct http_server_options options = {
        .address = address,
        .port = outside.options.port,
        .fd = fd,
        .settings = outside.options.settings,
        .certificate = outside.tls ? tls_files_certificate(outside.tls) : NULL};
    return http_server_new(&options, &outside.events, NULL, error);
}

/* On all addresses: by IPv6, which takes IPv4 along, or by that alone where the host has no other.
 */
static bool listen_there(GError **error)
{
    const char *address = outside.options.address;
    int given = http_server_given_socket();
    if (given && !(outside.given = listen_at("127.0.0.1", given, error)))
        return false;
    if (given && outside.options.given_alone)
        return true;
    if (*address)
        outside.server = listen_at(address, 0, error);
    else if (!(outside.server = listen_at("::", 0, NULL)))
        outside.server = listen_at("0.0.0.0", 0, error);
    return outside.server;
}

/* A new node has none before a master has heard of it. */
static void look_cb(void *unused)
{
    g_autoptr(GError) error = NULL;
    outside.look = 0;
    if (!tls_files_are_there(certificates()))
        outside.look = loop_timer(CERTIFICATE_LOOK_MS, look_cb, NULL);
    else if (!open_tls(&error) || !listen_there(&error))
        daemon_quit(error);
    else
        log_info("", "it listens, and shows the certificate %s", tls_files_shown(outside.tls));
}

bool outside_open(const struct outside_options *options, GError **error)
{
    outside.options = *options;
    outside.certificates = g_strdupv((char **)options->certificates);
    outside.events = (struct http_server_events){.arrives = arrives,
                                                 .streams = options->streams,
                                                 .serve = options->serve,
                                                 .complain = complain};
    bool there = outside.certificates && tls_files_are_there(certificates());
    if (outside.certificates && !there && options->without == OUTSIDE_WAITS) {
        outside.look = loop_timer(CERTIFICATE_LOOK_MS, look_cb, NULL);
        log_info("", "it waits for its certificate; this node makes one when it knows a master");
        return true;
    }
    bool plain = !outside.certificates || (!there && options->without == OUTSIDE_PLAIN);
    return (plain || open_tls(error)) && listen_there(error);
}

void outside_close(void)
{
    loop_timer_cancel(outside.look);
    g_clear_pointer(&outside.server, http_server_free);
    g_clear_pointer(&outside.given, http_server_free);
    g_clear_pointer(&outside.tls, tls_files_free);
    g_clear_pointer(&outside.certificates, g_strfreev);
}
