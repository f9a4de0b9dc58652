/* See post_client.h. */
#include "io/http/post_client.h"

#include <netdb.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/task.h"
#include "io/crash.h"
#include "io/loop.h"

#define HEAD_BYTES KIB(8) /* of an answer: nobody needs more */
#define THREADS_MOST (2 * LIMIT_WEBHOOKS)
#define USER_AGENT "fettle/" FETTLE_VERSION

struct client {
    struct webhook_out base;
    GTlsDatabase *authorities;
};

static gint threads; /* that have not ended */

/* What a thread is to do. It and the task that waits have it together: who lets it go last frees
 * it. */
struct work {
    gatomicrefcount refs;
    GCancellable *cancellable;
    void (*run)(struct work *work);
    /* of the task, in the loop's thread */
    struct promise promise;
    bool left;
    guint timer;
    /* what is wanted */
    char *host, *authority, *target, *address, *signature, *body;
    guint port;
    bool tls, may_be_here;
    GTlsDatabase *authorities;
    guint timeout_ms;
    gint64 began_ms;
    gint phase; /* enum phase, of both */
    /* what came of it */
    GPtrArray *addresses;
    guint status;
    char *text;
};

/* Whoever leaves the first one has decided: what was given up is not sent, what is connected may
 * have been. */
enum phase { CONNECTING, CONNECTED, GIVEN_UP };

static bool goes_on_as(struct work *work, gint phase)
{
    return g_atomic_int_compare_and_exchange(&work->phase, CONNECTING, phase);
}

static struct work *work_new(void (*run)(struct work *work))
{
    struct work *work = g_new0(struct work, 1);
    g_atomic_ref_count_init(&work->refs);
    work->cancellable = g_cancellable_new();
    work->run = run;
    return work;
}

static void work_unref(struct work *work)
{
    if (!g_atomic_ref_count_dec(&work->refs))
        return;
    g_object_unref(work->cancellable);
    g_clear_object(&work->authorities);
    g_clear_pointer(&work->addresses, g_ptr_array_unref);
    g_free(work->host);
    g_free(work->authority);
    g_free(work->target);
    g_free(work->address);
    g_free(work->signature);
    g_free(work->body);
    g_free(work->text);
    g_free(work);
}

/* --- a thread --- */

static void over(void *data)
{
    struct work *work = data;
    loop_timer_cancel(work->timer);
    work->timer = 0;
    if (!work->left)
        promise_complete(&work->promise);
    work_unref(work);
}

static void *thread(void *data)
{
    struct work *work = data;
    work->run(work);
    g_atomic_int_add(&threads, -1);
    loop_post(over, work);
    return NULL;
}

/* Whoever waits is told; the thread ends when it can. A connection that was made in its own time
 * has the rest of the whole. */
static void late(void *data)
{
    struct work *work = data;
    gint64 left_ms = work->began_ms + work->timeout_ms - loop_boot_ms();
    work->timer = 0;
    if (!goes_on_as(work, GIVEN_UP) && left_ms > 0) {
        work->timer = loop_timer((guint)left_ms, late, work);
        return;
    }
    work->left = true;
    g_cancellable_cancel(work->cancellable);
    promise_complete(&work->promise);
}

/* Whether it has ended in time. The caller lets `work` go either way. */
static bool run(struct work *work, guint connect_ms, guint timeout_ms, const char *what,
                GError **error)
{
    if (g_atomic_int_add(&threads, 1) >= THREADS_MOST) {
        g_atomic_int_add(&threads, -1);
        goes_on_as(work, GIVEN_UP);
        fettle_set_error(error, TEMPORARY, "%s: too many that were given up have not ended yet",
                         what);
        return false;
    }
    g_atomic_ref_count_inc(&work->refs);
    work->began_ms = loop_boot_ms();
    work->timeout_ms = timeout_ms;
    work->timer = loop_timer(CLAMP(connect_ms, 1, timeout_ms), late, work);
    g_thread_unref(g_thread_new("webhook", thread, work));
    bool done = promise_wait(&work->promise);
    if (!done) {
        loop_timer_cancel(work->timer);
        work->timer = 0;
        g_cancellable_cancel(work->cancellable);
        fettle_set_error(error, KILLED, "the calling process ends");
    } else if (work->left) {
        bool connected = g_atomic_int_get(&work->phase) == CONNECTED;
        fettle_set_error(error, TIMEOUT, "%s: no %s within %u ms", what,
                         connected || connect_ms == timeout_ms ? "answer" : "connection",
                         connected ? timeout_ms : connect_ms);
    }
    bool in_time = done && !work->left;
    work->left = true;
    return in_time;
}

