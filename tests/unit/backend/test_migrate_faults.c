/*
 * What becomes of a live migration when something dies in the middle: exactly one of the two
 * processes goes on, with everything that was printed, and it is known why.
 */
#include "moving.h"

#include "helper/patience.h"
#include "io/process.h"

#include <signal.h>
#include <string.h>

static void await_exits(const struct world_node *node, guint count)
{
    for (guint i = 0; node->exited < count && i < 3000; i++)
        loop_sleep(20);
    loop_sleep(100); /* another one would come at once */
    g_assert_cmpuint(node->exited, ==, count);
}

static struct moving *at_copying(const char *name, enum disk_template disk_template)
{
    struct moving *moving = moving_new(name, disk_template, 1, FORMAT_RAW);
    moving_open(moving);
    moving_start_slowly(moving);
    moving_await_bytes(moving);
    return moving;
}

static struct moving *at_stop(const char *name, enum disk_template disk_template)
{
    struct moving *moving = moving_new(name, disk_template, 1, FORMAT_RAW);
    moving_open(moving);
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    return moving;
}

/* A second try, to the end. */
static void try_again(struct moving *moving)
{
    moving_kill_b(moving);
    migration_target_free(moving->target);
    moving_open(moving);
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    moving_hand_over(moving);
    moving_take(moving);
    moving_check_whole(moving);
}

/* --- cancelled --- */

static void cancel_copying(const char *name, enum disk_template disk_template)
{
    struct moving *moving = at_copying(name, disk_template);
    moving_cancel(moving);
    moving_check_stayed(moving);
    moving_cancel(moving); /* asked again */
    if (moving->replica != NULL)
        g_assert_true(world_await_mirror(moving->a, moving->before, MIRROR_READY));
    try_again(moving);
    moving_free(moving);
}

static void cancel_mirror(void *unused)
{
    cancel_copying("copying", TEMPLATE_MIRROR);
}

static void cancel_file(void *unused)
{
    cancel_copying("copyfile", TEMPLATE_FILE);
}

static void cancel_stopped(void *unused)
{
    struct moving *moving = at_stop("stopped", TEMPLATE_MIRROR);
    moving_cancel(moving);
    moving_check_stayed(moving);
    g_assert_true(world_await_mirror(moving->a, moving->before, MIRROR_READY));
    try_again(moving);
    moving_free(moving);
}

