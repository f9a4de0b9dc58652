/*
 * The end of a change of engine from etcd to the store of one node: its copy becomes the engine, if
 * it is the very one that was decided for, and nobody else's does.
 * core/candidate/seat_engine_step.c.
 */
#include "core/candidate/seat.h"

#include <string.h>

#include "helper/fake_copy.h"
#include "proto/records.h"
#include "unit/core/world/config_world.h"

#define HISTORY 5
#define SERIAL 7 /* of the copy */

struct fixture {
    struct fake_world *world;
    struct fake_engine *engine;
    struct fake_copy *copy;
    struct env *wconfd, *cli;
    struct seat *seat;
    char *ended;
};

static void handle(struct rpc_request *request, void *data)
{
    seat_handle(((struct fixture *)data)->seat, request);
}

static void ended(const GError *reason, void *data)
{
    struct fixture *it = data;
    g_assert_null(it->ended);
    it->ended = g_strdup_printf("%s: %s", fettle_error_name(reason), reason->message);
}

static void start_task(void *data)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(seat_start(((struct fixture *)data)->seat, &error));
    g_assert_no_error(error);
}

/* What a candidate of etcd has: everything, and that the engine is etcd. */
static void fill_copy(struct fixture *it)
{
    struct copy *copy = fake_copy_base(it->copy);
    g_autoptr(GPtrArray) all = initial_changes();
    struct change *cluster = all->pdata[0];
    json_object_set_new(cluster->object, "engine", json_string("etcd"));
    g_assert_true(copy->ops->refill_begin(copy, NULL));
    g_assert_true(copy->ops->refill_piece(copy, all, NULL));
    g_assert_true(
        copy->ops->refill_end(copy, &(struct copy_batch){HISTORY, 3, SERIAL, NULL, NULL}, NULL));
}

static void set_up(struct fixture *it, gconstpointer unused)
{
    it->world = fake_world_new();
    it->engine = fake_engine_new(HISTORY, NULL);
    fake_engine_replicate(it->engine);
    it->copy = fake_copy_new();
    fill_copy(it);
    it->wconfd = fake_process(it->world, NODE1, ROLE_WCONFD);
    it->wconfd->engine = fake_engine_base(it->engine);
    it->cli = fake_process(it->world, NODE1, ROLE_CLI);
    it->seat = seat_new(it->wconfd, fake_copy_base(it->copy));
    seat_on_end(it->seat, ended, it);
    fake_serve(it->wconfd, handle, it);
}

static void tear_down(struct fixture *it, gconstpointer unused)
{
    fake_kill(it->wconfd);
    seat_free(it->seat);
    fake_settle(it->world);
    fake_world_free(it->world);
    fake_copy_free(it->copy);
    fake_engine_free(it->engine);
    g_clear_pointer(&it->ended, g_free);
}

static void start(struct fixture *it, const char *node, guint64 history, guint64 serial)
{
    struct engine_left left = {.history = history, .epoch = 3, .serial = serial};
    g_strlcpy(left.node, node, sizeof left.node);
    fake_engine_move(it->engine, &left);
    task_spawn(it->wconfd->tasks, start_task, it);
    fake_advance(it->world, 1000);
}

static void each_cluster(const char *kind, const char *key, guint64 version, json_t *object,
                         void *data)
{
    if (strcmp(kind, "cluster") == 0)
        g_string_printf(data, "%s of serial %d",
                        json_string_value(json_object_get(object, "engine")), (int)version);
}

/* "ROLE HISTORY.EPOCH.SERIAL, ENGINE of serial N", as it is stored. */
static char *stored(const struct fixture *it)
{
    struct copy *copy = fake_copy_base(it->copy);
    struct copy_position at;
    g_autoptr(GString) engine = g_string_new(NULL);
    copy->ops->position(copy, &at);
    g_assert_true(copy->ops->load(copy, each_cluster, engine, NULL));
    return g_strdup_printf("%s %d.%d.%d, %s", at.role == COPY_ENGINE ? "engine" : "copy",
                           (int)at.history, (int)at.epoch, (int)at.serial, engine->str);
}

static char *why(const struct fixture *it)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = fake_call(it->cli, NODE1, ROLE_WCONFD, "wait_role", json_object(), &error);
    g_assert_no_error(error);
    return g_strdup(json_string_value(json_object_get(json, "why")));
}

static void test_taken(struct fixture *it, gconstpointer unused)
{
    start(it, NODE1, HISTORY, SERIAL);
    assert_says(stored(it), "engine 5.3.8, sqlite of serial 8");
    g_assert_cmpstr(it->ended, ==,
                    "resource_not_available: the engine is the store of this node now; starting "
                    "anew");
}

static void test_not_ours(struct fixture *it, gconstpointer unused)
{
    start(it, NODE2, HISTORY, SERIAL);
    fake_advance(it->world, 10000);
    assert_says(stored(it), "copy 5.3.7, etcd of serial 1");
    g_assert_null(it->ended);
}

/* A copy that has less, more, or is of another history is not what was decided for. */
static void test_another_copy(struct fixture *it, gconstpointer data)
{
    const guint64 *moved = data;
    g_autofree char *expected = g_strdup_printf(
        "the configuration left etcd for the store of this node at serial %d of history %d, "
        "and that is at serial 7 of history 5; restore a backup: etcd still has it below /fettle/",
        (int)moved[1], (int)moved[0]);
    start(it, NODE1, moved[0], moved[1]);
    fake_advance(it->world, 10000);
    assert_says(stored(it), "copy 5.3.7, etcd of serial 1");
    assert_says(why(it), expected);
    g_assert_null(it->ended);
}

/* Nothing was done, and it is tried again. */
static void test_bad_disk(struct fixture *it, gconstpointer unused)
{
    fake_copy_fail(it->copy, 3);
    start(it, NODE1, HISTORY, SERIAL);
    assert_says(stored(it), "copy 5.3.7, etcd of serial 1");
    assert_says(why(it), "the disk has failed");
    g_assert_null(it->ended);
    fake_advance(it->world, 3000);
    assert_says(stored(it), "engine 5.3.8, sqlite of serial 8");
    g_assert_nonnull(it->ended);
}

int main(int argc, char **argv)
{
    static const guint64 ahead[] = {HISTORY, SERIAL - 1}, behind[] = {HISTORY, SERIAL + 1};
    static const guint64 history[] = {HISTORY + 1, SERIAL};
    g_test_init(&argc, &argv, NULL);
#define TEST(name, data, fn) g_test_add(name, struct fixture, data, set_up, fn, tear_down)
    TEST("/seat-left/taken#SAF-07,WCF-08", NULL, test_taken);
    TEST("/seat-left/for-another-node#SAF-07", NULL, test_not_ours);
    TEST("/seat-left/copy-is-behind#SAF-07", behind, test_another_copy);
    TEST("/seat-left/copy-is-ahead#SAF-07", ahead, test_another_copy);
    TEST("/seat-left/other-history#SAF-02,SAF-07", history, test_another_copy);
    TEST("/seat-left/bad-disk#SAF-07", NULL, test_bad_disk);
    return g_test_run();
}
