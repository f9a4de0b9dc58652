/*
 * The relay between a guest and its replica: whatever the far side does is a wait and never an
 * error, until it refuses; whatever becomes of the relay itself, the guest loses nothing and can be
 * released; and no release damages QEMU, however many writes are under way.
 *
 *   test_relay            what a commit must pass
 *   test_relay releases N only the releases, N of them
 */
#include "pair.h"

#include "backend/hypervisor/qemu_private.h"
#include "backend/hypervisor/relay.h"
#include "backend/storage/nbd_probe.h"
#include "helper/patience.h"
#include "io/process.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RELEASES 6
#define WRITES 8 /* of the test's own under way at a release, besides the guest's */
#define WAIT_MS 60000

static guint releases = RELEASES;

static char *relay_file(const struct pair *pair, const char *name)
{
    return g_build_filename(pair->primary->paths->run, "guests", pair->web1->uuid, "relay", name,
                            NULL);
}

/* The process that is at the socket of the guest's relay. */
static guint64 relay_pid(const struct pair *pair)
{
    g_autofree char *path = relay_file(pair, "state.json");
    json_autoptr state = json_load_file(path, 0, NULL);
    return (guint64)json_integer_value(json_object_get(state, "pid"));
}

static void no_relay_left(const struct pair *pair)
{
    g_autofree char *folder = relay_file(pair, NULL);
    world_await_removed(folder); /* of a guest that has ended: soon after that */
    for (guint n = 1; n <= 4; n++) {
        g_autofree char *argument = g_strdup_printf("socket=%s/%u", folder, n);
        g_assert_cmpuint(process_find_by_argument(argument), ==, 0);
    }
}

/* In the half of disk 0 that the guest does not use. */
static void write_at_once(const struct pair *pair)
{
    for (guint i = 0; i < WRITES; i++)
        world_write(pair->primary, pair->web1, i + 1, 1200 + 16 * i, 8);
}

/* --- releases --- */

static void lose(struct pair *pair, guint how)
{
    if (how == 0)
        pair_kill_export(pair);
    else if (how == 1)
        patience_stop((pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, 0));
    else
        world_link(false);
}

static void attach_again(struct pair *pair)
{
    g_autoptr(GError) error = NULL;
    world_link(true);
    pair->exports->ops->export_close(pair->exports, pair->web1->uuid, REPLICA, &error);
    g_assert_no_error(error);
    export_target_free(pair->target);
    pair->target = world_export(pair->secondary, pair->web1, REPLICA);
    pair->secondary->exports_ended = 0;
    pair_mirror(pair, true);
}

static void released_under_load(void *unused)
{
    struct pair *pair = pair_new("load", 1, true);
    for (guint round = 0; round < releases; round++) {
        /* Half of the time they are in the middle of their way when it happens. */
        if (round % 2 == 0)
            write_at_once(pair);
        lose(pair, round % 3);
        if (round % 2 == 1)
            write_at_once(pair);
        g_assert_true(world_is_frozen(pair->primary, pair->web1));
        pair_assert_nothing_missing(pair);
        gint64 start = loop_boot_ms();
        pair_release(pair);
        g_test_message("release %u: the guest goes on after %d ms", round + 1,
                       (int)(loop_boot_ms() - start));
        no_relay_left(pair);
        g_assert_cmpuint(pair->primary->exited, ==, 0);
        attach_again(pair);
        g_assert_true(world_await_count(pair->primary, pair->web1,
                                        world_printed(pair->primary, pair->web1) + 3));
        pair_assert_nothing_missing(pair);
    }
    pair_free(pair);
}

/* --- an error that got to QEMU --- */

static struct guest *inside(const struct pair *pair)
{
    return g_hash_table_lookup(((struct qemu *)pair->hv)->guests, pair->web1->uuid);
}

static enum mirror_state mirror_state(const struct pair *pair)
{
    enum guest_state state;
    struct mirror_info mirror;
    g_autoptr(GError) error = NULL;
    pair->hv->ops->query(pair->hv, pair->web1->uuid, 1, &state, &mirror, &error);
    g_assert_no_error(error);
    return mirror.state;
}

