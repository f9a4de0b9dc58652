/* The HTTP server of the outside (io/http/http_server.h): what it hands on, and what strangers may
 * not do to it. Clients write bytes, so that they may be anything. */
#include "io/http/http_server.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/task.h"
#include "io/net/certs.h"

#include "client.h"
#include "world.h"

#define HEADERS_MS 400u
#define PATIENT_MS 600000u
#define PLENTY (3 * LIMIT_HTTP_BODY_BYTES)

static struct world {
    struct http_server *server;
    guint port, served;
    GPtrArray *lines;
    struct http_exchange *kept; /* of "/later" */
    guint later;
    struct task_group *tasks;
    struct streaming {
        bool held;     /* reads, or gives, nothing yet */
        guint64 bytes; /* that were read, or given */
        bool over, failed, freed, endless;
    } streaming;
} * world_of_streams;

#define STREAM_BYTES (20 * MIB(1))
#define LARGE_BYTES (8 * MIB(1)) /* more than a connection takes that nobody reads */
#define FAILS_AT (3 * MIB(1))
#define ENDLESS_BYTES (4 * MIB(1) + 17)

static void answer_text(struct http_exchange *exchange, guint status, const char *text)
{
    struct http_answer *answer = http_answer_new(status);
    http_answer_set_body(answer, "text/plain", g_strdup(text));
    http_exchange_answer(exchange, answer);
}

/* --- bodies as they come and go --- */

static bool is_streamed(const struct http_request *request, void *data)
{
    return g_str_has_prefix(request->path, "/stream/");
}

static void wait_while_held(struct world *world)
{
    while (world->streaming.held && !task_killed())
        loop_sleep(5);
}

/* /stream/up: all is read, and counted if each byte is what it is to be. */
static void take_task(void *data)
{
    struct http_exchange *exchange = data;
    struct world *world = world_of_streams;
    struct streaming *streaming = &world->streaming;
    struct http_bytes *stream = http_exchange_request(exchange)->stream;
    g_autoptr(GError) error = NULL;
    guint8 place[10000];
    gssize got = 1;
    while (got > 0) {
        wait_while_held(world);
        got = stream->read(stream, place, sizeof place, &error);
        for (gssize i = 0; i < got; i++, streaming->bytes++)
            g_assert_cmpuint(place[i], ==, (guint8)(streaming->bytes % 251));
    }
    streaming->failed = got < 0;
    if (error)
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    g_autofree char *text = g_strdup_printf("took %" G_GUINT64_FORMAT, streaming->bytes);
    answer_text(exchange, 200, text);
    streaming->over = true;
}

static gssize give(struct http_bytes *bytes, void *place, gsize length, GError **error)
{
    struct world *world = world_of_streams;
    struct streaming *streaming = &world->streaming;
    bool fails = streaming->failed && streaming->bytes >= FAILS_AT;
    wait_while_held(world);
    if (streaming->endless && !fails) /* it knows its end only when it comes */
        length = MIN(length, (gsize)(ENDLESS_BYTES - streaming->bytes));
    for (gsize i = 0; i < length; i++)
        ((guint8 *)place)[i] = (guint8)((streaming->bytes + i) % 251);
    streaming->bytes += fails ? 0 : length;
    return fails ? -1 : (gssize)length;
}

static void given(struct http_bytes *bytes)
{
    world_of_streams->streaming.freed = true;
    g_free(bytes);
}

/* GET /down: so many bytes. */
static void give_task(void *data)
{
    struct http_answer *answer = http_answer_new(200);
    struct http_bytes *bytes = g_new0(struct http_bytes, 1);
    *bytes = (struct http_bytes){.read = give, .free = given};
    bool endless = world_of_streams->streaming.endless;
    http_answer_set_stream(answer, "application/octet-stream", bytes,
                           endless ? HTTP_LENGTH_UNKNOWN : STREAM_BYTES);
    http_exchange_answer(data, answer);
}

/* Nothing of it is read, and all that may wait for that has come. */
static void refuse_task(void *data)
{
    loop_sleep(200);
    answer_text(data, 409, "not now");
}

