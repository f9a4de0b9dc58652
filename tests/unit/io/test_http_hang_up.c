/* Who goes from the HTTP server (io/http/http_server.h), with TLS and without, and says nothing of
 * it: his connection is let go of at once. Python's clients end TLS so, without its last word. */
#include "io/http/http_server.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "io/net/certs.h"

#include "client.h"
#include "world.h"

#define PATIENT_MS 600000u /* that the server lets go after, of who only is silent */
#define MANY (3 * LIMIT_HTTP_CONNECTIONS_ADDRESS + 8)
#define ANSWER "here you are"
#define REQUEST "GET /one HTTP/1.1\r\nHost: x\r\n\r\n"

static struct world {
    struct http_server *server;
    guint port, served;
    GTlsCertificate *certificate; /* NULL: no TLS */
} * world;

static void serve(struct http_exchange *exchange, void *data)
{
    struct http_answer *answer = http_answer_new(200);
    world->served++;
    http_answer_set_body(answer, "text/plain", g_strdup(ANSWER));
    http_exchange_answer(exchange, answer);
}

static void complain(const char *line, void *data)
{
    g_test_message("%s", line);
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

/* --- a client --- */

struct caller {
    struct client *client;
    GIOStream *stream; /* TLS over the client's, or that */
    bool read;
};

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

static void dial_plainly(struct caller *caller)
{
    caller->client = client_dial_silently("127.0.0.1", world->port);
    caller->stream = G_IO_STREAM(g_object_ref(caller->client->connection));
}

static void dial(struct caller *caller)
{
    bool shaken = false;
    dial_plainly(caller);
    if (!world->certificate)
        return;
    g_object_unref(caller->stream);
    caller->stream = g_initable_new(
        g_tls_backend_get_client_connection_type(g_tls_backend_get_default()), NULL, NULL,
        "base-io-stream", caller->client->connection, "database", NULL /* a large one */, NULL);
    g_signal_connect(caller->stream, "accept-certificate", G_CALLBACK(trust_cb), NULL);
    g_tls_connection_handshake_async(G_TLS_CONNECTION(caller->stream), G_PRIORITY_DEFAULT, NULL,
                                     shaken_cb, &shaken);
    world_wait(&shaken);
}

static void say(const struct caller *caller, const char *text)
{
    g_assert_true(g_output_stream_write_all(g_io_stream_get_output_stream(caller->stream), text,
                                            strlen(text), NULL, NULL, NULL));
}

static void read_cb(GObject *object, GAsyncResult *result, gpointer data)
{
    struct caller *caller = data;
    gssize got = g_input_stream_read_finish(G_INPUT_STREAM(object), result, NULL);
    g_assert_cmpint(got, >, 0);
    g_string_append_len(caller->client->said, caller->client->bytes, got);
    caller->read = true;
}

/* All of one answer, so that nothing is left unread, which would make a reset of an end. */
static void hear(struct caller *caller)
{
    struct client *client = caller->client;
    g_string_truncate(client->said, 0);
    while (!g_str_has_suffix(client->said->str, ANSWER)) {
        caller->read = false;
        g_input_stream_read_async(g_io_stream_get_input_stream(caller->stream), client->bytes,
                                  sizeof client->bytes, G_PRIORITY_DEFAULT, NULL, read_cb, caller);
        world_wait(&caller->read);
    }
    g_assert_true(g_str_has_prefix(client->said->str, "HTTP/1.1 200 "));
}

/* The socket alone is closed, so that TLS says nothing. */
static void go(const struct caller *caller, bool resets)
{
    const struct linger now = {.l_onoff = resets, .l_linger = 0};
    GSocket *socket = g_socket_connection_get_socket(caller->client->connection);
    g_assert_no_errno(setsockopt(g_socket_get_fd(socket), SOL_SOCKET, SO_LINGER, &now, sizeof now));
    g_assert_true(g_socket_close(socket, NULL));
    caller->client->over = true;
    g_object_unref(caller->stream);
    client_free(caller->client);
}

/* --- when it goes --- */

static void in_the_handshake(struct caller *caller)
{
    dial_plainly(caller);
    say(caller, "\x16\x03\x01");
}

static void in_the_headers(struct caller *caller)
{
    dial(caller);
    say(caller, "GET /one HTTP/1.1\r\nHo");
}

static void in_the_body(struct caller *caller)
{
    dial(caller);
    say(caller, "POST /one HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab");
}

static void with_an_unread_answer(struct caller *caller)
{
    dial(caller);
    say(caller, REQUEST);
    world_wait_count(&world->served, world->served + 1);
}

static void after_an_answer(struct caller *caller)
{
    dial(caller);
    say(caller, REQUEST);
    hear(caller);
}

static void after_two_answers(struct caller *caller)
{
    after_an_answer(caller);
    say(caller, REQUEST);
    hear(caller);
}

/* --- the server --- */

static guint descriptors(void)
{
    g_autoptr(GDir) folder = g_dir_open("/proc/self/fd", 0, NULL);
    guint count = 0;
    while (g_dir_read_name(folder))
        count++;
    return count;
}

/* As many files are open as before: the server's side is closed, too. */
static void wait_until_gone(guint before)
{
    for (guint i = 0; descriptors() > before; i++) {
        g_assert_cmpuint(i, <, 30000 / 5); /* much earlier than the server's own patience */
        world_pause(5);
    }
}

/* From files, by this process since it began. */
static guint64 bytes_read(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents("/proc/self/io", &text, NULL, NULL));
    g_assert_true(g_str_has_prefix(text, "rchar: "));
    return g_ascii_strtoull(text + strlen("rchar: "), NULL, 10);
}

