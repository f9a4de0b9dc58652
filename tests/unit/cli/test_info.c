/* Tests of cli/commands/info_node.c: what the page of the cluster says of the copies of other
 * candidates, and that of a node when it tells nothing, or has not told what matters. */
#include "cli/commands/info.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void cluster_page(const json_t *info)
{
    info_print_cluster(info);
}

static void node_page(const json_t *cells)
{
    info_print_node(NULL, cells);
}

/* What is printed; free with g_free(). */
static char *page(void (*print)(const json_t *info), const json_t *info)
{
    FILE *file = tmpfile();
    char text[4096] = "";
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    g_assert_cmpint(dup2(fileno(file), STDOUT_FILENO), >=, 0);
    print(info);
    fflush(stdout);
    g_assert_cmpint(dup2(before, STDOUT_FILENO), >=, 0);
    close(before);
    rewind(file);
    g_assert_cmpuint(fread(text, 1, sizeof text - 1, file), >, 0);
    fclose(file);
    return g_strdup(text);
}

static json_t *copy(const char *node, int serial, bool reachable, bool filling)
{
    return json_make("{ss, si, sb, sb, sb}", "node", node, "serial", serial, "reachable", reachable,
                     "filling", filling, "authority", true);
}

static void test_copies(void)
{
    json_autoptr info =
        json_make("{ss, s[o, o, o, o, o]}", "name", "c1", "copies", copy("one", 7, true, false),
                  copy("two", 5, false, false), copy("three", 0, false, false),
                  copy("four", 5, false, true), copy("five", 0, false, true));
    g_autofree char *text = page(cluster_page, info);
    static const char expected[] =
        "Copies\n"
        "  one                       serial 7\n"
        "  two                       serial 5, out of reach: no change waits for it\n"
        "  three                     serial 0, has not been heard of\n"
        "  four                      serial 5, is being filled anew: no change waits for it until "
        "it is whole\n"
        "  five                      serial 0, is being filled anew: no change waits for it until "
        "it is whole\n";
    if (strstr(text, expected) == NULL)
        g_error("not in the page: %s", text);
}

static json_t *cell(json_t *value)
{
    return json_make("[io]", value != NULL ? 0 : 2, value != NULL ? value : json_null());
}

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (strstr(text, part) == NULL)                                                            \
            g_error("not in the page: %s", text);                                                  \
    } while (0)

/* A node that answers with an error is there: nobody is told to declare it dead. */
static void test_refuses(void)
{
    json_autoptr late = json_make("[s]", "report: its node daemon answers with an error: no");
    json_autoptr cells =
        json_make("{so, so, so, so}", "name", cell(json_string("two")), "offline",
                  cell(json_false()), "late", cell(json_incref(late)), "mtotal", cell(NULL));
    g_autofree char *text = page(node_page, cells);
    assert_has(text, "  Late           error: report: its node daemon answers with an error: no\n");
    g_assert_null(strstr(text, "dead"));
    g_assert_null(strstr(text, "Answers"));
    json_object_set_new(cells, "late", cell(NULL));
    g_autofree char *silent = page(node_page, cells);
    assert_has(silent, "  Answers        no: what it has and runs is not known\n");
    assert_has(silent, "      fettle node modify two --offline yes --statement");
}

/* Said only while it has not told. */
static void test_unheard(void)
{
    json_autoptr cells = json_make("{so, so}", "name", cell(json_string("two")), "unheard_since",
                                   cell(json_integer(1700000000)));
    g_autofree char *text = page(node_page, cells);
    assert_has(text, "  Not heard      what the master before answered it from ");
    json_object_set_new(cells, "unheard_since", cell(json_integer(0)));
    g_autofree char *heard = page(node_page, cells);
    g_assert_null(strstr(heard, "Not heard"));
}

/* The way back as it is typed, for its address and port. */
static void test_old_keys(void)
{
    json_autoptr cells = json_make("{so, so, so, so}", "name", cell(json_string("two")), "pip",
                                   cell(json_string("192.0.2.2")), "port", cell(json_integer(1812)),
                                   "keys_missed", cell(json_true()));
    g_autofree char *text = page(node_page, cells);
    assert_has(text, "invite it again: fettle node invite two --primary-ip 192.0.2.2 --port 1812, "
                     "and on its host: fettle-noded join --new-keys\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/info/copies#SAF-07", test_copies);
    g_test_add_func("/info/node-answers-with-an-error#SAF-91", test_refuses);
    g_test_add_func("/info/node-not-heard#SAF-09", test_unheard);
    g_test_add_func("/info/node-with-old-keys#SAF-96", test_old_keys);
    return g_test_run();
}
