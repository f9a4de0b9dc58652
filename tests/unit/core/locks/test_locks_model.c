/*
 * The lock manager against a plain model that scans everything each time: many owners, random
 * steps of every kind, deaths among them, and deaths of the manager itself, after which the lock
 * journal says it all. The model knows locks as places in a row, groups spread over their members.
 */
#include "core/locks/locks_journal.h"
#include "helper/fake_env.h"
#include "unit/core/world/lock_text.h"

#include <string.h>

#define OWNERS 12
#define STEPS_OF_A_LIFE 200

static const char *const atoms[] = {"cluster/BGL",
                                    "instance/[lockset]",
                                    "instance/a",
                                    "instance/b",
                                    "nodegroup/g",
                                    "node/[lockset]",
                                    "node/n1",
                                    "node/n2",
                                    "node/n3",
                                    "node-param/n1",
                                    "node-res/[lockset]",
                                    "node-res/n1",
                                    "node-res/n2",
                                    "network/w",
                                    "cluster/config"};
#define ATOMS (G_N_ELEMENTS(atoms))
#define NOWHERE ATOMS
#define LEVELS (LEVEL_CONFIG + 1)

/* Where each level begins; at the end, where there is none any more. */
static const guint first_of[LEVELS + 1] = {0, 1, 4, 5, 9, 10, 13, 14, ATOMS};

static bool covers(guint group, guint atom)
{
    return (group == 1 && atom > 1 && atom <= 3) || (group == 5 && atom > 5 && atom <= 8) ||
           (group == 10 && atom > 10 && atom <= 12);
}

struct model_owner {
    enum lock_mode held[ATOMS];
    enum { IDLE, WAITS, GATHERS } state;
    enum lock_mode wants[ATOMS]; /* new or stronger, uncovered */
    bool named[ATOMS];           /* in the request */
    enum lock_mode asked[ATOMS];
    bool disorderly;
    guint count; /* of a union */
    gint64 priority;
    guint64 age;
    guint stuck;
    guint since; /* step */
};

static struct model_owner model[OWNERS];
static guint64 model_age;
static guint model_step;
static guint longest_wait;

/* Strength of a set at one atom. */
static enum lock_mode spread(const enum lock_mode *set, guint atom)
{
    enum lock_mode mode = set[atom];
    for (guint group = 0; group < ATOMS; group++) {
        if (covers(group, atom))
            mode = MAX(mode, set[group]);
    }
    return mode;
}

/* Of what it wants without having it already in a weaker mode. */
static enum lock_mode wants_anew(const struct model_owner *owner, guint atom)
{
    enum lock_mode anew[ATOMS];
    for (guint i = 0; i < ATOMS; i++)
        anew[i] = owner->held[i] ? LOCK_RELEASE : owner->wants[i];
    return spread(anew, atom);
}

static bool excludes(enum lock_mode a, enum lock_mode b)
{
    return a != LOCK_RELEASE && b != LOCK_RELEASE && (a == LOCK_EXCLUSIVE || b == LOCK_EXCLUSIVE);
}

static bool before(const struct model_owner *a, const struct model_owner *b)
{
    return a->priority != b->priority ? a->priority < b->priority : a->age < b->age;
}

/* Is `other` in the way of what `owner` wants at this atom? */
static bool in_the_way(const struct model_owner *other, const struct model_owner *owner, guint atom)
{
    if (other == owner)
        return false;
    if (excludes(spread(owner->wants, atom), spread(other->held, atom)))
        return true;
    return other->state == WAITS && before(other, owner) && atom <= other->stuck &&
           excludes(wants_anew(owner, atom), spread(other->wants, atom));
}

static guint stuck_at(const struct model_owner *owner)
{
    for (guint atom = 0; atom < ATOMS; atom++) {
        for (guint i = 0; i < OWNERS; i++) {
            if (in_the_way(&model[i], owner, atom))
                return atom;
        }
    }
    return NOWHERE;
}

static void apply(struct model_owner *owner)
{
    for (guint atom = 0; atom < ATOMS; atom++) {
        if (owner->named[atom])
            owner->held[atom] = owner->asked[atom];
    }
    owner->state = IDLE;
}

