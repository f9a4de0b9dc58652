/* Calls over Unix sockets: rpc_server.c, rpc_client.c, connection.c, channel.c. */
#include "world.h"

#include "helper/patience.h"
#include "io/net/rpc_client.h"
#include "io/net/rpc_server.h"
#include "io/net/unix_socket.h"
#include "proto/envelope.h"
#include "proto/frame.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000

/* A wconfd that answers cluster_status and keeps requests for later. */
struct fixture {
    struct node_paths *paths;
    struct rpc_server *server;
    struct rpc_client *client;
    GPtrArray *lines;
    GPtrArray *kept; /* struct rpc_request, not answered yet */
    guint handled;
    guint answer_bytes;
};

static json_t *status(struct fixture *fixture, guint64 serial)
{
    g_autofree char *padding = g_strnfill(fixture->answer_bytes, 'x');
    return json_make("{s:i, s:i, s:I, s:s, s:[s]}", "history", 1, "epoch", 2, "serial",
                     (json_int_t)serial, "master_node", NODE_A, "problems", padding);
}

static void handle(struct rpc_request *request, void *data)
{
    struct fixture *fixture = data;

    fixture->handled++;
    g_assert_cmpstr(request->from_node, ==, NODE_A);
    if (strcmp(request->name, "owner_gone") == 0 || strcmp(request->name, "free_locks") == 0)
        g_ptr_array_add(fixture->kept, request);
    else
        rpc_answer(request, status(fixture, request->stamp.epoch));
}

static void complain(const char *line, void *data)
{
    world_complain(line, ((struct fixture *)data)->lines);
}

static void start_server(struct fixture *fixture)
{
    g_autofree char *path = node_paths_socket(fixture->paths, ROLE_WCONFD);
    g_autoptr(GError) error = NULL;
    const struct rpc_server_options options = {path, ROLE_WCONFD, NODE_A, handle,
                                               NULL, complain,    fixture};

    fixture->server = rpc_server_new(&options, &error);
    g_assert_no_error(error);
}

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    fixture->paths = world_new(NODE_A);
    fixture->lines = g_ptr_array_new_with_free_func(g_free);
    fixture->kept = g_ptr_array_new();
    start_server(fixture);
    fixture->client = rpc_client_new(fixture->paths, NODE_A, ROLE_JOB);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    rpc_client_free(fixture->client);
    rpc_server_free(fixture->server);
    for (guint i = 0; i < fixture->kept->len; i++)
        rpc_answer(fixture->kept->pdata[i], NULL);
    world_pause(1);
    g_ptr_array_unref(fixture->kept);
    g_ptr_array_unref(fixture->lines);
    world_remove(fixture->paths);
}

static json_t *owner_args(void)
{
    return json_make("{s:{s:s, s:s}}", "owner", "job", "7", "livelock", "job-7-1");
}

static void call(struct fixture *fixture, const char *method, json_t *args, guint epoch,
                 struct answer *answer)
{
    const struct rpc_call call = {
        .to_node = NODE_LOCAL,
        .to_role = ROLE_WCONFD,
        .method = method,
        .args = args,
        .stamp = {1, epoch},
        .job = 7,
    };
    rpc_client_call(fixture->client, &call, answer_cb, answer);
}

static void test_many_calls(struct fixture *fixture, gconstpointer unused)
{
    enum { CALLS = 1000 };
    struct answer *answers = g_new0(struct answer, CALLS);

    for (guint i = 0; i < CALLS; i++)
        call(fixture, "cluster_status", json_object(), i, &answers[i]);
    for (guint i = 0; i < CALLS; i++) {
        world_wait(&answers[i].done);
        g_assert_no_error(answers[i].error);
        g_assert_cmpuint(answers[i].times, ==, 1);
        g_assert_cmpint(json_integer_value(json_object_get(answers[i].result, "serial")), ==, i);
        answer_clear(&answers[i]);
    }
    g_assert_cmpuint(rpc_server_connections(fixture->server), ==, 1);
    g_free(answers);
}

