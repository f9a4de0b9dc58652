/* Live migration on both of its nodes: core/node outgoing.c, incoming.c, taps.c. */
#include "unit/core/world/guest_steps.h"

static bool waits(const struct node_world *nw, const char *migration)
{
    return fake_host_waits(nw->b.host, WEB1, migration);
}

static json_t *migration_call(struct node_world *nw, struct test_node *node, const char *method,
                              const char *migration, GError **error)
{
    return nw_call(nw, node, method, nw_migration_args(migration), error);
}

/* What migration_cancel answers. */
static void cancel_says(struct node_world *nw, const char *migration, const char *state)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = migration_call(nw, &nw->a, "migration_cancel", migration, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_object_get(answer, "state")), ==, state);
}

static char *why_of(struct node_world *nw, const char *migration)
{
    json_autoptr answer = migration_call(nw, &nw->a, "migration_wait", migration, NULL);
    return g_strdup(json_string_value(json_object_get(answer, "why")));
}

static void goes_on(struct node_world *nw)
{
    guint64 before = fake_hosts_acknowledged(nw->hosts, WEB1);
    nw_pass(nw, 500);
    g_assert_cmpuint(fake_hosts_acknowledged(nw->hosts, WEB1), >, before);
    g_assert_cmpuint(fake_hosts_running(nw->hosts, WEB1), ==, 1);
}

static void create_and_start(struct node_world *nw, enum disk_template disk_template, guint disks)
{
    g_autoptr(GError) error = NULL;
    nw->web1.disk_template = disk_template;
    bool mirrored = disk_template == TEMPLATE_MIRROR;
    nw_create(nw, NODE_A, mirrored ? NODE_B : "", disks, &error);
    g_assert_no_error(error);
    nw_start(nw, &error);
    g_assert_no_error(error);
    nw_until(nw, !mirrored || nw->web1.state == REPLICA_IN_SYNC);
    nw_pass(nw, 200);
}

static void begin_ok(struct node_world *nw, const char *migration)
{
    g_autoptr(GError) error = NULL;
    nw_migrate_begin(nw, migration, &error);
    g_assert_no_error(error);
}

static void finish_ok(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    nw_migrate_finish(nw, &error);
    g_assert_no_error(error);
}

/* --- the way that it should go --- */

static void test_mirror(void)
{
    struct node_world *nw = node_world_new(1);
    g_autofree char *old = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 2);
    old = g_strdup(nw->web1.replica);
    begin_ok(nw, MOVE_1);
    g_assert_true(runs(&nw->a, 2));
    g_assert_true(waits(nw, MOVE_1));
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    g_assert_cmpstr(nw->web1.holder, ==, NODE_B);
    g_assert_true(nw->web1.moved_clean);
    g_assert_true(fake_hosts_equal(nw->hosts, WEB1, NODE_A, "", NODE_B, old));
    finish_ok(nw);
    g_assert_true(runs(&nw->b, 3));
    /* With all that it had in memory: this process was never anything but the incoming one. */
    g_assert_cmpuint(fake_host_count(nw->b.host, "prepare "), ==, 0);
    g_assert_cmpuint(fake_host_count(nw->b.host, "incoming_prepare "), ==, 1);
    g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    g_assert_true(fake_host_has_image(nw->a.host, WEB1, MOVE_1));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    goes_on(nw);
    /* And back, with the nodes' parts exchanged. */
    begin_ok(nw, MOVE_2);
    g_assert_cmpint(nw_migration_wait(nw, &nw->b), ==, MIGRATION_MOVED);
    finish_ok(nw);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    g_assert_true(runs(&nw->a, 4));
    goes_on(nw);
    /* The replica that it left is one that can be promoted. */
    nw_power_cut(nw, &nw->a);
    g_assert_true(nw_failover(nw, NULL));
    goes_on(nw);
    node_world_free(nw);
}

