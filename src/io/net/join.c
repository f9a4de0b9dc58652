/* See join.h. */
#include "io/net/join.h"
#include "base/task.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/net/certs.h"
#include "io/net/connection.h"
#include "io/net/node_keys.h"
#include "proto/seal.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

/* --- waiting for GIO in a task --- */

struct gio_wait {
    struct promise promise;
    GObject *source;
    GAsyncResult *result;
    GCancellable *cancellable;
    guint timer;
    bool over; /* the time */
};

static void gio_cb(GObject *source, GAsyncResult *result, gpointer data)
{
    struct gio_wait *wait = data;

    wait->source = g_object_ref(source);
    wait->result = g_object_ref(result);
    promise_complete(&wait->promise);
}

static void gio_timeout_cb(void *data)
{
    struct gio_wait *wait = data;

    wait->timer = 0;
    wait->over = true;
    g_cancellable_cancel(wait->cancellable);
}

static struct gio_wait *gio_wait_new(guint timeout_ms)
{
    struct gio_wait *wait = g_new0(struct gio_wait, 1);

    wait->cancellable = g_cancellable_new();
    wait->timer = loop_timer(timeout_ms, gio_timeout_cb, wait);
    return wait;
}

static void gio_wait_free(struct gio_wait *wait)
{
    loop_timer_cancel(wait->timer);
    g_clear_object(&wait->source);
    g_clear_object(&wait->result);
    g_object_unref(wait->cancellable);
    g_free(wait);
}
typedef struct gio_wait gio_wait_t;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(gio_wait_t, gio_wait_free)

/* The process that joins ends only after its task has, so no wait is ever given up. */
static void gio_wait_for(struct gio_wait *wait)
{
    while (!wait->promise.done)
        promise_wait(&wait->promise);
}

static void unreachable(const struct gio_wait *wait, const char *place, const GError *why,
                        GError **error)
{
    fettle_set_error(error, UNREACHABLE,
                     "%s: %s; is the node daemon of the master running, and may this host reach "
                     "it? Nothing was changed",
                     place, wait->over ? "no answer" : why->message);
}

/* --- the connection, and whose it is --- */

static GSocketConnection *dial(const struct invitation *invitation, const char *place,
                               GError **error)
{
    g_autoptr(gio_wait_t) wait = gio_wait_new(LIMIT_DIAL_MS);
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GSocketConnectable) address =
        g_network_address_new(invitation->address, (guint16)invitation->port);
    g_autoptr(GError) local = NULL;

    g_socket_client_set_enable_proxy(client, FALSE);
    g_socket_client_connect_async(client, address, wait->cancellable, gio_cb, wait);
    gio_wait_for(wait);
    GSocketConnection *base = g_socket_client_connect_finish(client, wait->result, &local);
    if (base == NULL)
        unreachable(wait, place, local, error);
    return base;
}

/* The certificate at the end of the chain that the peer has shown: its authority's. */
static GTlsCertificate *authority_of(GTlsCertificate *certificate)
{
    GTlsCertificate *issuer = g_tls_certificate_get_issuer(certificate);

    return issuer != NULL ? authority_of(issuer) : certificate;
}

static bool check_authority(GTlsCertificate *peer, const struct invitation *invitation,
                            const char *place, GError **error)
{
    const GTlsCertificateFlags dates =
        G_TLS_CERTIFICATE_EXPIRED | G_TLS_CERTIFICATE_NOT_ACTIVATED; /* see bus_tls.c */
    GTlsCertificate *authority = authority_of(peer);
    g_autofree char *pem = NULL;

    g_object_get(authority, "certificate-pem", &pem, NULL);
    g_autofree char *fingerprint = certs_fingerprint(pem, error);
    if (fingerprint == NULL)
        return false;
    if (strcmp(fingerprint, invitation->fingerprint) != 0)
        fettle_set_error(error, PERMISSION,
                         "%s: the node there is of an authority with the fingerprint %s, the token "
                         "names %s: it belongs to another cluster, or its keys were renewed since "
                         "(make another token), or somebody is in between; nothing was sent, "
                         "nothing was written",
                         place, fingerprint, invitation->fingerprint);
    else if (authority == peer || (g_tls_certificate_verify(peer, NULL, authority) & ~dates) != 0)
        fettle_set_error(error, PERMISSION,
                         "%s: the certificate of the node there is not signed by the authority "
                         "that it shows; nothing was sent, nothing was written",
                         place);
    else
        return true;
    return false;
}

