/*
 * What comes back from the dead: core/node reconcile.c, and every procedure with the node daemon
 * killed, or the power cut, at each of its steps.
 */
#include "base/sm.h"
#include "unit/core/world/guest_steps.h"
#include "unit/core/world/node_chaos.h"

static void assert_goes_on(struct node_world *nw)
{
    guint64 before = fake_hosts_acknowledged(nw->hosts, WEB1);
    nw_pass(nw, 1000);
    g_assert_cmpuint(fake_hosts_acknowledged(nw->hosts, WEB1), >, before);
}

static void fail_over_record(struct node_world *nw)
{
    nw->web1.generation++;
    nw->web1.primary = nw->web1.holder = NODE_B;
    nw->web1.secondary = "";
}

static bool has_leftover(struct node_world *nw, struct test_node *node, const char *wanted)
{
    json_autoptr report = nw_report(nw, node);
    json_t *names = json_object_get(report, "leftovers");
    for (size_t i = 0; i < json_array_size(names); i++)
        if (strcmp(json_string_value(json_array_get(names, i)), wanted) == 0)
            return true;
    return false;
}

/* --- guests --- */

static void test_restart_adopts(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_daemon_kill(nw, &nw->a);
    assert_goes_on(nw); /* guests do not need it */
    guint asked = fake_count_calls(nw->world, NODE_M "/wconfd confirm");
    nw_daemon_start(nw, &nw->a);
    g_assert_cmpuint(fake_count_calls(nw->world, NODE_M "/wconfd confirm"), ==, asked + 1);
    g_assert_true(runs(&nw->a, 2));
    /* Its mirror is watched again. */
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 100);
    assert_goes_on(nw);
    node_world_free(nw);
}

static void test_no_answer_nothing_changes(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fail_over_record(nw); /* which the node cannot hear of */
    nw->mood = MASTER_DEPOSED;
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_kill(nw, &nw->b);
    nw_daemon_start(nw, &nw->a);
    nw_daemon_start(nw, &nw->b);
    nw_pass(nw, 20000);
    g_assert_true(runs(&nw->a, 2));
    g_assert_true(fake_host_exports(nw->b.host, WEB1));
    /* Nor does it act for a job on what it has not been told about. */
    json_t *answer = nw_call(nw, &nw->a, "guest_reset",
                             json_make("{s:s,s:i}", "instance", WEB1, "generation", 2), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
    g_assert_cmpstr(error->message, ==,
                    "the master has not confirmed instance 11111111-1111-4111-8111-111111111111 "
                    "since the node daemon began (the master is another node); nothing was "
                    "changed, try again");
    nw->mood = MASTER_ANSWERS;
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    nw_until(nw, !fake_host_exports(nw->b.host, WEB1));
    node_world_free(nw);
}

static void test_superseded_is_set_aside(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_pass(nw, 200);
    nw_cut(nw, &nw->a, true);
    fail_over_record(nw);
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 7000);
    g_assert_true(runs(&nw->a, 2));
    nw_cut(nw, &nw->a, false);
    node_core_master_reachable(nw->a.core);
    nw_pass(nw, 200);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    g_assert_true(has_leftover(nw, &nw->a, WEB1 " 2"));
    /* And it is not started again. */
    g_autoptr(GError) error = NULL;
    nw->web1.primary = nw->web1.holder = NODE_A;
    nw->web1.generation = 2;
    json_t *answer =
        nw_call(nw, &nw->a, "guest_start", nw_start_args(nw, NULL, true, true), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
    node_world_free(nw);
}

static void assert_states(struct node_world *nw, const char *wanted)
{
    g_autofree char *said = nw_statement(nw, &nw->a);
    g_assert_cmpstr(said, ==, wanted);
}

/* What a master that may lack words of the one before is told, at each turn of a replica's life. */
static void test_states_its_guests(void)
{
    struct node_world *nw = node_world_new(1);
    assert_states(nw, "");
    nw_create_and_start(nw);
    g_autofree char *in_sync =
        g_strdup_printf("g2 runs, replica in-sync told s%u", (guint)nw->web1.sync);
    assert_states(nw, in_sync);
    /* A younger daemon knows the mirror only, until a master has answered it. */
    nw->mood = MASTER_DEPOSED;
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_announce(nw, &nw->a, NULL);
    g_autofree char *looks = nw_statement(nw, &nw->a);
    g_assert_true(g_str_has_prefix(looks, "g2 runs, replica "));
    g_assert_null(strstr(looks, "told"));
    nw->mood = MASTER_ANSWERS;
    nw_pass(nw, 6000);
    /* It goes on without its replica, which nobody but it may know. */
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 1000);
    assert_states(nw, "g2 runs, no replica stale s0");
    nw_daemon_kill(nw, &nw->a);
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_announce(nw, &nw->a, NULL);
    assert_states(nw, "g2, no replica stale s0");
    node_world_free(nw);
}

