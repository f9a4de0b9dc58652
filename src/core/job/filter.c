/* Filters of queries; see filter.h. */
#include "core/job/filter.h"

#include <string.h>

enum filter_operator {
    OP_AND,
    OP_OR,
    OP_NOT,
    OP_EQUAL,
    OP_NOT_EQUAL,
    OP_LESS,
    OP_GREATER,
    OP_LESS_EQUAL,
    OP_GREATER_EQUAL,
    OP_TRUE,
    OP_REGEX,
    OP_CONTAINS,
};

enum shape {
    SHAPE_FILTERS, /* any number of filters */
    SHAPE_FILTER,  /* one filter */
    SHAPE_FIELD,   /* a field */
    SHAPE_VALUE,   /* a field and a value */
};

static const struct {
    const char *word;
    enum filter_operator op;
    enum shape shape;
} operators[] = {
    {"&", OP_AND, SHAPE_FILTERS},       {"|", OP_OR, SHAPE_FILTERS},
    {"!", OP_NOT, SHAPE_FILTER},        {"==", OP_EQUAL, SHAPE_VALUE},
    {"=", OP_EQUAL, SHAPE_VALUE},       {"!=", OP_NOT_EQUAL, SHAPE_VALUE},
    {"<", OP_LESS, SHAPE_VALUE},        {">", OP_GREATER, SHAPE_VALUE},
    {"<=", OP_LESS_EQUAL, SHAPE_VALUE}, {">=", OP_GREATER_EQUAL, SHAPE_VALUE},
    {"?", OP_TRUE, SHAPE_FIELD},        {"=~", OP_REGEX, SHAPE_VALUE},
    {"=[]", OP_CONTAINS, SHAPE_VALUE},
};

struct filter {
    enum filter_operator op;
    GPtrArray *parts;  /* of struct filter *: & | ! */
    GHashTable *words; /* texts of an "or" of nothing but equals of one field; borrowed */
    const void *field; /* the others */
    json_t *value;
    GRegex *regex;    /* gives up early … */
    GRegex *thorough; /* … and late; made when first needed */
};

struct parser {
    filter_resolve resolve;
    void *data;
    guint terms, regexes;
    GString *path; /* "filter[1][2]" */
};

void filter_free(struct filter *filter)
{
    if (!filter)
        return;
    g_clear_pointer(&filter->words, g_hash_table_unref);
    g_clear_pointer(&filter->parts, g_ptr_array_unref);
    json_decref(filter->value);
    g_clear_pointer(&filter->regex, g_regex_unref);
    g_clear_pointer(&filter->thorough, g_regex_unref);
    g_free(filter);
}

static void free_part(gpointer filter)
{
    filter_free(filter);
}

/* --- parsing --- */

static struct filter *parse(struct parser *parser, const json_t *json, guint depth, GError **error);

/* "name is one of …" is one look, however many there are. */
static void gather_words(struct filter *filter)
{
    const struct filter *first = filter->parts->len > 0 ? filter->parts->pdata[0] : NULL;
    for (guint i = 0; i < filter->parts->len; i++) {
        const struct filter *part = filter->parts->pdata[i];
        if (part->op != OP_EQUAL || part->field != first->field || !json_is_string(part->value))
            return;
    }
    filter->words = first ? g_hash_table_new(g_str_hash, g_str_equal) : NULL;
    for (guint i = 0; i < filter->parts->len; i++) {
        const struct filter *part = filter->parts->pdata[i];
        g_hash_table_add(filter->words, (void *)json_string_value(part->value));
    }
}

static bool parse_parts(struct parser *parser, struct filter *filter, const json_t *json,
                        guint depth, GError **error)
{
    gsize length = parser->path->len;
    filter->parts = g_ptr_array_new_with_free_func(free_part);
    for (size_t i = 1; i < json_array_size(json); i++) {
        g_string_append_printf(parser->path, "[%zu]", i);
        struct filter *part = parse(parser, json_array_get(json, i), depth + 1, error);
        if (!part)
            return false;
        g_ptr_array_add(filter->parts, part);
        g_string_truncate(parser->path, length);
    }
    if (filter->op == OP_OR)
        gather_words(filter);
    return true;
}