/* What was not written to the end on the disk here may be missing in it. */
static void test_mirror_not_synced(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    fake_host_fault(nw->a.host, "sync", FAKE_FAULT_FAILS, 1);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    g_assert_false(nw->web1.moved_clean);
    finish_ok(nw);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    goes_on(nw);
    node_world_free(nw);
}

/* A write that the disk here has refused the guest may be on the other side. */
static void test_mirror_after_an_error(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    fake_host_set_disks_failed(nw->a.host, true);
    nw_until(nw, fake_host_io_errors(nw->a.host, WEB1) > 0);
    fake_host_set_disks_failed(nw->a.host, false);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    begin_ok(nw, MOVE_1);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    g_assert_false(nw->web1.moved_clean);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    finish_ok(nw);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC); /* whole: checked at each step */
    goes_on(nw);
    node_world_free(nw);
}

/* How long the guest may stand still, how much may be sent. */
static void test_limits(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_DISKLESS, 0);
    nw_commit_migration(nw, MOVE_1);
    json_autoptr target = nw_incoming_open(nw, &error);
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "target", target);
    json_object_set_new(args, "target_node", json_string(NODE_B));
    json_object_set_new(args, "bandwidth", json_integer(70));
    json_object_set_new(args, "downtime_ms", json_integer(55));
    json_autoptr answer = nw_call(nw, &nw->a, "migration_start", args, &error);
    g_assert_no_error(error);
    const struct migration_limits *limits = fake_host_limits(nw->a.host, WEB1);
    g_assert_cmpuint(limits->bandwidth_mib, ==, 70);
    g_assert_cmpuint(limits->downtime_ms, ==, 55);
    node_world_free(nw);
}

/* The copy is not repeated: images that were equal stay so. */
static void test_mirror_not_copied(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    nw_migration_wait(nw, &nw->a);
    fake_host_set_quiet(nw->b.host, true);
    finish_ok(nw);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    g_assert_true(fake_hosts_equal(nw->hosts, WEB1, NODE_B, "", NODE_A, MOVE_1));
    node_world_free(nw);
}

static void test_template(gconstpointer data)
{
    enum disk_template disk_template = GPOINTER_TO_UINT(data);
    bool file = disk_template == TEMPLATE_FILE;
    struct node_world *nw = node_world_new(3);
    create_and_start(nw, disk_template, disk_template == TEMPLATE_DISKLESS ? 0 : 2);
    begin_ok(nw, MOVE_1);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    finish_ok(nw);
    g_assert_true(runs(&nw->b, 3));
    g_assert_cmpuint(fake_hosts_running(nw->hosts, WEB1), ==, 1);
    if (disk_template != TEMPLATE_DISKLESS)
        goes_on(nw);
    g_assert_cmpint(fake_host_has_image(nw->b.host, WEB1, ""), ==,
                    disk_template != TEMPLATE_DISKLESS);
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, MOVE_1));
    /* The job removes what the guest has left of its own; shared images are still in use. */
    if (file) {
        json_autoptr gone = nw_call(nw, &nw->a, "disks_remove", nw_guest_args(nw), NULL);
        g_assert_nonnull(gone);
        g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    }
    nw_pass(nw, 12000); /* rounds of questions to the master hurt nothing */
    g_assert_true(runs(&nw->b, 3));
    node_world_free(nw);
}

/* The way to a routed card leads elsewhere now: who uses it is told when the guest runs there, more
 * than once, and not for ever; and no more of a guest that has ended. */
