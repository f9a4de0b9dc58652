/* Starting and stopping guests: core/node lifecycle.c and stop.c. */
#include "unit/core/world/guest_steps.h"

/* --- start --- */

static void test_start_stop_start(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    g_assert_true(runs(&nw->a, 2));
    nw_pass(nw, 500);
    g_assert_cmpuint(fake_hosts_acknowledged(nw->hosts, WEB1), >, 10);

    nw_stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(nw->web1.clean);
    g_assert_true(fake_hosts_equal(nw->hosts, WEB1, NODE_A, "", NODE_B, nw->web1.replica));
    g_assert_false(fake_host_exports(nw->b.host, WEB1));

    /* After a clean close nothing is copied: ready at once, in-sync all along. */
    guint64 sync = nw->web1.sync;
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->a, 4));
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    g_assert_cmpuint(nw->web1.sync, ==, sync + 1);
    nw_pass(nw, 500);
    node_world_free(nw);
}

static void test_start_diskless(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 0, &error);
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->a, 2));
    json_autoptr answer = stop(nw, 0, &error);
    g_assert_no_error(error);
    g_assert_true(answer_is(answer, "forced"));
    g_assert_false(answer_is(answer, "clean"));
    node_world_free(nw);
}

static void test_start_again(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    start_ok(nw, nw_start_args(nw, NULL, true, true)); /* its answer was lost */
    g_assert_cmpuint(fake_host_count(nw->a.host, "prepare"), ==, 1);

    /* Two at once are one start as well. */
    struct fake_reply first, second;
    nw->web1.generation++;
    nw_call_start(nw, &nw->a, "guest_start", nw->stamp, nw_start_args(nw, NULL, true, true),
                  &first);
    nw_call_start(nw, &nw->a, "guest_start", nw->stamp, nw_start_args(nw, NULL, true, true),
                  &second);
    nw_until(nw, first.done && second.done);
    g_assert_no_error(first.error);
    g_assert_no_error(second.error);
    g_assert_cmpuint(fake_host_count(nw->a.host, "prepare"), ==, 2);
    g_assert_true(runs(&nw->a, 3));
    fake_reply_clear(&first);
    fake_reply_clear(&second);

    /* Its process died: the generation is over. */
    fake_host_guest_crash(nw->a.host, WEB1);
    json_t *answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(answer, error, REFUSED,
                   "generation 3 was already used here: instance web1 needs a higher one to be "
                   "started");
    node_world_free(nw);
}

static void test_used_after_power_cut(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    nw_pass(nw, 300);
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    json_t *answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(answer, error, REFUSED,
                   "generation 2 was already used here: instance web1 needs a higher one to be "
                   "started");
    nw_commit_start(nw);
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    g_assert_true(runs(&nw->a, 3));

    record_autoptr(instance) older = nw_instance(nw);
    older->generation = 2;
    answer = start(nw, json_make("{s:o}", "instance", instance_to_json(older)), &error);
    assert_refused(answer, error, REFUSED,
                   "generation 2 of instance web1 is over: generation 3 was already used here");
    node_world_free(nw);
}

/* "g used" is on disk before anything can run. */
static void test_used_before_prepare(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    fake_fail_files(nw->world, "node/guests", 1);
    json_t *answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_clear_error(&error);
    g_assert_cmpuint(fake_host_count(nw->a.host, "prepare"), ==, 0);
    node_world_free(nw);
}

/* A start that was delayed on its way finds that the instance has moved on. */
static void test_delayed_start(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    json_t *delayed = nw_start_args(nw, NULL, true, true);
    json_t *again = json_deep_copy(delayed);
    nw->web1.generation++; /* a failover elsewhere, say */
    json_t *answer = start(nw, delayed, &error);
    assert_refused(answer, error, REFUSED,
                   "generation 2 of instance 11111111-1111-4111-8111-111111111111 may not start "
                   "here: generation 3 is on record");

    /* What the record does not say, in a generation that it has: no refusal, but no start either.
     */
    nw->web1.generation = 2;
    nw->web1.holder = "";
    answer = start(nw, json_deep_copy(again), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "generation 2 of instance 11111111-1111-4111-8111-111111111111 may not start "
                   "here: the record (generation 2) does not say so");
    nw->web1.holder = NODE_A;

    /* The same after a stop under the very generation: it is used up, although it never ran. */
    nw->web1.generation = 2;
    json_autoptr stopped = stop(nw, 0, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(stopped, "clean"));
    answer = start(nw, again, &error);
    assert_refused(answer, error, REFUSED,
                   "generation 2 was already used here: instance "
                   "11111111-1111-4111-8111-111111111111 needs a higher one to be started");
    g_assert_cmpuint(fake_host_count(nw->a.host, "prepare"), ==, 0);
    node_world_free(nw);
}

