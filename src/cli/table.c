/* How rows are shown: aligned columns, separated values, or JSON; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/fold.h"
#include "cli/screen.h"

enum cell_status { CELL_NORMAL, CELL_UNKNOWN, CELL_NO_DATA, CELL_UNAVAILABLE, CELL_OFFLINE };

enum field_kind {
    KIND_TEXT,
    KIND_NUMBER,
    KIND_FLOAT,
    KIND_UNIT,
    KIND_BOOL,
    KIND_TIMESTAMP,
    KIND_OTHER
};

/* `rare`: for clients of Ganeti; known, and named by `fettle query-fields`, but not in every help.
 */
static const struct shown_field {
    const char *what, *name, *title, *doc;
    enum field_kind kind;
    bool rare;
} shown_fields[] = {
#define MEMBER(resource, record, name, title, kind, member, doc)                                   \
    {#resource, name, title, doc, KIND_##kind, false},
#define GETTER(resource, name, title, kind, source, function, doc)                                 \
    {#resource, name, title, doc, KIND_##kind, false},
#define FIXED(resource, name, title, kind, value, doc)                                             \
    {#resource, name, title, doc, KIND_##kind, true},
#define ELEMENT(resource, name, title, kind, function, index, doc)                                 \
    {#resource, name, title, doc, KIND_##kind, true},
#define NONE(resource, name, title, kind, doc) {#resource, name, title, doc, KIND_##kind, true},
#include "proto/fields.def"
#undef MEMBER
#undef GETTER
#undef FIXED
#undef ELEMENT
#undef NONE
};

static guint field_hash(gconstpointer data)
{
    const struct shown_field *field = data;
    return g_str_hash(field->what) * 31 + g_str_hash(field->name);
}

static gboolean field_equal(gconstpointer left, gconstpointer right)
{
    const struct shown_field *one = left, *other = right;
    return strcmp(one->what, other->what) == 0 && strcmp(one->name, other->name) == 0;
}

static const struct shown_field *find_field(const char *what, const char *name)
{
    static GHashTable *known;
    if (known == NULL) {
        known = g_hash_table_new(field_hash, field_equal);
        for (size_t i = 0; i < G_N_ELEMENTS(shown_fields); i++)
            g_hash_table_add(known, (gpointer)&shown_fields[i]);
    }
    const struct shown_field wanted = {.what = what, .name = name};
    return what == NULL ? NULL : g_hash_table_lookup(known, &wanted);
}

void cli_print_fields(const char *what)
{
    const char *head = "\nFields for -o (more, known from Ganeti: fettle query-fields):\n";
    for (size_t i = 0; i < G_N_ELEMENTS(shown_fields); i++) {
        if (shown_fields[i].rare || strcmp(shown_fields[i].what, what) != 0)
            continue;
        printf("%s  %-28s %s\n", head, shown_fields[i].name, shown_fields[i].doc);
        head = "";
    }
}

json_t *cli_list_fields(const char *what)
{
    json_t *list = json_array();
    for (size_t i = 0; i < G_N_ELEMENTS(shown_fields); i++)
        if (!shown_fields[i].rare && strcmp(shown_fields[i].what, what) == 0)
            json_array_append_new(list, json_make("{ss ss}", "name", shown_fields[i].name, "doc",
                                                  shown_fields[i].doc));
    return list;
}

char *cli_time_text(gint64 seconds)
{
    g_autoptr(GDateTime) time = seconds > 0 ? g_date_time_new_from_unix_local(seconds) : NULL;
    return time != NULL ? g_date_time_format(time, "%Y-%m-%d %H:%M:%S") : g_strdup("-");
}

static char *value_text(const json_t *value)
{
    if (json_is_string(value))
        return g_strdup(json_string_value(value));
    if (json_is_boolean(value))
        return g_strdup(json_is_true(value) ? "Y" : "N");
    if (json_is_null(value))
        return g_strdup("-");
    if (json_is_integer(value))
        return g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_array(value)) {
        g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
        for (size_t i = 0; i < json_array_size(value); i++)
            g_ptr_array_add(parts, value_text(json_array_get(value, i)));
        g_ptr_array_add(parts, NULL);
        return g_strjoinv(",", (char **)parts->pdata);
    }
    g_autofree char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    return g_strdup(text);
}

GStrv cli_choose_fields(const struct cli *cli, const char *standard)
{
    if (cli->fields == NULL)
        return g_strsplit(standard, ",", -1);
    if (cli->fields[0] != '+')
        return g_strsplit(cli->fields, ",", -1);
    g_autofree char *both = g_strdup_printf("%s,%s", standard, cli->fields + 1);
    return g_strsplit(both, ",", -1);
}

bool cli_check_fields(struct cli *cli, const char *what, const char *const *fields, GError **error)
{
    if (cli->fields == NULL)
        return true;
    json_autoptr all = cli_call(cli, "QueryFields", json_make("[sn]", what), error);
    if (all == NULL)
        return false;
    g_autoptr(GString) known = g_string_new(NULL);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *rows = json_object_get(all, "fields");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(rows, i), "name"));
        g_hash_table_add(names, (char *)name);
        g_string_append_printf(known, "%s%s", i > 0 ? ", " : "", name);
    }
    for (; *fields != NULL; fields++) {
        if (g_hash_table_contains(names, *fields))
            continue;
        fettle_set_error(error, WRONG_INPUT, "-o: %s has no field \"%s\"; it has %s", what, *fields,
                         known->str);
        return false;
    }
    return true;
}

