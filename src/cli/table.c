/* How rows are shown: aligned columns, separated values, or JSON; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/foreign.h"
#include "cli/screen.h"
#include "cli/table_cells.h"
#include "cli/table_fold.h"

void cli_print_json(const json_t *json)
{
    g_autofree char *text = foreign_json(json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY));
    printf("%s\n", text);
}

static json_t *row_as_object(const char *const *names, const json_t *row)
{
    json_t *object = json_object();
    for (size_t i = 0; names[i] != NULL; i++) {
        const json_t *value = cli_cell_value(row, i);
        json_object_set_new(object, names[i], value != NULL ? json_deep_copy(value) : json_null());
    }
    return object;
}

json_t *cli_rows_as_objects(const char *const *names, const json_t *rows)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(rows); i++)
        json_array_append_new(list, row_as_object(names, json_array_get(rows, i)));
    return list;
}

GPtrArray *cli_title_cells(const char *what, const char *const *names)
{
    GPtrArray *cells = g_ptr_array_new_with_free_func(g_free);
    for (; *names != NULL; names++)
        g_ptr_array_add(cells, column_title(what, *names));
    return cells;
}

GPtrArray *cli_row_cells(const struct cli *cli, const char *what, const char *const *names,
                         const json_t *row)
{
    GPtrArray *cells = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; names[i] != NULL; i++) {
        const struct column column = column_of(cli, what, names[i]);
        g_autofree char *made = NULL;
        const char *text = table_cell(cli, &column, json_array_get(row, i), &made);
        g_ptr_array_add(cells, made == text ? g_steal_pointer(&made) : g_strdup(text));
    }
    return cells;
}

/* --- lines --- */

/* How the cells of a table are shown; `names` NULL: its first line. */
struct line_style {
    const struct cli *cli;
    const char *const *names;
    const int *widths;
    guint columns;
    bool coloured; /* it is for a terminal */
};

/* Columns whose words have a colour on a terminal. */
static const char *colour_of(const struct line_style *style, guint column, const char *text)
{
    static const char *const columns[] = {"status", "replica.state", "role", "state", NULL};
    return style->coloured && g_strv_contains(columns, style->names[column]) ? screen_colour(text)
                                                                             : "";
}

static void append_spaces(GString *line, int count)
{
    static const char spaces[] = "                                ";
    for (int left = count; left > 0; left -= (int)sizeof spaces - 1)
        g_string_append_len(line, spaces, MIN(left, (int)sizeof spaces - 1));
}

static void append_line(GString *out, const struct line_style *style, const char *const *cells)
{
    const char *separator = style->cli->separator;
    for (guint i = 0; i < style->columns; i++) {
        if (separator != NULL) {
            g_string_append(out, i > 0 ? separator : "");
            g_string_append(out, cells[i]);
            continue;
        }
        const char *colour = colour_of(style, i, cells[i]);
        g_string_append(out, colour);
        g_string_append(out, cells[i]);
        g_string_append(out, *colour != '\0' ? screen_plain : "");
        if (i + 1 < style->columns)
            append_spaces(out, style->widths[i] - table_fold_width(cells[i]) + 1);
    }
}

static void widen(int *widths, const char *const *cells, guint columns)
{
    for (guint i = 0; i < columns; i++)
        widths[i] = MAX(widths[i], table_fold_width(cells[i]));
}

char *cli_cells_line(const struct cli *cli, const GPtrArray *cells, int *widths)
{
    const char *const *texts = (const char *const *)cells->pdata;
    const struct line_style style = {cli, NULL, widths, cells->len, false};
    GString *line = g_string_new(NULL);
    widen(widths, texts, cells->len);
    append_line(line, &style, texts);
    return g_string_free(line, FALSE);
}

/* --- tables --- */

/* A table of any size: its texts lie one behind the other, and its cells point there. */
struct cli_table {
    const struct cli *cli;
    const char *const *names;
    struct column *columns;
    guint width; /* columns */
    GStringChunk *texts;
    GPtrArray *cells; /* `width` of each line */
    int *widths;
    json_t *objects; /* for --json, in place of lines */
};

static void add_line(struct cli_table *table, const char *const *texts)
{
    for (guint i = 0; i < table->width; i++)
        g_ptr_array_add(table->cells, g_string_chunk_insert(table->texts, texts[i]));
    widen(table->widths, texts, table->width);
}

struct cli_table *cli_table_new(const struct cli *cli, const char *what, const char *const *names)
{
    struct cli_table *table = g_new0(struct cli_table, 1);
    table->cli = cli;
    table->names = names;
    table->width = g_strv_length((char **)names);
    table->columns = g_new0(struct column, table->width + 1);
    for (guint i = 0; i < table->width; i++)
        table->columns[i] = column_of(cli, what, names[i]);
    table->texts = g_string_chunk_new(1 << 16);
    table->cells = g_ptr_array_new();
    table->widths = g_new0(int, table->width + 1);
    table->objects = json_array();
    if (cli->headers) {
        g_autoptr(GPtrArray) titles = cli_title_cells(what, names);
        add_line(table, (const char *const *)titles->pdata);
    }
    return table;
}

