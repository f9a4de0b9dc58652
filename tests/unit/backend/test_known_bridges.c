/* How long what a host said of its bridges is given again. That they are not asked for meanwhile is
 * in test_network.c, with real devices. */
#include "backend/network/known_bridges.h"

#include <string.h>

#include "base/limits.h"

#define ASKED_MS 5000
#define DEVICES "1:lo 2:br0 "

static void assert_known(const struct known_bridges *known, const char *devices, gint64 now_ms,
                         const char *expected)
{
    g_autoptr(GPtrArray) names = known_bridges_get(known, devices, now_ms);
    if (expected == NULL) {
        g_assert_null(names);
        return;
    }
    g_assert_nonnull(names);
    g_assert_cmpuint(names->len, ==, 1);
    g_assert_cmpstr(names->pdata[0], ==, expected);
}

static void ask(struct known_bridges *known, const char *name, gint64 now_ms)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(names, g_strdup(name));
    known_bridges_set(known, names, DEVICES, now_ms);
}

static void test_for_a_while(void)
{
    struct known_bridges known = {0};
    assert_known(&known, DEVICES, ASKED_MS, NULL);
    ask(&known, "br0", ASKED_MS);
    assert_known(&known, DEVICES, ASKED_MS, "br0");
    assert_known(&known, DEVICES, ASKED_MS + LIMIT_BRIDGES_MS - 1, "br0");
    /* That it was given again does not make it live longer. */
    assert_known(&known, DEVICES, ASKED_MS + LIMIT_BRIDGES_MS, NULL);
    ask(&known, "br1", ASKED_MS + LIMIT_BRIDGES_MS);
    assert_known(&known, DEVICES, ASKED_MS + 2 * LIMIT_BRIDGES_MS - 1, "br1");
    assert_known(&known, DEVICES, ASKED_MS + 2 * LIMIT_BRIDGES_MS, NULL);
    known_bridges_clear(&known);
    assert_known(&known, DEVICES, ASKED_MS, NULL);
}

static void test_of_these_devices(void)
{
    static const char *const others[] = {
        "",
        "1:lo ",               /* one has gone */
        "1:lo 2:br0 3:br1 ",   /* one has come */
        "1:lo 2:br1 ",         /* renamed */
        "1:lo 3:br0 ",         /* another one of its name */
        "1:lo 2:br0 2:br0-0 ", /* and one with another name beside it */
    };
    struct known_bridges known = {0};
    ask(&known, "br0", ASKED_MS);
    for (guint i = 0; i < G_N_ELEMENTS(others); i++)
        assert_known(&known, others[i], ASKED_MS, NULL);
    assert_known(&known, DEVICES, ASKED_MS, "br0");
    known_bridges_clear(&known);
}

/* What is given out is the caller's own. */
static void test_own_copies(void)
{
    struct known_bridges known = {0};
    ask(&known, "br0", ASKED_MS);
    g_autoptr(GPtrArray) mine = known_bridges_get(&known, DEVICES, ASKED_MS);
    known_bridges_clear(&known);
    g_assert_cmpstr(mine->pdata[0], ==, "br0");
}

static void test_devices_of_this_host(void)
{
    g_autofree char *devices = known_bridges_devices();
    g_autofree char *again = known_bridges_devices();
    g_assert_cmpstr(devices, ==, again);
    g_assert_nonnull(strstr(devices, "1:lo "));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/known-bridges/for-a-while", test_for_a_while);
    g_test_add_func("/known-bridges/of-these-devices", test_of_these_devices);
    g_test_add_func("/known-bridges/own-copies", test_own_copies);
    g_test_add_func("/known-bridges/devices-of-this-host", test_devices_of_this_host);
    return g_test_run();
}
