/* The words that a usage allows; see cli/usage.h. */
#include "cli/usage.h"

#define POLICY                                                                                     \
    "[(cluster|nodegroup NAME|instance NAME) [fix-storage|migrate|failover|reinstall|none]]"

/* `words` and `wanted` are separated by blanks. */
static void check(const char *usage, const char *words, const char *wanted)
{
    g_auto(GStrv) given = g_strsplit(words, " ", -1);
    g_autoptr(GPtrArray) next = usage_next(usage, (int)g_strv_length(given), given);
    g_autofree char *found = g_strjoinv(" ", (char **)next->pdata);
    g_assert_cmpstr(found, ==, wanted);
}

static void test_places(void)
{
    check("NODE off|on [--dir DIR]", "", "NODE");
    check("NODE off|on [--dir DIR]", "node1", "off on");
    check("NODE off|on [--dir DIR]", "node1 on", "");
    check("NODE off|on [--dir DIR]", "--dir /tmp node1", "off on");
    check("", "", "");
    check("INSTANCE|NODE|JOB|cluster", "", "INSTANCE NODE JOB cluster");
    check("NODE|switch [--dir DIR] -- COMMAND…", "", "NODE switch");
}

static void test_again(void)
{
    check("[NAME…]", "", "NAME");
    check("[NAME…]", "a b c", "NAME");
    check("NAME …", "a b", "NAME");
    check("ID", "1", "");
}

static void test_sequences(void)
{
    check(POLICY, "", "cluster nodegroup instance");
    check(POLICY, "cluster", "fix-storage migrate failover reinstall none");
    check(POLICY, "instance", "NAME");
    check(POLICY, "instance web1", "fix-storage migrate failover reinstall none");
    check(POLICY, "instance web1 none", "");
    check(POLICY, "what", "");
    check("[--for 2h|--until TIME] (cluster|instance NAME)", "--for 3h", "cluster instance");
    check("[--for 2h|--until TIME] (cluster|instance NAME)", "--until x instance", "NAME");
    check("(status|etcd|sqlite|renew NODE) [--yes]", "renew", "NODE");
    check("(status|etcd|sqlite|renew NODE) [--yes]", "status", "");
}

static void test_flags(void)
{
    g_autoptr(GPtrArray) flags = usage_flags("[--for 2h|--until TIME] [--kill] NAME");
    g_autofree char *all = g_strjoinv(" ", (char **)flags->pdata);
    g_assert_cmpstr(all, ==, "--for --until --kill");
}

static void test_value(void)
{
    static const char usage[] = "[--to NODE] [--alone --statement TEXT] [--yes] [--engine a|b]";
    const struct {
        char *flag, *value;
    } rows[] = {{"--to", "NODE"}, {"--alone", NULL},   {"--statement", "TEXT"},
                {"--yes", NULL},  {"--engine", "a|b"}, {"node1", NULL}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *value = usage_value(usage, 1, (char *const[]){rows[i].flag});
        g_assert_cmpstr(value, ==, rows[i].value);
    }
    g_assert_null(usage_value(usage, 0, NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/usage/places", test_places);
    g_test_add_func("/usage/again", test_again);
    g_test_add_func("/usage/sequences", test_sequences);
    g_test_add_func("/usage/flags", test_flags);
    g_test_add_func("/usage/value", test_value);
    return g_test_run();
}
