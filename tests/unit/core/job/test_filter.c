/* Filters of queries: every operator, every refusal with its path, every limit. */
#include "core/job/filter.h"

#include <string.h>

/* A row is a JSON object; a field's handle is its name. */
static const void *resolve(const char *name, void *data)
{
    return json_object_get(data, name) == NULL ? NULL : g_intern_string(name);
}

static json_t *value(const void *field, void *data)
{
    return json_incref(json_object_get(data, field));
}

static json_t *row(void)
{
    return json_make("{ss, si, sf, sb, sb, s[ss], ss, s[], sn}", "name", "web1", "memory", 512,
                     "load", 0.5, "up", 1, "offline", 0, "tags", "a", "b", "os", "", "disks",
                     "holder");
}

static json_t *parse_text(const char *text)
{
    json_error_t problem;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &problem);

    g_assert_nonnull(json);
    return json;
}

static void check(const char *text, bool expected)
{
    json_autoptr object = row();
    json_autoptr json = parse_text(text);
    g_autoptr(GError) error = NULL;
    struct filter *filter = filter_parse(json, resolve, object, &error);

    g_assert_no_error(error);
    if (filter_match(filter, value, object, NULL) != expected)
        g_error("%s: expected %s", text, expected ? "a match" : "no match");
    filter_free(filter);
}

