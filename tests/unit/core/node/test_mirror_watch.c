/*
 * The watch beside a mirrored guest: core/node mirror_watch.c, confirm.c.
 */
#include "helper/node_world.h"

static guint64 told(struct node_world *nw)
{
    return fake_hosts_acknowledged(nw->hosts, WEB1);
}

/* The guest writes, and goes on writing. */
static void assert_goes_on(struct node_world *nw)
{
    guint64 before = told(nw);
    nw_pass(nw, 1000);
    g_assert_cmpuint(told(nw), >, before);
}

static void assert_stands_still(struct node_world *nw, guint ms)
{
    nw_pass(nw, 100);
    guint64 before = told(nw);
    nw_pass(nw, ms);
    g_assert_cmpuint(told(nw), ==, before);
}

static guint calls_to_master(struct node_world *nw, const char *method)
{
    g_autofree char *prefix = g_strdup_printf(NODE_M "/wconfd %s", method);
    return fake_count_calls(nw->world, prefix);
}

static void test_in_sync_when_ready(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 2, &error);
    fake_host_fault(nw->a.host, "query", FAKE_FAULT_SILENT,
                    1); /* one late answer changes nothing */
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_SYNCING);
    g_assert_cmpuint(calls_to_master(nw, "set_replica_state"), ==, 0);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    g_assert_cmpint(fake_host_mirror(nw->a.host, WEB1), ==, MIRROR_READY);
    nw_pass(nw, 3000);
    g_assert_cmpuint(calls_to_master(nw, "set_replica_state"), ==, 1);
    assert_goes_on(nw);
    node_world_free(nw);
}

static bool release_only_when_stale(struct fake_host *host, const char *op, bool after, void *data)
{
    struct node_world *nw = data;
    if (!after && strcmp(op, "mirror_release") == 0)
        g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    return false;
}

/* SAF-13: held until "stale" is on record, then released; in that order. */
static void test_lost_then_stale_then_release(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_hook(nw->a.host, release_only_when_stale, nw);
    nw_pass(nw, 300);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_held(nw->a.host, WEB1));
    nw_pass(nw, 1000);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC); /* not yet: replica_lost_ms is 1500 */
    g_assert_cmpuint(calls_to_master(nw, "set_replica_state"), ==, 1);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    assert_goes_on(nw);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 1);
    node_world_free(nw);
}

/* Whoever waits for it is told so, though the mirror is still there. */
static void test_stale_is_not_waited_for(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_fault(nw->a.host, "mirror_release", FAKE_FAULT_FAILS, 1000);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    g_assert_cmpint(fake_host_mirror(nw->a.host, WEB1), !=, MIRROR_NONE);
    json_autoptr status = nw_call(nw, &nw->a, "mirror_wait", nw_guest_args(nw), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_object_get(status, "state")), ==, "lost");
    fake_host_clear_faults(nw->a.host);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    node_world_free(nw);
}

static void change_all_the_time(struct node_world *nw, void *data)
{
    nw->web1.sync++;
}

static guint slowly(const char *from, const char *to, void *data)
{
    return 20;
}