static void test_routed(void)
{
    struct node_world *nw = node_world_new(1);
    nw->web1.nics = 1;
    nw->web1.routed = true;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    nw_pass(nw, 5000);
    begin_ok(nw, MOVE_1);
    nw_migration_wait(nw, &nw->a);
    g_assert_cmpuint(fake_host_count(nw->b.host, "nic_announce"), ==, 0);
    finish_ok(nw);
    nw_pass(nw, 5000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "nic_announce"), ==, 5);
    g_assert_cmpuint(fake_host_count(nw->b.host, "nic_announce"), ==, 5);
    node_world_free(nw);
    nw = node_world_new(1);
    nw->web1.nics = 1;
    nw->web1.routed = true;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    fake_host_guest_crash(nw->a.host, WEB1);
    nw_pass(nw, 5000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "nic_announce"), <, 5);
    node_world_free(nw);
}

/* Tap devices before the process, on both sides, and away with it. */
static void test_taps(void)
{
    struct node_world *nw = node_world_new(1);
    nw->web1.nics = 2;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    g_assert_cmpuint(fake_host_taps(nw->a.host, WEB1), ==, 2);
    g_assert_cmpuint(fake_host_count(nw->a.host, "announce"), ==, 1);
    begin_ok(nw, MOVE_1);
    g_assert_cmpuint(fake_host_taps(nw->b.host, WEB1), ==, 2);
    nw_migration_wait(nw, &nw->a);
    g_assert_cmpuint(fake_host_taps(nw->a.host, WEB1), ==, 0);
    g_assert_cmpuint(fake_host_count(nw->b.host, "announce"), ==, 0);
    finish_ok(nw);
    g_assert_cmpuint(fake_host_count(nw->b.host, "announce"), ==, 1);
    /* A guest that ends by itself leaves none either. */
    fake_host_guest_crash(nw->b.host, WEB1);
    nw_until(nw, fake_host_taps(nw->b.host, WEB1) == 0);
    node_world_free(nw);
}

/* The bridge is missing: exact words, and nothing left on the target. */
static void test_no_bridge(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->web1.nics = 1;
    create_and_start(nw, TEMPLATE_FILE, 1);
    fake_host_set_bridge(nw->b.host, "br0", false);
    nw_commit_migration(nw, MOVE_1);
    json_t *target = nw_incoming_open(nw, &error);
    assert_refused(target, error, ENVIRONMENT,
                   "instance web1: network card 0: this node has no bridge br0");
    g_assert_false(waits(nw, NULL));
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, MOVE_1));
    g_assert_cmpuint(fake_host_taps(nw->b.host, WEB1), ==, 0);
    node_world_free(nw);
}

/* --- given up --- */

static void test_cancel(gconstpointer data)
{
    enum disk_template disk_template = GPOINTER_TO_UINT(data);
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, disk_template, 2);
    begin_ok(nw, MOVE_1);
    cancel_says(nw, MOVE_1, "canceled");
    g_autofree char *why = why_of(nw, MOVE_1);
    g_assert_cmpstr(why, ==, "it was canceled");
    g_assert_true(nw_migrate_undo(nw, &error));
    g_assert_no_error(error);
    g_assert_false(waits(nw, NULL));
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, MOVE_1));
    g_assert_true(runs(&nw->a, 2));
    goes_on(nw);
    if (disk_template == TEMPLATE_MIRROR)
        g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    /* The next one is not hindered. */
    begin_ok(nw, MOVE_2);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    finish_ok(nw);
    goes_on(nw);
    node_world_free(nw);
}

static void test_timeout(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    nw_commit_migration(nw, MOVE_1);
    json_autoptr target = nw_incoming_open(nw, &error);
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "target", target);
    json_object_set_new(args, "target_node", json_string(NODE_B));
    json_object_set_new(args, "timeout_ms", json_integer(1));
    json_autoptr answer = nw_call(nw, &nw->a, "migration_start", args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_FAILED);
    g_autofree char *why = why_of(nw, MOVE_1);
    g_assert_cmpstr(why, ==, "it took longer than it was allowed to");
    g_assert_true(nw_migrate_undo(nw, &error));
    goes_on(nw);
    node_world_free(nw);
}

/* It breaks when everything but the last is over there; the guest goes on by itself, and the record
 * says that its replica lacks what it writes. */
