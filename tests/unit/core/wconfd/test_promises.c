/*
 * Who becomes master of a store that is the engine: promises.c against the real fences of three
 * candidates' nodes. Whatever is lost, late or asked at the same time: of two that want to be
 * master at most one is told that it may.
 */
#include "core/wconfd/promises.h"

#include <string.h>

#include "core/epoch/epoch_fence.h"
#include "helper/fake_authority.h"
#include "unit/core/world/config_world.h"

#define NODES 3

static const char *const uuids[NODES] = {NODE1, NODE2, NODE3};

struct host {
    struct env *noded, *wconfd;
    struct epoch_fence *fence;
};

static struct fake_world *world;
static struct host hosts[NODES];
static struct config *config;

struct call {
    struct host *host;
    struct rpc_request *request;
};

static void call_task(void *data)
{
    g_autofree struct call *call = data;
    g_autoptr(GError) error = NULL;
    record_autoptr(promise_epoch_args) args =
        promise_epoch_args_parse(call->request->args, RECORD_LAX, &error);
    g_assert_no_error(error);
    record_autoptr(promise_epoch_result) result =
        epoch_fence_promise(call->host->fence, call->request->from_node, args, &error);
    if (result)
        rpc_answer(call->request, promise_epoch_result_to_json(result));
    else
        rpc_fail(call->request, error);
}

static void handle(struct rpc_request *request, void *data)
{
    struct call *call = g_new(struct call, 1);
    *call = (struct call){data, request};
    task_spawn(call->host->noded->tasks, call_task, call);
}

/* Epoch 1 was node1's: every node has promised it, and node1 has begun it. */
static void set_up(guint candidates)
{
    world = fake_world_new();
    config = config_new();
    for (guint i = 0; i < NODES; i++) {
        struct host *host = &hosts[i];
        struct change *change =
            put("node", uuids[i], 1,
                with(object_node(uuids[i]), "master_candidate", json_boolean(i < candidates)));
        g_assert_true(config_apply(config, change, NULL));
        change_free(change);
        host->noded = fake_process(world, uuids[i], ROLE_NODED);
        host->wconfd = fake_process(world, uuids[i], ROLE_WCONFD);
        host->wconfd->authority = fake_authority_of(true);
        host->fence = epoch_fence_new(host->noded, CLUSTER);
        fake_serve(host->noded, handle, host);
    }
    struct change *cluster =
        put("cluster", CLUSTER, 1,
            json_make("{s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node", NODE1));
    g_assert_true(config_apply(config, cluster, NULL));
    change_free(cluster);
    config_set_position(config, 1, 10);
}

static void tear_down(void)
{
    for (guint i = 0; i < NODES; i++) {
        fake_kill(hosts[i].wconfd);
        fake_kill(hosts[i].noded);
        epoch_fence_free(hosts[i].fence);
    }
    config_free(config);
    fake_world_free(world);
}

/* --- one that wants to be master --- */

struct contender {
    struct host *host;
    struct promise_wish wish;
    bool asks;   /* it comes no further than the first round */
    bool person; /* it is made master by a person: asked for before it becomes the engine */
    bool done, won;
    GError *error;
};

static bool contend(struct contender *contender)
{
    const struct env *env = contender->host->wconfd;
    if (contender->person) {
        if (!promises_ask(env, config, &contender->wish, &contender->error))
            return false;
        if (contender->asks)
            return true;
        contender->wish =
            (struct promise_wish){contender->wish.epoch + 1, contender->wish.epoch, false};
    }
    return promises_get(env, config, &contender->wish, &contender->error);
}

static void contend_task(void *data)
{
    struct contender *contender = data;
    contender->won = contend(contender);
    contender->done = true;
}

static struct contender contender_of(guint node, guint64 epoch, guint64 since)
{
    return (struct contender){.host = &hosts[node], .wish = {epoch, since, false}};
}

