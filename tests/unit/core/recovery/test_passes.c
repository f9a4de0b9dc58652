/* Passes of recovery over many instances: a watcher that dies at any moment of one (FETTLE_LONG=1;
 * at every sixth otherwise), and two that are at it at once (RCV-31, RCV-32, RCV-41). */
#include "unit/core/world/stuck_world.h"

#define CANDIDATES 20
#define SILENT 5      /* each so many-th does not answer */
#define PASS_MS 3000  /* a pass is over by then, with what it waits for */
#define TOO_MANY 1000 /* moments of a pass */

static bool step(struct stuck_world *w)
{
    return fake_step(w->base.world, fake_now_ms(w->base.world) + PASS_MS);
}

static bool is_over(struct stuck_world *w)
{
    bool over = stuck_looks(w) >= CANDIDATES / SILENT;
    for (guint i = 0; over && i < CANDIDATES; i++) {
        g_autofree char *uuid = stuck_uuid(i);
        const struct instance *instance = config_get(w->view, "instance", uuid, NULL);
        over = i % SILENT == 0 || instance->task_state == TASK_NONE;
    }
    return over && stuck_locks(w) == 0;
}

static struct stuck_world *fresh(void)
{
    struct stuck_world *w = stuck_world_new(CANDIDATES, true);
    w->silent = SILENT;
    stuck_watcher_start(w, 0);
    return w;
}

/* So many messages and timers there are until a pass is over. */
static guint count_moments(void)
{
    struct stuck_world *w = fresh();
    guint moments = 0;
    for (; moments < TOO_MANY && !is_over(w); moments++)
        g_assert_true(step(w));
    stuck_world_free(w);
    return moments;
}

/* The watcher dies after so many of them; the next one ends its pass. */
static void die_at(guint moment)
{
    struct stuck_world *w = fresh();
    for (guint i = 0; i < moment; i++)
        step(w);
    guint64 looks = stuck_looks(w);
    stuck_watcher_kill(w, 0);
    stuck_watcher_start(w, 1);
    fake_advance(w->base.world, PASS_MS);
    stuck_check_told(w);
    g_assert_cmpuint(stuck_looks(w), >=, MAX(looks, CANDIDATES / SILENT));
    g_assert_cmpuint(stuck_looks(w), <=, 2 * CANDIDATES / SILENT);
    stuck_watcher_kill(w, 1);
    fake_advance(w->base.world, 100);
    g_assert_cmpuint(stuck_locks(w), ==, 0);
    stuck_world_free(w);
}

static void test_dies(void)
{
    guint moments = count_moments();
    g_test_message("%u moments", moments);
    g_assert_cmpuint(moments, >, 10);
    g_assert_cmpuint(moments, <, TOO_MANY);
    const guint stride = g_strcmp0(g_getenv("FETTLE_LONG"), "1") == 0 ? 1 : 6;
    for (guint moment = 0; moment <= moments; moment += stride)
        die_at(moment);
}

/* Two passes over the same store, whose messages overtake each other. */
static void both(guint count, guint64 seed)
{
    struct stuck_world *w = stuck_world_new(count, true);
    w->random = seed;
    stuck_watcher_start(w, 0);
    stuck_watcher_start(w, 1);
    fake_advance(w->base.world, 5 * PASS_MS);
    stuck_check_told(w);
    stuck_world_free(w);
}

static void test_two(void)
{
    both(1000, 1);
    for (guint64 seed = 2; seed < 22; seed++)
        both(20, seed);
}

/* --- a host that hangs --- */

#define HUNG 500
#define LOOKS 6
#define LOOK_MS (60 * 1000 + LIMIT_COLLECT_WAIT_MS) /* from one to the next */

static guint count_stuck(struct stuck_world *w, bool hung)
{
    guint count = 0;
    stuck_look(w);
    for (guint i = 0; i < w->count; i++) {
        g_autofree char *uuid = stuck_uuid(i);
        const struct instance *instance = config_get(w->view, "instance", uuid, NULL);
        count += (i % 3 == 2) == hung && instance->task_state != TASK_NONE;
    }
    return count;
}

static struct stuck_world *one_hangs(guint each)
{
    struct stuck_world *w = stuck_world_new(3 * each, true);
    stuck_hang(w);
    stuck_watcher_start(w, 0);
    fake_advance(w->base.world, LIMIT_COLLECT_WAIT_MS + PASS_MS);
    g_assert_cmpuint(count_stuck(w, false), ==, 0);
    g_assert_cmpuint(count_stuck(w, true), ==, each);
    return w;
}

/* All others are done in one pass, and each of its own is in ERROR right after the last look. */
static void test_hung(void)
{
    struct stuck_world *w = one_hangs(HUNG);
    for (guint look = 1; look < LOOKS; look++) {
        g_assert_cmpuint(stuck_looks(w), ==, HUNG * look);
        g_assert_cmpuint(count_stuck(w, true), ==, HUNG);
        fake_advance(w->base.world, LOOK_MS);
    }
    g_assert_cmpuint(count_stuck(w, true), ==, 0);
    g_assert_cmpuint(config_count(w->view, "fault"), ==, HUNG);
    g_assert_cmpuint(config_count(w->view, "stuck"), ==, 0);
    stuck_world_free(w);
}

/* More than hosts are asked about at once: a pass of several rounds waits for it in one. */
static void test_hung_rounds(void)
{
    stuck_world_free(one_hangs(LIMIT_COLLECT + 10));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recovery/dies-at-any-moment#RCV-31,RCV-41", test_dies);
    g_test_add_func("/recovery/two-over-a-thousand#RCV-32,SAF-80", test_two);
    g_test_add_func("/recovery/one-host-hangs#RCV-36,RCV-39,RCV-41", test_hung);
    g_test_add_func("/recovery/one-host-hangs-for-rounds#RCV-41", test_hung_rounds);
    return g_test_run();
}
