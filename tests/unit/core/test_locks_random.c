/* The lock manager under random steps: against a plain model that scans everything each time, and
 * for deadlocks. */
#include "lock_text.h"

#include <string.h>

/* --- random steps against a plain model --- */

#define MODEL_OWNERS 7

static const char *const atoms[] = {"cluster/BGL",    "instance/[lockset]",
                                    "instance/a",     "instance/b",
                                    "node/[lockset]", "node/n1",
                                    "node/n2",        "node/n3",
                                    "network/w",      "cluster/config"};
#define ATOMS (G_N_ELEMENTS(atoms))

static bool covers(guint group, guint atom)
{
    return (group == 1 && atom > 1 && atom <= 3) || (group == 4 && atom > 4 && atom <= 7);
}

struct model_owner {
    enum lock_mode held[ATOMS];
    bool waiting;
    enum lock_mode wants[ATOMS]; /* new or stronger, uncovered */
    bool named[ATOMS];           /* in the request */
    enum lock_mode asked[ATOMS];
    gint64 priority;
    guint64 age;
    guint stuck; /* ATOMS: nowhere */
};

static struct model_owner model[MODEL_OWNERS];
static guint64 model_age;

/* Strength of a set at one atom, groups spread over their members. */
static enum lock_mode spread(const enum lock_mode *set, guint atom)
{
    enum lock_mode mode = set[atom];
    for (guint group = 0; group < ATOMS; group++) {
        if (covers(group, atom))
            mode = MAX(mode, set[group]);
    }
    return mode;
}

static bool excludes(enum lock_mode a, enum lock_mode b)
{
    return a != LOCK_RELEASE && b != LOCK_RELEASE && (a == LOCK_EXCLUSIVE || b == LOCK_EXCLUSIVE);
}

static bool model_before(const struct model_owner *a, const struct model_owner *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->age < b->age;
}

static guint model_stuck(const struct model_owner *owner, bool upgrade)
{
    for (guint atom = 0; atom < ATOMS; atom++) {
        enum lock_mode wanted = spread(owner->wants, atom);
        for (guint i = 0; i < MODEL_OWNERS && wanted; i++) {
            const struct model_owner *other = &model[i];
            if (other == owner)
                continue;
            if (excludes(wanted, spread(other->held, atom)))
                return atom;
            if (other->waiting && model_before(other, owner) &&
                !(upgrade && spread(owner->held, atom)) &&
                excludes(wanted, spread(other->wants, atom)) && atom <= other->stuck)
                return atom;
        }
    }
    return ATOMS;
}

static void model_do(struct model_owner *owner)
{
    for (guint atom = 0; atom < ATOMS; atom++) {
        if (owner->named[atom])
            owner->held[atom] = owner->asked[atom];
    }
    owner->waiting = false;
}

/* Grants from the front until nothing moves; appends the numbers to `grants`. */
static void model_settle(GString *grants)
{
    for (bool moved = true; moved;) {
        moved = false;
        bool seen[MODEL_OWNERS] = {false};
        for (guint round = 0; round < MODEL_OWNERS; round++) {
            struct model_owner *next = NULL;
            for (guint i = 0; i < MODEL_OWNERS; i++) {
                if (model[i].waiting && !seen[i] && (!next || model_before(&model[i], next)))
                    next = &model[i];
            }
            if (!next)
                break;
            seen[next - model] = true;
            next->stuck = model_stuck(next, false);
            if (next->stuck == ATOMS) {
                model_do(next);
                g_string_append_printf(grants, "%s%u", grants->len ? " " : "",
                                       (guint)(next - model) + 1);
                moved = true;
                break;
            }
        }
    }
}

/* Fills wants; false: out of order. */
static bool model_in_order(struct model_owner *owner, bool *ret_upgrade)
{
    *ret_upgrade = false;
    for (guint atom = 0; atom < ATOMS; atom++) {
        owner->wants[atom] = LOCK_RELEASE;
        enum lock_mode cover = LOCK_RELEASE;
        for (guint group = 0; group < ATOMS; group++)
            cover = covers(group, atom) ? MAX(cover, owner->held[group]) : cover;
        enum lock_mode asked = owner->named[atom] ? owner->asked[atom] : LOCK_RELEASE;
        if (asked <= owner->held[atom] || asked <= cover)
            continue;
        if (cover == LOCK_SHARED)
            return false;
        for (guint higher = atom + 1; higher < ATOMS; higher++) {
            if (owner->held[higher])
                return false;
        }
        *ret_upgrade = *ret_upgrade || owner->held[atom];
        owner->wants[atom] = asked;
    }
    return true;
}