/* The generation that it got from a master who is lost was given again, to another node. */
static void test_same_number(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw->web1.primary = nw->web1.holder = NODE_B;
    nw->web1.secondary = "";
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    nw_until(nw, has_leftover(nw, &nw->a, WEB1 " 2"));
    node_world_free(nw);
}

/* After a power cut no process lives; the record alone tells whose images these are. */
static void test_images_after_power_cut(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_pass(nw, 200);
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 6000);
    g_assert_true(fake_host_has_image(nw->a.host, WEB1, "")); /* nothing is newer */
    nw->web1.generation++;                                    /* nor is a stop by the record */
    nw->web1.holder = "";
    nw_pass(nw, 6000);
    g_assert_true(fake_host_has_image(nw->a.host, WEB1, ""));
    fail_over_record(nw);
    nw_pass(nw, 6000);
    g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    g_assert_true(has_leftover(nw, &nw->a, WEB1 " 2"));
    node_world_free(nw);
}

static void test_removed_while_away(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_cut(nw, &nw->a, true);
    nw_cut(nw, &nw->b, true);
    nw_pass(nw, 1000);
    nw->web1.removed = true;
    nw->web1.generation++;
    nw_cut(nw, &nw->a, false);
    nw_cut(nw, &nw->b, false);
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    nw_until(nw, !fake_host_exports(nw->b.host, WEB1));
    nw_until(nw, !fake_host_has_image(nw->b.host, WEB1, nw->web1.replica));
    nw_until(nw, !fake_host_has_image(nw->a.host, WEB1, ""));
    node_world_free(nw);
}

/* A kill that fails is repeated, and images are left alone until the exit was seen. */
static void test_kill_fails(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fail_over_record(nw);
    fake_host_fault(nw->a.host, "kill", FAKE_FAULT_SILENT, 2);
    nw_pass(nw, 6000);
    g_assert_true(runs(&nw->a, 2));
    g_assert_true(fake_host_has_image(nw->a.host, WEB1, ""));
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    nw_until(nw, !fake_host_has_image(nw->a.host, WEB1, ""));
    node_world_free(nw);
}

/* Two that are hopeless from the start: an older process than the record, and one that never ran.
 */
static bool die_after_prepare(struct fake_host *host, const char *op, bool after, void *data)
{
    bool *dead = data;
    *dead = *dead || (after && strcmp(op, "prepare") == 0);
    return *dead;
}

/* A daemon of node A that dies when its guest is prepared and does not run yet. */
static struct node_world *die_prepared(struct fake_reply *ret_reply)
{
    struct node_world *nw = node_world_new(1);
    bool dead = false;
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    fake_host_set_hook(nw->a.host, die_after_prepare, &dead);
    nw_call_start(nw, &nw->a, "guest_start", nw->stamp, nw_start_args(nw, NULL, true, true),
                  ret_reply);
    nw_until(nw, dead);
    nw_daemon_kill(nw, &nw->a);
    return nw;
}

static void test_never_ran(void)
{
    struct fake_reply reply;
    struct node_world *nw = die_prepared(&reply);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_RESULT);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_PREPARED);
    nw_daemon_start(nw, &nw->a);
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* Stuck in its disk: the node daemon starts all the same, and nothing opens the images meanwhile.
 */
