/*
 * Tests of io/qmp.h against a server that says what each test wants: answers, events, silence, and
 * rubbish.
 */
#include "io/qmp.h"

#include "world.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/loop.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define GREETING "{\"QMP\":{\"version\":{},\"capabilities\":[\"oob\"]}}\r\n"
#define CAPABLE "<qmp_capabilities", ">{\"return\":{},\"id\":1}\r\n"
#define ANSWER_MS 60000 /* of what is to come, on a machine with much else to do */

/* A server of one connection, in a thread: ">text" sends, "<text" reads a line and expects text in
 * it, "." closes, "Z" sends a line that is too long. At the end it waits for the client to close.
 */
struct server {
    char *path;
    int listener;
    const char *const *script;
    GThread *thread;
};

static void server_send(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        text += sent;
        len -= (size_t)sent;
    }
}

static void server_expect(int fd, const char *text)
{
    GString *line = g_string_new(NULL);
    char c = 0;
    while (c != '\n' && read(fd, &c, 1) == 1)
        g_string_append_c(line, c);
    if (strstr(line->str, text) == NULL)
        g_error("the client sent %s instead of %s", line->str, text);
    g_string_free(line, TRUE);
}

static gpointer server_run(gpointer data)
{
    struct server *server = data;
    int fd = accept(server->listener, NULL, NULL);
    for (guint i = 0; server->script[i] != NULL; i++) {
        const char *step = server->script[i];
        g_autofree char *much = step[0] == 'Z' ? g_strnfill(LIMIT_QMP_LINE_BYTES + 2, ' ') : NULL;
        if (much != NULL)
            server_send(fd, much, strlen(much));
        else if (step[0] == '>')
            server_send(fd, step + 1, strlen(step + 1));
        else if (step[0] == '<')
            server_expect(fd, step + 1);
        else
            shutdown(fd, SHUT_RDWR);
    }
    char c;
    while (read(fd, &c, 1) == 1)
        ;
    close(fd);
    return NULL;
}

static struct server *server_new(const char *const *script)
{
    char folder[] = "/tmp/fettle-qmp-XXXXXX";
    g_assert_nonnull(g_mkdtemp(folder));
    struct server *server = g_new0(struct server, 1);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    server->path = g_build_filename(folder, "qmp.sock", NULL);
    server->script = script;
    g_strlcpy(address.sun_path, server->path, sizeof address.sun_path);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(server->listener, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(server->listener, 1), ==, 0);
    server->thread = g_thread_new("qmp-server", server_run, server);
    return server;
}

static void server_free(struct server *server)
{
    g_autofree char *folder = g_path_get_dirname(server->path);
    g_thread_join(server->thread);
    close(server->listener);
    g_unlink(server->path);
    g_rmdir(folder);
    g_free(server->path);
    g_free(server);
}

/* --- the client's side --- */

static GString *events;
static guint closings;
static char *closed_why;

static void on_event(const char *name, const json_t *data, void *user)
{
    g_autofree char *text = json_to_text(data);
    g_string_append_printf(events, "%s%s ", name, text);
}

static void on_closed(const GError *why, void *user)
{
    closings++;
    g_free(closed_why);
    closed_why = g_strdup(why->message);
}

static const struct qmp_events watch = {on_event, on_closed, NULL};

static struct qmp *connect_to(const struct server *server)
{
    g_autoptr(GError) error = NULL;
    struct qmp *qmp = qmp_connect(server->path, ANSWER_MS, &watch, &error);
    g_assert_no_error(error);
    return qmp;
}

static void assert_no_connection(const char *const *script, guint timeout_ms,
                                 enum fettle_error code, const char *message)
{
    struct server *server = server_new(script);
    g_autoptr(GError) error = NULL;
    g_assert_null(qmp_connect(server->path, timeout_ms, &watch, &error));
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_autofree char *expected =
        g_strdup_printf("%s%s", message[0] == ':' ? server->path : "", message);
    g_assert_cmpstr(error->message, ==, expected);
    g_assert_cmpuint(closings, ==, 0);
    server_free(server);
}

#define SCRIPT(...) ((const char *const[]){__VA_ARGS__, NULL})

