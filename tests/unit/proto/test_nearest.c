/* Tests of proto/nearest.h: distances, and what is offered and what is not. */
#include "proto/nearest.h"

static void test_distance(void)
{
    g_assert_cmpuint(nearest_distance("", ""), ==, 0);
    g_assert_cmpuint(nearest_distance("list", "list"), ==, 0);
    g_assert_cmpuint(nearest_distance("", "list"), ==, 4);
    g_assert_cmpuint(nearest_distance("list", ""), ==, 4);
    g_assert_cmpuint(nearest_distance("lst", "list"), ==, 1);
    g_assert_cmpuint(nearest_distance("listt", "list"), ==, 1);
    g_assert_cmpuint(nearest_distance("lost", "list"), ==, 1);
    g_assert_cmpuint(nearest_distance("lits", "list"), ==, 1);
    g_assert_cmpuint(nearest_distance("kitten", "sitting"), ==, 3);
    g_assert_cmpuint(nearest_distance("migrate", "evacuate"), ==, 5);
}

static void test_longer_than_the_table(void)
{
    g_autofree char *a = g_strnfill(1000, 'a'), *b = g_strnfill(2000, 'b');
    g_assert_cmpuint(nearest_distance(a, b), ==, 63);
    g_assert_cmpuint(nearest_distance(a, a), ==, 0);
}

static void test_word(void)
{
    static const char *const verbs[] = {"list", "info", "create", "shutdown", "startup", NULL};
    g_assert_cmpstr(nearest_word("lsit", verbs), ==, "list");
    g_assert_cmpstr(nearest_word("start", verbs), ==, "startup");
    g_assert_cmpstr(nearest_word("crate", verbs), ==, "create");
    g_assert_cmpstr(nearest_word("shutdwn", verbs), ==, "shutdown");
    g_assert_null(nearest_word("bogus", verbs));
    g_assert_null(nearest_word("", verbs));
    g_assert_null(nearest_word("list", (const char *const[]){NULL}));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/nearest/distance", test_distance);
    g_test_add_func("/nearest/longer-than-the-table", test_longer_than_the_table);
    g_test_add_func("/nearest/word", test_word);
    return g_test_run();
}