/* A record that changes whenever it is asked says nothing of the guest's own wish. */
static void test_changes_all_the_time(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_hook(nw->a.host, release_only_when_stale, nw);
    fake_set_delay(nw->world, slowly, NULL);
    nw->each_step = change_all_the_time;
    nw_cut(nw, &nw->b, true);
    nw_pass(nw, 10000);
    g_assert_cmpuint(calls_to_master(nw, "set_replica_state"), >, 2);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    nw->each_step = NULL;
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* The holder's own disks answer with errors, and a replica that is slow to answer may be all that
 * is whole: it is not given up before there was time to fail over to it. */
static void test_own_disks_fail(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_disks_failed(nw->a.host, true);
    nw_pass(nw, 3000);
    json_decref(nw_report(nw, &nw->a)); /* which has a look */
    nw_cut(nw, &nw->b, true);
    nw_pass(nw, 30000);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    fake_host_set_disks_failed(nw->a.host, false); /* nobody did, and they are well again */
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    node_world_free(nw);
}

/* A cut shorter than replica_lost_ms costs a pause, not the redundancy. */
static void test_short_cut(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_cut(nw, &nw->b, true);
    nw_pass(nw, 700);
    nw_cut(nw, &nw->b, false);
    nw_pass(nw, 3000);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    assert_goes_on(nw);
    node_world_free(nw);
}

static void test_frozen_without_answer(void)
{
    static const enum master_mood moods[] = {MASTER_DEPOSED, MASTER_SILENT};
    for (guint i = 0; i < G_N_ELEMENTS(moods); i++) {
        struct node_world *nw = node_world_new(i);
        nw_create_and_start(nw);
        fake_host_set_hook(nw->a.host, release_only_when_stale, nw);
        nw->mood = moods[i];
        nw_cut(nw, &nw->b, true);
        nw_pass(nw, 3000);
        assert_stands_still(nw, 30000);
        g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
        g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 0);
        /* Nothing was sent that drains, either. */
        g_assert_cmpuint(fake_host_count(nw->a.host, "pause"), ==, 0);
        nw->mood = MASTER_ANSWERS;
        nw_until(nw, nw->web1.state == REPLICA_STALE);
        nw_pass(nw, 100);
        assert_goes_on(nw);
        node_world_free(nw);
    }
}

/* Done, but the answer was lost: the repetition is answered "accepted" and the guest goes on. */
static void test_lost_answers(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 2, &error);
    nw_start(nw, &error);
    nw->mood = MASTER_LOSES_ANSWER;
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    guint64 sync = nw->web1.sync;
    nw_pass(nw, 12000);
    g_assert_cmpuint(nw->web1.sync, ==, sync);
    nw_cut(nw, &nw->b, true);
    /* The node still believes "syncing" with the number before; it learns better and goes on. */
    nw_pass(nw, 4000);
    nw->mood = MASTER_ANSWERS;
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    g_assert_cmpuint(nw->web1.sync, ==, sync + 1);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* The next master is announced; what the lost one has left unanswered it then answers, out of a
 * record that its successor does not have. */
static void master_is_lost(struct node_world *nw, enum replica_state state, guint64 sync)
{
    g_autoptr(GError) error = NULL;
    nw->stamp.epoch++;
    nw_announce(nw, &nw->a, &error);
    g_assert_no_error(error);
    nw_master_answers(nw);
    nw->web1.state = state;
    nw->web1.sync = sync;
    nw->mood = MASTER_SILENT;
}

static void assert_asks_the_next_master(struct node_world *nw)
{
    nw_pass(nw, 100);
    assert_stands_still(nw, 3000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 0);
    nw_master_answers(nw);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    assert_goes_on(nw);
}

/* "Accepted" of a master after the next one has been told that there is a mirror: that one may not
 * know of it. */
static void test_late_word_of_lost_master(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_hook(nw->a.host, release_only_when_stale, nw);
    guint64 sync = nw->web1.sync;
    nw->mood = MASTER_SILENT;
    nw_cut(nw, &nw->b, true);
    nw_until(nw, calls_to_master(nw, "set_replica_state") == 2);
    nw_until(nw, nw->unanswered->len > 0);
    master_is_lost(nw, REPLICA_IN_SYNC, sync);
    assert_asks_the_next_master(nw);
    node_world_free(nw);
}

/* The same with what it says of its record, which a job has changed there. */
static void test_late_look_of_lost_master(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_hook(nw->a.host, release_only_when_stale, nw);
    guint64 sync = nw->web1.sync;
    nw->mood = MASTER_SILENT;
    nw_cut(nw, &nw->b, true);
    nw_until(nw, calls_to_master(nw, "set_replica_state") == 2);
    nw_until(nw, nw->unanswered->len > 0);
    nw->web1.state = REPLICA_STALE;
    nw->web1.sync += 2;
    guint looks = calls_to_master(nw, "confirm");
    nw_master_answers(nw); /* no: its number is another */
    nw->mood = MASTER_SILENT;
    nw_until(nw, calls_to_master(nw, "confirm") == looks + 1 && nw->unanswered->len > 0);
    master_is_lost(nw, REPLICA_IN_SYNC, sync);
    assert_asks_the_next_master(nw);
    node_world_free(nw);
}