/* --- names --- */

static void look_up_run(struct work *work)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(work->host, NULL, &hints, &found);
    if (failed) {
        work->text = g_strdup_printf("%s: %s", work->host, gai_strerror(failed));
        return;
    }
    work->addresses = g_ptr_array_new_with_free_func(g_free);
    for (const struct addrinfo *one = found; one; one = one->ai_next) {
        char text[NI_MAXHOST];
        if (!getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
            g_ptr_array_add(work->addresses, g_strdup(text));
    }
    freeaddrinfo(found);
}

static GPtrArray *look_up(struct webhook_out *out, const char *host, guint timeout_ms,
                          GError **error)
{
    struct work *work = work_new(look_up_run);
    GPtrArray *addresses = NULL;
    work->host = g_strdup(host);
    if (run(work, timeout_ms, timeout_ms, host, error)) {
        addresses = g_steal_pointer(&work->addresses);
        if (!addresses)
            fettle_set_error(error, UNREACHABLE, "%s", work->text);
    }
    work_unref(work);
    return addresses;
}

/* --- a request --- */

static void fail(struct work *work, const char *what, const GError *reason)
{
    work->text = g_strdup_printf("%s: %s", what, reason->message);
}

/* Where a connection ends that begins at the same address, there is this host. */
static bool is_here(GSocketConnection *connection)
{
    g_autoptr(GSocketAddress) from = g_socket_connection_get_local_address(connection, NULL);
    g_autoptr(GSocketAddress) to = g_socket_connection_get_remote_address(connection, NULL);
    return from && to &&
           g_inet_address_equal(g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(from)),
                                g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(to)));
}

static GSocketConnection *connect_to(struct work *work)
{
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GSocketAddress) address =
        g_inet_socket_address_new_from_string(work->address, work->port);
    g_autoptr(GError) reason = NULL;
    g_socket_client_set_enable_proxy(client, FALSE);
    g_autoptr(GSocketConnection) connection =
        !address ? NULL
                 : g_socket_client_connect(client, G_SOCKET_CONNECTABLE(address), work->cancellable,
                                           &reason);
    if (!address)
        work->text = g_strdup_printf("%s is no address", work->address);
    else if (!connection)
        work->text = g_strdup(reason->message);
    else if (!work->may_be_here && is_here(connection))
        work->text = g_strdup_printf("the address %s is not allowed for webhooks", work->address);
    else
        return g_steal_pointer(&connection);
    return NULL;
}

/* The connection as what is said over it is written to; NULL: they do not agree. */
static GIOStream *secure(struct work *work, GSocketConnection *connection)
{
    g_autoptr(GError) reason = NULL;
    g_autoptr(GSocketConnectable) identity = g_network_address_new(work->host, (guint16)work->port);
    if (!work->tls)
        return g_object_ref(G_IO_STREAM(connection));
    g_autoptr(GIOStream) tls =
        g_tls_client_connection_new(G_IO_STREAM(connection), identity, &reason);
    if (tls && work->authorities)
        g_tls_connection_set_database(G_TLS_CONNECTION(tls), work->authorities);
    if (tls && g_tls_connection_handshake(G_TLS_CONNECTION(tls), work->cancellable, &reason))
        return g_steal_pointer(&tls);
    fail(work, "TLS", reason);
    return NULL;
}

static bool send_request(struct work *work, GIOStream *stream)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *text = g_strdup_printf(
        "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: " USER_AGENT "\r\nContent-Type: "
        "application/cloudevents+json; charset=utf-8\r\nContent-Length: %zu\r\nWebhook-Signature: "
        "%s\r\nConnection: close\r\n\r\n%s",
        work->target, work->authority, strlen(work->body), work->signature, work->body);
    crash_point("webhook: send");
    if (g_output_stream_write_all(g_io_stream_get_output_stream(stream), text, strlen(text), NULL,
                                  work->cancellable, &reason))
        return true;
    fail(work, "it does not take what is sent", reason);
    return false;
}

