/* LUXI over its socket: luxi_server.c, luxi_client.c. */
#include "world.h"

#include "helper/patience.h"
#include "io/net/luxi_client.h"
#include "io/net/luxi_server.h"
#include "io/net/unix_socket.h"
#include "proto/luxi.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000

struct fixture {
    struct node_paths *paths;
    char *path;
    struct luxi_server *server;
    struct luxi_client *client;
    GPtrArray *lines;
    GPtrArray *kept;
    GString *order; /* methods as they were handled */
    guint large;    /* answers of a megabyte that were given */
    guint patience_ms;
    guint gone; /* callers that went while they waited */
    uid_t speaker;
};

/* An answer of so many megabytes. */
static void answer_mib(struct rpc_request *request, gsize mib)
{
    g_autofree char *text = g_strnfill(MIB(mib), 'x');
    rpc_answer(request, json_string(text));
}

static void gone_cb(struct rpc_request *request, void *data)
{
    struct fixture *fixture = data;

    fixture->gone++;
    g_assert_true(g_ptr_array_remove(fixture->kept, request));
    rpc_answer(request, json_string("nochange"));
}

static void handle(struct rpc_request *request, void *data)
{
    struct fixture *fixture = data;

    g_assert_null(request->method);
    g_assert_true(json_is_array(request->args));
    g_assert_cmpstr(request->from_role, ==, ROLE_CLI);
    g_assert_cmpint(request->face, ==, FACE_GANETI); /* the connection's */
    if (strcmp(request->name, "QueryLarge") == 0) {
        g_autofree char *text = g_strnfill(MIB(1), 'x');
        rpc_answer(request, json_make("[i, s]", (int)fixture->large++, text));
        return;
    }
    if (strcmp(request->name, "QueryMib") == 0) {
        answer_mib(request, (gsize)json_integer_value(json_array_get(request->args, 0)));
        return;
    }
    g_string_append_printf(fixture->order, "%s ", request->name);
    if (strcmp(request->name, "WatchChanges") == 0)
        rpc_on_gone(request, gone_cb, fixture);
    if (strcmp(request->name, "WaitForJobChange") == 0 ||
        strcmp(request->name, "WatchChanges") == 0)
        g_ptr_array_add(fixture->kept, request);
    else if (strcmp(request->name, "Nope") == 0)
        rpc_fail_new(request, FETTLE_ERROR_PROTOCOL, "no method %s", request->name);
    else if (strcmp(request->name, "CancelJob") == 0)
        rpc_fail_new(request, FETTLE_ERROR_WRONG_INPUT, "no such job");
    else if (strcmp(request->name, "QueryUser") == 0)
        rpc_answer(request, json_string(request->user));
    else if (strcmp(request->name, "QueryTags") == 0)
        rpc_answer(request, json_null());
    else
        rpc_answer(request, json_make("[s, O]", request->name, request->args));
}

static void complain(const char *line, void *data)
{
    world_complain(line, ((struct fixture *)data)->lines);
}

static void start_server(struct fixture *fixture)
{
    const struct luxi_server_options options = {.path = fixture->path,
                                                .face = FACE_GANETI,
                                                .speaker = fixture->speaker,
                                                .node_uuid = NODE_A,
                                                .handle = handle,
                                                .complain = complain,
                                                .data = fixture,
                                                .patience_ms = fixture->patience_ms};
    g_autoptr(GError) error = NULL;

    fixture->server = luxi_server_new(&options, &error);
    g_assert_no_error(error);
}

/* `patience_ms`: with whoever does not read; 0: as usual. */
static void set_up(struct fixture *fixture, gconstpointer patience_ms)
{
    fixture->patience_ms = GPOINTER_TO_UINT(patience_ms);
    fixture->paths = world_new(NODE_A);
    fixture->path = node_paths_socket(fixture->paths, ROLE_LUXID);
    fixture->lines = g_ptr_array_new_with_free_func(g_free);
    fixture->kept = g_ptr_array_new();
    fixture->order = g_string_new(NULL);
    fixture->client = luxi_client_new(fixture->path);
    start_server(fixture);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    luxi_client_free(fixture->client);
    luxi_server_free(fixture->server);
    for (guint i = 0; i < fixture->kept->len; i++)
        rpc_answer(fixture->kept->pdata[i], NULL);
    world_pause(1);
    g_ptr_array_unref(fixture->kept);
    g_ptr_array_unref(fixture->lines);
    g_string_free(fixture->order, TRUE);
    g_free(fixture->path);
    world_remove(fixture->paths);
}

