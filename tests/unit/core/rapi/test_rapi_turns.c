/* Whose turn it is to ask luxid. core/rapi/rapi_turns.c. */
#include "core/rapi/rapi_turns.h"
#include "helper/fake_env.h"
#include "proto/luxi.h"

#define NODE1 "11111111-0000-4000-8000-000000000001"
#define SECONDS 1000u

struct fixture {
    struct fake_world *world;
    struct env *env;
    struct rapi_turns *turns;
};

/* One that wants a turn. */
struct one {
    struct rapi_turns *turns;
    bool is_long, done, may;
    guint left_ms;
    GError *error;
};

static void set_up(struct fixture *f, gconstpointer unused)
{
    f->world = fake_world_new();
    f->env = fake_process(f->world, NODE1, ROLE_RAPID);
    f->turns = rapi_turns_new(f->env);
}

static void tear_down(struct fixture *f, gconstpointer unused)
{
    fake_kill(f->env);
    rapi_turns_free(f->turns);
    fake_world_free(f->world);
}

static void take_task(void *data)
{
    struct one *one = data;
    one->may = rapi_turns_take(one->turns, one->is_long, &one->left_ms, &one->error);
    g_assert_cmpint(one->may, ==, !one->error);
    one->done = true;
}

static void start(struct fixture *f, struct one *one, bool is_long)
{
    *one = (struct one){.turns = f->turns, .is_long = is_long, .left_ms = 60 * SECONDS};
    task_spawn(f->env->tasks, take_task, one);
    fake_settle(f->world);
}

/* So many, which get their turn at once. */
static void occupy(struct fixture *f, guint count, bool is_long)
{
    for (guint i = 0; i < count; i++) {
        struct one one;
        start(f, &one, is_long);
        g_assert_true(one.may);
        g_assert_cmpuint(one.left_ms, ==, 60 * SECONDS);
    }
}

static void give_back(struct fixture *f, guint count, bool is_long)
{
    for (guint i = 0; i < count; i++)
        rapi_turns_give_back(f->turns, is_long);
    fake_settle(f->world);
}

static void assert_refused(struct one *one, int code, const char *message)
{
    g_assert_true(one->done);
    g_assert_error(one->error, FETTLE_ERROR, code);
    g_assert_cmpstr(one->error->message, ==, message);
    g_clear_error(&one->error);
}

#define BUSY "luxid was busy with other requests for 30 s; try again"

/* Who comes first is first; what takes long leaves room to others. */
static void test_order(struct fixture *f, gconstpointer unused)
{
    struct one one, two, long_one, another;
    occupy(f, LIMIT_RAPI_LONG_CALLS, true);
    start(f, &long_one, true);
    g_assert_false(long_one.done);
    occupy(f, LIMIT_RAPI_CALLS - LIMIT_RAPI_LONG_CALLS, false);
    start(f, &one, false);
    start(f, &two, false);
    start(f, &another, true);
    fake_advance(f->world, 20 * SECONDS);
    g_assert_false(one.done || two.done || long_one.done || another.done);
    give_back(f, 1, false);
    g_assert_true(one.may && !two.done && !long_one.done);
    g_assert_cmpuint(one.left_ms, ==, 40 * SECONDS);
    give_back(f, 1, true);
    g_assert_true(two.may && !long_one.done);
    give_back(f, 1, true);
    g_assert_true(long_one.may && !another.done);
    give_back(f, 1, true);
    g_assert_true(another.may);
}

/* Behind a luxid that stands still nobody waits longer than half of what one call would take, and
 * whoever has gone takes nobody's place. */
