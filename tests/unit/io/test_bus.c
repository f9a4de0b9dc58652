/* The bus between nodes, with real certificates over loopback: bus.c, bus_tls.c, certs.c. */
#include "bus_world.h"

#include "base/limits.h"
#include "io/net/bus.h"
#include "io/net/certs.h"
#include "io/net/connection.h"
#include "io/net/rpc_client.h"
#include "io/net/rpc_server.h"
#include "io/net/unix_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- tests --- */

static void test_ways(struct pair *pair, gconstpointer unused)
{
    struct answer here = {0}, there = {0}, master = {0}, direct = {0}, own = {0};

    host_ask_report(pair->b, NODE_LOCAL, &here);
    world_wait(&here.done);
    g_assert_no_error(here.error);
    g_assert_cmpstr(json_string_value(json_object_get(here.result, "node")), ==, NODE_B);
    g_assert_cmpstr(pair->b->served_from, ==, NODE_B "/job/12");

    host_ask_report(pair->b, NODE_A, &there);
    world_wait(&there.done);
    g_assert_no_error(there.error);
    g_assert_cmpstr(json_string_value(json_object_get(there.result, "node")), ==, NODE_A);
    g_assert_cmpstr(pair->a->served_from, ==, NODE_B "/job/12");

    host_call(pair->b, NODE_MASTER, ROLE_WCONFD, "cluster_status", json_object(), &master);
    world_wait(&master.done);
    assert_error(&master.error, UNREACHABLE, "this node has not heard of a master yet");
    pair->b->master = NODE_A;
    answer_clear(&master);
    host_call(pair->b, NODE_MASTER, ROLE_WCONFD, "cluster_status", json_object(), &master);
    world_wait(&master.done);
    g_assert_no_error(master.error);
    g_assert_cmpstr(json_string_value(json_object_get(master.result, "master_node")), ==, NODE_A);
    g_assert_cmpint(json_integer_value(json_object_get(master.result, "epoch")), ==, 6);
    g_assert_cmpstr(pair->a->served_from, ==, NODE_B "/job/12");

    /* The master's own job takes the same way of speaking. */
    pair->a->master = NODE_A;
    host_call(pair->a, NODE_MASTER, ROLE_WCONFD, "cluster_status", json_object(), &own);
    world_wait(&own.done);
    g_assert_no_error(own.error);

    const struct rpc_call noded = {.to_node = NODE_MASTER,
                                   .to_role = ROLE_WCONFD,
                                   .method = "confirm",
                                   .args = json_make("{s:[]}", "items")};
    bus_call(pair->b->bus, &noded, answer_cb, &direct);
    world_wait(&direct.done);
    g_assert_no_error(direct.error);
    g_assert_cmpstr(pair->a->served_from, ==, NODE_B "/noded/0");
    answer_clear(&here);
    answer_clear(&there);
    answer_clear(&master);
    answer_clear(&own);
    answer_clear(&direct);
}