static void test_breaks_late(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 2);
    begin_ok(nw, MOVE_1);
    nw_until(nw, fake_host_count(nw->a.host, "migrate_continue") > 0);
    fake_host_migration_break(nw->a.host, WEB1);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_FAILED);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    goes_on(nw);
    g_assert_true(nw_migrate_undo(nw, &error));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    goes_on(nw);
    g_assert_true(fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica));
    node_world_free(nw);
}

/* The mirror does not come to its end: it is given up, for the record calls its replica stale. */
static void test_mirror_goes_on_at_switch(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    fake_host_fault(nw->a.host, "mirror_finish", FAKE_FAULT_FAILS, 1);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_FAILED);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_STALE);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    goes_on(nw);
    g_assert_true(nw_migrate_undo(nw, &error));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    node_world_free(nw);
}

/* --- the replica is lost in the middle --- */

static void test_lost_replica_cancels(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    nw_cut(nw, &nw->b, true);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_FAILED);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    goes_on(nw);
    g_assert_cmpuint(fake_host_count(nw->a.host, "migrate_continue"), ==, 0);
    nw_cut(nw, &nw->b, false);
    g_assert_true(nw_migrate_undo(nw, NULL));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    goes_on(nw);
    node_world_free(nw);
}

/* The link is cut while the guest stands still for the switch, the master still answers: A must not
 * send a draining command to a monitor that would freeze (SAF-15). */
static void cut_when_stopped(struct node_world *nw, void *data)
{
    bool *cut = data;
    if (*cut || fake_host_step(nw->a.host, WEB1) != STEP_STOPPED)
        return;
    *cut = true;
    nw_cut(nw, &nw->b, true);
}

static void test_cut_at_switch(void)
{
    struct node_world *nw = node_world_new(1);
    bool cut = false;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    nw->each_step = cut_when_stopped;
    nw->each_step_data = &cut;
    begin_ok(nw, MOVE_1);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_FAILED);
    g_assert_true(cut);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    goes_on(nw);
    node_world_free(nw);
}

/* A monitor that is frozen for good: the process is ended, nothing acknowledged is lost. */
static void test_frozen_monitor(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    fake_host_fault(nw->a.host, "migrate_cancel", FAKE_FAULT_SILENT, 1000);
    fake_host_fault(nw->a.host, "mirror_release", FAKE_FAULT_SILENT, 1000);
    fake_host_fault(nw->a.host, "migrate_query", FAKE_FAULT_SILENT, 1000);
    fake_host_fault(nw->a.host, "query", FAKE_FAULT_SILENT, 1000);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_FAILED);
    fake_host_clear_faults(nw->a.host);
    nw_cut(nw, &nw->b, false);
    g_assert_true(nw_migrate_undo(nw, NULL));
    g_assert_true(nw_start(nw, &error));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    goes_on(nw);
    node_world_free(nw);
}

/* The master does not say "stale": the guest goes on here, its promise to the replica unbroken. */
static void test_no_word_at_switch(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    nw->mood = MASTER_SILENT;
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_FAILED);
    g_assert_cmpuint(fake_host_count(nw->a.host, "mirror_finish"), ==, 0);
    goes_on(nw);
    nw->mood = MASTER_ANSWERS;
    g_assert_true(nw_migrate_undo(nw, NULL));
    nw_pass(nw, 3000);
    goes_on(nw);
    node_world_free(nw);
}

/* --- stops, starts and failovers on either side --- */

