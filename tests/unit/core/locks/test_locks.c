/* The lock manager: its rules one by one. */
#include "unit/core/world/lock_text.h"

#include <string.h>

/* --- names and order --- */

static const char *const in_order[] = {
    "cluster/[lockset]",
    "cluster/BGL",
    "instance/[lockset]",
    "instance/a",
    "instance/b",
    "nodegroup/[lockset]",
    "nodegroup/g",
    "node/[lockset]",
    "node/n1",
    "node/n2",
    "node-param/[lockset]",
    "node-param/n1",
    "node-res/[lockset]",
    "node-res/n1",
    "network/[lockset]",
    "network/w",
    "cluster/config",
};

static void test_order_table(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(in_order); i++) {
        for (guint j = 0; j < G_N_ELEMENTS(in_order); j++) {
            int order = locks_compare(in_order[i], in_order[j]);
            g_assert_cmpint((order > 0) - (order < 0), ==, (i > j) - (i < j));
        }
    }
}

static char *random_lock(GRand *rand)
{
    static const char *const levels[] = {"instance", "nodegroup", "node", "node-res", "network"};
    guint pick = g_rand_int(rand) % 20;
    if (pick == 0)
        return g_strdup("cluster/BGL");
    if (pick == 1)
        return g_strdup("cluster/config");
    const char *level = levels[g_rand_int(rand) % G_N_ELEMENTS(levels)];
    if (pick < 5)
        return g_strdup_printf("%s/[lockset]", level);
    return g_strdup_printf("%s/%c%c", level, 'A' + (int)(g_rand_int(rand) % 50),
                           'a' + (int)(g_rand_int(rand) % 3));
}

static void test_order_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (guint i = 0; i < 10000; i++) {
        g_autofree char *a = random_lock(rand);
        g_autofree char *b = random_lock(rand);
        g_autofree char *c = random_lock(rand);
        int ab = locks_compare(a, b);
        int ba = locks_compare(b, a);
        g_assert_true((ab < 0) == (ba > 0) && (ab == 0) == (strcmp(a, b) == 0));
        if (ab <= 0 && locks_compare(b, c) <= 0)
            g_assert_cmpint(locks_compare(a, c), <=, 0);
        /* Between a group and its member there are only members of that group. */
        const char *slash = strchr(a, '/');
        g_autofree char *group = g_strdup_printf("%.*s/[lockset]", (int)(slash - a), a);
        if (strcmp(a, "cluster/config") != 0 && locks_compare(group, b) < 0 &&
            locks_compare(b, a) < 0)
            g_assert_true(strncmp(a, b, (size_t)(slash - a) + 1) == 0);
    }
}

static void test_too_many(struct locks *locks)
{
    g_autoptr(GString) text = g_string_new("s node/0");
    for (guint i = 1; i <= LIMIT_LOCKS_PER_CALL; i++)
        g_string_append_printf(text, ", s node/%u", i);
    assert_try(locks, 1, text->str, "limit_exceeded: 4097 locks in one call; the limit is 4096");
    assert_held(locks, 1, "");
}

