/*
 * Mirrors of real guests onto real fail-stop exports: nothing that was printed may be missing on
 * the replica, whatever dies; a lost replica freezes the guest until it is released.
 */
#include "pair.h"

#include "backend/storage/nbd_probe.h"
#include "helper/patience.h"
#include "io/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 60000 /* with what must answer */
#define NO_SUCH_EXPORT "cannot connect: handshake: server has no export named "

static char *self;

/* --- ending in sync --- */

static void finish(void *disks)
{
    struct pair *pair = pair_new("finish", GPOINTER_TO_UINT(disks), true);
    const struct hypervisor_ops *ops = pair->hv->ops;
    const char *uuid = pair->web1->uuid;
    g_autoptr(GError) error = NULL;
    g_assert_false(ops->mirror_finish(pair->hv, uuid, 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==,
                    "guest web1 runs; its mirror can be ended in sync only while it is paused");
    g_clear_error(&error);
    g_assert_false(ops->mirror_start(pair->hv, uuid, 1, pair->target, COPY_EVERYTHING, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==,
                    "guest web1 mirrors to replica " REPLICA " already; release that first");
    g_clear_error(&error);

    ops->pause(pair->hv, uuid, 1, &error);
    g_assert_no_error(error);
    ops->mirror_finish(pair->hv, uuid, 1, &error);
    g_assert_no_error(error);
    g_assert_true(ops->mirror_finish(pair->hv, uuid, 1, &error)); /* asked again */
    pair_kill(pair);
    pair->exports->ops->export_close(pair->exports, uuid, REPLICA, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(pair->secondary->exports_ended, ==, 0);
    pair_assert_nothing_missing(pair);
    pair_assert_images_equal(pair);

    /* After that clean close the next generation starts without a copy. */
    pair->web1->generation = 2;
    export_target_free(pair->target);
    pair->target = world_export(pair->secondary, pair->web1, REPLICA);
    world_prepare(pair->primary, pair->web1, NULL);
    pair_mirror(pair, false);
    pair_run(pair);
    pair_kill(pair);
    pair_assert_nothing_missing(pair);
    pair_free(pair);
}

/* A guest that switched itself off is closed like one that was paused. */
static void finish_after_own_shutdown(void *unused)
{
    struct pair *pair = pair_new("off", 1, true);
    g_autoptr(GError) error = NULL;
    g_assert_true(pair->hv->ops->powerdown(pair->hv, pair->web1->uuid, 1, &error));
    for (guint i = 0; pair->primary->shutdowns == 0 && i < 3000; i++)
        loop_sleep(20);
    g_assert_cmpint(world_state(pair->primary, pair->web1), ==, GUEST_SHUTDOWN);
    pair->hv->ops->pause(pair->hv, pair->web1->uuid, 1, &error);
    g_assert_no_error(error);
    pair->hv->ops->mirror_finish(pair->hv, pair->web1->uuid, 1, &error);
    g_assert_no_error(error);
    pair_kill(pair);
    pair_assert_nothing_missing(pair);
    pair_assert_images_equal(pair);
    pair_free(pair);
}

/* A replica that dies while the mirror is being ended is no clean close. */
static void replica_dies_before_finish(void *unused)
{
    struct pair *pair = pair_new("unclean", 1, true);
    g_autoptr(GError) error = NULL;
    g_assert_true(pair->hv->ops->pause(pair->hv, pair->web1->uuid, 1, &error));
    kill((pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0), SIGKILL);
    pair_await_export_ended(pair);
    g_assert_false(pair->hv->ops->mirror_finish(pair->hv, pair->web1->uuid, 1, &error));
    g_test_message("%s", error->message);
    g_clear_error(&error);
    g_assert_true(
        pair->hv->ops->kill(pair->hv, pair->web1->uuid, 1, &error)); /* the last way always works */
    pair_free(pair);
}

static void finish_without_mirror(void *unused)
{
    struct pair *pair = pair_new("nomirror", 1, false);
    g_autoptr(GError) error = NULL;
    g_assert_false(pair->hv->ops->mirror_finish(pair->hv, pair->web1->uuid, 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==, "guest web1 has no mirror that could be ended in sync");
    g_clear_error(&error);
    g_assert_true(pair->hv->ops->mirror_release(pair->hv, pair->web1->uuid, 1, &error));
    pair_free(pair);
}

/* --- the primary dies --- */

static void primary_dies(void *unused)
{
    struct pair *pair = pair_new("dies", 1, true);
    for (guint round = 0; round < 8; round++) {
        loop_sleep((guint)g_test_rand_int_range(0, 150));
        kill((pid_t)world_guest_pid(pair->primary, pair->web1), SIGKILL);
        while (pair->primary->exited <= round)
            loop_sleep(5);
        pair_assert_nothing_missing(pair);
        pair->web1->generation++;
        export_target_free(pair->target);
        pair->target = world_export(pair->secondary, pair->web1, REPLICA);
        world_prepare(pair->primary, pair->web1, NULL);
        pair_mirror(pair, true);
        pair_run(pair);
    }
    pair_free(pair);
}

/* --- the replica dies --- */

/* The replica is lost as `lose` does it: the guest freezes, nothing is missing, a release lets it
 * go on, and a new replica can be attached. */
static void lose_replica(const char *name, guint disks, void (*lose)(struct pair *pair),
                         void (*mend)(struct pair *pair))
{
    struct pair *pair = pair_new(name, disks, true);
    g_autoptr(GError) error = NULL;
    lose(pair);
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    pair_assert_nothing_missing(pair);
    g_assert_false(nbd_probe(pair->target, 300));
    g_assert_cmpint(world_state(pair->primary, pair->web1), ==,
                    GUEST_RUNNING); /* questions are answered */
    pair_assert_nothing_missing(pair);
    pair_release(pair);
    pair_release(pair); /* asked again */
    if (mend != NULL)
        mend(pair);

    record_autoptr(instance) web1 = instance_copy(pair->web1);
    world_create(pair->primary, web1, REPLICA_2); /* somewhere else */
    record_autoptr(export_target) second = world_export(pair->primary, web1, REPLICA_2);
    pair->hv->ops->mirror_start(pair->hv, web1->uuid, 1, second, COPY_EVERYTHING, &error);
    g_assert_no_error(error);
    g_assert_true(world_await_mirror(pair->primary, web1, MIRROR_READY));
    g_assert_true(world_await_count(pair->primary, web1, world_printed(pair->primary, web1) + 3));
    pair_kill(pair);
    world_assert_whole(pair->primary, web1, REPLICA_2, pair->primary);
    g_assert_true(pair->primary->storage->ops->export_close(pair->primary->storage, web1->uuid,
                                                            REPLICA_2, &error));
    pair_free(pair);
}

static void export_killed(void *disks)
{
    lose_replica("export", GPOINTER_TO_UINT(disks), pair_kill_export, NULL);
}

static void stop_export(struct pair *pair)
{
    patience_stop((pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0));
}

/* It wakes up with writes of a mirror that was given up; they are nobody's any more. */
static void cont_export(struct pair *pair)
{
    kill((pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0), SIGCONT);
}

static void export_stopped(void *unused)
{
    lose_replica("stopped", 1, stop_export, cont_export);
}

static void cut_link(struct pair *pair)
{
    world_link(false);
}

static void mend_link(struct pair *pair)
{
    world_link(true);
}

static void link_cut(void *unused)
{
    lose_replica("cut", 1, cut_link, mend_link);
}

/* A link that comes back before anybody has given up: the guest goes on by itself, still in sync.
 */
static void link_cut_and_mended(void *unused)
{
    struct pair *pair = pair_new("mended", 1, true);
    cut_link(pair);
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    pair_assert_nothing_missing(pair);
    mend_link(pair);
    g_assert_true(
        world_await_count(pair->primary, pair->web1, world_printed(pair->primary, pair->web1) + 3));
    g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_READY));
    pair_kill(pair);
    pair_assert_nothing_missing(pair);
    pair_free(pair);
}

static void replica_disk_full(void *unused)
{
    struct pair *pair = g_new0(struct pair, 1);
    g_autoptr(GError) error = NULL;
    pair->primary = world_node_new("full");
    pair->secondary = world_node_new("full-2");
    world_limit_disks(pair->secondary, 96);
    pair->hv = pair->primary->hypervisor;
    pair->exports = pair->secondary->storage;
    pair->web1 = world_instance(1, 1);
    world_create(pair->primary, pair->web1, "");
    world_create(pair->secondary, pair->web1, REPLICA);
    pair->target = world_export(pair->secondary, pair->web1, REPLICA);
    world_prepare(pair->primary, pair->web1, NULL);
    pair_mirror(pair, true);
    pair->hv->ops->run(pair->hv, pair->web1->uuid, 1, &error);
    g_assert_no_error(error);
    pair_await_export_ended(pair);
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    g_assert_cmpuint(world_printed(pair->primary, pair->web1), >, 0);
    pair_assert_nothing_missing(pair);
    pair_release(pair);
    pair_free(pair);
}

/* --- who may write to an export --- */

static void refused(struct pair *pair, struct export_target *target, const char *reason)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(pair->hv->ops->mirror_start(pair->hv, pair->web1->uuid, 1, target,
                                               COPY_EVERYTHING, &error));
    g_assert_nonnull(error);
    g_test_message("refused: %s", error->message);
    g_assert_nonnull(strstr(error->message, reason));
    g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_NONE));
}