/* Stale is under way when the replica comes back and is ready: stale wins. */
static void test_stale_wins(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw->mood = MASTER_SILENT;
    nw_cut(nw, &nw->b, true);
    nw_pass(nw, 3000);
    nw_cut(nw, &nw->b, false);
    nw_pass(nw, 3000);
    g_assert_cmpint(fake_host_mirror(nw->a.host, WEB1), ==, MIRROR_READY);
    nw->mood = MASTER_ANSWERS;
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    nw_pass(nw, 5000);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    assert_goes_on(nw);
    node_world_free(nw);
}

static void test_refused_is_killed(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_cut(nw, &nw->b, true);
    nw_pass(nw, 1000);
    /* Failed over elsewhere. */
    nw->web1.generation++;
    nw->web1.primary = nw->web1.holder = NODE_B;
    nw->web1.secondary = "";
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 0);
    nw_until(nw, !fake_host_has_image(nw->a.host, WEB1, ""));
    node_world_free(nw);
}

static void test_mirror_vanishes(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_quiet(nw->a.host, true);
    nw_pass(nw, 200);
    fake_host_mirror_vanish(nw->a.host, WEB1);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    node_world_free(nw);
}

/* SAF-14: the replica's disk fails, its export ends by itself and is not opened again. */
static void test_export_fails(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_pass(nw, 300);
    fake_host_export_fail(nw->b.host, WEB1);
    json_autoptr report = nw_report(nw, &nw->b);
    const json_t *replica = json_array_get(json_object_get(report, "replicas"), 0);
    g_assert_true(json_is_false(json_object_get(replica, "exported")));
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 6000);
    g_assert_cmpuint(fake_host_count(nw->b.host, "export_open"), ==, 1);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* A release that fails is repeated; the guest is not forgotten. */
static void test_release_fails(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_fault(nw->a.host, "mirror_release", FAKE_FAULT_SILENT, 2);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 3);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* A job recorded the replica as stale while the copy ran: it never becomes in-sync again. */
static void test_stale_by_job(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 2, &error);
    nw_start(nw, &error);
    nw->web1.state = REPLICA_STALE;
    nw->web1.sync++;
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    nw_pass(nw, 3000);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* The record names another replica by now: nobody will promote this one, so the guest may go on. */
static void test_replica_replaced(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw->web1.secondary = "";
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* The node daemon dies while the replica is lost: the guest stays frozen until a new one has been
 * told by the master how things stand. */
static void test_restart_while_lost(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_hook(nw->a.host, release_only_when_stale, nw);
    nw_pass(nw, 200);
    nw_cut(nw, &nw->b, true);
    nw_pass(nw, 500);
    nw_daemon_kill(nw, &nw->a);
    assert_stands_still(nw, 5000);
    nw->mood = MASTER_DEPOSED;
    nw_daemon_start(nw, &nw->a);
    assert_stands_still(nw, 10000);
    nw->mood = MASTER_ANSWERS;
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 100);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* The guest dies while its watch waits for the master, and the next generation starts at once: what
 * the old watch hears is not taken for the new one's. */
static void test_old_watch_ends_first(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_cut(nw, &nw->b, true);
    nw->mood = MASTER_SILENT;
    guint asked = calls_to_master(nw, "set_replica_state");
    nw_until(nw, calls_to_master(nw, "set_replica_state") > asked);
    fake_host_guest_crash(nw->a.host, WEB1);
    nw_cut(nw, &nw->b, false);
    nw->mood = MASTER_ANSWERS;
    nw_start(nw, &error);
    g_assert_no_error(error);
    fake_host_set_hook(nw->a.host, release_only_when_stale, nw);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    nw_pass(nw, 6000);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 100);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* Dead between "stale" and the release: the new one finds stale on record and releases. */
static void test_restart_before_release(void)
{
    struct node_world *nw = node_world_new(1);
    bool dead = false;
    nw_create_and_start(nw);
    fake_host_set_hook(nw->a.host, nw_die_before_release, &dead);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, dead);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    nw_daemon_kill(nw, &nw->a);
    assert_stands_still(nw, 2000);
    nw_daemon_start(nw, &nw->a);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* The host loses its power there, and its node daemon comes back alone. */
static void assert_promises_no_more(struct node_world *nw, struct test_node *node)
{
    nw_daemon_kill(nw, node);
    nw_power_cut(nw, node);
    fake_host_set_hook(node->host, NULL, NULL);
    nw_daemon_start(nw, node);
    g_assert_true(nw_announce(nw, node, NULL));
    g_autofree char *stated = nw_statement(nw, node);
    g_assert_true(g_str_has_prefix(stated, "g2, "));
    g_assert_null(strstr(stated, "in-sync"));
}

static bool die_after_release(struct fake_host *host, const char *op, bool after, void *data)
{
    bool *dead = data;
    *dead = *dead || (after && strcmp(op, "mirror_release") == 0);
    return *dead;
}

/* The guest has gone on, and the next moment its node is dead, with the only master who knew. */
static void test_noted_before_release(void)
{
    struct node_world *nw = node_world_new(1);
    bool dead = false;
    nw_create_and_start(nw);
    fake_host_set_hook(nw->a.host, die_after_release, &dead);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, dead);
    assert_promises_no_more(nw, &nw->a);
    node_world_free(nw);
}