/* Times of jobs are Ganeti's pairs [seconds, microseconds]. */
static bool is_pair_of_job(const char *name, const json_t *value)
{
    return g_str_has_suffix(name, "_ts") && json_is_array(value);
}

/* One column of a table, looked up once for all of its rows. */
struct column {
    const char *name;
    const struct shown_field *field; /* NULL: not one of the cluster's */
    bool roles;                      /* letters that a person is told as words */
    bool repair_id;                  /* of which the beginning is enough */
};

static struct column column_of(const struct cli *cli, const char *what, const char *name)
{
    return (struct column){
        .name = name,
        .field = find_field(what, name),
        .roles = cli != NULL && cli->separator == NULL && g_strcmp0(what, "node") == 0 &&
                 strcmp(name, "role") == 0,
        .repair_id = g_strcmp0(what, "repair") == 0 && strcmp(name, "id") == 0,
    };
}

/* What a person reads in a cell; made into `*ret_made` unless it is somewhere already. */
static const char *cell_text(const struct column *column, const json_t *cell, char **ret_made)
{
    static const char *const words[] = {NULL, "?", "-", "(unavailable)", "(offline)"};
    json_int_t status = json_integer_value(json_array_get(cell, 0));
    if (status != CELL_NORMAL)
        return status > 0 && status < (json_int_t)G_N_ELEMENTS(words) ? words[status] : "?";
    const json_t *value = json_array_get(cell, 1);
    if (json_is_string(value))
        return json_string_value(value);
    if (column->field != NULL && column->field->kind == KIND_TIMESTAMP && json_is_number(value))
        return *ret_made = cli_time_text((gint64)json_number_value(value));
    if (column->field != NULL && is_pair_of_job(column->name, value))
        return *ret_made = cli_time_text(json_integer_value(json_array_get(value, 0)));
    return *ret_made = value_text(value);
}

char *cli_cell_text(const char *what, const char *name, const json_t *cell)
{
    const struct column column = column_of(NULL, what, name);
    g_autofree char *made = NULL;
    const char *text = cell_text(&column, cell, &made);
    return made != NULL ? g_steal_pointer(&made) : g_strdup(text);
}

const json_t *cli_cell_value(const json_t *row, size_t index)
{
    const json_t *cell = json_array_get(row, index);
    return json_integer_value(json_array_get(cell, 0)) == CELL_NORMAL ? json_array_get(cell, 1)
                                                                      : NULL;
}

