/*
 * Live migration of counting guests between two real QEMU processes: no count that was printed is
 * lost, never do both run, and whoever asks learns where it stands.
 */
#include "moving.h"

#include "helper/patience.h"

#include <gio/gio.h>
#include <string.h>

static void move(struct moving *moving, bool live)
{
    gint64 start = loop_boot_ms();
    moving_open(moving);
    moving_start(moving, live);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    g_assert_true(world_is_frozen(moving->a, moving->before));
    gint64 pause = loop_boot_ms();
    moving_hand_over(moving);
    g_assert_cmpint(world_state(moving->b, moving->after), ==, GUEST_INCOMING);
    moving_take(moving);
    g_test_message("moved in %d ms, %d ms of them from the hand-over to running",
                   (int)(loop_boot_ms() - start - 600), (int)(loop_boot_ms() - pause));
    g_assert_cmpuint(moving->b->exited, ==, 0);
}

static void moves(const char *name, enum disk_template disk_template, guint disks,
                  enum disk_format format)
{
    struct moving *moving = moving_new(name, disk_template, disks, format);
    move(moving, true);
    moving_check_whole(moving);
    moving_free(moving);
}

static void mirrored(void *unused)
{
    moves("mirror", TEMPLATE_MIRROR, 1, FORMAT_RAW);
}

static void mirrored_two_disks(void *unused)
{
    moves("mirror2", TEMPLATE_MIRROR, 2, FORMAT_RAW);
}

static void copied(void *unused)
{
    moves("file", TEMPLATE_FILE, 1, FORMAT_RAW);
}

static void copied_qcow2(void *unused)
{
    moves("qcow2", TEMPLATE_FILE, 2, FORMAT_QCOW2);
}

static void shared(void *unused)
{
    moves("shared", TEMPLATE_SHAREDFILE, 1, FORMAT_RAW);
}

/* Whoever asks meanwhile, without a pause, hears nothing but that it is copied. */
static void starts_and_stops(struct moving *moving)
{
    enum migration_step step = STEP_COPYING;
    moving_open(moving);
    moving_start(moving, true);
    for (gint64 since = loop_boot_ms(); step == STEP_COPYING; step = moving_step(moving, NULL))
        g_assert_false(patience_is_over(since, 60000));
    g_assert_cmpint(step, ==, STEP_STOPPED);
}

/* Until QEMU is told to send it says "completed" of its own arrival: the guest has not left. */
static void there_and_back(void *unused)
{
    struct moving *moving = moving_new("turn", TEMPLATE_FILE, 1, FORMAT_RAW);
    move(moving, true);
    moving_turn(moving);
    starts_and_stops(moving);
    moving_hand_over(moving);
    g_assert_cmpint(world_state(moving->b, moving->after), ==, GUEST_INCOMING);
    moving_free(moving);
}

/* And "cancelled" of the try before. */
static void second_try(void *unused)
{
    struct moving *moving = moving_new("second", TEMPLATE_FILE, 1, FORMAT_RAW);
    starts_and_stops(moving);
    moving_cancel(moving);
    moving_kill_b(moving);
    g_clear_pointer(&moving->target, migration_target_free);
    starts_and_stops(moving);
    moving_free(moving);
}

/* One without disks does not count, but it moves. */
static void diskless(void *unused)
{
    struct moving *moving = moving_new("diskless", TEMPLATE_DISKLESS, 0, FORMAT_RAW);
    move(moving, true);
    moving_free(moving);
}

/* How long it may stand still, and how much may be sent. */
static void limited(void *unused)
{
    struct moving *moving = moving_new("limits", TEMPLATE_DISKLESS, 0, FORMAT_RAW);
    g_autoptr(GError) error = NULL;
    moving_open(moving);
    moving_start_slowly(moving);
    json_autoptr set =
        world_monitor(moving->a, moving->before, "query-migrate-parameters", NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(json_object_get(set, "downtime-limit")), ==, 1);
    g_assert_cmpint(json_integer_value(json_object_get(set, "max-bandwidth")), ==, MIB(1));
    moving_free(moving);
}

static void not_live(void *unused)
{
    struct moving *moving = moving_new("paused", TEMPLATE_MIRROR, 1, FORMAT_RAW);
    moving_open(moving);
    moving_start(moving, false);
    g_assert_cmpint(world_state(moving->a, moving->before), ==, GUEST_PAUSED);
    g_assert_true(world_is_frozen(moving->a, moving->before));
    g_assert_true(moving_await(moving, STEP_STOPPED));
    moving_hand_over(moving);
    moving_take(moving);
    moving_check_whole(moving);
    moving_free(moving);
}

/* Its volumes are nobody's from the hand-over until it runs, though its own disks were written over
 * there before: a process that goes on after all finds them free. */
