/* See bus_tls.h. */
#include "io/net/bus_tls.h"

#include "base/endpoint.h"
#include "io/crash.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/net/acceptor.h"
#include "io/net/certs.h"
#include "io/net/node_keys.h"
#include "io/trust.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

struct bus_tls {
    GTlsCertificate *certificate;
    GTlsDatabase *authority;
    GPtrArray *trusted; /* the same, as certs_split() gives them */
    const struct node_paths *paths;
    char *cluster;
    struct acceptor *acceptor;
    const struct bus_tls_events *events;
    void *data;
    GHashTable *shaking; /* set of struct bus_dial: both directions */
};

/* One connection on its way to being trusted, dialled or accepted. */
struct bus_dial {
    struct bus_tls *tls;     /* NULL: canceled */
    struct arrival *arrival; /* NULL: it was dialled */
    char *expected;          /* node that was dialled */
    char *place;             /* "192.0.2.7:1811" */
    bool proven;             /* the authority has signed its certificate */
    char *distrust;          /* why its certificate was refused */
    GTlsConnection *connection;
    GCancellable *cancellable;
    guint timer;
    bus_tls_dialled_fn done;
    void *data;
};

static void dial_free(struct bus_dial *dial)
{
    loop_timer_cancel(dial->timer);
    g_clear_object(&dial->connection);
    g_object_unref(dial->cancellable);
    g_free(dial->expected);
    g_free(dial->place);
    g_free(dial->distrust);
    g_free(dial);
}

static void be_late(struct bus_dial *dial)
{
    if (dial->distrust == NULL)
        dial->distrust =
            g_strdup(dial->connection != NULL ? "the TLS handshake takes too long" : "no answer");
    g_cancellable_cancel(dial->cancellable);
}

static void timeout_cb(void *data)
{
    struct bus_dial *dial = data;

    dial->timer = 0;
    be_late(dial);
}

static struct bus_dial *dial_new(struct bus_tls *tls)
{
    struct bus_dial *dial = g_new0(struct bus_dial, 1);

    dial->tls = tls;
    dial->cancellable = g_cancellable_new();
    g_hash_table_add(tls->shaking, dial);
    return dial;
}

/* It is on its way no more. */
static void leave(struct bus_dial *dial)
{
    g_hash_table_remove(dial->tls->shaking, dial);
    if (dial->arrival != NULL)
        arrival_end(dial->arrival);
}

void bus_dial_cancel(struct bus_dial *dial)
{
    if (dial == NULL || dial->tls == NULL)
        return;
    leave(dial);
    dial->tls = NULL;
    g_cancellable_cancel(dial->cancellable);
}

/* --- the end of the way --- */

static void fail(struct bus_dial *dial, const char *why)
{
    struct bus_tls *tls = dial->tls;
    g_autoptr(GError) error = NULL;

    if (tls != NULL && dial->arrival != NULL)
        arrival_complain(dial->arrival, dial->proven, why);
    if (tls != NULL)
        leave(dial);
    if (tls != NULL && dial->arrival == NULL) {
        fettle_set_error(&error, UNREACHABLE, "%s: %s", dial->place, why);
        dial->done(NULL, error, dial->data);
    }
    dial_free(dial);
}

static void succeed(struct bus_dial *dial, const char *node)
{
    struct bus_tls *tls = dial->tls;

    leave(dial);
    if (dial->arrival == NULL)
        dial->done(G_IO_STREAM(dial->connection), NULL, dial->data);
    else
        tls->events->accepted(G_IO_STREAM(dial->connection), node, tls->data);
    dial_free(dial);
}

static bool check_peer(const struct bus_dial *dial, char **ret_node, GError **error)
{
    GTlsCertificate *certificate = g_tls_connection_get_peer_certificate(dial->connection);
    g_autofree char *subject =
        certificate != NULL ? g_tls_certificate_get_subject_name(certificate) : NULL;
    g_autofree char *cluster = NULL;
    g_autofree char *node = NULL;

    if (!certs_parse_subject(subject, &cluster, &node, error))
        return false;
    if (strcmp(cluster, dial->tls->cluster) != 0) {
        fettle_set_error(error, PERMISSION,
                         "its certificate is of the cluster %s, this node is of %s", cluster,
                         dial->tls->cluster);
        return false;
    }
    if (dial->expected != NULL && strcmp(node, dial->expected) != 0) {
        fettle_set_error(error, PERMISSION, "its certificate is of the node %s, expected was %s",
                         node, dial->expected);
        return false;
    }
    *ret_node = g_steal_pointer(&node);
    return true;
}