/* Answers come as they are given, not as they were asked. */
static void test_out_of_order(struct fixture *fixture, gconstpointer unused)
{
    struct answer slow = {0}, quick = {0};

    call(fixture, "free_locks", owner_args(), 1, &slow);
    call(fixture, "cluster_status", json_object(), 2, &quick);
    world_wait(&quick.done);
    g_assert_false(slow.done);
    g_assert_cmpuint(fixture->kept->len, ==, 1);
    const struct rpc_request *request = fixture->kept->pdata[0];
    g_assert_cmpuint(request->from_job, ==, 7);
    g_assert_cmpstr(request->from_role, ==, ROLE_JOB);
    g_assert_cmpuint(request->stamp.epoch, ==, 1);
    rpc_fail_new(g_ptr_array_steal_index(fixture->kept, 0), FETTLE_ERROR_LOCK_MISSING, "lock %s",
                 "x");
    world_wait(&slow.done);
    assert_error(&slow.error, LOCK_MISSING, "lock x");
    answer_clear(&slow);
    answer_clear(&quick);
}

static void test_refused(struct fixture *fixture, gconstpointer unused)
{
    struct answer unknown = {0}, forbidden = {0}, wrong = {0}, missing = {0};

    call(fixture, "no_such_method", json_object(), 1, &unknown);
    call(fixture, "owner_gone", owner_args(), 1, &forbidden);
    call(fixture, "wait_changes", json_make("{s:i, s:i}", "serial", 1, "wait_ms", 600001), 1,
         &wrong);
    call(fixture, "free_locks", json_make("{s:{s:s}}", "owner", "job", "7"), 1, &missing);
    world_wait(&missing.done);
    assert_error(&unknown.error, PROTOCOL, "wconfd has no method \"no_such_method\"");
    assert_error(&forbidden.error, PERMISSION, "role \"job\" may not call it");
    assert_error(&wrong.error, WRONG_INPUT, "wait_ms: must be");
    assert_error(&missing.error, WRONG_INPUT, "owner.livelock: is missing");
    g_assert_cmpuint(fixture->handled, ==, 0);
}

static void test_lost(struct fixture *fixture, gconstpointer unused)
{
    struct answer before = {0}, during = {0}, after = {0}, again = {0};

    call(fixture, "cluster_status", json_object(), 1, &before);
    world_wait(&before.done);
    call(fixture, "free_locks", owner_args(), 1, &during);
    world_wait_count(&fixture->kept->len, 1);
    g_clear_pointer(&fixture->server, rpc_server_free);
    world_wait(&during.done);
    assert_error(&during.error, UNKNOWN_RESULT, "connection lost after the request was sent");
    call(fixture, "cluster_status", json_object(), 1, &after);
    g_assert_false(after.done); /* never from inside the call */
    world_wait(&after.done);
    assert_error(&after.error, UNREACHABLE, "nobody listens there");
    start_server(fixture);
    call(fixture, "cluster_status", json_object(), 1, &again);
    world_wait(&again.done);
    g_assert_no_error(again.error);
    g_assert_cmpuint(before.times + during.times + after.times + again.times, ==, 4);
    answer_clear(&before);
    answer_clear(&again);
}

static void test_timeout(struct fixture *fixture, gconstpointer unused)
{
    struct answer late = {0}, next = {0};
    const struct rpc_call slow = {.to_node = NODE_LOCAL,
                                  .to_role = ROLE_WCONFD,
                                  .method = "free_locks",
                                  .args = owner_args(),
                                  .timeout_ms = 30};

    rpc_client_call(fixture->client, &slow, answer_cb, &late);
    world_wait(&late.done);
    assert_error(&late.error, TIMEOUT, "no answer within 30 ms");
    /* The answer that comes too late is nobody's. */
    world_wait_count(&fixture->kept->len, 1);
    rpc_answer(g_ptr_array_steal_index(fixture->kept, 0), NULL);
    call(fixture, "cluster_status", json_object(), 9, &next);
    world_wait(&next.done);
    g_assert_cmpint(json_integer_value(json_object_get(next.result, "serial")), ==, 9);
    g_assert_cmpuint(late.times, ==, 1);
    answer_clear(&next);
}

