/* What the cells of a table say: src/cli/table_cells.c. */
#include "cli/table_cells.h"

static char *shown(const struct cli *cli, const char *what, const char *name, json_t *cell)
{
    const struct column column = column_of(cli, what, name);
    char *made = NULL;
    const char *text = table_cell(cli, &column, cell, &made);
    char *copy = g_strdup(text);
    g_free(made);
    json_decref(cell);
    return copy;
}

static void expect(const struct cli *cli, const char *name, json_t *cell, const char *wanted)
{
    g_autofree char *text = shown(cli, "node", name, cell);
    g_assert_cmpstr(text, ==, wanted);
}

static json_t *mib(gint64 size)
{
    return json_make("[iI]", 0, (json_int_t)size);
}

static void test_sizes(void)
{
    const struct cli person = {0}, program = {.separator = "|"}, asked = {.units = 't'},
                     both = {.separator = "|", .units = 'h'};
    expect(&person, "mtotal", mib(0), "0M");
    expect(&person, "mtotal", mib(1023), "1023M");
    expect(&person, "mtotal", mib(1024), "1.0G");
    expect(&person, "mtotal", mib(24105), "23.5G");
    expect(&person, "mtotal", mib(1024 * 1024 - 1), "1024.0G");
    expect(&person, "mtotal", mib(1024 * 1024), "1.0T");
    expect(&program, "mtotal", mib(24105), "24105");
    expect(&asked, "mtotal", mib(512 * 1024), "0.5");
    expect(&both, "mtotal", mib(512 * 1024), "512.0G");
    expect(&person, "pinst_cnt", mib(2048), "2048"); /* a number, no size */
    json_autoptr cell = mib(24105);
    g_autofree char *text = cli_cell_text("node", "mtotal", cell); /* in a sentence */
    g_assert_cmpstr(text, ==, "24105");
}

static void test_states(void)
{
    const struct cli person = {0}, program = {.separator = "|"};
    expect(&person, "mfree", json_make("[in]", 1), "?");
    expect(&person, "mfree", json_make("[in]", 2), "-");
    expect(&person, "mfree", json_make("[in]", 3), "(unavailable)");
    expect(&person, "mfree", json_make("[in]", 4), "(offline)");
    expect(&person, "mfree", json_make("[in]", 5), "?");
    expect(&person, "name", json_make("[is]", 0, ""), "-");
    expect(&program, "name", json_make("[is]", 0, ""), "");
    expect(&person, "role", json_make("[is]", 0, "M"), "master");
    expect(&program, "role", json_make("[is]", 0, "M"), "M");
}

/* -o and --sort know a column by what stands above it. */
static void test_titles(void)
{
    static const struct {
        const char *what, *word, *field;
    } cases[] = {{"volume", "Name", "name"},
                 {"volume", "GiB", "size"},
                 {"volume", "gib", "size"},
                 {"volume", "WaitsSince", "waits_since"},
                 {"instance", "State", "status"},
                 {"instance", "Replica", "replica.at"},
                 {"backend", "HOLDSBACKUPS", "backups"},
                 {"volume", "nix", "nix"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpstr(cli_field_named(cases[i].what, cases[i].word), ==, cases[i].field);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cells/sizes", test_sizes);
    g_test_add_func("/cells/states", test_states);
    g_test_add_func("/cells/titles", test_titles);
    return g_test_run();
}