static bool is_anonymous(const struct bus_dial *dial)
{
    return dial->tls != NULL && dial->arrival != NULL && dial->tls->events->anonymous != NULL &&
           g_tls_connection_get_peer_certificate(dial->connection) == NULL;
}

static void succeed_anonymously(struct bus_dial *dial)
{
    struct bus_tls *tls = dial->tls;

    leave(dial);
    tls->events->anonymous(G_IO_STREAM(dial->connection), dial->place, tls->data);
    dial_free(dial);
}

static void handshake_cb(GObject *object, GAsyncResult *result, gpointer data)
{
    struct bus_dial *dial = data;
    g_autoptr(GError) error = NULL;
    g_autofree char *node = NULL;

    if (!g_tls_connection_handshake_finish(G_TLS_CONNECTION(object), result, &error)) {
        fail(dial, dial->distrust != NULL ? dial->distrust : error->message);
        return;
    }
    dial->proven = true;
    if (is_anonymous(dial))
        succeed_anonymously(dial);
    else if (dial->tls == NULL || !check_peer(dial, &node, &error))
        fail(dial, error != NULL ? error->message : "");
    else if (!bus_tls_trusts(dial->tls, G_IO_STREAM(dial->connection)))
        fail(dial, BUS_TLS_OLD); /* it began before this node forgot that authority */
    else
        succeed(dial, node);
}

/* Called for a certificate that fails a check. Two checks are not ours: names of hosts
 * (check_peer() looks at the node's UUID instead), and dates: a cluster whose clocks are wrong
 * after a power cut has to mend itself all the same, and certificates end by being replaced. */
static gboolean distrust_cb(GTlsConnection *connection, GTlsCertificate *certificate,
                            GTlsCertificateFlags flags, gpointer data)
{
    const GTlsCertificateFlags not_ours = G_TLS_CERTIFICATE_BAD_IDENTITY |
                                          G_TLS_CERTIFICATE_EXPIRED |
                                          G_TLS_CERTIFICATE_NOT_ACTIVATED;
    struct bus_dial *dial = data;

    if ((flags & ~not_ours) == 0)
        return TRUE;
    g_autofree char *subject = g_tls_certificate_get_subject_name(certificate);
    g_free(dial->distrust);
    dial->distrust =
        g_strdup_printf("its certificate (%s): %s", subject,
                        (flags & G_TLS_CERTIFICATE_UNKNOWN_CA) != 0 ? "it is signed by another CA"
                                                                    : "it cannot be verified");
    return FALSE;
}

/* Takes the ends of TLS that were just made. */
static void shake(struct bus_dial *dial, GIOStream *tls_stream)
{
    dial->connection = G_TLS_CONNECTION(tls_stream);
    if (dial->arrival == NULL) { /* the time of others runs since they came */
        loop_timer_cancel(dial->timer);
        dial->timer = loop_timer(LIMIT_TLS_MS, timeout_cb, dial);
    }
    g_signal_connect(dial->connection, "accept-certificate", G_CALLBACK(distrust_cb), dial);
    g_tls_connection_handshake_async(dial->connection, G_PRIORITY_DEFAULT, dial->cancellable,
                                     handshake_cb, dial);
}

/* --- dialling --- */

static void connected_cb(GObject *object, GAsyncResult *result, gpointer data)
{
    struct bus_dial *dial = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketConnection) base =
        g_socket_client_connect_finish(G_SOCKET_CLIENT(object), result, &error);

    if (base == NULL || dial->tls == NULL) {
        fail(dial, dial->distrust != NULL ? dial->distrust : error != NULL ? error->message : "");
        return;
    }
    g_socket_set_option(g_socket_connection_get_socket(base), IPPROTO_TCP, TCP_NODELAY, 1, NULL);
    GIOStream *client =
        g_initable_new(g_tls_backend_get_client_connection_type(g_tls_backend_get_default()), NULL,
                       &error, "base-io-stream", base, "certificate", dial->tls->certificate,
                       "database", dial->tls->authority, "require-close-notify", FALSE, NULL);
    if (client == NULL) {
        fail(dial, error->message);
        return;
    }
    shake(dial, client);
}