static void call(void (*until)(struct caller *), bool resets)
{
    struct caller caller = {0};
    until(&caller);
    go(&caller, resets);
}

/* Nor does it read the authorities of the host for each, which are 200 KiB. */
static void run(bool tls)
{
    static const struct http_server_events events = {.serve = serve, .complain = complain};
    static const struct {
        const char *name;
        void (*until)(struct caller *caller);
    } rows[] = {
        {"before a word", dial_plainly},      {"in the handshake", in_the_handshake},
        {"after the handshake", dial},        {"in the headers", in_the_headers},
        {"in the body", in_the_body},         {"with an unread answer", with_an_unread_answer},
        {"after an answer", after_an_answer}, {"after two answers", after_two_answers}};
    g_autoptr(GError) error = NULL;
    g_autoptr(GTlsCertificate) certificate = tls ? make_certificate() : NULL;
    struct world the_world = {.port = world_free_port(), .certificate = certificate};
    const struct http_server_options options = {.address = "127.0.0.1",
                                                .port = the_world.port,
                                                .settings = "etc/apid.conf",
                                                .certificate = certificate,
                                                .headers_ms = PATIENT_MS,
                                                .silence_s = PATIENT_MS / 1000};
    world = &the_world;
    world->server = http_server_new(&options, &events, world, &error);
    g_assert_no_error(error);
    call(after_an_answer, false); /* whatever is opened once is open by now */
    world_pause(100);
    guint before = descriptors();
    for (guint row = 0; row < G_N_ELEMENTS(rows); row++)
        for (guint resets = 0; resets < 2; resets++) {
            g_test_message("%s, %s", rows[row].name, resets ? "reset" : "closed");
            call(rows[row].until, resets);
            wait_until_gone(before);
        }
    guint64 read_before = bytes_read();
    for (guint i = 0; i < MANY; i++)
        call(after_an_answer, false);
    g_assert_cmpuint(bytes_read() - read_before, <, MANY * KIB(100));
    wait_until_gone(before);
    http_server_free(world->server);
    for (guint i = 0; i < 20; i++) /* connections are let go of */
        g_main_context_iteration(NULL, FALSE);
}

static void test_plain(void)
{
    run(false);
}

static void test_tls(void)
{
    run(true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/http-hang-up/plain", test_plain);
    g_test_add_func("/http-hang-up/tls", test_tls);
    return g_test_run();
}
