/*
 * Guests on nodes whose disks have no room: core/node room.c, the watch of a mirror beside a
 * silent monitor, what a stop says.
 */
#include "helper/node_world.h"

static guint64 told(struct node_world *nw)
{
    return fake_hosts_acknowledged(nw->hosts, WEB1);
}

static void assert_goes_on(struct node_world *nw)
{
    guint64 before = told(nw);
    nw_until(nw, told(nw) > before + 10);
}

static bool stands_still(struct node_world *nw, struct test_node *node)
{
    return fake_host_io_stop(node->host, WEB1) != IO_STOP_NONE;
}

/* It stands still, and goes on standing still. */
static void assert_stays(struct node_world *nw, struct test_node *node, guint ms)
{
    guint64 before = told(nw);
    nw_pass(nw, ms);
    g_assert_true(stands_still(nw, node));
    g_assert_cmpuint(told(nw), ==, before);
}

static void create_and_start(struct node_world *nw, enum disk_template disk_template)
{
    g_autoptr(GError) error = NULL;
    nw->web1.disk_template = disk_template;
    nw_create(nw, NODE_A, disk_template == TEMPLATE_MIRROR ? NODE_B : "", 2, &error);
    g_assert_no_error(error);
    nw_start(nw, &error);
    g_assert_no_error(error);
    if (disk_template == TEMPLATE_MIRROR)
        nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
}

static void assert_reported(struct node_world *nw, struct test_node *node, const char *io_stop)
{
    json_autoptr report = nw_report(nw, node);
    const json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "state")), ==, "running");
    g_assert_cmpstr(json_string_value(json_object_get(guest, "io_stop")), ==, io_stop);
    g_assert_cmpint(json_integer_value(json_object_get(guest, "io_errors")), ==, 0);
}

/* Whatever its disks are, it holds what finds no room, and goes on by itself. */
static void test_goes_on(void)
{
    static const enum disk_template templates[] = {TEMPLATE_FILE, TEMPLATE_MIRROR,
                                                   TEMPLATE_SHAREDFILE};
    for (guint i = 0; i < G_N_ELEMENTS(templates); i++) {
        struct node_world *nw = node_world_new(i + 1);
        create_and_start(nw, templates[i]);
        assert_reported(nw, &nw->a, "none");
        fake_host_set_full(nw->a.host, true);
        nw_until(nw, stands_still(nw, &nw->a));
        nw_pass(nw, 6000);
        assert_reported(nw, &nw->a, "no-space");
        if (templates[i] != TEMPLATE_SHAREDFILE) /* its room is elsewhere */
            g_assert_cmpuint(fake_host_count(nw->a.host, "go_on"), ==, 0);
        fake_host_set_full(nw->a.host, false);
        nw_until(nw, !stands_still(nw, &nw->a));
        assert_goes_on(nw);
        assert_reported(nw, &nw->a, "none");
        g_assert_true(templates[i] != TEMPLATE_MIRROR || nw->web1.state == REPLICA_IN_SYNC);
        node_world_free(nw);
    }
}

/* Events may be lost, and the node daemon be another one. */
static void test_after_restart(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_full(nw->a.host, true);
    nw_until(nw, stands_still(nw, &nw->a));
    nw_daemon_kill(nw, &nw->a);
    nw->mood = MASTER_SILENT;
    fake_host_set_full(nw->a.host, false);
    nw_daemon_start(nw, &nw->a);
    assert_stays(nw, &nw->a, 20000); /* nobody has confirmed its generation */
    nw_master_answers(nw);
    nw_until(nw, !stands_still(nw, &nw->a));
    assert_goes_on(nw);
    node_world_free(nw);
}

/* Its export ends itself, so the replica is lost, and on record as that before the guest goes on.
 */
static void test_secondary_full(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    fake_host_set_full(nw->b.host, true);
    nw_until(nw, !fake_host_exports(nw->b.host, WEB1));
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    assert_goes_on(nw);
    g_assert_false(stands_still(nw, &nw->a));
    node_world_free(nw);
}