struct bus_dial *bus_tls_dial(struct bus_tls *tls, const char *address, guint port,
                              const char *node, guint limit_ms, bus_tls_dialled_fn done, void *data)
{
    struct bus_dial *dial = dial_new(tls);
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GSocketConnectable) place = g_network_address_new(address, (guint16)port);

    dial->expected = g_strdup(node);
    dial->place = endpoint_text(address, port);
    dial->done = done;
    dial->data = data;
    dial->timer = loop_timer(limit_ms, timeout_cb, dial);
    g_socket_client_set_enable_proxy(client, FALSE);
    crash_point("bus: dial");
    g_socket_client_connect_async(client, place, dial->cancellable, connected_cb, dial);
    return dial;
}

/* --- accepting --- */

static void begin_cb(struct arrival *arrival, GSocketConnection *base, void *data)
{
    struct bus_tls *tls = data;
    struct bus_dial *dial = dial_new(tls);
    g_autoptr(GError) error = NULL;

    arrival_set_owner(arrival, dial);
    dial->arrival = arrival;
    dial->place = g_strdup(arrival_place(arrival));
    GIOStream *server = acceptor_tls(base, tls->certificate, tls->authority, &error);
    if (server == NULL) {
        fail(dial, error->message);
        return;
    }
    if (tls->events->anonymous != NULL)
        g_object_set(server, "authentication-mode", G_TLS_AUTHENTICATION_REQUESTED, NULL);
    shake(dial, server);
}

static void late_cb(struct arrival *arrival, void *data)
{
    be_late(arrival_owner(arrival));
}

static bool is_member(const char *address, void *data)
{
    const struct bus_tls *tls = data;
    return tls->events->is_member != NULL && tls->events->is_member(address, tls->data);
}

static void complain_cb(const char *line, void *data)
{
    const struct bus_tls *tls = data;
    if (tls->events->complain != NULL)
        tls->events->complain(line, tls->data);
}

static bool listen_on(struct bus_tls *tls, const struct node_config *config, GError **error)
{
    static const struct acceptor_events events = {
        .is_member = is_member, .begin = begin_cb, .late = late_cb, .complain = complain_cb};
    const struct acceptor_options options = {
        .address = config->address,
        .port = (guint)config->port,
        .name = "bus",
        .settings = "etc/node.json",
        .limits = {LIMIT_HANDSHAKES, LIMIT_HANDSHAKES_ADDRESS,
                   "too many TLS handshakes of strangers are unfinished",
                   "too many of its TLS handshakes are unfinished"}};
    tls->acceptor = acceptor_new(&options, &events, tls, error);
    return tls->acceptor != NULL;
}

/* --- certificates --- */

/* The node's certificate and its key, in one text. */
static char *read_own(const struct node_paths *paths, GError **error)
{
    g_autofree char *crt_path = node_keys_path(paths, "node.crt");
    g_autofree char *key_path = node_keys_path(paths, "node.key");
    g_autoptr(GError) local = NULL;
    g_autofree char *certificate = node_keys_certificate(paths, &local);
    g_autofree char *key =
        certificate != NULL ? files_read_path(key_path, LIMIT_PEM_CHARS, NULL, &local) : NULL;
    g_autofree char *both = key != NULL ? g_strconcat(certificate, key, NULL) : NULL;
    g_autoptr(GTlsCertificate) own =
        both != NULL ? g_tls_certificate_new_from_pem(both, -1, &local) : NULL;
    g_autofree char *read_key = NULL;

    if (own != NULL)
        g_object_get(own, "private-key-pem", &read_key, NULL);
    if (read_key != NULL)
        return g_steal_pointer(&both);
    fettle_set_error(error, CORRUPT, "%s, %s: %s; put back the node's certificate and key",
                     crt_path, key_path, local != NULL ? local->message : "there is no key");
    return NULL;
}

/* With its issuer behind it, which is shown to every peer: a joining host knows only the
 * fingerprint of the authority. */