/* Taken for now: what counts is looked at when the handshake is over, before anything is sent. */
static gboolean look_later_cb(GTlsConnection *connection, GTlsCertificate *certificate,
                              GTlsCertificateFlags flags, gpointer data)
{
    return TRUE;
}

static GIOStream *shake(GSocketConnection *base, const struct invitation *invitation,
                        const char *place, GError **error)
{
    g_autoptr(gio_wait_t) wait = gio_wait_new(LIMIT_TLS_MS);
    g_autoptr(GError) local = NULL;
    g_autoptr(GIOStream) stream = g_tls_client_connection_new(G_IO_STREAM(base), NULL, &local);

    if (stream == NULL) {
        fettle_set_error(error, ENVIRONMENT,
                         "GIO has no TLS here (%s); install the package glib-networking",
                         local->message);
        return NULL;
    }
    g_tls_connection_set_require_close_notify(G_TLS_CONNECTION(stream), FALSE);
    g_signal_connect(stream, "accept-certificate", G_CALLBACK(look_later_cb), NULL);
    g_tls_connection_handshake_async(G_TLS_CONNECTION(stream), G_PRIORITY_DEFAULT,
                                     wait->cancellable, gio_cb, wait);
    gio_wait_for(wait);
    if (!g_tls_connection_handshake_finish(G_TLS_CONNECTION(stream), wait->result, &local)) {
        unreachable(wait, place, local, error);
        return NULL;
    }
    GTlsCertificate *peer = g_tls_connection_get_peer_certificate(G_TLS_CONNECTION(stream));
    if (!check_authority(peer, invitation, place, error))
        return NULL;
    return g_steal_pointer(&stream);
}

static GIOStream *open_stream(const struct invitation *invitation, GError **error)
{
    g_autofree char *place = g_strdup_printf("%s port %u", invitation->address, invitation->port);
    g_autoptr(GSocketConnection) base = dial(invitation, place, error);

    return base != NULL ? shake(base, invitation, place, error) : NULL;
}

/* --- the question --- */

struct question {
    struct promise promise;
    json_t *result;
    GError *error;
};

static void answered_cb(json_t *result, const GError *error, void *data)
{
    struct question *question = data;

    question->result = json_incref(result);
    question->error = error != NULL ? g_error_copy(error) : NULL;
    promise_complete(&question->promise);
}

static const struct connection_events no_events = {0};

static struct join_result *ask(GIOStream *stream, const struct invitation *invitation,
                               const char *request, const char *node, GError **error)
{
    const struct connection_options options = {
        .what = "the master",
        .dials = true,
        .frame_bytes = JOIN_ANSWER_BYTES,
        .node = invitation->token,
        .role = ROLE_JOINING,
        .events = &no_events,
    };
    const struct join_args args = {.token = invitation->token,
                                   .secret = invitation->secret,
                                   .request = (char *)request,
                                   .node = (char *)node,
                                   .clock_us = (guint64)MAX(loop_wall_us(), 0)};
    const struct rpc_call call = {.to_node = NODE_LOCAL,
                                  .to_role = ROLE_WCONFD,
                                  .method = "join",
                                  .args = join_args_to_json(&args)};
    struct connection *connection = connection_new(&options);
    struct question question = {0};
    connection_use(connection, transport_stream(stream));
    connection_call(connection, &call, LIMIT_JOIN_MS, answered_cb, &question);
    while (!question.promise.done)
        promise_wait(&question.promise);
    connection_close(connection, NULL);
    connection_unref(connection);
    struct join_result *result =
        question.result != NULL ? join_result_parse(question.result, RECORD_LAX, error) : NULL;
    json_decref(question.result);
    if (question.error != NULL)
        g_propagate_error(error, question.error);
    return result;
}