static void with_volumes(void *unused)
{
    struct moving *moving = moving_new("volumes", TEMPLATE_FILE, 1, FORMAT_QCOW2);
    moving_attach(moving);
    moving_open(moving);
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    g_assert_true(moving_volume_locked(moving));
    moving_hand_over(moving);
    g_assert_false(moving_volume_locked(moving));
    moving_take(moving);
    g_assert_true(moving_volume_locked(moving));
    moving_check_whole(moving);
    moving_free(moving);
}

/* Where it is now it can be mirrored, before it runs and without a copy of what has not changed. */
static void mirrors_back(const char *name, bool volumes)
{
    struct moving *moving = moving_new(name, TEMPLATE_MIRROR, 1, FORMAT_RAW);
    struct world_node *a = moving->a, *b = moving->b;
    g_autoptr(GError) error = NULL;
    if (volumes)
        moving_attach(moving);
    moving_open(moving);
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    moving_hand_over(moving);
    a->hypervisor->ops->kill(a->hypervisor, moving->before->uuid, 1, &error);
    g_assert_no_error(error);

    g_autofree char *replica = g_strdup_printf("%s/disks/%s.%s.disk0.raw", a->paths->var,
                                               moving->after->uuid, MOVING_MIGRATION);
    g_assert_cmpint(rename(moving->images_a->pdata[0], replica), ==, 0);
    record_autoptr(export_target) target = world_export(a, moving->after, MOVING_MIGRATION);
    g_assert_false(b->hypervisor->ops->mirror_start(b->hypervisor, moving->after->uuid, 2, target,
                                                    COPY_NOTHING, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==,
                    "guest web1 is an incoming one of migration " MOVING_MIGRATION
                    ", of which not everything has arrived");
    g_clear_error(&error);
    b->hypervisor->ops->incoming_finish(b->hypervisor, moving->after->uuid, 2, MOVING_MIGRATION,
                                        &error);
    g_assert_no_error(error);
    b->hypervisor->ops->mirror_start(b->hypervisor, moving->after->uuid, 2, target, COPY_NOTHING,
                                     &error);
    g_assert_no_error(error);
    g_assert_true(world_await_mirror(b, moving->after, MIRROR_READY));
    g_assert_false(volumes && moving_volume_locked(moving));
    b->hypervisor->ops->run(b->hypervisor, moving->after->uuid, 2, &error);
    g_assert_no_error(error);
    g_assert_true(!volumes || moving_volume_locked(moving));
    moving_check_whole(moving);
    moving_kill_b(moving);
    world_assert_whole(a, moving->after, MOVING_MIGRATION, b);
    g_assert_true(
        a->storage->ops->export_close(a->storage, moving->after->uuid, MOVING_MIGRATION, &error));
    moving_free(moving);
}

static void mirrors_back_alone(void *unused)
{
    mirrors_back("back", false);
}

static void mirrors_back_with_volumes(void *unused)
{
    mirrors_back("backvol", true);
}

/* --- what is refused --- */

static void refused(const GError *error, int code, const char *message)
{
    g_assert_error(error, FETTLE_ERROR, code);
    g_assert_cmpstr(error->message, ==, message);
}

static void wrong_order(void *unused)
{
    struct moving *moving = moving_new("order", TEMPLATE_MIRROR, 1, FORMAT_RAW);
    struct hypervisor *a = moving->a->hypervisor, *b = moving->b->hypervisor;
    const char *uuid = moving->before->uuid;
    const struct migration_limits limits = {1024, 300, true};
    g_autoptr(GError) error = NULL;
    moving_open(moving);
    g_assert_false(b->ops->run(b, uuid, 2, &error));
    refused(error, FETTLE_ERROR_WRONG_STATE,
            "guest web1 is an incoming one of migration " MOVING_MIGRATION
            ", of which not everything has arrived");
    g_clear_error(&error);
    g_assert_false(b->ops->incoming_finish(b, uuid, 2, MOVING_MIGRATION, &error));
    refused(error, FETTLE_ERROR_TEMPORARY, "guest web1: not everything has arrived yet");
    g_clear_error(&error);
    g_assert_false(b->ops->incoming_finish(b, uuid, 2, MOVING_REPLICA, &error));
    refused(error, FETTLE_ERROR_REFUSED,
            "guest web1 is not the incoming one of migration " MOVING_REPLICA);
    g_clear_error(&error);
    g_assert_false(a->ops->migrate_continue(a, uuid, 1, &error));
    refused(error, FETTLE_ERROR_WRONG_STATE,
            "guest web1 has no migration that waits to be continued");
    g_clear_error(&error);
    g_assert_true(a->ops->migrate_cancel(a, uuid, 1, &error)); /* there is none */

    moving_start(moving, true);
    moving_start(moving, true); /* asked again */
    record_autoptr(migration_target) other = migration_target_copy(moving->target);
    g_free(other->migration);
    other->migration = g_strdup(MOVING_REPLICA);
    g_assert_false(a->ops->migrate_start(a, uuid, 1, other, &limits, &error));
    refused(error, FETTLE_ERROR_WRONG_STATE,
            "guest web1 is part of migration " MOVING_MIGRATION " already; cancel that first");
    g_clear_error(&error);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    g_assert_false(a->ops->migrate_continue(a, uuid, 1, &error));
    refused(error, FETTLE_ERROR_WRONG_STATE,
            "guest web1: its mirror must be ended in sync before it is handed over");
    g_clear_error(&error);
    moving_hand_over(moving);
    g_assert_true(a->ops->migrate_continue(a, uuid, 1, &error)); /* asked again */
    g_assert_false(a->ops->migrate_cancel(a, uuid, 1, &error));
    refused(error, FETTLE_ERROR_WRONG_STATE, "guest web1 has moved away; its migration is done");
    g_clear_error(&error);
    g_assert_false(a->ops->run(a, uuid, 1, &error));
    refused(error, FETTLE_ERROR_WRONG_STATE, "guest web1 has moved away; it never runs here again");
    g_clear_error(&error);
    moving_take(moving);
    moving_check_whole(moving);
    moving_free(moving);
}

static void bad_targets(void *unused)
{
    struct moving *moving = moving_new("bad", TEMPLATE_FILE, 1, FORMAT_RAW);
    struct hypervisor *a = moving->a->hypervisor;
    const char *uuid = moving->before->uuid;
    const struct migration_limits limits = {1024, 300, true};
    g_autoptr(GError) error = NULL;
    moving_open(moving);
    record_autoptr(migration_target) wrong = migration_target_copy(moving->target);
    ((struct export_disk *)wrong->disks->disks->pdata[0])->port = 1;
    g_assert_false(a->ops->migrate_start(a, uuid, 1, wrong, &limits, &error));
    refused(error, FETTLE_ERROR_UNREACHABLE,
            "guest web1: the incoming guest's disks on 127.0.0.1 do not answer");
    g_clear_error(&error);
    g_ptr_array_set_size(wrong->disks->disks, 0);
    g_assert_false(a->ops->migrate_start(a, uuid, 1, wrong, &limits, &error));
    refused(error, FETTLE_ERROR_WRONG_INPUT, "guest web1 has 1 disks, its target has 0");
    g_clear_error(&error);
    g_assert_cmpint(moving_step(moving, NULL), ==, STEP_NONE);

    /* Another key: the other side lets nobody in, for its disks nor for its memory. */
    migration_target_free(g_steal_pointer(&wrong));
    wrong = migration_target_copy(moving->target);
    wrong->disks->psk[0] = wrong->disks->psk[0] == 'a' ? 'b' : 'a';
    g_assert_false(a->ops->migrate_start(a, uuid, 1, wrong, &limits, &error));
    g_assert_nonnull(strstr(error->message, "guest web1: "));
    g_assert_nonnull(strstr(error->message, "TLS handshake failed"));
    g_clear_error(&error);
    moving_check_stayed(moving);
    moving_free(moving);
}

static void wrong_key(void *unused)
{
    struct moving *moving = moving_new("key", TEMPLATE_SHAREDFILE, 1, FORMAT_RAW);
    g_autofree char *why = NULL;
    moving_open(moving);
    moving->target->psk[0] = moving->target->psk[0] == 'a' ? 'b' : 'a';
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_FAILED));
    g_assert_cmpint(moving_step(moving, &why), ==, STEP_FAILED);
    g_test_message("%s", why);
    g_assert_nonnull(strstr(why, "TLS handshake failed"));
    moving_check_stayed(moving);
    moving_cancel(moving);
    moving_free(moving);
}