/* Says what it was asked. */
static void serve(struct http_exchange *exchange, void *data)
{
    struct world *world = data;
    const struct http_request *request = http_exchange_request(exchange);
    world->served++;
    if (!strcmp(request->path, "/later")) {
        world->kept = exchange;
        world->later++;
        return;
    }
    if (!strcmp(request->path, "/nothing")) {
        http_exchange_answer(exchange, http_answer_new(204));
        return;
    }
    if (g_str_has_prefix(request->path, "/large")) {
        bool fits = g_str_has_suffix(request->path, "-fits"); /* into the connection's buffers */
        g_autofree char *large = g_strnfill(fits ? KIB(256) : LARGE_BYTES, 'l');
        answer_text(exchange, 200, large);
        return;
    }
    if (!strcmp(request->path, "/stream/up") || !strcmp(request->path, "/down")) {
        task_spawn(world->tasks, request->stream ? take_task : give_task, exchange);
        return;
    }
    if (!strcmp(request->path, "/stream/refused-late")) {
        task_spawn(world->tasks, refuse_task, exchange);
        return;
    }
    if (!strcmp(request->path, "/stream/refused")) { /* before its end */
        answer_text(exchange, 409, "not now");
        return;
    }
    g_autofree char *text =
        request->refused
            ? g_strdup(request->refused_why)
            : g_strdup_printf("%s %s ?%s token=%s body=%zu:%.20s", request->method, request->path,
                              request->query, http_request_header(request, "x-auth-token"),
                              request->body_len, request->body);
    answer_text(exchange, request->refused ? request->refused : 200, text);
}

static void complain(const char *line, void *data)
{
    g_test_message("%s", line);
}

static void begin_with(struct world *world, GTlsCertificate *certificate, bool patient)
{
    static const struct http_server_events events = {
        .streams = is_streamed, .serve = serve, .complain = complain};
    g_autoptr(GError) error = NULL;
    world_of_streams = world;
    *world = (struct world){.port = world_free_port()};
    const struct http_server_options options = {.address = "127.0.0.1",
                                                .port = world->port,
                                                .settings = "etc/apid.conf",
                                                .certificate = certificate,
                                                .headers_ms = patient ? PATIENT_MS : HEADERS_MS,
                                                .drain_bytes = STREAM_BYTES,
                                                .silence_s = patient ? PATIENT_MS / 1000 : 1};
    world->server = http_server_new(&options, &events, world, &error);
    g_assert_no_error(error);
    world->tasks = task_group_new();
}

static void begin(struct world *world)
{
    begin_with(world, NULL, false);
}

static void end(struct world *world)
{
    http_server_free(world->server);
    task_group_kill(world->tasks);
    task_group_unref(world->tasks);
    for (guint i = 0; i < 20; i++) /* connections are let go of */
        g_main_context_iteration(NULL, FALSE);
}

/* What it answers to that, the connection being closed afterwards by either side. */
static char *ask(const struct world *world, const char *text)
{
    struct client *client = client_dial(world->port);
    client_say(client, text);
    world_wait(&client->over);
    char *said = g_strdup(client->said->str);
    client_free(client);
    return said;
}

static void assert_answer(const char *said, const char *status, const char *text)
{
    g_autofree char *line = g_strdup_printf("HTTP/1.1 %s ", status);
    if (!g_str_has_prefix(said, line) || !strstr(said, text))
        g_error("answered: %s\nexpected: %s… %s", said, line, text);
}

#define END "Host: x\r\nConnection: close\r\n\r\n"

static void test_request(void)
{
    struct world world;
    begin(&world);
    g_autofree char *get =
        ask(&world, "GET /v3/a%20b?limit=2&x HTTP/1.1\r\nX-Auth-Token: t1\r\n" END);
    assert_answer(get, "200", "GET /v3/a b ?limit=2&x token=t1 body=0:");
    g_assert_nonnull(strstr(get, "Connection: close"));
    g_autofree char *post =
        ask(&world, "POST /v3 HTTP/1.1\r\nContent-Length: 7\r\n" END "{\"a\":1}");
    assert_answer(post, "200", "POST /v3 ? token= body=7:{\"a\":1}");
    g_autofree char *chunked = ask(&world, "PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END
                                           "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n");
    assert_answer(chunked, "200", "PUT /x ? token= body=5:abcde");
    end(&world);
}