static void test_stop_while_copying(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    g_assert_true(nw_stop(nw, 5000, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(fake_hosts_running(nw->hosts, WEB1), ==, 0);
    /* Its exports were closed for the stop, and what waited for the guest went first. */
    g_assert_false(waits(nw, NULL));
    g_assert_true(nw->web1.clean);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_FAILED);
    node_world_free(nw);
}

/* A generation that left is not started or stopped any more where it was. */
static void test_stop_after_hand_over(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    json_t *stop_args = nw_stop_args(nw, 0);
    begin_ok(nw, MOVE_1);
    nw_until(nw, fake_host_step(nw->a.host, WEB1) == STEP_DONE);
    nw->mood = MASTER_DEPOSED;
    json_t *answer = nw_call(nw, &nw->a, "guest_stop", stop_args, &error);
    assert_refused(answer, error, WRONG_STATE,
                   "instance web1 has been handed over to node " NODE_B " by migration " MOVE_1);
    nw->mood = MASTER_ANSWERS;
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    finish_ok(nw);
    goes_on(nw);
    node_world_free(nw);
}

/* Nobody has heard of it when the node daemon dies: the next one knows that the guest has left. */
static void test_told_by_the_next_daemon(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    nw_until(nw, fake_host_step(nw->a.host, WEB1) == STEP_DONE);
    nw->mood = MASTER_DEPOSED;
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    nw_pass(nw, 500);
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw->mood = MASTER_ANSWERS;
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    finish_ok(nw);
    g_assert_true(runs(&nw->b, 3));
    g_assert_cmpuint(fake_host_count(nw->b.host, "prepare "), ==, 0);
    goes_on(nw);
    node_world_free(nw);
}

/* A commits nothing any more (it is cut off with the guest), the record is failed over to B: what
 * waits there is ended before the replica is touched. */
static void test_failover_on_target(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    begin_ok(nw, MOVE_1);
    nw_power_cut(nw, &nw->a);
    g_assert_true(waits(nw, MOVE_1));
    nw->web1.migration = NULL;
    g_assert_true(nw_failover(nw, NULL));
    g_assert_false(waits(nw, NULL));
    g_assert_true(runs(&nw->b, 3));
    goes_on(nw);
    node_world_free(nw);
}

/* The process on B is gone when it should take over: the guest boots from the images. */
static void test_target_process_dies(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_FILE, 1);
    begin_ok(nw, MOVE_1);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    fake_host_guest_crash(nw->b.host, WEB1);
    json_t *args = nw_start_args(nw, NULL, true, true);
    json_object_set_new(args, "migration", json_string(MOVE_1));
    json_t *answer = start(nw, args, &error);
    assert_refused(answer, error, WRONG_STATE,
                   "instance web1: no incoming guest of migration " MOVE_1
                   " waits here; instance " WEB1 " can be started from its images");
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    g_assert_true(runs(&nw->b, 3));
    goes_on(nw);
    node_world_free(nw);
}

/* The node's questions of every few seconds, while the process is being made. */
static bool ask_in_between(struct fake_host *host, const char *op, bool after, void *data)
{
    struct node_world *nw = data;
    if (strcmp(op, "incoming_prepare") == 0 && !after) {
        nw->mood = MASTER_SILENT;
        node_core_master_reachable(nw->b.core);
    }
    return false;
}

static void test_asked_in_between(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    nw_commit_migration(nw, MOVE_1);
    fake_host_set_hook(nw->b.host, ask_in_between, nw);
    json_autoptr target = nw_incoming_open(nw, NULL);
    g_assert_nonnull(target);
    fake_host_set_hook(nw->b.host, NULL, NULL);
    g_assert_cmpuint(nw->unanswered->len, ==, 1);
    nw_master_answers(nw);
    nw_pass(nw, 100);
    g_assert_true(waits(nw, MOVE_1));
    g_assert_true(nw_migration_start(nw, target, NULL));
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    finish_ok(nw);
    g_assert_true(runs(&nw->b, 3));
    node_world_free(nw);
}

/* --- frames that come late, or from others --- */