/* What it cannot note, while the master is the only one who has it on record, would be forgotten
 * with both of them: the guest waits until one of the two is otherwise. */
static void test_cannot_be_noted(gconstpointer data)
{
    bool kept = GPOINTER_TO_INT(data);
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_set_read_only(nw->world, NODE_A, true);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    assert_stands_still(nw, 20000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 0);
    nw->kept = kept;
    fake_set_read_only(nw->world, NODE_A, kept);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    assert_goes_on(nw);
    if (!kept)
        assert_promises_no_more(nw, &nw->a);
    node_world_free(nw);
}

/* Whoever wants it let go is told why it cannot be. */
static void test_detach_cannot_be_noted(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_set_read_only(nw->world, NODE_A, true);
    nw->web1.state = REPLICA_STALE;
    nw->web1.sync++;
    json_t *detached = nw_call(nw, &nw->a, "mirror_detach", nw_guest_args(nw), &error);
    assert_refused(detached, error, TEMPORARY,
                   "instance web1 cannot go on without its replica: only the master has on record "
                   "that it is stale, and that cannot be noted here (var/node/guests/" WEB1
                   ".json: var: Read-only file system)");
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_release"), ==, 0);
    nw->kept = true;
    json_autoptr done = nw_call(nw, &nw->a, "mirror_detach", nw_guest_args(nw), &error);
    g_assert_no_error(error);
    g_assert_nonnull(done);
    assert_goes_on(nw);
    node_world_free(nw);
}

static bool die_before_saved_mirror(struct fake_host *host, const char *op, bool after, void *data)
{
    bool *dead = data;
    *dead = *dead || (after && strcmp(op, "mirror_start") == 0);
    return *dead;
}

/* Dead while a mirror was being attached: nobody knows whether every disk has one, so it is given
 * up. */
static void test_restart_while_attaching(void)
{
    struct node_world *nw = node_world_new(1);
    bool dead = false;
    nw_create_and_start(nw);
    nw_pass(nw, 200);
    fake_host_set_hook(nw->a.host, die_before_saved_mirror, &dead);
    struct master_record *web1 = &nw->web1;
    web1->state = REPLICA_STALE;
    web1->sync++;
    json_autoptr detached = nw_call(nw, &nw->a, "mirror_detach", nw_guest_args(nw), NULL);
    g_assert_nonnull(detached);
    web1->state = REPLICA_SYNCING;
    web1->sync++;
    json_autoptr target = nw_open_replica(nw, NULL);
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "target", target);
    json_object_set_new(args, "sync", json_integer((json_int_t)web1->sync));
    struct fake_reply reply;
    nw_call_start(nw, &nw->a, "mirror_attach", nw->stamp, args, &reply);
    nw_until(nw, dead);
    nw_daemon_kill(nw, &nw->a);
    g_assert_true(reply.done);
    nw_daemon_start(nw, &nw->a);
    nw_until(nw, web1->state == REPLICA_STALE);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    assert_goes_on(nw);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