static void test_refused(struct pair *pair, gconstpointer unused)
{
    struct answer forbidden = {0}, unknown = {0}, wrong = {0}, stale = {0}, nobody = {0},
                  luxi = {0};

    host_call(pair->b, NODE_A, ROLE_NODED, "announce", json_object(), &forbidden);
    host_call(pair->b, NODE_A, ROLE_NODED, "nonsense", json_object(), &unknown);
    host_call(pair->b, NODE_A, ROLE_NODED, "guest_reset", json_make("{s:s}", "instance", "web1"),
              &wrong);
    host_call(pair->b, NODE_A, ROLE_WCONFD, "confirm", json_make("{s:[]}", "items"), &luxi);
    host_call(pair->b, NODE_C, ROLE_NODED, "node_report", json_object(), &nobody);
    world_wait(&forbidden.done);
    world_wait(&unknown.done);
    world_wait(&wrong.done);
    world_wait(&nobody.done);
    world_wait(&luxi.done);
    assert_error(&forbidden.error, PERMISSION, "noded/announce: role \"job\" may not call it");
    assert_error(&unknown.error, PROTOCOL, "noded has no method \"nonsense\"");
    assert_error(&wrong.error, WRONG_INPUT, "instance: must be");
    assert_error(&nobody.error, UNREACHABLE, "node " NODE_C " is not known here");
    assert_error(&luxi.error, PERMISSION, "wconfd/confirm: role \"job\" may not call it");
    g_assert_cmpuint(pair->a->served, ==, 0);

    pair->a->refuse_epoch = true;
    host_ask_report(pair->b, NODE_A, &stale);
    world_wait(&stale.done);
    assert_error(&stale.error, STALE_EPOCH, "epoch 6 of " NODE_B " is over");
    answer_clear(&stale);
    host_call(pair->b, NODE_A, ROLE_WCONFD, "cluster_status", json_object(), &stale);
    world_wait(&stale.done);
    assert_error(&stale.error, STALE_EPOCH, "epoch 6 of " NODE_B " is over");
    answer_clear(&stale);
    host_ask_report(pair->a, NODE_LOCAL, &stale);
    world_wait(&stale.done);
    assert_error(&stale.error, STALE_EPOCH, "epoch 6 of " NODE_A " is over");
}

/* By way of its node's daemon, which is root, the front end of the API reaches what has methods for
 * it, and no other socket. */
static void test_front_end(struct pair *pair, gconstpointer unused)
{
    const struct {
        const char *role, *method;
        enum fettle_error code;
        const char *said;
    } calls[] = {
        {"anything", "cluster_status", FETTLE_ERROR_PROTOCOL, "anything has no method"},
        {"..", "cluster_status", FETTLE_ERROR_PROTOCOL, ".. has no method"},
        {ROLE_VOLUMED, "nonsense", FETTLE_ERROR_PROTOCOL, "volumed has no method"},
        {ROLE_WCONFD, "confirm", FETTLE_ERROR_PERMISSION, "role \"apid\" may not call it"},
        {ROLE_VOLUMED, "send_image", FETTLE_ERROR_UNREACHABLE, "nobody listens there"},
    };
    struct rpc_client *client = rpc_client_new(pair->a->paths, NODE_A, ROLE_APID);
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++) {
        struct answer answer = {0};
        const struct rpc_call call = {.to_node = NODE_A,
                                      .to_role = calls[i].role,
                                      .method = calls[i].method,
                                      .args = json_object(),
                                      .stamp = {1, 6}};
        rpc_client_call(client, &call, answer_cb, &answer);
        world_wait(&answer.done);
        g_assert_error(answer.error, FETTLE_ERROR, (gint)calls[i].code);
        if (!strstr(answer.error->message, calls[i].said))
            g_error("\"%s\" says nothing of \"%s\"", answer.error->message, calls[i].said);
        answer_clear(&answer);
    }
    rpc_client_free(client);
}

static void test_daemon_absent(struct pair *pair, gconstpointer unused)
{
    struct answer answer = {0};

    g_clear_pointer(&pair->a->wconfd, rpc_server_free);
    host_call(pair->b, NODE_A, ROLE_WCONFD, "cluster_status", json_object(), &answer);
    world_wait(&answer.done);
    assert_error(&answer.error, UNREACHABLE, "nobody listens there");
}

/* Both dial at once: one link serves both, and no call is lost. */
static void test_both_dial(struct pair *pair, gconstpointer unused)
{
    enum { CALLS = 200 };
    struct answer *answers = g_new0(struct answer, CALLS);

    for (guint i = 0; i < CALLS; i++)
        host_ask_report(i % 2 == 0 ? pair->a : pair->b, i % 2 == 0 ? NODE_B : NODE_A, &answers[i]);
    for (guint i = 0; i < CALLS; i++) {
        world_wait(&answers[i].done);
        g_assert_no_error(answers[i].error);
        g_assert_cmpuint(answers[i].times, ==, 1);
        answer_clear(&answers[i]);
    }
    g_free(answers);
    g_assert_cmpuint(pair->a->lines->len, ==, 0);
    g_assert_cmpuint(pair->b->lines->len, ==, 0);
}

