/* See http_server.h. */
#include "io/http/http_server.h"

#include "io/crash.h"
#include "io/http/http_input.h"
#include "io/http/http_room.h"
#include "io/http/http_stream.h"
#include "io/loop.h"
#include "io/net/acceptor.h"

#include <gio/gunixsocketaddress.h>
#include <libsoup/soup.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATUS_HEADERS_TOO_LARGE 431 /* RFC 6585; libsoup has no name for it */
#define CONNECTION_KEY "fettle-connection"
#define EXCHANGE_KEY "fettle-exchange"

struct http_server {
    SoupServer *soup;
    struct acceptor *acceptor;
    struct http_room *room;
    GTlsCertificate *certificate; /* NULL: no TLS */
    guint headers_ms, silence_s;
    guint64 drain_bytes;
    const struct http_server_events *events;
    void *data;
    GHashTable *connections; /* set of struct connection */
    GHashTable *exchanges;   /* set of struct http_exchange whose message is there */
};

/* From its arrival to the end of its stream, which libsoup has meanwhile. */
struct connection {
    struct http_server *server; /* NULL: it is gone */
    struct arrival *arrival;
    GSocket *socket;
    GSocketAddress *peer; /* libsoup tells requests of this connection by it */
    char *place;
    GCancellable *shaking;    /* until libsoup has it */
    struct http_input *input; /* from then on */
    struct http_part part;    /* of the server's room */
    guint timer;              /* its headers, or those of the next request, are late then */
    gint64 idle_since_ms;     /* it waits for its peer; 0: for who serves, or it has a stream */
};

struct http_exchange {
    struct http_server *server; /* with the message */
    struct http_request *request;
    SoupServerMessage *message; /* NULL: who asked is gone */
    GString *body;
    struct http_incoming *incoming; /* in its place; NULL: it is gathered, or has come */
    struct http_outgoing *outgoing; /* of the answer; NULL: that is none that is streamed */
    struct http_feeding *feeding;   /* the same, of one that comes as something happens */
    bool served, closes, answered;
    bool streamable;           /* who serves wants its body in pieces, or would have */
    guint64 drained;           /* so much of a body that nobody wants is read at most */
    struct http_room *streams; /* one of its streams is this one's; NULL: it has none */
};

/* --- connections --- */

static void give_room(struct connection *connection)
{
    for (enum http_way way = 0; connection->server && way < HTTP_WAYS; way++)
        http_room_give(connection->server->room, &connection->part, way);
}

static void end_connection(struct connection *connection)
{
    loop_timer_cancel(connection->timer);
    give_room(connection);
    if (connection->input)
        http_input_forget(connection->input);
    if (connection->server)
        g_hash_table_remove(connection->server->connections, connection);
    arrival_end(connection->arrival);
    g_object_unref(connection->socket);
    g_object_set_data(G_OBJECT(connection->peer), CONNECTION_KEY, NULL);
    g_object_unref(connection->peer);
    g_clear_object(&connection->shaking);
    g_clear_object(&connection->input);
    g_free(connection->place);
    g_free(connection);
}

static void stream_gone(void *data, GObject *stream)
{
    end_connection(data);
}

/* libsoup sees its end, and lets go of the stream. Who writes on, and reads nothing, hears of it at
 * once: without that its bytes would wait for a minute for room that nobody makes. */
static void hang_up(struct connection *connection)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(g_socket_get_fd(connection->socket), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    loop_timer_cancel(connection->timer);
    connection->timer = 0;
    if (connection->shaking)
        g_cancellable_cancel(connection->shaking);
    g_socket_shutdown(connection->socket, TRUE, TRUE, NULL);
}

static void headers_late(void *data)
{
    struct connection *connection = data;
    connection->timer = 0;
    arrival_complain(connection->arrival, false, "its request takes too long to come");
    hang_up(connection);
}

static bool headers_come(gsize bytes, void *data)
{
    struct connection *connection = data;
    if (!connection->server ||
        http_room_take(connection->server->room, &connection->part, HTTP_REQUESTS, bytes))
        return true;
    arrival_complain(connection->arrival, false, "too many requests have not come to their end");
    return false;
}