static void test_freed_client(struct fixture *fixture, gconstpointer unused)
{
    struct answer answer = {0};

    call(fixture, "free_locks", owner_args(), 1, &answer);
    world_wait_count(&fixture->kept->len, 1);
    g_clear_pointer(&fixture->client, rpc_client_free);
    g_assert_cmpuint(answer.times, ==, 1);
    assert_error(&answer.error, KILLED, "the calling process ends");
}

/* --- bad bytes --- */

/* As many may wait as the listener says; the next one has to come again, when some have been let
 * in. */
static int raw_connect(struct fixture *fixture)
{
    g_autofree char *path = node_paths_socket(fixture->paths, ROLE_WCONFD);
    gint64 since = loop_boot_ms();
    int fd;

    while ((fd = unix_connect(path, NULL)) < 0 && !patience_is_over(since, PATIENCE_MS))
        world_pause(1);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

/* Sends bytes while the server runs; stops when it has closed the connection. */
static void raw_send(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return;
        if (sent > 0) {
            bytes += sent;
            len -= (size_t)sent;
        }
        world_pause(1);
    }
}

/* Everything that comes until the server ends the connection. */
static char *raw_read_to_end(int fd)
{
    GString *all = g_string_new(NULL);
    gint64 since = loop_boot_ms();
    char buffer[4096];

    for (;;) {
        g_assert_false(patience_is_over(since, PATIENCE_MS));
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got > 0)
            g_string_append_len(all, buffer, got);
        else if (got == 0 || errno != EAGAIN)
            break;
        else
            world_pause(1);
    }
    close(fd);
    return g_string_free(all, FALSE);
}

static void expect_daemon_lives(struct fixture *fixture)
{
    struct answer answer = {0};

    call(fixture, "cluster_status", json_object(), 3, &answer);
    world_wait(&answer.done);
    g_assert_no_error(answer.error);
    answer_clear(&answer);
}

#define HELLO "{\"hello\":{\"versions\":[1,1],\"from\":\"" NODE_A "/job\"}}\x03"