static void test_start_unconfirmed(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    nw->mood = MASTER_DEPOSED;
    json_t *answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(answer, error, TEMPORARY,
                   "the master did not confirm that generation 2 of instance "
                   "11111111-1111-4111-8111-111111111111 may start here (the master is another "
                   "node); nothing was changed, try again");
    g_assert_null(fake_file(nw->world, NODE_A, FILE_STATE, "node/guests/" WEB1 ".json"));
    nw->mood = MASTER_ANSWERS;
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    node_world_free(nw);
}

static void test_start_bad_input(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    nw->web1.holder = "";
    json_t *answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(answer, error, WRONG_INPUT,
                   "instance: generation 2 of web1 is held by nobody, not by this node");
    nw->web1.holder = NODE_A;
    json_autoptr target = json_make("{s:s,s:s,s:s,s:[]}", "replica", OTHER_REPLICA, "address",
                                    "10.0.0.2", "psk", "00000000000000000000000000000000", "disks");
    answer = start(nw, nw_start_args(nw, target, true, true), &error);
    assert_refused(answer, error, WRONG_INPUT, "target.disks: 0 exports for 1 disks");
    nw->web1.generation = 0;
    answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(answer, error, WRONG_INPUT, "instance.generation: must be at least 1");
    node_world_free(nw);
}

static void test_damaged_record(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_daemon_kill(nw, &nw->a);
    fake_file_put(nw->world, NODE_A, FILE_STATE, "node/guests/" WEB1 ".json",
                  "{\"instance\":\"" OTHER_REPLICA "\"}");
    nw_daemon_start(nw, &nw->a);
    nw_commit_start(nw);
    json_t *answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(
        answer, error, CORRUPT,
        "var/node/guests/11111111-1111-4111-8111-111111111111.json is damaged (it speaks "
        "of instance 55555555-5555-4555-8555-555555555555): which generations were used "
        "here is unknown; start instance web1 on another node, or remove the file if "
        "you know that it runs nowhere");
    node_world_free(nw);
}

static void test_prepare_fails(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    /* The process is there although prepare said no: it is ended, and the generation is used. */
    fake_host_fault(nw->a.host, "prepare", FAKE_FAULT_LATE, 1);
    json_t *answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(answer, error, TIMEOUT, "instance web1: prepare: no answer in 2000 ms");
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
    g_clear_error(&error);
    nw_commit_start(nw);
    fake_host_fault(nw->a.host, "run", FAKE_FAULT_FAILS, 1);
    answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(answer, error, HYPERVISOR, "instance web1: run: failed as the test wanted");
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    node_world_free(nw);
}

/* --- start with a mirror that fails --- */

static bool run_without_stale(struct fake_host *host, const char *op, bool after, void *data)
{
    struct node_world *nw = data;
    if (!after && strcmp(op, "run") == 0)
        g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    return false;
}

static void test_mirror_fails_first_stale(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 1, &error);
    fake_host_fault(nw->a.host, "mirror_start", FAKE_FAULT_FAILS, 1);
    fake_host_set_hook(nw->a.host, run_without_stale, nw);
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->a, 2));
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    node_world_free(nw);
}