/* One side dials; the other uses that link. */
static void test_one_link(struct pair *pair, gconstpointer unused)
{
    struct answer forth = {0}, back = {0};

    host_ask_report(pair->b, NODE_A, &forth);
    world_wait(&forth.done);
    g_assert_true(bus_connected(pair->a->bus, NODE_B));
    g_assert_true(bus_connected(pair->b->bus, NODE_A));
    /* With the listener of B gone there is no other way than the link that B opened. */
    struct member *member = pair->a->members->pdata[1];
    member->port = world_free_port();
    host_ask_report(pair->a, NODE_B, &back);
    world_wait(&back.done);
    g_assert_no_error(back.error);
    answer_clear(&forth);
    answer_clear(&back);
}

static void test_master_link(struct pair *pair, gconstpointer unused)
{
    pair->b->master = NODE_A;
    pair->a->master = NODE_A;
    bus_members_changed(pair->b->bus);
    bus_members_changed(pair->a->bus);
    world_wait_count(&pair->b->master_seen, 1);
    world_wait_count(&pair->a->master_seen, 1);
    g_assert_true(bus_connected(pair->b->bus, NODE_A));
    host_stop(pair->a);
    world_wait_line(pair->b->lines, "link to node node-a lost");
    host_start(pair->a);
    world_wait_count(&pair->b->master_seen, 2);
    g_assert_cmpuint(pair->b->master_seen, ==, 2);
}

static void test_peer_dies(struct pair *pair, gconstpointer unused)
{
    struct answer waiting = {0}, next = {0}, again = {0};

    host_call(pair->b, NODE_A, ROLE_NODED, "guest_reset", host_guest_args(), &waiting);
    world_wait_count(&pair->a->kept->len, 1);
    host_stop(pair->a);
    world_wait(&waiting.done);
    assert_error(&waiting.error, UNKNOWN_RESULT, "connection lost after the request was sent");
    host_ask_report(pair->b, NODE_A, &next);
    world_wait(&next.done);
    assert_error(&next.error, UNREACHABLE, "not delivered: 127.0.0.1:");
    host_start(pair->a);
    do {
        answer_clear(&again);
        world_pause(20);
        host_ask_report(pair->b, NODE_A, &again);
        world_wait(&again.done);
    } while (again.error != NULL && fettle_error_is(again.error, UNREACHABLE));
    g_assert_no_error(again.error);
    answer_clear(&again);
}

/* A cut link: nothing comes any more, but no end either. A relay in between stands in for the
 * cable. */
struct cable {
    int listening;
    guint16 port, to_port;
    int ends[2]; /* from B, to A */
    int cut, held;
    GThread *thread;
};