/* Sends raw bytes and returns what came until the first end of a frame, and, if the server `ends`
 * the connection, until it has done so; else it stands for a while. */
static char *talk(struct fixture *fixture, const char *bytes, bool ends)
{
    g_autoptr(GError) error = NULL;
    GString *all = g_string_new(NULL);
    gint64 since = loop_boot_ms();
    static char buffer[MIB(1)];
    bool ended = false;
    int fd = unix_connect(fixture->path, &error);

    g_assert_no_error(error);
    g_assert_cmpint(send(fd, bytes, strlen(bytes), 0), ==, (ssize_t)strlen(bytes));
    while (!ended && (ends || !strchr(all->str, '\x03'))) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got > 0)
            g_string_append_len(all, buffer, got);
        ended = got == 0 || (got < 0 && errno != EAGAIN);
        g_assert_false(patience_is_over(since, PATIENCE_MS));
        world_pause(1);
    }
    if (!ended) {
        world_pause(20);
        ended = recv(fd, buffer, 1, 0) == 0;
    }
    g_assert_cmpint(ended, ==, ends);
    close(fd);
    return g_string_free(all, FALSE);
}

static void wait_connections(const struct fixture *fixture, guint wanted)
{
    for (gint64 since = loop_boot_ms(); luxi_server_connections(fixture->server) != wanted;
         world_pause(1))
        g_assert_false(patience_is_over(since, PATIENCE_MS));
}

/* Who waits and goes is told of at once, and takes no place any more; who only sends no more, is
 * there, and gets the answer. */
static void test_gone(struct fixture *fixture, gconstpointer unused)
{
    static const char wait[] = "{\"method\":\"WatchChanges\",\"args\":[]}\x03";
    int fds[2];
    char letter = 0;

    for (guint i = 0; i < 2; i++) {
        fds[i] = unix_connect(fixture->path, NULL);
        g_assert_cmpint(send(fds[i], wait, strlen(wait), 0), ==, (ssize_t)strlen(wait));
        world_wait_count(&fixture->kept->len, i + 1);
    }
    g_assert_cmpuint(fixture->kept->len, ==, 2);
    g_assert_cmpint(shutdown(fds[1], SHUT_WR), ==, 0);
    close(fds[0]);
    world_wait_count(&fixture->gone, 1);
    wait_connections(fixture, 1);
    g_assert_cmpuint(fixture->kept->len, ==, 1);
    rpc_answer(g_ptr_array_steal_index(fixture->kept, 0), json_string("news"));
    for (gint64 since = loop_boot_ms(); recv(fds[1], &letter, 1, 0) != 1; world_pause(1))
        g_assert_false(patience_is_over(since, PATIENCE_MS));
    g_assert_cmpint(letter, ==, '{');
    g_assert_cmpuint(fixture->gone, ==, 1);
    close(fds[1]);
}