/* --- strangers at the ports that the target listens on --- */

static void knock(GPtrArray *held, guint64 port, const char *words, gsize len)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketClient) client = g_socket_client_new();
    GSocketConnection *connection =
        g_socket_client_connect_to_host(client, "127.0.0.1", (guint16)port, NULL, &error);
    g_assert_no_error(error);
    g_ptr_array_add(held, connection);
    GOutputStream *out = g_io_stream_get_output_stream(G_IO_STREAM(connection));
    g_assert_true(g_output_stream_write_all(out, words, len, NULL, NULL, &error));
}

/* One says nothing, one nothing that could be understood, one asks for the disk without a key. */
static void knock_at_disk(const struct moving *moving, GPtrArray *held)
{
    static const char plain[] = "\0\0\0\3IHAVEOPT\0\0\0\1\0\0\0\4disk";
    const struct export_disk *disk = moving->target->disks->disks->pdata[0];
    knock(held, disk->port, "", 0);
    knock(held, disk->port, "GET / HTTP/1.0\r\n\r\n", 18);
    knock(held, disk->port, plain, sizeof plain - 1);
    loop_sleep(300);
}

/* Neither refused nor let in: nothing is heard there. */
static void assert_deaf(guint64 port)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_socket_client_set_timeout(client, 1);
    g_assert_null(
        g_socket_client_connect_to_host(client, "127.0.0.1", (guint16)port, NULL, &error));
    g_assert_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
}