static GTlsCertificate *with_issuer(const char *own, const GPtrArray *trusted, GError **error)
{
    const char *issuer = certs_issuer(own, trusted);
    g_autofree char *chain = g_strconcat(own, issuer != NULL ? issuer : "", NULL);

    return g_tls_certificate_new_from_pem(chain, -1, error);
}

static GTlsDatabase *read_authority(const struct node_paths *paths, GError **error)
{
    g_autofree char *path = node_keys_path(paths, "ca.crt");
    g_autoptr(GError) local = NULL;
    GTlsDatabase *authority = g_tls_file_database_new(path, &local);

    if (authority == NULL)
        fettle_set_error(error, CORRUPT, "%s: %s; put back the cluster's CA certificate", path,
                         local->message);
    return authority;
}

static bool read_certificates(struct bus_tls *tls, GError **error)
{
    if (!g_tls_backend_supports_tls(g_tls_backend_get_default())) {
        fettle_set_error(error, ENVIRONMENT,
                         "GIO has no TLS here; install the package glib-networking");
        return false;
    }
    g_autofree char *own = read_own(tls->paths, error);
    g_autoptr(GTlsDatabase) authority = own != NULL ? read_authority(tls->paths, error) : NULL;
    g_autoptr(GPtrArray) trusted = authority != NULL ? node_keys_trusted(tls->paths, error) : NULL;
    g_autoptr(GTlsCertificate) shown = trusted != NULL ? with_issuer(own, trusted, error) : NULL;
    if (shown == NULL)
        return false;
    g_set_object(&tls->authority, authority);
    g_set_object(&tls->certificate, shown);
    g_clear_pointer(&tls->trusted, g_ptr_array_unref);
    tls->trusted = g_steal_pointer(&trusted);
    trust_nobody();
    return true;
}

bool bus_tls_renew(struct bus_tls *tls, GError **error)
{
    return read_certificates(tls, error);
}

bool bus_tls_is_current(const struct bus_tls *tls, GIOStream *stream)
{
    GTlsCertificate *shown = g_tls_connection_get_certificate(G_TLS_CONNECTION(stream));
    return g_tls_certificate_is_same(shown, tls->certificate);
}

static const char *issuer_of(const struct bus_tls *tls, GIOStream *stream)
{
    GTlsCertificate *peer = g_tls_connection_get_peer_certificate(G_TLS_CONNECTION(stream));
    g_autofree char *certificate = NULL;

    if (peer == NULL)
        return NULL;
    g_object_get(peer, "certificate-pem", &certificate, NULL);
    return certs_issuer(certificate, tls->trusted);
}

bool bus_tls_trusts(const struct bus_tls *tls, GIOStream *stream)
{
    return issuer_of(tls, stream) != NULL;
}

char *bus_tls_signed_by(const struct bus_tls *tls, GIOStream *stream)
{
    const char *issuer = issuer_of(tls, stream);
    return issuer != NULL ? certs_fingerprint(issuer, NULL) : NULL;
}

struct bus_tls *bus_tls_new(const struct node_paths *paths, const struct node_config *config,
                            const struct bus_tls_events *events, void *data, GError **error)
{
    struct bus_tls *tls = g_new0(struct bus_tls, 1);

    tls->cluster = g_strdup(config->cluster_uuid);
    tls->paths = paths;
    tls->events = events;
    tls->data = data;
    tls->shaking = g_hash_table_new(NULL, NULL);
    if (!read_certificates(tls, error) || !listen_on(tls, config, error))
        g_clear_pointer(&tls, bus_tls_free);
    return tls;
}

void bus_tls_limit(struct bus_tls *tls, guint handshakes)
{
    acceptor_limit(tls->acceptor, handshakes);
}

void bus_tls_free(struct bus_tls *tls)
{
    GHashTableIter iter;
    void *dial;

    if (tls == NULL)
        return;
    acceptor_free(tls->acceptor);
    for (;;) {
        g_hash_table_iter_init(&iter, tls->shaking);
        if (!g_hash_table_iter_next(&iter, &dial, NULL))
            break;
        bus_dial_cancel(dial);
    }
    g_hash_table_unref(tls->shaking);
    g_clear_object(&tls->certificate);
    g_clear_object(&tls->authority);
    g_clear_pointer(&tls->trusted, g_ptr_array_unref);
    g_free(tls->cluster);
    g_free(tls);
}