static void refuse(const char *text, enum fettle_error code, const char *message)
{
    json_autoptr object = row();
    json_autoptr json = parse_text(text);
    g_autoptr(GError) error = NULL;

    g_assert_null(filter_parse(json, resolve, object, &error));
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_operators(void)
{
    check("null", true);
    check("[\"=\", \"name\", \"web1\"]", true);
    check("[\"==\", \"name\", \"web1\"]", true);
    check("[\"==\", \"name\", \"web2\"]", false);
    check("[\"!=\", \"name\", \"web2\"]", true);
    check("[\"!=\", \"name\", \"web1\"]", false);
    check("[\"<\", \"memory\", 513]", true);
    check("[\"<\", \"memory\", 512]", false);
    check("[\"<=\", \"memory\", 512]", true);
    check("[\">\", \"memory\", 511.5]", true);
    check("[\">=\", \"load\", 1]", false);
    check("[\">\", \"name\", \"web\"]", true);
    check("[\"=\", \"up\", true]", true);
    check("[\"=[]\", \"tags\", \"b\"]", true);
    check("[\"=[]\", \"tags\", \"c\"]", false);
    check("[\"=~\", \"name\", \"^web[0-9]+$\"]", true);
    check("[\"=~\", \"name\", \"eb\"]", true);
    check("[\"=~\", \"name\", \"^eb\"]", false);
}

static void test_truth(void)
{
    check("[\"?\", \"up\"]", true);
    check("[\"?\", \"offline\"]", false);
    check("[\"?\", \"memory\"]", true);
    check("[\"?\", \"tags\"]", true);
    check("[\"?\", \"os\"]", false);
    check("[\"?\", \"disks\"]", false);
    check("[\"?\", \"holder\"]", false);
    check("[\"!\", [\"?\", \"holder\"]]", true);
}

static void test_combinations(void)
{
    check("[\"&\"]", true);
    check("[\"|\"]", false);
    check("[\"|\", [\"=\", \"name\", \"x\"], [\"=\", \"name\", \"web1\"]]", true);
    check("[\"&\", [\"?\", \"up\"], [\"?\", \"offline\"]]", false);
    check("[\"&\", [\"?\", \"up\"], [\"!\", [\"?\", \"offline\"]]]", true);
}

/* Values of different kinds are never equal, less or greater; nor is what has no value. */
static void test_kinds(void)
{
    check("[\"=\", \"memory\", \"512\"]", false);
    check("[\"!=\", \"memory\", \"512\"]", true);
    check("[\"<\", \"name\", 5]", false);
    check("[\">\", \"name\", 5]", false);
    check("[\"=\", \"holder\", \"\"]", false);
    check("[\"<\", \"holder\", 1]", false);
    check("[\"=~\", \"memory\", \"5\"]", false);
    check("[\"=[]\", \"name\", \"web1\"]", false);
}

static void test_refusals(void)
{
    refuse("{}", FETTLE_ERROR_WRONG_INPUT, "filter: must be a list that begins with an operator");
    refuse("[]", FETTLE_ERROR_WRONG_INPUT, "filter: must be a list that begins with an operator");
    refuse("[\"~\", \"name\", 1]", FETTLE_ERROR_WRONG_INPUT, "filter[0]: unknown operator \"~\"");
    refuse("[\"=\", \"nosuch\", 1]", FETTLE_ERROR_WRONG_INPUT,
           "filter[1]: unknown field \"nosuch\"");
    refuse("[\"=\", 1, 1]", FETTLE_ERROR_WRONG_INPUT, "filter[1]: must be the name of a field");
    refuse("[\"=\", \"name\"]", FETTLE_ERROR_WRONG_INPUT,
           "filter: operator \"=\" takes 2 operands, got 1");
    refuse("[\"!\"]", FETTLE_ERROR_WRONG_INPUT, "filter: operator \"!\" takes 1 operands, got 0");
    refuse("[\"=\", \"name\", []]", FETTLE_ERROR_WRONG_INPUT,
           "filter[2]: must be a text, a number or a boolean");
    refuse("[\"|\", [\"?\", \"up\"], [\"&\", [\"?\", \"nosuch\"]]]", FETTLE_ERROR_WRONG_INPUT,
           "filter[2][1][1]: unknown field \"nosuch\"");
    refuse("[\"=~\", \"name\", 5]", FETTLE_ERROR_WRONG_INPUT,
           "filter[2]: must be a regular expression of at most 1024 characters");
}

static void test_bad_regex(void)
{
    json_autoptr object = row();
    json_autoptr json = json_make("[sss]", "=~", "name", "(");
    g_autoptr(GError) error = NULL;

    g_assert_null(filter_parse(json, resolve, object, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_true(g_str_has_prefix(error->message, "filter[2]: is no regular expression: "));
}

/* A pattern that would take ages ends at its step limit, as no match. */
static void test_slow_regex(void)
{
    g_autofree char *name = g_strnfill(64, 'a');
    json_autoptr object = json_make("{ss}", "name", name);
    json_autoptr json = json_make("[sss]", "=~", "name", "^(a+)+$x");
    g_autoptr(GError) error = NULL;
    struct filter *filter = filter_parse(json, resolve, object, &error);

    g_assert_no_error(error);
    g_assert_false(filter_match(filter, value, object, NULL));
    filter_free(filter);
}

static void test_limits(void)
{
    json_autoptr deep = json_make("[ss]", "?", "up");
    json_autoptr wide = json_make("[s]", "|");
    json_autoptr object = row();
    g_autoptr(GError) error = NULL;

    for (int i = 1; i <= LIMIT_FILTER_DEPTH; i++) {
        json_t *outer = json_make("[sO]", "!", deep);

        json_decref(deep);
        deep = outer;
    }
    g_assert_null(filter_parse(deep, resolve, object, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    g_assert_cmpstr(error->message, ==, "filter: may be nested 16 deep and have 4096 terms");
    g_clear_error(&error);
    for (int i = 0; i < LIMIT_FILTER_TERMS; i++)
        json_array_append_new(wide, json_make("[ss]", "?", "up"));
    g_assert_null(filter_parse(wide, resolve, object, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
}

static void count_field(const void *field, void *data)
{
    g_hash_table_add(data, (gpointer)field);
}

static void test_fields(void)
{
    json_autoptr object = row();
    json_autoptr json = parse_text("[\"|\", [\"?\", \"up\"], [\"!\", [\"=\", \"name\", \"x\"]]]");
    g_autoptr(GHashTable) named = g_hash_table_new(g_str_hash, g_str_equal);
    struct filter *filter = filter_parse(json, resolve, object, NULL);

    filter_fields(filter, count_field, named);
    filter_fields(NULL, count_field, named);
    g_assert_cmpuint(g_hash_table_size(named), ==, 2);
    g_assert_true(g_hash_table_contains(named, "up"));
    g_assert_true(g_hash_table_contains(named, "name"));
    filter_free(filter);
}

static void bounds(const char *text, gint64 least, gint64 most)
{
    json_autoptr object = row();
    json_autoptr json = parse_text(text);
    struct filter *filter = filter_parse(json, resolve, object, NULL);
    gint64 low = 0, high = 1000;

    filter_bounds(filter, g_intern_string("memory"), &low, &high);
    filter_free(filter);
    if (low != least || high != most)
        g_error("%s: from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, text, low, high);
}

static void test_bounds(void)
{
    bounds("null", 0, 1000);
    bounds("[\">\", \"memory\", 5]", 6, 1000);
    bounds("[\"<\", \"memory\", 5]", 0, 4);
    bounds("[\"&\", [\">=\", \"memory\", 5], [\"<=\", \"memory\", 9], [\"?\", \"up\"]]", 5, 9);
    bounds("[\"|\", [\"=\", \"memory\", 5], [\"=\", \"memory\", 9]]", 5, 9);
    bounds("[\"|\", [\"=\", \"memory\", 5], [\"?\", \"up\"]]", 0, 1000);
    bounds("[\"&\", [\"|\", [\"<\", \"memory\", 5], [\">\", \"memory\", 2000]], [\">\", "
           "\"memory\", 1]]",
           2, 4);
    bounds("[\"!\", [\"<\", \"memory\", 5]]", 0, 1000);
    bounds("[\"!=\", \"memory\", 5]", 0, 1000);
    bounds("[\">\", \"memory\", 5.5]", 0, 1000);
    bounds("[\">\", \"load\", 5]", 0, 1000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/filter/operators#LUX-03", test_operators);
    g_test_add_func("/filter/truth#LUX-03", test_truth);
    g_test_add_func("/filter/combinations#LUX-03", test_combinations);
    g_test_add_func("/filter/kinds#LUX-03", test_kinds);
    g_test_add_func("/filter/refusals", test_refusals);
    g_test_add_func("/filter/bad-regex", test_bad_regex);
    g_test_add_func("/filter/slow-regex", test_slow_regex);
    g_test_add_func("/filter/limits", test_limits);
    g_test_add_func("/filter/fields", test_fields);
    g_test_add_func("/filter/bounds", test_bounds);
    return g_test_run();
}