static bool parse_field(struct parser *parser, struct filter *filter, const json_t *json,
                        GError **error)
{
    const char *name = json_string_value(json_array_get(json, 1));
    if (!name) {
        fettle_set_error(error, WRONG_INPUT, "%s[1]: must be the name of a field",
                         parser->path->str);
        return false;
    }
    filter->field = parser->resolve(name, parser->data);
    if (!filter->field)
        fettle_set_error(error, WRONG_INPUT, "%s[1]: unknown field \"%s\"", parser->path->str,
                         name);
    return filter->field != NULL;
}

/* The step limit stands before the pattern, so that no pattern can keep the daemon busy. */
static GRegex *make_regex(const char *pattern, guint steps, GError **error)
{
    g_autofree char *limited = g_strdup_printf("(*LIMIT_MATCH=%u)%s", steps, pattern);
    return g_regex_new(limited, G_REGEX_OPTIMIZE, 0, error);
}

static bool parse_regex(struct parser *parser, struct filter *filter, GError **error)
{
    const char *pattern = json_string_value(filter->value);
    g_autoptr(GError) broken = NULL;
    if (!pattern || strlen(pattern) > LIMIT_STRING_CHARS) {
        fettle_set_error(error, WRONG_INPUT,
                         "%s[2]: must be a regular expression of at most %d characters",
                         parser->path->str, LIMIT_STRING_CHARS);
        return false;
    }
    if (++parser->regexes > LIMIT_FILTER_REGEXES) {
        fettle_set_error(error, LIMIT, "filter: may have %d regular expressions",
                         LIMIT_FILTER_REGEXES);
        return false;
    }
    filter->regex = make_regex(pattern, FILTER_REGEX_EASY_STEPS, &broken);
    if (!filter->regex)
        fettle_set_error(error, WRONG_INPUT, "%s[2]: is no regular expression: %s",
                         parser->path->str, broken->message);
    return filter->regex != NULL;
}

static bool parse_value(struct parser *parser, struct filter *filter, const json_t *json,
                        GError **error)
{
    json_t *value = json_array_get(json, 2);
    if (!json_is_string(value) && !json_is_number(value) && !json_is_boolean(value)) {
        fettle_set_error(error, WRONG_INPUT, "%s[2]: must be a text, a number or a boolean",
                         parser->path->str);
        return false;
    }
    filter->value = json_incref(value);
    return filter->op != OP_REGEX || parse_regex(parser, filter, error);
}

static bool parse_operator(struct parser *parser, const json_t *json, enum filter_operator *ret_op,
                           enum shape *ret_shape, GError **error)
{
    const char *word = json_string_value(json_array_get(json, 0));
    if (!word) {
        fettle_set_error(error, WRONG_INPUT, "%s: must be a list that begins with an operator",
                         parser->path->str);
        return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(operators); i++) {
        if (g_str_equal(operators[i].word, word)) {
            *ret_op = operators[i].op;
            *ret_shape = operators[i].shape;
            return true;
        }
    }
    fettle_set_error(error, WRONG_INPUT, "%s[0]: unknown operator \"%s\"", parser->path->str, word);
    return false;
}

static bool check_size(const struct parser *parser, const json_t *json, enum shape shape,
                       GError **error)
{
    static const size_t sizes[] = {
        [SHAPE_FILTERS] = 0, [SHAPE_FILTER] = 2, [SHAPE_FIELD] = 2, [SHAPE_VALUE] = 3};
    if (sizes[shape] == 0 || json_array_size(json) == sizes[shape])
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: operator \"%s\" takes %zu operands, got %zu",
                     parser->path->str, json_string_value(json_array_get(json, 0)),
                     sizes[shape] - 1, json_array_size(json) - 1);
    return false;
}