/* After one refused write the mirror is lost for good: neither we nor QEMU end it in sync. */
static void refused_never_finishes(void *unused)
{
    struct pair *pair = pair_new("nofinish", 1, true);
    const struct hypervisor_ops *ops = pair->hv->ops;
    const char *uuid = pair->web1->uuid;
    g_autoptr(GError) error = NULL;
    g_assert_true(relay_refuse(inside(pair), &error));
    g_assert_true(relay_refuse(inside(pair), &error)); /* asked again */
    /* With the first write that comes to it; what is printed until then may be of before. */
    g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_LOST));
    g_assert_true(
        world_await_count(pair->primary, pair->web1, world_printed(pair->primary, pair->web1) + 5));
    g_assert_cmpint(mirror_state(pair), ==, MIRROR_LOST);

    ops->pause(pair->hv, uuid, 1, &error);
    g_assert_no_error(error);
    ops->run(pair->hv, uuid, 1, &error); /* forgets the errors of jobs, but lets none go on */
    g_assert_no_error(error);
    ops->pause(pair->hv, uuid, 1, &error);
    g_assert_no_error(error);
    g_assert_cmpint(mirror_state(pair), ==, MIRROR_LOST);
    g_assert_false(ops->mirror_finish(pair->hv, uuid, 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==, "guest web1: its mirror is lost, not ready");
    g_clear_error(&error);
    json_autoptr answer = world_monitor(pair->primary, pair->web1, "block-job-cancel",
                                        json_make("{s:s}", "device", "m1-0"), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_HYPERVISOR);
    g_assert_nonnull(strstr(error->message, "The block job for device 'm1-0' is currently paused"));
    g_clear_error(&error);

    ops->run(pair->hv, uuid, 1, &error);
    g_assert_no_error(error);
    pair_release(pair);
    no_relay_left(pair);
    pair_free(pair);
}

/* A guest that somebody has paused stays so. */
static void released_while_paused(void *unused)
{
    struct pair *pair = pair_new("paused", 1, true);
    g_autoptr(GError) error = NULL;
    pair->hv->ops->pause(pair->hv, pair->web1->uuid, 1, &error);
    g_assert_no_error(error);
    pair_kill_export(pair);
    pair->hv->ops->mirror_release(pair->hv, pair->web1->uuid, 1, &error);
    g_assert_no_error(error);
    g_assert_cmpint(world_state(pair->primary, pair->web1), ==, GUEST_PAUSED);
    pair->hv->ops->run(pair->hv, pair->web1->uuid, 1, &error);
    g_assert_no_error(error);
    g_assert_true(
        world_await_count(pair->primary, pair->web1, world_printed(pair->primary, pair->web1) + 3));
    pair_free(pair);
}

/* --- the relay dies --- */

/* Another one than `before` has taken its place. */
static void await_next_relay(const struct pair *pair, guint64 before)
{
    for (guint waited = 0; relay_pid(pair) == before && waited < WAIT_MS; waited += 5)
        loop_sleep(5);
    g_assert_cmpuint(relay_pid(pair), !=, before);
}

static void quiesce_whole(struct pair *pair)
{
    g_assert_true(
        world_await_count(pair->primary, pair->web1, world_printed(pair->primary, pair->web1) + 3));
    g_assert_cmpint(mirror_state(pair), ==, MIRROR_READY);
    pair_assert_nothing_missing(pair);
}

/* SIGTERM must not make nbdkit answer errors while it ends. */
static void killed(void *signal)
{
    struct pair *pair = pair_new("killed", 2, true);
    for (guint round = 0; round < 3; round++) {
        guint64 before = relay_pid(pair);
        g_assert_cmpuint(before, !=, 0);
        write_at_once(pair);
        kill((pid_t)before, GPOINTER_TO_INT(signal));
        await_next_relay(pair, before);
        quiesce_whole(pair);
    }
    g_autoptr(GError) error = NULL;
    g_assert_true(pair->hv->ops->pause(pair->hv, pair->web1->uuid, 1, &error));
    pair->hv->ops->mirror_finish(pair->hv, pair->web1->uuid, 1, &error);
    g_assert_no_error(error);
    no_relay_left(pair);
    pair_kill(pair);
    pair_assert_images_equal(pair);
    pair_free(pair);
}

/* With nobody to watch, and the replica lost as well: the next node daemon has another one started,
 * which holds, and can be released. */
static void killed_unseen(void *unused)
{
    struct pair *pair = pair_new("unseen", 1, true);
    g_autoptr(GError) error = NULL;
    guint64 pid = relay_pid(pair);
    world_node_free(pair->primary);
    kill((pid_t)pid, SIGKILL);
    world_await_gone(pid);
    pair->primary = world_node_new("unseen");
    pair->hv = pair->primary->hypervisor;
    g_autoptr(GPtrArray) guests = pair->hv->ops->rediscover(pair->hv, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(guests->len, ==, 1);
    quiesce_whole(pair);

    pair_kill_export(pair);
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    kill((pid_t)relay_pid(pair), SIGKILL);
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    pair_assert_nothing_missing(pair);
    pair_release(pair);
    no_relay_left(pair);
    pair_free(pair);
}

/* One that hangs is replaced as well as one that lives. */
static void hangs(void *unused)
{
    struct pair *pair = pair_new("hangs", 1, true);
    patience_stop((pid_t)relay_pid(pair));
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    pair_assert_nothing_missing(pair);
    pair_release(pair);
    no_relay_left(pair);
    pair_free(pair);
}

/* A guest that ends takes its relay with it. */
static void guest_dies(void *unused)
{
    struct pair *pair = pair_new("guestdies", 1, true);
    guint64 pid = relay_pid(pair);
    kill((pid_t)world_guest_pid(pair->primary, pair->web1), SIGKILL);
    for (guint i = 0; pair->primary->exited == 0 && i < 3000; i++)
        loop_sleep(20);
    world_await_gone(pid);
    no_relay_left(pair);
    pair_free(pair);
}

/* --- a far side that answers errors --- */

static guint free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&address, &len), ==, 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* The replica's image, served by a server that answers EIO to all writes while the file `trigger`
 * exists. */
