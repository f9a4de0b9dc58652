/* How rows are shown: aligned columns, separated values, or JSON; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* It is asked for each cell of a table. */
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

char *cli_cell_text(const char *what, const char *name, const json_t *cell)
{
    static const char *const words[] = {NULL, "?", "-", "(unavailable)", "(offline)"};
    json_int_t status = json_integer_value(json_array_get(cell, 0));
    if (status != CELL_NORMAL)
        return g_strdup(status > 0 && status < (json_int_t)G_N_ELEMENTS(words) ? words[status]
                                                                               : "?");
    const json_t *value = json_array_get(cell, 1);
    const struct shown_field *field = find_field(what, name);
    if (field != NULL && field->kind == KIND_TIMESTAMP && json_is_number(value))
        return cli_time_text((gint64)json_number_value(value));
    if (field != NULL && is_pair_of_job(name, value))
        return cli_time_text(json_integer_value(json_array_get(value, 0)));
    return value_text(value);
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

json_t *cli_rows_as_objects(const char *const *names, const json_t *rows)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *object = json_object();
        for (size_t j = 0; names[j] != NULL; j++) {
            const json_t *value = cli_cell_value(json_array_get(rows, i), j);
            json_object_set_new(object, names[j],
                                value != NULL ? json_deep_copy(value) : json_null());
        }
        json_array_append_new(list, object);
    }
    return list;
}

static void print_json(const char *const *names, const json_t *rows)
{
    json_autoptr list = cli_rows_as_objects(names, rows);
    cli_print_json(list);
}

/* How the cells of a table are shown; `names` NULL: its first line. */
struct line_style {
    const struct cli *cli;
    const char *const *names;
    const int *widths;
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

static char *line_text(const struct line_style *style, const GPtrArray *cells)
{
    GString *line = g_string_new(NULL);
    for (guint i = 0; i < cells->len; i++) {
        const char *text = cells->pdata[i], *colour = colour_of(style, i, text);
        int pad = style->widths[i] - (int)g_utf8_strlen(text, -1) + 1;
        if (style->cli->separator != NULL) {
            g_string_append_printf(line, "%s%s", i > 0 ? style->cli->separator : "", text);
            continue;
        }
        g_string_append(line, colour);
        g_string_append(line, text);
        g_string_append(line, *colour ? screen_plain : "");
        if (i + 1 < cells->len)
            append_spaces(line, pad);
    }
    return g_string_free(line, FALSE);
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
static char *table_cell(const struct cli *cli, const char *what, const char *name,
                        const json_t *cell)
{
    char *text = cli_cell_text(what, name, cell);
    const char *role =
        g_strcmp0(what, "node") == 0 && strcmp(name, "role") == 0 && cli->separator == NULL
            ? cli_role_word(text)
            : NULL;
    if (role != NULL) {
        g_free(text);
        return g_strdup(role);
    }
    if (*text != '\0' || cli->separator != NULL)
        return text;
    g_free(text);
    return g_strdup("-");
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
    for (guint i = 0; names[i] != NULL; i++)
        g_ptr_array_add(cells, table_cell(cli, what, names[i], json_array_get(row, i)));
    return cells;
}

static void widen(int *widths, const GPtrArray *cells)
{
    for (guint i = 0; i < cells->len; i++)
        widths[i] = MAX(widths[i], (int)g_utf8_strlen(cells->pdata[i], -1));
}

char *cli_cells_line(const struct cli *cli, const GPtrArray *cells, int *widths)
{
    widen(widths, cells);
    return line_text(&(struct line_style){cli, NULL, widths, false}, cells);
}

void cli_print_rows(const struct cli *cli, const char *what, const char *const *names, json_t *rows)
{
    if (cli->json) {
        print_json(names, rows);
        return;
    }
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    g_ptr_array_add(lines, cli_title_cells(what, names));
    for (size_t i = 0; i < json_array_size(rows); i++)
        g_ptr_array_add(lines, cli_row_cells(cli, what, names, json_array_get(rows, i)));
    guint first = cli->headers ? 0 : 1;
    g_autofree int *widths = g_new0(int, ((GPtrArray *)lines->pdata[0])->len + 1);
    for (guint i = first; i < lines->len; i++)
        widen(widths, lines->pdata[i]);
    bool coloured = cli->separator == NULL && screen_live();
    for (guint i = first; i < lines->len; i++) {
        const struct line_style style = {cli, i > 0 ? names : NULL, widths, coloured && i > 0};
        g_autofree char *line = line_text(&style, lines->pdata[i]);
        printf("%s\n", line);
    }
}