/* One connection, several requests. */
static void test_kept_alive(void)
{
    struct world world;
    begin(&world);
    struct client *client = client_dial(world.port);
    client_say(client, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
    world_wait_count(&world.served, 1);
    client_say(client, "POST /2 HTTP/1.1\r\nContent-Length: 2\r\n" END "ab");
    world_wait(&client->over);
    assert_answer(client->said->str, "200", "GET /1");
    g_assert_nonnull(strstr(client->said->str, "POST /2 ? token= body=2:ab"));
    client_free(client);
    end(&world);
}

/* libsoup took an answer without a body for one that the end of the connection ends. */
static void test_kept_after_nothing(void)
{
    struct world world;
    begin(&world);
    struct client *client = client_dial(world.port);
    for (guint i = 0; i < 3; i++) {
        g_string_truncate(client->said, 0);
        client_say(client, "DELETE /nothing HTTP/1.1\r\nHost: h\r\n\r\n");
        while (!client->over && !strstr(client->said->str, "\r\n\r\n"))
            g_main_context_iteration(NULL, TRUE);
        g_assert_true(g_str_has_prefix(client->said->str, "HTTP/1.1 204 "));
        g_assert_null(strstr(client->said->str, "Content-Length")); /* RFC 9110, 8.6 */
        g_assert_null(strstr(client->said->str, "Transfer-Encoding"));
        g_assert_null(strstr(client->said->str, "Connection: close"));
    }
    client_say(client, "GET /one HTTP/1.1\r\n" END);
    world_wait(&client->over);
    g_assert_nonnull(strstr(client->said->str, "GET /one"));
    g_assert_cmpuint(world.served, ==, 4);
    client_free(client);
    end(&world);
}

/* Who hangs up between two requests, as most clients do, is let go of: his address has room for the
 * next one. */
static void test_hung_up(void)
{
    struct world world;
    begin(&world);
    for (guint i = 1; i <= LIMIT_HTTP_CONNECTIONS_ADDRESS + 8; i++) {
        struct client *client = client_dial(world.port);
        client_say(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        world_wait_count(&world.served, i);
        while (!strstr(client->said->str, "GET /"))
            g_main_context_iteration(NULL, TRUE);
        client_free(client);
    }
    end(&world);
}

/* Who goes while an answer waits for him to read it, likewise. */
static void test_hung_up_unread(void)
{
    struct world world;
    begin(&world);
    for (guint i = 1; i <= 2 * LIMIT_HTTP_CONNECTIONS_ADDRESS + 8; i++) {
        struct client *client = client_dial_silently("127.0.0.1", world.port);
        client_say(client, i % 2 ? "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
                                 : "GET /large-fits HTTP/1.1\r\nHost: x\r\n\r\n");
        world_wait_count(&world.served, i);
        world_pause(2);
        client->over = true;
        client_free(client);
    }
    g_autofree char *next = ask(&world, "GET /next HTTP/1.1\r\n" END);
    assert_answer(next, "200", "GET /next");
    end(&world);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *status, *why;
    } rows[] = {
        {"GET /a/..%2fb HTTP/1.1\r\n" END, "400", ""},
        {"GET /%00 HTTP/1.1\r\n" END, "400", ""},
        {"GET /%ff%fe HTTP/1.1\r\n" END, "400", ""},
        {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" END "ab", "400",
         "Content-Length must be one number"},
        {"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" END "0\r\n\r\n",
         "400", "exclude each other"},
        {"POST / HTTP/1.1\r\nContent-Length: 1048577\r\nExpect: 100-continue\r\n" END, "413",
         "the body is longer than 1 MiB"},
    };
    struct world world;
    begin(&world);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_test_message("%s", rows[i].text);
        g_autofree char *said = ask(&world, rows[i].text);
        assert_answer(said, rows[i].status, rows[i].why);
    }
    end(&world);
}

/* They get an answer or an end, and the next one is served all the same. */
static void test_nonsense(void)
{
    g_autofree char *headers = g_strnfill(70000, 'a');
    g_autofree char *long_header = g_strdup_printf("GET / HTTP/1.1\r\nX-A: %s\r\n" END, headers);
    const char *const rows[] = {"\r\n\r\n\r\n\r\n",
                                "GET\r\n\r\n",
                                "GET / HTTP/9.9\r\n\r\n",
                                "\x16\x03\x01\x02",
                                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "zz\r\n",
                                long_header,
                                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END
                                "ffffffffffffffff\r\nab"};
    struct world world;
    begin(&world);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *said = ask(&world, rows[i]);
        g_assert_null(strstr(said, "HTTP/1.1 200"));
        g_autofree char *next = ask(&world, "GET /next HTTP/1.1\r\n" END);
        assert_answer(next, "200", "GET /next");
    }
    end(&world);
}

