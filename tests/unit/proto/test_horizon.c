/* How far ahead numbers of a mastership may be (SAF-103): no honest clock meets it.
 * proto/horizon.h. */
#include "proto/horizon.h"

#include "base/limits.h"

#define YEAR_S (365ull * 86400)

static gint64 years_from_build(gint64 years)
{
    guint64 build_s = horizon_of(HORIZON_HISTORY, 0, 0) - LIMIT_HORIZON_S;
    return ((gint64)build_s + years * (gint64)YEAR_S) * G_USEC_PER_SEC;
}

/* A host whose clock stands in 1970 goes by the date of its build. */
static void test_1970(void)
{
    guint64 now_s = (guint64)(years_from_build(3) / G_USEC_PER_SEC); /* of a host that is fast */
    g_assert_true(horizon_check(HORIZON_HISTORY, now_s, 0, 0, NULL));
    g_assert_true(horizon_check(HORIZON_EPOCH, now_s * 1000, 0, -1, NULL));
    g_assert_true(horizon_check(HORIZON_SERIAL, now_s * 1000000, 0, 0, NULL));
}

static void test_beyond(void)
{
    g_autoptr(GError) error = NULL;
    gint64 now = years_from_build(0);
    guint64 limit_s = horizon_of(HORIZON_HISTORY, 0, now);
    g_assert_true(horizon_check(HORIZON_HISTORY, limit_s, 0, now, NULL));
    g_assert_false(horizon_check(HORIZON_HISTORY, limit_s + 1, 0, now, NULL));
    g_assert_false(horizon_check(HORIZON_EPOCH, limit_s * 1000 + 1, 0, now, NULL));
    g_assert_false(horizon_check(HORIZON_HISTORY, 9007199254740000, 0, now, &error));
    g_assert_true(g_error_matches(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT));
    g_assert_cmpstr(error->message, ==, "history 9007199254740000 is beyond any clock");
}

/* Whatever is stored already: the next ones count, so a cluster is never stuck for its numbers. */
static void test_stored(void)
{
    guint64 stored = 9007199254740000;
    g_assert_true(horizon_check(HORIZON_HISTORY, stored + 900, stored, 0, NULL));
    g_assert_true(horizon_check(HORIZON_SERIAL, stored + LIMIT_HORIZON_STORED, stored, 0, NULL));
    g_assert_false(
        horizon_check(HORIZON_SERIAL, stored + LIMIT_HORIZON_STORED + 1, stored, 0, NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/horizon/1970", test_1970);
    g_test_add_func("/horizon/beyond", test_beyond);
    g_test_add_func("/horizon/stored", test_stored);
    return g_test_run();
}