static void test_names(struct locks *locks)
{
    static const char *const bad[][2] = {
        {"instance", "lock \"instance\": must be LEVEL/NAME with one of the levels cluster, "
                     "instance, nodegroup, node, "
                     "node-param, node-res, network"},
        {"disk/x", "lock \"disk/x\": must be LEVEL/NAME with one of the levels cluster, instance, "
                   "nodegroup, node, "
                   "node-param, node-res, network"},
        {"node/", "lock \"node/\": the name after the slash is empty or has a space, slash or "
                  "control character in it"},
        {"node/a/b", "lock \"node/a/b\": the name after the slash is empty or has a space, slash "
                     "or control character in it"},
        {"cluster/x", "lock \"cluster/x\": level cluster has only [lockset], BGL and config"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *expected = g_strdup_printf("wrong_input: %s", bad[i][1]);
        g_autofree char *request = g_strdup_printf("x instance/ok, x %s", bad[i][0]);
        assert_try(locks, 1, request, expected);
        assert_held(locks, 1, "");
    }
    assert_try(locks, 1, "x node/a, s node/a",
               "wrong_input: lock node/a is named twice: exclusive and shared");
    assert_try(locks, 1, "x node/a, x node/a", "granted");
    assert_held(locks, 1, "x node/a");
}

/* --- one owner --- */

static void test_update(struct locks *locks)
{
    assert_try(locks, 1, "s instance/a, x instance/b, x node/n1, x node/n2, s node/n3", "granted");
    assert_try(locks, 1, "r instance/a, s instance/b, r node/n2", "granted");
    assert_held(locks, 1, "s instance/b, x node/n1, s node/n3");
    assert_try(locks, 1, "s node/n1", "granted");
    assert_held(locks, 1, "s instance/b, s node/n1, s node/n3");
    assert_try(locks, 1, "r instance/zzz", "granted");
    assert_held(locks, 2, "");
}

static void test_order_rules(struct locks *locks)
{
    assert_try(locks, 1, "s node/n1", "granted");
    assert_try(locks, 1, "x instance/a",
               "lock_order: order violation: requesting instance/a exclusive while holding node/n1 "
               "shared");
    assert_try(locks, 1, "x instance/a, r node/n1",
               "lock_order: order violation: requesting instance/a exclusive while holding node/n1 "
               "shared");
    assert_held(locks, 1, "s node/n1");
    assert_try(locks, 1, "r node/n1", "granted");
    assert_try(locks, 1, "s instance/a", "granted");
    assert_try(locks, 1, "s node/n1", "granted");
    assert_try(locks, 1, "x instance/a",
               "lock_order: order violation: requesting instance/a exclusive while holding node/n1 "
               "shared");
    assert_try(locks, 1, "r node/n1", "granted");
    assert_try(locks, 1, "x instance/a", "granted");
    assert_try(locks, 1, "s instance/a", "granted");
    assert_held(locks, 1, "s instance/a");
}

static void test_all_or_nothing(struct locks *locks)
{
    static const char *const good[] = {"x instance/c", "s instance/d", "x node/n1", "s node/n2",
                                       "r instance/b"};
    static const char *const spoilers[] = {"x instance/a", "x node/taken", "x nonsense"};
    assert_try(locks, 1, "s instance/b", "granted");
    assert_try(locks, 2, "x node/taken", "granted");
    for (guint place = 0; place <= G_N_ELEMENTS(good); place++) {
        for (guint spoiler = 0; spoiler < G_N_ELEMENTS(spoilers); spoiler++) {
            g_autoptr(GString) list = g_string_new(NULL);
            for (guint i = 0; i <= G_N_ELEMENTS(good); i++) {
                const char *entry = i == place ? spoilers[spoiler] : good[i < place ? i : i - 1];
                g_string_append_printf(list, "%s%s", i ? ", " : "", entry);
            }
            g_autofree char *said = locks_ask(locks, 1, list->str, false, 0);
            g_assert_cmpstr(said, !=, "granted");
            assert_held(locks, 1, "s instance/b");
        }
    }
}

/* --- several owners --- */

static void test_levels_are_apart(struct locks *locks)
{
    assert_try(locks, 1, "x instance/x", "granted");
    assert_try(locks, 2, "x node/x", "granted");
    assert_try(locks, 3, "x node-res/x", "granted");
}

/* What a second owner is told, when a first has what it asked for. */
struct pair {
    const char *first, *second, *answer;
};

static void check_pairs(const struct pair *pairs, guint count)
{
    for (guint i = 0; i < count; i++) {
        struct locks *locks = locks_new(NULL, NULL);
        assert_try(locks, 1, pairs[i].first, "granted");
        assert_try(locks, 2, pairs[i].second, pairs[i].answer);
        locks_free(locks);
    }
}

static void test_sharing(void)
{
    static const struct pair pairs[] = {
        {"s node/n", "s node/n", "granted"},
        {"s node/n", "x node/n", "blocked by 1"},
        {"x node/n", "s node/n", "blocked by 1"},
        {"x node/n", "x node/n", "blocked by 1"},
    };
    check_pairs(pairs, G_N_ELEMENTS(pairs));
}

static void test_blocked_names_owner(struct locks *locks)
{
    assert_try(locks, 1, "x instance/b", "granted");
    assert_try(locks, 3, "s instance/a", "granted");
    assert_try(locks, 2, "x instance/a, x instance/b", "blocked by 3 1");
    assert_held(locks, 2, "");
    locks_release(locks, 1);
    locks_release(locks, 3);
    assert_try(locks, 2, "x instance/a, x instance/b", "granted");
}

static void test_owner_is_a_pair(struct locks *locks)
{
    record_autoptr(owner) one = lock_owner_of(1);
    record_autoptr(owner) other = lock_owner_of(1);
    g_free(other->livelock);
    other->livelock = g_strdup("job-1-again");
    assert_try(locks, 1, "x instance/a", "granted");
    g_assert_cmpint(locks_held(locks, one, "instance/a"), ==, LOCK_EXCLUSIVE);
    g_assert_cmpint(locks_held(locks, other, "instance/a"), ==, LOCK_RELEASE);
    g_autoptr(GPtrArray) requests = lock_requests("s instance/a");
    enum locks_outcome outcome;
    g_assert_true(locks_update(locks, other, requests, NULL, &outcome, NULL));
    g_assert_cmpint(outcome, ==, LOCKS_BLOCKED);
}

static void test_groups(void)
{
    static const struct pair pairs[] = {
        {"x node/[lockset]", "s node/n", "blocked by 1"},
        {"x node/[lockset]", "x node/n", "blocked by 1"},
        {"s node/[lockset]", "s node/n", "granted"},
        {"s node/[lockset]", "x node/n", "blocked by 1"},
        {"x node/n", "s node/[lockset]", "blocked by 1"},
        {"x node/n", "x node/[lockset]", "blocked by 1"},
        {"s node/n", "s node/[lockset]", "granted"},
        {"s node/n", "x node/[lockset]", "blocked by 1"},
        {"x cluster/[lockset]", "x cluster/config", "granted"},
        {"x cluster/[lockset]", "s cluster/BGL", "blocked by 1"},
        {"x node/[lockset]", "x node-res/n", "granted"},
    };
    check_pairs(pairs, G_N_ELEMENTS(pairs));
}

static void test_group_and_member(struct locks *locks)
{
    assert_try(locks, 1, "s node/[lockset]", "granted");
    assert_try(locks, 1, "x node/n1",
               "lock_order: order violation: requesting node/n1 exclusive while holding "
               "node/[lockset] shared");
    assert_held(locks, 1, "s node/[lockset]");
    assert_try(locks, 1, "s node/n1", "granted");
    /* Covered members may be named at any time. */
    assert_try(locks, 1, "s node-res/x", "granted");
    assert_try(locks, 1, "s node/n0", "granted");
    locks_release(locks, 1);
    assert_try(locks, 1, "x node/[lockset], s node-res/x", "granted");
    assert_try(locks, 1, "x node/n9, r node/[lockset]", "granted");
    assert_held(locks, 1, "x node/n9, s node-res/x");
    assert_try(locks, 2, "x node/n8", "granted");
}

/* --- waiting --- */

static void test_waiting_order(struct locks *locks)
{
    g_autofree char *urgent = NULL;
    assert_try(locks, 1, "x instance/a", "granted");
    assert_wait(locks, 2, "x instance/a", "waits");
    assert_wait(locks, 3, "x instance/a", "waits");
    urgent = locks_ask(locks, 4, "x instance/a", true, -5);
    g_assert_cmpstr(urgent, ==, "waits");
    assert_try(locks, 2, "s node/n",
               "wrong_state: 2 waits for locks already; it can change none meanwhile");
    assert_held(locks, 2, "w instance/a");
    locks_release(locks, 1);
    assert_grants(locks, "4");
    locks_release(locks, 4);
    assert_grants(locks, "2");
    locks_release(locks, 2);
    assert_grants(locks, "3");
    assert_held(locks, 3, "x instance/a");
}

static void test_exclusive_does_not_starve(struct locks *locks)
{
    assert_try(locks, 1, "s node/n", "granted");
    assert_wait(locks, 2, "x node/n", "waits");
    assert_try(locks, 3, "s node/n", "blocked by 2");
    assert_wait(locks, 4, "s node/n", "waits");
    assert_wait(locks, 5, "s node/n", "waits");
    locks_release(locks, 1);
    assert_grants(locks, "2");
    locks_release(locks, 2);
    assert_grants(locks, "4 5");
}

/* Who is stuck at a small lock reserves no greater one: the owner of the small one may need it to
 * go on. */
static void test_no_circle_through_reservation(struct locks *locks)
{
    assert_try(locks, 1, "x instance/a", "granted");
    assert_wait(locks, 2, "x instance/a, x node/n", "waits");
    assert_try(locks, 1, "x node/n", "granted");
    locks_release(locks, 1);
    assert_grants(locks, "2");
}

static void test_withdraw(struct locks *locks)
{
    record_autoptr(owner) second = lock_owner_of(2);
    assert_try(locks, 1, "s node/n", "granted");
    assert_wait(locks, 2, "x node/n", "waits");
    assert_wait(locks, 3, "s node/n", "waits");
    g_assert_true(locks_waits(locks, second));
    g_assert_true(locks_withdraw(locks, second) == GUINT_TO_POINTER(2));
    g_assert_false(locks_waits(locks, second));
    g_assert_null(locks_withdraw(locks, second));
    assert_grants(locks, "3");
}

static void test_upgrade_never_waits(struct locks *locks)
{
    assert_try(locks, 1, "s instance/a", "granted");
    assert_try(locks, 2, "s instance/a", "granted");
    assert_wait(locks, 1, "x instance/a", "blocked by 2");
    assert_wait(locks, 3, "x instance/a", "waits");
    locks_release(locks, 2);
    assert_wait(locks, 1, "x instance/a", "granted");
    locks_release(locks, 1);
    assert_grants(locks, "3");
}

static bool gate_open;

static bool gated(const char *name, void *data)
{
    return !gate_open && (!strcmp(name, "node/n1") || !strcmp(name, LOCK_ALL_NODES));
}

static void test_gate(void)
{
    gate_open = false;
    struct locks *locks = locks_new(gated, NULL);
    record_autoptr(owner) old = lock_owner_of(9);
    locks_restore(locks, old, "node/n1", LOCK_SHARED, 0);
    assert_try(locks, 1, "s node/n2", "granted");
    assert_try(locks, 2, "s node/n1", "blocked by gate node/n1");
    assert_wait(locks, 3, "x instance/a, s node/n1", "waits");
    assert_wait(locks, 4, "s node/[lockset]", "waits");
    assert_held(locks, 9, "s node/n1");
    locks_release(locks, 9);
    /* Its record can be changed all the same, and that goes before those who wait for it. */
    g_autofree char *said = locks_ask(locks, 5, "x node/n1", true, -20);
    g_assert_cmpstr(said, ==, "granted");
    locks_release(locks, 5);
    gate_open = true;
    locks_gate_changed(locks, "node/n1");
    assert_grants(locks,
                  "3 4"); /* the group's gate too: its waiters are looked at with every member */
    locks_free(locks);
}

static void test_events(struct locks *locks)
{
    assert_try(locks, 1, "x instance/a, s node/n", "granted");
    assert_wait(locks, 2, "s instance/a", "waits");
    locks_release(locks, 1);
    GPtrArray *events = locks_take_events(locks);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < events->len; i++) {
        const struct locks_event *event = events->pdata[i];
        g_string_append_printf(text, "%s %s %s; ", event->owner->job,
                               event->name ? event->name : "request",
                               event->name     ? enum_word(&lock_mode_words, (int)event->mode)
                               : event->waiter ? "waits"
                                               : "over");
    }
    g_assert_cmpstr(
        text->str, ==,
        "1 instance/a exclusive; 1 node/n shared; 2 request waits; 1 instance/a release; "
        "1 node/n release; 2 request over; 2 instance/a shared; ");
    g_ptr_array_unref(events);
    g_assert_false(locks_has_events(locks));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/locks/order/table#LCK-03,LCK-20", test_order_table);
    g_test_add_func("/locks/order/random#LCK-02,LCK-20,LCK-21", test_order_random);
    locks_case("/locks/too-many", test_too_many);
    locks_case("/locks/names#LCK-01,LCK-05,LCK-10", test_names);
    locks_case("/locks/update#LCK-05,LCK-08,LCK-09,LCK-16", test_update);
    locks_case("/locks/order/rules#LCK-06,LCK-07,LCK-08,LCK-10", test_order_rules);
    locks_case("/locks/all-or-nothing#LCK-10,LCK-11", test_all_or_nothing);
    locks_case("/locks/levels#LCK-01", test_levels_are_apart);
    g_test_add_func("/locks/sharing#LCK-12", test_sharing);
    locks_case("/locks/blocked#LCK-11", test_blocked_names_owner);
    locks_case("/locks/owner#DTH-21,WCF-13", test_owner_is_a_pair);
    g_test_add_func("/locks/groups#LCK-19", test_groups);
    locks_case("/locks/group-and-member#LCK-19,LCK-22", test_group_and_member);
    locks_case("/locks/wait/order#LCK-11", test_waiting_order);
    locks_case("/locks/wait/starvation#LCK-11,LCK-12", test_exclusive_does_not_starve);
    locks_case("/locks/wait/reservation#LCK-26", test_no_circle_through_reservation);
    locks_case("/locks/wait/withdraw#WCF-15", test_withdraw);
    locks_case("/locks/wait/upgrade#LCK-07,LCK-26", test_upgrade_never_waits);
    g_test_add_func("/locks/gate#SAF-06", test_gate);
    locks_case("/locks/events#WCF-07", test_events);
    return g_test_run();
}