static void note(GString *text, const struct model_owner *owner, const char *what)
{
    /* A union reserves nothing, so it may wait for ever. */
    if (what[0] != '+')
        longest_wait = MAX(longest_wait, model_step - owner->since);
    g_string_append_printf(text, "%u %s; ", (guint)(owner - model) + 1, what);
}

/* Grants from the front until nothing moves. */
static void grant_waiting(GString *text)
{
    for (bool moved = true; moved;) {
        moved = false;
        bool seen[OWNERS] = {false};
        for (guint round = 0; round < OWNERS && !moved; round++) {
            struct model_owner *next = NULL;
            for (guint i = 0; i < OWNERS; i++) {
                if (model[i].state == WAITS && !seen[i] && (!next || before(&model[i], next)))
                    next = &model[i];
            }
            if (!next)
                break;
            seen[next - model] = true;
            next->stuck = stuck_at(next);
            if (next->stuck == NOWHERE) {
                apply(next);
                note(text, next, "granted");
                moved = true;
            }
        }
    }
}

static bool reaches(guint from, guint goal, bool *seen)
{
    for (guint to = 0; to < OWNERS && model[from].state == WAITS; to++) {
        bool edge = false;
        for (guint atom = 0; atom < ATOMS && !edge; atom++)
            edge = in_the_way(&model[to], &model[from], atom);
        if (!edge || seen[to])
            continue;
        seen[to] = true;
        if (to == goal || reaches(to, goal, seen))
            return true;
    }
    return false;
}

static bool in_circle(guint number)
{
    bool seen[OWNERS] = {false};
    return reaches(number, number, seen);
}

/* Is the youngest out-of-order request in a circle refused? */
static bool refuse_one(GString *text)
{
    struct model_owner *victim = NULL;
    for (guint i = 0; i < OWNERS; i++) {
        bool candidate = model[i].state == WAITS && model[i].disorderly;
        if (candidate && (!victim || model[i].age > victim->age) && in_circle(i))
            victim = &model[i];
    }
    if (!victim)
        return false;
    victim->state = IDLE;
    note(text, victim, "refused");
    return true;
}

static enum lock_mode cover_of(const struct model_owner *owner, guint atom)
{
    enum lock_mode cover = LOCK_RELEASE;
    for (guint group = 0; group < ATOMS; group++)
        cover = covers(group, atom) ? MAX(cover, owner->held[group]) : cover;
    return cover;
}

static bool in_order(const struct model_owner *owner, guint atom)
{
    if (cover_of(owner, atom) == LOCK_SHARED && owner->asked[atom] == LOCK_EXCLUSIVE)
        return false;
    for (guint higher = atom + 1; higher < ATOMS; higher++) {
        if (owner->held[higher])
            return false;
    }
    return true;
}

/* Adds what can be had, if enough; what was added, as text, or NULL. */
static char *take(struct model_owner *owner, guint count)
{
    enum lock_mode held[ATOMS];
    g_autoptr(GString) text = g_string_new("+");
    guint got = 0;
    memcpy(held, owner->held, sizeof held);
    for (guint atom = 0; atom < ATOMS; atom++) {
        enum lock_mode asked = owner->named[atom] ? owner->asked[atom] : LOCK_RELEASE;
        if (asked <= owner->held[atom])
            continue;
        if (asked > cover_of(owner, atom)) {
            memset(owner->wants, 0, sizeof owner->wants);
            owner->wants[atom] = asked;
            if (!in_order(owner, atom) || stuck_at(owner) != NOWHERE)
                continue;
        }
        owner->held[atom] = asked;
        g_string_append_printf(text, " %s", atoms[atom]);
        got++;
    }
    if (got >= count)
        return g_strdup(text->str);
    memcpy(owner->held, held, sizeof held);
    return NULL;
}

static bool gather_all(GString *text)
{
    bool seen[OWNERS] = {false}, granted = false;
    for (;;) {
        struct model_owner *next = NULL;
        for (guint i = 0; i < OWNERS; i++) {
            if (model[i].state == GATHERS && !seen[i] && (!next || before(&model[i], next)))
                next = &model[i];
        }
        if (!next)
            return granted;
        seen[next - model] = true;
        g_autofree char *got = take(next, next->count);
        if (!got)
            continue;
        next->state = IDLE;
        granted = true;
        note(text, next, got);
    }
}

