/* The lock manager under random ordered clients: no deadlock. */
#include "lock_text.h"

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
    guint seeds = g_test_quick() ? 300 : 1000;
    for (guint seed = 1; seed <= seeds; seed++)
        deadlock_round(seed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/locks/deadlock#LCK-26", test_no_deadlock);
    return g_test_run();
}