/* They are there before the source is, and while it hands over. */
static void strangers_at_disks(void *unused)
{
    struct moving *moving = moving_new("strangers", TEMPLATE_FILE, 1, FORMAT_RAW);
    g_autoptr(GPtrArray) held = g_ptr_array_new_with_free_func(g_object_unref);
    moving_open(moving);
    knock_at_disk(moving, held);
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    knock_at_disk(moving, held);
    moving_hand_over(moving);
    moving_take(moving);
    assert_deaf(((struct export_disk *)moving->target->disks->disks->pdata[0])->port);
    moving_check_whole(moving);
    moving_free(moving);
}

/* QEMU 7.2 shakes hands with one at a time, in its main loop, and waits: who is there first and
 * says nothing stops the migration, and only that. */
static void stranger_at_memory(void *unused)
{
    struct moving *moving = moving_new("silent", TEMPLATE_SHAREDFILE, 1, FORMAT_RAW);
    g_autoptr(GPtrArray) held = g_ptr_array_new_with_free_func(g_object_unref);
    moving_open(moving);
    knock(held, moving->target->port, "", 0);
    loop_sleep(300);
    moving_start(moving, true);
    loop_sleep(2000);
    g_assert_cmpint(moving_step(moving, NULL), ==, STEP_COPYING);
    moving_cancel(moving);
    moving_kill_b(moving);
    moving_check_stayed(moving);
    moving_free(moving);
}

static void bad_incoming(void *unused)
{
    struct moving *moving = moving_new("badin", TEMPLATE_SHAREDFILE, 1, FORMAT_RAW);
    struct hypervisor *b = moving->b->hypervisor;
    struct guest_spec spec = {
        .instance = moving->after, .images = moving->images_b, .accelerator = ACCEL_TCG};
    struct incoming_spec incoming = {"x", "127.0.0.1", false};
    struct migration_target *target = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_false(b->ops->incoming_prepare(b, &spec, &incoming, &target, &error));
    refused(error, FETTLE_ERROR_WRONG_INPUT, "migration \"x\" is no UUID");
    g_clear_error(&error);
    incoming.migration = MOVING_MIGRATION;
    incoming.address = "192.0.2.1"; /* none of this host */
    g_assert_false(b->ops->incoming_prepare(b, &spec, &incoming, &target, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_HYPERVISOR);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, "Cannot assign requested address"));
    g_clear_error(&error);
    incoming.serve_disks = true;
    incoming.address = "nowhere";
    g_assert_false(b->ops->incoming_prepare(b, &spec, &incoming, &target, &error));
    g_assert_nonnull(error);
    g_assert_null(target);
    g_assert_cmpint(world_state(moving->b, moving->after), ==, GUEST_ABSENT);
    g_assert_cmpuint(world_guest_pid(moving->b, moving->after), ==, 0);
    g_assert_cmpuint(moving->b->exited, ==, 0);
    moving_check_stayed(moving);
    moving_free(moving);
}

static void add_tests(void)
{
    world_test("/migrate/mirror#SAF-17", mirrored);
    world_test("/migrate/mirror-of-two-disks#SAF-17", mirrored_two_disks);
    world_test("/migrate/file", copied);
    world_test("/migrate/qcow2-of-two-disks", copied_qcow2);
    world_test("/migrate/sharedfile#SAF-21", shared);
    world_test("/migrate/there-and-back#SAF-17", there_and_back);
    world_test("/migrate/second-try#SAF-17", second_try);
    world_test("/migrate/diskless", diskless);
    world_test("/migrate/limits", limited);
    world_test("/migrate/not-live", not_live);
    world_test("/migrate/with-volumes#SAF-57", with_volumes);
    world_test("/migrate/mirrors-back-before-it-runs#SAF-17", mirrors_back_alone);
    world_test("/migrate/mirrors-back-before-it-runs/volumes#SAF-17,SAF-57",
               mirrors_back_with_volumes);
    world_test("/migrate/wrong-order#SAF-17,SAF-20", wrong_order);
    world_test("/migrate/bad-targets", bad_targets);
    world_test("/migrate/wrong-key", wrong_key);
    world_test("/migrate/strangers-at-its-disks#SAF-109", strangers_at_disks);
    world_test("/migrate/silent-stranger-at-its-memory#SAF-17", stranger_at_memory);
    world_test("/migrate/bad-incoming", bad_incoming);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}
