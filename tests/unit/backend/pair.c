/*
 * See pair.h.
 */
#include "pair.h"

#include "io/process.h"

#include <signal.h>
#include <string.h>

void pair_mirror(struct pair *pair, bool full)
{
    g_autoptr(GError) error = NULL;
    pair->hv->ops->mirror_start(pair->hv, pair->web1->uuid, pair->web1->generation, pair->target,
                                full ? COPY_EVERYTHING : COPY_NOTHING, &error);
    g_assert_no_error(error);
    g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_READY));
}

void pair_run(struct pair *pair)
{
    g_autoptr(GError) error = NULL;
    pair->hv->ops->run(pair->hv, pair->web1->uuid, pair->web1->generation, &error);
    g_assert_no_error(error);
    g_assert_true(
        world_await_count(pair->primary, pair->web1, world_printed(pair->primary, pair->web1) + 5));
}

void pair_kill(struct pair *pair)
{
    g_autoptr(GError) error = NULL;
    pair->hv->ops->kill(pair->hv, pair->web1->uuid, pair->web1->generation, &error);
    g_assert_no_error(error);
}

struct pair *pair_new(const char *name, guint disks, bool run)
{
    g_autofree char *second = g_strconcat(name, "-2", NULL);
    struct pair *pair = g_new0(struct pair, 1);
    pair->primary = world_node_new(name);
    pair->secondary = world_node_new(second);
    pair->hv = pair->primary->hypervisor;
    pair->exports = pair->secondary->storage;
    pair->web1 = world_instance(disks, 1);
    world_create(pair->primary, pair->web1, "");
    world_create(pair->secondary, pair->web1, REPLICA);
    pair->target = world_export(pair->secondary, pair->web1, REPLICA);
    world_prepare(pair->primary, pair->web1, NULL);
    if (run) {
        pair_mirror(pair, true);
        pair_run(pair);
    }
    return pair;
}

void pair_free(struct pair *pair)
{
    g_autoptr(GError) error = NULL;
    pair_kill(pair);
    pair->exports->ops->export_close(pair->exports, pair->web1->uuid, REPLICA, &error);
    g_assert_no_error(error);
    world_node_free(pair->primary);
    world_node_free(pair->secondary);
    instance_free(pair->web1);
    export_target_free(pair->target);
    g_free(pair);
}

void pair_assert_nothing_missing(const struct pair *pair)
{
    world_assert_whole(pair->secondary, pair->web1, REPLICA, pair->primary);
}

void pair_assert_images_equal(const struct pair *pair)
{
    for (guint i = 0; i < pair->web1->disks->len; i++) {
        g_autofree char *one = g_strdup_printf("%s/disks/%s.disk%u.raw", pair->primary->paths->var,
                                               pair->web1->uuid, i);
        g_autofree char *two = g_strdup_printf("%s/disks/%s." REPLICA ".disk%u.raw",
                                               pair->secondary->paths->var, pair->web1->uuid, i);
        g_autofree char *a = NULL, *b = NULL;
        gsize a_len = 0, b_len = 0;
        g_assert_true(g_file_get_contents(one, &a, &a_len, NULL));
        g_assert_true(g_file_get_contents(two, &b, &b_len, NULL));
        g_assert_cmpuint(a_len, ==, b_len);
        g_assert_cmpint(memcmp(a, b, a_len), ==, 0);
    }
}

void pair_release(struct pair *pair)
{
    g_autoptr(GError) error = NULL;
    pair->hv->ops->mirror_release(pair->hv, pair->web1->uuid, pair->web1->generation, &error);
    g_assert_no_error(error);
    g_assert_true(world_await_mirror(pair->primary, pair->web1, MIRROR_NONE));
    g_assert_true(
        world_await_count(pair->primary, pair->web1, world_printed(pair->primary, pair->web1)));
}

void pair_await_export_ended(const struct pair *pair)
{
    for (guint i = 0; pair->secondary->exports_ended == 0 && i < 3000; i++)
        loop_sleep(20);
    g_assert_cmpuint(pair->secondary->exports_ended, ==, 1);
}

void pair_kill_export(struct pair *pair)
{
    guint last = pair->web1->disks->len - 1;
    kill((pid_t)world_export_pid(pair->secondary, pair->web1, REPLICA, last), SIGKILL);
    pair_await_export_ended(pair);
    for (guint i = 0; i <= last;
         i++) { /* all of a replica or none; the others have just been killed */
        for (guint waited = 0;
             world_export_pid(pair->secondary, pair->web1, REPLICA, i) != 0 && waited < 3000;
             waited++)
            loop_sleep(20);
        g_assert_cmpuint(world_export_pid(pair->secondary, pair->web1, REPLICA, i), ==, 0);
    }
}