void cli_table_add(json_t *row, void *data)
{
    struct cli_table *table = data;
    if (table->cli->json) {
        json_array_append_new(table->objects, row_as_object(table->names, row));
        return;
    }
    g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func(g_free);
    g_autofree const char **texts = g_new0(const char *, table->width + 1);
    for (guint i = 0; i < table->width; i++) {
        char *text = NULL;
        texts[i] = table_cell(table->cli, &table->columns[i], json_array_get(row, i), &text);
        if (text != NULL)
            g_ptr_array_add(made, text);
    }
    add_line(table, texts);
}

/* A line whose cells are folded: as many lines as the one with the most needs. */
static void append_folded(GString *out, const struct line_style *style, const char *const *cells,
                          bool title)
{
    g_autofree const char **left = g_memdup2(cells, style->columns * sizeof *cells);
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
    for (bool more = true; more;) {
        more = false;
        g_ptr_array_set_size(parts, 0);
        for (guint i = 0; i < style->columns; i++) {
            const char *text = left[i];
            size_t bytes = table_fold_line(text, style->widths[i], title, &left[i]);
            g_ptr_array_add(parts, g_strndup(text, bytes));
            more = more || *left[i] != '\0';
        }
        append_line(out, style, (const char *const *)parts->pdata);
        while (out->len > 0 && out->str[out->len - 1] == ' ')
            g_string_truncate(out, out->len - 1);
        g_string_append_c(out, '\n');
    }
}

static void shorten_ids(struct cli_table *table, guint column)
{
    guint first = table->cli->headers ? table->width : 0;
    for (guint at = first + column; at < table->cells->len; at += table->width) {
        g_autofree char *brief = g_strndup(table->cells->pdata[at], TABLE_SHORT_ID_CHARS);
        table->cells->pdata[at] = g_string_chunk_insert(table->texts, brief);
    }
    table->widths[column] = TABLE_SHORT_ID_CHARS;
}

/* Whether it is for a terminal that is narrower than the table, and is folded to fit there;
 * `*ret_shown` of its columns are then shown, all if they can be. */
static bool fit(struct cli_table *table, guint *ret_shown)
{
    struct winsize size = {0};
    int sum = (int)table->width - 1;
    *ret_shown = table->width;
    if (table->cli->separator != NULL || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
        size.ws_col == 0)
        return false;
    for (guint i = 0; i < table->width; i++)
        sum += table->widths[i];
    if (sum <= size.ws_col)
        return false;
    g_autofree int *least = g_new0(int, table->width);
    for (guint i = 0; i < table->width; i++)
        if (table->columns[i].repair_id)
            shorten_ids(table, i);
    for (guint at = 0; at < table->cells->len; at++) {
        bool title = table->cli->headers && at < table->width;
        int *one = &least[at % table->width];
        *one = MAX(*one, table_fold_least(table->cells->pdata[at], title));
    }
    while (*ret_shown > 1 && !table_fold_columns(table->widths, least, *ret_shown, size.ws_col))
        --*ret_shown;
    return true;
}

/* What a narrow terminal has no room for. */
static void append_left_out(GString *out, const struct cli_table *table, guint shown)
{
    if (shown == table->width)
        return;
    g_autoptr(GString) line = g_string_new("No room for:");
    for (guint i = shown; i < table->width; i++)
        g_string_append_printf(line, "%s %s", i > shown ? "," : "", table->names[i]);
    g_string_append(line, " (-o chooses)");
    text_fold(out, line->str, 0, 2, screen_text_columns());
    g_string_append_c(out, '\n');
}

static void print_lines(struct cli_table *table)
{
    bool coloured = table->cli->separator == NULL && screen_live();
    guint shown;
    bool folded = fit(table, &shown);
    g_autoptr(GString) out = g_string_sized_new(1 << 16);
    for (guint at = 0; at < table->cells->len; at += table->width) {
        bool title = table->cli->headers && at == 0;
        const struct line_style style = {table->cli, title ? NULL : table->names, table->widths,
                                         shown, coloured && !title};
        const char *const *cells = (const char *const *)table->cells->pdata + at;
        if (folded) {
            append_folded(out, &style, cells, title);
            continue;
        }
        append_line(out, &style, cells);
        g_string_append_c(out, '\n');
    }
    append_left_out(out, table, shown);
    fwrite(out->str, 1, out->len, stdout);
}

void cli_table_print(struct cli_table *table)
{
    if (table->cli->json)
        cli_print_json(table->objects);
    else
        print_lines(table);
}

void cli_table_free(struct cli_table *table)
{
    g_string_chunk_free(table->texts);
    g_ptr_array_unref(table->cells);
    json_decref(table->objects);
    g_free(table->columns);
    g_free(table->widths);
    g_free(table);
}

void cli_print_rows(const struct cli *cli, const char *what, const char *const *names, json_t *rows)
{
    struct cli_table *table = cli_table_new(cli, what, names);
    if (!cli->json)
        foreign_show(rows);
    for (size_t i = 0; i < json_array_size(rows); i++)
        cli_table_add(json_array_get(rows, i), table);
    cli_table_print(table);
    cli_table_free(table);
}