static void test_bad_frames(struct fixture *fixture, gconstpointer unused)
{
    static const struct {
        const char *bytes;
        const char *answer; /* part of what comes back */
        const char *line;   /* part of what is logged */
    } rows[] = {
        {"rubbish\x03", "\"code\":\"protocol_error\"", "connection of an unknown peer ended"},
        {"{\"hello\":{\"versions\":[7,9],\"from\":\"" NODE_A "/job\"}}\x03",
         "no common version: here 1 to 1, peer 7 to 9", "no common version"},
        {"{\"hello\":{\"versions\":[1,1],\"from\":\"" NODE_B "/job\"}}\x03",
         "the peer says it is of node " NODE_B, "the peer says it is of node"},
        {"{\"hello\":{\"versions\":[1,1],\"from\":\"nobody\"}}\x03", "no NODE/role[/job]",
         "no NODE/role[/job]"},
        {"{\"v\":1,\"id\":1}\x03", "must be a hello", "must be a hello"},
        {HELLO "{\"v\":2,\"id\":5}\x03", "v: is 2, settled was 1", "connection of job ended"},
        {HELLO "{\"v\":1,\"id\":5,\"history\":-1}\x03", "must have exactly one",
         "connection of job ended"},
        {HELLO "[1,\x03", "\"code\":\"protocol_error\"", "connection of job ended"},
        {HELLO "{\"a\":1,\"a\":2}\x03", "\"code\":\"protocol_error\"", "connection of job ended"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        int fd = raw_connect(fixture);
        g_ptr_array_set_size(fixture->lines, 0);
        raw_send(fd, rows[i].bytes, strlen(rows[i].bytes));
        g_autofree char *answer = raw_read_to_end(fd);
        if (strstr(answer, rows[i].answer) == NULL)
            g_error("row %zu: %s", i, answer);
        world_wait_line(fixture->lines, rows[i].line);
        expect_daemon_lives(fixture);
    }
}

static void test_from_must_match(struct fixture *fixture, gconstpointer unused)
{
    static const char *const rows[][2] = {
        {HELLO "{\"v\":1,\"id\":5,\"history\":1,\"epoch\":1,\"from\":\"" NODE_B
               "/job\",\"method\":\"cluster_status\",\"args\":{}}\x03",
         "from: is " NODE_B "/job, but the connection is of " NODE_A "/job"},
        {HELLO "{\"v\":1,\"id\":5,\"history\":1,\"epoch\":1,\"from\":\"" NODE_A
               "/noded\",\"method\":\"cluster_status\",\"args\":{}}\x03",
         "from: is " NODE_A "/noded"},
        {HELLO "{\"v\":1,\"id\":5,\"history\":1,\"epoch\":1,\"from\":\"" NODE_A
               "/job\",\"to\":\"" NODE_B "/wconfd\",\"method\":\"cluster_status\",\"args\":{}}\x03",
         "to: is " NODE_B "/wconfd, but this is wconfd of node"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        int fd = raw_connect(fixture);
        raw_send(fd, rows[i][0], strlen(rows[i][0]));
        world_pause(50);
        shutdown(fd, SHUT_WR);
        g_autofree char *answer = raw_read_to_end(fd);
        if (strstr(answer, rows[i][1]) == NULL)
            g_error("row %zu: %s", i, answer);
    }
    g_assert_cmpuint(fixture->handled, ==, 0);
}

/* With the larger frames that come after the welcome, one has to wait for it. */
static void raw_hello(int fd)
{
    char byte;

    raw_send(fd, HELLO, strlen(HELLO));
    while (recv(fd, &byte, 1, MSG_PEEK) != 1)
        world_pause(1);
}

static void test_oversized(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *hello = g_strnfill(LIMIT_HELLO_BYTES + 1, 'x');
    g_autofree char *frame = g_strnfill(LIMIT_FRAME_BYTES + 1, 'x');

    int fd = raw_connect(fixture);
    raw_send(fd, hello, LIMIT_HELLO_BYTES + 1);
    g_autofree char *first = raw_read_to_end(fd);
    g_assert_nonnull(strstr(first, "a frame is larger than 4096 bytes"));
    world_wait_line(fixture->lines, "a frame is larger than 4096 bytes");

    fd = raw_connect(fixture);
    raw_hello(fd);
    raw_send(fd, frame, LIMIT_FRAME_BYTES + 1);
    g_autofree char *second = raw_read_to_end(fd);
    g_assert_null(strstr(second, "result"));
    world_wait_line(fixture->lines, "a frame is larger than 16777216 bytes");
    expect_daemon_lives(fixture);
}

static void test_cut_frame(struct fixture *fixture, gconstpointer unused)
{
    int fd = raw_connect(fixture);

    raw_send(fd, HELLO "{\"v\":1,", strlen(HELLO) + 7);
    shutdown(fd, SHUT_WR);
    g_autofree char *welcome = raw_read_to_end(fd);
    g_assert_nonnull(strstr(welcome, "welcome"));
    world_wait_line(fixture->lines, "the peer ended in the middle of a frame (7 bytes)");
    expect_daemon_lives(fixture);
}

/* A peer that asks and never reads is dropped before it costs more than the limit. */
static void test_slow_reader(struct fixture *fixture, gconstpointer unused)
{
    static const char request[] = "{\"v\":1,\"id\":5,\"history\":1,\"epoch\":1,\"from\":\"" NODE_A
                                  "/job\",\"method\":\"cluster_status\",\"args\":{}}\x03";
    int fd = raw_connect(fixture);

    fixture->answer_bytes = MIB(4);
    raw_send(fd, HELLO, strlen(HELLO));
    for (int i = 0; i < 40 && !world_has_line(fixture->lines, "does not read"); i++)
        raw_send(fd, request, strlen(request));
    world_wait_line(fixture->lines, "connection of job ended: the peer does not read");
    close(fd);
    fixture->answer_bytes = 0;
    expect_daemon_lives(fixture);
}

/* An answer that fits no frame is an error to its caller, and the connection lives. */
static void test_large_answer(struct fixture *fixture, gconstpointer unused)
{
    struct answer answer = {0};

    fixture->answer_bytes = LIMIT_FRAME_BYTES;
    call(fixture, "cluster_status", json_object(), 1, &answer);
    world_wait(&answer.done);
    assert_error(&answer.error, LIMIT, "at most 16777216 are allowed");
    fixture->answer_bytes = 0;
    expect_daemon_lives(fixture);
    g_assert_cmpuint(rpc_server_connections(fixture->server), ==, 1);
}

/* --- the socket --- */

static void test_many_connections(struct fixture *fixture, gconstpointer unused)
{
    g_autofree int *fds = g_new(int, LIMIT_CONNECTIONS);

    expect_daemon_lives(fixture);
    for (guint i = 0; i < LIMIT_CONNECTIONS - 1; i++)
        fds[i] = raw_connect(fixture);
    while (rpc_server_connections(fixture->server) < LIMIT_CONNECTIONS)
        world_pause(10);
    expect_daemon_lives(fixture);
    int surplus = raw_connect(fixture);
    g_autofree char *nothing = raw_read_to_end(surplus);
    g_assert_cmpstr(nothing, ==, "");
    g_assert_true(world_has_line(fixture->lines, "a connection is refused: there are 2048"));
    for (guint i = 0; i < LIMIT_CONNECTIONS - 1; i++)
        close(fds[i]);
    while (rpc_server_connections(fixture->server) > 1)
        world_pause(10);
    expect_daemon_lives(fixture);
}

static void test_socket_place(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = node_paths_socket(fixture->paths, ROLE_WCONFD);
    const struct rpc_server_options options = {path, ROLE_WCONFD, NODE_A, handle, NULL, NULL, NULL};
    g_autoptr(GError) error = NULL;
    struct stat info;

    g_assert_cmpint(stat(path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0600);
    g_assert_null(rpc_server_new(&options, &error));
    assert_error(&error, WRONG_STATE, "another process listens on");
    /* So it does where so many wait already that no more may. */
    g_autoptr(GArray) waiting = g_array_new(FALSE, FALSE, sizeof(int));
    for (int fd; (fd = unix_connect(path, NULL)) >= 0;)
        g_array_append_val(waiting, fd);
    g_assert_cmpuint(waiting->len, >, 0);
    g_assert_null(rpc_server_new(&options, &error));
    assert_error(&error, WRONG_STATE, "another process listens on");
    for (guint i = 0; i < waiting->len; i++)
        close(g_array_index(waiting, int, i));
    /* One that a dead process left is replaced. */
    g_autofree char *aside = g_strconcat(path, ".aside", NULL);
    g_assert_cmpint(g_rename(path, aside), ==, 0);
    g_clear_pointer(&fixture->server, rpc_server_free);
    g_assert_cmpint(g_rename(aside, path), ==, 0);
    start_server(fixture);
    expect_daemon_lives(fixture);
    /* A file that is no socket is nobody's to remove. */
    g_autofree char *file = g_strconcat(path, ".file", NULL);
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    const struct rpc_server_options wrong = {file, ROLE_WCONFD, NODE_A, handle, NULL, NULL, NULL};
    g_assert_null(rpc_server_new(&wrong, &error));
    assert_error(&error, STORAGE, "exists and is no socket");
}

static void test_other_user(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = node_paths_socket(fixture->paths, ROLE_WCONFD);

    if (geteuid() != 0) {
        g_test_skip("only root can become another user");
        return;
    }
    /* Even if somebody opens the folders and the socket to the world. */
    g_chmod(fixture->paths->root, 0755);
    g_chmod(path, 0666);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(3);
        int fd = unix_connect(path, NULL);
        if (fd < 0)
            _exit(4);
        struct pollfd poll_fd = {fd, POLLIN, 0};
        poll(&poll_fd, 1, 20000);
        _exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 5);
    }
    world_wait_line(fixture->lines, "only root and the daemons' user may come");
    int status = 0;
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpuint(rpc_server_connections(fixture->server), ==, 0);
}

static bool is_nobody(uid_t uid, void *data)
{
    return uid == 65534;
}

/* The API's user, whom strangers may have talked over, takes no place of the daemons'. */
static void test_api_user(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = node_paths_socket(fixture->paths, ROLE_WCONFD);
    g_autoptr(GError) error = NULL;
    const struct rpc_server_options options = {.path = path,
                                               .role = ROLE_WCONFD,
                                               .node_uuid = NODE_A,
                                               .handle = handle,
                                               .complain = complain,
                                               .data = fixture,
                                               .is_api = is_nobody};

    if (geteuid() != 0) {
        g_test_skip("only root can become another user");
        return;
    }
    rpc_server_free(fixture->server);
    fixture->server = rpc_server_new(&options, &error);
    g_assert_no_error(error);
    g_chmod(fixture->paths->root, 0755);
    g_chmod(path, 0666);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(3);
        for (guint i = 0; i <= LIMIT_API_CONNECTIONS; i++)
            if (unix_connect(path, NULL) < 0)
                _exit(4);
        pause();
    }
    world_wait_line(fixture->lines, "a connection is refused: the API's user has 8");
    g_assert_cmpuint(rpc_server_connections(fixture->server), ==, LIMIT_API_CONNECTIONS);
    expect_daemon_lives(fixture);
    g_assert_cmpint(kill(child, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
    while (rpc_server_connections(fixture->server) > 1)
        world_pause(10);
    child = fork();
    if (child == 0)
        _exit(setgid(65534) != 0 || setuid(65534) != 0 || unix_connect(path, NULL) < 0 ||
              pause() == 0);
    while (rpc_server_connections(fixture->server) < 2) /* there is room again */
        world_pause(10);
    g_assert_cmpint(kill(child, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(child, NULL, 0), ==, child);
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("/rpc/many-calls#WCF-09,WCF-10", test_many_calls);
    ADD("/rpc/out-of-order#WCF-10", test_out_of_order);
    ADD("/rpc/refused#WCF-11", test_refused);
    ADD("/rpc/lost#SAF-04", test_lost);
    ADD("/rpc/timeout#SAF-04", test_timeout);
    ADD("/rpc/freed-client", test_freed_client);
    ADD("/rpc/bad-frames#WCF-11", test_bad_frames);
    ADD("/rpc/from-must-match", test_from_must_match);
    ADD("/rpc/oversized#WCF-11", test_oversized);
    ADD("/rpc/cut-frame#WCF-11", test_cut_frame);
    ADD("/rpc/slow-reader", test_slow_reader);
    ADD("/rpc/large-answer", test_large_answer);
    ADD("/rpc/many-connections", test_many_connections);
    ADD("/rpc/socket-place", test_socket_place);
    ADD("/rpc/other-user#WCF-09", test_other_user);
    ADD("/rpc/api-user#SAF-100", test_api_user);
    return g_test_run();
}