static char *model_settle(void)
{
    GString *text = g_string_new(NULL);
    do {
        grant_waiting(text);
        while (refuse_one(text))
            grant_waiting(text);
    } while (gather_all(text));
    return g_string_free(text, FALSE);
}

static void model_name(struct model_owner *owner, const GPtrArray *requests, gint64 priority)
{
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
    owner->since = model_step;
}

static const char *model_update(struct model_owner *owner, const GPtrArray *requests, bool wait,
                                bool disorderly, gint64 priority)
{
    bool upgrade = false;
    if (owner->state != IDLE)
        return "error";
    model_name(owner, requests, priority);
    owner->disorderly = disorderly;
    for (guint atom = 0; atom < ATOMS; atom++) {
        enum lock_mode asked = owner->named[atom] ? owner->asked[atom] : LOCK_RELEASE;
        bool wanted = asked > owner->held[atom] && asked > cover_of(owner, atom);
        owner->wants[atom] = wanted ? asked : LOCK_RELEASE;
        if (wanted && !disorderly && !in_order(owner, atom))
            return "error";
        upgrade = upgrade || (wanted && owner->held[atom]);
    }
    owner->stuck = stuck_at(owner);
    if (owner->stuck == NOWHERE) {
        apply(owner);
        return "granted";
    }
    if (!wait || (upgrade && !disorderly))
        return "blocked";
    owner->state = WAITS;
    return "waits";
}

/* --- one step of each kind, in both --- */

struct play {
    struct fake_world *world;
    const struct env *env;
    struct locks *locks;
    struct locks_journal *journal;
    GRand *rand;
    struct owner *owners[OWNERS];
    guint kinds[16]; /* how often each kind of step came */
    guint granted, refused, gathered, restarted;
    GString *early; /* what the model has settled in the middle of a step */
};

static GPtrArray *random_requests(GRand *rand, guint most)
{
    GPtrArray *requests = lock_requests_new();
    guint64 used = 0;
    guint count = 1 + g_rand_int(rand) % most;
    for (guint i = 0; i < count; i++) {
        guint atom = g_rand_int(rand) % ATOMS;
        if (used & (1u << atom))
            continue;
        used |= 1u << atom;
        lock_request_add(requests, atoms[atom], (enum lock_mode)(g_rand_int(rand) % 3));
    }
    return requests;
}

static const char *outcome_text(bool ok, enum locks_outcome outcome)
{
    return !ok                        ? "error"
           : outcome == LOCKS_GRANTED ? "granted"
           : outcome == LOCKS_WAITS   ? "waits"
                                      : "blocked";
}

static void play_update(struct play *play, guint number, bool wait, bool disorderly)
{
    g_autoptr(GPtrArray) requests = random_requests(play->rand, 4);
    g_autoptr(GError) error = NULL;
    struct locks_wait how = {.priority = (gint64)(g_rand_int(play->rand) % 3) - 1,
                             .tag = GUINT_TO_POINTER(number + 1),
                             .at_once = !wait,
                             .out_of_order = disorderly};
    enum locks_outcome outcome = LOCKS_GRANTED;
    const char *expected = model_update(&model[number], requests, wait, disorderly, how.priority);
    bool ok = locks_update(play->locks, play->owners[number], requests, &how, &outcome, &error);
    if (fettle_error_is(error, LOCK_CYCLE)) {
        /* The model tells of it when it settles. */
        g_assert_cmpstr(expected, ==, "waits");
        g_assert_true(disorderly &&
                      g_str_has_prefix(error->message, "waiting would close a circle: "));
        bool refused = false;
        grant_waiting(play->early);
        while (!refused && refuse_one(play->early))
            refused = model[number].state == IDLE;
        g_assert_true(refused);
        /* It is told of by the error alone. */
        g_autofree char *only = g_strdup_printf("%u refused; ", number + 1);
        g_assert_true(g_str_has_suffix(play->early->str, only));
        g_string_truncate(play->early, play->early->len - strlen(only));
        play->refused++;
        return;
    }
    g_assert_cmpstr(outcome_text(ok, outcome), ==, expected);
}