static void contend_start(struct contender *contender)
{
    task_spawn(contender->host->wconfd->tasks, contend_task, contender);
    fake_settle(world);
}

/* "won EPOCH", "waits", or "error_name: message". */
static char *outcome(struct contender *contender)
{
    if (!contender->done)
        return g_strdup("waits");
    if (contender->won)
        return g_strdup_printf("won %" G_GUINT64_FORMAT, contender->wish.epoch);
    char *text =
        g_strdup_printf("%s: %s", fettle_error_name(contender->error), contender->error->message);
    g_clear_error(&contender->error);
    return text;
}

#define assert_outcome(contender, expected)                                                        \
    do {                                                                                           \
        g_autofree char *said_ = outcome(contender);                                               \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* --- tests --- */

static void test_majority(void)
{
    set_up(NODES);
    struct contender first = contender_of(0, 2, 1);
    fake_cut(world, NODE2, true);
    contend_start(&first);
    fake_advance(world, 100);
    assert_outcome(&first, "won 2");

    /* Alone it waits, and goes on when another one is there again. */
    struct contender second = contender_of(0, 3, 2);
    fake_cut(world, NODE3, true);
    contend_start(&second);
    fake_advance(world, 60000);
    assert_outcome(&second, "waits");
    fake_cut(world, NODE3, false);
    fake_advance(world, 10000);
    assert_outcome(&second, "won 3");
    tear_down();
}

/* The word of others is nothing without that of the node itself, which acts for other masters. */
static void test_own_word(void)
{
    set_up(NODES);
    struct contender first = contender_of(0, 2, 1);
    fake_pause(hosts[0].noded);
    contend_start(&first);
    fake_advance(world, 200000);
    assert_outcome(&first, "waits");
    fake_resume(hosts[0].noded);
    fake_advance(world, 100000);
    assert_outcome(&first, "won 2");
    tear_down();
}

static void test_one_candidate(void)
{
    set_up(1);
    struct contender only = contender_of(0, 2, 1);
    for (guint i = 0; i < NODES; i++)
        fake_cut(world, uuids[i], true);
    contend_start(&only);
    assert_outcome(&only, "won 2");
    g_assert_cmpuint(fake_count_calls(world, ""), ==, 0);
    tear_down();
}

/* A promise that came to nothing is passed over by a higher one; a mastership is not. */
static void test_others(void)
{
    set_up(NODES);
    struct contender half = contender_of(1, 7, 1);
    half.person = half.asks = true;
    fake_cut(world, NODE1, true);
    contend_start(&half);
    fake_advance(world, 100);
    assert_outcome(&half, "won 7");
    fake_cut(world, NODE1, false);
    struct contender next = contender_of(0, 2, 1);
    contend_start(&next);
    fake_advance(world, 1000);
    assert_outcome(&next, "won 8");

    struct contender late = contender_of(2, 2, 1);
    contend_start(&late);
    fake_advance(world, 1000);
    assert_outcome(&late, "stale_epoch: node node1 has become master meanwhile: the store of this "
                          "node is not the engine any more (node node2 says so)");
    tear_down();
}

static void test_person(void)
{
    set_up(NODES);
    fake_cut(world, NODE1, true);
    fake_cut(world, NODE2, true);
    struct contender person = contender_of(2, 2, 1);
    person.person = true;
    contend_start(&person);
    fake_advance(world, 10000);
    assert_outcome(&person,
                   "resource_not_available: a majority of the 3 candidates must promise to follow "
                   "this node; no answer of their node daemons: node1, node2. If they are gone for "
                   "good, say so: --alone --statement TEXT");

    person = contender_of(2, 2, 1);
    promises_alone(hosts[2].wconfd, &person.wish);
    person.person = true;
    contend_start(&person);
    fake_advance(world, 10000);
    /* It is the engine now, and needs the others to begin: they are on record as candidates still.
     */
    assert_outcome(&person, "waits");
    tear_down();
}

struct holding {
    guint64 epoch;
    bool go_on, holds;
    char *went, *held;
};

static void holding_task(void *data)
{
    struct holding *holding = data;
    g_autoptr(GError) went = NULL;
    g_autoptr(GError) held = NULL;
    holding->go_on = promises_go_on(hosts[0].wconfd, config, holding->epoch, &went);
    holding->went = went ? g_strdup(fettle_error_name(went)) : g_strdup("");
    holding->holds = promises_hold(hosts[0].wconfd, config, holding->epoch, &held);
    holding->held = held ? g_strdup(held->message) : g_strdup("");
}

static void expect_holding(guint64 epoch, const char *went, const char *held)
{
    struct holding holding = {.epoch = epoch};
    fake_run(hosts[0].wconfd, holding_task, &holding);
    g_assert_cmpstr(holding.went, ==, went);
    g_assert_cmpstr(holding.held, ==, held);
    g_assert_cmpint(holding.go_on, ==, *went == '\0');
    g_assert_cmpint(holding.holds, ==, *held == '\0');
    g_free(holding.went);
    g_free(holding.held);
}

/* A mastership that goes on, and one that finds out that it is over. */
static void test_goes_on(void)
{
    set_up(NODES);
    expect_holding(2, "", "");
    fake_cut(world, NODE2, true);
    expect_holding(2, "", "");
    fake_cut(world, NODE2, false);

    struct contender other = contender_of(1, 3, 2);
    other.person = true;
    fake_cut(world, NODE1, true);
    contend_start(&other);
    fake_advance(world, 100);
    assert_outcome(&other, "won 4");
    /* Its own node has not heard of it. */
    fake_cut(world, NODE1, false);
    expect_holding(2, "", "node node3 follows a later mastership, of node node2");

    struct contender again = contender_of(1, 5, 4);
    contend_start(&again);
    fake_advance(world, 100);
    assert_outcome(&again, "won 5");
    expect_holding(2, "stale_epoch", "node node3 follows a later mastership, of node node2");
    tear_down();
}

/* --- two at the same time --- */

static guint delay(const char *from, const char *to, void *data)
{
    return (guint)g_rand_int_range(data, 0, 40);
}

static bool passes(const char *from, const char *to, void *data)
{
    return g_rand_int_range(data, 0, 100) < 80;
}

static void race(guint32 seed)
{
    GRand *rand = g_rand_new_with_seed(seed);
    set_up(NODES);
    fake_set_delay(world, delay, rand);
    fake_set_path(world, passes, rand);
    struct contender both[2] = {contender_of(0, 2, 1), contender_of(1, 2, 1)};
    both[0].person = g_rand_boolean(rand);
    both[1].person = true;
    contend_start(&both[0]);
    fake_advance(world, (guint)g_rand_int_range(rand, 0, 200));
    contend_start(&both[1]);
    for (guint i = 0; i < 600 && !(both[0].done && both[1].done); i++)
        fake_advance(world, 1000);
    g_assert_true(both[0].done && both[1].done);
    if (both[0].won && both[1].won)
        g_error("seed %u: two masters, epochs %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT, seed,
                both[0].wish.epoch, both[1].wish.epoch);
    g_clear_error(&both[0].error);
    g_clear_error(&both[1].error);
    tear_down();
    g_rand_free(rand);
}

static void test_races(void)
{
    for (guint32 seed = 1; seed <= 150; seed++)
        race(seed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/promises/majority#SAF-07", test_majority);
    g_test_add_func("/promises/own-word#SAF-05,SAF-07", test_own_word);
    g_test_add_func("/promises/one-candidate#SAF-01", test_one_candidate);
    g_test_add_func("/promises/others#SAF-07", test_others);
    g_test_add_func("/promises/person#SAF-07", test_person);
    g_test_add_func("/promises/goes-on#SAF-01,SAF-06", test_goes_on);
    g_test_add_func("/promises/races#SAF-07", test_races);
    return g_test_run();
}