/* A body without an end is not gathered: who sends it is hung up on. */
static void test_endless_body(void)
{
    g_autofree char *piece = g_strdup_printf("10000\r\n%065536d\r\n", 0);
    struct world world;
    begin(&world);
    struct client *client = client_dial(world.port);
    client_say(client, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END);
    guint sent = 0;
    while (sent < PLENTY / 65536 && client_say_bytes(client, piece, strlen(piece)))
        sent++;
    world_wait(&client->over);
    g_assert_null(strstr(client->said->str, "HTTP/1.1 200"));
    client_free(client);
    end(&world);
}

/* `ret_sent`: so many of the body's bytes before the connection takes no more for a while. */
static void say_body(struct client *client, guint64 from, guint64 until, guint64 *ret_sent)
{
    g_autofree char *piece = g_malloc(KIB(64));
    GSocket *socket = g_socket_connection_get_socket(client->connection);
    gint64 stuck_us = g_get_monotonic_time();
    g_socket_set_blocking(socket, FALSE);
    while (from < until && !client->over &&
           g_get_monotonic_time() < stuck_us + 300 * G_TIME_SPAN_MILLISECOND) {
        gsize length = (gsize)MIN(KIB(64), until - from);
        for (gsize i = 0; i < length; i++)
            piece[i] = (char)(guint8)((from + i) % 251);
        gssize more = g_socket_send(socket, piece, length, NULL, NULL);
        g_main_context_iteration(NULL, FALSE);
        if (more <= 0)
            continue;
        from += (guint64)more;
        stuck_us = g_get_monotonic_time();
    }
    *ret_sent = from;
}

#define UP "PUT /stream/up HTTP/1.1\r\nContent-Length: 20971520\r\n" END

/* Who reads slowly holds the sender back, and gets all of it. */
static void test_stream_up(void)
{
    struct world world;
    guint64 sent = 0;
    begin(&world);
    world.streaming.held = true;
    struct client *client = client_dial(world.port);
    client_say(client, UP);
    say_body(client, 0, STREAM_BYTES, &sent);
    g_assert_cmpuint(sent, <, STREAM_BYTES);
    g_assert_cmpuint(world.streaming.bytes, ==, 0);
    world.streaming.held = false;
    while (sent < STREAM_BYTES && !client->over)
        say_body(client, sent, STREAM_BYTES, &sent);
    world_wait(&client->over);
    assert_answer(client->said->str, "200", "took 20971520");
    client_free(client);
    end(&world);
}

static void test_stream_up_gone(void)
{
    struct world world;
    guint64 sent = 0;
    begin(&world);
    struct client *client = client_dial(world.port);
    client_say(client, UP);
    say_body(client, 0, MIB(2), &sent);
    client_free(client);
    world_wait(&world.streaming.over);
    g_assert_true(world.streaming.failed);
    end(&world);
}

/* An answer before the end of the body: who sends all of it first hears it, too; who sends on and
 * on is hung up on. */
static void test_stream_refused(void)
{
    struct world world;
    guint64 sent = 0;
    begin(&world);
    g_autofree char *few =
        ask(&world, "PUT /stream/refused HTTP/1.1\r\nContent-Length: 3\r\n" END "abc");
    assert_answer(few, "409", "not now");
    static const char *const paths[] = {"refused", "refused-late"};
    for (guint i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *request = g_strdup_printf(
            "PUT /stream/%s HTTP/1.1\r\nContent-Length: 20971520\r\n" END, paths[i]);
        struct client *client = client_dial(world.port);
        client_say(client, request);
        for (sent = 0; sent < STREAM_BYTES && !client->over;)
            say_body(client, sent, STREAM_BYTES, &sent);
        g_assert_cmpuint(sent, ==, STREAM_BYTES);
        world_wait(&client->over);
        assert_answer(client->said->str, "409", "not now");
        g_assert_nonnull(strstr(client->said->str, "Connection: close"));
        client_free(client);
    }
    struct client *deaf = client_dial_silently(
        "127.0.0.1", world.port); /* it writes, and does not look whether it should */
    GSocket *socket = g_socket_connection_get_socket(deaf->connection);
    g_autoptr(GError) error = NULL;
    client_say(deaf, "PUT /stream/refused HTTP/1.1\r\nContent-Length: 209715200\r\n" END);
    sent = 0;
    do {
        say_body(deaf, sent, 10 * STREAM_BYTES, &sent);
        g_assert_cmpuint(sent, <, 10 * STREAM_BYTES);
        g_clear_error(&error);
    } while (g_socket_send(socket, "x", 1, NULL, &error) >= 0 ||
             g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK));
    deaf->over = true;
    client_free(deaf);
    g_autofree char *next = ask(&world, "GET /next HTTP/1.1\r\n" END);
    assert_answer(next, "200", "GET /next");
    end(&world);
}

