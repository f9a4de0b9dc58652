/* Requests to receivers outside, over real sockets: whose certificate is believed, and for which
 * name; a host that is this one; one that does not answer. io/http/post_client.c. What receivers do
 * besides is e2e's. */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/task.h"
#include "io/http/post_client.h"
#include "io/loop.h"

#define NAME "receiver.example"
#define TIMEOUT_MS 30000
#define RUN_MS 120000

static char *folder, *pem;
static GTlsCertificate *certificate; /* stays: a thread may serve with it to the end */
static guint16 port;

/* --- a receiver, in threads of its own --- */

static gboolean answer(GThreadedSocketService *service, GSocketConnection *connection,
                       GObject *source, void *data)
{
    static const char said[] = "HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 204 Taken\r\nX: y\r\n\r\n";
    char text[4096];
    g_autoptr(GIOStream) tls =
        g_tls_server_connection_new(G_IO_STREAM(connection), certificate, NULL);
    if (tls &&
        g_input_stream_read(g_io_stream_get_input_stream(tls), text, sizeof text, NULL, NULL) > 0)
        g_output_stream_write_all(g_io_stream_get_output_stream(tls), said, strlen(said), NULL,
                                  NULL, NULL);
    if (tls)
        g_io_stream_close(tls, NULL, NULL);
    return TRUE;
}

static void make_certificate(void)
{
    g_autoptr(GError) error = NULL;
    folder = g_dir_make_tmp("fettle-post-XXXXXX", NULL);
    pem = g_build_filename(folder, "both.pem", NULL);
    g_autofree char *crt = g_build_filename(folder, "crt.pem", NULL);
    const char *const words[] = {"openssl",
                                 "req",
                                 "-x509",
                                 "-newkey",
                                 "ec",
                                 "-pkeyopt",
                                 "ec_paramgen_curve:prime256v1",
                                 "-nodes",
                                 "-days",
                                 "30",
                                 "-subj",
                                 "/CN=" NAME,
                                 "-addext",
                                 "subjectAltName=DNS:" NAME,
                                 "-keyout",
                                 pem,
                                 "-out",
                                 crt,
                                 NULL};
    g_assert_true(g_spawn_sync(NULL, (char **)words, NULL,
                               G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, NULL,
                               NULL, NULL, &error));
    g_assert_no_error(error);
    certificate = g_tls_certificate_new_from_files(crt, pem, &error);
    g_assert_no_error(error);
    g_unlink(pem);
    g_rename(crt, pem); /* whom a client may believe */
}

/* --- one request --- */

struct asking {
    struct webhook_out *out;
    const char *host;
    bool may_be_here, done, connected;
    struct webhook_said said;
};

static void ask_task(void *data)
{
    struct asking *asking = data;
    const struct webhook_url url = {.tls = true,
                                    .host = (char *)asking->host,
                                    .port = port,
                                    .authority = (char *)asking->host,
                                    .target = (char *)"/"};
    const struct webhook_post post = {.url = &url,
                                      .address = "127.0.0.1",
                                      .may_be_here = asking->may_be_here,
                                      .connect_ms = TIMEOUT_MS,
                                      .signature = "t=1,v1=0",
                                      .body = "{}"};
    asking->connected = asking->out->post(asking->out, &post, TIMEOUT_MS, &asking->said);
    asking->done = true;
}

static char *ask(bool believed, const char *host, bool may_be_here)
{
    g_autoptr(GTlsDatabase) database = NULL;
    if (believed)
        database = g_tls_file_database_new(pem, NULL);
    struct task_group *group = task_group_new();
    struct asking asking = {
        .out = post_client_new(database), .host = host, .may_be_here = may_be_here};
    task_spawn(group, ask_task, &asking);
    g_assert_true(loop_run_until(&asking.done, RUN_MS));
    task_group_unref(group);
    post_client_free(asking.out);
    g_assert_cmpint(asking.connected, ==, may_be_here);
    char *text = g_strdup_printf("%u %s", asking.said.status, asking.said.text);
    g_free(asking.said.text);
    return text;
}

static void test_tls(void)
{
    g_autofree char *good = ask(true, NAME, true);
    g_autofree char *other_name = ask(true, "other.example", true);
    g_autofree char *unknown = ask(false, NAME, true);
    g_autofree char *here = ask(true, NAME, false);
    g_assert_cmpstr(good, ==, "204 HTTP 204 Taken");
    g_assert_true(g_str_has_prefix(other_name, "0 TLS: "));
    g_assert_true(g_str_has_prefix(unknown, "0 TLS: "));
    g_assert_cmpstr(here, ==, "0 the address 127.0.0.1 is not allowed for webhooks");
}

/* --- an address that does not answer --- */

static void full_task(void *data)
{
    struct asking *asking = data;
    const struct webhook_url url = {
        .host = (char *)NAME, .port = port, .authority = (char *)NAME, .target = (char *)"/"};
    const struct webhook_post post = {.url = &url,
                                      .address = "127.0.0.1",
                                      .may_be_here = true,
                                      .connect_ms = 300,
                                      .signature = "t=1,v1=0",
                                      .body = "{}"};
    asking->connected = asking->out->post(asking->out, &post, TIMEOUT_MS, &asking->said);
    asking->done = true;
}

/* Of one whose queue is full nobody hears, so there is time for another one. */
static void test_no_connection(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), waiting[4];
    guint16 before = port;
    g_assert_cmpint(bind(listener, (struct sockaddr *)&at, sizeof at), ==, 0);
    g_assert_cmpint(listen(listener, 0), ==, 0);
    g_assert_cmpint(getsockname(listener, (struct sockaddr *)&at, &size), ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(waiting); i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(waiting[i], (struct sockaddr *)&at, sizeof at);
    }
    port = ntohs(at.sin_port);
    struct task_group *group = task_group_new();
    struct asking asking = {.out = post_client_new(NULL)};
    task_spawn(group, full_task, &asking);
    g_assert_true(loop_run_until(&asking.done, RUN_MS));
    g_assert_false(asking.connected);
    g_assert_cmpuint(asking.said.status, ==, 0);
    g_assert_cmpstr(asking.said.text, ==, "127.0.0.1: no connection within 300 ms");
    g_free(asking.said.text);
    task_group_unref(group);
    post_client_free(asking.out);
    for (size_t i = 0; i < G_N_ELEMENTS(waiting); i++)
        close(waiting[i]);
    close(listener);
    port = before;
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    make_certificate();
    g_autoptr(GSocketService) service = g_threaded_socket_service_new(4);
    g_autoptr(GInetAddress) address = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) any = g_inet_socket_address_new(address, 0);
    g_autoptr(GSocketAddress) at = NULL;
    g_assert_true(g_socket_listener_add_address(G_SOCKET_LISTENER(service), any,
                                                G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL,
                                                &at, NULL));
    port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(at));
    g_signal_connect(service, "run", G_CALLBACK(answer), NULL);
    g_socket_service_start(service);
    g_test_add_func("/post_client/tls", test_tls);
    g_test_add_func("/post_client/no-connection", test_no_connection);
    int code = g_test_run();
    g_unlink(pem);
    g_rmdir(folder);
    g_free(pem);
    g_free(folder);
    fflush(stdout);
    _exit(code); /* the receiver's threads are there to the end: who looks for leaks cannot */
}
