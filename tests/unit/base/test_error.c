/* Tests of base/error.h: names on the wire are unique and map both ways, unknown ones stay errors.
 */
#include "base/error.h"

static void test_names(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (int code = 0; code < FETTLE_ERROR_COUNT; code++) {
        g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, code, "x");
        const char *name = fettle_error_name(error);
        g_assert_true(g_hash_table_add(seen, (void *)name));
        g_assert_cmpint((int)fettle_error_from_name(name), ==, code);
        g_assert_cmpint(fettle_error_exit_code(error), >, 0);
        /* Those from 126 on are the shell's; one is taken over with its meaning: ended by Ctrl-C.
         */
        if (code != FETTLE_ERROR_DETACHED)
            g_assert_cmpint(fettle_error_exit_code(error), <, 126);
        g_assert_cmpstr(fettle_error_doc((enum fettle_error)code), !=, "");
    }
}

static void test_foreign(void)
{
    g_autoptr(GError) error = g_error_new_literal(G_FILE_ERROR, G_FILE_ERROR_NOENT, "x");
    g_assert_cmpstr(fettle_error_name(error), ==, "internal_error");
    g_assert_cmpint(fettle_error_exit_code(error), ==, 70);
    g_assert_cmpint(fettle_error_from_name("from_the_future"), ==, FETTLE_ERROR_INTERNAL);
    g_assert_cmpint(fettle_error_from_name(NULL), ==, FETTLE_ERROR_INTERNAL);
}

static void test_set(void)
{
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, NO_RESOURCES, "node2: %d MiB short", 5);
    g_assert_true(fettle_error_is(error, NO_RESOURCES));
    g_assert_cmpstr(error->message, ==, "node2: 5 MiB short");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/error/names", test_names);
    g_test_add_func("/error/foreign", test_foreign);
    g_test_add_func("/error/set", test_set);
    return g_test_run();
}