#define DOWN "GET /down HTTP/1.1\r\n" END

/* Likewise the other way round. */
static void test_stream_down(void)
{
    struct world world;
    begin(&world);
    struct client *client = client_dial_silently("127.0.0.1", world.port);
    client_say(client, DOWN);
    while (world.streaming.bytes == 0)
        world_pause(10);
    world_pause(300);
    g_assert_cmpuint(world.streaming.bytes, <, STREAM_BYTES);
    client_read_on(client);
    world_wait(&client->over);
    assert_answer(client->said->str, "200", "");
    const char *body = strstr(client->said->str, "\r\n\r\n") + 4;
    g_assert_cmpuint(client->said->len - (gsize)(body - client->said->str), ==, STREAM_BYTES);
    for (gsize i = 0; i < STREAM_BYTES; i++)
        g_assert_cmpuint((guint8)body[i], ==, i % 251);
    g_assert_true(world.streaming.freed);
    client_free(client);
    end(&world);
}

/* What cannot be given ends the connection short of what was promised. */
static void test_stream_down_fails(void)
{
    struct world world;
    begin(&world);
    world.streaming.failed = true;
    g_autofree char *said = ask(&world, DOWN);
    assert_answer(said, "200", "Content-Length: 20971520");
    g_assert_true(world.streaming.freed);
    end(&world);
}

/* One whose length nobody knows comes in chunks, the last of which says that it was all; if it
 * cannot be given there is no such chunk. */
static void test_stream_down_in_chunks(void)
{
    for (int fails = 0; fails < 2; fails++) {
        struct world world;
        begin(&world);
        world.streaming.endless = true;
        world.streaming.failed = fails;
        struct client *client = client_dial(world.port);
        client_say(client, DOWN);
        world_wait(&client->over);
        assert_answer(client->said->str, "200", "Transfer-Encoding: chunked");
        bool whole = !memcmp(client->said->str + client->said->len - 7, "\r\n0\r\n\r\n", 7);
        g_assert_cmpint(whole, ==, !fails);
        g_assert_true(world.streaming.freed);
        client_free(client);
        g_assert_cmpuint(world.streaming.bytes, ==, fails ? FAILS_AT : ENDLESS_BYTES);
        end(&world);
    }
}

static void test_stream_down_gone(void)
{
    struct world world;
    begin(&world);
    struct client *client = client_dial(world.port);
    client_say(client, DOWN);
    while (!world.streaming.bytes)
        g_main_context_iteration(NULL, TRUE);
    client_free(client);
    world_wait(&world.streaming.freed);
    g_assert_cmpuint(world.streaming.bytes, <, STREAM_BYTES);
    end(&world);
}

/* Who says nothing, or half of something, is gone after its time. */
static void test_slow(void)
{
    static const char *const rows[] = {"G", "GET / HTTP/1.1\r\nHost: x\r\n",
                                       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab"};
    struct world world;
    begin(&world);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *said = ask(&world, rows[i]);
        g_assert_null(strstr(said, "HTTP/1.1 200"));
    }
    end(&world);
}

static void test_many(void)
{
    struct world world;
    struct client *clients[LIMIT_HTTP_CONNECTIONS_ADDRESS + 8];
    begin(&world);
    for (guint i = 0; i < G_N_ELEMENTS(clients); i++)
        clients[i] = client_dial(world.port);
    for (guint i = LIMIT_HTTP_CONNECTIONS_ADDRESS; i < G_N_ELEMENTS(clients); i++)
        world_wait(&clients[i]->over);
    for (guint i = 0; i < G_N_ELEMENTS(clients); i++)
        client_free(clients[i]);
    g_autofree char *next = ask(&world, "GET /next HTTP/1.1\r\n" END);
    assert_answer(next, "200", "GET /next");
    end(&world);
}