static void give_to_soup(struct connection *connection, GIOStream *stream)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketAddress) local = g_socket_get_local_address(connection->socket, NULL);
    g_clear_object(&connection->shaking);
    arrival_settle(connection->arrival);
    connection->timer = loop_timer(connection->server->headers_ms, headers_late, connection);
    connection->idle_since_ms = loop_boot_ms();
    connection->input =
        http_input_new(g_io_stream_get_input_stream(stream), headers_come, connection);
    http_input_set_idle(connection->input, true);
    g_autoptr(GIOStream) given = g_simple_io_stream_new(G_INPUT_STREAM(connection->input),
                                                        g_io_stream_get_output_stream(stream));
    g_object_set_data_full(G_OBJECT(given), "fettle-base", g_object_ref(stream), g_object_unref);
    g_object_weak_ref(G_OBJECT(given), stream_gone, connection);
    if (!soup_server_accept_iostream(connection->server->soup, given, local, connection->peer,
                                     &error))
        arrival_complain(connection->arrival, false, error->message);
}

static void shaken_cb(GObject *object, GAsyncResult *result, gpointer data)
{
    struct connection *connection = data;
    g_autoptr(GIOStream) stream = G_IO_STREAM(object); /* the reference of who began it */
    g_autoptr(GError) error = NULL;
    if (g_tls_connection_handshake_finish(G_TLS_CONNECTION(object), result, &error) &&
        connection->server) {
        give_to_soup(connection, stream);
        return;
    }
    arrival_complain(connection->arrival, false, error ? error->message : "the server ends");
    end_connection(connection);
}

static void shake(struct connection *connection, GSocketConnection *base)
{
    g_autoptr(GError) error = NULL;
    GIOStream *stream = acceptor_tls(base, connection->server->certificate, NULL, &error);
    if (!stream) {
        arrival_complain(connection->arrival, false, error->message);
        end_connection(connection);
        return;
    }
    connection->shaking = g_cancellable_new();
    g_tls_connection_handshake_async(G_TLS_CONNECTION(stream), G_PRIORITY_DEFAULT,
                                     connection->shaking, shaken_cb, connection);
}