static void *cable_run(void *data)
{
    struct cable *cable = data;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(cable->to_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char buffer[16384];

    cable->ends[0] = accept(cable->listening, NULL, NULL);
    cable->ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(connect(cable->ends[1], (struct sockaddr *)&address, sizeof address), ==, 0);
    while (!g_atomic_int_get(&cable->cut))
        for (int i = 0; i < 2; i++) {
            ssize_t got = g_atomic_int_get(&cable->held)
                              ? -1
                              : recv(cable->ends[i], buffer, sizeof buffer, MSG_DONTWAIT);
            if (got < 0)
                g_usleep(500);
            else if (got == 0 || send(cable->ends[1 - i], buffer, (size_t)got, MSG_NOSIGNAL) != got)
                return NULL;
        }
    return NULL;
}

static void cable_lay(struct cable *cable, guint16 to_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    *cable = (struct cable){.to_port = to_port, .ends = {-1, -1}};
    cable->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(cable->listening, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(cable->listening, 4), ==, 0);
    g_assert_cmpint(getsockname(cable->listening, (struct sockaddr *)&address, &len), ==, 0);
    cable->port = ntohs(address.sin_port);
    cable->thread = g_thread_new("cable", cable_run, cable);
}

static void test_cut_link(struct pair *pair, gconstpointer unused)
{
    struct answer waiting = {0}, next = {0};
    struct cable cable;

    cable_lay(&cable, (guint16)pair->a->config->port);
    struct member *member = pair->b->members->pdata[0];
    member->port = cable.port;
    host_call(pair->b, NODE_A, ROLE_NODED, "guest_reset", host_guest_args(), &waiting);
    world_wait_count(&pair->a->kept->len, 1);
    /* An idle link that is not cut lives on. */
    world_pause(DEAD_MS + 1000);
    g_assert_false(waiting.done);
    g_assert_true(bus_connected(pair->b->bus, NODE_A));
    close(cable.listening);
    g_atomic_int_set(&cable.cut, true);
    g_thread_join(cable.thread);
    world_wait(&waiting.done);
    assert_error(&waiting.error, UNKNOWN_RESULT, "no sign of life for 3000 ms");
    world_wait_line(pair->a->lines, "no sign of life for 3000 ms");
    g_assert_false(bus_connected(pair->b->bus, NODE_A));
    host_ask_report(pair->b, NODE_A, &next);
    world_wait(&next.done);
    assert_error(&next.error, UNREACHABLE, "not delivered");
    close(cable.ends[0]);
    close(cable.ends[1]);
}

/* --- whether a node is there at all --- */

/* A process that was stopped does nothing of what has come meanwhile: its peer has given it up. */
static void test_stopped(struct pair *pair, gconstpointer unused)
{
    struct answer first = {0}, late = {0}, next = {0};
    struct cable cable;

    cable_lay(&cable, (guint16)pair->a->config->port);
    struct member *member = pair->b->members->pdata[0];
    guint64 port = member->port;
    member->port = cable.port;
    host_ask_report(pair->b, NODE_A, &first);
    world_wait(&first.done);
    g_atomic_int_set(&cable.held, true);
    host_call(pair->b, NODE_A, ROLE_NODED, "guest_reset", host_guest_args(), &late);
    world_pause(PING_MS);
    g_atomic_int_set(&cable.held, false);
    g_usleep((DEAD_MS + 1000) * G_GUINT64_CONSTANT(1000));
    member->port = port;
    world_wait(&late.done);
    assert_error(&late.error, UNKNOWN_RESULT, "connection lost");
    host_ask_report(pair->b, NODE_A, &next);
    world_wait(&next.done);
    g_assert_no_error(next.error);
    g_assert_cmpuint(pair->a->kept->len, ==, 0);
    close(cable.listening);
    g_atomic_int_set(&cable.cut, true);
    g_thread_join(cable.thread);
    close(cable.ends[0]);
    close(cable.ends[1]);
    answer_clear(&first);
    answer_clear(&next);
}

static void ask_alive(struct host *from, const char *to, struct answer *answer)
{
    host_call(from, to, ROLE_NODED, "node_alive", json_object(), answer);
}

/* It was away for so long that nobody dials it at the moment, and comes back in the moment of the
 * question. */
static void test_fresh_after_failures(struct pair *pair, gconstpointer unused)
{
    struct answer away = {0}, back = {0};

    host_stop(pair->a);
    for (guint i = 0; i < 2; i++) { /* the second one is not even tried */
        answer_clear(&away);
        host_ask_report(pair->b, NODE_A, &away);
        world_wait(&away.done);
        assert_error(&away.error, UNREACHABLE, "not delivered");
    }
    host_start(pair->a);
    ask_alive(pair->b, NODE_A, &back);
    world_wait(&back.done);
    g_assert_no_error(back.error);
    answer_clear(&back);
}

/* A port at which nobody takes what comes: connecting to it hangs. */
static int deaf_port(guint16 *ret_port, int ret_callers[3])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(bind(listening, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(listening, 0), ==, 0);
    g_assert_cmpint(getsockname(listening, (struct sockaddr *)&address, &len), ==, 0);
    for (guint i = 0; i < 3; i++) {
        ret_callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(ret_callers[i], (struct sockaddr *)&address, sizeof address) != 0)
            g_assert_cmpint(errno, ==, EINPROGRESS);
    }
    *ret_port = ntohs(address.sin_port);
    return listening;
}

