/* See etcd_client.h. */
#include "io/etcd_client.h"

#include <libsoup/soup.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/task.h"
#include "io/crash.h"
#include "io/loop.h"

#define PIECE_BYTES KIB(64)

struct etcd_client {
    SoupSession *session;
    GTlsCertificate *identity; /* NULL: plain HTTP */
    GPtrArray *urls;
    guint member; /* index of the one that is asked first */
    GPtrArray *calls;
};

struct call {
    struct etcd_client *client; /* NULL: it was freed */
    char *path;
    GBytes *body;
    gint64 deadline_ms;
    guint tries; /* members that were asked */
    bool sent;   /* to one of them at least */
    etcd_reply_fn done;
    void *data;

    /* of the member that is asked now */
    SoupMessage *message;
    GCancellable *cancellable;
    guint timer;
    bool expired;
    GByteArray *answer;
};

/* --- the end of a call --- */

static void attempt_clear(struct call *call)
{
    g_clear_object(&call->message);
    g_clear_object(&call->cancellable);
    g_clear_pointer(&call->answer, g_byte_array_unref);
    loop_timer_cancel(call->timer);
    call->timer = 0;
    call->expired = false;
}

/* `answer` is borrowed. */
static void call_end(struct call *call, json_t *answer, const GError *error)
{
    attempt_clear(call);
    if (call->client)
        g_ptr_array_remove_fast(call->client->calls, call);
    call->done(answer, error, call->data);
    g_bytes_unref(call->body);
    g_free(call->path);
    g_free(call);
}

static void attempt(struct call *call);

/* Whether nothing of the request can have reached the member. */
static bool surely_not_sent(const GError *error)
{
    return g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE) ||
           g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NETWORK_UNREACHABLE) ||
           error->domain == G_TLS_ERROR || error->domain == G_RESOLVER_ERROR;
}

/* This member gave no answer: the next one, or the end. */
static void attempt_failed(struct call *call, const GError *reason, bool sent)
{
    struct etcd_client *client = call->client;
    const char *url = client->urls->pdata[client->member];
    g_autoptr(GError) error = NULL;

    call->sent = call->sent || sent;
    call->tries++;
    client->member = (client->member + 1) % client->urls->len;
    if (call->tries < client->urls->len && loop_boot_ms() < call->deadline_ms) {
        attempt(call);
        return;
    }
    const char *why = call->expired ? "no answer in time" : reason->message;
    if (call->sent)
        fettle_set_error(&error, UNKNOWN_RESULT, "etcd at %s: %s", url, why);
    else
        fettle_set_error(&error, UNREACHABLE, "etcd at %s: %s", url, why);
    call_end(call, NULL, error);
}

/* --- the answer --- */

/* Codes of gRPC after which a request may have been done, or may still be: unknown, deadline,
 * aborted, internal, unavailable. */
static bool is_doubtful(json_int_t code)
{
    return code == 2 || code == 4 || code == 10 || code == 13 || code == 14;
}

static void answer_refused(struct call *call, guint status, json_t *answer)
{
    const char *words = json_string_value(json_object_get(answer, "message"));
    json_int_t code = json_integer_value(json_object_get(answer, "code"));
    g_autoptr(GError) error = NULL;

    if (words == NULL)
        words = "no reason given";
    if (is_doubtful(code) || status >= 500) {
        g_autoptr(GError) reason =
            g_error_new(G_IO_ERROR, G_IO_ERROR_FAILED, "%s (HTTP %u)", words, status);
        attempt_failed(call, reason, true);
        return;
    }
    fettle_set_error(&error, PROTOCOL, "etcd refused %s: %s (HTTP %u)", call->path, words, status);
    call_end(call, NULL, error);
}

static void answer_whole(struct call *call)
{
    g_autoptr(GError) error = NULL;
    guint status = soup_message_get_status(call->message);
    json_autoptr answer = json_parse_limited((const char *)call->answer->data, call->answer->len,
                                             LIMIT_ETCD_ANSWER_BYTES, &error);
    if (status != SOUP_STATUS_OK) {
        answer_refused(call, status, answer);
        return;
    }
    if (answer == NULL) {
        g_prefix_error(&error, "etcd's answer to %s: ", call->path);
        call_end(call, NULL, error);
        return;
    }
    call_end(call, answer, NULL);
}

