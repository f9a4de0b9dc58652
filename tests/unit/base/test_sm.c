/* Tests of base/sm.h: edges, names, the line that each move writes, and what happens off the edges.
 */
#include "base/sm.h"

enum { QUEUED, RUNNING, DONE, STATE_COUNT };

static const struct sm_state states[STATE_COUNT] = {
    [QUEUED] = {"queued", SM_TO(RUNNING) | SM_TO(DONE), false},
    [RUNNING] = {"running", SM_TO(DONE), false},
    [DONE] = {"done", 0, true},
};
static const struct sm machine = {"job", states, STATE_COUNT};

static void sink(const char *line, void *ctx)
{
    g_string_append_printf(ctx, "%s\n", line);
}

static void test_moves(void)
{
    g_autoptr(GString) lines = g_string_new(NULL);
    sm_set_sink(sink, lines);
    unsigned state = QUEUED;
    sm_move(&machine, "17", &state, RUNNING, "locks granted");
    g_assert_cmpuint(state, ==, RUNNING);
    sm_move(&machine, "17", &state, DONE, NULL);
    sm_set_sink(NULL, NULL);
    g_assert_cmpstr(lines->str, ==,
                    "job 17: queued -> running (locks granted)\njob 17: running -> done\n");
}

static void test_may_move(void)
{
    g_assert_true(sm_may_move(&machine, QUEUED, DONE));
    g_assert_false(sm_may_move(&machine, DONE, QUEUED));
    g_assert_false(sm_may_move(&machine, QUEUED, QUEUED));
    g_assert_false(sm_may_move(&machine, STATE_COUNT, DONE));
    g_assert_false(sm_may_move(&machine, QUEUED, STATE_COUNT));
}

static void test_forbidden(void)
{
    if (g_test_subprocess()) {
        unsigned state = DONE;
        sm_move(&machine, "17", &state, RUNNING, NULL);
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*job 17: may not move from done to running*");
}

static void test_names(void)
{
    unsigned state = 99;
    g_assert_cmpstr(sm_name(&machine, RUNNING), ==, "running");
    g_assert_cmpstr(sm_name(&machine, STATE_COUNT), ==, "(no state)");
    g_assert_true(sm_parse(&machine, "done", &state));
    g_assert_cmpuint(state, ==, DONE);
    g_assert_false(sm_parse(&machine, "Done", &state));
    g_assert_false(sm_parse(&machine, NULL, &state));
    g_assert_cmpuint(state, ==, DONE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sm/moves", test_moves);
    g_test_add_func("/sm/may-move", test_may_move);
    g_test_add_func("/sm/forbidden", test_forbidden);
    g_test_add_func("/sm/names", test_names);
    return g_test_run();
}