/* The hypervisor stops the guest, which waits for what the replica does not answer: its monitor is
 * silent until the replica is on record as stale, and given up (SAF-13, 15, 27). */
static void test_both_full(void)
{
    guint frozen = 0;
    for (guint seed = 0; seed < 24; seed++) {
        struct node_world *nw = node_world_new(seed);
        nw_create_and_start(nw);
        nw_pass(nw, 100 + seed);
        fake_host_set_full(nw->b.host, true);
        fake_host_set_full(nw->a.host, true);
        nw_until(nw, stands_still(nw, &nw->a));
        nw_pass(nw, 50);
        frozen += fake_host_frozen(nw->a.host, WEB1);
        nw_until(nw, nw->web1.state == REPLICA_STALE || (!fake_host_held(nw->a.host, WEB1) &&
                                                         fake_host_exports(nw->b.host, WEB1)));
        nw_until(nw, !fake_host_frozen(nw->a.host, WEB1));
        assert_stays(nw, &nw->a, 3000);
        fake_host_set_full(nw->a.host, false);
        nw_until(nw, !stands_still(nw, &nw->a));
        assert_goes_on(nw);
        node_world_free(nw);
    }
    g_assert_cmpuint(frozen, >, 0);
}

/* The same when it switches itself off while its replica is away. */
static void test_off_while_held(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, fake_host_held(nw->a.host, WEB1));
    fake_host_guest_poweroff(nw->a.host, WEB1);
    nw_until(nw, fake_host_frozen(nw->a.host, WEB1));
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_until(nw, !fake_host_frozen(nw->a.host, WEB1));
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_SHUTDOWN);
    nw_until(nw, fake_host_mirror(nw->a.host, WEB1) == MIRROR_NONE);
    g_assert_cmpuint(fake_host_count(nw->a.host, "go_on"), ==, 0);
    node_world_free(nw);
}

/* One that a person has paused, too, is nobody's to let go on but that person's. */
static void test_paused_by_a_person(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_FILE);
    fake_host_guest_pause(nw->a.host, WEB1, true);
    fake_host_set_full(nw->a.host, true);
    nw_pass(nw, 10000);
    fake_host_set_full(nw->a.host, false);
    nw_pass(nw, 10000);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_PAUSED);
    g_assert_cmpuint(fake_host_count(nw->a.host, "go_on"), ==, 0);
    fake_host_guest_pause(nw->a.host, WEB1, false);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* What stops at once each time, with room there, is not helped by room. */
static void test_no_help(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_FILE);
    fake_host_set_space_lies(nw->a.host, true);
    fake_host_set_full(nw->a.host, true);
    nw_until(nw, stands_still(nw, &nw->a));
    nw_pass(nw, 60000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "go_on"), ==, 3);
    assert_reported(nw, &nw->a, "failed");
    g_autoptr(GError) error = NULL;
    json_autoptr refused = nw_call(nw, &nw->a, "guest_stop", nw_stop_args(nw, 1000), &error);
    assert_refused(refused, error, WRONG_STATE,
                   "instance web1 stands still, because its disk on this node fails though it has "
                   "room: it cannot shut down; with --timeout 0 it is ended as by a power cut");
    node_world_free(nw);
}

/* No room, then some, then none: that is not the same as a disk that fails. */
static void test_again_and_again(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_FILE);
    for (guint i = 0; i < 6; i++) {
        fake_host_set_full(nw->a.host, true);
        nw_until(nw, stands_still(nw, &nw->a));
        nw_pass(nw, 2000);
        fake_host_set_full(nw->a.host, false);
        nw_until(nw, !stands_still(nw, &nw->a));
    }
    assert_goes_on(nw);
    assert_reported(nw, &nw->a, "none");
    node_world_free(nw);
}