static void test_never_ran_stuck(void)
{
    g_autoptr(GError) error = NULL;
    struct fake_reply reply;
    struct node_world *nw = die_prepared(&reply);
    fake_host_fault(nw->a.host, "kill", FAKE_FAULT_FAILS, 2);
    nw_daemon_start(nw, &nw->a);
    nw_commit_start(nw);
    json_t *answer =
        nw_call(nw, &nw->a, "guest_start", nw_start_args(nw, NULL, true, true), &error);
    g_assert_null(answer);
    g_assert_cmpstr(error->message, ==,
                    "generation 2 could not be ended: kill: failed as the test wanted");
    g_clear_error(&error);
    answer = nw_call(nw, &nw->a, "guest_start", nw_start_args(nw, NULL, true, true), &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->a, 3));
    json_decref(answer);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* Its file was lost with a damaged disk: the process is found and judged all the same. */
static void test_file_lost(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_start(nw, &error);
    g_assert_no_error(error);
    nw_daemon_kill(nw, &nw->a);
    fake_file_put(nw->world, NODE_A, FILE_STATE, "node/guests/" WEB1 ".json",
                  "{\"instance\":\"" WEB1 "\"}");
    nw_daemon_start(nw, &nw->a);
    json_autoptr again =
        nw_call(nw, &nw->a, "guest_start", nw_start_args(nw, NULL, true, true), &error);
    g_assert_no_error(error);
    g_assert_nonnull(again);
    g_assert_cmpuint(fake_host_count(nw->a.host, "prepare"), ==, 1);
    fail_over_record(nw);
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    node_world_free(nw);
}

/* The same with a mirror: where it goes is forgotten, so the replica is given up, in the right
 * order. */
static void test_file_lost_mirrored(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_daemon_kill(nw, &nw->a);
    fake_file_put(nw->world, NODE_A, FILE_STATE, "node/guests/" WEB1 ".json",
                  "{\"instance\":\"" WEB1 "\"}");
    nw_daemon_start(nw, &nw->a);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    assert_goes_on(nw);
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* --- exports --- */

static void test_export_found_again(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_daemon_kill(nw, &nw->b);
    nw_daemon_start(nw, &nw->b);
    nw_pass(nw, 6000);
    g_assert_true(fake_host_exports(nw->b.host, WEB1));
    g_assert_cmpuint(fake_host_count(nw->b.host, "export_open"), ==, 1);
    json_autoptr report = nw_report(nw, &nw->b);
    const json_t *replica = json_array_get(json_object_get(report, "replicas"), 0);
    g_assert_true(json_is_true(json_object_get(replica, "exported")));
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    node_world_free(nw);
}

static void test_export_not_reopened(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_power_cut(nw, &nw->b);
    nw_daemon_start(nw, &nw->b);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 6000);
    g_assert_false(fake_host_exports(nw->b.host, WEB1));
    g_assert_true(fake_host_has_image(nw->b.host, WEB1, nw->web1.replica));
    json_autoptr report = nw_report(nw, &nw->b);
    const json_t *replica = json_array_get(json_object_get(report, "replicas"), 0);
    g_assert_true(json_is_false(json_object_get(replica, "exported")));
    node_world_free(nw);
}

static void test_replaced_replica_set_aside(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    g_autofree char *old = g_strdup(nw->web1.replica);
    nw_power_cut(nw, &nw->b);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw->web1.secondary = ""; /* it moved to a third node */
    nw_daemon_start(nw, &nw->b);
    nw_until(nw, !fake_host_has_image(nw->b.host, WEB1, old));
    g_assert_true(has_leftover(nw, &nw->b, WEB1 " 2"));
    node_world_free(nw);
}

/* --- killed at each step --- */

/* What the watcher and a person do when faults have stopped: the guest runs, once, with a replica.
 */
