/* Filters as people write them: what each becomes, and what is said of a bad one. */
#include "cli/filter_text.h"

static void becomes(const char *text, const char *expected)
{
    g_autoptr(GError) error = NULL;
    json_autoptr filter = filter_text_parse(text, &error);
    g_assert_no_error(error);
    g_autofree char *said = json_to_text(filter);
    g_assert_cmpstr(said, ==, expected);
}

static void refused(const char *text, const char *expected, const char *where)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(filter_text_parse(text, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_autofree char *message = g_strdup_printf(
        "--filter: expected %s %s; as in: status == \"running\" and not tags", expected, where);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_conditions(void)
{
    becomes("status == \"running\"", "[\"==\",\"status\",\"running\"]");
    becomes("status='a \\'b\\' c\\d'", "[\"=\",\"status\",\"a 'b' c\\\\d\"]");
    becomes("be/memory>=512", "[\">=\",\"be/memory\",512]");
    becomes("disk.count != -1", "[\"!=\",\"disk.count\",-1]");
    becomes("load < 0.5", "[\"<\",\"load\",0.5]");
    becomes("admin_up == true", "[\"==\",\"admin_up\",true]");
    becomes("name =~ \"^web[0-9]+$\"", "[\"=~\",\"name\",\"^web[0-9]+$\"]");
    becomes("name !~ 'x'", "[\"!\",[\"=~\",\"name\",\"x\"]]");
    becomes("'web' in tags", "[\"=[]\",\"tags\",\"web\"]");
    becomes("\"web\" not in tags", "[\"!\",[\"=[]\",\"tags\",\"web\"]]");
    becomes(" tags ", "[\"?\",\"tags\"]");
    becomes("not tags", "[\"!\",[\"?\",\"tags\"]]");
    becomes("notes", "[\"?\",\"notes\"]");
}

static void test_combined(void)
{
    becomes("a and b or not c and d",
            "[\"|\",[\"&\",[\"?\",\"a\"],[\"?\",\"b\"]],[\"&\",[\"!\",[\"?\",\"c\"]],[\"?\",\"d\"]]"
            "]");
    becomes("a and (b or c == 1)", "[\"&\",[\"?\",\"a\"],[\"|\",[\"?\",\"b\"],[\"==\",\"c\",1]]]");
    becomes("not (a or b)", "[\"!\",[\"|\",[\"?\",\"a\"],[\"?\",\"b\"]]]");
    becomes("[\"|\", [\"?\", \"a\"]]", "[\"|\",[\"?\",\"a\"]]");
}

static void test_refused(void)
{
    static const char value[] = "a text in quotes, a number, true or false";
    refused("", "the name of a field", "at the end");
    refused("a ==", value, "at the end");
    refused("a == running", value, "at: running");
    refused("a == \"running", "the other quote", "at the end");
    refused("a b", "and, or, or the end", "at: b");
    refused("(a", "and, or, or a closing bracket", "at the end");
    refused("a and", "the name of a field", "at the end");
    refused("'x' of tags", "in, and a field that is a list", "at: of tags");
    refused("5 == a", "the name of a field", "at: 5 == a");
    g_autofree char *deep = g_strnfill(LIMIT_FILTER_DEPTH + 1, '(');
    g_autoptr(GError) error = NULL;
    g_assert_null(filter_text_parse(deep, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_clear_error(&error);
    g_assert_null(filter_text_parse("[\"|\"", &error));
    g_assert_true(g_str_has_prefix(error->message, "--filter: "));
}

static void test_both(void)
{
    json_autoptr both = filter_text_both(json_make("[ss]", "?", "a"), json_make("[ss]", "?", "b"));
    json_autoptr one = filter_text_both(NULL, json_make("[ss]", "?", "b"));
    g_autofree char *said = json_to_text(both);
    g_autofree char *alone = json_to_text(one);
    g_assert_cmpstr(said, ==, "[\"&\",[\"?\",\"a\"],[\"?\",\"b\"]]");
    g_assert_cmpstr(alone, ==, "[\"?\",\"b\"]");
    g_assert_null(filter_text_both(NULL, NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/filter-text/conditions", test_conditions);
    g_test_add_func("/filter-text/combined", test_combined);
    g_test_add_func("/filter-text/refused", test_refused);
    g_test_add_func("/filter-text/both", test_both);
    return g_test_run();
}