static void test_mirror_fails_no_master(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_stop(nw, 10000, &error);
    g_assert_true(nw->web1.clean);
    /* Recorded in-sync, so it must not run before stale is on record; and it does not. */
    nw_commit_start(nw);
    json_autoptr target = nw_open_replica(nw, &error);
    fake_host_fault(nw->a.host, "mirror_start", FAKE_FAULT_SILENT, 1);
    struct fake_reply reply;
    nw_call_start(nw, &nw->a, "guest_start", nw->stamp, nw_start_args(nw, target, false, true),
                  &reply);
    nw_until(nw, fake_host_count(nw->a.host, "mirror_start") == 2);
    nw->mood = MASTER_DEPOSED;
    nw_until(nw, reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
    g_assert_cmpstr(reply.error->message, ==,
                    "instance web1: the replica of instance web1 is lost (its mirror did not "
                    "start: mirror_start: no answer in 2000 ms) and the master could not be asked "
                    "to record that; try again");
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    g_assert_cmpuint(fake_host_count(nw->a.host, "run"), ==, 1);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* After a clean close the replica is on record as in-sync from the start: no instruction runs
 * before the mirror is ready. */
static void test_mirror_never_ready(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_stop(nw, 10000, &error);
    nw_commit_start(nw);
    json_autoptr target = nw_open_replica(nw, &error);
    fake_host_fault(nw->a.host, "query", FAKE_FAULT_FAILS, 1000);
    fake_host_set_hook(nw->a.host, run_without_stale, nw);
    start_ok(nw, nw_start_args(nw, target, false, true));
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    g_assert_true(runs(&nw->a, 4));
    fake_host_set_hook(nw->a.host, NULL, NULL);
    node_world_free(nw);
}

/* --- stop --- */

static void test_stop_again(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 200);
    json_autoptr first = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(answer_is(first, "clean"));
    g_assert_false(answer_is(first, "forced"));
    /* The answer was lost, the node daemon died: it is said again. */
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    json_autoptr second = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(answer_is(second, "clean"));
    /* A stop of an older generation is refused. */
    nw->web1.generation = 1;
    json_t *answer = stop(nw, 0, &error);
    assert_refused(answer, error, REFUSED,
                   "generation 1 of instance web1 is over: generation 2 was already used here");
    node_world_free(nw);
}

static void test_stop_forced(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_set_powerdown_ms(nw->a.host, 0);
    json_autoptr answer = stop(nw, 1000, &error);
    g_assert_no_error(error);
    g_assert_true(answer_is(answer, "forced"));
    g_assert_true(answer_is(answer, "clean")); /* the disks are equal all the same */
    g_assert_true(fake_hosts_equal(nw->hosts, WEB1, NODE_A, "", NODE_B, nw->web1.replica));
    node_world_free(nw);
}

/* A node that can write nothing any more: that the guest is over is answered all the same, and
 * nothing is promised that could not be kept. */
static void test_stop_unwritable(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 200);
    fake_fail_files(nw->world, "node/guests", 1000);
    json_autoptr first = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(first, "clean"));
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    json_autoptr again = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(again, "clean"));
    /* A node daemon that comes after it can be asked too, and starts that generation no more. */
    nw_daemon_kill(nw, &nw->a);
    fake_fail_files(nw->world, "node/guests", 0);
    nw_daemon_start(nw, &nw->a);
    json_t *started = start(nw, nw_start_args(nw, NULL, true, true), &error);
    assert_refused(started, error, REFUSED,
                   "generation 2 was already used here: instance web1 needs a higher one to be "
                   "started");
    fake_fail_files(nw->world, "node/guests", 1000);
    json_autoptr third = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(third, "clean"));
    node_world_free(nw);
}

/* One that never came here has to be used up, and a start that was delayed could come after a
 * restart of the node daemon: without a word on disk there is no answer. */
static void test_stop_unwritable_and_never_started(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw_commit_start(nw);
    fake_fail_files(nw->world, "node/guests", 1000);
    json_t *answer = stop(nw, 0, &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_clear_error(&error);
    answer = stop(nw, 0, &error); /* nor when it is asked again */
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_clear_error(&error);
    fake_fail_files(nw->world, "node/guests", 0);
    json_autoptr stopped = stop(nw, 0, &error);
    g_assert_no_error(error);
    node_world_free(nw);
}

/* The button was pressed before the guest listened: it is pressed again. */
static void test_stop_before_it_listens(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_powerdown_ms(nw->a.host, 0);
    struct fake_reply reply;
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 600000), &reply);
    nw_pass(nw, 6000);
    g_assert_false(reply.done);
    guint before = fake_host_count(nw->a.host, "powerdown");
    g_assert_cmpuint(before, ==, 2); /* "powerdown" is counted once per call */
    fake_host_set_powerdown_ms(nw->a.host, 20);
    nw_pass(nw, 4500);
    g_assert_true(reply.done);
    g_assert_no_error(reply.error);
    g_assert_true(answer_is(reply.result, "clean"));
    g_assert_false(answer_is(reply.result, "forced"));
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* A guest that switched itself off is closed the same way. */
static void test_stop_after_poweroff(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 200);
    fake_host_guest_poweroff(nw->a.host, WEB1);
    nw_pass(nw, 100);
    json_autoptr report = nw_report(nw, &nw->a);
    const json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "state")), ==, "shutdown");
    nw_stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(nw->web1.clean);
    g_assert_cmpuint(fake_host_count(nw->a.host, "powerdown"), ==, 0);
    node_world_free(nw);
}

