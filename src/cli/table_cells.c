/* Which fields rows have, and what their cells say; see table_cells.h. */
#include "cli/table_cells.h"

#include <stdio.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/screen.h"
#include "proto/cli/cli_table.h"
#include "proto/nearest.h"

enum field_kind {
    KIND_TEXT,
    KIND_NUMBER,
    KIND_FLOAT,
    KIND_UNIT, /* MiB */
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
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(shown_fields); i++)
        if (!shown_fields[i].rare && strcmp(shown_fields[i].what, what) == 0)
            cli_help_row(text, shown_fields[i].name, CLI_HELP_COLUMN, shown_fields[i].doc,
                         screen_text_columns());
    if (text->len > 0)
        printf("\nFields for -o (all: fettle query-fields %s):\n%s", what, text->str);
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

/* What a column is called above it, in whatever letters; the word itself if it is none of these. */
static const char *titled_field(const char *what, const char *word)
{
    const char *field = word;
    for (size_t i = 0; i < G_N_ELEMENTS(shown_fields); i++) {
        const struct shown_field *one = &shown_fields[i];
        const char *title = strcmp(one->what, what) == 0 ? columns_title(what, one->name) : NULL;
        if (title != NULL && g_ascii_strcasecmp(title, word) == 0)
            return one->name; /* what lists show comes before what they could */
        if (field == word && strcmp(one->what, what) == 0 &&
            g_ascii_strcasecmp(one->title, word) == 0)
            field = one->name;
    }
    return field;
}

const char *cli_field_named(const char *what, const char *word)
{
    const char *field = columns_field(what, word);
    return field != word || find_field(what, word) != NULL ? field : titled_field(what, word);
}

GStrv cli_choose_fields(const struct cli *cli, const char *what, const char *standard)
{
    if (cli->fields == NULL)
        return g_strsplit(standard, ",", -1);
    bool adds = cli->fields[0] == '+';
    g_autofree char *both = adds ? g_strdup_printf("%s,%s", standard, cli->fields + 1) : NULL;
    GStrv fields = g_strsplit(adds ? both : cli->fields, ",", -1);
    for (char **field = fields; *field != NULL; field++) {
        char *named = g_strdup(cli_field_named(what, *field));
        g_free(*field);
        *field = named;
    }
    return fields;
}

bool cli_check_fields(struct cli *cli, const char *what, const char *const *fields, GError **error)
{
    return cli->fields == NULL || cli_fields_exist(cli, "-o", what, fields, error);
}

bool cli_fields_exist(struct cli *cli, const char *flag, const char *what,
                      const char *const *fields, GError **error)
{
    json_autoptr all = cli_call(cli, "QueryFields", json_make("[sn]", what), error);
    if (all == NULL)
        return false;
    g_autoptr(GPtrArray) known = g_ptr_array_new();
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    const json_t *rows = json_object_get(all, "fields");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(rows, i), "name"));
        g_hash_table_add(names, (char *)name);
        g_ptr_array_add(known, (char *)name);
    }
    g_ptr_array_add(known, NULL);
    for (; *fields != NULL; fields++) {
        if (g_hash_table_contains(names, *fields))
            continue;
        const char *near = nearest_word(*fields, (const char *const *)known->pdata);
        fettle_set_error(error, WRONG_INPUT,
                         "%s: %s has no field \"%s\";%s%s%s see fettle query-fields %s", flag, what,
                         *fields, near != NULL ? " did you mean " : "", near != NULL ? near : "",
                         near != NULL ? "?" : "", what);
        return false;
    }
    return true;
}

/* --- texts --- */

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

/* Times of jobs are Ganeti's pairs [seconds, microseconds]. */
static bool is_pair_of_job(const char *name, const json_t *value)
{
    return g_str_has_suffix(name, "_ts") && json_is_array(value);
}

struct column column_of(const struct cli *cli, const char *what, const char *name)
{
    char units = cli == NULL || cli->separator != NULL ? 'm' : 'h';
    return (struct column){
        .name = name,
        .field = find_field(what, name),
        .units = cli != NULL && cli->units != '\0' ? cli->units : units,
        .roles = cli != NULL && cli->separator == NULL && g_strcmp0(what, "node") == 0 &&
                 strcmp(name, "role") == 0,
        .repair_id = g_strcmp0(what, "repair") == 0 && strcmp(name, "id") == 0,
    };
}

/* As Ganeti writes it: a letter only where the size chose the unit. */
static char *size_text(json_int_t mib, char units)
{
    const json_int_t gib = 1024, tib = 1024 * gib;
    char chosen = units != 'h' ? units : mib < gib ? 'm' : mib < tib ? 'g' : 't';
    g_autofree char *letter = units == 'h' ? g_strdup_printf("%c", g_ascii_toupper(chosen)) : NULL;
    const char *after = letter != NULL ? letter : "";
    if (chosen == 'm')
        return g_strdup_printf("%" JSON_INTEGER_FORMAT "%s", mib, after);
    return g_strdup_printf("%.1f%s", (double)mib / (double)(chosen == 'g' ? gib : tib), after);
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
    if (column->field != NULL && column->field->kind == KIND_UNIT && json_is_integer(value))
        return *ret_made = size_text(json_integer_value(value), column->units);
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

char *column_title(const char *what, const char *name)
{
    const struct shown_field *field = find_field(what, name);
    const char *own = columns_title(what, name);
    char *title = g_strdup(own != NULL ? own : field != NULL ? field->title : name);
    title[0] = g_ascii_toupper(title[0]);
    return title;
}

const char *table_cell(const struct cli *cli, const struct column *column, const json_t *cell,
                       char **ret_made)
{
    const char *text = cell_text(column, cell, ret_made);
    const char *role = column->roles ? cli_role_word(text) : NULL;
    if (role != NULL)
        return role;
    return *text != '\0' || cli->separator != NULL ? text : "-";
}