static struct filter *parse(struct parser *parser, const json_t *json, guint depth, GError **error)
{
    if (depth > LIMIT_FILTER_DEPTH || ++parser->terms > LIMIT_FILTER_TERMS) {
        fettle_set_error(error, LIMIT, "filter: may be nested %d deep and have %d terms",
                         LIMIT_FILTER_DEPTH, LIMIT_FILTER_TERMS);
        return NULL;
    }
    enum filter_operator op;
    enum shape shape;
    if (!parse_operator(parser, json, &op, &shape, error) ||
        !check_size(parser, json, shape, error))
        return NULL;
    struct filter *filter = g_new0(struct filter, 1);
    filter->op = op;
    bool ok;
    if (shape == SHAPE_FILTERS || shape == SHAPE_FILTER)
        ok = parse_parts(parser, filter, json, depth, error);
    else
        ok = parse_field(parser, filter, json, error) &&
             (shape == SHAPE_FIELD || parse_value(parser, filter, json, error));
    if (ok)
        return filter;
    filter_free(filter);
    return NULL;
}

struct filter *filter_parse(const json_t *json, filter_resolve resolve, void *data, GError **error)
{
    struct parser parser = {.resolve = resolve, .data = data};
    if (!json || json_is_null(json))
        return NULL;
    parser.path = g_string_new("filter");
    struct filter *filter = parse(&parser, json, 1, error);
    g_string_free(parser.path, TRUE);
    return filter;
}

/* --- matching --- */

/* -1, 0, 1; 2: the two cannot be compared. */
static int compare(const json_t *left, const json_t *right)
{
    if (json_is_integer(left) && json_is_integer(right)) {
        json_int_t a = json_integer_value(left), b = json_integer_value(right);
        return a < b ? -1 : a > b;
    }
    if (json_is_number(left) && json_is_number(right)) {
        double a = json_number_value(left), b = json_number_value(right);
        return a < b ? -1 : a > b;
    }
    if (json_is_string(left) && json_is_string(right)) {
        int order = strcmp(json_string_value(left), json_string_value(right));
        return order < 0 ? -1 : order > 0;
    }
    if (json_is_boolean(left) && json_is_boolean(right))
        return json_is_true(left) == json_is_true(right) ? 0 : 2;
    return 2;
}

static bool is_true(const json_t *value)
{
    if (json_is_string(value))
        return json_string_length(value) > 0;
    if (json_is_number(value))
        return json_number_value(value) != 0;
    if (json_is_array(value))
        return json_array_size(value) > 0;
    if (json_is_object(value))
        return json_object_size(value) > 0;
    return json_is_true(value);
}

static bool contains(const json_t *list, const json_t *value)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
        if (compare(item, value) == 0)
            return true;
    return false;
}

/* Most end soon; one that does not is tried once more, with patience, and counts for it. */
static bool match_regex(struct filter *filter, const json_t *value, guint64 *steps)
{
    const char *text = json_string_value(value);
    g_autoptr(GError) gave_up = NULL;
    bool found = g_regex_match_full(filter->regex, text, -1, 0, 0, NULL, &gave_up);
    *steps += json_string_length(value) / QUERY_BYTES_STEP;
    if (!gave_up)
        return found;
    *steps += FILTER_REGEX_COST;
    if (!filter->thorough)
        filter->thorough =
            make_regex(json_string_value(filter->value), LIMIT_FILTER_REGEX_STEPS, NULL);
    return g_regex_match(filter->thorough, text, 0, NULL);
}

static bool match_value(struct filter *filter, const json_t *value, guint64 *steps)
{
    int order = compare(value, filter->value);
    switch (filter->op) {
    case OP_EQUAL:
        return order == 0;
    case OP_NOT_EQUAL:
        return order != 0;
    case OP_LESS:
        return order == -1;
    case OP_GREATER:
        return order == 1;
    case OP_LESS_EQUAL:
        return order == -1 || order == 0;
    case OP_GREATER_EQUAL:
        return order == 1 || order == 0;
    case OP_TRUE:
        return is_true(value);
    case OP_REGEX:
        return json_is_string(value) && match_regex(filter, value, steps);
    case OP_CONTAINS:
        return contains(value, filter->value);
    case OP_AND:
    case OP_OR:
    case OP_NOT:
        break;
    }
    g_assert_not_reached();
}