/* A stopped instance gets a new replica: its guest never runs, its disks are copied, and it is
 * closed clean. */
static void test_copy_at_rest(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 300);
    nw_stop(nw, 10000, &error);
    nw_commit_start(nw);
    nw->web1.state = REPLICA_SYNCING;
    json_autoptr target = nw_open_replica(nw, &error);
    start_ok(nw, nw_start_args(nw, target, true, false));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_PREPARED);
    /* A restart of the node daemon keeps what was meant to stay prepared. */
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    json_autoptr answer = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(answer_is(answer, "clean"));
    g_assert_false(answer_is(answer, "forced"));
    g_assert_cmpuint(fake_host_count(nw->a.host, "run"), ==, 1);
    node_world_free(nw);
}

static void assert_sound(const json_t *answer, const char *word)
{
    g_assert_cmpstr(json_string_value(json_object_get(answer, "sound")), ==, word);
}

static void test_stop_finish_fails(void)
{
    static const struct {
        const char *step, *sound;
    } cases[] = {{"pause", "yes"},
                 {"mirror_finish", "yes"},
                 {"sync", "no"},
                 {"check", "no"},
                 {"io_query", "unknown"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct node_world *nw = node_world_new(1);
        g_autoptr(GError) error = NULL;
        nw_create_and_start(nw);
        fake_host_fault(nw->a.host, cases[i].step, FAKE_FAULT_FAILS, 100);
        json_autoptr answer = stop(nw, 10000, &error);
        g_assert_no_error(error);
        g_assert_false(answer_is(answer, "clean"));
        assert_sound(answer, cases[i].sound);
        g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
        node_world_free(nw);
    }
}

/* Both copies are as equal as they can be, and one of them is on a disk that has failed. */
static void test_stop_on_failed_disks(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_set_disks_failed(nw->a.host, true);
    nw_pass(nw, 500);
    json_autoptr answer = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(answer, "clean"));
    assert_sound(answer, "no");
    /* Whoever asks again, also the next node daemon, hears the same, though the disks are well. */
    fake_host_set_disks_failed(nw->a.host, false);
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    json_autoptr again = stop(nw, 10000, &error);
    g_assert_no_error(error);
    assert_sound(again, "no");
    g_assert_true(fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica));
    node_world_free(nw);
}

/* A write failed, and then the disks worked again: what the guest saw as failed may be on the
 * replica, and nobody knows what else is missing here. */
static void test_stop_after_failed_writes(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_set_disks_failed(nw->a.host, true);
    nw_pass(nw, 500);
    fake_host_set_disks_failed(nw->a.host, false);
    json_autoptr answer = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(answer, "clean"));
    assert_sound(answer, "no");
    node_world_free(nw);
}

/* Its node had no power: what can be synced and read has every acknowledged write. */
static void test_stop_after_power_cut(void)
{
    for (int failed = 0; failed <= 1; failed++) {
        struct node_world *nw = node_world_new(1);
        g_autoptr(GError) error = NULL;
        nw_create_and_start(nw);
        nw_daemon_kill(nw, &nw->a);
        fake_host_power_off(nw->a.host);
        nw_daemon_start(nw, &nw->a);
        fake_host_set_disks_failed(nw->a.host, failed);
        json_autoptr answer = stop(nw, 10000, &error);
        g_assert_no_error(error);
        g_assert_false(answer_is(answer, "clean"));
        assert_sound(answer, failed ? "no" : "yes");
        node_world_free(nw);
    }
}

/* Its mirror ended a moment ago, and the guest went on: what it was told since then is missing on
 * the replica. That is on record before the end is. */