static void test_words(struct fixture *fixture, gconstpointer unused)
{
    static const struct {
        const char *request, *reply;
        bool ends;
    } rows[] = {
        {"{\"method\":\"QueryJobs\",\"args\":[[1],[\"id\"]],\"version\":3000000}\x03",
         "{\"success\":true,\"result\":[\"QueryJobs\",[[1],[\"id\"]]]}\x03", false},
        {"{\"args\":[],\"method\":\"QueryTags\"}\x03", "{\"success\":true,\"result\":null}\x03",
         false},
        {"{\"args\":[1],\"method\":\"CancelJob\"}\x03",
         "{\"success\":false,\"result\":[\"OpPrereqError\",[\"no such job\",\"wrong_input\"]]}\x03",
         false},
        {"{\"args\":[],\"method\":\"Nope\"}\x03",
         "{\"success\":false,\"result\":\"Failed to parse request: no method Nope\"}\x03", true},
        {"rubbish\x03", "{\"success\":false,\"result\":\"Failed to parse request: ", true},
        {"{\"args\":{},\"method\":\"QueryJobs\"}\x03",
         "{\"success\":false,\"result\":\"Failed to parse request: LUXI request: args: must be a "
         "list\"",
         true},
        {"[]\x03", "{\"success\":false,\"result\":\"Failed to parse request: ", true},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *reply = talk(fixture, rows[i].request, rows[i].ends);
        if (!g_str_has_prefix(reply, rows[i].reply))
            g_error("row %zu: %s", i, reply);
    }
    g_assert_true(world_has_line(fixture->lines, "connection ended: no method Nope"));
}

/* The next request of a connection waits for the answer to the former; other connections do not. */
static void test_in_order(struct fixture *fixture, gconstpointer unused)
{
    static const char bytes[] = "{\"method\":\"WaitForJobChange\",\"args\":[1,[],null,null,5]}\x03"
                                "{\"method\":\"SubmitJob\",\"args\":[]}\x03"
                                "{\"method\":\"QueryJobs\",\"args\":[]}\x03";
    g_autoptr(GError) error = NULL;
    int fd = unix_connect(fixture->path, &error);

    g_assert_no_error(error);
    g_assert_cmpint(send(fd, bytes, sizeof bytes - 1, 0), ==, sizeof bytes - 1);
    world_wait_count(&fixture->kept->len, 1);
    g_autofree char *other = talk(fixture, "{\"method\":\"QueryGroups\",\"args\":[]}\x03", false);
    g_assert_nonnull(strstr(other, "QueryGroups"));
    g_assert_cmpstr(fixture->order->str, ==, "WaitForJobChange QueryGroups ");
    rpc_answer(g_ptr_array_steal_index(fixture->kept, 0), json_make("[]"));
    while (strstr(fixture->order->str, "QueryJobs") == NULL)
        world_pause(1);
    g_assert_cmpstr(fixture->order->str, ==, "WaitForJobChange QueryGroups SubmitJob QueryJobs ");
    close(fd);
}

static void test_oversized(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *large = g_strnfill(LIMIT_LUXI_FRAME_BYTES + 1, 'x');
    g_autoptr(GError) error = NULL;
    int fd = unix_connect(fixture->path, &error);
    size_t sent = 0;

    while (sent <= LIMIT_LUXI_FRAME_BYTES) {
        ssize_t now = send(fd, large + sent, LIMIT_LUXI_FRAME_BYTES + 1 - sent, MSG_NOSIGNAL);
        if (now < 0 && errno != EAGAIN)
            break;
        sent += now > 0 ? (size_t)now : 0;
        world_pause(1);
    }
    world_wait_line(fixture->lines, "a frame is larger than 8388608 bytes");
    close(fd);
    g_autofree char *next = talk(fixture, "{\"method\":\"QueryJobs\",\"args\":[]}\x03", false);
    g_assert_nonnull(strstr(next, "QueryJobs"));
}

/* More than a frame between daemons may have, as all fields of 10,000 instances; and too much. */
static void test_large_answers(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *wide = talk(fixture, "{\"method\":\"QueryMib\",\"args\":[40]}\x03", false);
    g_assert_cmpuint(strlen(wide), >, MIB(40));
    g_autofree char *huge = talk(fixture, "{\"method\":\"QueryMib\",\"args\":[48]}\x03", false);
    g_assert_cmpstr(
        huge, ==,
        "{\"success\":false,\"result\":[\"GenericError\",[\"the answer is too large; ask "
        "for fewer fields, or for fewer rows by a filter: a frame of 50331676 bytes: at "
        "most 50331648 are allowed\",\"limit_exceeded\"]]}\x03");
}

/* --- who reads slowly --- */

