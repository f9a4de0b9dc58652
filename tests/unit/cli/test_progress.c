/* Tests of cli/progress.h: rate and time left from the entries' own times, bars of any width,
 * tenths for what is no terminal. */
#include "cli/progress.h"

#include <string.h>

static void take(struct progress *progress, gint64 ms, int done, int total)
{
    json_autoptr entry = json_make("[i, [I, I], s, {ss si si ss}]", 1, (json_int_t)(ms / 1000),
                                   (json_int_t)(ms % 1000 * 1000), "progress", "what", "copy",
                                   "done", done, "total", total, "unit", "MiB");
    g_assert_true(progress_take(progress, entry));
}

static void bar_is(const struct progress *progress, int columns, const char *expected)
{
    g_autofree char *bar = progress_bar(progress, columns);
    g_assert_cmpstr(bar, ==, expected);
    if (strchr(bar, '[') != NULL)
        g_assert_cmpint((int)strlen(bar), <, columns);
}

static void test_bar(void)
{
    struct progress progress = {0};
    take(&progress, 1000, 0, 1000);
    bar_is(&progress, 60, "copy  [.............................]    0 %  0 of 1000 MiB");
    take(&progress, 3000, 200, 1000);
    bar_is(&progress, 80,
           "copy  [#####.....................]   20 %  200 of 1000 MiB  100 MiB/s  8 s left");
    bar_is(&progress, 40, "copy   20 %  200 of 1000 MiB  100 MiB/s  8 s left");
    take(&progress, 11000, 1000, 1000);
    bar_is(&progress, 80,
           "copy  [###################################]  100 %  1000 of 1000 MiB  100 MiB/s");
    progress_clear(&progress);
}

/* The rate is that of the last entries, so a copy that slows down says so. */
static void test_rate(void)
{
    struct progress progress = {0};
    g_assert_cmpfloat(progress_rate(&progress), ==, 0);
    for (int i = 0; i <= 10; i++)
        take(&progress, i * 1000, i * 100, 10000);
    g_assert_cmpfloat(progress_rate(&progress), ==, 100);
    for (int i = 1; i < PROGRESS_SAMPLES; i++)
        take(&progress, 10000 + i * 1000, 1000 + i, 10000);
    g_assert_cmpfloat(progress_rate(&progress), ==, 1);
    for (int i = 0; i < PROGRESS_SAMPLES; i++)
        take(&progress, 60000, 1007, 10000);
    g_assert_cmpfloat(progress_rate(&progress), ==, 0);
    progress_clear(&progress);
}

static void test_tenths(void)
{
    struct progress progress = {0};
    g_autoptr(GString) told = g_string_new(NULL);
    for (int done = 0; done <= 50; done++) {
        take(&progress, done * 10, done, 50);
        g_autofree char *line = progress_tenth(&progress);
        if (line != NULL && (done == 5 || done == 27 || done == 50))
            g_string_append_printf(told, "%s\n", line);
        g_assert_true((line != NULL) == (done > 0 && done % 5 == 0));
    }
    g_assert_cmpstr(told->str, ==, "copy: 10 % (5 of 50 MiB)\ncopy: 100 % (50 of 50 MiB)\n");
    progress_clear(&progress);
}

static void test_no_progress(void)
{
    static const char *const entries[] = {
        "[1, [0, 0], \"message\", \"text\"]",
        "[1, [0, 0], \"progress\", \"text\"]",
        "[1, [0, 0], \"progress\", {\"what\": \"x\", \"done\": 1}]",
        "[1, [0, 0], \"progress\", {\"what\": \"x\", \"done\": -1, \"total\": 5}]",
        "[1, [0, 0], \"progress\", {\"done\": 1, \"total\": 5}]",
        "[]",
    };
    struct progress progress = {0};
    for (size_t i = 0; i < G_N_ELEMENTS(entries); i++) {
        json_autoptr entry = json_loads(entries[i], 0, NULL);
        g_assert_false(progress_take(&progress, entry));
    }
    g_assert_null(progress.what);
}

static void test_time(void)
{
    static const struct {
        guint64 seconds;
        const char *text;
    } rows[] = {{0, "0 s"},          {59, "59 s"},         {60, "1 min 0 s"}, {3599, "59 min 59 s"},
                {3600, "1 h 0 min"}, {90061, "25 h 1 min"}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *text = progress_time(rows[i].seconds);
        g_assert_cmpstr(text, ==, rows[i].text);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/progress/bar", test_bar);
    g_test_add_func("/progress/rate", test_rate);
    g_test_add_func("/progress/tenths", test_tenths);
    g_test_add_func("/progress/no-progress", test_no_progress);
    g_test_add_func("/progress/time", test_time);
    return g_test_run();
}
