/* Tests of cli/info_node.c: what the page of the cluster says of the copies of other candidates. */
#include "cli/info.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is printed; free with g_free(). */
static char *page(const json_t *info)
{
    FILE *file = tmpfile();
    char text[4096] = "";
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    g_assert_cmpint(dup2(fileno(file), STDOUT_FILENO), >=, 0);
    info_print_cluster(info);
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
    g_autofree char *text = page(info);
    static const char expected[] =
        "Copies\n"
        "  one                    serial 7\n"
        "  two                    serial 5, out of reach: no change waits for it\n"
        "  three                  serial 0, has not been heard of\n"
        "  four                   serial 5, is being filled anew: no change waits for it until it "
        "is whole\n"
        "  five                   serial 0, is being filled anew: no change waits for it until it "
        "is whole\n";
    if (strstr(text, expected) == NULL)
        g_error("not in the page: %s", text);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/info/copies#SAF-07", test_copies);
    return g_test_run();
}