static struct process *spawn_failing(struct pair *pair, const char *trigger)
{
    struct export_disk *disk = pair->target->disks->pdata[0];
    disk->port = free_port();
    g_autofree char *key = g_build_filename(world_folder(), "failing.psk", NULL);
    g_autofree char *line = g_strdup_printf("qemu:%s\n", pair->target->psk);
    g_assert_true(g_file_set_contents(key, line, -1, NULL));
    g_autofree char *psk = g_strconcat("--tls-psk=", key, NULL);
    g_autofree char *port = g_strdup_printf("--port=%" G_GUINT64_FORMAT, disk->port);
    g_autofree char *file = g_strdup_printf("file=%s/disks/%s." REPLICA ".disk0.raw",
                                            pair->secondary->paths->var, pair->web1->uuid);
    g_autofree char *when = g_strconcat("error-pwrite-file=", trigger, NULL);
    const char *argv[] = {"nbdkit",
                          "-f",
                          "--tls=require",
                          "-i",
                          "127.0.0.1",
                          psk,
                          port,
                          "--filter=error",
                          "file",
                          file,
                          "error-pwrite=EIO",
                          "error-pwrite-rate=1.0",
                          when,
                          NULL};
    struct process_options options = {.argv = argv, .errors_path = "/dev/null"};
    struct process *process = process_spawn(&options, NULL);
    g_assert_nonnull(process);
    for (guint tries = 0; !nbd_probe(pair->target, 1000) && tries < WAIT_MS / 10; tries++)
        loop_sleep(10);
    return process;
}

static void errors_are_held(void *unused)
{
    struct pair *pair = pair_new("errors", 1, false);
    g_autoptr(GError) error = NULL;
    g_autofree char *trigger = g_build_filename(world_folder(), "fail-now", NULL);
    pair->exports->ops->export_close(pair->exports, pair->web1->uuid, REPLICA, &error);
    g_assert_no_error(error);
    struct process *failing = spawn_failing(pair, trigger);
    pair_mirror(pair, true);
    pair_run(pair);
    g_assert_true(g_file_set_contents(trigger, "", 0, NULL));
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    g_assert_cmpint(mirror_state(pair), ==, MIRROR_READY);
    pair_assert_nothing_missing(pair);
    unlink(trigger);
    quiesce_whole(pair);

    g_assert_true(g_file_set_contents(trigger, "", 0, NULL));
    g_assert_true(world_is_frozen(pair->primary, pair->web1));
    pair_assert_nothing_missing(pair);
    pair_release(pair);
    g_assert_true(process_kill(failing, &error));
    process_free(failing);
    pair_free(pair);
}

/* --- what the plugin is told --- */

/* Its first line after "error: "; NULL if it has none. */
static char *complaint(const char *const *parameters)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autofree char *plugin = program_path("fettle-relay.so");
    g_autofree char *socket = g_strdup_printf("--unix=%s/bad", world_folder());
    g_autofree char *said = NULL;
    int status = 0;
    g_ptr_array_add(argv, (char *)"nbdkit");
    g_ptr_array_add(argv, (char *)"-f");
    g_ptr_array_add(argv, socket);
    g_ptr_array_add(argv, plugin);
    for (guint i = 0; parameters[i] != NULL; i++)
        g_ptr_array_add(argv, (char *)parameters[i]);
    g_ptr_array_add(argv, NULL);
    g_assert_true(g_spawn_sync(NULL, (char **)argv->pdata, NULL,
                               G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                               &said, &status, NULL));
    g_assert_cmpint(status, !=, 0);
    g_auto(GStrv) words = g_strsplit_set(said, "\n", 2);
    g_auto(GStrv) parts = g_strsplit(words[0], "error: ", 2);
    g_assert_true(g_str_has_prefix(words[0], "nbdkit: "));
    return g_strdup(parts[1]);
}

