/* See etcd_client.h. */
#include "io/etcd/etcd_client.h"

#include <libsoup/soup.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/task.h"
#include "base/text.h"
#include "io/crash.h"
#include "io/etcd/etcd_kv.h"
#include "io/loop.h"
#include "io/trust.h"

#define PIECE_BYTES KIB(64)
#define NO_SPACE "database space exceeded" /* in what etcd says then */

struct etcd_client {
    SoupSession *session;
    char *files[3];    /* authority, certificate, key; NULL: plain HTTP */
    char *files_state; /* which of them were read */
    GTlsDatabase *authority;
    GTlsCertificate *identity; /* NULL: plain HTTP */
    GPtrArray *urls;
    guint member; /* index of the one that is asked first */
    guint member_ms;
    guint left; /* attempts of this session that were left and have not come back */
    GPtrArray *calls;
};

struct call {
    struct etcd_client *client;
    char *path;
    GBytes *body;
    gint64 deadline_ms;
    guint tries; /* members that were asked */
    bool sent;   /* to one of them at least */
    etcd_reply_fn done;
    void *data;
    struct attempt *attempt; /* the member that is asked now */
    guint timer;
};

/* One request to one member. When its time is over the call goes on without it, and it ends when
 * libsoup gives it back: libsoup 3.2 never does, not even when it is canceled, if the member ends
 * the connection right after the handshake, as it does if it refuses our certificate. */
struct attempt {
    struct call *call; /* NULL: it was left */
    SoupSession *session;
    GTlsCertificate *identity;
    SoupMessage *message;
    GCancellable *cancellable;
    GByteArray *answer;
};

static void attempt_free(struct attempt *attempt)
{
    g_clear_object(&attempt->message);
    g_clear_object(&attempt->session);
    g_clear_object(&attempt->identity);
    g_clear_object(&attempt->cancellable);
    g_clear_pointer(&attempt->answer, g_byte_array_unref);
    g_free(attempt);
}

/* --- the end of a call --- */

static void renew_session(struct etcd_client *client);

/* The attempt has come back: it is the call's no more. */
static void attempt_clear(struct call *call)
{
    g_clear_pointer(&call->attempt, attempt_free);
    loop_timer_cancel(call->timer);
    call->timer = 0;
}

/* Leaves it to libsoup. Connections that hang count among those that a session may have: so it is
 * renewed when half of them may be gone. */
static void attempt_leave(struct call *call)
{
    struct attempt *attempt = g_steal_pointer(&call->attempt);
    attempt->call = NULL;
    loop_timer_cancel(call->timer);
    call->timer = 0;
    if (++call->client->left >= LIMIT_ETCD_CONNECTIONS / 2)
        renew_session(call->client);
    g_cancellable_cancel(attempt->cancellable);
}

/* `answer` is borrowed. */
static void call_end(struct call *call, json_t *answer, const GError *error)
{
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
    etcd_client_next(client);
    if (call->tries < client->urls->len && loop_boot_ms() < call->deadline_ms) {
        attempt(call);
        return;
    }
    if (call->sent)
        fettle_set_error(&error, UNKNOWN_RESULT, "etcd at %s: %s", url, reason->message);
    else
        fettle_set_error(&error, UNREACHABLE, "etcd at %s: %s", url, reason->message);
    call_end(call, NULL, error);
}

/* --- the answer --- */

/* Codes of gRPC after which a request may have been done, or may still be: unknown, deadline,
 * aborted, internal, unavailable. */
static bool is_doubtful(json_int_t code)
{
    return code == 2 || code == 4 || code == 10 || code == 13 || code == 14;
}

bool etcd_refusal(guint status, const json_t *answer, const char *path, bool sent,
                  GError **ret_reason)
{
    const char *said = json_string_value(json_object_get(answer, "message"));
    json_int_t code = json_integer_value(json_object_get(answer, "code"));
    g_autofree char *words = etcd_words(said != NULL ? said : "no reason given");

    if (is_doubtful(code) || status >= 500) {
        g_set_error(ret_reason, G_IO_ERROR, G_IO_ERROR_FAILED, "%s (HTTP %u)", words, status);
        return false;
    }
    if (strstr(words, NO_SPACE) != NULL)
        g_set_error(ret_reason, FETTLE_ERROR,
                    sent ? FETTLE_ERROR_UNKNOWN_RESULT : FETTLE_ERROR_STORAGE,
                    "etcd takes no changes: the file of a member has reached its limit "
                    "(%s); its node makes room, see fettle cluster engine status",
                    words);
    else
        fettle_set_error(ret_reason, PROTOCOL, "etcd refused %s: %s (HTTP %u)", path, words,
                         status);
    return true;
}