/* What was dialled before it came back hangs; the question does not wait for that. */
static void test_fresh_beside_a_dial(struct pair *pair, gconstpointer unused)
{
    struct answer hanging = {0}, silent = {0}, back = {0};
    struct member *member = pair->b->members->pdata[0];
    guint64 port = member->port;
    guint16 deaf = 0;
    int callers[3];
    int listening = deaf_port(&deaf, callers);

    member->port = deaf;
    host_ask_report(pair->b, NODE_A, &hanging);
    ask_alive(pair->b, NODE_A, &silent);
    world_wait(&silent.done);
    assert_error(&silent.error, UNREACHABLE, "not delivered");
    g_assert_false(hanging.done);
    member->port = port;
    ask_alive(pair->b, NODE_A, &back);
    world_wait(&back.done);
    g_assert_no_error(back.error);
    g_assert_false(hanging.done);
    close(listening);
    for (guint i = 0; i < 3; i++)
        close(callers[i]);
    world_wait(&hanging.done);
    assert_error(&hanging.error, UNREACHABLE, "not delivered");
    answer_clear(&back);
}

/* What is up is dead, which nobody has found out yet. */
static void test_fresh_beside_a_dead_link(struct pair *pair, gconstpointer unused)
{
    struct answer first = {0}, back = {0};
    struct cable cable;
    struct member *member = pair->b->members->pdata[0];

    cable_lay(&cable, (guint16)pair->a->config->port);
    member->port = cable.port;
    host_ask_report(pair->b, NODE_A, &first);
    world_wait(&first.done);
    g_assert_no_error(first.error);
    g_atomic_int_set(&cable.cut, true);
    g_thread_join(cable.thread);
    member->port = pair->a->config->port;
    world_pause(3 * PING_MS);
    ask_alive(pair->b, NODE_A, &back);
    world_wait(&back.done);
    g_assert_no_error(back.error);
    close(cable.listening);
    close(cable.ends[0]);
    close(cable.ends[1]);
    answer_clear(&first);
    answer_clear(&back);
}

/* --- who may come --- */

static void expect_refused(struct host *server, struct host *stranger, const char *line,
                           const char *answer_part)
{
    struct answer answer = {0}, fine = {0};

    if (stranger->bus == NULL)
        host_start(stranger);
    host_introduce(stranger, server);
    host_ask_report(stranger, server->uuid, &answer);
    world_wait(&answer.done);
    assert_error(&answer.error, UNREACHABLE, answer_part);
    world_wait_line(server->lines, line);
    g_assert_cmpuint(server->served, ==, 0);
    /* The daemon lives. */
    host_ask_report(server, NODE_LOCAL, &fine);
    world_wait(&fine.done);
    g_assert_no_error(fine.error);
    server->served = 0;
    answer_clear(&fine);
}