static void test_late_frames(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    nw_commit_migration(nw, MOVE_1);
    json_autoptr old = nw_incoming_open(nw, &error);
    json_autoptr again = nw_incoming_open(nw, &error);
    g_assert_true(json_equal(old, again)); /* asked again: nothing is done anew */
    g_assert_cmpuint(fake_host_count(nw->b.host, "incoming_prepare"), ==, 1);
    record_autoptr(instance) instance = nw_instance(nw);
    cancel_says(nw, MOVE_1, "canceled");
    /* A start that was under way when the migration was given up. */
    g_assert_false(nw_migration_start(nw, old, &error));
    assert_refused(NULL, error, REFUSED,
                   "migration " MOVE_1 " of instance web1 is over (canceled)");
    g_assert_true(nw_migrate_undo(nw, NULL));
    /* An opening that was under way when it was closed. */
    nw_commit_migration(nw, MOVE_1);
    json_t *answer = nw_call(nw, &nw->b, "incoming_open",
                             json_make("{s:o}", "instance", instance_to_json(instance)), &error);
    assert_refused(answer, error, REFUSED, "migration " MOVE_1 " of web1 was closed here");
    begin_ok(nw, MOVE_2);
    answer = nw_call(nw, &nw->b, "incoming_open",
                     json_make("{s:o}", "instance", instance_to_json(instance)), &error);
    assert_refused(answer, error, REFUSED, "migration " MOVE_1 " of web1 was closed here");
    json_autoptr closed = migration_call(nw, &nw->b, "incoming_close", MOVE_1, &error);
    g_assert_nonnull(closed);
    g_assert_true(waits(nw, MOVE_2));
    cancel_says(nw, MOVE_1, "none");
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    /* Nor is it closed when it is the guest. */
    answer = migration_call(nw, &nw->b, "incoming_close", MOVE_2, &error);
    assert_refused(answer, error, WRONG_STATE,
                   "instance " WEB1 " has moved to this node by migration " MOVE_2);
    finish_ok(nw);
    answer = migration_call(nw, &nw->b, "incoming_close", MOVE_2, &error);
    assert_refused(answer, error, WRONG_STATE,
                   "instance web1 has moved to this node by migration " MOVE_2);
    goes_on(nw);
    node_world_free(nw);
}

/* incoming_switch ends a replica: only the node that the guest comes from may ask for it. */
static void test_switch_by_others(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    json_t *answer = migration_call(nw, &nw->b, "incoming_switch", MOVE_1, &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PERMISSION); /* not a job's to ask */
    g_clear_error(&error);
    nw_commit_migration(nw, MOVE_1);
    json_autoptr target = nw_incoming_open(nw, &error);
    g_assert_nonnull(target);
    struct env *stranger = fake_process(nw->world, NODE_M, ROLE_NODED);
    struct fake_reply reply = {0};
    fake_call_start_stamped(stranger, 0, nw->stamp, NODE_B, ROLE_NODED, "incoming_switch",
                            nw_migration_args(MOVE_1), &reply);
    nw_until(nw, reply.done);
    assert_refused(reply.result, reply.error, PERMISSION,
                   "migration " MOVE_1 " comes from node " NODE_A "; node " NODE_M
                   " may not switch it over");
    fake_call_start_stamped(nw->a.env, 0, nw->stamp, NODE_B, ROLE_NODED, "incoming_switch",
                            nw_migration_args(MOVE_2), &reply);
    nw_until(nw, reply.done);
    assert_refused(reply.result, reply.error, WRONG_STATE,
                   "no incoming guest of migration " MOVE_2 " waits here");
    g_assert_true(fake_host_exports(nw->b.host, WEB1));
    node_world_free(nw);
}

/* --- bad input --- */

