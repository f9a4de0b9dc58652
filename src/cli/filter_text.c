/* See filter_text.h. */
#include "cli/filter_text.h"

#include <string.h>

struct reader {
    const char *text, *at;
    guint depth;
    GError **error;
};

static json_t *read_or(struct reader *reader);

static json_t *complain(struct reader *reader, const char *expected)
{
    if (*reader->error == NULL)
        fettle_set_error(reader->error, WRONG_INPUT,
                         "--filter: expected %s %s%s; as in: status == \"running\" and not tags",
                         expected, *reader->at != '\0' ? "at: " : "at the end", reader->at);
    return NULL;
}

static void skip(struct reader *reader)
{
    while (g_ascii_isspace(*reader->at))
        reader->at++;
}

static bool is_of_name(char c)
{
    return g_ascii_isalnum(c) || (c != '\0' && strchr("_./-", c) != NULL);
}

/* A word that stands here by itself. */
static bool take_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    skip(reader);
    if (strncmp(reader->at, word, length) != 0 || is_of_name(reader->at[length]))
        return false;
    reader->at += length;
    return true;
}

static bool take_sign(struct reader *reader, const char *sign)
{
    skip(reader);
    if (!g_str_has_prefix(reader->at, sign))
        return false;
    reader->at += strlen(sign);
    return true;
}

/* --- values and fields --- */

/* In either kind of quotes; \ before a character takes it as it is. */
static json_t *read_quoted(struct reader *reader)
{
    char quote = *reader->at++;
    g_autoptr(GString) text = g_string_new(NULL);
    for (; *reader->at != '\0' && *reader->at != quote; reader->at++) {
        if (reader->at[0] == '\\' && (reader->at[1] == quote || reader->at[1] == '\\'))
            reader->at++;
        g_string_append_c(text, *reader->at);
    }
    if (*reader->at != quote)
        return complain(reader, "the other quote");
    reader->at++;
    return json_string(text->str);
}

static json_t *read_number(struct reader *reader)
{
    char *end_whole, *end;
    gint64 whole = g_ascii_strtoll(reader->at, &end_whole, 10);
    double number = g_ascii_strtod(reader->at, &end);
    bool is_whole = end_whole == end;
    if (end == reader->at || is_of_name(*end))
        return complain(reader, "a text in quotes, a number, true or false");
    reader->at = end;
    return is_whole ? json_integer((json_int_t)whole) : json_real(number);
}

static json_t *read_value(struct reader *reader)
{
    skip(reader);
    if (*reader->at == '"' || *reader->at == '\'')
        return read_quoted(reader);
    if (take_word(reader, "true") || take_word(reader, "True"))
        return json_true();
    if (take_word(reader, "false") || take_word(reader, "False"))
        return json_false();
    return read_number(reader);
}

static char *read_field(struct reader *reader)
{
    const char *begin;
    skip(reader);
    begin = reader->at;
    while (is_of_name(*reader->at))
        reader->at++;
    if (begin == reader->at || !g_ascii_isalpha(*begin)) {
        reader->at = begin;
        complain(reader, "the name of a field");
        return NULL;
    }
    return g_strndup(begin, (gsize)(reader->at - begin));
}

/* --- conditions --- */

/* "web" in tags */
static json_t *read_in(struct reader *reader)
{
    json_autoptr value = read_value(reader);
    bool not = value != NULL && take_word(reader, "not");
    if (value == NULL)
        return NULL;
    if (!take_word(reader, "in"))
        return complain(reader, "in, and a field that is a list");
    g_autofree char *field = read_field(reader);
    if (field == NULL)
        return NULL;
    json_t *has = json_make("[ssO]", "=[]", field, value);
    return not ? json_make("[so]", "!", has) : has;
}

static json_t *read_comparison(struct reader *reader)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "=~", "!~", "<", ">", "="};
    g_autofree char *field = read_field(reader);
    const char *sign = NULL;
    if (field == NULL)
        return NULL;
    for (size_t i = 0; sign == NULL && i < G_N_ELEMENTS(signs); i++)
        if (take_sign(reader, signs[i]))
            sign = signs[i];
    if (sign == NULL)
        return json_make("[ss]", "?", field);
    json_autoptr value = read_value(reader);
    if (value == NULL)
        return NULL;
    if (strcmp(sign, "!~") == 0)
        return json_make("[s[ssO]]", "!", "=~", field, value);
    return json_make("[ssO]", sign, field, value);
}

static json_t *read_condition(struct reader *reader)
{
    json_t *inner;
    skip(reader);
    if (strchr("\"'", *reader->at) != NULL && *reader->at != '\0')
        return read_in(reader);
    if (!take_sign(reader, "("))
        return read_comparison(reader);
    if (++reader->depth > LIMIT_FILTER_DEPTH)
        return complain(reader, "no more brackets");
    inner = read_or(reader);
    reader->depth--;
    if (inner != NULL && !take_sign(reader, ")")) {
        json_decref(inner);
        return complain(reader, "and, or, or a closing bracket");
    }
    return inner;
}

static json_t *read_not(struct reader *reader)
{
    bool not = false;
    while (take_word(reader, "not"))
        not = !not ;
    json_t *condition = read_condition(reader);
    return condition != NULL && not ? json_make("[so]", "!", condition) : condition;
}

/* One, or several with the word between them, which are made into [sign, …]. */
static json_t *read_row(struct reader *reader, json_t *(*read)(struct reader *reader),
                        const char *word, const char *sign)
{
    json_autoptr row = json_make("[s]", sign);
    do {
        json_t *part = read(reader);
        if (part == NULL)
            return NULL;
        json_array_append_new(row, part);
    } while (take_word(reader, word));
    return json_incref(json_array_size(row) == 2 ? json_array_get(row, 1) : row);
}

static json_t *read_and(struct reader *reader)
{
    return read_row(reader, read_not, "and", "&");
}

static json_t *read_or(struct reader *reader)
{
    return read_row(reader, read_and, "or", "|");
}

json_t *filter_text_parse(const char *text, GError **error)
{
    g_autoptr(GError) bad = NULL;
    struct reader reader = {.text = text, .at = text, .error = &bad};
    json_t *filter;
    skip(&reader);
    if (*reader.at == '[') {
        filter = json_parse_limited(text, strlen(text), LIMIT_LUXI_FRAME_BYTES, &bad);
        g_prefix_error(&bad, "--filter: ");
    } else {
        filter = read_or(&reader);
        skip(&reader);
        if (filter != NULL && *reader.at != '\0') {
            complain(&reader, "and, or, or the end");
            g_clear_pointer(&filter, json_decref);
        }
    }
    if (bad != NULL)
        g_propagate_error(error, g_steal_pointer(&bad));
    return filter;
}

json_t *filter_text_both(json_t *left, json_t *right)
{
    if (left == NULL || right == NULL)
        return left != NULL ? left : right;
    return json_make("[soo]", "&", left, right);
}
