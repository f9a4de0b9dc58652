/*
 * Frames between the lab's library and its supervisor, good and bad; needs no root.
 */
#include "base/error.h"
#include "base/limits.h"
#include "lab/wire.h"
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What wire_receive() makes of these bytes when the other side closes after them. */
static json_t *receive(const char *bytes, size_t len, GError **error)
{
    int ends[2];
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), ==, 0);
    g_assert_cmpint(write(ends[0], bytes, len), ==, (int)len);
    g_assert_cmpint(shutdown(ends[0], SHUT_WR), ==, 0);
    json_t *document = wire_receive(ends[1], error);
    close(ends[0]);
    close(ends[1]);
    return document;
}

static void check_refused(const char *bytes, enum fettle_error code, const char *part)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(receive(bytes, strlen(bytes), &error));
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_assert_nonnull(strstr(error->message, part));
}

static void test_bad_frames(void)
{
    g_autofree char *large = g_strnfill(LIMIT_LAB_FRAME_BYTES + 1, ' ');
    check_refused("", FETTLE_ERROR_PROTOCOL, "the connection ended before its frame did");
    check_refused("{\"do\":", FETTLE_ERROR_PROTOCOL, "the connection ended before its frame did");
    check_refused("{\"do\":\x03", FETTLE_ERROR_PROTOCOL, "");
    check_refused("{} {}\x03", FETTLE_ERROR_PROTOCOL, "");
    check_refused(large, FETTLE_ERROR_LIMIT, "a frame has more than 65536 bytes");
}

static void test_round_trip(void)
{
    int ends[2];
    json_autoptr sent = json_make("{s:s, s:b}", "do", "power", "on", false);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), ==, 0);
    g_assert_true(wire_send(ends[0], sent, NULL));
    json_autoptr received = wire_receive(ends[1], NULL);
    g_assert_true(json_equal(sent, received));
    close(ends[1]);
    g_autoptr(GError) error = NULL;
    g_assert_false(wire_send(ends[0], sent, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    close(ends[0]);
}

struct server {
    int listening;
    const char *answer;
};

static gpointer answer_once(gpointer data)
{
    const struct server *server = data;
    int connection = accept(server->listening, NULL, NULL);
    json_autoptr command = wire_receive(connection, NULL);
    if (write(connection, server->answer, strlen(server->answer)) < 0)
        g_test_message("the caller is gone");
    close(connection);
    return NULL;
}

/* What wire_call() makes of an answer. */
static json_t *call(const char *answer, GError **error)
{
    g_autofree char *folder = g_dir_make_tmp("fl-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "s", NULL);
    struct server server = {wire_listen(path, NULL), answer};
    g_assert_cmpint(server.listening, >=, 0);
    GThread *thread = g_thread_new("server", answer_once, &server);
    json_autoptr request = json_make("{s:s}", "do", "status");
    json_t *result = wire_call(path, request, error);
    g_thread_join(thread);
    close(server.listening);
    g_unlink(path);
    g_rmdir(folder);
    return result;
}

static void test_answers(void)
{
    g_autoptr(GError) error = NULL;
    json_autoptr good = call("{\"result\":[17]}\x03", &error);
    g_assert_no_error(error);
    g_assert_cmpint((int)json_integer_value(json_array_get(good, 0)), ==, 17);

    g_assert_null(call("{\"error\":[\"unknown_entity\",\"no node9\"]}\x03", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_assert_cmpstr(error->message, ==, "no node9");
    g_clear_error(&error);

    g_assert_null(call("{}\x03", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PROTOCOL);
    g_clear_error(&error);

    g_assert_null(call("", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PROTOCOL);
}

static void test_nobody_listens(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *long_path = g_strnfill(200, 'x');
    json_autoptr request = json_make("{s:s}", "do", "status");
    g_assert_null(wire_call("/nonexistent/lab.sock", request, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_nonnull(strstr(error->message, "the lab's supervisor does not run"));
    g_clear_error(&error);
    g_assert_null(wire_call(long_path, request, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_clear_error(&error);
    g_assert_cmpint(wire_listen("/nonexistent/lab.sock", &error), ==, -1);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lab/wire/bad-frames", test_bad_frames);
    g_test_add_func("/lab/wire/round-trip", test_round_trip);
    g_test_add_func("/lab/wire/answers", test_answers);
    g_test_add_func("/lab/wire/nobody-listens", test_nobody_listens);
    return g_test_run();
}