static void answer_refused(struct call *call, guint status, const json_t *answer)
{
    g_autoptr(GError) reason = NULL;
    if (etcd_refusal(status, answer, call->path, call->sent, &reason))
        call_end(call, NULL, reason);
    else
        attempt_failed(call, reason, true);
}

/* The whole answer has come; `text` is of it. */
static void answer_whole(struct call *call, guint status, const GByteArray *text)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        json_parse_limited((const char *)text->data, text->len, LIMIT_ETCD_ANSWER_BYTES, &error);
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

static void answer_too_large(struct call *call)
{
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, LIMIT, "etcd's answer to %s has more than %zu bytes", call->path,
                     LIMIT_ETCD_ANSWER_BYTES);
    attempt_clear(call);
    call_end(call, NULL, error);
}

static void answer_ended(struct call *call)
{
    guint status = soup_message_get_status(call->attempt->message);
    g_autoptr(GByteArray) text = g_steal_pointer(&call->attempt->answer);
    attempt_clear(call);
    answer_whole(call, status, text);
}

static void read_cb(GObject *source, GAsyncResult *result, void *data)
{
    struct attempt *attempt = data;
    struct call *call = attempt->call;
    g_autoptr(GError) reason = NULL;
    g_autoptr(GBytes) piece =
        g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, &reason);
    size_t size = piece != NULL ? g_bytes_get_size(piece) : 0;

    if (call == NULL) {
        attempt_free(attempt);
    } else if (piece == NULL) {
        attempt_clear(call);
        attempt_failed(call, reason, true);
    } else if (size == 0) {
        answer_ended(call);
    } else if (attempt->answer->len + size > LIMIT_ETCD_ANSWER_BYTES) {
        answer_too_large(call);
    } else {
        g_byte_array_append(attempt->answer, g_bytes_get_data(piece, NULL), (guint)size);
        g_input_stream_read_bytes_async(G_INPUT_STREAM(source), PIECE_BYTES, G_PRIORITY_DEFAULT,
                                        attempt->cancellable, read_cb, attempt);
    }
}

static void sent_cb(GObject *source, GAsyncResult *result, void *data)
{
    struct attempt *attempt = data;
    struct call *call = attempt->call;
    g_autoptr(GError) reason = NULL;
    g_autoptr(GInputStream) stream =
        soup_session_send_finish(SOUP_SESSION(source), result, &reason);

    if (call == NULL) {
        attempt_free(attempt);
    } else if (stream == NULL) {
        attempt_clear(call);
        attempt_failed(call, reason, !surely_not_sent(reason));
    } else {
        attempt->answer = g_byte_array_new();
        g_input_stream_read_bytes_async(stream, PIECE_BYTES, G_PRIORITY_DEFAULT,
                                        attempt->cancellable, read_cb, attempt);
    }
}

/* --- our identity --- */

/* They are replaced, not written anew: each time there is another file. */
static char *state_of_files(const struct etcd_client *client)
{
    GString *state = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(client->files); i++) {
        struct stat file = {0};
        if (stat(client->files[i], &file) != 0)
            g_string_append_c(state, '-');
        g_string_append_printf(state, "%" G_GUINT64_FORMAT " %" G_GINT64_FORMAT ".%ld ",
                               (guint64)file.st_ino, (gint64)file.st_mtim.tv_sec,
                               file.st_mtim.tv_nsec);
    }
    return g_string_free(state, FALSE);
}

static bool load_identity(struct etcd_client *client, GError **error)
{
    const char *const *files = (const char *const *)client->files;
    g_autoptr(GError) reason = NULL;
    g_autofree char *state = state_of_files(client);
    g_autoptr(GTlsDatabase) authority = g_tls_file_database_new(files[0], &reason);

    if (authority == NULL) {
        fettle_set_error(error, CORRUPT, "%s: %s", files[0], reason->message);
        return false;
    }
    g_autoptr(GTlsCertificate) identity =
        g_tls_certificate_new_from_files(files[1], files[2], &reason);
    if (identity == NULL) {
        fettle_set_error(error, CORRUPT, "%s, %s: %s", files[1], files[2], reason->message);
        return false;
    }
    g_set_object(&client->authority, authority);
    g_set_object(&client->identity, identity);
    text_set(&client->files_state, state);
    trust_nobody();
    return true;
}

/* A renewal of keys puts others there. While they are being replaced those of before may not be
 * refused yet, and the next question looks again. */
static void take_up_identity(struct etcd_client *client)
{
    if (client->files[0] == NULL)
        return;
    g_autofree char *state = state_of_files(client);
    if (strcmp(state, client->files_state) != 0 && load_identity(client, NULL))
        renew_session(client);
}

