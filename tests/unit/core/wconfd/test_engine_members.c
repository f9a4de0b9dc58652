/*
 * The master of etcd: members as candidates come and go, and the way back to the store of this node
 * up to its step. core/wconfd/engine_members.c, engine_change.c.
 */
#include <string.h>

#include "proto/records.h"
#include "unit/core/world/engine_world.h"

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

static bool says_kept(void)
{
    g_autofree char *said =
        ask_wconf(&world, world.noded[0], "confirm",
                  json_make("{s:[{s:s,s:s,s:i,s:s}]}", "items", "role", "mirror", "instance", WEB1,
                            "generation", 4, "replica", REPLICA1));
    g_assert_nonnull(strstr(said, "\"kept\":"));
    return strstr(said, "\"kept\":true") != NULL;
}

/* More than one disk has what is on record as long as more than one member has a vote. */
static void test_kept(void)
{
    set_up();
    fake_advance(world.world, 5000);
    g_assert_true(says_kept());
    engine_tear_down();
    engine_set_up(1, false, true); /* the others are removed */
    fake_advance(world.world, 10000);
    g_assert_false(says_kept());
    engine_tear_down();
}

/* What was seen once is no word on what cannot be looked at any more. */
static void test_kept_unseen(void)
{
    set_up();
    fake_advance(world.world, 5000);
    g_assert_true(says_kept());
    struct engine_config *config = g_steal_pointer(&it.members[0]->config);
    fake_advance(world.world, 60000);
    g_assert_false(says_kept());
    it.members[0]->config = config;
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

/* What is known of a node counts until it is a candidate again. */
static void test_goes_twice(void)
{
    set_up();
    fake_advance(world.world, 5000);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(2), ==, "none");
    set_candidate(NODE3, 2, true);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(2), ==, "active");
    set_candidate(NODE3, 3, false);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(2), ==, "none");
    g_assert_false(it.members[2]->data);
    engine_tear_down();
}

/* Silent when its member went, and a candidate again before it was cleared: it comes as a new one,
 * with nothing of what it had. */
static void test_comes_without_its_past(void)
{
    set_up();
    fake_advance(world.world, 5000);
    fake_cut(world.world, NODE3, true);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 10000);
    g_assert_true(it.members[2]->data);
    fake_cut(world.world, NODE3, false);
    set_candidate(NODE3, 2, true);
    g_string_truncate(it.members[2]->did, 0);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " remove 3 add " URL3);
    g_assert_true(g_str_has_prefix(it.members[2]->did->str, " stop aside forget start-"));
    engine_tear_down();
}

/* What the cluster's status says of it, "" if nothing. */
static char *problems(void)
{
    g_autofree char *said = ask_wconf(&world, world.luxid, "cluster_status", json_object());
    const char *found = strstr(said, "\"problems\":[");
    return g_strdup(found ? strstr(found, "[") : "");
}

/* Members are compared now and then; what is found twice is said, and shown until it is gone. */
static void test_odd(void)
{
    set_up();
    fake_advance(world.world, ENGINE_COMPARE_MS / 2);
    g_assert_cmpuint(it.ensemble->compared, ==, 1);
    it.ensemble->odd = "that of node2 is damaged";
    fake_advance(world.world, ENGINE_COMPARE_MS / 2 + 30000);
    g_assert_cmpuint(it.ensemble->compared, >=, 3);
    g_autofree char *said = problems();
    g_assert_true(g_str_has_prefix(said, "[\"members of etcd: that of node2 is damaged\"]"));
    it.ensemble->odd = NULL;
    fake_advance(world.world, 2 * ENGINE_COMPARE_SOON_MS);
    g_autofree char *after = problems();
    g_assert_null(strstr(after, "members of etcd"));
    engine_tear_down();
}

/* Found once it is nothing yet: a member drops old revisions at its own time. */
static void test_odd_once(void)
{
    set_up();
    it.ensemble->odd = "that of node2 is damaged";
    for (guint i = 0; i < 700 && it.ensemble->compared == 0; i++)
        fake_advance(world.world, 1000);
    it.ensemble->odd = NULL;
    fake_advance(world.world, 30000);
    g_assert_cmpuint(it.ensemble->compared, ==, 2);
    g_autofree char *said = problems();
    g_assert_null(strstr(said, "members of etcd"));
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

/* The same of one that is no member yet, and stands in front of the others. */
static void test_silent_newcomer(void)
{
    set_up();
    fake_advance(world.world, 5000);
    set_candidate(NODE2, 1, false);
    fake_advance(world.world, 10000);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(1), ==, "none");
    g_assert_cmpstr(engine_state_of(2), ==, "none");
    g_string_truncate(it.ensemble->did, 0);
    fake_cut(world.world, NODE2, true);
    set_candidate(NODE2, 2, true);
    set_candidate(NODE3, 3, true);
    fake_advance(world.world, 30000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " add " URL3);
    g_assert_true(it.members[2]->running);
    engine_tear_down();
}

/* Two within the same few seconds. */
static void test_two_go(void)
{
    set_up();
    fake_advance(world.world, 5000);
    set_candidate(NODE2, 1, false);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 20000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " remove 2 remove 3");
    for (guint i = 1; i < NODES; i++) {
        g_assert_cmpstr(engine_state_of(i), ==, "none");
        g_assert_false(it.members[i]->data);
    }
    engine_tear_down();
}

