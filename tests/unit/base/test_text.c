/*
 * Control characters in texts of others.
 */
#include "base/text.h"

static void shows(void)
{
    static const struct {
        const char *text, *first, *shown;
    } cases[] = {
        {"", NULL, NULL},
        {"plain ~ \\x1b, äöü € 𝄞", NULL, NULL},
        {"a\x1b[2Jb", "\\x1b", "a\\x1b[2Jb"},
        {"one\ntwo\r\tthree", "\\n", "one\\ntwo\\r\\tthree"},
        {"\x01\x7f", "\\x01", "\\x01\\x7f"},
        {"é\xc2\x9b"
         "31m",
         "\\x9b", "é\\x9b31m"},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "\\x80", "\\x80\\x9f\xc2\xa0"},
        {"a\u202eb\u2066c\u2069\u202a", "\\u202e", "a\\u202eb\\u2066c\\u2069\\u202a"},
        {"\u2029\u202f\u2065\u206a", NULL, NULL},
        {"\x9b"
         "31m",
         "\\x9b",
         "\\x9b"
         "31m"},
        {"cut \xc3", "\\xc3", "cut \\xc3"},
        {"\xe2\x80", "\\xe2", "\\xe2\\x80"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *first = text_control(cases[i].text);
        g_autofree char *shown = text_shown(cases[i].text);
        g_assert_cmpstr(first, ==, cases[i].first);
        g_assert_cmpstr(shown, ==, cases[i].shown);
    }
}

/* What is shown once is not shown again. */
static void shows_once(void)
{
    g_autofree char *once = text_shown("\x1b\n\u202e\xff");
    g_assert_nonnull(once);
    g_assert_null(text_shown(once));
}

static void bits(void)
{
    static const struct {
        guint64 bits;
        const char *text;
    } cases[] = {{0, ""}, {1, "0"}, {5, "0, 2"}, {G_GUINT64_CONSTANT(1) << 63, "63"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = text_bits(cases[i].bits);
        g_assert_cmpstr(text, ==, cases[i].text);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/text/shows", shows);
    g_test_add_func("/text/shows-once", shows_once);
    g_test_add_func("/text/bits", bits);
    return g_test_run();
}