static bool in_sync_only_when_settled(struct fake_host *host, const char *op, bool after,
                                      void *data)
{
    struct node_world *nw = data;
    if (strcmp(op, "export_settle") == 0)
        g_assert_cmpint(nw->web1.state, ==, REPLICA_SYNCING);
    return false;
}

/* SAF-12: settled first; an export that does not say so keeps the replica from being promised. */
static void test_settled_first(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 2, &error);
    fake_host_set_hook(nw->b.host, in_sync_only_when_settled, nw);
    fake_host_fault(nw->b.host, "export_settle", FAKE_FAULT_FAILS, 3);
    nw_start(nw, &error);
    g_assert_no_error(error);
    nw_until(nw, fake_host_count(nw->b.host, "export_settle") == 3);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_SYNCING);
    g_assert_cmpuint(calls_to_master(nw, "set_replica_state"), ==, 0);
    assert_goes_on(nw);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    g_assert_cmpuint(fake_host_count(nw->b.host, "export_settle"), ==, 4);
    node_world_free(nw);
}

/* A clean start promises from its first instruction on, so nothing is lazy then. */
static void test_clean_start_is_durable(void)
{
    for (guint seed = 0; seed < 8; seed++) {
        struct node_world *nw = node_world_new(seed);
        g_autoptr(GError) error = NULL;
        nw_create_and_start(nw);
        nw_pass(nw, 300);
        nw_stop(nw, 10000, &error);
        g_assert_no_error(error);
        g_assert_true(nw->web1.clean);
        nw_start(nw, &error);
        g_assert_no_error(error);
        nw_pass(nw, 300);
        g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
        nw_power_cut(nw, &nw->b); /* what is promised is checked there */
        g_assert_cmpuint(fake_host_count(nw->b.host, "export_settle"), ==, 1);
        node_world_free(nw);
    }
}

/* How often a replica that has just been promised lacks something after a power cut of its node. */
static guint found_incomplete(bool settle_lies)
{
    guint found = 0;
    for (guint seed = 0; seed < 16; seed++) {
        struct node_world *nw = node_world_new(seed);
        fake_host_set_settle_lies(nw->b.host, settle_lies);
        nw_create_and_start(nw);
        nw_cut(nw, &nw->b, true); /* no write changes what is compared */
        fake_host_power_off(nw->b.host);
        found += !fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica);
        nw->web1.state = REPLICA_STALE; /* or the check of every step would end the test here */
        node_world_free(nw);
    }
    return found;
}

/* SAF-13 through a power cut; and the check would find an export that only says that it settled. */
static void test_promised_is_durable(void)
{
    g_assert_cmpuint(found_incomplete(false), ==, 0);
    g_assert_cmpuint(found_incomplete(true), >, 0);
}

static void attach_since(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    nw->web1.state = REPLICA_SYNCING;
    nw->web1.sync++;
    json_autoptr target = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "target", target);
    json_object_set_new(args, "sync", json_integer((json_int_t)nw->web1.sync));
    json_object_set_new(args, "since", json_true());
    json_autoptr done = nw_call(nw, &nw->a, "mirror_attach", args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(done);
}

/* A power cut of the secondary ends a resync, in the middle of it or before it has settled. */
static void cut_resync_off(struct node_world *nw, bool ready)
{
    fake_host_fault(nw->b.host, "export_settle", FAKE_FAULT_FAILS, 1000);
    attach_since(nw);
    if (ready)
        nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_READY);
    nw_power_cut(nw, &nw->b);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    fake_host_clear_faults(nw->b.host);
    nw_daemon_start(nw, &nw->b);
    g_assert_true(nw_announce(nw, &nw->b, NULL));
}

/* An outage, and resyncs of what was written meanwhile that are cut off one after the other: what
 * they had copied lazily is copied again, and what nobody has written is not. */