static void read_cb(GObject *source, GAsyncResult *result, void *data)
{
    struct call *call = data;
    g_autoptr(GError) reason = NULL;
    g_autoptr(GBytes) piece =
        g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, &reason);
    size_t size = piece != NULL ? g_bytes_get_size(piece) : 0;

    if (call->client == NULL) {
        attempt_clear(call);
        g_free(call);
    } else if (piece == NULL) {
        attempt_failed(call, reason, true);
    } else if (size == 0) {
        answer_whole(call);
    } else if (call->answer->len + size > LIMIT_ETCD_ANSWER_BYTES) {
        g_autoptr(GError) error = NULL;
        fettle_set_error(&error, LIMIT, "etcd's answer to %s has more than %zu bytes", call->path,
                         LIMIT_ETCD_ANSWER_BYTES);
        call_end(call, NULL, error);
    } else {
        g_byte_array_append(call->answer, g_bytes_get_data(piece, NULL), (guint)size);
        g_input_stream_read_bytes_async(G_INPUT_STREAM(source), PIECE_BYTES, G_PRIORITY_DEFAULT,
                                        call->cancellable, read_cb, call);
    }
}

static void sent_cb(GObject *source, GAsyncResult *result, void *data)
{
    struct call *call = data;
    g_autoptr(GError) reason = NULL;
    g_autoptr(GInputStream) stream =
        soup_session_send_finish(SOUP_SESSION(source), result, &reason);

    if (call->client == NULL) {
        attempt_clear(call);
        g_free(call);
    } else if (stream == NULL) {
        attempt_failed(call, reason, !surely_not_sent(reason));
    } else {
        call->answer = g_byte_array_new();
        g_input_stream_read_bytes_async(stream, PIECE_BYTES, G_PRIORITY_DEFAULT, call->cancellable,
                                        read_cb, call);
    }
}

/* --- the request --- */

static void expire_cb(void *data)
{
    struct call *call = data;
    call->timer = 0;
    call->expired = true;
    g_cancellable_cancel(call->cancellable);
}

static gboolean identify_cb(SoupMessage *message, GTlsClientConnection *connection, void *data)
{
    const struct call *call = data;
    if (call->client == NULL || call->client->identity == NULL)
        return FALSE;
    soup_message_set_tls_client_certificate(message, call->client->identity);
    return TRUE;
}

static void attempt(struct call *call)
{
    struct etcd_client *client = call->client;
    g_autofree char *uri = g_strconcat(client->urls->pdata[client->member], call->path, NULL);
    gint64 left = call->deadline_ms - loop_boot_ms();

    attempt_clear(call);
    crash_point("etcd: call");
    call->message = soup_message_new(SOUP_METHOD_POST, uri);
    call->cancellable = g_cancellable_new();
    call->timer = loop_timer((guint)CLAMP(left, 1, ETCD_MEMBER_MS), expire_cb, call);
    soup_message_set_request_body_from_bytes(call->message, "application/json", call->body);
    /* Not marked as idempotent each POST would open a connection of its own. */
    soup_message_add_flags(call->message, SOUP_MESSAGE_NO_REDIRECT | SOUP_MESSAGE_IDEMPOTENT);
    g_signal_connect(call->message, "request-certificate", G_CALLBACK(identify_cb), call);
    soup_session_send_async(client->session, call->message, G_PRIORITY_DEFAULT, call->cancellable,
                            sent_cb, call);
}

void etcd_call(struct etcd_client *client, const char *path, json_t *body, guint timeout_ms,
               etcd_reply_fn done, void *data)
{
    struct call *call = g_new0(struct call, 1);
    char *text = json_to_text(body);

    json_decref(body);
    call->client = client;
    call->path = g_strdup(path);
    call->body = g_bytes_new_take(text, strlen(text));
    call->deadline_ms = loop_boot_ms() + timeout_ms;
    call->done = done;
    call->data = data;
    g_ptr_array_add(client->calls, call);
    attempt(call);
}