static void rename_export(struct export_target *target, const char *name)
{
    struct export_disk *disk = target->disks->pdata[0];
    g_free(disk->name);
    disk->name = g_strdup(name);
}

static void refusals(void *unused)
{
    struct pair *pair = pair_new("refused", 1, false);
    record_autoptr(export_target) wrong = export_target_copy(pair->target);
    wrong->psk[0] = wrong->psk[0] == 'a' ? 'b' : 'a';
    refused(pair, wrong, "cannot connect: gnutls_handshake: ");
    wrong->psk[0] = pair->target->psk[0];
    rename_export(wrong, "1." REPLICA ".2.0"); /* generation */
    refused(pair, wrong, NO_SUCH_EXPORT);
    rename_export(wrong, "2." REPLICA ".1.0"); /* history */
    refused(pair, wrong, NO_SUCH_EXPORT);
    rename_export(wrong, "1." REPLICA_2 ".1.0");
    refused(pair, wrong, NO_SUCH_EXPORT);
    rename_export(wrong, "1." REPLICA ".1.1"); /* disk */
    refused(pair, wrong, NO_SUCH_EXPORT);
    rename_export(wrong, "x");
    refused(pair, wrong, NO_SUCH_EXPORT);
    struct export_disk *disk = wrong->disks->pdata[0];
    disk->port = 1;
    refused(pair, wrong,
            "guest web1: the exports of replica " REPLICA " on 127.0.0.1 do not answer");
    g_ptr_array_set_size(wrong->disks, 0);
    refused(pair, wrong, "guest web1 has 1 disks, replica " REPLICA " has 0");
    g_assert_cmpuint(pair->secondary->exports_ended, ==, 0);
    /* After all that the right one still works. */
    pair_mirror(pair, true);
    pair_run(pair);
    pair_free(pair);
}

