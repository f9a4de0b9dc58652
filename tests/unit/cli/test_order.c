/* Order, limits and patterns of lists: src/cli/order.h, pattern.h, columns.h. */
#include "cli/columns.h"
#include "cli/order.h"
#include "cli/pattern.h"

#include <string.h>

static void test_names(void)
{
    static const char *const rising[] = {"a",     "db1",  "db2",   "db10",  "web",
                                         "web1a", "web2", "web10", "web10b"};
    for (size_t i = 0; i < G_N_ELEMENTS(rising); i++)
        for (size_t k = 0; k < G_N_ELEMENTS(rising); k++)
            g_assert_cmpint(order_compare_names(rising[i], rising[k]), ==, (i > k) - (i < k));
}

/* The names of these rows, sorted by those words. */
static void sorts_as(const char *what, const char *const *words, const char *expected,
                     size_t expected_left)
{
    char *argv[8] = {NULL};
    int argc = 0;
    order_auto struct order order = {0};
    g_autoptr(GError) error = NULL;
    for (; words[argc] != NULL; argc++)
        argv[argc] = (char *)words[argc];
    g_assert_true(order_take(&order, &argc, argv, what, &error));
    g_assert_no_error(error);
    g_assert_cmpint(argc, ==, 0);
    json_autoptr rows = json_make("[[[is][ii][is]][[is][ii][is]][[is][ii][is]][[is][in][is]]]", 0,
                                  "web10", 0, 512, 0, "b", 0, "web2", 0, 512, 0, "a", 0, "db", 0,
                                  2048, 0, "c", 0, "away", 3, 0, "d");
    size_t left;
    size_t at = order.keys != NULL && strcmp(order.keys[0], "be/memory") == 0 ? 1 : 0;
    json_autoptr sorted = order_rows(&order, rows, at, &left);
    g_autoptr(GString) names = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(sorted); i++)
        g_string_append_printf(names, "%s%s", i > 0 ? " " : "",
                               cli_cell_string(json_array_get(sorted, i), 0));
    g_assert_cmpstr(names->str, ==, expected);
    g_assert_cmpint((gint64)left, ==, (gint64)expected_left);
}

static void sorts(const char *const *words, const char *expected, size_t expected_left)
{
    sorts_as("instance", words, expected, expected_left);
}

static void test_orders(void)
{
    sorts((const char *const[]){NULL}, "web10 web2 db away", 0);
    sorts((const char *const[]){"--sort", "name", NULL}, "away db web2 web10", 0);
    sorts((const char *const[]){"--sort=-name", NULL}, "web10 web2 db away", 0);
    sorts((const char *const[]){"--sort", "memory", NULL}, "web10 web2 db away", 0);
    sorts((const char *const[]){"--sort", "-be/memory", NULL}, "db web10 web2 away", 0);
    sorts((const char *const[]){"--sort", "name", "--limit", "2", NULL}, "away db", 2);
    sorts((const char *const[]){"--limit=9", NULL}, "web10 web2 db away", 0);
    sorts((const char *const[]){"--limit=1", NULL}, "web10", 3);
    /* What happens one after the other comes the oldest first, and the newest is wanted. */
    sorts_as("job", (const char *const[]){"--limit=2", NULL}, "db away", 2);
    sorts_as("decision", (const char *const[]){"--limit=1", NULL}, "away", 3);
    sorts_as("job", (const char *const[]){"--limit=9", NULL}, "web10 web2 db away", 0);
    sorts_as("job", (const char *const[]){"--sort=name", "--limit=1", NULL}, "away", 3);
}

static void test_bad_limits(void)
{
    static const char *const bad[] = {"0", "-1", "x", ""};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        char *argv[] = {(char *)"--limit", (char *)bad[i], NULL};
        int argc = 2;
        order_auto struct order order = {0};
        g_autoptr(GError) error = NULL;
        g_autofree char *expected =
            g_strdup_printf("--limit: must be a number from 1 on, not \"%s\"", bad[i]);
        g_assert_false(order_take(&order, &argc, argv, "job", &error));
        g_assert_cmpstr(error->message, ==, expected);
    }
}

static void matches(const char *pattern, const char *name, bool expected)
{
    g_autofree char *regex = pattern_regex(pattern);
    g_assert_true(pattern_is(pattern));
    if (g_regex_match_simple(regex, name, 0, 0) != expected)
        g_error("%s (%s): %s", pattern, regex, name);
}

static void test_patterns(void)
{
    matches("web*", "web", true);
    matches("web*", "web10.example", true);
    matches("web*", "aweb1", false);
    matches("*web", "aweb", true);
    matches("db?", "db1", true);
    matches("db?", "db10", false);
    matches("n[13]", "n3", true);
    matches("n[1-3]", "n2", true);
    matches("n[1-3]", "n4", false);
    matches("n[!1-3]", "n4", true);
    matches("n[!1-3]", "n2", false);
    matches("a.b*", "axb1", false);
    matches("a.b*", "a.b1", true);
    matches("n[", "n[", true);
    matches("n[]", "n[]", true);
    matches("n[.]", "nx", false);
    matches("\xc3\xbc?", "\xc3\xbc\xe2\x82\xac", true);
    matches("[\xc3\xbc]*", "\xc3\xbcx", true);
    g_assert_false(pattern_is("web1.example"));
}

/* What people say stands for one field, and hides none of Ganeti's. */
static void test_columns(void)
{
    static const struct {
        const char *what, *name;
    } fields[] = {
#define MEMBER(resource, record, name, title, kind, member, doc) {#resource, name},
#define GETTER(resource, name, title, kind, source, function, doc) {#resource, name},
#define FIXED(resource, name, title, kind, value, doc) {#resource, name},
#define ELEMENT(resource, name, title, kind, function, index, doc) {#resource, name},
#define NONE(resource, name, title, kind, doc) {#resource, name},
#include "proto/fields.def"
#undef MEMBER
#undef GETTER
#undef FIXED
#undef ELEMENT
#undef NONE
    };
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_assert_cmpstr(columns_field(fields[i].what, fields[i].name), ==, fields[i].name);
    g_assert_cmpstr(columns_field("instance", "state"), ==, "status");
    g_assert_cmpstr(columns_field("instance", "cpus"), ==, "be/vcpus");
    g_assert_cmpstr(columns_field("node", "nix"), ==, "nix");
    g_assert_cmpstr(columns_title("instance", "pnode"), ==, "Node");
    g_assert_null(columns_title("instance", "uuid"));
    g_assert_null(columns_title(NULL, "name"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/order/names", test_names);
    g_test_add_func("/order/orders", test_orders);
    g_test_add_func("/order/bad-limits", test_bad_limits);
    g_test_add_func("/order/patterns", test_patterns);
    g_test_add_func("/order/columns", test_columns);
    return g_test_run();
}