static void test_stop_without_its_mirror(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_set_quiet(nw->a.host, true); /* it could go on */
    nw_pass(nw, 100);
    fake_host_mirror_vanish(nw->a.host, WEB1);
    json_autoptr answer = stop(nw, 0, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(answer, "clean"));
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    node_world_free(nw);
}

static void test_stop_while_syncing(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 2, &error);
    nw_start(nw, &error);
    nw->mood = MASTER_DEPOSED; /* so that in-sync cannot get on record */
    nw_pass(nw, 1000);
    g_assert_cmpint(fake_host_mirror(nw->a.host, WEB1), ==, MIRROR_READY);
    json_autoptr answer = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(answer, "clean"));
    node_world_free(nw);
}

/* The replica is out of reach: stale first, then the guest can shut down; never a draining command
 * before. */
static void test_stop_replica_unreachable(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_held(nw->a.host, WEB1));
    guint before = fake_host_calls(nw->a.host)->len;
    json_autoptr answer = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(answer, "forced"));
    g_assert_false(answer_is(answer, "clean"));
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    bool released = false;
    for (guint i = before; i < fake_host_calls(nw->a.host)->len; i++) {
        const char *call = fake_host_calls(nw->a.host)->pdata[i];
        released = released || g_str_has_prefix(call, "mirror_release");
        if (g_str_has_prefix(call, "powerdown") || g_str_has_prefix(call, "pause"))
            g_assert_true(released);
    }
    node_world_free(nw);
}

/* Out of reach, and nobody to record it: the frozen guest is killed, which costs nothing that was
 * acknowledged. */
static void test_stop_nobody_answers(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 300);
    nw_cut(nw, &nw->b, true);
    nw->mood = MASTER_SILENT;
    json_autoptr answer = stop(nw, 1000, &error);
    g_assert_no_error(error);
    g_assert_true(answer_is(answer, "forced"));
    g_assert_false(answer_is(answer, "clean"));
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 0);
    g_assert_cmpuint(fake_host_count(nw->a.host, "pause"), ==, 0);
    g_assert_true(fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica));
    node_world_free(nw);
}

static void test_stop_kill_fails(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_fault(nw->a.host, "kill", FAKE_FAULT_SILENT, 1);
    json_t *answer = stop(nw, 1000, &error);
    assert_refused(answer, error, TIMEOUT,
                   "generation 2 could not be ended: kill: no answer in 2000 ms; while it lives it "
                   "may write, so nothing is started in its place. If it stays, cut the power of "
                   "its node and say so: fettle node modify NODE --offline yes --statement \"…\"");
    json_autoptr again = stop(nw, 1000, &error);
    g_assert_no_error(error);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    g_assert_false(answer_is(again, "clean"));
    node_world_free(nw);
}

/* A new master while the guest shuts down: the old job's stop ends early, the guest is left alone.
 */
static void test_stop_overtaken(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_powerdown_ms(nw->a.host, 0);
    struct fake_reply reply;
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 600000), &reply);
    nw_pass(nw, 2000);
    g_assert_false(reply.done);
    nw->stamp.epoch++;
    g_assert_true(nw_announce(nw, &nw->a, NULL));
    g_assert_true(reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_STALE_EPOCH);
    g_assert_cmpstr(reply.error->message, ==,
                    "a new master announced itself while the guest was shutting down; the guest "
                    "was left alone");
    g_assert_true(runs(&nw->a, 2));
    /* It is still watched. */
    g_assert_true(nw_announce(nw, &nw->b, NULL));
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* --- reset --- */

static void test_reset(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    json_autoptr done = nw_call(nw, &nw->a, "guest_reset", nw_guest_args(nw), &error);
    g_assert_no_error(error);
    g_assert_nonnull(done);
    nw_cut(nw, &nw->b, true);
    json_t *answer = nw_call(nw, &nw->a, "guest_reset", nw_guest_args(nw), &error);
    assert_refused(answer, error, TEMPORARY,
                   "the replica of instance web1 cannot be reached, so a reset would hang; try "
                   "again when it is on record as stale");
    g_assert_cmpuint(fake_host_count(nw->a.host, "reset"), ==, 1);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 100);
    json_autoptr now = nw_call(nw, &nw->a, "guest_reset", nw_guest_args(nw), &error);
    g_assert_no_error(error);
    g_assert_nonnull(now);
    nw->web1.generation++;
    answer = nw_call(nw, &nw->a, "guest_reset", nw_guest_args(nw), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "generation 3 of instance web1 does not run on this node");
    node_world_free(nw);
}

