/*
 * Real guests whose disks have no room: QEMU stops them, holds what they write, and lets them go on
 * when it is told to; nothing that was printed is lost, and no request fails. See SAF-27.
 */
#include "moving.h"
#include "pair.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define ROOM_KIB 512
#define WAIT_MS 60000

/* A node whose images have so much room. */
static struct world_node *small_node(const char *name)
{
    struct world_node *node = world_node_new(name);
    world_limit_disks(node, ROOM_KIB);
    return node;
}

static char *filler(const struct world_node *node)
{
    return g_build_filename(node->paths->var, "disks", "filler", NULL);
}

static void fill(const struct world_node *node)
{
    static const char page[4096] = {1};
    g_autofree char *path = filler(node);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    g_assert_cmpint(fd, >=, 0);
    while (write(fd, page, sizeof page) > 0)
        ;
    close(fd);
}

static void make_room(const struct world_node *node)
{
    g_autofree char *path = filler(node);
    g_assert_cmpint(unlink(path), ==, 0);
}

static struct io_info look(struct world_node *node, const struct instance *web1)
{
    struct io_info io = {1, 1, IO_STOP_FAILED};
    g_autoptr(GError) error = NULL;
    node->hypervisor->ops->io_query(node->hypervisor, web1->uuid, web1->generation, &io, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(io.errors, ==, 0); /* what is held has not failed */
    g_assert_cmpuint(io.disk, ==, 0);
    return io;
}

static void await_stop(struct world_node *node, const struct instance *web1, enum io_stop stop)
{
    for (guint waited = 0; look(node, web1).stop != stop && waited < WAIT_MS; waited += 20)
        loop_sleep(20);
    g_assert_cmpint(look(node, web1).stop, ==, stop);
    g_assert_cmpint(world_state(node, web1), ==, GUEST_RUNNING); /* nobody else has stopped it */
}

static void go_on(struct world_node *node, const struct instance *web1)
{
    g_autoptr(GError) error = NULL;
    node->hypervisor->ops->go_on(node->hypervisor, web1->uuid, web1->generation, &error);
    g_assert_no_error(error);
}

static void refuses(struct world_node *node, const struct instance *web1, const char *text)
{
    g_autoptr(GError) error = NULL;
    struct hypervisor *hv = node->hypervisor;
    g_assert_false(hv->ops->go_on(hv, web1->uuid, web1->generation, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_cmpstr(error->message, ==, text);
}

/* How many of its drives may be why it stands still. */
static void assert_short(struct world_node *node, const struct instance *web1, guint count)
{
    struct hypervisor *hv = node->hypervisor;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) drives = hv->ops->drives(hv, web1->uuid, web1->generation, true, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(drives->len, ==, count);
    g_assert_true(count == 0 || strcmp(drives->pdata[0], "vd0") == 0);
}

static void goes_on(void *unused)
{
    struct world_node *node = small_node("goes-on");
    struct hypervisor *hv = node->hypervisor;
    record_autoptr(instance) web1 = world_instance(1, 1);
    g_autoptr(GError) error = NULL;
    world_start(node, web1);
    assert_short(node, web1, 0);
    refuses(
        node, web1,
        "guest web1 does not go on by itself: it is running, not only stopped for lack of room");
    fill(node);
    await_stop(node, web1, IO_STOP_NO_SPACE);
    g_assert_true(world_is_frozen(node, web1));
    guint32 printed = world_printed(node, web1);
    assert_short(node, web1, 1);
    go_on(node, web1); /* there is no room yet */
    await_stop(node, web1, IO_STOP_NO_SPACE);
    make_room(node);
    go_on(node, web1);
    g_assert_true(world_await_count(node, web1, printed + 1));
    g_assert_cmpuint(world_counted(node, web1, ""), >=, printed);
    await_stop(node, web1, IO_STOP_NONE);

    g_assert_true(hv->ops->pause(hv, web1->uuid, 1, &error));
    refuses(node, web1,
            "guest web1 does not go on by itself: it is paused, not only stopped for lack of room");
    g_assert_true(hv->ops->run(hv, web1->uuid, 1, &error));

    /* A person's reset begins anew, and does not leave it standing. */
    fill(node);
    await_stop(node, web1, IO_STOP_NO_SPACE);
    make_room(node);
    printed = world_printed(node, web1);
    g_assert_true(hv->ops->reset(hv, web1->uuid, 1, &error));
    g_assert_true(world_await_count(node, web1, printed + 1));

    world_end(node, web1);
    struct io_info none = look(node, web1);
    g_assert_cmpint(none.stop, ==, IO_STOP_NONE);
    world_node_free(node);
}

/* Told to go on it writes what finds no room, and is stopped again; until a write of its mirror is
 * under way just then. */
static bool falls_silent(struct pair *pair)
{
    enum guest_state state = GUEST_ABSENT;
    struct mirror_info mirror = {0};
    for (guint tries = 0; tries < 100; tries++) {
        g_autoptr(GError) error = NULL;
        pair->hv->ops->go_on(pair->hv, pair->web1->uuid, 1, NULL);
        if (!pair->hv->ops->query(pair->hv, pair->web1->uuid, 1, &state, &mirror, &error))
            return fettle_error_is(error, TIMEOUT);
        loop_sleep(20);
    }
    return false;
}

/* The monitor of a guest that QEMU has stopped by itself is silent while a replica holds a write;
 * the mirror can be released all the same, and then the guest goes on without it. */
static void held_by_its_replica(void *unused)
{
    world_node_free(small_node("held"));
    struct pair *pair = pair_new("held", 1, true);
    const struct hypervisor_ops *ops = pair->hv->ops;
    const char *uuid = pair->web1->uuid;
    g_autoptr(GError) error = NULL;
    fill(pair->primary);
    await_stop(pair->primary, pair->web1, IO_STOP_NO_SPACE);
    pair_kill_export(pair);
    g_assert_true(falls_silent(pair));
    ops->mirror_release(pair->hv, uuid, 1, &error);
    g_assert_no_error(error);
    make_room(pair->primary);
    if (look(pair->primary, pair->web1).stop == IO_STOP_NO_SPACE)
        go_on(pair->primary, pair->web1);
    g_assert_true(
        world_await_count(pair->primary, pair->web1, world_printed(pair->primary, pair->web1)));
    pair_free(pair);
}

/* What it holds goes with it, and is repeated by the first order to run. */
static void moves(void *unused)
{
    world_node_free(small_node("moves"));
    struct moving *moving = moving_new("moves", TEMPLATE_MIRROR, 1, FORMAT_RAW);
    fill(moving->a);
    await_stop(moving->a, moving->before, IO_STOP_NO_SPACE);
    moving_open(moving);
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    refuses(
        moving->a, moving->before,
        "guest web1 does not go on by itself: it is finish-migrate, not only stopped for lack of "
        "room");
    moving_hand_over(moving);
    moving_take(moving);
    moving_check_whole(moving);
    moving_free(moving);
}

/* One whose migration comes to nothing is no worse off than before. */
static void stays(void *unused)
{
    world_node_free(small_node("stays"));
    struct moving *moving = moving_new("stays", TEMPLATE_MIRROR, 1, FORMAT_RAW);
    fill(moving->a);
    await_stop(moving->a, moving->before, IO_STOP_NO_SPACE);
    moving_open(moving);
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    moving_cancel(moving);
    await_stop(moving->a, moving->before, IO_STOP_NO_SPACE);
    make_room(moving->a);
    go_on(moving->a, moving->before);
    moving_check_stayed(moving);
    moving_free(moving);
}

/* Also when the copies of its disks had been ended in sync already. */
static void stays_after_its_copies(void *unused)
{
    world_node_free(small_node("after"));
    struct moving *moving = moving_new("after", TEMPLATE_FILE, 1, FORMAT_RAW);
    fill(moving->a);
    await_stop(moving->a, moving->before, IO_STOP_NO_SPACE);
    moving_open(moving);
    moving_start(moving, true);
    g_assert_true(moving_await(moving, STEP_STOPPED));
    moving_finish_mirrors(moving);
    moving_cancel(moving);
    await_stop(moving->a, moving->before, IO_STOP_NO_SPACE);
    make_room(moving->a);
    go_on(moving->a, moving->before);
    moving_check_stayed(moving);
    moving_free(moving);
}

static void add_tests(void)
{
    world_test("/disk-io/goes-on#SAF-27", goes_on);
    world_test("/disk-io/held-by-its-replica#SAF-15,SAF-27", held_by_its_replica);
    world_test("/disk-io/moves#SAF-17,SAF-27", moves);
    world_test("/disk-io/stays#SAF-17,SAF-27", stays);
    world_test("/disk-io/stays-after-its-copies#SAF-17,SAF-27", stays_after_its_copies);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}