static void make_whole(struct node_world *nw)
{
    nw->each_step = NULL;
    nw->mood = MASTER_ANSWERS;
    nw_cut(nw, &nw->a, false);
    nw_cut(nw, &nw->b, false);
    struct test_node *nodes[] = {&nw->a, &nw->b};
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        fake_host_set_hook(nodes[i]->host, NULL, NULL);
        fake_host_set_powerdown_ms(nodes[i]->host, 20);
        fake_host_clear_faults(nodes[i]->host);
        if (!nodes[i]->env)
            nw_daemon_start(nw, nodes[i]);
        nw_until(nw, nw_announce(nw, nodes[i], NULL)); /* it may still be starting */
    }
    nw_pass(nw, 7000);
    g_autoptr(GError) error = NULL;
    if (!guest_reported(nw))
        nw_start(nw, &error);
    g_assert_no_error(error);
    nw_pass(nw, 3000);
    if (!*nw->web1.secondary || nw->web1.state == REPLICA_STALE)
        nw_replace_replica(nw, &error);
    g_assert_no_error(error);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    nw_until(nw, fake_hosts_running(nw->hosts, WEB1) == 1);
    assert_goes_on(nw);
    nw_stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(nw->web1.clean);
    g_assert_true(fake_hosts_equal(nw->hosts, WEB1, nw->web1.primary, "", nw->web1.secondary,
                                   nw->web1.replica));
}

typedef bool (*job_procedure)(struct node_world *nw, GError **error);

static bool stop_it(struct node_world *nw, GError **error)
{
    return nw_stop(nw, 5000, error);
}

static bool stop_and_start(struct node_world *nw, GError **error)
{
    return nw_stop(nw, 5000, error) && nw_start(nw, error);
}

static bool lose_replica(struct node_world *nw, GError **error)
{
    nw_cut(nw, &nw->b, true);
    nw_pass(nw, 4000);
    nw_cut(nw, &nw->b, false);
    return true;
}

static bool fail_over(struct node_world *nw, GError **error)
{
    nw_cut(nw, &nw->a, true);
    nw_pass(nw, 100);
    bool ok = nw_failover(nw, error);
    nw_cut(nw, &nw->a, false);
    nw_pass(nw, 6000);
    return ok;
}

static bool restart_daemons(struct node_world *nw, GError **error)
{
    nw_daemon_kill(nw, &nw->b);
    nw_daemon_start(nw, &nw->b);
    nw_pass(nw, 6000);
    return true;
}

/* Runs the procedure with the daemon of `uuid` killed at its n-th step; false: it has fewer steps.
 */
static bool run_killed_at(job_procedure procedure, const char *uuid, guint n, bool power)
{
    struct node_world *nw = node_world_new(n);
    struct killer killer = {.node = nw_node(nw, uuid), .countdown = n};
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 200);
    killer_begin(nw, &killer);
    procedure(nw, &error);
    nw_pass(nw, 50);
    bool died = killer.dead;
    if (died && power)
        nw_power_cut(nw, killer.node);
    make_whole(nw);
    node_world_free(nw);
    return died;
}

static void each_step(job_procedure procedure)
{
    static const char *const nodes[] = {NODE_A, NODE_B};
    guint all = 0;
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++)
        for (guint power = 0; power < 2; power++) {
            guint n = 0;
            while (n < MOST_STEPS && run_killed_at(procedure, nodes[i], n, power))
                n++;
            g_assert_cmpuint(n, <, MOST_STEPS);
            all += n;
        }
    g_test_message("%u deaths", all);
    g_assert_cmpuint(all, >, 0);
}

static void test_killed_in_stop(void)
{
    each_step(stop_it);
}

static void test_killed_in_start(void)
{
    each_step(stop_and_start);
}

static void test_killed_while_losing(void)
{
    each_step(lose_replica);
}

static void test_killed_in_failover(void)
{
    each_step(fail_over);
}

static void test_killed_in_replace(void)
{
    each_step(nw_replace_replica);
}

static void test_killed_in_return(void)
{
    each_step(restart_daemons);
}

/* --- anything at any time --- */

#define SEEDS (g_strcmp0(g_getenv("FETTLE_LONG"), "1") == 0 ? 1000u : 150u)
#define ROUNDS 6

static const char *const calls[] = {
    "prepare",        "run",  "query", "mirror_start", "probe",        "pause", "mirror_finish",
    "mirror_release", "kill", "sync",  "export_open",  "export_close", NULL};

static void own_fault(struct node_world *nw, struct chaos *chaos, struct test_node *node,
                      guint which)
{
    if (which == 0)
        nw->mood = MASTER_ANSWERS;
    else if (which == 1)
        fake_host_guest_poweroff(node->host, WEB1);
    else if (pick(chaos, 2))
        fake_host_export_fail(node->host, WEB1);
    else
        fake_host_set_powerdown_ms(node->host, pick(chaos, 2) * 20);
}