static void test_bad_input(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    record_autoptr(instance) instance = nw_instance(nw);
    json_t *answer = nw_call(nw, &nw->b, "incoming_open",
                             json_make("{s:o}", "instance", instance_to_json(instance)), &error);
    assert_refused(answer, error, WRONG_INPUT,
                   "instance.migration_node: the record of web1 does not say that it moves to this "
                   "node");
    nw_commit_migration(nw, MOVE_1);
    json_autoptr target = nw_incoming_open(nw, &error);
    nw->web1.migration_node = NODE_A;
    g_assert_false(nw_migration_start(nw, target, &error));
    assert_refused(NULL, error, WRONG_INPUT, "target_node: the guest is there already");
    nw->web1.migration_node = NODE_B;
    json_autoptr disks = nw_open_replica(nw, &error);
    json_object_set(target, "disks", disks);
    g_assert_false(nw_migration_start(nw, target, &error));
    assert_refused(NULL, error, WRONG_INPUT, "target.disks: 1 exports for 0 disks that are copied");
    json_object_del(target, "disks");
    json_t *args = nw_start_args(nw, NULL, true, true);
    json_object_set_new(args, "migration", json_string(MOVE_2));
    answer = start(nw, args, &error);
    assert_refused(answer, error, WRONG_INPUT, "migration: the record of web1 does not name it");
    g_assert_true(runs(&nw->a, 2));
    node_world_free(nw);
}

static void test_start_refused(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    nw_commit_migration(nw, MOVE_1);
    json_autoptr target = nw_incoming_open(nw, &error);
    fake_host_export_fail(nw->b.host, WEB1);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    g_assert_false(nw_migration_start(nw, target, &error));
    assert_refused(NULL, error, WRONG_STATE, "the replica of instance web1 is not in sync");
    fake_host_guest_poweroff(nw->a.host, WEB1);
    nw_pass(nw, 300);
    g_assert_false(nw_migration_start(nw, target, &error));
    assert_refused(NULL, error, WRONG_STATE, "instance web1 does not run");
    nw->web1.generation = 1;
    g_assert_false(nw_migration_start(nw, target, &error));
    assert_refused(NULL, error, REFUSED,
                   "generation 1 of instance web1 is over: generation 2 was already used here");
    node_world_free(nw);
}

/* What would not go with the guest is refused while it is sent. */
static void test_refused_meanwhile(void)
{
    static const char text[] = "instance web1 is being moved to another node by migration " MOVE_1
                               "; wait for its end or cancel it";
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_FILE, 1);
    nw_commit_migration(nw, MOVE_1);
    json_autoptr target = nw_incoming_open(nw, &error);
    g_assert_true(nw_migration_start(nw, target, &error));
    json_t *grow = nw_guest_args(nw);
    json_object_set_new(grow, "disk", json_integer(0));
    json_object_set_new(grow, "size", json_integer(2));
    json_t *answer = nw_call(nw, &nw->a, "disk_grow", json_deep_copy(grow), &error);
    assert_refused(answer, error, WRONG_STATE, text);
    answer = nw_call(nw, &nw->a, "guest_reset", nw_guest_args(nw), &error);
    assert_refused(answer, error, WRONG_STATE, text);
    json_object_set_new(target, "migration", json_string(MOVE_2));
    g_assert_false(nw_migration_start(nw, target, &error));
    assert_refused(NULL, error, WRONG_STATE, "instance web1 is being moved by migration " MOVE_1);
    answer = nw_call(nw, &nw->b, "disk_grow", grow, &error);
    assert_refused(answer, error, WRONG_STATE,
                   "instance " WEB1 " is being moved here by migration " MOVE_1);
    json_autoptr report = nw_report(nw, &nw->a);
    json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "migration")), ==, MOVE_1);
    json_autoptr there = nw_report(nw, &nw->b);
    guest = json_array_get(json_object_get(there, "guests"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "state")), ==, "incoming");
    g_assert_cmpint(json_integer_value(json_object_get(guest, "generation")), ==, 3);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    node_world_free(nw);
}

/* --- a new master --- */

/* A migration is the node's own: it does not keep a new master waiting, and tells whoever is one of
 * its end. */