/* What the model says to an update. */
static const char *model_update(guint number, const GPtrArray *requests, bool wait, gint64 priority)
{
    struct model_owner *owner = &model[number];
    bool upgrade;
    if (owner->waiting)
        return "error";
    memset(owner->named, 0, sizeof owner->named);
    for (guint i = 0; i < requests->len; i++) {
        const struct lock_request *request = requests->pdata[i];
        for (guint atom = 0; atom < ATOMS; atom++) {
            if (!strcmp(atoms[atom], request->name)) {
                owner->named[atom] = true;
                owner->asked[atom] = request->mode;
            }
        }
    }
    owner->priority = priority;
    owner->age = model_age++;
    if (!model_in_order(owner, &upgrade))
        return "error";
    owner->stuck = model_stuck(owner, upgrade);
    if (owner->stuck == ATOMS) {
        model_do(owner);
        return "granted";
    }
    if (!wait || upgrade)
        return "blocked";
    owner->waiting = true;
    return "waits";
}

static void assert_same_state(const struct locks *locks)
{
    for (guint i = 0; i < MODEL_OWNERS; i++) {
        GString *text = g_string_new(NULL);
        for (guint atom = 0; atom < ATOMS; atom++) {
            if (model[i].held[atom])
                g_string_append_printf(text, "%s%c %s", text->len ? ", " : "",
                                       model[i].held[atom] == LOCK_EXCLUSIVE ? 'x' : 's',
                                       atoms[atom]);
        }
        for (guint atom = 0; atom < ATOMS && model[i].waiting; atom++) {
            if (model[i].wants[atom])
                g_string_append_printf(text, "%sw %s", text->len ? ", " : "", atoms[atom]);
        }
        assert_held(locks, i, text->str);
        g_string_free(text, TRUE);
    }
}

static GPtrArray *random_requests(GRand *rand)
{
    GPtrArray *requests = lock_requests_new();
    guint64 used = 0;
    guint count = 1 + g_rand_int(rand) % 4;
    for (guint i = 0; i < count; i++) {
        guint atom = g_rand_int(rand) % ATOMS;
        if (used & (1u << atom))
            continue;
        used |= 1u << atom;
        lock_request_add(requests, atoms[atom], (enum lock_mode)(g_rand_int(rand) % 3));
    }
    return requests;
}

static void test_against_model(void)
{
    guint steps = 200000;
    g_autoptr(GRand) rand = g_rand_new_with_seed(20261120);
    struct locks *locks = locks_new(NULL, NULL);
    guint granted_later = 0;
    memset(model, 0, sizeof model);
    for (guint step = 0; step < steps; step++) {
        guint number = g_rand_int(rand) % MODEL_OWNERS;
        guint act = g_rand_int(rand) % 10;
        record_autoptr(owner) owner = lock_owner_of(number);
        if (act == 0) {
            locks_free_owner(locks, owner);
            memset(model[number].held, 0, sizeof model[number].held);
            model[number].waiting = false;
        } else if (act == 1) {
            g_assert_true((locks_withdraw(locks, owner) != NULL) == model[number].waiting);
            model[number].waiting = false;
        } else {
            g_autoptr(GPtrArray) requests = random_requests(rand);
            bool wait = act > 4;
            struct locks_wait how = {.priority = (gint64)(g_rand_int(rand) % 3) - 1,
                                     .tag = GUINT_TO_POINTER(number + 1)};
            enum locks_outcome outcome = LOCKS_GRANTED;
            const char *expected = model_update(number, requests, wait, wait ? how.priority : 0);
            bool ok = locks_update(locks, owner, requests, wait ? &how : NULL, &outcome, NULL);
            g_assert_cmpstr(!ok                        ? "error"
                            : outcome == LOCKS_GRANTED ? "granted"
                            : outcome == LOCKS_WAITS   ? "waits"
                                                       : "blocked",
                            ==, expected);
        }
        g_autoptr(GString) expected_grants = g_string_new(NULL);
        model_settle(expected_grants);
        granted_later += expected_grants->len > 0;
        assert_grants(locks, expected_grants->str);
        if (step % 8 == 0)
            assert_same_state(locks);
        if (step % 1024 == 0)
            g_ptr_array_unref(locks_take_events(locks));
    }
    g_assert_cmpuint(granted_later, >, steps / 100);
    g_test_message("%u steps, waits granted in %u of them", steps, granted_later);
    locks_free(locks);
}

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
    g_test_add_func("/locks/model#LCK-04,LCK-05,LCK-10,LCK-12,LCK-19,LCK-22", test_against_model);
    g_test_add_func("/locks/deadlock#LCK-26", test_no_deadlock);
    return g_test_run();
}
