/*
 * The master of etcd: members as candidates come and go, and the way back to the store of this node
 * up to its step. core/config/engine_tend.c, engine_change.c.
 */
#include <string.h>

#include "engine_world.h"
#include "proto/records.h"

#define URL3 "https://10.0.0.3:2380"

static void set_up(void)
{
    engine_set_up(NODES, false, true);
}

/* By a job that holds the node's lock. */
static void set_candidate(const char *node, guint version, bool candidate)
{
    g_autofree char *freed =
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(17)));
    g_autofree char *lock = g_strdup_printf("x node-param/%s", node);
    assert_says(job_locks(&world, 17, lock, false), GRANTED);
    g_autofree char *said = job_change(
        &world, 17, "change_node",
        changes_of(put("node", node, version,
                       with(object_node(node), "master_candidate", json_boolean(candidate))),
                   NULL));
    g_assert_true(g_str_has_prefix(said, "{\"serial\":"));
}

/* Whoever still has what it was told before the step is told by the new master. */
static void test_told(void)
{
    set_up();
    fake_advance(world.world, 5000);
    for (guint i = 0; i < NODES; i++)
        g_assert_cmpstr(engine_state_of(i), ==, "active");
    g_assert_cmpstr(it.ensemble->did->str, ==, "");
    engine_tear_down();
}

static void test_goes_and_comes(void)
{
    set_up();
    fake_advance(world.world, 5000);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " remove 3");
    g_assert_cmpstr(engine_state_of(2), ==, "none");
    g_assert_false(it.members[2]->running);
    g_assert_cmpuint(it.members[0]->config->members->len, ==, 2);
    g_string_truncate(it.ensemble->did, 0);
    set_candidate(NODE3, 2, true);
    fake_advance(world.world, 4000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " add " URL3);
    g_assert_true(it.members[2]->running);
    g_assert_cmpuint(it.members[2]->config->members->len, ==, 3);
    ((struct ensemble_member *)it.ensemble->members->pdata[2])->started = true;
    fake_advance(world.world, 10000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " add " URL3 " promote 102");
    for (guint i = 0; i < NODES; i++)
        g_assert_cmpuint(it.members[i]->config->members->len, ==, 3);
    engine_tear_down();
}

/* It never starts again as the member that it was. */
static void test_lost(void)
{
    set_up();
    fake_advance(world.world, 5000);
    it.members[1]->running = it.members[1]->data = false;
    fake_advance(world.world, 8000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " remove 2 add https://10.0.0.2:2380");
    g_assert_true(it.members[1]->running);
    engine_tear_down();
}

/* The same of the master's own: what its node is told to remove is not what says who the members
 * are. */
static void test_lost_here(void)
{
    set_up();
    fake_advance(world.world, 5000);
    it.members[0]->running = it.members[0]->data = false;
    fake_advance(world.world, 8000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " remove 1 add https://10.0.0.1:2380");
    g_assert_true(it.members[0]->running);
    g_assert_cmpuint(it.members[0]->config->members->len, ==, 3);
    engine_tear_down();
}

/* etcd takes nobody in beside a dead member: that one goes first, when another gets its place. */
static void test_dead_one_first(void)
{
    set_up();
    fake_advance(world.world, 5000);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 10000);
    g_string_truncate(it.ensemble->did, 0);
    fake_cut(world.world, NODE2, true);
    it.ensemble->dead = 2;
    set_candidate(NODE2, 1, false);
    set_candidate(NODE3, 2, true);
    fake_advance(world.world, 30000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " remove 2 add " URL3);
    engine_tear_down();
}

