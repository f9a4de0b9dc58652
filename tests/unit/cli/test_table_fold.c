/* Cells that are folded within their column: cli/table_fold.c. */
#include "cli/table_fold.h"

#include <string.h>

static char *folded(const char *text, int width, bool title)
{
    GString *lines = g_string_new(NULL);
    while (*text != '\0') {
        const char *next;
        size_t bytes = table_fold_line(text, width, title, &next);
        g_assert_true(next > text);
        g_string_append_len(lines, text, (gssize)bytes);
        g_string_append_c(lines, '|');
        text = next;
    }
    return g_string_free(lines, FALSE);
}

static void check(const char *text, int width, bool title, const char *expected)
{
    g_autofree char *lines = folded(text, width, title);
    g_assert_cmpstr(lines, ==, expected);
}

static void test_lines(void)
{
    check("failover, by a tag of the cluster", 12, false, "failover, by|a tag of the|cluster|");
    check("2026-11-23 18:39:28", 18, false, "2026-11-23|18:39:28|");
    check("8,9,10", 4, false, "8,9,|10|");
    check("node1", 3, false, "node1|"); /* names are never broken */
    check("größer als breit", 6, false, "größer|als|breit|");
    check("two  spaces ", 20, false, "two  spaces|");
    check("ConfigMaxMem", 9, true, "ConfigMax|Mem|");
    check("ConfigMaxMem", 9, false, "ConfigMaxMem|");
    check("Secondary_Nodes", 10, true, "Secondary_|Nodes|");
    check("ADMIN_down", 6, false, "ADMIN_down|"); /* nor are words of state */
    check("", 5, false, "");
    const char *next;
    g_assert_cmpuint(table_fold_line("", 5, false, &next), ==, 0);
    g_assert_cmpstr(next, ==, "");
}

static void test_least(void)
{
    g_assert_cmpint(table_fold_least("failover, by a tag", false), ==, 9);
    g_assert_cmpint(table_fold_least("ReplicaState", true), ==, 7);
    g_assert_cmpint(table_fold_least("ReplicaState", false), ==, 12);
    g_assert_cmpint(table_fold_least("", false), ==, 0);
}

static void test_columns(void)
{
    int widths[] = {10, 30, 19}, least[] = {10, 5, 10};
    g_assert_true(table_fold_columns(widths, least, 3, 50)); /* the widest gives way first */
    g_assert_cmpint(widths[0], ==, 10);
    g_assert_cmpint(widths[1] + widths[2], ==, 38);
    g_assert_cmpint(widths[2], ==, 19);
    g_assert_true(table_fold_columns(widths, least, 3, 27));
    g_assert_cmpint(widths[1], ==, 5);
    g_assert_cmpint(widths[2], ==, 10);
    g_assert_false(table_fold_columns(widths, least, 3, 26));
    g_assert_cmpint(widths[2], ==, 10);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fold/lines", test_lines);
    g_test_add_func("/fold/least", test_least);
    g_test_add_func("/fold/columns", test_columns);
    return g_test_run();
}