static void play_union(struct play *play, guint number, bool wait)
{
    struct model_owner *owner = &model[number];
    g_autoptr(GPtrArray) requests = random_requests(play->rand, 6);
    g_autoptr(GPtrArray) acquired = NULL;
    g_autoptr(GString) text = g_string_new("+");
    guint count = g_rand_int(play->rand) % 4;
    struct locks_wait how = {.priority = (gint64)(g_rand_int(play->rand) % 3) - 1,
                             .tag = GUINT_TO_POINTER(number + 1),
                             .at_once = !wait};
    g_autofree char *expected = NULL;
    bool idle = owner->state == IDLE;
    if (idle) {
        model_name(owner, requests, how.priority);
        expected = take(owner, count);
        if (!expected && wait) {
            owner->state = GATHERS;
            owner->count = count;
            owner->age = model_age++;
        }
    }
    enum locks_outcome outcome =
        locks_union(play->locks, play->owners[number], requests, count, &how, &acquired);
    for (guint i = 0; acquired && i < acquired->len; i++)
        g_string_append_printf(text, " %s", (char *)acquired->pdata[i]);
    g_assert_cmpint(outcome, ==,
                    expected       ? LOCKS_GRANTED
                    : idle && wait ? LOCKS_WAITS
                                   : LOCKS_BLOCKED);
    g_assert_cmpstr(text->str, ==, expected ? expected : "+");
}

/* What never fails: it ends a wait, of either kind. */
static void play_less(struct play *play, guint number, guint kind)
{
    struct model_owner *owner = &model[number];
    guint level = g_rand_int(play->rand) % LEVELS;
    guint kept = g_rand_int(play->rand) % (1 << ATOMS);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    void *tag = NULL, *expected = owner->state == IDLE ? NULL : GUINT_TO_POINTER(number + 1);
    owner->state = IDLE;
    for (guint atom = 0; atom < ATOMS; atom++) {
        bool inside = atom >= first_of[level] && atom < first_of[level + 1];
        if (kept & (1u << atom))
            g_ptr_array_add(names, (void *)atoms[atom]);
        if (kind == 0 || (kind == 1 && inside) || (kind == 3 && !(kept & (1u << atom))))
            owner->held[atom] = LOCK_RELEASE;
        else if (kind == 2 && inside && owner->held[atom])
            owner->held[atom] = LOCK_SHARED;
    }
    g_ptr_array_add(names, (void *)"no such lock");
    if (kind == 0)
        tag = locks_free_owner(play->locks, play->owners[number]);
    else if (kind == 1)
        tag = locks_free_level(play->locks, play->owners[number], (enum lock_level)level);
    else if (kind == 2)
        tag = locks_downgrade_level(play->locks, play->owners[number], (enum lock_level)level);
    else
        tag = locks_intersect(play->locks, play->owners[number], names);
    g_assert_true(tag == expected);
}

static void play_withdraw(struct play *play, guint number)
{
    struct model_owner *owner = &model[number];
    void *expected = owner->state == IDLE ? NULL : GUINT_TO_POINTER(number + 1);
    owner->state = IDLE;
    g_assert_true(locks_withdraw(play->locks, play->owners[number]) == expected);
}

static void play_priority(struct play *play, guint number)
{
    struct model_owner *owner = &model[number];
    gint64 priority = (gint64)(g_rand_int(play->rand) % 3) - 1;
    bool waits = owner->state != IDLE;
    if (waits)
        owner->priority = priority;
    if (owner->state == WAITS)
        owner->stuck = stuck_at(owner);
    g_assert_true(locks_set_priority(play->locks, play->owners[number], priority) == waits);
}

static void play_union_end(struct play *play, guint number)
{
    struct model_owner *owner = &model[number];
    bool gathers = owner->state == GATHERS;
    g_autofree char *expected = gathers ? take(owner, 0) : NULL;
    owner->state = gathers ? IDLE : owner->state;
    g_autoptr(GPtrArray) names = locks_union_end(play->locks, play->owners[number]);
    g_autoptr(GString) text = g_string_new("+");
    g_assert_true((names != NULL) == gathers);
    for (guint i = 0; names && i < names->len; i++)
        g_string_append_printf(text, " %s", (char *)names->pdata[i]);
    g_assert_cmpstr(text->str, ==, expected ? expected : "+");
}

