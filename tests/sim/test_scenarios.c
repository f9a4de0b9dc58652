/*
 * Runs every scenario folder: README (one sentence; its last line may name requirement ids),
 * cluster.json, script, expect.log. The log is made of the state machines' lines in virtual time; a
 * missing or changed one fails and says how to bless it.
 */
#include <stdio.h>
#include <string.h>

#include "script.h"

static char *read_file(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

static void log_line(const char *line, void *data)
{
    g_string_append_printf(data, "%s\n", line);
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

static void run_scenario(const void *data)
{
    const char *folder = data;
    g_autofree char *script = read_file(folder, "script");
    g_autofree char *cluster = read_file(folder, "cluster.json");
    g_assert_nonnull(script);
    g_assert_nonnull(cluster);
    json_autoptr json = json_parse_limited(cluster, strlen(cluster), KIB(64), NULL);
    g_assert_nonnull(json);
    g_autoptr(GString) log = g_string_new(NULL);
    struct sim_options options = {
        .seed = (guint64)json_integer_value(json_object_get(json, "seed")),
        .nodes = (guint)json_integer_value(json_object_get(json, "nodes")),
        .max_delay_ms = (guint)json_integer_value(json_object_get(json, "delay_ms")),
        .cluster = json_object_get(json, "cluster"),
        .log = log_line,
        .log_data = log};
    struct sim *sim = sim_new(&options);
    g_autofree char *failure = script_run(sim, script);
    sim_free(sim);
    if (failure != NULL) {
        g_test_message("%s: %s", folder, failure);
        g_auto(GStrv) lines = g_strsplit(log->str, "\n", -1);
        guint count = g_strv_length(lines);
        for (guint i = count > 40 ? count - 40 : 0; i < count; i++)
            g_test_message("%s", lines[i]);
        g_test_fail();
        return;
    }
    check_log(folder, log->str);
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    const char *top = argc > 1 ? argv[1] : "tests/sim/scenarios";
    g_autoptr(GDir) dir = g_dir_open(top, 0, NULL);
    g_assert_nonnull(dir);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;)
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, by_name);
    g_autoptr(GPtrArray) folders = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < names->len; i++) {
        char *folder = g_build_filename(top, names->pdata[i], NULL);
        g_ptr_array_add(folders, folder);
        if (!g_file_test(folder, G_FILE_TEST_IS_DIR))
            continue;
        g_autofree char *name = test_name(folder, names->pdata[i]);
        g_test_add_data_func(name, folder, run_scenario);
    }
    return g_test_run();
}
