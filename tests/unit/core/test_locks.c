/* The lock manager: its rules one by one, then random steps against a plain model that scans
 * everything each time. */
#include "core/config/locks.h"

#include <string.h>

static struct owner *owner_of(guint number)
{
    struct owner *owner = owner_new();
    g_free(owner->job);
    g_free(owner->livelock);
    owner->job = g_strdup_printf("%u", number);
    owner->livelock = g_strdup_printf("job-%u", number);
    return owner;
}

static void free_request(void *data)
{
    lock_request_free(data);
}

static void add_request(GPtrArray *requests, const char *name, enum lock_mode mode)
{
    struct lock_request *request = lock_request_new();
    g_free(request->name);
    request->name = g_strdup(name);
    request->mode = mode;
    g_ptr_array_add(requests, request);
}

/* "x instance/a, s node/n1, r node/n2" */
static GPtrArray *parse(const char *text)
{
    GPtrArray *requests = g_ptr_array_new_with_free_func(free_request);
    g_auto(GStrv) parts = g_strsplit(text, ", ", -1);
    for (guint i = 0; parts[i]; i++)
        add_request(requests, parts[i] + 2,
                    parts[i][0] == 'x'   ? LOCK_EXCLUSIVE
                    : parts[i][0] == 's' ? LOCK_SHARED
                                         : LOCK_RELEASE);
    return requests;
}

/* What the owner holds, as text in the same form. */
static char *held_text(const struct locks *locks, guint number)
{
    record_autoptr(owner) owner = owner_of(number);
    g_autoptr(GPtrArray) list = locks_list(locks, owner);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < list->len; i++) {
        const struct lock_state *state = list->pdata[i];
        g_string_append_printf(text, "%s%c %s", text->len ? ", " : "",
                               state->waiting                  ? 'w'
                               : state->mode == LOCK_EXCLUSIVE ? 'x'
                                                               : 's',
                               state->name);
    }
    return g_string_free(text, FALSE);
}

#define assert_held(locks, number, text)                                                           \
    do {                                                                                           \
        g_autofree char *held_ = held_text(locks, number);                                         \
        g_assert_cmpstr(held_, ==, text);                                                          \
    } while (0)

/* "granted", "blocked by 1 2", "waits", or the error's text. */
static char *ask(struct locks *locks, guint number, const char *text, bool wait, gint64 priority)
{
    record_autoptr(owner) owner = owner_of(number);
    g_autoptr(GPtrArray) requests = parse(text);
    g_autoptr(GError) error = NULL;
    struct locks_wait how = {priority, GUINT_TO_POINTER(number)};
    enum locks_outcome outcome;
    if (!locks_update(locks, owner, requests, wait ? &how : NULL, &outcome, &error))
        return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    if (outcome == LOCKS_GRANTED)
        return g_strdup("granted");
    if (outcome == LOCKS_WAITS)
        return g_strdup("waits");
    record_autoptr(update_locks_result) result = locks_explain(locks, owner, requests, priority);
    GString *blockers = g_string_new("blocked by");
    for (guint i = 0; i < result->blockers->len; i++)
        g_string_append_printf(blockers, " %s", ((struct owner *)result->blockers->pdata[i])->job);
    for (guint i = 0; i < result->pending_nodes->len; i++)
        g_string_append_printf(blockers, " gate %s", (char *)result->pending_nodes->pdata[i]);
    return g_string_free(blockers, FALSE);
}

#define assert_try(locks, number, text, expected)                                                  \
    do {                                                                                           \
        g_autofree char *said_ = ask(locks, number, text, false, 0);                               \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)
#define assert_wait(locks, number, text, expected)                                                 \
    do {                                                                                           \
        g_autofree char *said_ = ask(locks, number, text, true, 0);                                \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* Numbers of the owners that were granted what they waited for: "2 3". */
static char *grants_text(struct locks *locks)
{
    g_autoptr(GPtrArray) grants = locks_take_grants(locks);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < grants->len; i++)
        g_string_append_printf(text, "%s%u", i ? " " : "", GPOINTER_TO_UINT(grants->pdata[i]));
    return g_string_free(text, FALSE);
}

#define assert_grants(locks, text)                                                                 \
    do {                                                                                           \
        g_autofree char *grants_ = grants_text(locks);                                             \
        g_assert_cmpstr(grants_, ==, text);                                                        \
    } while (0)

static void release(struct locks *locks, guint number)
{
    record_autoptr(owner) owner = owner_of(number);
    locks_free_owner(locks, owner);
}

/* --- names and order --- */

