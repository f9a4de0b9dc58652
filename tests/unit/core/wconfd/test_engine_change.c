/*
 * A change of engine to etcd, by a master with two other candidates: what each node is asked for
 * and in which order, what waits meanwhile, what a refusal, a silent node or a death at any
 * question leaves behind. core/wconfd/engine_change.c, engine_nodes.c, wconf_engine.c.
 */
#include <string.h>

#include "proto/records.h"
#include "unit/core/world/engine_world.h"

static void set_up(void)
{
    engine_set_up(NODES, false, false);
}

/* --- refusals --- */

static void test_refusals(void)
{
    engine_set_up(2, false, false);
    assert_says(engine_ask_change("sqlite"), "wrong_state: the engine is sqlite already");
    assert_says(engine_ask_change("etcd"),
                "wrong_state: etcd needs at least 3 master candidates, there are 2: one member has "
                "nobody who could take over, and two stop when either is lost. Make more nodes "
                "candidates: fettle node modify NODE --master-candidate yes");
    assert_says(engine_ask_change("paper"), "wrong_input: engine: must be one of sqlite, etcd");
    world.wconfd->ensemble = NULL;
    assert_says(engine_ask_change("etcd"),
                "wrong_state: this configuration daemon cannot change its engine");
    world.wconfd->ensemble = &it.ensemble->base;
    assert_says(
        ask_wconf(&world, world.luxid, "change_engine", json_make("{s:s}", "engine", "etcd")),
        "permission_denied: role luxid may not call wconfd.change_engine");
    engine_tear_down();

    engine_set_up(NODES, true, false);
    assert_says(engine_ask_change("etcd"),
                "wrong_state: candidate node3 is offline on record, and every candidate becomes a "
                "member of etcd: bring it back, or make it no candidate: fettle node modify node3 "
                "--master-candidate no");
    g_assert_cmpuint(it.questions, ==, 0);
    engine_tear_down();
}

static void test_restored(void)
{
    set_up();
    struct fake_reply reply;
    json_t *brake = json_make("{s:s,s:i,s:b}", "why", "restored", "since", 1, "restored", true);
    watcher_commit_start(ID_A, changes_of(put("repair_brake", "cluster", 0, brake), NULL), &reply);
    assert_says(world_reply(&reply), "{\"serial\":2}");
    assert_says(engine_ask_change("etcd"),
                "wrong_state: the configuration was restored from a backup and is not compared "
                "with the nodes yet: look at `fettle cluster verify`, then say `fettle repair "
                "continue`; the engine can be changed after that");
    engine_tear_down();
}

/* --- the good change --- */

static void test_change(void)
{
    set_up();
    struct fake_reply before, held;
    it.ensemble->fill_ms = 500;
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &before);
    assert_says(engine_ask_change("etcd"), "{}");
    assert_says(engine_ask_change("etcd"), "wrong_state: a change of engine is under way; how far "
                                           "it is: fettle cluster engine status");
    assert_says(engine_progress_after(100), "running");
    assert_says(world_reply(&before), "{\"serial\":2}");
    luxid_commit_start(ID_B, changes_of(put_tag("b"), NULL), &held);
    fake_advance(world.world, 100);
    g_assert_false(held.done);
    g_assert_cmpstr(engine_state_of(0), ==, "preparing");
    fake_advance(world.world, 1000);
    assert_says(world_reply(&held),
                "resource_not_available: the commit was not stored: the engine has changed; "
                "starting anew");
    g_assert_true(fake_engine_left(world.engine));
    g_assert_cmpuint(fake_engine_serial(world.engine), ==, 3);
    g_assert_cmpstr(world.stepped_down, ==,
                    "resource_not_available: the engine has changed; starting anew");
    for (guint i = 0; i < NODES; i++) {
        g_assert_cmpstr(engine_state_of(i), ==, "active");
        g_assert_true(it.members[i]->running);
        g_assert_cmpstr(it.members[i]->config->token, ==, it.members[0]->config->token);
    }
    g_autofree char *cluster =
        json_to_text(g_hash_table_lookup(it.ensemble->objects, "cluster " CLUSTER));
    g_assert_nonnull(strstr(cluster, "\"engine\":\"etcd\""));
    g_assert_nonnull(strstr(cluster, "\"version\":3"));
    g_assert_nonnull(g_hash_table_lookup(it.ensemble->objects, "tag instance/" WEB1 "/a"));
    g_assert_null(g_hash_table_lookup(it.ensemble->objects, "tag instance/" WEB1 "/b"));
    /* What is stored goes along with its id, what was refused does not. */
    g_assert_cmpuint(GPOINTER_TO_UINT(g_hash_table_lookup(it.ensemble->ids, ID_A)), ==, 2);
    g_assert_false(g_hash_table_contains(it.ensemble->ids, ID_B));
    g_assert_cmpuint(it.ensemble->serial, ==, 3);
    g_assert_cmpuint(it.ensemble->epoch, ==, world.epoch);
    g_assert_cmpuint(it.ensemble->history, ==, 5);
    engine_tear_down();
}