static void wrong_parameters(void *unused)
{
    g_autofree char *key = g_build_filename(world_folder(), "failing.psk", NULL);
    g_autofree char *with_key = g_strconcat("key=", key, NULL);
    g_assert_true(g_file_set_contents(key, "qemu:00112233445566778899aabbccddeeff\n", -1, NULL));
    const struct {
        const char *parameters[5];
        const char *said;
    } all[] = {
        {{"refuse=true"}, "at least one disk=PORT,BYTES,EXPORT is needed"},
        {{"disk=1,512,a", "refuse=maybe"}, "could not decipher boolean (maybe)"},
        {{"disk=1,512", "refuse=true"}, "disk=1,512: PORT,BYTES,EXPORT is needed"},
        {{"disk=1,512,", "refuse=true"}, "disk=1,512,: PORT,BYTES,EXPORT is needed"},
        {{"disk=0,512,a", "refuse=true"},
         "disk=0,512,a: the port or the number of bytes is out of range"},
        {{"disk=65536,512,a", "refuse=true"},
         "disk=65536,512,a: the port or the number of bytes is out of range"},
        {{"disk=1,0,a", "refuse=true"},
         "disk=1,0,a: the port or the number of bytes is out of range"},
        {{"disk=1,9223372036854775808,a", "refuse=true"},
         "disk=1,9223372036854775808,a: the port or the number of bytes is out of range"},
        {{"disk=1,512,a", "disk=2,512,a", "refuse=true"}, "two disks are named a"},
        {{"disk=1,512,a"}, "either address and key are needed, or refuse=true without them"},
        {{"disk=1,512,a", "address=127.0.0.1"},
         "either address and key are needed, or refuse=true without them"},
        {{"disk=1,512,a", "address=127.0.0.1", with_key, "refuse=true"},
         "either address and key are needed, or refuse=true without them"},
        {{"disk=1,512,a", "address="}, "parameter address is empty"},
        {{"disk=1,512,a", "address=a", "address=b"}, "parameter address is given twice"},
        {{"port=1"},
         "unknown parameter port; known are socket, disk, address, key, patient, refuse"},
        {{"disk=1,512,a", "address=127.0.0.1", with_key},
         "export a at 127.0.0.1 port 1: cannot connect: Connection refused"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autofree char *said = complaint(all[i].parameters);
        g_assert_cmpstr(said, ==, all[i].said);
    }
}

/* An export that is smaller than the disk is no replica of it. */
static void too_small(void *unused)
{
    struct pair *pair = pair_new("small", 1, false);
    g_autoptr(GError) error = NULL;
    g_autofree char *image = g_strdup_printf("%s/disks/%s." REPLICA ".disk0.raw",
                                             pair->secondary->paths->var, pair->web1->uuid);
    pair->exports->ops->export_close(pair->exports, pair->web1->uuid, REPLICA, &error);
    g_assert_no_error(error);
    g_assert_cmpint(truncate(image, 1 << 20), ==, 0);
    export_target_free(pair->target);
    pair->target = world_export(pair->secondary, pair->web1, REPLICA);
    g_assert_false(pair->hv->ops->mirror_start(pair->hv, pair->web1->uuid, 1, pair->target,
                                               COPY_EVERYTHING, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    g_assert_nonnull(strstr(
        error->message, ": cannot be used: it has 1048576 bytes, fewer than the disk's 2097152"));
    no_relay_left(pair);
    pair_free(pair);
}

static int tests(int argc, char **argv)
{
    /* What QEMU frees is filled with other bytes, so that it dies if it uses it after that. */
    g_setenv("MALLOC_PERTURB_", "85", TRUE);
    loop_init();
    bool only_releases = argc > 2 && strcmp(argv[1], "releases") == 0;
    if (only_releases)
        releases = (guint)g_ascii_strtoull(argv[2], NULL, 10);
    g_test_init(&argc, &argv, NULL);
    world_test("/relay/released-under-load#SAF-13,SAF-14,SAF-15", released_under_load);
    if (only_releases)
        return g_test_run();
    world_test("/relay/refused-never-finishes#SAF-11,SAF-13", refused_never_finishes);
    world_test("/relay/released-while-paused#SAF-15", released_while_paused);
    world_test_with("/relay/killed#SAF-13,SAF-14", killed, GINT_TO_POINTER(SIGKILL));
    world_test_with("/relay/terminated#SAF-13,SAF-14", killed, GINT_TO_POINTER(SIGTERM));
    world_test("/relay/killed-unseen#SAF-13,SAF-14,SAF-19", killed_unseen);
    world_test("/relay/hangs#SAF-13,SAF-15", hangs);
    world_test("/relay/guest-dies", guest_dies);
    world_test("/relay/errors-are-held#SAF-13,SAF-14", errors_are_held);
    world_test("/relay/export-too-small", too_small);
    world_test("/relay/wrong-parameters", wrong_parameters);
    return g_test_run();
}

int main(int argc, char **argv)
{
    return world_main(argc, argv, tests);
}