static const char *const in_order[] = {
    "cluster/[lockset]",   "cluster/BGL", "instance/[lockset]", "instance/a", "instance/b",
    "nodegroup/[lockset]", "nodegroup/g", "node/[lockset]",     "node/n1",    "node/n2",
    "node-res/[lockset]",  "node-res/n1", "network/[lockset]",  "network/w",  "cluster/config",
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

static void test_names(void)
{
    static const char *const bad[][2] = {
        {"instance", "lock \"instance\": must be LEVEL/NAME with one of the levels cluster, "
                     "instance, nodegroup, node, "
                     "node-res, network"},
        {"disk/x", "lock \"disk/x\": must be LEVEL/NAME with one of the levels cluster, instance, "
                   "nodegroup, node, "
                   "node-res, network"},
        {"node/", "lock \"node/\": the name after the slash is empty or has a space, slash or "
                  "control character in it"},
        {"node/a/b", "lock \"node/a/b\": the name after the slash is empty or has a space, slash "
                     "or control character in it"},
        {"cluster/x", "lock \"cluster/x\": level cluster has only [lockset], BGL and config"},
    };
    struct locks *locks = locks_new(NULL, NULL);
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
    locks_free(locks);
}

/* --- one owner --- */

static void test_update(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    assert_try(locks, 1, "s instance/a, x instance/b, x node/n1, x node/n2, s node/n3", "granted");
    assert_try(locks, 1, "r instance/a, s instance/b, r node/n2", "granted");
    assert_held(locks, 1, "s instance/b, x node/n1, s node/n3");
    assert_try(locks, 1, "s node/n1", "granted");
    assert_held(locks, 1, "s instance/b, s node/n1, s node/n3");
    assert_try(locks, 1, "r instance/zzz", "granted");
    assert_held(locks, 2, "");
    locks_free(locks);
}

static void test_order_rules(void)
{
    struct locks *locks = locks_new(NULL, NULL);
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
    locks_free(locks);
}

static void test_all_or_nothing(void)
{
    struct locks *locks = locks_new(NULL, NULL);
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
            g_autofree char *said = ask(locks, 1, list->str, false, 0);
            g_assert_cmpstr(said, !=, "granted");
            assert_held(locks, 1, "s instance/b");
        }
    }
    locks_free(locks);
}

/* --- several owners --- */

static void test_levels_are_apart(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    assert_try(locks, 1, "x instance/x", "granted");
    assert_try(locks, 2, "x node/x", "granted");
    assert_try(locks, 3, "x node-res/x", "granted");
    locks_free(locks);
}