/* Asks for so many answers of a megabyte without reading one. */
static int ask_for_much(struct fixture *fixture, guint count)
{
    static const char request[] = "{\"method\":\"QueryLarge\",\"args\":[]}\x03";
    g_autoptr(GError) error = NULL;
    int fd = unix_connect(fixture->path, &error);

    g_assert_no_error(error);
    for (guint i = 0; i < count; i++)
        g_assert_cmpint(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), ==,
                        sizeof request - 1);
    return fd;
}

/* What is given to a client that does not read: what the kernel takes of the first, and one more.
 */
#define UNREAD_ANSWERS 2

/* Who does not read is asked no more, then dropped; the others notice nothing. */
static void test_never_reads(struct fixture *fixture, gconstpointer unused)
{
    int fd = ask_for_much(fixture, 64);

    world_wait_count(&fixture->large, UNREAD_ANSWERS);
    g_autofree char *other = talk(fixture, "{\"method\":\"QueryGroups\",\"args\":[]}\x03", false);
    g_assert_nonnull(strstr(other, "QueryGroups"));
    world_wait_line(fixture->lines, "connection ended: the peer does not read: ");
    world_pause(20);
    g_assert_cmpuint(fixture->large, ==, UNREAD_ANSWERS);
    wait_connections(fixture, 0);
    close(fd);
    g_autofree char *next = talk(fixture, "{\"method\":\"QueryGroups\",\"args\":[]}\x03", false);
    g_assert_nonnull(strstr(next, "QueryGroups"));
}

/* One that begins to read late, and then a little at a time, gets all, in order. */
static void test_reads_slowly(struct fixture *fixture, gconstpointer unused)
{
    const guint asked = 60;
    int fd = ask_for_much(fixture, asked);
    g_autoptr(GByteArray) got = g_byte_array_new();
    gint64 since = loop_boot_ms();
    guint8 buffer[KIB(32)];
    guint frames = 0;

    world_wait_count(&fixture->large, UNREAD_ANSWERS);
    world_pause(20);
    while (frames < asked) {
        g_assert_false(patience_is_over(since, 2 * PATIENCE_MS));
        ssize_t now = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        /* Nothing is made for it before it is its turn. */
        g_assert_cmpuint(fixture->large, <=, frames + 1 + UNREAD_ANSWERS);
        if (now < 0)
            world_pause(1);
        for (ssize_t i = 0; i < now; i++) {
            if (buffer[i] != '\x03') {
                if (got->len < 48)
                    g_byte_array_append(got, buffer + i, 1);
                continue;
            }
            g_autofree char *head = g_strndup((const char *)got->data, got->len);
            g_autofree char *expected = g_strdup_printf("[%u,\"xxx", frames++);
            if (strstr(head, expected) == NULL)
                g_error("answer %u begins with %s", frames - 1, head);
            g_byte_array_set_size(got, 0);
        }
    }
    g_assert_cmpuint(frames, ==, asked);
    g_assert_cmpuint(fixture->lines->len, ==, 0);
    close(fd);
}

/* --- the client --- */

static void call(struct fixture *fixture, const char *method, json_t *args, guint timeout_ms,
                 struct answer *answer)
{
    const struct rpc_call call = {
        .to_role = ROLE_LUXID, .method = method, .args = args, .timeout_ms = timeout_ms};
    luxi_client_call(fixture->client, &call, answer_cb, answer);
}

static void test_client(struct fixture *fixture, gconstpointer unused)
{
    struct answer waiting = {0}, query = {0}, wrong = {0}, unparsed = {0};

    call(fixture, "WaitForJobChange", json_make("[i, [], n, n, i]", 1, 5), 0, &waiting);
    for (int i = 0; i < 100; i++) {
        call(fixture, "QueryJobs", json_array(), 0, &query);
        world_wait(&query.done);
        g_assert_no_error(query.error);
        answer_clear(&query);
    }
    g_assert_cmpuint(luxi_server_connections(fixture->server), ==, 2);
    call(fixture, "CancelJob", json_make("[i]", 1), 0, &wrong);
    call(fixture, "Nope", json_array(), 0, &unparsed);
    world_wait(&wrong.done);
    world_wait(&unparsed.done);
    assert_error(&wrong.error, WRONG_INPUT, "no such job");
    g_assert_nonnull(unparsed.error);
    g_assert_nonnull(strstr(unparsed.error->message, "no method Nope"));
    g_assert_false(waiting.done);
    rpc_answer(g_ptr_array_steal_index(fixture->kept, 0), json_make("[]"));
    world_wait(&waiting.done);
    g_assert_no_error(waiting.error);
    answer_clear(&waiting);
    answer_clear(&unparsed);
}