static void test_strangers(struct pair *pair, gconstpointer unused)
{
    g_autofree char *cert = g_build_filename(bus_ca_folder, "other.crt", NULL);
    g_autofree char *key = g_build_filename(bus_ca_folder, "other.key", NULL);
    g_autoptr(GError) error = NULL;

    /* Of our CA, of our cluster, but no member. */
    struct host *stranger = host_new(NODE_C);
    expect_refused(pair->a, stranger, "node " NODE_C " refused: it is no member of this cluster",
                   "refused by the peer: node " NODE_C " is no member of this cluster");
    host_free(stranger);

    /* Of our CA, but of another cluster. */
    stranger = host_new(NODE_C);
    host_write_certificates(stranger, bus_ca_cert, bus_ca_key, OTHER_CLUSTER, NODE_C);
    expect_refused(pair->a, stranger,
                   "its certificate is of the cluster " OTHER_CLUSTER ", this node is of " CLUSTER,
                   "not delivered");
    host_free(stranger);

    /* Of another CA that says all the right things. */
    certs_make_ca(cert, key, CLUSTER, &error);
    g_assert_no_error(error);
    stranger = host_new(NODE_C);
    host_write_certificates(stranger, cert, key, CLUSTER, NODE_B);
    expect_refused(pair->a, stranger, "it is signed by another CA", "not delivered");
    host_free(stranger);

    /* The certificate of a member, but the member that was dialled is another. */
    stranger = host_new(NODE_C);
    host_write_certificates(stranger, bus_ca_cert, bus_ca_key, CLUSTER, NODE_B);
    host_start(stranger);
    struct answer answer = {0};
    host_introduce(pair->a, stranger);
    host_ask_report(pair->a, NODE_C, &answer);
    world_wait(&answer.done);
    assert_error(&answer.error, UNREACHABLE,
                 "its certificate is of the node " NODE_B ", expected was " NODE_C);
    host_free(stranger);
}

/* Bytes that are no TLS, and a client without a certificate that says nothing; what such a client
 * may ask is in test_join.c. */
static void test_no_certificate(struct pair *pair, gconstpointer unused)
{
    g_autofree char *command = g_strdup_printf(
        "openssl s_client -connect 127.0.0.1:%u -quiet -tls1_2", (guint)pair->a->config->port);
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GError) error = NULL;

    g_autoptr(GSocketConnection) plain = g_socket_client_connect_to_host(
        client, "127.0.0.1", (guint16)pair->a->config->port, NULL, &error);
    g_assert_no_error(error);
    g_output_stream_write(g_io_stream_get_output_stream(G_IO_STREAM(plain)), "GET / HTTP/1.0\n\n",
                          16, NULL, NULL);
    world_wait_line(pair->a->lines, "bus: connection from 127.0.0.1:");
    g_ptr_array_set_size(pair->a->lines, 0);
    char *argv[] = {(char *)"sh", (char *)"-c", command, NULL};
    g_assert_true(
        g_spawn_async(NULL, argv, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL,
                      NULL, NULL, NULL, &error));
    world_wait_line(pair->a->lines, "which has no certificate: no hello within 5000 ms");
    g_assert_cmpuint(pair->a->served, ==, 0);
}

/* From 127.0.0.LAST. */
static int connect_silently(guint port, guint last)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((guint16)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in own = {.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | last)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(bind(fd, (const struct sockaddr *)&own, sizeof own), ==, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    while (g_main_context_iteration(NULL, FALSE))
        ; /* it is accepted before the next one comes */
    return fd;
}

static bool is_ended(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) >= 0;
}

static void expect_end(int fd)
{
    while (!is_ended(fd))
        world_pause(1);
    close(fd);
}

/* Of one address so many are kept, be it a member's; the next ones are ended, with one line. */
static void test_many_handshakes(struct pair *pair, gconstpointer unused)
{
    int silent[LIMIT_HANDSHAKES_ADDRESS];
    guint port = (guint)pair->a->config->port;

    for (guint i = 0; i < G_N_ELEMENTS(silent); i++)
        silent[i] = connect_silently(port, 1);
    for (guint i = 0; i < 3; i++)
        expect_end(connect_silently(port, 1));
    g_assert_cmpuint(pair->a->lines->len, ==, 1);
    g_assert_nonnull(
        strstr(pair->a->lines->pdata[0], "too many of its TLS handshakes are unfinished"));
    G_STATIC_ASSERT(LIMIT_HANDSHAKES_ADDRESS == 16);
    for (guint i = 0; i < G_N_ELEMENTS(silent); i++) {
        g_assert_false(is_ended(silent[i]));
        close(silent[i]);
    }
}