/* It cannot shut down; to lose what it holds takes a person's word. */
static void test_stop(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_set_full(nw->a.host, true);
    nw_until(nw, stands_still(nw, &nw->a));
    json_autoptr refused = nw_call(nw, &nw->a, "guest_stop", nw_stop_args(nw, 1000), &error);
    assert_refused(
        refused, error, WRONG_STATE,
        "instance web1 stands still, because there is no room for its disks on this "
        "node: it cannot shut down; make room and it goes on by itself, or end it as by a "
        "power cut with --timeout 0");
    fake_host_set_full(nw->a.host, false);
    nw_until(nw, !stands_still(nw, &nw->a)); /* it was left as it was, with its watch */
    assert_goes_on(nw);
    fake_host_set_full(nw->a.host, true);
    nw_until(nw, stands_still(nw, &nw->a));
    fake_host_set_full(nw->a.host, false);
    g_assert_true(nw_stop(nw, 0, &error));
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    nw_start(nw, &error);
    g_assert_no_error(error);
    assert_goes_on(nw);
    node_world_free(nw);
}

/* One that finds no room while it shuts down is left alone, too. */
static void test_stop_finds_no_room(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    create_and_start(nw, TEMPLATE_FILE);
    fake_host_set_powerdown_ms(nw->a.host, 0); /* it takes its time */
    struct fake_reply reply = {0};
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 3000), &reply);
    nw_pass(nw, 500);
    fake_host_set_full(nw->a.host, true);
    nw_until(nw, reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    fake_reply_clear(&reply);
    fake_host_set_full(nw->a.host, false);
    nw_until(nw, !stands_still(nw, &nw->a));
    assert_goes_on(nw);
    node_world_free(nw);
}

/* What it holds goes with it, and is repeated where it then is (SAF-17). */
static void test_migrates(void)
{
    for (guint seed = 0; seed < 4; seed++) {
        struct node_world *nw = node_world_new(seed);
        g_autoptr(GError) error = NULL;
        nw_create_and_start(nw);
        fake_host_set_full(nw->a.host, true);
        nw_until(nw, stands_still(nw, &nw->a));
        nw_migrate_begin(nw, MOVE_1, &error);
        g_assert_no_error(error);
        g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
        g_assert_cmpuint(fake_host_count(nw->a.host, "go_on"), ==, 0);
        nw_migrate_finish(nw, &error);
        g_assert_no_error(error);
        assert_goes_on(nw);
        g_assert_cmpint(fake_host_state(nw->b.host, WEB1, NULL), ==, GUEST_RUNNING);
        node_world_free(nw);
    }
}

static void give_volume(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    json_t *args = nw_guest_args(nw);
    nw->web1.attachment = ATTACHMENT_1;
    json_object_set_new(args, "volume", nw_volume(nw));
    json_autoptr done = nw_call(nw, &nw->a, "volume_attach", args, &error);
    g_assert_no_error(error);
}

/* UUID of the volume that the node says it stands still for. */
static void assert_volume_told(struct node_world *nw, bool volume)
{
    json_autoptr report = nw_report(nw, &nw->a);
    json_autoptr told = nw_volume(nw);
    const json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "io_volume")), ==,
                    volume ? json_string_value(json_object_get(told, "volume")) : "");
}

/* A back end without room stops its guest as its own disks would, and is no fault of these: nothing
 * is told of them, and the replica stays what it is. */