static bool match(struct filter *filter, filter_value value, void *data, guint64 *steps)
{
    json_autoptr field = NULL;
    ++*steps;
    if (filter->words) {
        field = value(((const struct filter *)filter->parts->pdata[0])->field, data);
        return json_is_string(field) &&
               g_hash_table_contains(filter->words, json_string_value(field));
    }
    if (!filter->parts) {
        field = value(filter->field, data);
        return match_value(filter, field, steps);
    }
    if (filter->op == OP_NOT)
        return !match(filter->parts->pdata[0], value, data, steps);
    for (guint i = 0; i < filter->parts->len; i++)
        if (match(filter->parts->pdata[i], value, data, steps) == (filter->op == OP_OR))
            return filter->op == OP_OR;
    return filter->op == OP_AND;
}

/* What is made when first needed is no part of what the filter says. */
bool filter_match(const struct filter *filter, filter_value value, void *data, guint64 *steps)
{
    guint64 uncounted = 0;
    return !filter || match((struct filter *)filter, value, data, steps ? steps : &uncounted);
}

void filter_fields(const struct filter *filter, void (*each)(const void *field, void *data),
                   void *data)
{
    if (!filter)
        return;
    if (!filter->parts)
        each(filter->field, data);
    for (guint i = 0; filter->parts && i < filter->parts->len; i++)
        filter_fields(filter->parts->pdata[i], each, data);
}

/* --- what can match at all --- */

static bool add_values(const struct filter *filter, const void *field, GPtrArray *values);

/* Every branch of an "or" has to say so, one part of an "and". */
static bool add_of_parts(const struct filter *filter, const void *field, GPtrArray *values)
{
    bool any = filter->op == OP_AND;
    for (guint i = 0; i < filter->parts->len; i++) {
        guint length = values->len;
        bool says = add_values(filter->parts->pdata[i], field, values);
        if (!says)
            g_ptr_array_set_size(values, (gint)length);
        if (says == any)
            return says;
    }
    return !any && filter->parts->len > 0;
}

static bool add_values(const struct filter *filter, const void *field, GPtrArray *values)
{
    if (filter->op == OP_AND || filter->op == OP_OR)
        return add_of_parts(filter, field, values);
    if (filter->op != OP_EQUAL || filter->field != field)
        return false;
    g_ptr_array_add(values, filter->value);
    return true;
}

GPtrArray *filter_values(const struct filter *filter, const void *field)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    return filter && add_values(filter, field, values) ? g_steal_pointer(&values) : NULL;
}

/* Of an "or", from the least of its parts to the most. */
static void bounds_of_any(const struct filter *filter, const void *field, gint64 *least,
                          gint64 *most)
{
    gint64 low = G_MAXINT64, high = G_MININT64;
    for (guint i = 0; i < filter->parts->len; i++) {
        gint64 part_low = *least, part_high = *most;
        filter_bounds(filter->parts->pdata[i], field, &part_low, &part_high);
        if (part_low <= part_high) {
            low = MIN(low, part_low);
            high = MAX(high, part_high);
        }
    }
    *least = MAX(*least, low);
    *most = MIN(*most, high);
}

static void bounds_of_value(const struct filter *filter, gint64 *least, gint64 *most)
{
    gint64 value = json_integer_value(filter->value);
    enum filter_operator op = filter->op;
    if (op == OP_EQUAL || op == OP_GREATER_EQUAL)
        *least = MAX(*least, value);
    if (op == OP_GREATER)
        *least = MAX(*least, value == G_MAXINT64 ? value : value + 1);
    if (op == OP_EQUAL || op == OP_LESS_EQUAL)
        *most = MIN(*most, value);
    if (op == OP_LESS)
        *most = MIN(*most, value == G_MININT64 ? value : value - 1);
}

void filter_bounds(const struct filter *filter, const void *field, gint64 *least, gint64 *most)
{
    if (!filter)
        return;
    if (filter->op == OP_OR)
        bounds_of_any(filter, field, least, most);
    else if (filter->op == OP_AND)
        for (guint i = 0; i < filter->parts->len; i++)
            filter_bounds(filter->parts->pdata[i], field, least, most);
    else if (filter->field == field && json_is_integer(filter->value))
        bounds_of_value(filter, least, most);
}