static void answers(void *unused)
{
    struct server *server = server_new(SCRIPT(
        ">" GREETING, "<\"enable\":[\"oob\"]", ">{\"return\":{},\"id\":1}\r\n", "<query-status",
        ">{\"event\":\"STOP\",\"timestamp\":{}}\r\n{\"event\":\"JOB\",\"data\":{\"device\":\"m0\"}}"
        "\r\n"
        "{\"return\":{\"status\":\"paused\"},\"id\":2}\r\n",
        "<\"exec-oob\":\"yank\"", ">{\"return\":{},\"id\":3}\r\n", "<\"arguments\":{\"a\":1}",
        ">{\"error\":{\"class\":\"GenericError\",\"desc\":\"no way\"},\"id\":4}\r\n",
        "<block-job-cancel",
        ">{\"error\":{\"class\":\"DeviceNotActive\",\"desc\":\"no such job\"},\"id\":5}\r\n"));
    struct qmp *qmp = connect_to(server);
    g_autoptr(GError) error = NULL;
    json_autoptr status = qmp_execute(qmp, "query-status", NULL, ANSWER_MS, &error);
    g_assert_cmpstr(json_string_value(json_object_get(status, "status")), ==, "paused");
    g_assert_cmpstr(events->str, ==, "STOP{} JOB{\"device\":\"m0\"} ");
    json_autoptr yanked = qmp_execute_oob(qmp, "yank", NULL, ANSWER_MS, &error);
    g_assert_nonnull(yanked);
    g_assert_null(qmp_execute(qmp, "stop", json_make("{s:i}", "a", 1), ANSWER_MS, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_HYPERVISOR);
    g_assert_cmpstr(error->message, ==, "stop: no way");
    g_clear_error(&error);
    g_assert_null(qmp_execute(qmp, "block-job-cancel", NULL, ANSWER_MS, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_assert_cmpstr(error->message, ==, "block-job-cancel: no such job");
    qmp_close(qmp);
    g_assert_cmpuint(closings, ==, 0);
    server_free(server);
}

static void timeouts(void *unused)
{
    struct server *server =
        server_new(SCRIPT(">" GREETING, CAPABLE, "<\"stop\"", "<query-status",
                          ">{\"return\":{},\"id\":2}\r\n{\"return\":{\"x\":1},\"id\":3}\r\n"));
    struct qmp *qmp = connect_to(server);
    g_autoptr(GError) error = NULL;
    g_assert_null(qmp_execute(qmp, "stop", NULL, 100, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TIMEOUT);
    g_assert_cmpstr(error->message, ==, "stop: no answer in time");
    g_clear_error(&error);
    /* Its late answer is nobody's, and the connection is as good as before. */
    json_autoptr status = qmp_execute(qmp, "query-status", NULL, ANSWER_MS, &error);
    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(json_object_get(status, "x")), ==, 1);
    qmp_close(qmp);
    server_free(server);
}

static void no_connection(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(qmp_connect("/nowhere/qmp.sock", 1000, &watch, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    g_assert_cmpstr(error->message, ==, "/nowhere/qmp.sock: No such file or directory");
    g_clear_error(&error);
    g_autofree char *name = g_strnfill(120, 'x');
    g_autofree char *expected = g_strdup_printf("socket name %s is too long", name);
    g_assert_null(qmp_connect(name, 1000, &watch, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, expected);

    assert_no_connection(SCRIPT(">"), 100, FETTLE_ERROR_TIMEOUT,
                         ": QMP greeting: no answer in time");
    assert_no_connection(SCRIPT("."), ANSWER_MS, FETTLE_ERROR_UNREACHABLE,
                         ": QMP greeting: QMP connection was closed by QEMU");
    assert_no_connection(
        SCRIPT(">SSH-2.0\n"), ANSWER_MS, FETTLE_ERROR_PROTOCOL,
        ": QMP greeting: QMP: broken JSON at byte 3 (line 1): '[' or '{' expected near 'SSH'");
    assert_no_connection(SCRIPT(">{\"return\":{}}\n"), ANSWER_MS, FETTLE_ERROR_PROTOCOL,
                         ": QMP greeting: QMP: the first line is no greeting");
    assert_no_connection(SCRIPT(">" GREETING, "<qmp_cap", "."), ANSWER_MS, FETTLE_ERROR_UNREACHABLE,
                         "qmp_capabilities: QMP connection was closed by QEMU");
    assert_no_connection(
        SCRIPT(">" GREETING, "<qmp_cap",
               ">{\"error\":{\"class\":\"GenericError\",\"desc\":\"no oob\"},\"id\":1}\n"),
        ANSWER_MS, FETTLE_ERROR_HYPERVISOR, "qmp_capabilities: no oob");
}

/* A connected client meets `rubbish` while a command is under way. */
static void assert_closes(const char *rubbish, enum fettle_error code, const char *message)
{
    struct server *server = server_new(SCRIPT(">" GREETING, CAPABLE, "<query-status", rubbish));
    struct qmp *qmp = connect_to(server);
    g_autoptr(GError) error = NULL;
    closings = 0;
    g_assert_null(qmp_execute(qmp, "query-status", NULL, ANSWER_MS, &error));
    g_autofree char *expected = g_strconcat("query-status: ", message, NULL);
    g_assert_cmpstr(error->message, ==, expected);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_assert_cmpuint(closings, ==, 1);
    g_assert_cmpstr(closed_why, ==, message);
    g_assert_false(qmp_is_open(qmp));
    g_clear_error(&error);
    g_assert_null(qmp_execute(qmp, "stop", NULL, ANSWER_MS, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    g_assert_cmpstr(error->message, ==, "stop: no QMP connection");
    qmp_close(qmp);
    g_assert_cmpuint(closings, ==, 1);
    closings = 0;
    server_free(server);
}

static void rubbish(void *unused)
{
    g_autofree char *too_long =
        g_strdup_printf("QMP: a line of more than %zu bytes", (size_t)LIMIT_QMP_LINE_BYTES);
    assert_closes(".", FETTLE_ERROR_UNREACHABLE, "QMP connection was closed by QEMU");
    assert_closes(">{\"return\":{},\"id\":99}\n", FETTLE_ERROR_PROTOCOL,
                  "QMP: an answer to command 99, which was never sent");
    assert_closes(">{\"return\":{},\"id\":\"x\"}\n", FETTLE_ERROR_PROTOCOL,
                  "QMP: an answer without an id");
    assert_closes(">{\"error\":{\"desc\":\"JSON parse error\"}}\n", FETTLE_ERROR_PROTOCOL,
                  "QMP: an answer without an id: JSON parse error");
    assert_closes(">{}\n", FETTLE_ERROR_PROTOCOL,
                  "QMP: a message that is neither an answer nor an event");
    assert_closes(">[]\n", FETTLE_ERROR_PROTOCOL, "QMP: a message that is no object");
    assert_closes("Z", FETTLE_ERROR_LIMIT, too_long);
}

/* --- killed and closed while waiting --- */

static struct qmp *shared;
static bool ended;
static GError *ended_why;

static void waiting_task(void *unused)
{
    g_assert_null(qmp_execute(shared, "query-status", NULL, 60000, &ended_why));
    ended = true;
}

static void closed_while_waiting(void *unused)
{
    struct server *server = server_new(SCRIPT(">" GREETING, CAPABLE, "<query-status"));
    shared = connect_to(server);
    ended = false;
    task_spawn(NULL, waiting_task, NULL);
    loop_sleep(50);
    g_assert_false(ended);
    qmp_close(shared);
    while (!ended)
        loop_sleep(5);
    g_assert_error(ended_why, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    g_assert_cmpstr(ended_why->message, ==, "query-status: QMP connection was closed");
    g_clear_error(&ended_why);
    server_free(server);
}

static void killed_while_waiting(void *unused)
{
    struct server *server = server_new(SCRIPT(">" GREETING, CAPABLE, "<query-status", "<next",
                                              ">{\"return\":{},\"id\":2}\n"
                                              "{\"return\":{},\"id\":3}\n"));
    struct task_group *group = task_group_new();
    g_autoptr(GError) error = NULL;
    shared = connect_to(server);
    ended = false;
    task_spawn(group, waiting_task, NULL);
    loop_sleep(50);
    task_group_kill(group);
    while (!ended)
        loop_sleep(5);
    g_assert_error(ended_why, FETTLE_ERROR, FETTLE_ERROR_KILLED);
    g_clear_error(&ended_why);
    json_autoptr answer =
        qmp_execute(shared, "next", NULL, ANSWER_MS, &error); /* the late answer harms nobody */
    g_assert_nonnull(answer);
    qmp_close(shared);
    task_group_unref(group);
    server_free(server);
}

/* --- running --- */

static void in_task(gconstpointer fn)
{
    events = g_string_new(NULL);
    closings = 0;
    world_in_task((void (*)(void *))fn);
    g_string_free(events, TRUE);
    g_clear_pointer(&closed_why, g_free);
}

int main(int argc, char **argv)
{
    loop_init();
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/qmp/answers-events-errors#SAF-15", answers, in_task);
    g_test_add_data_func("/qmp/timeout-and-late-answer#SAF-15", timeouts, in_task);
    g_test_add_data_func("/qmp/no-connection", no_connection, in_task);
    g_test_add_data_func("/qmp/rubbish-closes-it", rubbish, in_task);
    g_test_add_data_func("/qmp/closed-while-waiting", closed_while_waiting, in_task);
    g_test_add_data_func("/qmp/killed-while-waiting", killed_while_waiting, in_task);
    return g_test_run();
}
