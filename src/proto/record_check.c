/* See record_internal.h: what a value of each type must be, and how it is said if it is not. */
#include "proto/record_internal.h"

#include <string.h>

char *record_path(const char *path, const char *name)
{
    return path[0] != '\0' ? g_strconcat(path, ".", name, NULL) : g_strdup(name);
}

static bool refuse(GError **error, const char *path, const char *what)
{
    fettle_set_error(error, WRONG_INPUT, "%s: %s", path, what);
    return false;
}

char *record_unit(const struct field *field)
{
    const char *open = strrchr(field->doc, '(');
    if (open == NULL || !g_str_has_suffix(open, ")."))
        return g_strdup("");
    return g_strdup_printf(" %.*s", (int)strlen(open) - 1, open);
}

static bool check_range(const struct field *field, double value, double lowest, const char *path,
                        GError **error)
{
    double min = MAX(field->min, lowest);
    double max = MIN(field->max, (double)RECORD_NUMBER_MAX);
    g_autofree char *unit = record_unit(field);
    if (value < min)
        fettle_set_error(error, WRONG_INPUT, "%s: must be at least %.15g%s", path, min, unit);
    else if (value > max)
        fettle_set_error(error, WRONG_INPUT, "%s: must be at most %.16g%s", path, max, unit);
    return value >= min && value <= max;
}

static bool check_integer(const struct field *field, const json_t *json, double lowest,
                          const char *path, GError **error)
{
    if (json_is_real(json))
        return refuse(error, path, "must be a whole number");
    if (!json_is_integer(json))
        return refuse(error, path, "must be a number");
    /* Compared as an integer first: a double cannot tell 2^53 from 2^53 + 1. */
    json_int_t value = json_integer_value(json);
    double seen = value > RECORD_NUMBER_MAX ? 2.0 * RECORD_NUMBER_MAX : (double)value;
    return check_range(field, seen, lowest, path, error);
}

static bool check_float(const struct field *field, const json_t *json, const char *path,
                        GError **error)
{
    if (!json_is_number(json))
        return refuse(error, path, "must be a number");
    return check_range(field, json_number_value(json), -(double)RECORD_NUMBER_MAX, path, error);
}

static bool check_string(const struct field *field, const json_t *json, const char *path,
                         GError **error)
{
    if (!json_is_string(json))
        return refuse(error, path, "must be a text");
    glong chars = g_utf8_strlen(json_string_value(json), -1);
    double max = field->max < G_MAXDOUBLE ? field->max : (double)LIMIT_STRING_CHARS;
    if ((double)chars > max)
        fettle_set_error(error, WRONG_INPUT, "%s: must have at most %.0f characters, has %ld", path,
                         max, chars);
    else if (chars == 0 && field->min >= 1)
        return refuse(error, path, "must not be empty");
    else if ((double)chars < field->min)
        fettle_set_error(error, WRONG_INPUT, "%s: must have at least %.0f characters, has %ld",
                         path, field->min, chars);
    return (double)chars <= max && (double)chars >= field->min;
}

static bool check_name(const json_t *json, const char *path, GError **error)
{
    if (!json_is_string(json))
        return refuse(error, path, "must be a text");
    const char *name = json_string_value(json);
    size_t len = strlen(name);
    if (len < 1 || len > LIMIT_NAME_CHARS || !g_ascii_isalnum(name[0]) ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != len) {
        fettle_set_error(error, WRONG_INPUT,
                         "%s: must be a name: 1 to %d of a-z, 0-9, '.' and '-' (no upper case), "
                         "the first a letter or digit",
                         path, LIMIT_NAME_CHARS);
        return false;
    }
    return true;
}

static bool check_uuid(const json_t *json, const char *path, GError **error)
{
    if (!json_is_string(json))
        return refuse(error, path, "must be a text");
    const char *text = json_string_value(json);
    bool good = strlen(text) == 36;
    for (int i = 0; good && i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        good = dash ? text[i] == '-' : g_ascii_isxdigit(text[i]) && !g_ascii_isupper(text[i]);
    }
    return good || refuse(error, path, "must be a UUID in lower case");
}

static bool check_enum(const struct field *field, const json_t *json, const char *path,
                       GError **error)
{
    if (!json_is_string(json))
        return refuse(error, path, "must be a text");
    if (enum_parse(field->words, json_string_value(json)) >= 0)
        return true;
    g_autoptr(GString) list = g_string_new(NULL);
    for (int i = 0; field->words->words[i] != NULL; i++) {
        const char *word = field->words->words[i];
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", word[0] != '\0' ? word : "\"\"");
    }
    fettle_set_error(error, WRONG_INPUT, "%s: must be one of %s", path, list->str);
    return false;
}

bool record_check(const struct field *field, const json_t *json, const char *path, GError **error)
{
    switch (field->type) {
    case FIELD_TYPE_STRING:
        return check_string(field, json, path, error);
    case FIELD_TYPE_NAME:
        return check_name(json, path, error);
    case FIELD_TYPE_UUID:
        return check_uuid(json, path, error);
    case FIELD_TYPE_UINT:
        return check_integer(field, json, 0, path, error);
    case FIELD_TYPE_INT:
        return check_integer(field, json, -(double)RECORD_NUMBER_MAX, path, error);
    case FIELD_TYPE_FLOAT:
        return check_float(field, json, path, error);
    case FIELD_TYPE_BOOL:
        return json_is_boolean(json) || refuse(error, path, "must be true or false");
    case FIELD_TYPE_ENUM:
        return check_enum(field, json, path, error);
    case FIELD_TYPE_STRINGS:
        return json_is_array(json) || refuse(error, path, "must be a list of texts");
    case FIELD_TYPE_OBJECTS:
        return json_is_array(json) || refuse(error, path, "must be a list of objects");
    case FIELD_TYPE_OBJECT: /* by the record's own parser */
    case FIELD_TYPE_JSON:
        return true;
    }
    g_assert_not_reached();
}

bool record_check_count(const struct field *field, size_t count, const char *path, GError **error)
{
    if ((double)count > field->max)
        fettle_set_error(error, WRONG_INPUT, "%s: must have at most %.0f elements, has %zu", path,
                         field->max, count);
    else if ((double)count < field->min)
        fettle_set_error(error, WRONG_INPUT, "%s: must have at least %.0f elements, has %zu", path,
                         field->min, count);
    return (double)count <= field->max && (double)count >= field->min;
}

bool record_check_text(const json_t *json, const char *path, GError **error)
{
    if (!json_is_string(json))
        return refuse(error, path, "must be a text");
    if (g_utf8_strlen(json_string_value(json), -1) <= LIMIT_STRING_CHARS)
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: must have at most %d characters", path,
                     LIMIT_STRING_CHARS);
    return false;
}
