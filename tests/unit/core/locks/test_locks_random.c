/* The lock manager at random: ordered clients never lock each other up, and an intersection is no
 * more than a list and an update. */
#include <string.h>

#include "unit/core/world/lock_text.h"

static const char *const atoms[] = {"cluster/BGL",    "instance/[lockset]",
                                    "instance/a",     "instance/b",
                                    "node/[lockset]", "node/n1",
                                    "node/n2",        "node/n3",
                                    "network/w",      "cluster/config"};
#define ATOMS (G_N_ELEMENTS(atoms))

/* Ordered clients with several rounds of requests: never do all of them wait. */
static void deadlock_round(guint32 seed)
{
    enum { CLIENTS = 50, ROUNDS = 3 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    struct locks *locks = locks_new(NULL, NULL);
    guint done[CLIENTS] = {0}; /* rounds */
    bool waits[CLIENTS] = {false};
    guint from[CLIENTS] = {0};
    guint running = CLIENTS;
    for (guint step = 0; running > 0; step++) {
        g_assert_cmpuint(step, <, 200000);
        guint number = g_rand_int(rand) % CLIENTS;
        g_autoptr(GPtrArray) grants = locks_take_grants(locks);
        for (guint i = 0; i < grants->len; i++)
            waits[GPOINTER_TO_UINT(((struct locks_grant *)grants->pdata[i])->tag) - 1] = false;
        guint waiting = 0;
        for (guint i = 0; i < CLIENTS; i++)
            waiting += waits[i] ? 1 : 0;
        g_assert_cmpuint(waiting, <, running);
        if (waits[number] || done[number] > ROUNDS)
            continue;
        if (done[number] == ROUNDS || from[number] >= ATOMS) {
            locks_release(locks, number);
            done[number] = ROUNDS + 1;
            running--;
            continue;
        }
        record_autoptr(owner) owner = lock_owner_of(number);
        g_autoptr(GPtrArray) requests = lock_requests_new();
        guint first = from[number] + g_rand_int(rand) % 3;
        guint last = first + g_rand_int(rand) % 4;
        for (guint atom = first; atom <= last && atom < ATOMS; atom++)
            lock_request_add(requests, atoms[atom],
                             g_rand_int(rand) % 3 ? LOCK_SHARED : LOCK_EXCLUSIVE);
        struct locks_wait how = {.priority = (gint64)(g_rand_int(rand) % 3),
                                 .tag = GUINT_TO_POINTER(number + 1)};
        enum locks_outcome outcome;
        from[number] = last + 1;
        done[number]++;
        if (locks_update(locks, owner, requests, &how, &outcome, NULL))
            waits[number] = outcome == LOCKS_WAITS;
    }
    g_assert_cmpuint(locks_count(locks), ==, 0);
    locks_free(locks);
}

static void test_no_deadlock(void)
{
    for (guint seed = 1; seed <= 1000; seed++)
        deadlock_round(seed);
}

/* --- intersection --- */

enum { OWNERS = 4 };

/* Some owners hold something, some wait; the same from the same seed. */
static struct locks *random_state(guint32 seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    struct locks *locks = locks_new(NULL, NULL);
    for (guint step = 0; step < 12; step++) {
        guint number = g_rand_int(rand) % OWNERS;
        record_autoptr(owner) owner = lock_owner_of(number);
        g_autoptr(GPtrArray) requests = lock_requests_new();
        for (guint atom = 0; atom < ATOMS; atom++) {
            if (g_rand_int(rand) % 3 == 0)
                lock_request_add(requests, atoms[atom],
                                 g_rand_int(rand) % 2 ? LOCK_SHARED : LOCK_EXCLUSIVE);
        }
        struct locks_wait how = {.tag = GUINT_TO_POINTER(number + 1),
                                 .at_once = g_rand_int(rand) % 4 != 0,
                                 .out_of_order = g_rand_int(rand) % 2};
        enum locks_outcome outcome;
        locks_update(locks, owner, requests, &how, &outcome, NULL); /* or not: any state is good */
    }
    return locks;
}

/* Everything that can be seen of it. */
static char *whole_state(struct locks *locks)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < OWNERS; i++) {
        g_autofree char *held = locks_held_text(locks, i);
        g_string_append_printf(text, "%u: %s\n", i, held);
    }
    g_autoptr(GPtrArray) waiters = locks_waiters(locks);
    for (guint i = 0; i < waiters->len; i++) {
        json_autoptr json = lock_waiter_to_json(waiters->pdata[i]);
        g_autofree char *waiter = json_to_text(json);
        g_string_append_printf(text, "%s\n", waiter);
    }
    g_autofree char *grants = locks_grants_text(locks);
    g_string_append_printf(text, "granted %s\n", grants);
    return g_string_free(text, FALSE);
}

/* By hand: what is held and not in the set is released; the owner's wait is given up first, as an
 * owner that waits changes nothing. */
static void intersect_by_hand(struct locks *locks, guint number, const GPtrArray *names)
{
    record_autoptr(owner) owner = lock_owner_of(number);
    locks_withdraw(locks, owner);
    g_autoptr(GPtrArray) held = locks_list(locks, owner);
    g_autoptr(GPtrArray) releases = lock_requests_new();
    for (guint i = 0; i < held->len; i++) {
        const struct lock_state *state = held->pdata[i];
        if (!g_ptr_array_find_with_equal_func((GPtrArray *)names, state->name, g_str_equal, NULL))
            lock_request_add(releases, state->name, LOCK_RELEASE);
    }
    enum locks_outcome outcome = LOCKS_BLOCKED;
    g_assert_true(releases->len == 0 || locks_update(locks, owner, releases, NULL, &outcome, NULL));
    g_assert_true(releases->len == 0 || outcome == LOCKS_GRANTED);
}

static void test_intersection_is_no_more(void)
{
    guint less = 0, waiting = 0;
    for (guint seed = 1; seed <= 10000; seed++) {
        g_autoptr(GRand) rand = g_rand_new_with_seed(seed + 1000000);
        guint number = g_rand_int(rand) % OWNERS;
        record_autoptr(owner) owner = lock_owner_of(number);
        g_autoptr(GPtrArray) names = g_ptr_array_new();
        g_ptr_array_add(names, (void *)"instance/nobody-holds-it");
        for (guint atom = 0; atom < ATOMS; atom++) {
            if (g_rand_int(rand) % 2)
                g_ptr_array_add(names, (void *)atoms[atom]);
        }
        struct locks *one = random_state(seed), *other = random_state(seed);
        guint before = locks_count(one);
        waiting += locks_waits(one, owner) ? 1 : 0;
        locks_intersect(one, owner, names);
        intersect_by_hand(other, number, names);
        less += locks_count(one) < before ? 1 : 0;
        g_autofree char *single = whole_state(one), *parts = whole_state(other);
        g_assert_cmpstr(single, ==, parts);
        locks_free(one);
        locks_free(other);
    }
    g_assert_cmpuint(less, >, 3000);
    g_assert_cmpuint(waiting, >, 300);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/locks/deadlock#LCK-26", test_no_deadlock);
    g_test_add_func("/locks/intersection#LCK-17,LCK-18", test_intersection_is_no_more);
    return g_test_run();
}