/* The crowd's n-th: of sixteen addresses that have as many as they may. */
static struct client *dial_in_crowd(const struct world *world, guint number)
{
    g_autofree char *address = g_strdup_printf("127.0.2.%u", 1 + number % 16);
    struct client *client = client_dial_silently(address, world->port);
    client_read_on(client);
    client_say(client,
               number % 2 ? "G" : "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab");
    return client;
}

static guint count_over(struct client *const *clients, guint count)
{
    guint over = 0;
    for (guint i = 0; i < count; i++)
        over += clients[i]->over;
    return over;
}

/* Whoever keeps all places, saying the half of something, makes room for others: the one that
 * waits longest, of those with most. Who waits for an answer does not. */
static void test_full(void)
{
    const struct rlimit files = {4 * LIMIT_HTTP_CONNECTIONS, 4 * LIMIT_HTTP_CONNECTIONS};
    struct world world;
    struct client *crowd[LIMIT_HTTP_CONNECTIONS - 2], *others[40];
    g_assert_no_errno(setrlimit(RLIMIT_NOFILE, &files));
    begin_with(&world, NULL, true);
    struct client *kept = client_dial(world.port);
    client_say(kept, "GET /kept HTTP/1.1\r\nHost: x\r\n\r\n");
    world_wait_count(&world.served, 1);
    struct client *asks = client_dial_silently("127.0.2.1", world.port);
    client_read_on(asks);
    client_say(asks, "GET /later HTTP/1.1\r\n" END);
    world_wait_count(&world.later, 1);
    for (guint i = 0; i < G_N_ELEMENTS(crowd); i++)
        crowd[i] = dial_in_crowd(&world, i + 1);
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        others[i] = client_dial(world.port);
        client_say(others[i], "GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    world_wait_count(&world.served, 2 + G_N_ELEMENTS(others));
    while (count_over(crowd, G_N_ELEMENTS(crowd)) < G_N_ELEMENTS(others))
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(count_over(crowd, G_N_ELEMENTS(crowd) / 2), ==, G_N_ELEMENTS(others));
    client_say(kept, "GET /again HTTP/1.1\r\n" END); /* of an address with few */
    world_wait(&kept->over);
    g_assert_nonnull(strstr(kept->said->str, "GET /again"));
    g_assert_false(asks->over);
    answer_text(world.kept, 200, "at last");
    world_wait(&asks->over);
    assert_answer(asks->said->str, "200", "at last");
    g_assert_cmpuint(count_over(crowd, G_N_ELEMENTS(crowd)), ==, G_N_ELEMENTS(others));
    end(&world);
    for (guint i = 0; i < G_N_ELEMENTS(crowd); i++)
        client_free(crowd[i]);
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        client_free(others[i]);
    client_free(kept);
    client_free(asks);
}

/* Who asked is gone before the answer, or the server is. */
static void test_gone(void)
{
    struct world world;
    begin(&world);
    struct client *client = client_dial(world.port);
    client_say(client, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    world_wait_count(&world.later, 1);
    client_free(client);
    world_pause(50);
    answer_text(world.kept, 200, "too late");

    client = client_dial(world.port);
    client_say(client, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    world_wait_count(&world.later, 2);
    end(&world);
    world_wait(&client->over);
    answer_text(world.kept, 200, "too late");
    client_free(client);
}

static GTlsCertificate *make_certificate(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("fettle-http-XXXXXX", NULL);
    const char *const names[] = {"ca.crt", "ca.key", "crt", "key"};
    char *paths[G_N_ELEMENTS(names)];
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        paths[i] = g_build_filename(folder, names[i], NULL);
    g_assert_true(certs_make_ca(paths[0], paths[1], CLUSTER, &error) &&
                  certs_make_node(paths[0], paths[1], CLUSTER, NODE_A, paths[2], paths[3], &error));
    GTlsCertificate *made = g_tls_certificate_new_from_files(paths[2], paths[3], &error);
    g_assert_no_error(error);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_unlink(paths[i]);
        g_free(paths[i]);
    }
    g_rmdir(folder);
    return made;
}

static gboolean trust_cb(GTlsConnection *connection, GTlsCertificate *certificate,
                         GTlsCertificateFlags flags, gpointer data)
{
    return TRUE;
}

static void shaken_cb(GObject *object, GAsyncResult *result, gpointer done)
{
    g_autoptr(GError) error = NULL;
    g_tls_connection_handshake_finish(G_TLS_CONNECTION(object), result, &error);
    g_assert_no_error(error);
    *(bool *)done = true;
}

static void got_cb(GObject *object, GAsyncResult *result, gpointer said)
{
    *(GBytes **)said = g_input_stream_read_bytes_finish(G_INPUT_STREAM(object), result, NULL);
}

/* Who speaks TLS is served; who does not, or stops in the middle of it, is not, and holds up
 * nobody. */
static void test_tls(void)
{
    static const char request[] = "GET /secret HTTP/1.1\r\n" END;
    struct world world;
    g_autoptr(GTlsCertificate) certificate = make_certificate();
    begin_with(&world, certificate, false);
    struct client *silent = client_dial(world.port);
    client_say(silent, "\x16\x03\x01");
    g_autofree char *plain = ask(&world, request);
    g_assert_null(strstr(plain, "200"));

    struct client *client = client_dial_silently("127.0.0.1", world.port);
    g_autoptr(GIOStream) stream =
        g_tls_client_connection_new(G_IO_STREAM(client->connection), NULL, NULL);
    bool shaken = false;
    GBytes *said = NULL;
    g_signal_connect(stream, "accept-certificate", G_CALLBACK(trust_cb), NULL);
    g_tls_connection_handshake_async(G_TLS_CONNECTION(stream), G_PRIORITY_DEFAULT, NULL, shaken_cb,
                                     &shaken);
    world_wait(&shaken);
    g_assert_true(g_output_stream_write_all(g_io_stream_get_output_stream(stream), request,
                                            strlen(request), NULL, NULL, NULL));
    g_input_stream_read_bytes_async(g_io_stream_get_input_stream(stream), 4096, G_PRIORITY_DEFAULT,
                                    NULL, got_cb, &said);
    while (!said)
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(g_str_has_prefix(g_bytes_get_data(said, NULL), "HTTP/1.1 200 "));
    g_bytes_unref(said);
    client->over = true;
    end(&world);
    client_free(client);
    client_free(silent);
}

static void test_bad_place(void)
{
    static const struct http_server_events events = {.serve = serve, .complain = NULL};
    struct world world;
    g_autoptr(GError) error = NULL;
    begin(&world);
    struct http_server_options options = {
        .address = "127.0.0.1", .port = world.port, .settings = "etc/apid.conf"};
    g_assert_null(http_server_new(&options, &events, &world, &error));
    assert_error(&error, ENVIRONMENT, "free the port, or change address and port in etc/apid.conf");
    options.address = "example";
    g_assert_null(http_server_new(&options, &events, &world, &error));
    assert_error(&error, WRONG_INPUT, "address \"example\" is no IP address");
    end(&world);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/http-server/request", test_request);
    g_test_add_func("/http-server/kept-alive", test_kept_alive);
    g_test_add_func("/http-server/kept-after-nothing", test_kept_after_nothing);
    g_test_add_func("/http-server/hung-up-between-requests", test_hung_up);
    g_test_add_func("/http-server/hung-up-unread", test_hung_up_unread);
    g_test_add_func("/http-server/refused", test_refused);
    g_test_add_func("/http-server/nonsense", test_nonsense);
    g_test_add_func("/http-server/endless-body", test_endless_body);
    g_test_add_func("/http-server/slow", test_slow);
    g_test_add_func("/http-server/stream-up", test_stream_up);
    g_test_add_func("/http-server/stream-up-gone", test_stream_up_gone);
    g_test_add_func("/http-server/stream-refused", test_stream_refused);
    g_test_add_func("/http-server/stream-down", test_stream_down);
    g_test_add_func("/http-server/stream-down-fails", test_stream_down_fails);
    g_test_add_func("/http-server/stream-down-in-chunks", test_stream_down_in_chunks);
    g_test_add_func("/http-server/stream-down-gone", test_stream_down_gone);
    g_test_add_func("/http-server/many", test_many);
    g_test_add_func("/http-server/full", test_full);
    g_test_add_func("/http-server/gone", test_gone);
    g_test_add_func("/http-server/tls", test_tls);
    g_test_add_func("/http-server/bad-place", test_bad_place);
    return g_test_run();
}