static void test_end(struct fixture *f, gconstpointer unused)
{
    struct one short_one, long_one, late;
    occupy(f, LIMIT_RAPI_LONG_CALLS, true);
    occupy(f, LIMIT_RAPI_CALLS - LIMIT_RAPI_LONG_CALLS, false);
    start(f, &short_one, false);
    start(f, &long_one, true);
    fake_advance(f->world, 10 * SECONDS);
    start(f, &late, false);
    fake_advance(f->world, 20 * SECONDS - 1);
    g_assert_false(short_one.done || long_one.done);
    fake_advance(f->world, 1);
    assert_refused(&short_one, FETTLE_ERROR_TEMPORARY, BUSY);
    assert_refused(&long_one, FETTLE_ERROR_TEMPORARY, BUSY);
    g_assert_false(late.done);
    fake_advance(f->world, 10 * SECONDS - 1);
    give_back(f, LIMIT_RAPI_CALLS - LIMIT_RAPI_LONG_CALLS, false);
    give_back(f, LIMIT_RAPI_LONG_CALLS, true);
    g_assert_true(late.may);
    g_assert_cmpuint(late.left_ms, ==, 30 * SECONDS + 1);
    give_back(f, 1, false);
    occupy(f, LIMIT_RAPI_CALLS, false);
}

/* A process that has stood still, and whose turn comes before it hears that time is over, has
 * something left: 0 would be all of it. */
static void test_stopped(struct fixture *f, gconstpointer unused)
{
    struct one one;
    occupy(f, LIMIT_RAPI_CALLS, false);
    start(f, &one, false);
    fake_pause(f->env);
    fake_advance(f->world, 70 * SECONDS);
    give_back(f, 1, false);
    fake_resume(f->env);
    g_assert_true(one.may);
    g_assert_cmpuint(one.left_ms, ==, 1);
}

static void test_many(struct fixture *f, gconstpointer unused)
{
    g_autofree struct one *many = g_new(struct one, LIMIT_RAPI_WAITING);
    struct one more, long_one;
    occupy(f, LIMIT_RAPI_CALLS, false);
    for (guint i = 0; i < LIMIT_RAPI_WAITING; i++) {
        many[i] = (struct one){.turns = f->turns, .left_ms = 60 * SECONDS};
        task_spawn(f->env->tasks, take_task, &many[i]);
    }
    fake_settle(f->world);
    start(f, &more, false);
    assert_refused(&more, FETTLE_ERROR_TEMPORARY,
                   "1024 requests wait for luxid already; try again");
    start(f, &long_one, true); /* waits for others than they do */
    g_assert_false(long_one.done);
    fake_advance(f->world, 30 * SECONDS);
    for (guint i = 0; i < LIMIT_RAPI_WAITING; i++)
        assert_refused(&many[i], FETTLE_ERROR_TEMPORARY, BUSY);
    assert_refused(&long_one, FETTLE_ERROR_TEMPORARY, BUSY);
}

/* The process ends: one waits, and one has had his turn and not yet heard of it, who gives it back.
 */
static void test_killed(struct fixture *f, gconstpointer unused)
{
    struct one one, two;
    occupy(f, LIMIT_RAPI_CALLS, false);
    start(f, &one, false);
    start(f, &two, false);
    rapi_turns_give_back(f->turns, false);
    fake_kill(f->env);
    assert_refused(&one, FETTLE_ERROR_KILLED, "luxid: the calling process ends");
    assert_refused(&two, FETTLE_ERROR_KILLED, "luxid: the calling process ends");
    f->env = fake_process(f->world, NODE1, ROLE_RAPID);
    occupy(f, 1, false);
    start(f, &one, false);
    g_assert_false(one.done);
    fake_kill(f->env);
    g_clear_error(&one.error);
    f->env = fake_process(f->world, NODE1, ROLE_RAPID);
}

/* What waits for something to happen, and what asks each node, may take long; all of them are
 * methods that there are. */
static void test_long(void)
{
    const char *const long_ones[] = {"WaitForJobChange", "Verify", "PlanRecovery", "PlanNode"};
    const char *const others[] = {"QueryRapiUsers", "SubmitJob", "Query", "CancelJob",
                                  "WatchChanges"};
    for (size_t i = 0; i < G_N_ELEMENTS(long_ones); i++) {
        g_assert_true(rapi_turns_is_long(long_ones[i]));
        g_assert_nonnull(luxi_method_find(long_ones[i]));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        g_assert_false(rapi_turns_is_long(others[i]));
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("/rapi-turns/order", test_order);
    ADD("/rapi-turns/end", test_end);
    ADD("/rapi-turns/stopped", test_stopped);
    ADD("/rapi-turns/many", test_many);
    ADD("/rapi-turns/killed", test_killed);
    g_test_add_func("/rapi-turns/long", test_long);
    return g_test_run();
}