static void test_client_faults(struct fixture *fixture, gconstpointer unused)
{
    struct answer late = {0}, lost = {0}, nobody = {0}, again = {0}, freed = {0};

    call(fixture, "WaitForJobChange", json_array(), 30, &late);
    world_wait(&late.done);
    assert_error(&late.error, TIMEOUT, "luxid: WaitForJobChange: no answer within 30 ms");
    guint before = fixture->kept->len; /* it was asked, or there was no time for that */
    call(fixture, "WaitForJobChange", json_array(), 0, &lost);
    world_wait_count(&fixture->kept->len, before + 1);
    g_clear_pointer(&fixture->server, luxi_server_free);
    world_wait(&lost.done);
    assert_error(&lost.error, UNKNOWN_RESULT, "connection lost after the request was sent");
    call(fixture, "QueryJobs", json_array(), 0, &nobody);
    world_wait(&nobody.done);
    assert_error(&nobody.error, UNREACHABLE, "nobody listens there");
    start_server(fixture);
    call(fixture, "QueryJobs", json_array(), 0, &again);
    world_wait(&again.done);
    g_assert_no_error(again.error);
    call(fixture, "WaitForJobChange", json_array(), 0, &freed);
    g_clear_pointer(&fixture->client, luxi_client_free);
    assert_error(&freed.error, KILLED, "the calling process ends");
    g_assert_cmpuint(late.times + lost.times + nobody.times + again.times + freed.times, ==, 5);
    answer_clear(&again);
}

/* --- who speaks for others --- */

#define REST_UID 64321
#define STRANGER_UID 64322

static void assert_user(struct fixture *fixture, const char *user, const char *answer,
                        const char *refusal)
{
    struct answer heard = {0};
    const struct rpc_call call = {
        .to_role = ROLE_LUXID, .method = "QueryUser", .args = json_array(), .user = user};
    luxi_client_call(fixture->client, &call, answer_cb, &heard);
    world_wait(&heard.done);
    if (refusal) {
        g_assert_nonnull(heard.error);
        g_assert_nonnull(strstr(heard.error->message, refusal));
    } else {
        g_assert_no_error(heard.error);
        g_assert_cmpstr(json_string_value(heard.result), ==, answer);
    }
    answer_clear(&heard);
}

/* Its own user, where the host has none for REST. */
static void test_for_others(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *longest = g_strnfill(LIMIT_RAPI_USER, 'a');
    g_autofree char *good = g_strconcat(LUXI_REST_USER, longest, NULL);
    g_autofree char *longer = g_strconcat(good, "a", NULL);
    assert_user(fixture, "rapi:alice", "rapi:alice", NULL);
    assert_user(fixture, good, good, NULL);
    const char *const bad[] = {"alice", "root", "rapi:", "rapi:a\x1b", "rapi:\u202ea", longer};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_user(fixture, bad[i], NULL,
                    "user: must be rapi:NAME, a name without control characters of at most 64 "
                    "characters");
    assert_user(fixture, "rapi:alice", "rapi:alice", NULL); /* the connection goes on */
}