/* --- the key --- */

/* The key of this token: one from an earlier try, or a new one. */
static char *make_request(const char *key, GError **error)
{
    g_autofree char *path = g_strconcat(key, ".request", NULL);
    char *request = NULL;

    if ((g_file_test(key, G_FILE_TEST_EXISTS) || certs_make_key(key, error)) &&
        certs_make_request(key, path, error))
        request = files_read_path(path, LIMIT_PEM_CHARS, NULL, error);
    g_unlink(path);
    return request;
}

/* --- what makes it a node --- */

static bool check_answer(const struct join_result *result, const struct invitation *invitation,
                         GError **error)
{
    g_autofree char *cluster = NULL;
    g_autofree char *node = NULL;
    g_autoptr(GTlsCertificate) own = g_tls_certificate_new_from_pem(result->certificate, -1, error);
    g_autoptr(GTlsCertificate) authority =
        own != NULL ? g_tls_certificate_new_from_pem(result->authority, -1, error) : NULL;
    g_autofree char *fingerprint =
        authority != NULL ? certs_fingerprint(result->authority, error) : NULL;

    if (fingerprint == NULL)
        return false;
    g_autofree char *subject = g_tls_certificate_get_subject_name(own);
    if (!certs_parse_subject(subject, &cluster, &node, error))
        return false;
    if (strcmp(fingerprint, invitation->fingerprint) == 0 &&
        strcmp(cluster, result->config->cluster_uuid) == 0 &&
        strcmp(node, result->config->node_uuid) == 0 &&
        (g_tls_certificate_verify(own, NULL, authority) &
         (G_TLS_CERTIFICATE_UNKNOWN_CA | G_TLS_CERTIFICATE_INSECURE |
          G_TLS_CERTIFICATE_GENERIC_ERROR)) == 0)
        return true;
    fettle_set_error(error, PROTOCOL,
                     "the answer does not fit together: certificate of %s/%s by the authority %s, "
                     "configuration for %s/%s",
                     cluster, node, fingerprint, result->config->cluster_uuid,
                     result->config->node_uuid);
    return false;
}

static bool put(const struct node_paths *paths, const char *name, const char *text, guint mode,
                GError **error)
{
    g_autofree char *path = g_build_filename(paths->etc, name, NULL);

    return files_write_path(path, text, strlen(text), mode, true, error);
}

/* Of a node that is one already: the rest is its own. */
static bool write_keys(const struct node_paths *paths, const struct join_result *result,
                       const char *key_path, GError **error)
{
    g_autofree char *key = files_read_path(key_path, LIMIT_PEM_CHARS, NULL, error);

    /* What lies beside from before takes its place first, or it would take that of these. */
    return key != NULL && node_keys_settle(paths, error) &&
           put(paths, "ca.crt", result->authority, 0644, error) &&
           put(paths, NODE_KEYS_NEXT_KEY, key, 0600, error) &&
           node_keys_take(paths, result->certificate, error);
}

static bool write_node(const struct node_paths *paths, const struct join_result *result,
                       const char *key_path, GError **error)
{
    json_autoptr announcement = announce_args_to_json(result->announcement);
    g_autofree char *state = seal_to_text(announcement);
    g_autofree char *key = files_read_path(key_path, LIMIT_PEM_CHARS, NULL, error);

    return key != NULL && node_paths_make(paths, error) &&
           put(paths, "ca.crt", result->authority, 0644, error) &&
           put(paths, "node.crt", result->certificate, 0644, error) &&
           put(paths, "node.key", key, 0600, error) &&
           files_write(paths, FILE_STATE, "node/state.json", state, strlen(state), error) &&
           node_config_write(paths, result->config, error);
}