/* A peer that is gone without a word acknowledges nothing: what is written to it fails by then. */
static void notice_silence(const struct connection *connection)
{
    int ms = (int)connection->server->silence_s * 1000;
    setsockopt(g_socket_get_fd(connection->socket), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static void begin_cb(struct arrival *arrival, GSocketConnection *base, void *data)
{
    struct http_server *server = data;
    struct connection *connection = g_new0(struct connection, 1);
    connection->server = server;
    connection->arrival = arrival;
    connection->socket = g_object_ref(g_socket_connection_get_socket(base));
    connection->place = g_strdup(arrival_place(arrival));
    connection->peer = g_socket_connection_get_remote_address(base, NULL);
    if (!connection->peer) /* it has hung up already */
        connection->peer = g_inet_socket_address_new_from_string("0.0.0.0", 0);
    g_object_set_data(G_OBJECT(connection->peer), CONNECTION_KEY, connection);
    g_hash_table_add(server->connections, connection);
    arrival_set_owner(arrival, connection);
    g_socket_set_timeout(connection->socket, server->silence_s);
    notice_silence(connection);
    if (server->events->arrives)
        server->events->arrives(server->data);
    if (server->certificate)
        shake(connection, base);
    else
        give_to_soup(connection, G_IO_STREAM(base));
}

static void late_cb(struct arrival *arrival, void *data)
{
    hang_up(arrival_owner(arrival));
}

static gint64 idle_cb(struct arrival *arrival, void *data)
{
    return ((const struct connection *)arrival_owner(arrival))->idle_since_ms;
}

static void complain_cb(const char *line, void *data)
{
    const struct http_server *server = data;
    if (server->events->complain)
        server->events->complain(line, server->data);
}

/* --- requests --- */

static struct connection *connection_of(SoupServerMessage *message)
{
    return g_object_get_data(G_OBJECT(soup_server_message_get_remote_address(message)),
                             CONNECTION_KEY);
}

static void refuse(struct http_exchange *exchange, guint status, const char *why)
{
    if (exchange->request->refused)
        return;
    exchange->request->refused = status;
    exchange->request->refused_why = why;
    exchange->closes = true;
}

static void add_header(const char *name, const char *value, gpointer data)
{
    struct http_request *request = data;
    char *lower = g_ascii_strdown(name, -1);
    const char *before = g_hash_table_lookup(request->headers, lower);
    g_hash_table_replace(request->headers, lower,
                         before ? g_strconcat(before, ", ", value, NULL) : g_strdup(value));
}

static void count_header(const char *name, const char *value, gpointer data)
{
    *(size_t *)data += strlen(name) + strlen(value) + 4;
}

/* Where a request ends must be sure, or its end is another one to who forwards it. */
static void check_length(struct http_exchange *exchange)
{
    const char *length = g_hash_table_lookup(exchange->request->headers, "content-length");
    const char *coding = g_hash_table_lookup(exchange->request->headers, "transfer-encoding");
    guint64 bytes = 0;
    if (length && coding)
        refuse(exchange, SOUP_STATUS_BAD_REQUEST,
               "Content-Length and Transfer-Encoding exclude each other");
    else if (coding && g_ascii_strcasecmp(coding, "chunked") != 0)
        refuse(exchange, SOUP_STATUS_NOT_IMPLEMENTED, "Transfer-Encoding: only chunked is known");
    else if (length && !g_ascii_string_to_unsigned(length, 10, 0, G_MAXINT64, &bytes, NULL))
        refuse(exchange, SOUP_STATUS_BAD_REQUEST, "Content-Length must be one number");
    else if (bytes > LIMIT_HTTP_BODY_BYTES && !exchange->streamable)
        refuse(exchange, SOUP_STATUS_REQUEST_ENTITY_TOO_LARGE, "the body is longer than 1 MiB");
    guint64 most = exchange->server->drain_bytes;
    exchange->drained = exchange->streamable && bytes <= most ? most : LIMIT_HTTP_BODY_BYTES;
}

/* Who asked is gone, or answered. */
static void forget_message(struct http_exchange *exchange)
{
    if (!exchange->message)
        return;
    if (exchange->incoming)
        http_incoming_lose(g_steal_pointer(&exchange->incoming));
    if (exchange->outgoing)
        http_outgoing_lose(exchange->outgoing);
    if (exchange->feeding)
        http_feeding_free(g_steal_pointer(&exchange->feeding));
    g_hash_table_remove(exchange->server->exchanges, exchange);
    g_object_set_data(G_OBJECT(exchange->message), EXCHANGE_KEY, NULL);
    g_clear_object(&exchange->message);
}

static void end_stream(struct http_exchange *exchange)
{
    if (exchange->streams)
        http_room_end_stream(g_steal_pointer(&exchange->streams));
}

static void exchange_free(struct http_exchange *exchange)
{
    forget_message(exchange);
    http_request_free(exchange->request);
    g_string_free(exchange->body, TRUE);
    end_stream(exchange);
    g_free(exchange);
}

static bool begin_stream(struct http_exchange *exchange)
{
    if (!exchange->streams && http_room_begin_stream(exchange->server->room))
        exchange->streams = exchange->server->room;
    return exchange->streams;
}

static struct http_exchange *exchange_new(struct http_server *server, SoupServerMessage *message)
{
    struct http_exchange *exchange = g_new0(struct http_exchange, 1);
    struct http_request *request = exchange->request = g_new0(struct http_request, 1);
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(message);
    const struct connection *connection = connection_of(message);
    GUri *uri = soup_server_message_get_uri(message);
    size_t bytes = 0;
    exchange->server = server;
    exchange->message = g_object_ref(message);
    g_hash_table_add(server->exchanges, exchange);
    g_object_set_data(G_OBJECT(message), EXCHANGE_KEY, exchange);
    exchange->body = g_string_new(NULL);
    request->method = g_strdup(soup_server_message_get_method(message));
    request->peer = g_strdup(connection ? connection->place : "");
    request->secure = connection && connection->server->certificate;
    request->headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    request->path = uri ? http_path_decode(g_uri_get_path(uri)) : NULL;
    request->query = g_strdup(uri && g_uri_get_query(uri) ? g_uri_get_query(uri) : "");
    soup_message_headers_foreach(headers, count_header, &bytes);
    if (bytes > LIMIT_HTTP_HEADER_BYTES)
        refuse(exchange, STATUS_HEADERS_TOO_LARGE, "the headers are longer than 64 KiB");
    else
        soup_message_headers_foreach(headers, add_header, request);
    if (!request->path)
        refuse(exchange, SOUP_STATUS_BAD_REQUEST,
               "the path is no text, or has a segment with \"/\", or \"..\"");
    if (!request->path)
        request->path = g_strdup("/");
    if (!request->refused && server->events->streams &&
        server->events->streams(request, server->data)) {
        exchange->streamable = true;
        if (begin_stream(exchange)) {
            exchange->incoming = http_incoming_new(message);
            request->stream = http_incoming_bytes(exchange->incoming);
        } else
            refuse(exchange, SOUP_STATUS_SERVICE_UNAVAILABLE, "too many images come and go");
    }
    check_length(exchange);
    /* libsoup closes it, and does not say so: clients take it for one that is kept. */
    exchange->closes |= soup_message_headers_header_contains(headers, "Connection", "close");
    return exchange;
}

static struct http_exchange *exchange_of(SoupServerMessage *message)
{
    return g_object_get_data(G_OBJECT(message), EXCHANGE_KEY);
}

static void serve(const struct http_server *server, struct http_exchange *exchange)
{
    struct http_request *request = exchange->request;
    struct connection *connection = connection_of(exchange->message);
    if (connection)
        connection->idle_since_ms = 0;
    exchange->served = true;
    request->body_len = exchange->body->len;
    request->body = g_string_free(exchange->body, FALSE);
    exchange->body = g_string_new(NULL);
    if (!exchange->incoming)
        soup_server_message_pause(exchange->message);
    server->events->serve(exchange, server->data);
}

static void headers_cb(SoupServerMessage *message, gpointer data)
{
    struct connection *connection = connection_of(message);
    struct http_exchange *exchange = exchange_new(data, message);
    /* Without it libsoup gathers the body of a request that is refused here, too. */
    soup_message_body_set_accumulate(soup_server_message_get_request_body(message), FALSE);
    if (connection) {
        loop_timer_cancel(connection->timer);
        connection->timer = 0;
        connection->idle_since_ms = loop_boot_ms();
        http_input_set_idle(connection->input, false);
    }
    /* Who waits for our word before the body is told now. */
    if (exchange->incoming ||
        (exchange->request->refused && *http_request_header(exchange->request, "expect")))
        serve(data, exchange);
}

/* It is refused, and what has come of it is nobody's. */
static void drop_body(struct http_exchange *exchange, struct connection *connection)
{
    g_string_free(exchange->body, TRUE);
    exchange->body = g_string_new(NULL);
    http_room_give(connection->server->room, &connection->part, HTTP_REQUESTS);
}

static void chunk_cb(SoupServerMessage *message, GBytes *chunk, gpointer data)
{
    struct http_exchange *exchange = exchange_of(message);
    struct connection *connection = connection_of(message);
    size_t len = 0;
    const char *bytes = g_bytes_get_data(chunk, &len);
    if (!exchange)
        return;
    if (exchange->incoming) {
        http_incoming_add(exchange->incoming, chunk);
        return;
    }
    bool wanted = !exchange->answered && !exchange->request->refused && connection &&
                  exchange->body->len + len <= LIMIT_HTTP_BODY_BYTES;
    if (wanted && http_room_take(connection->server->room, &connection->part, HTTP_REQUESTS, len)) {
        g_string_append_len(exchange->body, bytes, (gssize)len);
        return;
    }
    if (wanted) {
        refuse(exchange, SOUP_STATUS_SERVICE_UNAVAILABLE, "too many requests are being sent");
        drop_body(exchange, connection);
    } else if (!exchange->answered)
        refuse(exchange, SOUP_STATUS_REQUEST_ENTITY_TOO_LARGE, "the body is longer than 1 MiB");
    /* libsoup gives no answer before the end of the body, and most clients hear none before they
     * have sent all of it: so much more is read for it, and kept nowhere. */
    exchange->request->body_len += len;
    if (exchange->request->body_len > exchange->drained && connection)
        hang_up(connection);
}

static void request_cb(SoupServer *soup, SoupServerMessage *message, const char *path,
                       GHashTable *query, gpointer data)
{
    struct http_exchange *exchange = exchange_of(message);
    if (exchange && exchange->incoming) { /* all of it has come */
        soup_server_message_pause(message);
        http_incoming_end(exchange->incoming);
    } else if (exchange && !exchange->served)
        serve(data, exchange);
}

static void lose(struct http_exchange *exchange)
{
    if (exchange->served && (!exchange->answered || exchange->outgoing))
        forget_message(exchange);
    else
        exchange_free(exchange);
}

/* Another one may follow on its connection; that has its time, too. */
static void finished_cb(SoupServerMessage *message, gpointer data)
{
    struct http_exchange *exchange = exchange_of(message);
    struct connection *connection = connection_of(message);
    if (exchange)
        lose(exchange);
    const struct http_server *server = connection ? connection->server : NULL;
    if (connection) {
        give_room(connection);
        connection->idle_since_ms = loop_boot_ms();
        http_input_set_idle(connection->input, true);
    }
    if (server && !connection->timer)
        connection->timer =
            loop_timer(server->silence_s * 1000 + server->headers_ms, headers_late, connection);
}

/* libsoup takes one without a length for one that the end of its connection ends, and makes that,
 * unsaid. It has written the headers, where none may stand (RFC 9110, 8.6). */
static void wrote_headers_cb(SoupServerMessage *message, gpointer data)
{
    if (soup_server_message_get_status(message) == SOUP_STATUS_NO_CONTENT)
        soup_message_headers_set_content_length(soup_server_message_get_response_headers(message),
                                                0);
}

static void wrote_cb(SoupServerMessage *message, gpointer data)
{
    struct http_exchange *exchange = exchange_of(message);
    if (exchange && exchange->outgoing)
        http_outgoing_go_on(exchange->outgoing);
    else if (exchange && exchange->feeding)
        http_feeding_go_on(exchange->feeding);
}

static void started_cb(SoupServer *soup, SoupServerMessage *message, gpointer data)
{
    g_signal_connect(message, "got-headers", G_CALLBACK(headers_cb), data);
    g_signal_connect(message, "got-chunk", G_CALLBACK(chunk_cb), data);
    g_signal_connect(message, "wrote-headers", G_CALLBACK(wrote_headers_cb), data);
    g_signal_connect(message, "wrote-chunk", G_CALLBACK(wrote_cb), data);
    g_signal_connect(message, "finished", G_CALLBACK(finished_cb), data);
    g_signal_connect(message, "disconnected", G_CALLBACK(finished_cb), data);
}

const struct http_request *http_exchange_request(const struct http_exchange *exchange)
{
    return exchange->request;
}

/* --- answers --- */

static void streamed(bool ok, void *data)
{
    struct http_exchange *exchange = data;
    struct connection *connection = exchange->message ? connection_of(exchange->message) : NULL;
    exchange->outgoing = NULL;
    if (!ok && connection) /* it has promised more */
        hang_up(connection);
    exchange_free(exchange);
}

/* What clients ask for they ask again; whatever else they want is done by now. */
static struct http_answer *if_there_is_room(struct http_exchange *exchange,
                                            struct http_answer *answer)
{
    struct connection *connection = connection_of(exchange->message);
    bool asks = !strcmp(exchange->request->method, "GET");
    bool room = !asks || !connection || !connection->server ||
                (answer->stream ? begin_stream(exchange)
                                : http_room_take(connection->server->room, &connection->part,
                                                 HTTP_ANSWERS, answer->body_len));
    if (room)
        return answer;
    http_answer_free(answer);
    answer = http_answer_new(SOUP_STATUS_SERVICE_UNAVAILABLE);
    http_answer_add_header(answer, "Retry-After", "5");
    http_answer_set_body(answer, "text/plain",
                         g_strdup("too many answers wait for who has asked for them"));
    return answer;
}

static void write_answer(struct http_exchange *exchange, struct http_answer *answer)
{
    SoupServerMessage *message = exchange->message;
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(message);
    soup_server_message_set_status(message, answer->status, NULL);
    for (guint i = 0; i + 1 < answer->headers->len; i += 2)
        soup_message_headers_append(headers, answer->headers->pdata[i],
                                    answer->headers->pdata[i + 1]);
    if (exchange->closes)
        soup_message_headers_append(headers, "Connection", "close");
    if (answer->body)
        soup_message_body_append_take(soup_server_message_get_response_body(message),
                                      (guchar *)g_steal_pointer(&answer->body), answer->body_len);
    if (answer->stream)
        exchange->outgoing = http_outgoing_new(message, g_steal_pointer(&answer->stream),
                                               answer->stream_len, streamed, exchange);
    if (answer->feed)
        exchange->feeding = http_feeding_new(message, g_steal_pointer(&answer->feed));
}

void http_exchange_answer(struct http_exchange *exchange, struct http_answer *answer)
{
    SoupServerMessage *message = exchange->message;
    struct connection *connection = message ? connection_of(message) : NULL;
    bool early = exchange->incoming && !http_incoming_ended(exchange->incoming);
    exchange->answered = true;
    exchange->closes |= early;
    if (message)
        answer = if_there_is_room(exchange, answer);
    if (message) {
        crash_point("http: answer");
        write_answer(exchange, answer);
    }
    if (connection && !exchange->outgoing && !exchange->feeding)
        connection->idle_since_ms = loop_boot_ms();
    http_answer_free(answer);
    if (early) { /* nobody hears it before the rest of the body has come, or too much has */
        exchange->request->body_len = 0;
        http_incoming_lose(g_steal_pointer(&exchange->incoming));
        end_stream(exchange);
        return;
    }
    if (exchange->outgoing || exchange->feeding)
        return;
    if (message)
        soup_server_message_unpause(message);
    exchange_free(exchange);
}

/* --- the server --- */

/* libsoup 3.2 keeps a connection for another request only while it listens on something itself: on
 * a socket here that nobody can connect to, as its name is gone. */
static bool listen_to_nobody(struct http_server *server, GError **error)
{
    g_autofree char *folder = g_dir_make_tmp("fettle-http-XXXXXX", error);
    if (!folder)
        return false;
    g_autofree char *path = g_build_filename(folder, "nobody", NULL);
    g_autoptr(GSocketAddress) name = g_unix_socket_address_new(path);
    g_autoptr(GSocket) socket =
        g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, error);
    bool bound = socket && g_socket_bind(socket, name, FALSE, error);
    unlink(path);
    rmdir(folder);
    return bound && g_socket_listen(socket, error) &&
           soup_server_listen_socket(server->soup, socket, 0, error);
}

static bool listen_on(struct http_server *server, const struct acceptor_options *place,
                      GError **error)
{
    static const struct acceptor_events events = {
        .begin = begin_cb, .late = late_cb, .idle_since_ms = idle_cb, .complain = complain_cb};
    g_autoptr(GError) local = NULL;
    if (!listen_to_nobody(server, &local)) {
        fettle_set_error(error, ENVIRONMENT, "cannot make a socket in %s: %s", g_get_tmp_dir(),
                         local->message);
        return false;
    }
    server->acceptor = acceptor_new(place, &events, server, error);
    return server->acceptor != NULL;
}

int http_server_given_socket(void)
{
    guint64 fd = 0;
    const char *text = g_getenv("FETTLE_LISTEN_FD");
    return text && g_ascii_string_to_unsigned(text, 10, 3, 1024, &fd, NULL) ? (int)fd : 0;
}

struct http_server *http_server_new(const struct http_server_options *options,
                                    const struct http_server_events *events, void *data,
                                    GError **error)
{
    const struct acceptor_options place = {
        .address = options->address,
        .port = options->port,
        .fd = options->fd,
        .name = "http",
        .settings = options->settings,
        .limits = {LIMIT_HTTP_CONNECTIONS, LIMIT_HTTP_CONNECTIONS_ADDRESS,
                   "too many connections are open", "too many of its connections are open"}};
    struct http_server *server = g_new0(struct http_server, 1);
    server->events = events;
    server->data = data;
    server->certificate = options->certificate ? g_object_ref(options->certificate) : NULL;
    server->headers_ms = options->headers_ms ? options->headers_ms : HTTP_HEADERS_MS;
    server->silence_s = options->silence_s ? options->silence_s : HTTP_SILENCE_S;
    server->drain_bytes = options->drain_bytes ? options->drain_bytes : LIMIT_HTTP_DRAIN_BYTES;
    server->connections = g_hash_table_new(NULL, NULL);
    server->exchanges = g_hash_table_new(NULL, NULL);
    server->room = http_room_new();
    server->soup = soup_server_new(NULL, NULL);
    soup_server_add_handler(server->soup, NULL, request_cb, server, NULL);
    g_signal_connect(server->soup, "request-started", G_CALLBACK(started_cb), server);
    if (!listen_on(server, &place, error))
        g_clear_pointer(&server, http_server_free);
    return server;
}

void http_server_renew(struct http_server *server, GTlsCertificate *certificate)
{
    g_set_object(&server->certificate, certificate);
}

void http_server_free(struct http_server *server)
{
    GHashTableIter iter;
    void *connection, *exchange;
    if (!server)
        return;
    acceptor_free(server->acceptor);
    for (;;) {
        g_hash_table_iter_init(&iter, server->exchanges);
        if (!g_hash_table_iter_next(&iter, &exchange, NULL))
            break;
        lose(exchange);
    }
    g_hash_table_unref(server->exchanges);
    g_hash_table_iter_init(&iter, server->connections);
    while (g_hash_table_iter_next(&iter, &connection, NULL)) {
        ((struct connection *)connection)->server = NULL;
        hang_up(connection);
    }
    g_hash_table_unref(server->connections);
    g_signal_handlers_disconnect_by_data(server->soup, server);
    soup_server_disconnect(server->soup);
    g_object_unref(server->soup);
    g_clear_object(&server->certificate);
    http_room_free(server->room);
    g_free(server);
}
