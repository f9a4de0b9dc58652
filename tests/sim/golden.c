/* See golden.h. */
#include "golden.h"

#include <string.h>

#include "base/limits.h"

static char *read_file(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

/* The first line that differs, for the report. */
static void show_difference(const char *expected, const char *got)
{
    g_auto(GStrv) left = g_strsplit(expected, "\n", -1), right = g_strsplit(got, "\n", -1);
    guint i = 0;
    while (left[i] != NULL && right[i] != NULL && strcmp(left[i], right[i]) == 0)
        i++;
    g_test_message("line %u: expected \"%s\", got \"%s\"", i + 1,
                   left[i] != NULL ? left[i] : "(end)", right[i] != NULL ? right[i] : "(end)");
}

static void check_log(const char *folder, const char *got)
{
    g_autofree char *path = g_build_filename(folder, "expect.log", NULL);
    if (g_getenv("FETTLE_BLESS") != NULL) {
        g_assert_true(g_file_set_contents(path, got, -1, NULL));
        return;
    }
    g_autofree char *expected = read_file(folder, "expect.log");
    if (expected == NULL || strcmp(expected, got) != 0) {
        show_difference(expected != NULL ? expected : "", got);
        g_test_message("the log of %s has changed; if that is right: FETTLE_BLESS=1 %s", folder,
                       g_get_prgname());
        g_test_fail();
    }
}

struct scenario {
    char *folder;
    golden_fn run;
};

static void show_end(const GString *log)
{
    g_auto(GStrv) lines = g_strsplit(log->str, "\n", -1);
    guint count = g_strv_length(lines);
    for (guint i = count > 40 ? count - 40 : 0; i < count; i++)
        g_test_message("%s", lines[i]);
}

static void run_scenario(const void *data)
{
    const struct scenario *scenario = data;
    g_autofree char *script = read_file(scenario->folder, "script");
    g_autofree char *cluster = read_file(scenario->folder, "cluster.json");
    g_assert_nonnull(script);
    g_assert_nonnull(cluster);
    json_autoptr json = json_parse_limited(cluster, strlen(cluster), KIB(64), NULL);
    g_assert_nonnull(json);
    g_autoptr(GString) log = g_string_new(NULL);
    g_autofree char *failure = scenario->run(script, json, log);
    if (!failure) {
        check_log(scenario->folder, log->str);
        return;
    }
    g_test_message("%s: %s", scenario->folder, failure);
    show_end(log);
    g_test_fail();
}

/* Ids stand in README's last line as `Proves: ARP-11, SAF-16`. */
static char *test_name(const char *folder, const char *name)
{
    g_autofree char *readme = read_file(folder, "README");
    const char *mark = readme != NULL ? strstr(readme, "Proves: ") : NULL;
    g_autofree char *ids = mark != NULL ? g_strdup(mark + strlen("Proves: ")) : g_strdup("");
    g_strstrip(ids);
    g_auto(GStrv) parts = g_strsplit(ids, ", ", -1);
    g_autofree char *list = g_strjoinv(",", parts);
    return g_strdup_printf("/sim/%s%s%s", name, *list != '\0' ? "#" : "", list);
}

static gint by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void scenario_free(void *data)
{
    struct scenario *scenario = data;
    g_free(scenario->folder);
    g_free(scenario);
}

int golden_main(int argc, char **argv, golden_fn run)
{
    g_test_init(&argc, &argv, NULL);
    const char *top = argv[1];
    g_autoptr(GDir) dir = g_dir_open(top, 0, NULL);
    g_assert_nonnull(dir);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;)
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, by_name);
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(scenario_free);
    for (guint i = 0; i < names->len; i++) {
        struct scenario *scenario = g_new(struct scenario, 1);
        *scenario = (struct scenario){g_build_filename(top, names->pdata[i], NULL), run};
        g_ptr_array_add(all, scenario);
        if (!g_file_test(scenario->folder, G_FILE_TEST_IS_DIR))
            continue;
        g_autofree char *name = test_name(scenario->folder, names->pdata[i]);
        g_test_add_data_func(name, scenario, run_scenario);
    }
    return g_test_run();
}