/* Whoever is silent then is cleared when it answers, by whoever is master then. */
static void test_gone_outlives_the_master(void)
{
    set_up();
    fake_advance(world.world, 5000);
    fake_cut(world.world, NODE3, true);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(it.ensemble->did->str, ==, " remove 3");
    g_assert_cmpstr(engine_state_of(2), ==, "active");
    config_world_restart(&world);
    engine_give();
    config_world_start(&world);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(2), ==, "active");
    fake_cut(world.world, NODE3, false);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(2), ==, "none");
    g_assert_false(it.members[2]->running);
    engine_tear_down();
}

/* One that is silent keeps no other from it. */
static void test_gone_and_silent(void)
{
    set_up();
    fake_advance(world.world, 5000);
    fake_cut(world.world, NODE2, true);
    fake_cut(world.world, NODE3, true);
    set_candidate(NODE2, 1, false);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 20000);
    fake_cut(world.world, NODE3, false);
    fake_advance(world.world, 20000);
    g_assert_cmpstr(engine_state_of(1), ==, "active");
    g_assert_cmpstr(engine_state_of(2), ==, "none");
    fake_cut(world.world, NODE2, false);
    fake_advance(world.world, 20000);
    g_assert_cmpstr(engine_state_of(1), ==, "none");
    engine_tear_down();
}

/* Nor does a member go from a node whose turn in etcd has not come: others may need its vote. */
static void test_listed_is_kept(void)
{
    set_up();
    fake_advance(world.world, 5000);
    set_candidate(NODE3, 1, false);
    fake_advance(world.world, 10000);
    fake_cut(world.world, NODE3, true);
    set_candidate(NODE2, 1, false);
    set_candidate(NODE3, 2, true);
    fake_advance(world.world, 30000);
    g_assert_cmpstr(engine_state_of(1), ==, "active");
    g_assert_true(it.members[1]->running);
    engine_tear_down();
}

static void set_offline(const char *node, guint version, bool offline)
{
    json_t *object = with(object_node(node), "master_candidate", json_false());
    if (offline)
        object = with(with(object, "offline", json_true()), "offline_statement", json_string("x"));
    g_autofree char *freed =
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(17)));
    g_autofree char *lock = g_strdup_printf("x node/%s, x node-param/%s", node, node);
    assert_says(job_locks(&world, 17, lock, false), GRANTED);
    g_autofree char *said =
        job_change(&world, 17, "change_node", changes_of(put("node", node, version, object), NULL));
    g_assert_true(g_str_has_prefix(said, "{\"serial\":"));
}

/* Nobody asks one that is offline; it is when it comes back that it has what it had. */
static void test_gone_while_offline(void)
{
    set_up();
    fake_advance(world.world, 5000);
    fake_cut(world.world, NODE3, true);
    set_offline(NODE3, 1, true);
    fake_advance(world.world, 10000);
    g_string_truncate(it.asked, 0);
    fake_cut(world.world, NODE3, false);
    fake_advance(world.world, 10000);
    g_assert_null(strstr(it.asked->str, "node3 "));
    g_assert_cmpstr(engine_state_of(2), ==, "active");
    set_offline(NODE3, 2, false);
    fake_advance(world.world, 10000);
    g_assert_cmpstr(engine_state_of(2), ==, "none");
    /* And then no more: it is clear. */
    g_string_truncate(it.asked, 0);
    fake_advance(world.world, 30000);
    g_assert_null(strstr(it.asked->str, "node3 "));
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
    g_test_add_func("/engine-tend/goes-twice#SAF-07", test_goes_twice);
    g_test_add_func("/engine-tend/comes-without-its-past#SAF-07", test_comes_without_its_past);
    g_test_add_func("/engine-tend/odd#SAF-07", test_odd);
    g_test_add_func("/engine-tend/odd-once#SAF-07", test_odd_once);
    g_test_add_func("/engine-tend/lost#SAF-07", test_lost);
    g_test_add_func("/engine-tend/lost-by-the-master#SAF-07", test_lost_here);
    g_test_add_func("/engine-tend/dead-one-first#ARP-71,SAF-07", test_dead_one_first);
    g_test_add_func("/engine-tend/exchanged#SAF-07", test_exchanged);
    g_test_add_func("/engine-tend/silent#SAF-07", test_silent);
    g_test_add_func("/engine-tend/silent-newcomer#SAF-07", test_silent_newcomer);
    g_test_add_func("/engine-tend/two-go#SAF-07", test_two_go);
    g_test_add_func("/engine-tend/gone-outlives-the-master#SAF-07", test_gone_outlives_the_master);
    g_test_add_func("/engine-tend/gone-and-silent#SAF-07", test_gone_and_silent);
    g_test_add_func("/engine-tend/listed-is-kept#SAF-07", test_listed_is_kept);
    g_test_add_func("/engine-tend/gone-while-offline#SAF-07", test_gone_while_offline);
    g_test_add_func("/engine-tend/kept#SAF-09", test_kept);
    g_test_add_func("/engine-tend/kept-unseen#SAF-09", test_kept_unseen);
    g_test_add_func("/engine-tend/back#SAF-04,SAF-07", test_back);
    g_test_add_func("/engine-tend/back-without-copy#SAF-04", test_no_copy);
    return g_test_run();
}
