/* Tests of base/time_text.h: times as people type them. */
#include "base/time_text.h"

#define NOW 1800000000

static void lasts(const char *text, gint64 expected)
{
    gint64 ms = -1;
    g_assert_true(time_text_duration(text, 1000, &ms));
    g_assert_cmpint(ms, ==, expected);
}

static void test_durations(void)
{
    gint64 ms;
    lasts("0", 0);
    lasts("90", 90000);
    lasts("90s", 90000);
    lasts("300ms", 300);
    lasts("10m", 600000);
    lasts("10min", 600000);
    lasts("1h30m", 5400000);
    lasts("1.5h", 5400000);
    lasts("2d", 172800000);
    lasts("1w", 604800000);
    g_assert_true(time_text_duration("250", 1, &ms));
    g_assert_cmpint(ms, ==, 250);
    static const char *const none[] = {"",         "h",    "-1h",  "2 h",   "2x",
                                       "2h3",      "1e3s", "2H",   "1..5h", "999w9999w",
                                       "tomorrow", "1h-",  "0.1ms"};
    for (size_t i = 0; i < G_N_ELEMENTS(none); i++)
        if (time_text_duration(none[i], 1000, &ms))
            g_error("\"%s\" was taken for %" G_GINT64_FORMAT " ms", none[i], ms);
}

static void comes(const char *text, gint64 expected)
{
    gint64 seconds = -1;
    g_assert_true(time_text_moment(text, NOW, &seconds));
    g_assert_cmpint(seconds, ==, expected);
}

static void test_moments(void)
{
    gint64 seconds;
    comes("1900000000", 1900000000);
    comes("0", 0);
    comes("2h", NOW + 7200);
    comes("2026-12-01T08:00:00Z", 1796112000);
    comes("2026-12-01 08:00", 1796112000);
    comes("2026-12-01T08:00", 1796112000);
    comes("2026-12-01 08:00:30", 1796112030);
    comes("2026-12-01", 1796083200);
    static const char *const none[] = {"",   "tomorrow 8:00",    "08:00",    "2026-13-01",
                                       "-5", "2026-12-01 25:00", "1.12.2026"};
    for (size_t i = 0; i < G_N_ELEMENTS(none); i++)
        g_assert_false(time_text_moment(none[i], NOW, &seconds));
}

static void is_typed(gint64 ms, const char *expected)
{
    g_autofree char *text = time_text_of(ms);
    g_assert_cmpstr(text, ==, expected);
}

static void test_texts(void)
{
    is_typed(0, "0");
    is_typed(300, "300ms");
    is_typed(120000, "2m");
    is_typed(5400000, "90m");
    is_typed(3600000, "1h");
    is_typed(604800000, "1w");
}

int main(int argc, char **argv)
{
    g_setenv("TZ", "UTC", TRUE);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/time_text/durations", test_durations);
    g_test_add_func("/time_text/moments", test_moments);
    g_test_add_func("/time_text/texts", test_texts);
    return g_test_run();
}
