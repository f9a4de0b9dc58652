/*
 * A subscriber of the change stream that asks and does not read, at a real fettle-wconfd: nobody
 * waits for it. FETTLE_WCONFD names the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "io/net/unix_socket.h"
#include "proto/rpc.h"
#include "wconfd_client.h"

#define FROM "\"from\":\"" NODE "/luxid\""
#define FILLERS 400
#define SNAPSHOTS 100
#define FRAME_END '\x03'

/* --- a connection by hand --- */

struct deaf {
    int fd;
    GString *read; /* not cut into frames yet */
};

static bool deaf_send(const struct deaf *deaf, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(deaf->fd, text, len, MSG_NOSIGNAL);
        if (sent < 0)
            return false;
        text += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* One frame, without its end; free with g_free(). */
static char *deaf_read(struct deaf *deaf)
{
    static char buffer[KIB(64)];
    const char *end;
    while (!(end = memchr(deaf->read->str, FRAME_END, deaf->read->len))) {
        ssize_t got = recv(deaf->fd, buffer, sizeof buffer, 0);
        g_assert_cmpint(got, >, 0);
        g_string_append_len(deaf->read, buffer, got);
    }
    gssize len = end - deaf->read->str;
    char *frame = g_strndup(deaf->read->str, (gsize)len);
    g_string_erase(deaf->read, 0, len + 1);
    return frame;
}

static void deaf_init(struct deaf *deaf, const struct host *host)
{
    static const char hello[] = "{\"hello\":{\"versions\":[1,1]," FROM "}}\x03";
    g_autofree char *path = host_path(host, "run/wconfd.sock");
    g_autoptr(GError) error = NULL;
    *deaf = (struct deaf){unix_connect(path, &error), g_string_new(NULL)};
    g_assert_no_error(error);
    fcntl(deaf->fd, F_SETFL, 0); /* it may block */
    g_assert_true(deaf_send(deaf, hello, strlen(hello)));
    g_autofree char *welcome = deaf_read(deaf);
    g_assert_nonnull(strstr(welcome, "\"version\":1"));
}

/* False: the connection has ended. */
static bool deaf_ask(const struct deaf *deaf, guint id, const json_t *known, json_int_t serial,
                     guint wait_ms)
{
    json_int_t history = json_integer_value(json_object_get(known, "history"));
    json_int_t epoch = json_integer_value(json_object_get(known, "epoch"));
    g_autofree char *text = g_strdup_printf(
        "{\"v\":1,\"id\":%u,\"history\":%lld,\"epoch\":%lld," FROM ",\"method\":\"wait_changes\","
        "\"args\":{\"history\":%lld,\"serial\":%lld,\"wait_ms\":%u}}\x03",
        id, history, epoch, history, serial, wait_ms);
    return deaf_send(deaf, text, strlen(text));
}

static guint id_of(const char *answer)
{
    json_autoptr json = json_loads(answer, 0, NULL);
    g_assert_nonnull(json_object_get(json, "result"));
    return (guint)json_integer_value(json_object_get(json, "id"));
}

/* --- the test --- */

static char *whole(struct client *client)
{
    return client_ask(client, "wait_changes {\"serial\":0}");
}

static void expect_tags(struct client *client, guint wanted)
{
    g_autofree char *text = whole(client);
    g_auto(GStrv) parts = g_strsplit(text, "\"kind\":\"tag\"", -1);
    g_assert_cmpuint(g_strv_length(parts) - 1, ==, wanted);
}

/* What was asked of a subscription that had not been looked at, in any order, each once. */
static void read_all(struct deaf *deaf, guint count, const char *news)
{
    g_autofree bool *seen = g_new0(bool, count + 1);
    for (guint i = 0; i < count; i++) {
        g_autofree char *answer = deaf_read(deaf);
        guint id = id_of(answer);
        g_assert_true(id >= 1 && id <= count && !seen[id]);
        seen[id] = true;
        if (id == 1)
            g_assert_nonnull(strstr(answer, news));
    }
}

static void test_deaf_subscriber(void)
{
    struct host host;
    struct client writer, reader;
    struct deaf deaf;
    host_init(&host, true);
    host_bootstrap(&host);
    daemon_start(&host);
    client_start(&writer, &host, ROLE_JOB, 1);
    client_start(&reader, &host, ROLE_JOB, 2);
    assert_answer(&writer, "!tags filler 400", "done");
    g_autofree char *text = whole(&writer);
    json_autoptr known = json_loads(text, 0, NULL);
    json_int_t serial = json_integer_value(json_object_get(known, "serial"));

    /* One subscription, and more answers than a socket takes. */
    deaf_init(&deaf, &host);
    g_assert_true(deaf_ask(&deaf, 1, known, serial, 60000));
    for (guint i = 0; i < SNAPSHOTS; i++)
        g_assert_true(deaf_ask(&deaf, i + 2, known, 0, 0));
    assert_answer(&writer, "!tags news 100", "done");
    g_autofree char *line =
        g_strdup_printf("wait_changes {\"history\":%lld,\"serial\":%lld,\"wait_ms\":60000}",
                        json_integer_value(json_object_get(known, "history")), serial);
    assert_answer(&reader, line, "*/news-99\"*");
    int there = 0;
    g_assert_cmpint(ioctl(deaf.fd, FIONREAD, &there), ==, 0);
    g_assert_cmpuint((size_t)there, <, SNAPSHOTS * strlen(text)); /* the rest waits in wconfd */

    /* It reads at last: nothing is missing, and it catches up. */
    read_all(&deaf, SNAPSHOTS + 1, "/news-0\"");
    g_assert_true(deaf_ask(&deaf, 500, known, serial, 0));
    g_autofree char *later = deaf_read(&deaf);
    g_assert_cmpuint(id_of(later), ==, 500);
    g_assert_nonnull(strstr(later, "/news-99\""));

    /* Never: it is cut off, and commits go on meanwhile and afterwards. */
    client_tell(&writer, "!tags late 50");
    guint asked = 0;
    while (deaf_ask(&deaf, 1000 + asked, known, 0, 0))
        asked++;
    g_assert_true(errno == EPIPE || errno == ECONNRESET);
    g_assert_cmpuint(asked * strlen(text), >, LIMIT_CONNECTION_OUT_BYTES / 2);
    g_autofree char *done = client_hear(&writer);
    g_assert_cmpstr(done, ==, "done");
    assert_answer(&writer, "!tags end 1", "done");
    expect_tags(&reader, FILLERS + 100 + 50 + 1);
    close(deaf.fd);
    g_string_free(deaf.read, TRUE);
    client_clear(&writer);
    client_clear(&reader);
    g_assert_cmpint(daemon_end(&host, SIGTERM), ==, 0);
    host_clear(&host);
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "--client"))
        return client_main(argv + 2);
    g_test_init(&argc, &argv, NULL);
    g_assert_nonnull(g_getenv("FETTLE_WCONFD"));
    g_test_add_func("/wconfd-stream/deaf-subscriber#WCF-04", test_deaf_subscriber);
    return g_test_run();
}