static void test_new_master(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_MIRROR, 1);
    nw_cut(nw, &nw->b, true); /* nothing is sent */
    nw_cut(nw, &nw->b, false);
    begin_ok(nw, MOVE_1);
    nw->stamp.epoch = 2;
    gint64 before = fake_now_ms(nw->world);
    g_assert_true(nw_announce(nw, &nw->a, &error));
    g_assert_cmpint(fake_now_ms(nw->world) - before, <, 100);
    g_assert_true(nw_announce(nw, &nw->b, &error));
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    finish_ok(nw);
    goes_on(nw);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/migration/mirror#SAF-17", test_mirror);
    g_test_add_func("/migration/mirror-not-copied#SAF-17", test_mirror_not_copied);
    g_test_add_func("/migration/mirror-not-synced#SAF-11,SAF-17", test_mirror_not_synced);
    g_test_add_func("/migration/mirror-after-an-error#SAF-11,SAF-17", test_mirror_after_an_error);
    g_test_add_func("/migration/limits", test_limits);
    g_test_add_data_func("/migration/diskless#SAF-17", GUINT_TO_POINTER(TEMPLATE_DISKLESS),
                         test_template);
    g_test_add_data_func("/migration/file#SAF-17", GUINT_TO_POINTER(TEMPLATE_FILE), test_template);
    g_test_add_data_func("/migration/sharedfile#SAF-17,SAF-19",
                         GUINT_TO_POINTER(TEMPLATE_SHAREDFILE), test_template);
    g_test_add_func("/migration/taps", test_taps);
    g_test_add_func("/migration/routed", test_routed);
    g_test_add_func("/migration/no-bridge", test_no_bridge);
    g_test_add_data_func("/migration/cancel-mirror#SAF-17", GUINT_TO_POINTER(TEMPLATE_MIRROR),
                         test_cancel);
    g_test_add_data_func("/migration/cancel-file#SAF-17", GUINT_TO_POINTER(TEMPLATE_FILE),
                         test_cancel);
    g_test_add_func("/migration/timeout#SAF-17", test_timeout);
    g_test_add_func("/migration/breaks-late#SAF-13,SAF-17", test_breaks_late);
    g_test_add_func("/migration/mirror-goes-on#SAF-13,SAF-17", test_mirror_goes_on_at_switch);
    g_test_add_func("/migration/lost-replica-cancels#SAF-13,SAF-17", test_lost_replica_cancels);
    g_test_add_func("/migration/cut-at-switch#SAF-15,SAF-17", test_cut_at_switch);
    g_test_add_func("/migration/frozen-monitor#SAF-15,SAF-17", test_frozen_monitor);
    g_test_add_func("/migration/no-word-at-switch#SAF-13,SAF-17", test_no_word_at_switch);
    g_test_add_func("/migration/stop-while-copying#SAF-11,SAF-17", test_stop_while_copying);
    g_test_add_func("/migration/stop-after-hand-over#SAF-17", test_stop_after_hand_over);
    g_test_add_func("/migration/told-by-the-next-daemon#SAF-17", test_told_by_the_next_daemon);
    g_test_add_func("/migration/failover-on-target#SAF-16,SAF-17", test_failover_on_target);
    g_test_add_func("/migration/target-process-dies#SAF-17", test_target_process_dies);
    g_test_add_func("/migration/asked-about-while-it-opens#SAF-17,SAF-19", test_asked_in_between);
    g_test_add_func("/migration/late-frames#SAF-17,SAF-20", test_late_frames);
    g_test_add_func("/migration/switch-by-others#SAF-17", test_switch_by_others);
    g_test_add_func("/migration/bad-input#SAF-17", test_bad_input);
    g_test_add_func("/migration/start-refused#SAF-17", test_start_refused);
    g_test_add_func("/migration/refused-meanwhile#SAF-17", test_refused_meanwhile);
    g_test_add_func("/migration/new-master#SAF-06,SAF-17", test_new_master);
    return g_test_run();
}