/* Strangers that say nothing are as many as they like; a member's new link is there all the same,
 * while they wait. */
static void test_silent_strangers(struct pair *pair, gconstpointer unused)
{
    struct answer answer = {0};
    int silent[400];
    guint port = (guint)pair->a->config->port, kept = 0;

    for (guint i = 0; i < G_N_ELEMENTS(silent); i++)
        silent[i] = connect_silently(port, 2 + i % 40);
    host_ask_report(pair->b, NODE_A, &answer);
    world_wait(&answer.done);
    g_assert_no_error(answer.error);
    answer_clear(&answer);
    for (guint i = 0; i < G_N_ELEMENTS(silent); i++) {
        kept += is_ended(silent[i]) ? 0 : 1;
        close(silent[i]);
    }
    g_assert_cmpuint(kept, ==, MOST_HANDSHAKES);
    G_STATIC_ASSERT(LIMIT_HANDSHAKES == 256);
    g_assert_cmpuint(pair->a->lines->len, <=, 40);
}

/* A node that has no members yet lets in every node of its cluster, so that the master can announce
 * itself. */
static void test_newcomer(struct pair *pair, gconstpointer unused)
{
    struct answer answer = {0};
    struct host *fresh = host_new(NODE_C);

    host_start(fresh);
    host_introduce(pair->a, fresh);
    host_ask_report(pair->a, NODE_C, &answer);
    world_wait(&answer.done);
    g_assert_no_error(answer.error);
    answer_clear(&answer);
    /* Once it knows the members and A is none of them, the link ends. */
    host_introduce(fresh, fresh);
    world_wait_line(fresh->lines, "the node is no member any more");
    g_assert_false(bus_connected(fresh->bus, NODE_A));
    host_free(fresh);
}

/* A noded that claims to be another node than its certificate says. */
static void test_false_from(struct pair *pair, gconstpointer unused)
{
    /* A local daemon may not name another node either; only noded relays. */
    g_autofree char *path = node_paths_socket(pair->b->paths, ROLE_NODED);
    g_autoptr(GError) error = NULL;
    int fd = unix_connect(path, &error);
    static const char bytes[] =
        "{\"hello\":{\"versions\":[1,1],\"from\":\"" NODE_B "/noded\"}}\x03"
        "{\"v\":1,\"id\":5,\"history\":1,\"epoch\":1,\"from\":\"" NODE_C "/job\",\"to\":\"" NODE_A
        "/noded\",\"method\":\"node_report\",\"args\":{}}\x03";

    g_assert_no_error(error);
    g_assert_cmpint(send(fd, bytes, sizeof bytes - 1, 0), ==, sizeof bytes - 1);
    while (pair->a->served == 0)
        world_pause(5);
    /* What leaves this host carries this host's name. */
    g_assert_cmpstr(pair->a->served_from, ==, NODE_B "/job/0");
    close(fd);
}

/* --- start --- */