/* What is on its way to the store when it begins goes along: it is answered as done. */
static void test_waits_for_what_is_under_way(void)
{
    struct fake_reply before;
    set_up();
    fake_engine_hold(world.engine);
    luxid_commit_start(ID_A, changes_of(put_tag("a"), NULL), &before);
    assert_says(engine_ask_change("etcd"), "{}");
    fake_advance(world.world, 1000);
    g_assert_cmpuint(it.ensemble->serial, ==, 0);
    fake_engine_release(world.engine);
    fake_advance(world.world, 1000);
    assert_says(world_reply(&before), "{\"serial\":2}");
    g_assert_true(fake_engine_left(world.engine));
    g_assert_nonnull(g_hash_table_lookup(it.ensemble->objects, "tag instance/" WEB1 "/a"));
    engine_tear_down();
}

/* Whoever has not been told could become master of the old engine: two of three must know. */
static void test_majority_is_told(void)
{
    guint first = 6 * NODES + 1; /* question of those that tell of the decision */
    for (guint told = 1; told <= 2; told++) {
        set_up();
        it.fail_at = first + told;
        it.and_later = true;
        assert_says(engine_ask_change("etcd"), "{}");
        fake_advance(world.world, 1000);
        g_assert_true(fake_engine_left(world.engine) == (told == 2));
        engine_tear_down();
    }
}

/* In the order that lets every death be found: this node's file first, deciding before the step. */
static void test_order(void)
{
    set_up();
    assert_says(engine_ask_change("etcd"), "{}");
    fake_advance(world.world, 2000);
    g_autoptr(GString) expected = g_string_new(NULL);
    for (guint i = 1; i <= NODES; i++)
        g_string_append_printf(expected, "node%u engine_status\n", i);
    for (guint i = 1; i <= NODES; i++)
        g_string_append_printf(
            expected, "node%u engine_set\nnode%u member_prepare\nnode%u member_certify\n", i, i, i);
    for (guint i = 1; i <= NODES; i++)
        g_string_append_printf(expected, "node%u member_start\n", i);
    for (guint i = 1; i <= NODES; i++)
        g_string_append_printf(expected, "node%u engine_status\n", i);
    for (guint round = 0; round < 2; round++)
        for (guint i = 1; i <= NODES; i++)
            g_string_append_printf(expected, "node%u engine_set\n", i);
    g_assert_cmpstr(it.asked->str, ==, expected->str);
    engine_tear_down();
}

/* --- failures --- */

/* Whatever question fails once: taken back, or done. */
static void test_fail_once(void)
{
    guint done = 0, back = 0;
    for (guint at = 1; at < 100; at++) {
        struct fake_reply reply;
        set_up();
        it.fail_at = at;
        assert_says(engine_ask_change("etcd"), "{}");
        fake_advance(world.world, 1000);
        bool left = fake_engine_left(world.engine);
        if (!left) {
            g_autofree char *said = engine_progress_after(5000);
            g_assert_nonnull(strstr(said, ": connection refused"));
            engine_assert_clear();
            g_assert_null(world.stepped_down);
            luxid_commit_start(ID_B, changes_of(put_tag("b"), NULL), &reply);
            fake_advance(world.world, 2000);
            assert_says(world_reply(&reply), "{\"serial\":2}");
            it.fail_at = 0;
            assert_says(engine_ask_change("etcd"), "{}");
            fake_advance(world.world, 1000);
            g_assert_true(fake_engine_left(world.engine));
            back++;
        } else {
            g_assert_nonnull(world.stepped_down);
            done++;
        }
        bool all = it.questions < at;
        engine_tear_down();
        if (all)
            break;
    }
    g_assert_cmpuint(back, ==, 16);
    g_assert_cmpuint(done, >=, 6);
}

/* The process is dead to everybody from some question on, and comes back: nothing is left of a
 * change without its step, everything of one with it. */
static void test_death(void)
{
    for (guint at = 1; at < 100; at++) {
        set_up();
        it.fail_at = at;
        it.and_later = true;
        assert_says(engine_ask_change("etcd"), "{}");
        fake_advance(world.world, 1000);
        bool left = fake_engine_left(world.engine);
        bool all = it.questions < at;
        if (!left) {
            config_world_restart(&world);
            it.fail_at = 0;
            engine_give();
            config_world_start(&world);
            fake_advance(world.world, 5000);
            engine_assert_clear();
            assert_says(engine_ask_change("etcd"), "{}");
            fake_advance(world.world, 1000);
            g_assert_true(fake_engine_left(world.engine));
        } else {
            g_assert_cmpstr(engine_state_of(0), !=, "preparing");
            g_assert_cmpstr(engine_state_of(0), !=, "none");
        }
        engine_tear_down();
        if (all)
            break;
    }
}