/* --- the node daemons die --- */

static void first_daemons(void *unused)
{
    pair_new("restart", 1, true);
    loop_sleep(600000);
}

static void daemons_die(void *unused)
{
    const char *argv[] = {self, "first-daemons", NULL};
    struct process_options options = {.argv = argv};
    struct pair *pair = g_new0(struct pair, 1);
    g_autoptr(GError) error = NULL;
    pair->primary = world_node_new("restart");
    pair->secondary = world_node_new("restart-2");
    struct process *daemons = process_spawn(&options, NULL);
    pair->hv = pair->primary->hypervisor;
    pair->exports = pair->secondary->storage;
    pair->web1 = world_instance(1, 1);
    g_assert_true(world_await_count(pair->primary, pair->web1, 6));
    g_assert_true(process_kill(daemons, &error));
    process_free(daemons);
    g_assert_true(
        world_await_count(pair->primary, pair->web1, world_printed(pair->primary, pair->web1)));

    g_autoptr(GPtrArray) exports = pair->exports->ops->export_rediscover(pair->exports, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(exports->len, ==, 1);
    const struct replica_report *replica = exports->pdata[0];
    g_assert_cmpstr(replica->replica, ==, REPLICA);
    g_assert_cmpuint(replica->generation, ==, 1);
    g_assert_true(replica->exported);
    g_autoptr(GPtrArray) guests = pair->hv->ops->rediscover(pair->hv, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(guests->len, ==, 1);
    const struct guest_report *guest = guests->pdata[0];
    g_assert_cmpint(guest->state, ==, GUEST_RUNNING);
    g_assert_cmpint(guest->mirror, ==, MIRROR_READY);
    g_assert_cmpstr(guest->replica, ==, REPLICA);
    g_assert_cmpuint(guest->progress, ==, 100);

    /* What was adopted is as good as what one started oneself. */
    pair->target = world_export(pair->secondary, pair->web1, REPLICA);
    g_assert_true(nbd_probe(pair->target, PATIENCE_MS));
    pair_kill_export(pair);
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    pair_assert_nothing_missing(pair);
    pair_release(pair);
    pair_free(pair);
}

static void daemon_dies_while_frozen(void *unused)
{
    struct pair *pair = pair_new("frozen", 1, true);
    g_autoptr(GError) error = NULL;
    pair_kill_export(pair);
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    world_node_free(pair->primary); /* its connection is gone, as if it had died */
    pair->primary = world_node_new("frozen");
    pair->hv = pair->primary->hypervisor;
    g_autoptr(GPtrArray) guests = pair->hv->ops->rediscover(pair->hv, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(guests->len, ==, 1);
    g_assert_cmpint(((struct guest_report *)guests->pdata[0])->state, ==, GUEST_RUNNING);
    pair_assert_nothing_missing(pair);
    pair_release(pair);
    pair_free(pair);
}

static int tests(int argc, char **argv)
{
    loop_init();
    if (argc > 1 && strcmp(argv[1], "first-daemons") == 0) {
        world_run(first_daemons, NULL);
        return 0;
    }
    g_test_init(&argc, &argv, NULL);
    self = g_file_read_link("/proc/self/exe", NULL);
    world_test_with("/mirror/finish-leaves-equal-images#SAF-11", finish, GUINT_TO_POINTER(1));
    world_test_with("/mirror/finish-of-two-disks#SAF-11,SAF-12", finish, GUINT_TO_POINTER(2));
    world_test("/mirror/finish-after-own-shutdown#SAF-11", finish_after_own_shutdown);
    world_test("/mirror/replica-dies-before-finish#SAF-11,SAF-15", replica_dies_before_finish);
    world_test("/mirror/finish-needs-a-mirror#SAF-11", finish_without_mirror);
    world_test("/mirror/primary-dies-at-random#SAF-13", primary_dies);
    world_test_with("/mirror/export-killed#SAF-13,SAF-14,SAF-15,SAF-18", export_killed,
                    GUINT_TO_POINTER(1));
    world_test_with("/mirror/export-of-one-disk-of-two-killed#SAF-12,SAF-14", export_killed,
                    GUINT_TO_POINTER(2));
    world_test("/mirror/export-stopped#SAF-13,SAF-15", export_stopped);
    world_test("/mirror/link-cut#SAF-13,SAF-15,SAF-18", link_cut);
    world_test("/mirror/link-cut-and-mended#SAF-13,SAF-14", link_cut_and_mended);
    world_test("/mirror/replica-disk-full#SAF-13,SAF-14", replica_disk_full);
    world_test("/mirror/wrong-key-name-generation-refused#SAF-14,SAF-16", refusals);
    world_test("/mirror/outlives-both-node-daemons#SAF-19", daemons_die);
    world_test("/mirror/frozen-guest-found-and-released#SAF-13,SAF-15,SAF-19",
               daemon_dies_while_frozen);
    return g_test_run();
}

int main(int argc, char **argv)
{
    return world_main(argc, argv, tests);
}