/* A candidate that is exchanged for another goes when the other is there to come. */
static void test_exchanged(void)
{
    set_up();
    fake_advance(world.world, 5000);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 10000);
    g_string_truncate(it.ensemble->did, 0);
    fake_cut(world.world, NODE3, true);
    set_candidate(NODE2, 1, false);
    set_candidate(NODE3, 2, true);
    fake_advance(world.world, 30000);
    g_assert_cmpstr(it.ensemble->did->str, ==, "");
    fake_cut(world.world, NODE3, false);
    fake_advance(world.world, 30000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " add " URL3); /* and it starts there */
    engine_tear_down();
}

/* A silent node keeps nobody else from its turn, and no member is taken away for it. */
static void test_silent(void)
{
    set_up();
    fake_cut(world.world, NODE2, true);
    it.members[1]->config->state = ENGINE_DECIDING;
    it.members[2]->config->state = ENGINE_DECIDING;
    fake_advance(world.world, 30000);
    g_assert_cmpstr(engine_state_of(1), ==, "deciding");
    g_assert_cmpstr(engine_state_of(2), ==, "active");
    g_assert_cmpstr(it.ensemble->did->str, ==, "");
    fake_cut(world.world, NODE2, false);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(1), ==, "active");
    engine_tear_down();
}

/* --- back --- */

/* The copy of this node asks its own master, which acknowledges what it has. */
static void follow(void)
{
    const struct config *config = wconf_config(world.wconf);
    g_autofree char *digest = g_strdup_printf("%" G_GINT64_MODIFIER "x", config_digest(config));
    g_autofree char *said =
        ask_wconf(&world, world.wconfd, "follow",
                  json_make("{s:i,s:I,s:s}", "history", 5, "serial",
                            (json_int_t)config_serial(config), "digest", digest));
    g_assert_nonnull(strstr(said, "\"serial\""));
}

static void test_back(void)
{
    struct fake_reply held;
    set_up();
    fake_advance(world.world, 5000);
    assert_says(engine_ask_change("etcd"), "wrong_state: the engine is etcd already");
    assert_says(engine_ask_change("sqlite"), "{}");
    fake_settle(world.world);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &held);
    fake_advance(world.world, 50);
    g_assert_false(held.done);
    g_assert_false(fake_engine_left(world.engine));
    follow();
    fake_advance(world.world, 500);
    g_assert_true(fake_engine_left(world.engine));
    assert_says(world_reply(&held), "resource_not_available: the commit was not stored: the engine "
                                    "has changed; starting anew");
    g_assert_nonnull(world.stepped_down);
    g_assert_cmpstr(engine_state_of(0), ==, "active");
    engine_tear_down();
}

/* Without a whole copy nothing happens, and what waited goes on. */
static void test_no_copy(void)
{
    struct fake_reply held;
    set_up();
    fake_advance(world.world, 5000);
    assert_says(engine_ask_change("sqlite"), "{}");
    fake_settle(world.world);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &held);
    assert_says(engine_progress_after(11000),
                "timeout: the copy of this node is at serial 0 after 10 s, not at 1");
    assert_says(world_reply(&held), "{\"serial\":2}");
    g_assert_false(fake_engine_left(world.engine));
    g_assert_null(world.stepped_down);
    it.members[1]->config->state = ENGINE_DECIDING;
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(1), ==, "active");
    engine_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine-tend/told#SAF-07", test_told);
    g_test_add_func("/engine-tend/goes-and-comes#SAF-07", test_goes_and_comes);
    g_test_add_func("/engine-tend/lost#SAF-07", test_lost);
    g_test_add_func("/engine-tend/lost-by-the-master#SAF-07", test_lost_here);
    g_test_add_func("/engine-tend/dead-one-first#ARP-71,SAF-07", test_dead_one_first);
    g_test_add_func("/engine-tend/exchanged#SAF-07", test_exchanged);
    g_test_add_func("/engine-tend/silent#SAF-07", test_silent);
    g_test_add_func("/engine-tend/back#SAF-04,SAF-07", test_back);
    g_test_add_func("/engine-tend/back-without-copy#SAF-04", test_no_copy);
    return g_test_run();
}