const char *cli_cell_string(const json_t *row, size_t index)
{
    const char *text = json_string_value(cli_cell_value(row, index));
    return text != NULL ? text : "";
}

void cli_print_json(const json_t *json)
{
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY);
    printf("%s\n", text);
    free(text);
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

const char *cli_role_word(const char *letter)
{
    static const struct {
        const char *letter, *word;
    } roles[] = {
        {"M", "master"}, {"C", "candidate"}, {"R", "regular"}, {"D", "drained"}, {"O", "offline"}};
    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++)
        if (strcmp(roles[i].letter, letter) == 0)
            return roles[i].word;
    return NULL;
}

static char *title_of(const char *what, const char *name)
{
    const struct shown_field *field = find_field(what, name);
    char *title = g_strdup(field != NULL ? field->title : name);
    title[0] = g_ascii_toupper(title[0]);
    return title;
}

/* An empty cell of a table is "-", so that every line has as many words as the first. */
static const char *table_cell(const struct cli *cli, const struct column *column,
                              const json_t *cell, char **ret_made)
{
    const char *text = cell_text(column, cell, ret_made);
    const char *role = column->roles ? cli_role_word(text) : NULL;
    if (role != NULL)
        return role;
    return *text != '\0' || cli->separator != NULL ? text : "-";
}

GPtrArray *cli_title_cells(const char *what, const char *const *names)
{
    GPtrArray *cells = g_ptr_array_new_with_free_func(g_free);
    for (; *names != NULL; names++)
        g_ptr_array_add(cells, title_of(what, *names));
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
            append_spaces(out, style->widths[i] - fold_width(cells[i]) + 1);
    }
}

static void widen(int *widths, const char *const *cells, guint columns)
{
    for (guint i = 0; i < columns; i++)
        widths[i] = MAX(widths[i], fold_width(cells[i]));
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
            size_t bytes = fold_line(text, style->widths[i], title, &left[i]);
            g_ptr_array_add(parts, g_strndup(text, bytes));
            more = more || *left[i] != '\0';
        }
        append_line(out, style, (const char *const *)parts->pdata);
        while (out->len > 0 && out->str[out->len - 1] == ' ')
            g_string_truncate(out, out->len - 1);
        g_string_append_c(out, '\n');
    }
}

/* So many characters of a repair's id name it, as its commands take it. */
#define SHORT_ID_CHARS 8

static void shorten_ids(struct cli_table *table, guint column)
{
    guint first = table->cli->headers ? table->width : 0;
    for (guint at = first + column; at < table->cells->len; at += table->width) {
        g_autofree char *brief = g_strndup(table->cells->pdata[at], SHORT_ID_CHARS);
        table->cells->pdata[at] = g_string_chunk_insert(table->texts, brief);
    }
    table->widths[column] = SHORT_ID_CHARS;
}

/* Whether it is for a terminal that is narrower than the table, and folded fits there. */
static bool fit(struct cli_table *table)
{
    struct winsize size = {0};
    int sum = (int)table->width - 1;
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
        *one = MAX(*one, fold_least(table->cells->pdata[at], title));
    }
    return fold_columns(table->widths, least, table->width, size.ws_col);
}

static void print_lines(struct cli_table *table)
{
    bool coloured = table->cli->separator == NULL && screen_live();
    bool folded = fit(table);
    g_autoptr(GString) out = g_string_sized_new(1 << 16);
    for (guint at = 0; at < table->cells->len; at += table->width) {
        bool title = table->cli->headers && at == 0;
        const struct line_style style = {table->cli, title ? NULL : table->names, table->widths,
                                         table->width, coloured && !title};
        const char *const *cells = (const char *const *)table->cells->pdata + at;
        if (folded) {
            append_folded(out, &style, cells, title);
            continue;
        }
        append_line(out, &style, cells);
        g_string_append_c(out, '\n');
    }
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
    for (size_t i = 0; i < json_array_size(rows); i++)
        cli_table_add(json_array_get(rows, i), table);
    cli_table_print(table);
    cli_table_free(table);
}