/* What a process of that user hears; NULL: it may not even connect. To be freed. */
static char *hear_as(struct fixture *fixture, uid_t uid, const char *request)
{
    int ends[2];
    g_assert_cmpint(pipe(ends), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char buffer[1000];
        g_strlcpy(address.sun_path, fixture->path, sizeof address.sun_path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 ||
            setresuid(uid, uid, uid) != 0 ||
            connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
            _exit(1);
        if (send(fd, request, strlen(request) + 1, MSG_NOSIGNAL) < 0)
            _exit(0);
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        _exit(got > 0 && write(ends[1], buffer, (size_t)got) != got);
    }
    close(ends[1]);
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0)
        world_pause(5);
    char buffer[1000] = "";
    ssize_t got = read(ends[0], buffer, sizeof buffer - 1);
    close(ends[0]);
    g_assert_cmpint(got, >=, 0);
    return WEXITSTATUS(status) == 0 ? g_strdup(buffer) : NULL;
}

#define ASKS "{\"method\":\"QueryUser\",\"args\":[]%s}\x03"

static void test_speaker(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *plain = g_strdup_printf(ASKS, "");
    g_autofree char *named = g_strdup_printf(ASKS, ",\"user\":\"rapi:alice\"");
    struct stat about;
    if (geteuid() != 0) {
        g_test_skip("only root can be another user");
        return;
    }
    luxi_server_free(fixture->server);
    fixture->speaker = REST_UID;
    start_server(fixture);
    g_assert_cmpint(stat(fixture->path, &about), ==, 0);
    g_assert_cmpuint(about.st_mode & 07777, ==, 0660); /* of a list: what any in it may at most */
    g_assert_cmpuint(about.st_uid, ==, 0);
    g_assert_cmpuint(about.st_gid, ==, getegid());
    assert_user(fixture, "rapi:alice", NULL, "user: only the REST daemon speaks for others");
    for (char *at = strrchr(fixture->path, '/'); at != fixture->path;
         at = g_strrstr_len(fixture->path, at - fixture->path, "/")) {
        g_autofree char *folder = g_strndup(fixture->path, (gsize)(at - fixture->path));
        if (g_str_has_prefix(folder, fixture->paths->root))
            g_assert_cmpint(chmod(folder, 0755), ==, 0);
    }
    g_autofree char *heard = hear_as(fixture, REST_UID, named);
    g_assert_cmpstr(heard, ==, "{\"success\":true,\"result\":\"rapi:alice\"}\x03");
    g_autofree char *itself = hear_as(fixture, REST_UID, plain);
    g_assert_cmpstr(itself, ==, "{\"success\":true,\"result\":\"rapi:\"}\x03");
    g_assert_null(hear_as(fixture, STRANGER_UID, plain)); /* the mode keeps it out */
    g_assert_cmpint(chmod(fixture->path, 0666), ==, 0);
    g_autofree char *stranger = hear_as(fixture, STRANGER_UID, plain);
    g_assert_cmpstr(stranger, ==, ""); /* and so does luxid */
    g_assert_nonnull(
        strstr(fixture->lines->pdata[fixture->lines->len - 1], "user 64322, process "));
}

/* A file system without access control lists: it is said, and nobody else goes without. */
static void test_no_list(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *folder = g_path_get_dirname(fixture->path);
    struct stat about;
    luxi_server_free(fixture->server);
    if (geteuid() != 0 || mount("none", folder, "ramfs", 0, NULL) != 0) {
        g_test_skip("only root can mount");
        start_server(fixture);
        return;
    }
    fixture->speaker = REST_UID;
    start_server(fixture);
    const char *line = fixture->lines->pdata[fixture->lines->len - 1];
    g_assert_nonnull(strstr(line, "luxid.sock cannot be opened to the REST daemon, user "));
    g_assert_nonnull(strstr(line, ": Operation not supported; REST does not work on this host"));
    g_assert_cmpint(stat(fixture->path, &about), ==, 0);
    g_assert_cmpuint(about.st_mode & 07777, ==, 0600);
    assert_user(fixture, "rapi:alice", NULL, "user: only the REST daemon speaks for others");
    luxi_server_free(fixture->server);
    g_assert_cmpint(umount2(folder, MNT_DETACH), ==, 0);
    start_server(fixture);
}

struct text_answer {
    bool done;
    char *text;
    GError *error;
};