static void test_bad_start(void)
{
    struct host *node = host_new(NODE_A);
    struct bus_options options = host_options(node);
    g_autofree char *key = g_build_filename(node->paths->etc, "node.key", NULL);
    g_autofree char *ca = g_build_filename(node->paths->etc, "ca.crt", NULL);
    g_autoptr(GError) error = NULL;

    struct host *other = host_new(NODE_B);
    other->config->port = node->config->port;
    host_start(other);
    g_assert_null(bus_new(&options, &error));
    assert_error(&error, ENVIRONMENT, "free the port");
    host_free(other);
    text_set(&node->config->address, "192.0.2.1");
    g_assert_null(bus_new(&options, &error));
    assert_error(&error, ENVIRONMENT, "bring the address up on this host");
    text_set(&node->config->address, "127.0.0.1");

    g_assert_true(g_file_set_contents(ca, "no certificate", -1, NULL));
    g_assert_null(bus_new(&options, &error));
    assert_error(&error, CORRUPT, "ca.crt: ");
    g_assert_true(g_file_set_contents(key, "no key", -1, NULL));
    g_assert_null(bus_new(&options, &error));
    assert_error(&error, CORRUPT, "put back the node's certificate and key");
    g_unlink(key);
    g_assert_null(bus_new(&options, &error));
    assert_error(&error, CORRUPT, "node.key");
    host_free(node);
}

static void test_subjects(void)
{
    static const char *const bad[] = {
        NULL,
        "",
        "CN=" NODE_A,
        "O=" CLUSTER,
        "CN=" NODE_A ",O=" CLUSTER ",OU=x",
        "CN=" NODE_A ",CN=" NODE_B,
        "CN=web1,O=" CLUSTER,
        "CN=" NODE_A ",O=" CLUSTER "+OU=x",
        "OU=" NODE_A ",O=" CLUSTER,
    };
    char *cluster = NULL, *node = NULL;
    g_autoptr(GError) error = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(certs_parse_subject(bad[i], &cluster, &node, &error));
        assert_error(&error, PERMISSION, "it must be O=<cluster uuid>, CN=<node uuid>");
    }
    g_assert_true(certs_parse_subject("CN=" NODE_A ",O=" CLUSTER, &cluster, &node, &error));
    g_assert_cmpstr(cluster, ==, CLUSTER);
    g_assert_cmpstr(node, ==, NODE_A);
    g_free(cluster);
    g_free(node);
    g_assert_false(certs_make_ca("/nonexistent/ca.crt", "/nonexistent/ca.key", CLUSTER, &error));
    assert_error(&error, ENVIRONMENT, "openssl genpkey failed");
}

#define ADD(path, fn) ADD_WITH(path, fn, 0)
#define ADD_WITH(path, fn, dead_ms)                                                                \
    g_test_add(path, struct pair, GUINT_TO_POINTER(dead_ms), pair_set_up, fn, pair_tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    bus_make_authority();
    ADD("/bus/ways#SAF-05", test_ways);
    ADD("/bus/refused#SAF-05", test_refused);
    ADD("/bus/front-end#SAF-100", test_front_end);
    ADD("/bus/daemon-absent", test_daemon_absent);
    ADD("/bus/both-dial", test_both_dial);
    ADD("/bus/one-link", test_one_link);
    ADD("/bus/master-link", test_master_link);
    ADD("/bus/peer-dies#SAF-04", test_peer_dies);
    ADD_WITH("/bus/cut-link#SAF-04", test_cut_link, DEAD_MS);
    ADD_WITH("/bus/stopped#SAF-04,SAF-81", test_stopped, DEAD_MS);
    ADD("/bus/strangers", test_strangers);
    ADD("/bus/no-certificate", test_no_certificate);
    ADD("/bus/many-handshakes#SAF-109", test_many_handshakes);
    ADD("/bus/silent-strangers#SAF-109", test_silent_strangers);
    ADD("/bus/newcomer", test_newcomer);
    ADD("/bus/false-from", test_false_from);
    ADD("/bus/fresh/after-failures", test_fresh_after_failures);
    ADD("/bus/fresh/beside-a-dial", test_fresh_beside_a_dial);
    ADD("/bus/fresh/beside-a-dead-link", test_fresh_beside_a_dead_link);
    g_test_add_func("/bus/bad-start", test_bad_start);
    g_test_add_func("/bus/subjects", test_subjects);
    int result = g_test_run();
    bus_remove_authority();
    return result;
}