/* Ended by force though it does not answer: nothing is asked of it that it cannot do, and the
 * replica has what was acknowledged. */
static void test_stop_hung(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_hang(nw->a.host, WEB1, true);
    nw_pass(nw, 500);
    json_autoptr answer = stop(nw, 0, &error);
    g_assert_no_error(error);
    g_assert_false(answer_is(answer, "clean"));
    g_assert_cmpuint(fake_host_count(nw->a.host, "pause"), ==, 0);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_finish"), ==, 0);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    fake_host_hang(nw->a.host, WEB1, false);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/start-stop-start#SAF-10,SAF-11,SAF-12,SAF-13", test_start_stop_start);
    g_test_add_func("/guest/start-diskless#SAF-10,SAF-11", test_start_diskless);
    g_test_add_func("/guest/start-again#SAF-10,SAF-20", test_start_again);
    g_test_add_func("/guest/used-after-power-cut#SAF-10", test_used_after_power_cut);
    g_test_add_func("/guest/used-before-prepare#SAF-10", test_used_before_prepare);
    g_test_add_func("/guest/delayed-start#SAF-10,SAF-19", test_delayed_start);
    g_test_add_func("/guest/start-unconfirmed#SAF-04,SAF-19", test_start_unconfirmed);
    g_test_add_func("/guest/start-bad-input#SAF-10", test_start_bad_input);
    g_test_add_func("/guest/damaged-record#SAF-10", test_damaged_record);
    g_test_add_func("/guest/prepare-fails#SAF-10", test_prepare_fails);
    g_test_add_func("/guest/mirror-fails-first-stale#SAF-10,SAF-13", test_mirror_fails_first_stale);
    g_test_add_func("/guest/mirror-fails-no-master#SAF-10,SAF-13", test_mirror_fails_no_master);
    g_test_add_func("/guest/mirror-never-ready#SAF-10,SAF-11", test_mirror_never_ready);
    g_test_add_func("/guest/stop-again#SAF-11,SAF-20", test_stop_again);
    g_test_add_func("/guest/stop-forced#SAF-11", test_stop_forced);
    g_test_add_func("/guest/stop-on-a-node-that-cannot-write#SAF-25", test_stop_unwritable);
    g_test_add_func("/guest/stop-of-one-that-never-came-there#SAF-10,SAF-25",
                    test_stop_unwritable_and_never_started);
    g_test_add_func("/guest/stop-after-poweroff#SAF-11", test_stop_after_poweroff);
    g_test_add_func("/guest/copy-at-rest#SAF-11,SAF-18", test_copy_at_rest);
    g_test_add_func("/guest/stop-finish-fails#SAF-11", test_stop_finish_fails);
    g_test_add_func("/guest/stop-on-failed-disks#SAF-13,SAF-24", test_stop_on_failed_disks);
    g_test_add_func("/guest/stop-after-failed-writes#SAF-11,SAF-24", test_stop_after_failed_writes);
    g_test_add_func("/guest/stop-after-power-cut#SAF-24", test_stop_after_power_cut);
    g_test_add_func("/guest/stop-without-its-mirror#SAF-13", test_stop_without_its_mirror);
    g_test_add_func("/guest/stop-while-syncing#SAF-11", test_stop_while_syncing);
    g_test_add_func("/guest/stop-replica-unreachable#SAF-13,SAF-15", test_stop_replica_unreachable);
    g_test_add_func("/guest/stop-nobody-answers#SAF-13,SAF-15", test_stop_nobody_answers);
    g_test_add_func("/guest/stop-kill-fails#SAF-15", test_stop_kill_fails);
    g_test_add_func("/guest/stop-before-it-listens", test_stop_before_it_listens);
    g_test_add_func("/guest/stop-overtaken#SAF-06", test_stop_overtaken);
    g_test_add_func("/guest/reset#SAF-15,SAF-20", test_reset);
    g_test_add_func("/guest/stop-hung#SAF-11,SAF-91", test_stop_hung);
    return g_test_run();
}