/* "HTTP/1.1 204 No Content": 204, and the text that is shown. 0: it is none. */
static guint read_status(const char *head, char **ret_text)
{
    g_auto(GStrv) lines = g_strsplit(head, "\n", 2);
    g_strchomp(lines[0]);
    guint64 status = 0;
    g_auto(GStrv) words = g_strsplit(lines[0], " ", 3);
    if (g_strv_length(words) < 2 || !g_str_has_prefix(words[0], "HTTP/1.") ||
        !g_ascii_string_to_unsigned(words[1], 10, 100, 999, &status, NULL))
        return 0;
    g_autofree char *valid = g_utf8_make_valid(words[2] ? words[2] : "", -1);
    *ret_text = g_strdup_printf("HTTP %" G_GUINT64_FORMAT "%s%s", status, *valid ? " " : "", valid);
    return (guint)status;
}

/* The end of the first head in `text`; NULL: it has not come. */
static const char *head_end(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n");
    return end ? end + 4 : NULL;
}

/* Of an answer the head alone counts: what it says behind that is read by nobody. Heads that say
 * "go on" (1xx) go before. */
static void read_answer(struct work *work, GIOStream *stream)
{
    GInputStream *input = g_io_stream_get_input_stream(stream);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) reason = NULL;
    char piece[1024];
    while (text->len < HEAD_BYTES) {
        gssize size = g_input_stream_read(input, piece, sizeof piece, work->cancellable, &reason);
        if (size < 0) {
            fail(work, "it does not answer", reason);
            return;
        }
        if (size == 0 || memchr(piece, '\0', (size_t)size))
            break;
        g_string_append_len(text, piece, size);
        for (const char *end; (end = head_end(text->str));) {
            g_autofree char *said = NULL;
            guint status = read_status(text->str, &said);
            if (status == 0 || status >= 200) {
                work->status = status;
                work->text = g_steal_pointer(&said);
                if (!work->text)
                    work->text = g_strdup("what it answers is no HTTP");
                return;
            }
            g_string_erase(text, 0, end - text->str);
        }
    }
    work->text = g_strdup(text->len >= HEAD_BYTES ? "the head of its answer has no end"
                                                  : "it ended the connection without an answer");
}

static void post_run(struct work *work)
{
    g_autoptr(GSocketConnection) connection = connect_to(work);
    bool good = connection && goes_on_as(work, CONNECTED);
    g_autoptr(GIOStream) stream = good ? secure(work, connection) : NULL;
    if (stream && send_request(work, stream)) {
        read_answer(work, stream);
        crash_point("webhook: answered");
    }
}

static bool post(struct webhook_out *out, const struct webhook_post *wanted, guint timeout_ms,
                 struct webhook_said *ret_said)
{
    const struct webhook_url *url = wanted->url;
    struct client *client = (struct client *)out;
    g_autoptr(GError) error = NULL;
    struct work *work = work_new(post_run);
    work->host = g_strdup(url->host);
    work->authority = g_strdup(url->authority);
    work->target = g_strdup(url->target);
    work->address = g_strdup(wanted->address);
    work->signature = g_strdup(wanted->signature);
    work->body = g_strdup(wanted->body);
    work->port = url->port;
    work->tls = url->tls;
    work->may_be_here = wanted->may_be_here;
    work->authorities = client->authorities ? g_object_ref(client->authorities) : NULL;
    bool in_time = run(work, wanted->connect_ms, timeout_ms, wanted->address, &error);
    *ret_said = (struct webhook_said){.status = in_time ? work->status : 0,
                                      .text = in_time ? g_steal_pointer(&work->text)
                                                      : g_strdup(error->message)};
    bool connected = !goes_on_as(work, GIVEN_UP) && g_atomic_int_get(&work->phase) == CONNECTED;
    work_unref(work);
    return connected;
}

struct webhook_out *post_client_new(GTlsDatabase *authorities)
{
    struct client *client = g_new0(struct client, 1);
    client->base = (struct webhook_out){look_up, post};
    client->authorities = authorities ? g_object_ref(authorities) : NULL;
    return &client->base;
}

void post_client_free(struct webhook_out *out)
{
    struct client *client = (struct client *)out;
    g_clear_object(&client->authorities);
    g_free(client);
}