/* --- from a task --- */

/* Both sides free it: the call when it comes, the task when it goes on. */
struct waiting {
    struct promise promise;
    bool left; /* the task was killed */
    json_t *answer;
    GError *error;
};

static void waiting_free(struct waiting *waiting)
{
    json_decref(waiting->answer);
    g_clear_error(&waiting->error);
    g_free(waiting);
}

static void waiting_cb(json_t *answer, const GError *error, void *data)
{
    struct waiting *waiting = data;
    if (waiting->left) {
        waiting_free(waiting);
        return;
    }
    waiting->answer = json_incref(answer);
    waiting->error = error != NULL ? g_error_copy(error) : NULL;
    promise_complete(&waiting->promise);
}

json_t *etcd_call_wait(struct etcd_client *client, const char *path, json_t *body, guint timeout_ms,
                       GError **error)
{
    struct waiting *waiting = g_new0(struct waiting, 1);

    etcd_call(client, path, body, timeout_ms, waiting_cb, waiting);
    if (!promise_wait(&waiting->promise)) {
        fettle_set_error(error, KILLED, "etcd: the process that waited has ended");
        if (waiting->promise.done)
            waiting_free(waiting);
        else
            waiting->left = true;
        return NULL;
    }
    json_t *answer = json_steal(&waiting->answer);
    if (waiting->error != NULL)
        g_propagate_error(error, g_steal_pointer(&waiting->error));
    waiting_free(waiting);
    return answer;
}

/* --- life --- */

static bool load_identity(struct etcd_client *client, const struct etcd_options *options,
                          GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autoptr(GTlsDatabase) authority = g_tls_file_database_new(options->ca, &reason);

    if (authority == NULL) {
        fettle_set_error(error, CORRUPT, "%s: %s", options->ca, reason->message);
        return false;
    }
    client->identity =
        g_tls_certificate_new_from_files(options->certificate, options->key, &reason);
    if (client->identity == NULL) {
        fettle_set_error(error, CORRUPT, "%s, %s: %s", options->certificate, options->key,
                         reason->message);
        return false;
    }
    soup_session_set_tls_database(client->session, authority);
    return true;
}

struct etcd_client *etcd_client_new(const struct etcd_options *options, GError **error)
{
    struct etcd_client *client = g_new0(struct etcd_client, 1);

    client->session = soup_session_new_with_options("max-conns-per-host", LIMIT_ETCD_CONNECTIONS,
                                                    "max-conns", LIMIT_ETCD_CONNECTIONS * 8, NULL);
    client->urls = g_ptr_array_new_with_free_func(g_free);
    client->calls = g_ptr_array_new();
    for (guint i = 0; options->urls[i] != NULL; i++)
        g_ptr_array_add(client->urls, g_strdup(options->urls[i]));
    g_assert(client->urls->len > 0);
    if (options->ca != NULL && !load_identity(client, options, error)) {
        etcd_client_free(client);
        return NULL;
    }
    return client;
}

void etcd_client_free(struct etcd_client *client)
{
    if (client == NULL)
        return;
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, KILLED, "the connection to etcd was closed");
    while (client->calls->len > 0) {
        struct call *call = client->calls->pdata[client->calls->len - 1];
        g_ptr_array_set_size(client->calls, (gint)client->calls->len - 1);
        /* libsoup calls back once more, and frees the rest then. */
        call->client = NULL;
        loop_timer_cancel(call->timer);
        call->timer = 0;
        g_cancellable_cancel(call->cancellable);
        call->done(NULL, error, call->data);
        g_clear_pointer(&call->body, g_bytes_unref);
        g_clear_pointer(&call->path, g_free);
    }
    g_ptr_array_unref(client->calls);
    g_clear_object(&client->session);
    g_clear_object(&client->identity);
    g_ptr_array_unref(client->urls);
    g_free(client);
}
