/*
 * Which copies of other candidates are waited for: one that lets changes wait is counted out, and
 * comes back when it keeps up. core/wconfd/wconf_followers.c.
 */
#include <string.h>

#include "unit/core/world/copies_world.h"

static bool is_in_reach(const char *node)
{
    g_autofree char *copies = world_status("copies");
    g_autofree char *found = g_strdup_printf("\"node\":\"%s\",\"reachable\":true", node);
    return strstr(copies, found) != NULL;
}

/* A question that comes `pause_ms` after the answer before, with one more commit in between;
 * nothing of it waits. */
static void ask_behind(guint number, guint pause_ms, guint64 *at, char **of)
{
    struct fake_reply commit, two;
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012u", number);
    g_autofree char *tag = g_strdup_printf("t%u", number);
    commit_start(id, tag, &commit);
    g_assert_true(commit.done);
    fake_reply_clear(&commit);
    ask_start(node2, 5, *at, *of, 10000, &two);
    g_assert_true(two.done);
    fake_reply_clear(&two);
    *at = config_serial(wconf_config(world.wconf));
    g_free(*of);
    *of = digest();
    fake_advance(world.world, pause_ms);
}

/* A commit that no copy takes for so long that none is waited for any more. */
static void count_out(void)
{
    struct fake_reply commit;
    commit_start(ID_A, "a", &commit);
    fake_advance(world.world, 1100);
    fake_reply_clear(&commit);
    g_assert_false(is_in_reach(NODE2));
}

/* Under load a copy is never at the newest serial; it is in reach again when it keeps up. */
static void test_back_under_load(void)
{
    struct fake_reply commit, two;
    copies_set_up();
    guint64 at = 1;
    g_autofree char *of = digest();
    count_out();

    /* So slow it is not: what it lacks then is older than the patience. */
    for (guint i = 0; i < 4; i++)
        ask_behind(100 + i, 1100, &at, &of);
    g_assert_false(is_in_reach(NODE2));
    ask_behind(200, 10, &at, &of);
    g_assert_false(is_in_reach(NODE2));
    ask_behind(201, 10, &at, &of);
    g_assert_true(is_in_reach(NODE2));

    /* From now on it is waited for, and counted out again if it lets something wait. */
    commit_start(ID_B, "b", &commit);
    g_assert_false(commit.done);
    ask_start(node2, 5, at, of, 10000, &two);
    fake_reply_clear(&two);
    g_assert_false(commit.done);
    g_autofree char *now = digest();
    ask_start(node2, 5, config_serial(wconf_config(world.wconf)), now, 20000, &two);
    g_assert_true(commit.done);
    fake_reply_clear(&commit);
    fake_advance(world.world, 30000);
    fake_reply_clear(&two);
    world_tear_down();
}

/* What it lacks when it is in reach again has its time too, also if nothing more is changed. */
static void test_out_again(void)
{
    copies_set_up();
    guint64 at = 1;
    g_autofree char *of = digest();
    count_out();
    ask_behind(100, 10, &at, &of);
    ask_behind(101, 10, &at, &of);
    g_assert_true(is_in_reach(NODE2));
    fake_advance(world.world, 1100);
    g_assert_false(is_in_reach(NODE2));
    world_tear_down();
}

static bool is_filling(const char *node)
{
    g_autofree char *copies = world_status("copies");
    g_autofree char *found = g_strdup_printf("\"filling\":true,\"node\":\"%s\"", node);
    return strstr(copies, found) != NULL;
}

static void ask_piece(void)
{
    g_autoptr(GError) error = NULL;
    json_decref(fake_call(node2, NODE1, ROLE_WCONFD, "snapshot", json_object(), &error));
    g_assert_no_error(error);
}

/* A copy that is filled anew is not out of reach, however long it takes; one that has fallen silent
 * meanwhile is. */
static void test_filling(void)
{
    struct fake_reply two;
    copies_set_up();
    g_assert_false(is_filling(NODE2));
    ask_start(node2, 0, 0, "0", 0, &two);
    g_assert_true(json_is_true(json_object_get(two.result, "snapshot")));
    fake_reply_clear(&two);
    g_assert_true(is_filling(NODE2) && !is_in_reach(NODE2));
    for (guint i = 0; i < 4; i++) {
        fake_advance(world.world, 20000);
        g_assert_true(is_filling(NODE2));
        ask_piece();
    }
    fake_advance(world.world, 26000);
    g_assert_false(is_filling(NODE2));
    ask_piece();
    g_assert_true(is_filling(NODE2));
    g_autofree char *now = digest();
    ask_start(node2, 5, 1, now, 0, &two);
    g_assert_true(two.done);
    fake_reply_clear(&two);
    g_assert_true(!is_filling(NODE2) && is_in_reach(NODE2));
    ask_piece();
    g_assert_false(is_filling(NODE2));
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reach/back-under-load#SAF-07", test_back_under_load);
    g_test_add_func("/reach/out-again#SAF-07", test_out_again);
    g_test_add_func("/reach/filling#SAF-07", test_filling);
    return g_test_run();
}