/* --- comparing --- */

static void assert_same_grants(struct play *play)
{
    g_autofree char *later = model_settle();
    g_autofree char *expected = g_strconcat(play->early->str, later, NULL);
    g_string_truncate(play->early, 0);
    g_autoptr(GPtrArray) grants = locks_take_grants(play->locks);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < grants->len; i++) {
        const struct locks_grant *grant = grants->pdata[i];
        g_autoptr(GString) what = g_string_new(grant->error      ? "refused"
                                               : grant->acquired ? "+"
                                                                 : "granted");
        for (guint k = 0; grant->acquired && k < grant->acquired->len; k++)
            g_string_append_printf(what, " %s", (char *)grant->acquired->pdata[k]);
        play->refused += grant->error != NULL;
        play->gathered += grant->acquired != NULL;
        play->granted += !grant->error && !grant->acquired;
        g_string_append_printf(text, "%u %s; ", GPOINTER_TO_UINT(grant->tag), what->str);
    }
    g_assert_cmpstr(text->str, ==, expected);
}

static void assert_same_state(struct play *play)
{
    for (guint i = 0; i < OWNERS; i++) {
        guint held = 0;
        for (guint atom = 0; atom < ATOMS; atom++) {
            g_assert_cmpint(locks_held(play->locks, play->owners[i], atoms[atom]), ==,
                            MAX(model[i].held[atom], cover_of(&model[i], atom)));
            held += model[i].held[atom] != LOCK_RELEASE;
        }
        g_autoptr(GPtrArray) list = locks_list(play->locks, play->owners[i]);
        for (guint k = 0; k < list->len; k++)
            held -= !((struct lock_state *)list->pdata[k])->waiting;
        g_assert_cmpuint(held, ==, 0);
        g_assert_true(locks_waits(play->locks, play->owners[i]) == (model[i].state != IDLE));
        g_assert_false(model[i].state == WAITS && in_circle(i));
    }
}

static void play_write(struct play *play)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) events = locks_take_events(play->locks);
    locks_journal_append(play->journal, play->locks, events, &error);
    g_assert_no_error(error);
}

static void play_step(struct play *play, bool ordered)
{
    guint number = g_rand_int(play->rand) % OWNERS;
    guint kind = g_rand_int(play->rand) % 16;
    play->kinds[kind]++;
    if (kind <= 1)
        play_less(play, number, 0);
    else if (kind <= 4)
        play_less(play, number, kind - 1);
    else if (kind == 5)
        play_withdraw(play, number);
    else if (kind == 6)
        play_priority(play, number);
    else if (kind == 7)
        play_union_end(play, number);
    else if (kind <= 9)
        play_union(play, number, kind == 9);
    else
        play_update(play, number, kind > 10, !ordered && kind > 13);
    assert_same_grants(play);
    play_write(play);
}

/* --- the manager dies --- */