static void test_sharing(void)
{
    static const struct {
        const char *first, *second, *answer;
    } pairs[] = {
        {"s node/n", "s node/n", "granted"},
        {"s node/n", "x node/n", "blocked by 1"},
        {"x node/n", "s node/n", "blocked by 1"},
        {"x node/n", "x node/n", "blocked by 1"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        struct locks *locks = locks_new(NULL, NULL);
        assert_try(locks, 1, pairs[i].first, "granted");
        assert_try(locks, 2, pairs[i].second, pairs[i].answer);
        locks_free(locks);
    }
}

static void test_blocked_names_owner(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    assert_try(locks, 1, "x instance/b", "granted");
    assert_try(locks, 3, "s instance/a", "granted");
    assert_try(locks, 2, "x instance/a, x instance/b", "blocked by 3 1");
    assert_held(locks, 2, "");
    release(locks, 1);
    release(locks, 3);
    assert_try(locks, 2, "x instance/a, x instance/b", "granted");
    locks_free(locks);
}

static void test_owner_is_a_pair(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    record_autoptr(owner) one = owner_of(1);
    record_autoptr(owner) other = owner_of(1);
    g_free(other->livelock);
    other->livelock = g_strdup("job-1-again");
    assert_try(locks, 1, "x instance/a", "granted");
    g_assert_cmpint(locks_held(locks, one, "instance/a"), ==, LOCK_EXCLUSIVE);
    g_assert_cmpint(locks_held(locks, other, "instance/a"), ==, LOCK_RELEASE);
    g_autoptr(GPtrArray) requests = parse("s instance/a");
    enum locks_outcome outcome;
    g_assert_true(locks_update(locks, other, requests, NULL, &outcome, NULL));
    g_assert_cmpint(outcome, ==, LOCKS_BLOCKED);
    locks_free(locks);
}

static void test_groups(void)
{
    static const struct {
        const char *first, *second, *answer;
    } pairs[] = {
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
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        struct locks *locks = locks_new(NULL, NULL);
        assert_try(locks, 1, pairs[i].first, "granted");
        assert_try(locks, 2, pairs[i].second, pairs[i].answer);
        locks_free(locks);
    }
}

static void test_group_and_member(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    assert_try(locks, 1, "s node/[lockset]", "granted");
    assert_try(locks, 1, "x node/n1",
               "lock_order: order violation: requesting node/n1 exclusive while holding "
               "node/[lockset] shared");
    assert_held(locks, 1, "s node/[lockset]");
    assert_try(locks, 1, "s node/n1", "granted");
    /* Covered members may be named at any time. */
    assert_try(locks, 1, "s node-res/x", "granted");
    assert_try(locks, 1, "s node/n0", "granted");
    release(locks, 1);
    assert_try(locks, 1, "x node/[lockset], s node-res/x", "granted");
    assert_try(locks, 1, "x node/n9, r node/[lockset]", "granted");
    assert_held(locks, 1, "x node/n9, s node-res/x");
    assert_try(locks, 2, "x node/n8", "granted");
    locks_free(locks);
}

/* --- waiting --- */

static void test_waiting_order(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    g_autofree char *urgent = NULL;
    assert_try(locks, 1, "x instance/a", "granted");
    assert_wait(locks, 2, "x instance/a", "waits");
    assert_wait(locks, 3, "x instance/a", "waits");
    urgent = ask(locks, 4, "x instance/a", true, -5);
    g_assert_cmpstr(urgent, ==, "waits");
    assert_try(locks, 2, "s node/n",
               "wrong_state: 2 waits for locks already; it can change none meanwhile");
    assert_held(locks, 2, "w instance/a");
    release(locks, 1);
    assert_grants(locks, "4");
    release(locks, 4);
    assert_grants(locks, "2");
    release(locks, 2);
    assert_grants(locks, "3");
    assert_held(locks, 3, "x instance/a");
    locks_free(locks);
}

static void test_exclusive_does_not_starve(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    assert_try(locks, 1, "s node/n", "granted");
    assert_wait(locks, 2, "x node/n", "waits");
    assert_try(locks, 3, "s node/n", "blocked by 2");
    assert_wait(locks, 4, "s node/n", "waits");
    assert_wait(locks, 5, "s node/n", "waits");
    release(locks, 1);
    assert_grants(locks, "2");
    release(locks, 2);
    assert_grants(locks, "4 5");
    locks_free(locks);
}

/* Who is stuck at a small lock reserves no greater one: the owner of the small one may need it to
 * go on. */
static void test_no_circle_through_reservation(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    assert_try(locks, 1, "x instance/a", "granted");
    assert_wait(locks, 2, "x instance/a, x node/n", "waits");
    assert_try(locks, 1, "x node/n", "granted");
    release(locks, 1);
    assert_grants(locks, "2");
    locks_free(locks);
}

static void test_withdraw(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    record_autoptr(owner) second = owner_of(2);
    assert_try(locks, 1, "s node/n", "granted");
    assert_wait(locks, 2, "x node/n", "waits");
    assert_wait(locks, 3, "s node/n", "waits");
    g_assert_true(locks_waits(locks, second));
    g_assert_true(locks_withdraw(locks, second) == GUINT_TO_POINTER(2));
    g_assert_false(locks_waits(locks, second));
    g_assert_null(locks_withdraw(locks, second));
    assert_grants(locks, "3");
    locks_free(locks);
}

static void test_upgrade_never_waits(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    assert_try(locks, 1, "s instance/a", "granted");
    assert_try(locks, 2, "s instance/a", "granted");
    assert_wait(locks, 1, "x instance/a", "blocked by 2");
    assert_wait(locks, 3, "x instance/a", "waits");
    release(locks, 2);
    assert_wait(locks, 1, "x instance/a", "granted");
    release(locks, 1);
    assert_grants(locks, "3");
    locks_free(locks);
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
    record_autoptr(owner) old = owner_of(9);
    locks_restore(locks, old, "node/n1", LOCK_SHARED);
    assert_try(locks, 1, "s node/n2", "granted");
    assert_try(locks, 2, "s node/n1", "blocked by gate node/n1");
    assert_wait(locks, 3, "x instance/a, s node/n1", "waits");
    assert_wait(locks, 4, "s node/[lockset]", "waits");
    assert_held(locks, 9, "s node/n1");
    release(locks, 9);
    /* Its record can be changed all the same, and that goes before those who wait for it. */
    g_autofree char *said = ask(locks, 5, "x node/n1", true, -20);
    g_assert_cmpstr(said, ==, "granted");
    release(locks, 5);
    gate_open = true;
    locks_gate_changed(locks, "node/n1");
    assert_grants(locks,
                  "3 4"); /* the group's gate too: its waiters are looked at with every member */
    locks_free(locks);
}

static void test_events(void)
{
    struct locks *locks = locks_new(NULL, NULL);
    assert_try(locks, 1, "x instance/a, s node/n", "granted");
    assert_wait(locks, 2, "s instance/a", "waits");
    release(locks, 1);
    g_autoptr(GPtrArray) events = locks_take_events(locks);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < events->len; i++) {
        const struct locks_event *event = events->pdata[i];
        g_string_append_printf(text, "%s %s %s; ", event->owner->job, event->name,
                               enum_word(&lock_mode_words, (int)event->mode));
    }
    g_assert_cmpstr(
        text->str, ==,
        "1 instance/a exclusive; 1 node/n shared; 1 instance/a release; 1 node/n release; "
        "2 instance/a shared; ");
    g_autoptr(GPtrArray) none = locks_take_events(locks);
    g_assert_cmpuint(none->len, ==, 0);
    locks_free(locks);
}

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
                                       (guint)(next - model));
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
    GPtrArray *requests = g_ptr_array_new_with_free_func(free_request);
    guint64 used = 0;
    guint count = 1 + g_rand_int(rand) % 4;
    for (guint i = 0; i < count; i++) {
        guint atom = g_rand_int(rand) % ATOMS;
        if (used & (1u << atom))
            continue;
        used |= 1u << atom;
        add_request(requests, atoms[atom], (enum lock_mode)(g_rand_int(rand) % 3));
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
        record_autoptr(owner) owner = owner_of(number);
        if (act == 0) {
            locks_free_owner(locks, owner);
            memset(model[number].held, 0, sizeof model[number].held);
            model[number].waiting = false;
        } else if (act == 1) {
            g_assert_true((locks_withdraw(locks, owner) != NULL || number == 0) ||
                          !model[number].waiting);
            model[number].waiting = false;
        } else {
            g_autoptr(GPtrArray) requests = random_requests(rand);
            bool wait = act > 4;
            struct locks_wait how = {(gint64)(g_rand_int(rand) % 3) - 1, GUINT_TO_POINTER(number)};
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
            waits[GPOINTER_TO_UINT(grants->pdata[i])] = false;
        guint waiting = 0;
        for (guint i = 0; i < CLIENTS; i++)
            waiting += waits[i] ? 1 : 0;
        g_assert_cmpuint(waiting, <, running);
        if (waits[number] || done[number] > ROUNDS)
            continue;
        if (done[number] == ROUNDS || from[number] >= ATOMS) {
            release(locks, number);
            done[number] = ROUNDS + 1;
            running--;
            continue;
        }
        record_autoptr(owner) owner = owner_of(number);
        g_autoptr(GPtrArray) requests = g_ptr_array_new_with_free_func(free_request);
        guint first = from[number] + g_rand_int(rand) % 3;
        guint last = first + g_rand_int(rand) % 4;
        for (guint atom = first; atom <= last && atom < ATOMS; atom++)
            add_request(requests, atoms[atom], g_rand_int(rand) % 3 ? LOCK_SHARED : LOCK_EXCLUSIVE);
        struct locks_wait how = {(gint64)(g_rand_int(rand) % 3), GUINT_TO_POINTER(number)};
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
    g_test_add_func("/locks/order/table#LCK-03,LCK-20", test_order_table);
    g_test_add_func("/locks/order/random#LCK-02,LCK-20,LCK-21", test_order_random);
    g_test_add_func("/locks/names#LCK-01,LCK-05,LCK-10", test_names);
    g_test_add_func("/locks/update#LCK-05,LCK-08,LCK-09,LCK-16", test_update);
    g_test_add_func("/locks/order/rules#LCK-06,LCK-07,LCK-08,LCK-10", test_order_rules);
    g_test_add_func("/locks/all-or-nothing#LCK-10,LCK-11", test_all_or_nothing);
    g_test_add_func("/locks/levels#LCK-01", test_levels_are_apart);
    g_test_add_func("/locks/sharing#LCK-12", test_sharing);
    g_test_add_func("/locks/blocked#LCK-11", test_blocked_names_owner);
    g_test_add_func("/locks/owner#DTH-21,WCF-13", test_owner_is_a_pair);
    g_test_add_func("/locks/groups#LCK-19", test_groups);
    g_test_add_func("/locks/group-and-member#LCK-19,LCK-22", test_group_and_member);
    g_test_add_func("/locks/wait/order#LCK-11", test_waiting_order);
    g_test_add_func("/locks/wait/starvation#LCK-11,LCK-12", test_exclusive_does_not_starve);
    g_test_add_func("/locks/wait/reservation#LCK-26", test_no_circle_through_reservation);
    g_test_add_func("/locks/wait/withdraw#WCF-15", test_withdraw);
    g_test_add_func("/locks/wait/upgrade#LCK-07,LCK-26", test_upgrade_never_waits);
    g_test_add_func("/locks/gate#SAF-06", test_gate);
    g_test_add_func("/locks/events#WCF-07", test_events);
    g_test_add_func("/locks/model#LCK-04,LCK-05,LCK-10,LCK-12,LCK-19,LCK-22", test_against_model);
    g_test_add_func("/locks/deadlock#LCK-26", test_no_deadlock);
    return g_test_run();
}