/* --- all of it --- */

/* The node that this host is; without a UUID: it is none yet. NULL with an error: it is not what is
 * asked for. */
static struct node_config *read_self(const struct node_paths *paths, bool new_keys, GError **error)
{
    g_autoptr(GError) why = NULL;
    record_autoptr(node_config) config = node_config_read(paths, &why);

    if (config == NULL && !fettle_error_is(why, UNKNOWN_ENTITY))
        g_propagate_error(error, g_steal_pointer(&why));
    else if (config == NULL && !new_keys)
        return node_config_new();
    else if (config == NULL)
        fettle_set_error(error, WRONG_STATE,
                         "this host is no node yet: it joins without --new-keys");
    else if (new_keys)
        return g_steal_pointer(&config);
    else
        fettle_set_error(error, WRONG_STATE,
                         "this host is node \"%s\" of the cluster %s already; if it was removed "
                         "there, move %s/node.json away first; if the keys of the cluster were "
                         "renewed while it was away, add --new-keys",
                         config->name, config->cluster_uuid, paths->etc);
    return NULL;
}

/* The token of a node that has its identity already is for new keys, and that node's. */
static bool is_self(const struct node_config *self, const struct node_config *given, GError **error)
{
    if (!self->node_uuid || *self->node_uuid == '\0' ||
        (strcmp(self->node_uuid, given->node_uuid) == 0 &&
         strcmp(self->cluster_uuid, given->cluster_uuid) == 0))
        return true;
    fettle_set_error(error, PROTOCOL, "the answer is for the node %s, this host is %s",
                     given->node_uuid, self->node_uuid);
    return false;
}

/* Whether the master may have let this host in without our knowing it. */
static bool is_unsure(const GError *error)
{
    return fettle_error_is(error, TIMEOUT) || fettle_error_is(error, UNKNOWN_RESULT);
}

static struct node_config *join_by(const struct node_paths *paths, GIOStream *stream,
                                   const struct invitation *invitation,
                                   const struct node_config *self, bool new_keys, const char *key,
                                   bool *ret_let_in, GError **error)
{
    g_autofree char *request = make_request(key, error);
    record_autoptr(join_result) result =
        request != NULL ? ask(stream, invitation, request, new_keys ? self->node_uuid : "", error)
                        : NULL;

    *ret_let_in = result != NULL;
    if (result == NULL || !check_answer(result, invitation, error) ||
        !is_self(self, result->config, error) ||
        !(new_keys ? write_keys : write_node)(paths, result, key, error))
        return NULL;
    g_unlink(key);
    return node_config_copy(result->config);
}

struct node_config *join_cluster(const struct node_paths *paths,
                                 const struct invitation *invitation, bool new_keys, GError **error)
{
    g_autofree char *name = g_strdup_printf("join-%s.key", invitation->token);
    g_autofree char *key = g_build_filename(paths->etc, name, NULL);
    record_autoptr(node_config) self = read_self(paths, new_keys, error);
    g_autoptr(GIOStream) stream = self != NULL ? open_stream(invitation, error) : NULL;
    g_autoptr(GError) why = NULL;
    bool let_in = false;

    if (stream == NULL)
        return NULL;
    bool had_folder = g_file_test(paths->etc, G_FILE_TEST_IS_DIR);
    if (!files_make_folder(paths->etc, 0755, error))
        return NULL;
    struct node_config *config =
        join_by(paths, stream, invitation, self, new_keys, key, &let_in, &why);
    if (config != NULL)
        return config;
    if (let_in) {
        g_prefix_error(&why, "this host was let in, but is no node yet; run the same command again "
                             "when this is mended: ");
    } else if (is_unsure(why)) {
        g_prefix_error(&why, "whether this host was let in is unknown; run the same command "
                             "again: ");
    } else {
        g_unlink(key);
        if (!had_folder)
            g_rmdir(paths->etc);
    }
    g_propagate_error(error, g_steal_pointer(&why));
    return NULL;
}
