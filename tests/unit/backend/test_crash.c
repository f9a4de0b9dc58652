/*
 * A node daemon that dies before each single outside call of a guest's whole life. Whatever it
 * leaves, the next one finds every process, nothing that was printed is lost, and the life can be
 * lived again from the start.
 */
#include "world.h"

#include "io/process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPLICA "22222222-2222-4222-8222-222222222222"
#define EXIT_DONE 42

static char *self;

/* --- the daemon that dies: one for both nodes --- */

static void live(void *generation)
{
    struct world_node *primary = world_node_new("crash");
    struct world_node *secondary = world_node_new("crash-2");
    const struct hypervisor_ops *hv = primary->hypervisor->ops;
    record_autoptr(instance) web1 = world_instance(1, GPOINTER_TO_UINT(generation));
    g_autoptr(GError) error = NULL;
    world_create(primary, web1, "");
    world_create(secondary, web1, REPLICA);
    record_autoptr(export_target) target = world_export(secondary, web1, REPLICA);
    world_prepare(primary, web1, NULL);
    hv->mirror_start(primary->hypervisor, web1->uuid, web1->generation, target, COPY_EVERYTHING,
                     &error);
    g_assert_no_error(error);
    g_assert_true(world_await_mirror(primary, web1, MIRROR_READY));
    hv->run(primary->hypervisor, web1->uuid, web1->generation, &error);
    g_assert_no_error(error);
    loop_sleep(150);
    hv->pause(primary->hypervisor, web1->uuid, web1->generation, &error);
    g_assert_no_error(error);
    hv->mirror_finish(primary->hypervisor, web1->uuid, web1->generation, &error);
    g_assert_no_error(error);
    hv->kill(primary->hypervisor, web1->uuid, web1->generation, &error);
    g_assert_no_error(error);
    secondary->storage->ops->export_close(secondary->storage, web1->uuid, REPLICA, &error);
    g_assert_no_error(error);
    secondary->storage->ops->promote(secondary->storage, web1->uuid, REPLICA, 1, &error);
    g_assert_no_error(error);
    secondary->storage->ops->remove_aside(secondary->storage, web1->uuid, &error);
    g_assert_no_error(error);
    _exit(EXIT_DONE); /* what is still allocated is no leak here */
}

/* Exit code of a daemon that dies before its n-th call. */
static int die_at(guint n)
{
    g_autofree char *at = g_strdup_printf("%u", n);
    const char *argv[] = {self, "live", at, NULL};
    struct process_options options = {.argv = argv, .errors_fd = STDERR_FILENO};
    struct process *process = process_spawn(&options, NULL);
    g_assert_true(process_wait(process, 60000));
    int code = process_exit_code(process);
    process_free(process);
    return code;
}

/* --- the daemon that comes after it --- */

static void recover_guest(struct world_node *node, const struct instance *web1)
{
    g_autoptr(GError) error = NULL;
    guint64 pid = world_guest_pid(node, web1);
    g_autoptr(GPtrArray) guests = node->hypervisor->ops->rediscover(node->hypervisor, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(guests->len, ==, pid != 0 ? 1 : 0);
    if (guests->len == 1) {
        const struct guest_report *report = guests->pdata[0];
        g_assert_cmpuint(report->generation, ==, web1->generation);
        node->hypervisor->ops->kill(node->hypervisor, web1->uuid, web1->generation, &error);
        g_assert_no_error(error);
    }
    g_assert_cmpuint(world_guest_pid(node, web1), ==, 0);
}

static void recover_exports(struct world_node *node, const struct instance *web1)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) exports = node->storage->ops->export_rediscover(node->storage, &error);
    g_assert_no_error(error);
    /* Either found, or it was not opened as a whole and is gone. */
    g_assert_cmpuint(exports->len, ==, world_export_pid(node, web1, REPLICA, 0) != 0 ? 1 : 0);
    node->storage->ops->export_close(node->storage, web1->uuid, REPLICA, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(world_export_pid(node, web1, REPLICA, 0), ==, 0);
}

/* The replica has what was printed, unless the life had not got so far, or the replica has become
 * the image. */
static void check_replica(const struct world_node *primary, const struct world_node *secondary,
                          const struct instance *web1)
{
    guint32 printed = world_printed(primary, web1);
    g_autofree char *replica =
        g_strdup_printf("%s/disks/%s." REPLICA ".disk0.raw", secondary->paths->var, web1->uuid);
    if (printed > 0)
        g_assert_cmpuint(
            world_counted(secondary, web1, g_file_test(replica, G_FILE_TEST_EXISTS) ? REPLICA : ""),
            >=, printed);
}

static void recover(guint round)
{
    struct world_node *primary = world_node_new("crash");
    struct world_node *secondary = world_node_new("crash-2");
    record_autoptr(instance) web1 = world_instance(1, 1);
    g_autoptr(GError) error = NULL;
    recover_guest(primary, web1);
    recover_exports(secondary, web1);
    check_replica(primary, secondary, web1);
    g_autofree char *console =
        g_strdup_printf("%s/guests/web1-%s.console", primary->paths->log, web1->uuid);
    remove(console);
    struct world_node *const nodes[] = {primary, secondary};
    for (guint i = 0; i < 2; i++) {
        g_assert_true(nodes[i]->storage->ops->remove(nodes[i]->storage, web1->uuid, "", &error));
        g_assert_true(
            nodes[i]->storage->ops->remove(nodes[i]->storage, web1->uuid, REPLICA, &error));
        g_assert_true(nodes[i]->storage->ops->remove_aside(nodes[i]->storage, web1->uuid, &error));
        g_autofree char *run = g_build_filename(nodes[i]->paths->run, "guests", web1->uuid, NULL);
        world_await_removed(run);
        world_node_free(nodes[i]);
    }
}

static void walk(void *unused)
{
    guint n = 1;
    for (;; n++) {
        g_test_message("crash point %u", n);
        int code = die_at(n);
        if (code == EXIT_DONE)
            break;
        g_assert_cmpint(code, ==, 128 + 9);
        recover(n);
    }
    g_test_message("%u crash points", n - 1);
    g_assert_cmpuint(n, >, 30);
}

static int tests(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "live") == 0) {
        g_setenv("FETTLE_CRASH_AT", argv[2], TRUE);
        loop_init();
        world_run(live, GUINT_TO_POINTER(1));
        return 0;
    }
    loop_init();
    g_test_init(&argc, &argv, NULL);
    self = g_file_read_link("/proc/self/exe", NULL);
    world_test("/crash/daemon-dies-before-each-call#SAF-10,SAF-13,SAF-19,SAF-20", walk);
    return g_test_run();
}

int main(int argc, char **argv)
{
    return world_main(argc, argv, tests);
}