static void text_cb(char *text, size_t len, const GError *error, void *data)
{
    struct text_answer *answer = data;
    answer->done = true;
    answer->text = text;
    answer->error = error ? g_error_copy(error) : NULL;
}

static void ask_text(struct fixture *fixture, const char *method, struct text_answer *ret_answer)
{
    const struct rpc_call call = {
        .to_role = ROLE_LUXID, .method = method, .args = json_make("[s]", "a\"b")};
    *ret_answer = (struct text_answer){0};
    luxi_client_call_text(fixture->client, &call, text_cb, ret_answer);
    g_assert_false(ret_answer->done);
    world_wait(&ret_answer->done);
}

static void assert_text(struct fixture *fixture, const char *method, const char *text,
                        const char *error)
{
    struct text_answer answer;
    ask_text(fixture, method, &answer);
    g_assert_cmpstr(answer.text, ==, text);
    if (error)
        assert_error(&answer.error, WRONG_INPUT, error);
    else
        g_assert_no_error(answer.error);
    g_free(answer.text);
}

/* A call may still go on a connection that has ended, which the client has not been told yet. */
static void assert_nobody_listens(struct fixture *fixture)
{
    gint64 since = loop_boot_ms();
    for (bool over = false; !over;) {
        struct text_answer answer;
        ask_text(fixture, "QueryJobs", &answer);
        g_assert_null(answer.text);
        over = fettle_error_is(answer.error, UNREACHABLE) &&
               strstr(answer.error->message, "nobody listens there");
        g_clear_error(&answer.error);
        g_assert_false(patience_is_over(since, PATIENCE_MS));
    }
}

/* What luxid gives is taken, by whoever wants a tree and by whoever wants the text. */
static void test_large_taken(struct fixture *fixture, gconstpointer unused)
{
    struct answer tree = {0};
    struct text_answer text = {0};
    const struct rpc_call call_text = {
        .to_role = ROLE_LUXID, .method = "QueryMib", .args = json_make("[i]", 17)};
    call(fixture, "QueryMib", json_make("[i]", 17), 0, &tree);
    world_wait(&tree.done);
    g_assert_no_error(tree.error);
    g_assert_cmpuint(json_string_length(tree.result), ==, MIB(17));
    luxi_client_call_text(fixture->client, &call_text, text_cb, &text);
    world_wait(&text.done);
    g_assert_no_error(text.error);
    g_assert_cmpuint(strlen(text.text), ==, MIB(17) + 2);
    g_free(text.text);
    answer_clear(&tree);
}

static void test_text(struct fixture *fixture, gconstpointer unused)
{
    assert_text(fixture, "QueryJobs", "[\"QueryJobs\",[\"a\\\"b\"]]", NULL);
    assert_text(fixture, "QueryTags", "null", NULL);
    assert_text(fixture, "CancelJob", NULL, "no such job");
    assert_text(fixture, "QueryJobs", "[\"QueryJobs\",[\"a\\\"b\"]]", NULL);
    g_clear_pointer(&fixture->server, luxi_server_free);
    assert_nobody_listens(fixture);
    start_server(fixture);
}

#define ADD(path, fn) ADD_WITH(path, fn, 0)
#define ADD_WITH(path, fn, patience_ms)                                                            \
    g_test_add(path, struct fixture, GUINT_TO_POINTER(patience_ms), set_up, fn, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("/luxi/words", test_words);
    ADD("/luxi/gone", test_gone);
    ADD("/luxi/in-order", test_in_order);
    ADD("/luxi/oversized", test_oversized);
    ADD("/luxi/large-answers", test_large_answers);
    ADD("/luxi/large-taken", test_large_taken);
    ADD_WITH("/luxi/never-reads", test_never_reads, 2000);
    ADD("/luxi/reads-slowly", test_reads_slowly);
    ADD("/luxi/client", test_client);
    ADD("/luxi/for-others", test_for_others);
    ADD("/luxi/speaker", test_speaker);
    ADD("/luxi/no-list", test_no_list);
    ADD("/luxi/text", test_text);
    ADD("/luxi/client-faults#SAF-04", test_client_faults);
    return g_test_run();
}