static void resync_cut_off(guint seed, bool quiet)
{
    struct node_world *nw = node_world_new(seed);
    nw_create_and_start(nw);
    nw_pass(nw, 500); /* it is remembered what is written */
    fake_host_set_quiet(nw->a.host, quiet);
    nw_pass(nw, 50);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    nw_pass(nw, 500);
    nw_cut(nw, &nw->b, false);
    for (guint round = 0; round < 4; round++)
        cut_resync_off(nw, (seed + round) % 2 == 0);
    attach_since(nw);
    g_assert_true(!quiet || fake_host_spared(nw->a.host, WEB1) > 0);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC); /* whole: checked at each step */
    nw_pass(nw, 200);
    node_world_free(nw);
}

static void test_resync_cut_off(void)
{
    for (guint seed = 0; seed < 16; seed++)
        resync_cut_off(seed, seed >= 8);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mirror-watch/in-sync-when-ready#SAF-12", test_in_sync_when_ready);
    g_test_add_func("/mirror-watch/lost-stale-release#SAF-13", test_lost_then_stale_then_release);
    g_test_add_func("/mirror-watch/stale-is-not-waited-for#SAF-12", test_stale_is_not_waited_for);
    g_test_add_func("/mirror-watch/changes-all-the-time#SAF-12,SAF-13", test_changes_all_the_time);
    g_test_add_func("/mirror-watch/own-disks-fail#SAF-25,SAF-13", test_own_disks_fail);
    g_test_add_func("/mirror-watch/short-cut#SAF-13,SAF-14", test_short_cut);
    g_test_add_func("/mirror-watch/frozen-without-answer#SAF-04,SAF-13,SAF-15",
                    test_frozen_without_answer);
    g_test_add_func("/mirror-watch/lost-answers#SAF-04,SAF-12", test_lost_answers);
    g_test_add_func("/mirror-watch/late-word-of-lost-master#SAF-09", test_late_word_of_lost_master);
    g_test_add_func("/mirror-watch/late-look-of-lost-master#SAF-09", test_late_look_of_lost_master);
    g_test_add_func("/mirror-watch/stale-wins#SAF-12", test_stale_wins);
    g_test_add_func("/mirror-watch/refused-is-killed#SAF-04,SAF-19", test_refused_is_killed);
    g_test_add_func("/mirror-watch/mirror-vanishes#SAF-12", test_mirror_vanishes);
    g_test_add_func("/mirror-watch/export-fails#SAF-14", test_export_fails);
    g_test_add_func("/mirror-watch/release-fails#SAF-15", test_release_fails);
    g_test_add_func("/mirror-watch/stale-by-job#SAF-12,SAF-18", test_stale_by_job);
    g_test_add_func("/mirror-watch/replica-replaced#SAF-13,SAF-18", test_replica_replaced);
    g_test_add_func("/mirror-watch/old-watch-ends-first#SAF-12,SAF-13", test_old_watch_ends_first);
    g_test_add_func("/mirror-watch/restart-while-lost#SAF-13,SAF-19", test_restart_while_lost);
    g_test_add_func("/mirror-watch/restart-before-release#SAF-13,SAF-19",
                    test_restart_before_release);
    g_test_add_func("/mirror-watch/noted-before-release#SAF-09,SAF-13", test_noted_before_release);
    g_test_add_data_func("/mirror-watch/cannot-be-noted/not-kept#SAF-09,SAF-13",
                         GINT_TO_POINTER(false), test_cannot_be_noted);
    g_test_add_data_func("/mirror-watch/cannot-be-noted/kept#SAF-09,SAF-13", GINT_TO_POINTER(true),
                         test_cannot_be_noted);
    g_test_add_func("/mirror-watch/detach-cannot-be-noted#SAF-09,SAF-18",
                    test_detach_cannot_be_noted);
    g_test_add_func("/mirror-watch/restart-while-attaching#SAF-12,SAF-19",
                    test_restart_while_attaching);
    g_test_add_func("/mirror-watch/settled-before-in-sync#SAF-12", test_settled_first);
    g_test_add_func("/mirror-watch/clean-start-is-durable#SAF-13,SAF-14",
                    test_clean_start_is_durable);
    g_test_add_func("/mirror-watch/what-is-promised-survives-a-power-cut#SAF-13",
                    test_promised_is_durable);
    g_test_add_func("/mirror-watch/resync-cut-off#SAF-13,SAF-14", test_resync_cut_off);
    return g_test_run();
}