static struct locks_journal *open_journal(struct play *play, const char *expected)
{
    g_autofree char *note = NULL;
    g_autoptr(GError) error = NULL;
    play->locks = locks_new(NULL, NULL);
    struct locks_journal *journal = locks_journal_open(play->env, play->locks, &note, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(note, ==, expected);
    locks_journal_begin(journal, play->locks, 3, &error);
    g_assert_no_error(error);
    return journal;
}

/* Its client asks again, and has the place that it had. */
static void ask_again(struct play *play, guint number)
{
    const struct model_owner *owner = &model[number];
    g_autoptr(GPtrArray) requests = lock_requests_new();
    for (guint atom = 0; atom < ATOMS; atom++) {
        if (owner->named[atom])
            lock_request_add(requests, atoms[atom], owner->asked[atom]);
    }
    struct locks_wait how = {.priority = owner->priority,
                             .tag = GUINT_TO_POINTER(number + 1),
                             .out_of_order = owner->disorderly};
    void *tag = NULL;
    g_assert_true(locks_take_over(play->locks, play->owners[number], requests, &how, &tag));
    g_assert_null(tag);
}

/* Another one reads the journal: who held holds, who waited waits; unions are forgotten. */
static void play_restart(struct play *play)
{
    locks_journal_free(play->journal);
    locks_free(play->locks);
    play->journal = open_journal(play, NULL);
    play->restarted++;
    for (guint i = 0; i < OWNERS; i++) {
        if (model[i].state == GATHERS)
            model[i].state = IDLE;
    }
    assert_same_grants(play);
    assert_same_state(play);
    for (guint i = 0; i < OWNERS; i++) {
        if (model[i].state == WAITS)
            ask_again(play, i);
    }
    assert_same_grants(play);
    assert_same_state(play);
    play_write(play);
}

static void play_begin(struct play *play, guint32 seed)
{
    *play = (struct play){
        .world = fake_world_new(), .rand = g_rand_new_with_seed(seed), .early = g_string_new(NULL)};
    play->env = fake_process(play->world, "22222222-0000-4000-8000-000000000001", ROLE_WCONFD);
    play->journal = open_journal(play, "none");
    memset(model, 0, sizeof model);
    for (guint i = 0; i < OWNERS; i++)
        play->owners[i] = lock_owner_of(i + 1);
}

/* Everybody lets go: whoever waits is granted, and nothing is left. */
static void play_end(struct play *play)
{
    for (guint round = 0; round < 2 * OWNERS; round++) {
        for (guint i = 0; i < OWNERS; i++) {
            if (model[i].state == WAITS)
                continue;
            memset(model[i].held, 0, sizeof model[i].held);
            model[i].state = IDLE;
            locks_free_owner(play->locks, play->owners[i]);
            assert_same_grants(play);
        }
    }
    for (guint i = 0; i < OWNERS; i++) {
        g_assert_true(model[i].state != WAITS);
        locks_free_owner(play->locks, play->owners[i]);
        owner_free(play->owners[i]);
    }
    g_assert_cmpuint(locks_count(play->locks), ==, 0);
    g_assert_cmpuint(locks_waiting_count(play->locks), ==, 0);
    g_ptr_array_unref(locks_take_events(play->locks));
    locks_journal_free(play->journal);
    locks_free(play->locks);
    fake_world_free(play->world);
    g_rand_free(play->rand);
    g_string_free(play->early, TRUE);
}

static void run(guint steps, bool ordered)
{
    struct play play;
    play_begin(&play, 20261120 + ordered);
    longest_wait = 0;
    for (model_step = 1; model_step <= steps; model_step++) {
        play_step(&play, ordered);
        if (model_step % 16 == 0)
            assert_same_state(&play);
        if (model_step % STEPS_OF_A_LIFE == 0)
            play_restart(&play);
    }
    /* Everything that can happen did. */
    g_assert_cmpuint(play.granted, >, steps / 100);
    g_assert_cmpuint(play.gathered, >, steps / 1000);
    g_assert_true(ordered ? play.refused == 0 : play.refused > steps / 1000);
    /* An owner is freed every 100 steps or so; nobody waits for more than a few of those (243 steps
     * in a million). */
    g_assert_cmpuint(longest_wait, <, 500);
    g_assert_cmpuint(play.restarted, ==, steps / STEPS_OF_A_LIFE);
    g_test_message("%u steps: %u waits granted, %u unions gathered, %u circles refused, "
                   "longest wait %u steps",
                   steps, play.granted, play.gathered, play.refused, longest_wait);
    play_end(&play);
}

static guint steps_wanted(void)
{
    return g_test_quick() ? 60000 : 1000000;
}

static void test_any(void)
{
    run(steps_wanted(), false);
}

/* Without marks nobody is ever refused: no circle closes. */
static void test_ordered(void)
{
    run(steps_wanted(), true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/locks/model#LCK-04,LCK-05,LCK-10,LCK-12,LCK-13,LCK-14,LCK-17,LCK-19,LCK-22,"
                    "FUT-09,FUT-10,WCF-15",
                    test_any);
    g_test_add_func("/locks/model/ordered#LCK-04,LCK-11,LCK-26", test_ordered);
    return g_test_run();
}