/* --- the request --- */

static void expire_cb(void *data)
{
    struct call *call = data;
    g_autoptr(GError) reason =
        g_error_new_literal(G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "no answer in time");
    call->timer = 0;
    attempt_leave(call);
    attempt_failed(call, reason, true);
}

static gboolean identify_cb(SoupMessage *message, GTlsClientConnection *connection, void *data)
{
    const struct attempt *attempt = data;
    if (attempt->identity == NULL)
        return FALSE;
    soup_message_set_tls_client_certificate(message, attempt->identity);
    return TRUE;
}

static void attempt(struct call *call)
{
    struct etcd_client *client = call->client;
    struct attempt *attempt = g_new0(struct attempt, 1);
    g_autofree char *uri = g_strconcat(client->urls->pdata[client->member], call->path, NULL);
    gint64 left = call->deadline_ms - loop_boot_ms();

    crash_point("etcd: call");
    take_up_identity(client);
    attempt->call = call;
    attempt->session = g_object_ref(client->session);
    attempt->identity = client->identity != NULL ? g_object_ref(client->identity) : NULL;
    attempt->message = soup_message_new(SOUP_METHOD_POST, uri);
    attempt->cancellable = g_cancellable_new();
    call->attempt = attempt;
    call->timer = loop_timer((guint)CLAMP(left, 1, (gint64)client->member_ms), expire_cb, call);
    soup_message_set_request_body_from_bytes(attempt->message, "application/json", call->body);
    /* Not marked as idempotent each POST would open a connection of its own. */
    soup_message_add_flags(attempt->message, SOUP_MESSAGE_NO_REDIRECT | SOUP_MESSAGE_IDEMPOTENT);
    g_signal_connect(attempt->message, "request-certificate", G_CALLBACK(identify_cb), attempt);
    soup_session_send_async(attempt->session, attempt->message, G_PRIORITY_DEFAULT,
                            attempt->cancellable, sent_cb, attempt);
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

static void renew_session(struct etcd_client *client)
{
    g_clear_object(&client->session);
    client->session = soup_session_new_with_options("max-conns-per-host", LIMIT_ETCD_CONNECTIONS,
                                                    "max-conns", LIMIT_ETCD_CONNECTIONS * 8, NULL);
    if (client->authority != NULL)
        soup_session_set_tls_database(client->session, client->authority);
    client->left = 0;
}

void etcd_client_set_urls(struct etcd_client *client, const char *const *urls)
{
    g_assert(urls[0] != NULL);
    g_ptr_array_set_size(client->urls, 0);
    for (guint i = 0; urls[i] != NULL; i++)
        g_ptr_array_add(client->urls, g_strdup(urls[i]));
    client->member = 0;
}

const char *etcd_client_url(const struct etcd_client *client)
{
    return client->urls->pdata[client->member];
}

void etcd_client_next(struct etcd_client *client)
{
    client->member = (client->member + 1) % client->urls->len;
}

guint etcd_patience(void)
{
    const char *given = g_getenv("FETTLE_ETCD_PATIENCE");
    guint64 times = 1;
    if (given != NULL)
        g_ascii_string_to_unsigned(given, 10, 1, 20, &times, NULL);
    return (guint)times;
}

guint etcd_client_count(const struct etcd_client *client)
{
    return client->urls->len;
}

struct etcd_client *etcd_client_new(const struct etcd_options *options, GError **error)
{
    struct etcd_client *client = g_new0(struct etcd_client, 1);

    client->urls = g_ptr_array_new_with_free_func(g_free);
    client->calls = g_ptr_array_new();
    client->member_ms =
        (options->member_ms != 0 ? options->member_ms : ETCD_MEMBER_MS) * etcd_patience();
    etcd_client_set_urls(client, options->urls);
    client->files[0] = g_strdup(options->ca);
    client->files[1] = g_strdup(options->certificate);
    client->files[2] = g_strdup(options->key);
    if (options->ca != NULL && !load_identity(client, error)) {
        etcd_client_free(client);
        return NULL;
    }
    renew_session(client);
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
        attempt_leave(call);
        call->done(NULL, error, call->data);
        g_bytes_unref(call->body);
        g_free(call->path);
        g_free(call);
    }
    g_ptr_array_unref(client->calls);
    g_clear_object(&client->session);
    g_clear_object(&client->identity);
    g_clear_object(&client->authority);
    for (guint i = 0; i < G_N_ELEMENTS(client->files); i++)
        g_free(client->files[i]);
    g_free(client->files_state);
    g_ptr_array_unref(client->urls);
    g_free(client);
}
