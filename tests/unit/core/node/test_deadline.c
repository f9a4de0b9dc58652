/*
 * Tests of core/node/deadline.c, and of stop.c by it: a guest that is to be stopped within some
 * time is stopped then, whatever its process answers and from when on it does not, and nothing is
 * lost by it (node_world.h checks that).
 */
#include "core/node/deadline.h"
#include "helper/node_world.h"

#define MORE_MS 2000    /* than the guest's own time */
#define SILENCE_MS 5000 /* that a process with a promised copy is allowed */
#define DEAF_MS 0

static gint64 now_ms(const struct node_world *nw)
{
    return nw->job->ops->boot_ms(nw->job);
}

static struct node_world *world_with_guest(bool replica, guint powerdown_ms)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    if (replica) {
        nw_create_and_start(nw);
    } else {
        nw_create(nw, NODE_A, "", 1, &error);
        nw_start(nw, &error);
    }
    g_assert_no_error(error);
    nw_pass(nw, 500);
    fake_host_set_powerdown_ms(nw->a.host, powerdown_ms);
    return nw;
}

static bool answer_is(const json_t *answer, const char *member)
{
    return json_is_true(json_object_get(answer, member));
}

/* Every call that the process answers itself, as the one that is never answered: NULL stands for
 * all of them, from before the stop on. */
static const char *const silent_calls[] = {NULL, "powerdown", "pause", "mirror_finish", "io_query"};

static void check_held(bool replica, guint timeout_ms, const char *call)
{
    struct node_world *nw = world_with_guest(replica, DEAF_MS);
    fake_host_hang(nw->a.host, call ? call : WEB1, true);
    struct fake_reply reply;
    gint64 began = now_ms(nw);
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, timeout_ms), &reply);
    nw_until(nw, reply.done);
    gint64 took = now_ms(nw) - began, most = timeout_ms + MORE_MS;
    /* One that has answered until then, or that is ended at once, is not so soon taken for hung. */
    if (replica && (call || timeout_ms == 0))
        most += SILENCE_MS;
    if (took > most)
        g_error("%s, %s, %u ms: took %d ms", call ? call : "all", replica ? "replica" : "alone",
                timeout_ms, (int)took);
    g_assert_no_error(reply.error);
    g_assert_true(answer_is(reply.result, "forced"));
    fake_host_hang(nw->a.host, NULL, false);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    if (replica)
        g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    fake_reply_clear(&reply);
    nw_pass(nw, 10000);
    node_world_free(nw);
}

static void test_held(void)
{
    static const guint timeouts[] = {0, 1000, 3000, 20000};
    for (guint i = 0; i < G_N_ELEMENTS(silent_calls); i++)
        for (guint n = 0; n < G_N_ELEMENTS(timeouts); n++)
            for (int replica = 0; replica < 2; replica++)
                check_held(replica, timeouts[n], silent_calls[i]);
}

/* Silent from the beginning, with a copy: it is asked nothing that it cannot do. */
static void test_held_with_a_replica(void)
{
    struct node_world *nw = world_with_guest(true, DEAF_MS);
    g_autoptr(GError) error = NULL;
    fake_host_hang(nw->a.host, WEB1, true);
    gint64 began = now_ms(nw);
    json_autoptr answer = nw_call(nw, &nw->a, "guest_stop", nw_stop_args(nw, 6000), &error);
    g_assert_no_error(error);
    g_assert_cmpint(now_ms(nw) - began, <=, 6000 + MORE_MS);
    g_assert_false(answer_is(answer, "clean"));
    g_assert_cmpuint(fake_host_count(nw->a.host, "pause"), ==, 0);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_finish"), ==, 0);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    node_world_free(nw);
}

/* It answers again while there is time: then it is asked, and closed as any other. */
static void test_answers_again(void)
{
    for (int replica = 0; replica < 2; replica++) {
        struct node_world *nw = world_with_guest(replica, 20);
        struct fake_reply reply;
        fake_host_hang(nw->a.host, WEB1, true);
        nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 60000), &reply);
        nw_pass(nw, 31000);
        g_assert_false(reply.done);
        fake_host_hang(nw->a.host, WEB1, false);
        nw_until(nw, reply.done);
        g_assert_no_error(reply.error);
        g_assert_false(answer_is(reply.result, "forced"));
        g_assert_true(answer_is(reply.result, "clean") == (replica != 0));
        fake_reply_clear(&reply);
        node_world_free(nw);
    }
}

/* A process that answers, but takes its time, is closed clean also by force: what would be on
 * record of its images otherwise keeps the next start from them. */
static void test_slow(void)
{
    static const char *const slow[] = {"pause", "mirror_finish", "query"};
    for (guint i = 0; i < G_N_ELEMENTS(slow); i++) {
        struct node_world *nw = world_with_guest(true, DEAF_MS);
        struct fake_reply reply;
        fake_host_hang(nw->a.host, slow[i], true);
        nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 0), &reply);
        nw_pass(nw, 3000);
        fake_host_hang(nw->a.host, slow[i], false);
        nw_until(nw, reply.done);
        g_assert_no_error(reply.error);
        g_assert_true(answer_is(reply.result, "clean"));
        fake_reply_clear(&reply);
        node_world_free(nw);
    }
}

/* Whoever asked for it may give it up, and the guest is left alone. */
static void test_given_up(void)
{
    struct node_world *nw = world_with_guest(true, 20);
    struct fake_reply reply;
    fake_host_hang(nw->a.host, WEB1, true);
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 600000), &reply);
    nw_pass(nw, 10000);
    json_autoptr heard =
        nw_call_as_job(nw, &nw->a, 1, "work_cancel", json_make("{ss}", "instance", WEB1));
    nw_until(nw, reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_CANCELED);
    g_assert_cmpstr(reply.error->message, ==,
                    "instance web1 was asked to shut down and has not done so; it was left alone, "
                    "as its job was canceled");
    fake_reply_clear(&reply);
    fake_host_hang(nw->a.host, WEB1, false);
    nw_pass(nw, 10000);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_RUNNING);
    node_world_free(nw);
}

/* The daemon dies at any moment while something is asked that is not answered. */
static void test_daemon_dies(void)
{
    for (guint ms = 0; ms < 9000; ms += 750) {
        struct node_world *nw = world_with_guest(true, DEAF_MS);
        struct fake_reply reply;
        fake_host_hang(nw->a.host, WEB1, true);
        nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 6000), &reply);
        nw_pass(nw, ms);
        nw_daemon_kill(nw, &nw->a);
        fake_host_hang(nw->a.host, WEB1, false);
        nw_daemon_start(nw, &nw->a);
        nw_until(nw, reply.done);
        fake_reply_clear(&reply);
        nw_pass(nw, 5000);
        node_world_free(nw);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/deadline/held-whatever-is-silent#SAF-15,SAF-91", test_held);
    g_test_add_func("/deadline/held-with-a-replica#SAF-13,SAF-15", test_held_with_a_replica);
    g_test_add_func("/deadline/answers-again#SAF-11", test_answers_again);
    g_test_add_func("/deadline/slow#SAF-11,SAF-24", test_slow);
    g_test_add_func("/deadline/given-up#SAF-11", test_given_up);
    g_test_add_func("/deadline/daemon-dies#SAF-11,SAF-13", test_daemon_dies);
    return g_test_run();
}
