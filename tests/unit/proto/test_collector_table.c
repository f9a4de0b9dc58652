/* The collectors of monitoring, and what a cluster wants of them. proto/monitor/. */
#include "proto/monitor/collector_table.h"

#include <string.h>

static void test_table(void)
{
    g_assert_cmpint(collector_find("cpu-avg-load"), ==, COLLECTOR_cpu_avg_load);
    g_assert_cmpint(collector_find("cpu-avg"), ==, -1);
    g_assert_cmpint(collector_find(""), ==, -1);
    g_assert_cmpstr(collector_category(&collectors[COLLECTOR_cpu_avg_load]), ==, "default");
    g_assert_cmpstr(collector_category(&collectors[COLLECTOR_drbd]), ==, "storage");
    for (guint i = 0; i < COLLECTOR_COUNT; i++) {
        g_assert_cmpint(collector_find(collectors[i].name), ==, (int)i);
        g_assert_cmpuint(collectors[i].interval_ms, >=, 1000);
        g_assert_true(g_str_has_suffix(collectors[i].doc, "."));
    }
}

static GPtrArray *list_of(const char *words)
{
    g_auto(GStrv) parts = g_strsplit(words, " ", -1);
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    for (char **part = parts; *part; part++)
        if (**part)
            g_ptr_array_add(list, g_strdup(*part));
    return list;
}

static char *text_of(const GPtrArray *list)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < list->len; i++)
        g_string_append_printf(text, "%s%s", i ? " " : "", (const char *)list->pdata[i]);
    return g_string_free(text, FALSE);
}

static bool change(struct cluster *cluster, const char *wanted, const char *intervals,
                   GError **error)
{
    g_autoptr(GPtrArray) on_or_off = list_of(wanted);
    g_autoptr(GPtrArray) seconds = list_of(intervals);
    guint changes = 99;
    bool ok = collector_settings_change(cluster, on_or_off, seconds, &changes, error);
    g_assert_true(!ok || changes == on_or_off->len + seconds->len);
    return ok;
}

#define assert_cluster(cluster, off, intervals)                                                    \
    do {                                                                                           \
        g_autofree char *now_off = text_of((cluster)->collectors_off);                             \
        g_autofree char *now_intervals = text_of((cluster)->collector_intervals);                  \
        g_assert_cmpstr(now_off, ==, off);                                                         \
        g_assert_cmpstr(now_intervals, ==, intervals);                                             \
    } while (0)

static void test_settings(void)
{
    record_autoptr(cluster) cluster = cluster_new();
    GError *error = NULL;
    g_assert_true(collector_setting(cluster, COLLECTOR_lv).active);
    g_assert_cmpuint(collector_setting(cluster, COLLECTOR_lv).interval_us, ==, 5000000);
    g_assert_true(change(cluster, "lv=no drbd=no lv=no", "guests=30 lv=2.5", &error));
    assert_cluster(cluster, "drbd lv", "guests=30 lv=2.5");
    g_assert_false(collector_setting(cluster, COLLECTOR_lv).active);
    g_assert_cmpuint(collector_setting(cluster, COLLECTOR_lv).interval_us, ==, 2500000);
    g_assert_cmpuint(collector_setting(cluster, COLLECTOR_guests).interval_us, ==, 30000000);
    g_assert_true(change(cluster, "lv=yes", "guests=60 lv=0", &error));
    assert_cluster(cluster, "drbd", "guests=60");
    g_assert_true(collector_setting(cluster, COLLECTOR_lv).active);
    g_assert_true(change(cluster, "", "", &error));
    assert_cluster(cluster, "drbd", "guests=60");
}

static void assert_refused(const char *wanted, const char *intervals, const char *message)
{
    record_autoptr(cluster) cluster = cluster_new();
    g_autoptr(GError) error = NULL;
    g_assert_false(change(cluster, wanted, intervals, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_true(g_str_has_prefix(error->message, message));
}

static void test_refused(void)
{
    assert_refused("nosuch=yes", "",
                   "data_collectors: there is no data collector \"nosuch\"; there are cpu-avg");
    assert_refused("lv", "", "data_collectors: lv: must be lv=yes or lv=no");
    assert_refused("lv=maybe", "", "data_collectors: lv=maybe: must be lv=yes or lv=no");
    assert_refused("=yes", "", "data_collectors: there is no data collector \"\"");
    static const char *const bad[] = {"lv=",   "lv=x",     "lv=-1",    "lv=1e3", "lv=0x9", "lv=0.5",
                                      "lv=+5", "lv=86401", "lv=1.2.3", "lv=5s",  "lv=nan", "lv"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_refused("", bad[i], "data_collector_interval: lv");
}

/* A record of a later version, or of somebody's hand, has what this one does not know. */
static void test_odd_record(void)
{
    record_autoptr(cluster) cluster = cluster_new();
    g_ptr_array_add(cluster->collectors_off, g_strdup("of-tomorrow"));
    g_ptr_array_add(cluster->collector_intervals, g_strdup("guests=soon"));
    g_assert_cmpuint(collector_setting(cluster, COLLECTOR_guests).interval_us, ==, 5000000);
    g_ptr_array_set_size(cluster->collector_intervals, 0);
    g_ptr_array_add(cluster->collector_intervals, g_strdup("guests"));
    g_assert_cmpuint(collector_setting(cluster, COLLECTOR_guests).interval_us, ==, 5000000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/collectors/table", test_table);
    g_test_add_func("/collectors/settings", test_settings);
    g_test_add_func("/collectors/refused", test_refused);
    g_test_add_func("/collectors/odd-record", test_odd_record);
    return g_test_run();
}