/* The store says nothing: whatever is in it decides, so the process ends. */
static void test_unknown(void)
{
    set_up();
    it.ensemble->fill_ms = 100;
    assert_says(engine_ask_change("etcd"), "{}");
    fake_advance(world.world, 50);
    fake_engine_fail_next(world.engine, ENGINE_UNKNOWN, false);
    fake_advance(world.world, 1000);
    g_assert_false(fake_engine_left(world.engine));
    g_assert_cmpstr(world.stepped_down, ==, "resource_not_available: disk full (made by the test)");
    g_assert_cmpstr(engine_state_of(2), ==, "deciding");
    /* The serial that the commit of the step has, by which others can tell. */
    g_assert_cmpuint(it.members[2]->config->serial, ==,
                     config_serial(wconf_config(world.wconf)) + 1);
    config_world_restart(&world);
    engine_give();
    config_world_start(&world);
    fake_advance(world.world, 5000);
    engine_assert_clear();
    engine_tear_down();
}

static void test_refused_by_store(void)
{
    set_up();
    it.ensemble->fill_ms = 100;
    assert_says(engine_ask_change("etcd"), "{}");
    fake_advance(world.world, 50);
    fake_engine_fail_next(world.engine, ENGINE_REFUSED, false);
    assert_says(engine_progress_after(3000), "storage_error: disk full (made by the test)");
    engine_assert_clear();
    g_assert_null(world.stepped_down);
    engine_tear_down();
}

static void test_etcd_fails(void)
{
    set_up();
    it.ensemble->fail = 1;
    assert_says(engine_ask_change("etcd"), "{}");
    assert_says(engine_progress_after(3000),
                "unreachable: etcd cannot be filled: no member answers");
    engine_assert_clear();
    it.members[1]->fail_starts = 1;
    assert_says(engine_ask_change("etcd"), "{}");
    assert_says(engine_progress_after(3000),
                "environment: node node2: the program etcd is missing on this node");
    engine_assert_clear();
    it.members[2]->says->healthy = false;
    g_free(it.members[2]->says->why);
    it.members[2]->says->why = g_strdup("it has no leader");
    assert_says(engine_ask_change("etcd"), "{}");
    assert_says(engine_progress_after(59000), "running");
    assert_says(engine_progress_after(5000),
                "timeout: not all members of etcd are well after 60 s: node node3: it "
                "has no leader");
    engine_assert_clear();
    engine_tear_down();
}

static guint slow_node(const char *from_node, const char *to_node, void *data)
{
    return strcmp(to_node, NODE3) ? 1 : 1000;
}

/* Who is told that it has failed may ask for the next one: it has ended then. */
static void test_taken_back_slowly(void)
{
    set_up();
    it.ensemble->fail = 1;
    fake_set_delay(world.world, slow_node, NULL);
    assert_says(engine_ask_change("etcd"), "{}");
    g_autofree char *said = engine_progress_after(100);
    while (!strcmp(said, "running")) {
        g_free(said);
        said = engine_progress_after(100);
    }
    g_assert_cmpstr(said, ==, "unreachable: etcd cannot be filled: no member answers");
    engine_assert_clear();
    assert_says(engine_ask_change("etcd"), "{}");
    engine_tear_down();
}

/* A node that goes away in the middle: the rest is taken back at once, it when it returns; until
 * then nobody begins anew, unless it is said to be dead. */
static void test_away(void)
{
    set_up();
    it.members[2]->says->healthy = false;
    assert_says(engine_ask_change("etcd"), "{}");
    fake_advance(world.world, 200);
    fake_cut(world.world, NODE3, true);
    g_autofree char *said = engine_progress_after(90000);
    g_assert_true(g_str_has_prefix(said, "timeout: not all members of etcd are well after 60 s: "));
    g_assert_cmpstr(engine_state_of(1), ==, "none");
    g_assert_cmpstr(engine_state_of(2), ==, "preparing");
    g_assert_cmpstr(engine_state_of(0), ==, "preparing");
    g_autofree char *again = engine_ask_change("etcd");
    g_assert_true(g_str_has_prefix(
        again, "resource_not_available: an earlier change of engine is still being taken back: "
               "node node3: "));
    fake_cut(world.world, NODE3, false);
    fake_advance(world.world, 30000);
    engine_assert_clear();
    engine_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine-change/refusals#SAF-07", test_refusals);
    g_test_add_func("/engine-change/restored#SAF-07", test_restored);
    g_test_add_func("/engine-change/done#SAF-04,SAF-07", test_change);
    g_test_add_func("/engine-change/order#SAF-07", test_order);
    g_test_add_func("/engine-change/under-way#SAF-04", test_waits_for_what_is_under_way);
    g_test_add_func("/engine-change/majority#SAF-07", test_majority_is_told);
    g_test_add_func("/engine-change/any-question-fails#SAF-04,SAF-07", test_fail_once);
    g_test_add_func("/engine-change/death-at-any-question#SAF-07", test_death);
    g_test_add_func("/engine-change/unknown#SAF-04", test_unknown);
    g_test_add_func("/engine-change/refused-by-the-store#SAF-04", test_refused_by_store);
    g_test_add_func("/engine-change/etcd-fails#SAF-07", test_etcd_fails);
    g_test_add_func("/engine-change/taken-back-slowly#SAF-07", test_taken_back_slowly);
    g_test_add_func("/engine-change/node-away#SAF-07", test_away);
    return g_test_run();
}