static void one_job(struct node_world *nw, struct chaos *chaos)
{
    struct master_record *web1 = &nw->web1;
    g_autoptr(GError) error = NULL;
    switch (pick(chaos, 5)) {
    case 0:
        if (*web1->holder)
            nw_stop(nw, pick(chaos, 2) * 2000, &error);
        break;
    case 1:
        nw_start(nw, &error);
        break;
    case 2:
        if (*web1->secondary && web1->state == REPLICA_IN_SYNC)
            nw_failover(nw, &error);
        break;
    case 3:
        if (*web1->holder)
            nw_replace_replica(nw, &error);
        break;
    default:
        nw_pass(nw, 1000 + pick(chaos, 4000));
        break;
    }
}

static void one_seed(guint seed)
{
    struct node_world *nw = node_world_new(seed);
    struct chaos chaos = {
        .random = g_rand_new_with_seed(seed), .every = 120, .calls = calls, .own = own_fault};
    nw_create_and_start(nw);
    chaos_begin(nw, &chaos);
    for (guint i = 0; i < ROUNDS; i++)
        one_job(nw, &chaos);
    make_whole(nw);
    node_world_free(nw);
    g_rand_free(chaos.random);
}

static void test_random(void)
{
    const char *only = g_getenv("FETTLE_TEST_SEED");
    guint first = only ? (guint)g_ascii_strtoull(only, NULL, 10) : 0;
    for (guint seed = first; seed < (only ? first + 1 : SEEDS); seed++) {
        g_test_message("seed %u", seed);
        one_seed(seed);
    }
}

static void ignore_log(const char *line, void *data)
{
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    sm_set_sink(ignore_log, NULL);
    g_test_add_func("/return/restart-adopts#SAF-19,SAF-13", test_restart_adopts);
    g_test_add_func("/return/no-answer-nothing-changes#SAF-04,SAF-19",
                    test_no_answer_nothing_changes);
    g_test_add_func("/return/superseded-is-set-aside#SAF-19,SAF-10", test_superseded_is_set_aside);
    g_test_add_func("/return/states-its-guests#SAF-09", test_states_its_guests);
    g_test_add_func("/return/same-number#SAF-09,SAF-10", test_same_number);
    g_test_add_func("/return/images-after-power-cut#SAF-19", test_images_after_power_cut);
    g_test_add_func("/return/removed-while-away#SAF-19", test_removed_while_away);
    g_test_add_func("/return/kill-fails#SAF-19", test_kill_fails);
    g_test_add_func("/return/never-ran#SAF-10,SAF-19", test_never_ran);
    g_test_add_func("/return/never-ran-stuck#SAF-10,SAF-19", test_never_ran_stuck);
    g_test_add_func("/return/file-lost#SAF-19", test_file_lost);
    g_test_add_func("/return/file-lost-mirrored#SAF-13,SAF-19", test_file_lost_mirrored);
    g_test_add_func("/return/export-found-again#SAF-14,SAF-19", test_export_found_again);
    g_test_add_func("/return/export-not-reopened#SAF-14,SAF-19", test_export_not_reopened);
    g_test_add_func("/return/replaced-replica-set-aside#SAF-19", test_replaced_replica_set_aside);
    g_test_add_func("/return/killed-in-stop#SAF-11,SAF-13,SAF-20", test_killed_in_stop);
    g_test_add_func("/return/killed-in-start#SAF-10,SAF-13,SAF-20", test_killed_in_start);
    g_test_add_func("/return/killed-while-losing#SAF-13,SAF-19", test_killed_while_losing);
    g_test_add_func("/return/killed-in-failover#SAF-16,SAF-13,SAF-20", test_killed_in_failover);
    g_test_add_func("/return/killed-in-replace#SAF-18,SAF-13,SAF-20", test_killed_in_replace);
    g_test_add_func("/return/killed-in-return#SAF-19,SAF-13", test_killed_in_return);
    g_test_add_func("/return/random#SAF-10,SAF-11,SAF-12,SAF-13,SAF-16,SAF-19", test_random);
    return g_test_run();
}
