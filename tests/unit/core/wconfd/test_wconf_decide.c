/* Decisions that commits of the configuration daemon itself carry. core/wconfd/wconf_commit.c */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/change.h"
#include "unit/core/world/wconf_world.h"

static guint commits;

static struct decision *make(enum event_kind event, guint number)
{
    struct decision *decision =
        decision_about("node", NODE3, "node3", "storage", VERDICT_ACT, "Cleaned");
    decision->event = event;
    decision->level = EVENT_LEVEL_ERROR;
    decision_set(&decision->rule, "CLN-44");
    decision_set(&decision->old, "creating");
    decision_set(&decision->new, "error");
    decision_set(&decision->summary, "number %u", number);
    return decision;
}

/* One commit, of a token and the decision about it; `version` of the token as it is thought to be.
 */
static bool commit(struct decision *decision, guint64 version)
{
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012u", ++commits);
    g_autofree char *name = g_strdup_printf("tag%u", commits);
    g_autoptr(GError) error = NULL;
    GPtrArray *changes = changes_of(put_tag(name), NULL);
    ((struct change *)changes->pdata[0])->version = version;
    wconf_decide(world.wconf, decision, changes);
    bool ok = wconf_commit(world.wconf, id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, &error);
    g_assert_cmpint(ok, ==, version == 0);
    return ok;
}

static guint count(bool events)
{
    guint found = 0;
    g_autoptr(GPtrArray) all = config_list(world.wconf->head, "decision");
    for (guint i = 0; i < all->len; i++)
        found += (((const struct decision *)all->pdata[i])->event != EVENT_NONE) == events;
    return found;
}

static bool is_there(const char *summary)
{
    bool found = false;
    g_autoptr(GPtrArray) all = config_list(world.wconf->committed, "decision");
    for (guint i = 0; i < all->len; i++)
        found = found || !strcmp(((const struct decision *)all->pdata[i])->summary, summary);
    return found;
}

/* All of them are on their way at once, so the head is looked at and not what is stored. */
static void test_the_newest_stay(void)
{
    world_set_up();
    for (guint i = 0; i < LIMIT_DECISIONS_PER_SUBJECT + 5; i++) {
        commit(make(EVENT_NONE, i), 0);
        commit(make(EVENT_RECOVERED, i), 0);
    }
    g_assert_cmpuint(count(false), ==, LIMIT_DECISIONS_PER_SUBJECT);
    g_assert_cmpuint(count(true), ==, LIMIT_DECISIONS_PER_SUBJECT + 5);
    fake_settle(world.world);
    g_assert_true(is_there("number 5"));
    g_assert_cmpuint(config_count(world.wconf->committed, "decision"), ==,
                     2 * LIMIT_DECISIONS_PER_SUBJECT + 5);
    g_autoptr(GPtrArray) all = config_list(world.wconf->committed, "decision");
    const struct decision *kept = all->pdata[0];
    g_assert_cmpint(kept->level, ==, EVENT_LEVEL_ERROR);
    g_assert_cmpstr(kept->rule, ==, "CLN-44");
    g_assert_cmpstr(kept->old, ==, "creating");
    g_assert_cmpstr(kept->new, ==, "error");
    g_assert_cmpuint(kept->at_us, >, 0);
    world_tear_down();
}

/* What the watcher has recorded, and let go, counts too; what was refused has not been. */
static void test_beside_others(void)
{
    world_set_up();
    for (guint i = 0; i < LIMIT_DECISIONS_PER_SUBJECT; i++)
        commit(make(EVENT_NONE, i), 0);
    fake_settle(world.world);
    g_assert_false(commit(make(EVENT_NONE, 99), 7));
    g_assert_true(is_there("number 0"));

    struct decision *other = make(EVENT_NONE, 100);
    decision_set(&other->uuid, DISK1);
    g_autoptr(GPtrArray) all = config_list(world.wconf->committed, "decision");
    GPtrArray *theirs = changes_of(put("decision", DISK1, 0, decision_to_json(other)), NULL);
    for (guint i = 0; i < 3; i++) {
        const struct decision *old = all->pdata[i];
        g_ptr_array_add(theirs, config_delete(world.wconf->committed, "decision", old->uuid));
    }
    decision_free(other);
    g_free(daemon_commit(&world, world.watcher, theirs));
    g_assert_cmpuint(count(false), ==, LIMIT_DECISIONS_PER_SUBJECT - 2);
    for (guint i = 0; i < 3; i++)
        commit(make(EVENT_NONE, 200 + i), 0);
    g_assert_cmpuint(count(false), ==, LIMIT_DECISIONS_PER_SUBJECT);
    world_tear_down();
}

/* Several of one commit. */
static void test_many_at_once(void)
{
    world_set_up();
    for (guint i = 0; i < LIMIT_DECISIONS_PER_SUBJECT; i++)
        commit(make(EVENT_NONE, i), 0);
    g_autoptr(GError) error = NULL;
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < 3; i++)
        wconf_decide(world.wconf, make(EVENT_NONE, 300 + i), changes);
    g_assert_true(
        wconf_commit(world.wconf, DISK1, changes, NULL, AUTHOR_COMMIT, NULL, NULL, &error));
    fake_settle(world.world);
    g_assert_true(is_there("number 300"));
    g_assert_true(is_there("number 302"));
    world_tear_down();
}

/* A restart begins with what is stored. */
static void test_restart(void)
{
    world_set_up();
    for (guint i = 0; i < LIMIT_DECISIONS_PER_SUBJECT; i++)
        commit(make(EVENT_NONE, i), 0);
    fake_settle(world.world);
    config_world_restart(&world);
    config_world_start(&world);
    commit(make(EVENT_NONE, 400), 0);
    g_assert_cmpuint(count(false), ==, LIMIT_DECISIONS_PER_SUBJECT);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf_decide/the-newest-stay", test_the_newest_stay);
    g_test_add_func("/wconf_decide/beside-others", test_beside_others);
    g_test_add_func("/wconf_decide/several-at-once", test_many_at_once);
    g_test_add_func("/wconf_decide/restart", test_restart);
    return g_test_run();
}