static void cancel_finished(void *unused)
{
    struct moving *moving = at_stop("finished", TEMPLATE_MIRROR);
    g_autoptr(GError) error = NULL;
    moving_finish_mirrors(moving);
    moving_cancel(moving);
    moving_check_stayed(moving);
    g_assert_true(world_await_mirror(moving->a, moving->before, MIRROR_NONE));
    /* It ran since, so the images are not equal any more. */
    g_assert_false(moving->a->hypervisor->ops->mirror_finish(moving->a->hypervisor,
                                                             moving->before->uuid, 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    moving_free(moving);
}

static void cancel_shared(void *unused)
{
    struct moving *moving = at_stop("sharedcancel", TEMPLATE_SHAREDFILE);
    moving_cancel(moving);
    moving_check_stayed(moving);
    try_again(moving);
    moving_free(moving);
}

/* Paused for it, so it is let go on. */
static void cancel_not_live(void *unused)
{
    struct moving *moving = moving_new("notlive", TEMPLATE_FILE, 1, FORMAT_RAW);
    moving_open(moving);
    moving_start(moving, false);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    moving_cancel(moving);
    moving_check_stayed(moving);
    moving_free(moving);
}

/* --- the target dies --- */

static void target_killed_copying(void *unused)
{
    struct moving *moving = at_copying("targetdies", TEMPLATE_MIRROR);
    g_autofree char *why = NULL;
    kill((pid_t)world_guest_pid(moving->b, moving->after), SIGKILL);
    g_assert_true(moving_await(moving, STEP_FAILED));
    moving_step(moving, &why);
    g_test_message("%s", why);
    await_exits(moving->b, 1);
    moving_check_stayed(moving);
    moving_cancel(moving);
    try_again(moving);
    moving_free(moving);
}

static void target_killed_with_disks(void *unused)
{
    struct moving *moving = at_copying("diskcopy", TEMPLATE_FILE);
    kill((pid_t)world_guest_pid(moving->b, moving->after), SIGKILL);
    g_assert_true(moving_await(moving, STEP_FAILED));
    await_exits(moving->b, 1);
    moving_cancel(moving);
    moving_check_stayed(moving);
    moving_free(moving);
}

/* The mirror has ended, the memory is about to be handed over: the guest goes on by itself, and it
 * is told that it does. */
static void late_failure(const char *name, bool live)
{
    struct moving *moving = moving_new(name, TEMPLATE_MIRROR, 1, FORMAT_RAW);
    g_autoptr(GError) error = NULL;
    g_autofree char *why = NULL;
    moving_open(moving);
    moving_start(moving, live);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    moving_finish_mirrors(moving);
    kill((pid_t)world_guest_pid(moving->b, moving->after), SIGKILL);
    await_exits(moving->b, 1);
    moving->a->hypervisor->ops->migrate_continue(moving->a->hypervisor, moving->before->uuid, 1,
                                                 &error);
    g_assert_no_error(error);
    g_assert_true(moving_await(moving, STEP_FAILED));
    g_assert_cmpint(moving_step(moving, &why), ==, STEP_FAILED);
    g_test_message("%s", why);
    /* Its own, or where to look for one. */
    g_assert_true(strlen(why) > 0 && (!strstr(why, "no reason") || strstr(why, "fettle-noded")));
    for (guint i = 0; world_state(moving->a, moving->before) != GUEST_RUNNING && i < 3000; i++)
        loop_sleep(20);
    moving_check_stayed(moving);
    g_assert_cmpint(moving_step(moving, NULL), ==, STEP_FAILED); /* until somebody has seen it */
    moving_cancel(moving);
    moving_free(moving);
}

static void late_failure_live(void *unused)
{
    late_failure("late", true);
}

static void late_failure_not_live(void *unused)
{
    late_failure("latepaused", false);
}

/* --- the source dies --- */

static void source_killed(struct moving *moving)
{
    g_autoptr(GError) error = NULL;
    guint32 printed = world_printed(moving->a, moving->before);
    kill((pid_t)world_guest_pid(moving->a, moving->before), SIGKILL);
    await_exits(moving->a, 1);
    await_exits(moving->b, 1); /* it cannot become whole any more, and ends by itself */
    g_assert_false(moving->b->hypervisor->ops->incoming_finish(
        moving->b->hypervisor, moving->after->uuid, 2, MOVING_MIGRATION, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_assert_cmpuint(world_printed(moving->b, moving->after), ==, 0);
    g_assert_cmpuint(world_counted(moving->b, moving->after, MOVING_REPLICA), >=, printed);
    moving_free(moving);
}

static void source_killed_copying(void *unused)
{
    source_killed(at_copying("sourcedies", TEMPLATE_MIRROR));
}

static void source_killed_stopped(void *unused)
{
    struct moving *moving = at_stop("sourcestops", TEMPLATE_MIRROR);
    moving_finish_mirrors(moving);
    source_killed(moving);
}

/* --- the link is cut --- */

static void stop_b(struct moving *moving)
{
    patience_stop((pid_t)world_guest_pid(moving->b, moving->after));
    patience_stop((pid_t)world_export_pid(moving->b, moving->before, MOVING_REPLICA, 0));
}

static void cont_b(struct moving *moving)
{
    kill((pid_t)world_guest_pid(moving->b, moving->after), SIGCONT);
    kill((pid_t)world_export_pid(moving->b, moving->before, MOVING_REPLICA, 0), SIGCONT);
}

/* The guest's writes wait for a mirror that is lost, also after the migration has been given up:
 * that lets nothing go. QEMU may have begun to stop the guest, for which it waits for those writes
 * and answers nothing (SAF-15). When the other side is back in time everything goes on. */
static void cancel_with_lost_mirror(struct moving *moving, void (*mend)(struct moving *moving))
{
    struct hypervisor *hv = moving->a->hypervisor;
    g_autoptr(GError) error = NULL;
    bool cancelled = hv->ops->migrate_cancel(hv, moving->before->uuid, 1, &error);
    g_test_message("%s", cancelled ? "cancelled at once" : error->message);
    if (!cancelled)
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TIMEOUT);
    g_assert_true(world_is_frozen(moving->a, moving->before));
    guint32 printed = world_printed(moving->a, moving->before);
    g_assert_cmpuint(world_counted(moving->b, moving->before, MOVING_REPLICA), >=, printed);
    mend(moving);
    moving_cancel(moving);
    moving_check_stayed(moving);
    g_assert_true(world_await_mirror(moving->a, moving->before, MIRROR_READY));
    moving_free(moving);
}

/* The whole way of a replica that is lost under a migration: given up, on record as stale (which is
 * the caller's), released. The guest goes on here although the other side is silent for ever, also
 * one whose monitor stood still because QEMU was about to stop it. */
static void release_lost(struct moving *moving)
{
    struct hypervisor *hv = moving->a->hypervisor;
    g_autoptr(GError) error = NULL;
    stop_b(moving);
    loop_sleep(200);
    bool cancelled = hv->ops->migrate_cancel(hv, moving->before->uuid, 1, &error);
    g_test_message("%s", cancelled ? "cancelled at once" : error->message);
    g_clear_error(&error);
    guint32 printed = world_printed(moving->a, moving->before);
    gint64 start = loop_boot_ms();
    hv->ops->mirror_release(hv, moving->before->uuid, 1, &error);
    g_assert_no_error(error);
    g_test_message("released in %d ms", (int)(loop_boot_ms() - start));
    moving_cancel(moving);
    g_assert_true(world_await_count(moving->a, moving->before, printed + 5));
    g_assert_true(world_await_mirror(moving->a, moving->before, MIRROR_NONE));
    g_assert_cmpuint(world_counted(moving->b, moving->before, MOVING_REPLICA), >=, printed);
    cont_b(moving);
    moving_check_stayed(moving);
    moving_free(moving);
}

static void released_copying(void *unused)
{
    release_lost(at_copying("lostcopying", TEMPLATE_MIRROR));
}

/* The switch-over begins, and with it QEMU's wait for writes that nobody answers. */
static void released_switching(void *unused)
{
    struct moving *moving = moving_new("lostswitch", TEMPLATE_MIRROR, 1, FORMAT_RAW);
    moving_open(moving);
    patience_stop((pid_t)world_export_pid(moving->b, moving->before, MOVING_REPLICA, 0));
    moving_start(moving, true);
    loop_sleep(500);
    release_lost(moving);
}

static void released_stopped(void *unused)
{
    release_lost(at_stop("loststopped", TEMPLATE_MIRROR));
}

/* The other side is silent, while its connections stand: a cut somewhere in between, or a host that
 * hangs. */
static void silent_copying(void *unused)
{
    struct moving *moving = at_copying("silent", TEMPLATE_MIRROR);
    stop_b(moving);
    loop_sleep(200);
    cancel_with_lost_mirror(moving, cont_b);
}

static void silent_stopped(void *unused)
{
    struct moving *moving = at_stop("silentstop", TEMPLATE_MIRROR);
    stop_b(moving);
    cancel_with_lost_mirror(moving, cont_b);
}

/* The process over there takes the connection and says nothing, so the handshake does not end. The
 * guest runs all the same, and cancelling ends it; a node daemon that came anew in the middle has
 * to wait for the end of that process. */
static void silent_at_first(const char *name, bool restart)
{
    struct moving *moving = moving_new(name, TEMPLATE_SHAREDFILE, 1, FORMAT_RAW);
    g_autoptr(GError) error = NULL;
    moving_open(moving);
    patience_stop((pid_t)world_guest_pid(moving->b, moving->after));
    moving_start(moving, true);
    guint32 printed = world_printed(moving->a, moving->before);
    g_assert_true(world_await_count(moving->a, moving->before, printed + 10));
    if (restart) {
        guest_report_free(moving_restart(moving, true));
        struct hypervisor *hv = moving->a->hypervisor;
        g_assert_false(hv->ops->migrate_cancel(hv, moving->before->uuid, 1, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TIMEOUT);
    } else {
        moving_cancel(moving);
    }
    moving_kill_b(moving);
    moving_cancel(moving);
    moving_check_stayed(moving);
    moving_free(moving);
}

static void silent_from_the_start(void *unused)
{
    silent_at_first("silentfirst", false);
    silent_at_first("silentanew", true);
}

static void link_up(struct moving *moving)
{
    world_link(true);
}

static void link_cut_copying(void *unused)
{
    struct moving *moving = at_copying("cut", TEMPLATE_MIRROR);
    world_link(false);
    loop_sleep(200);
    cancel_with_lost_mirror(moving, link_up);
}

/* Its disks were copied without a promise: the guest goes on as soon as they are given up. */
static void link_cut_with_disks(void *unused)
{
    struct moving *moving = at_copying("cutdisks", TEMPLATE_FILE);
    world_link(false);
    loop_sleep(200);
    moving_cancel(moving);
    moving_check_stayed(moving);
    world_link(true);
    moving_free(moving);
}

/* After the hand-over was begun: nothing is taken for done that was not acknowledged. */
static void link_cut_handing_over(void *unused)
{
    struct moving *moving = at_stop("cutlate", TEMPLATE_MIRROR);
    g_autoptr(GError) error = NULL;
    moving_finish_mirrors(moving);
    world_link(false);
    moving->a->hypervisor->ops->migrate_continue(moving->a->hypervisor, moving->before->uuid, 1,
                                                 &error);
    g_assert_no_error(error);
    loop_sleep(300);
    g_assert_cmpint(moving_step(moving, NULL), ==, STEP_STOPPED);
    g_assert_true(world_is_frozen(moving->a, moving->before));
    moving_cancel(moving);
    moving_check_stayed(moving);
    world_link(true);
    loop_sleep(300);
    moving_check_stayed(moving);
    moving_free(moving);
}

/* --- the node daemons die --- */

static void assert_found(struct guest_report *found, enum guest_state state,
                         enum migration_state migrating)
{
    g_assert_cmpstr(found->migration, ==, MOVING_MIGRATION);
    g_assert_cmpint(found->state, ==, state);
    g_assert_cmpint(found->migrating, ==, migrating);
    guest_report_free(found);
}

static void found_copying(void *unused)
{
    struct moving *moving = at_copying("foundcopy", TEMPLATE_MIRROR);
    assert_found(moving_restart(moving, true), GUEST_RUNNING, MIGRATION_COPYING);
    assert_found(moving_restart(moving, false), GUEST_INCOMING, MIGRATION_COPYING);
    moving_cancel(moving);
    moving_check_stayed(moving);
    moving_free(moving);
}

/* Nobody follows the copy of its disks any more; it is to be cancelled. */
static void found_copying_disks(void *unused)
{
    struct moving *moving = moving_new("founddisks", TEMPLATE_FILE, 1, FORMAT_RAW);
    g_autofree char *why = NULL;
    moving_open(moving);
    moving_start_slowly(moving);
    assert_found(moving_restart(moving, true), GUEST_RUNNING, MIGRATION_FAILED);
    moving_step(moving, &why);
    g_assert_cmpstr(why, ==, "the node daemon was restarted before it began to send");
    moving_cancel(moving);
    moving_check_stayed(moving);
    moving_free(moving);
}

static void found_at_each_step(void *unused)
{
    struct moving *moving = at_stop("found", TEMPLATE_MIRROR);
    assert_found(moving_restart(moving, true), GUEST_PAUSED, MIGRATION_SWITCHING);
    moving_finish_mirrors(moving);
    assert_found(moving_restart(moving, true), GUEST_PAUSED, MIGRATION_SWITCHING);
    assert_found(moving_restart(moving, false), GUEST_INCOMING, MIGRATION_COPYING);
    g_autoptr(GError) error = NULL;
    moving->a->hypervisor->ops->migrate_continue(moving->a->hypervisor, moving->before->uuid, 1,
                                                 &error);
    g_assert_no_error(error);
    g_assert_true(moving_await(moving, STEP_DONE));
    assert_found(moving_restart(moving, true), GUEST_MIGRATED, MIGRATION_MOVED);
    assert_found(moving_restart(moving, false), GUEST_INCOMING, MIGRATION_COPYING);
    moving->b->hypervisor->ops->incoming_finish(moving->b->hypervisor, moving->after->uuid, 2,
                                                MOVING_MIGRATION, &error);
    g_assert_no_error(error);
    assert_found(moving_restart(moving, false), GUEST_PREPARED, MIGRATION_MOVED);
    moving_take(moving);
    struct guest_report *running = moving_restart(moving, false);
    g_assert_cmpint(running->state, ==, GUEST_RUNNING);
    g_assert_cmpstr(running->migration, ==, "");
    g_assert_cmpint(running->migrating, ==, MIGRATION_NONE);
    guest_report_free(running);
    moving_check_whole(moving);
    moving_free(moving);
}

static int tests(int argc, char **argv)
{
    static const struct {
        const char *title;
        void (*fn)(void *unused);
    } all[] = {
        {"/migrate-faults/cancelled-while-copying#SAF-17", cancel_mirror},
        {"/migrate-faults/cancelled-while-copying-disks", cancel_file},
        {"/migrate-faults/cancelled-when-stopped#SAF-17", cancel_stopped},
        {"/migrate-faults/cancelled-when-mirror-has-ended#SAF-17", cancel_finished},
        {"/migrate-faults/cancelled-on-shared-storage#SAF-21", cancel_shared},
        {"/migrate-faults/cancelled-not-live", cancel_not_live},
        {"/migrate-faults/target-killed-while-copying#SAF-17", target_killed_copying},
        {"/migrate-faults/target-killed-while-copying-disks", target_killed_with_disks},
        {"/migrate-faults/target-killed-at-hand-over#SAF-17", late_failure_live},
        {"/migrate-faults/target-killed-at-hand-over-not-live#SAF-17", late_failure_not_live},
        {"/migrate-faults/source-killed-while-copying#SAF-13,SAF-17", source_killed_copying},
        {"/migrate-faults/source-killed-when-stopped#SAF-13,SAF-17", source_killed_stopped},
        {"/migrate-faults/link-cut-while-copying#SAF-13,SAF-15,SAF-17", link_cut_copying},
        {"/migrate-faults/link-cut-while-copying-disks#SAF-15", link_cut_with_disks},
        {"/migrate-faults/target-silent-while-copying#SAF-13,SAF-15,SAF-17", silent_copying},
        {"/migrate-faults/target-silent-when-stopped#SAF-13,SAF-15,SAF-17", silent_stopped},
        {"/migrate-faults/target-silent-from-the-start#SAF-19", silent_from_the_start},
        {"/migrate-faults/lost-when-copying#SAF-13,SAF-15,SAF-17", released_copying},
        {"/migrate-faults/lost-when-switching#SAF-13,SAF-15,SAF-17", released_switching},
        {"/migrate-faults/lost-when-stopped#SAF-13,SAF-15,SAF-17", released_stopped},
        {"/migrate-faults/link-cut-at-hand-over#SAF-15,SAF-17", link_cut_handing_over},
        {"/migrate-faults/daemons-die-while-copying#SAF-19", found_copying},
        {"/migrate-faults/daemon-dies-while-copying-disks#SAF-19", found_copying_disks},
        {"/migrate-faults/daemons-die-at-each-step#SAF-17,SAF-19", found_at_each_step},
    };
    loop_init();
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        world_test(all[i].title, all[i].fn);
    return g_test_run();
}

int main(int argc, char **argv)
{
    return world_main(argc, argv, tests);
}