static void test_volume(void)
{
    static const enum disk_template templates[] = {TEMPLATE_FILE, TEMPLATE_MIRROR};
    for (guint i = 0; i < G_N_ELEMENTS(templates); i++) {
        struct node_world *nw = node_world_new(i + 1);
        g_autoptr(GError) error = NULL;
        create_and_start(nw, templates[i]);
        give_volume(nw);
        fake_host_set_volumes_full(nw->a.host, true);
        nw_until(nw, stands_still(nw, &nw->a));
        nw_pass(nw, 6000);
        assert_reported(nw, &nw->a, "no-space");
        assert_volume_told(nw, true);
        g_assert_cmpuint(fake_host_count(nw->a.host, "go_on"), ==, 0);
        json_autoptr refused = nw_call(nw, &nw->a, "guest_stop", nw_stop_args(nw, 1000), &error);
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
        g_assert_nonnull(strstr(error->message, "there is no room for its volume /"));
        fake_host_set_volumes_full(nw->a.host, false);
        nw_until(nw, !stands_still(nw, &nw->a));
        assert_goes_on(nw);
        assert_reported(nw, &nw->a, "none");
        assert_volume_told(nw, false);
        g_assert_true(templates[i] != TEMPLATE_MIRROR || nw->web1.state == REPLICA_IN_SYNC);
        /* What a volume has found once makes its own disks no less of a reason. */
        fake_host_set_full(nw->a.host, true);
        nw_until(nw, stands_still(nw, &nw->a));
        nw_pass(nw, 6000);
        assert_volume_told(nw, false);
        fake_host_set_full(nw->a.host, false);
        nw_until(nw, !stands_still(nw, &nw->a));
        node_world_free(nw);
    }
}

/* A back end that says that it has room and gives none: its own disks have not failed. */
static void test_volume_lies(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_FILE);
    give_volume(nw);
    fake_host_set_space_lies(nw->a.host, true);
    fake_host_set_volumes_full(nw->a.host, true);
    nw_until(nw, stands_still(nw, &nw->a));
    nw_pass(nw, 60000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "go_on"), >, 3);
    assert_reported(nw, &nw->a, "no-space");
    assert_volume_told(nw, true);
    fake_host_set_volumes_full(nw->a.host, false);
    nw_until(nw, !stands_still(nw, &nw->a));
    assert_goes_on(nw);
    node_world_free(nw);
}

/* One that does not answer has no room, and holds up nothing but its guest. */
static void test_volume_hangs(void)
{
    struct node_world *nw = node_world_new(1);
    create_and_start(nw, TEMPLATE_FILE);
    give_volume(nw);
    fake_host_hang(nw->a.host, "look_at", true);
    fake_host_set_volumes_full(nw->a.host, true);
    nw_until(nw, stands_still(nw, &nw->a));
    fake_host_set_volumes_full(nw->a.host, false);
    assert_stays(nw, &nw->a, 20000);
    assert_reported(nw, &nw->a, "no-space");
    assert_volume_told(nw, true);
    g_assert_cmpuint(fake_host_count(nw->a.host, "go_on"), ==, 0);
    g_assert_cmpuint(fake_host_count(nw->a.host, "look_at"), <=, 2);
    fake_host_hang(nw->a.host, "look_at", false);
    nw_until(nw, !stands_still(nw, &nw->a));
    assert_goes_on(nw);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/room/goes-on#SAF-27", test_goes_on);
    g_test_add_func("/room/after-restart#SAF-19,SAF-27", test_after_restart);
    g_test_add_func("/room/secondary-full#SAF-13,SAF-14", test_secondary_full);
    g_test_add_func("/room/both-full#SAF-13,SAF-15,SAF-27", test_both_full);
    g_test_add_func("/room/off-while-held#SAF-13,SAF-15,SAF-27", test_off_while_held);
    g_test_add_func("/room/paused-by-a-person#SAF-27", test_paused_by_a_person);
    g_test_add_func("/room/no-help#SAF-27", test_no_help);
    g_test_add_func("/room/again-and-again#SAF-27", test_again_and_again);
    g_test_add_func("/room/stop#SAF-27", test_stop);
    g_test_add_func("/room/stop-finds-no-room#SAF-27", test_stop_finds_no_room);
    g_test_add_func("/room/migrates#SAF-17,SAF-27", test_migrates);
    g_test_add_func("/room/volume#SAF-13,SAF-27", test_volume);
    g_test_add_func("/room/volume-lies#SAF-27", test_volume_lies);
    g_test_add_func("/room/volume-hangs#SAF-27", test_volume_hangs);
    return g_test_run();
}
