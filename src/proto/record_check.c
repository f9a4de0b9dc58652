/* See record_private.h: what a value of each type must be, and how it is said if it is not. */
#include "proto/record_private.h"

#include "base/text.h"

#include <string.h>

char *place_text(const struct place *place)
{
    if (place == NULL)
        return g_strdup("");
    g_autofree char *outer = place_text(place->outer);
    if (place->name == NULL)
        return g_strdup_printf("%s[%u]", outer, place->index);
    return place->outer != NULL ? g_strconcat(outer, ".", place->name, NULL)
                                : g_strdup(place->name);
}

bool record_refuse(GError **error, const struct place *place, const char *format, ...)
{
    g_autofree char *path = place_text(place);
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    fettle_set_error(error, WRONG_INPUT, "%s: %s", path, what);
    return false;
}

char *record_doc(const char *doc)
{
    const char *wire = strstr(doc, " On the wire ");
    return wire != NULL ? g_strndup(doc, (size_t)(wire - doc)) : g_strdup(doc);
}

enum record_time record_time(const struct field *field)
{
    if (strstr(field->doc, "seconds since 1970") != NULL)
        return strstr(field->doc, "On the wire in seconds since") != NULL ? RECORD_TIME_MOMENT
                                                                          : RECORD_TIME_NONE;
    if (strstr(field->doc, "On the wire in milliseconds") != NULL)
        return RECORD_TIME_MS;
    return strstr(field->doc, "On the wire in seconds") != NULL ? RECORD_TIME_SECONDS
                                                                : RECORD_TIME_NONE;
}

char *record_unit(const struct field *field)
{
    g_autofree char *doc = record_doc(field->doc);
    const char *open = strrchr(doc, '(');
    if (open == NULL || !g_str_has_suffix(open, ")."))
        return g_strdup("");
    return g_strdup_printf(" %.*s", (int)strlen(open) - 1, open);
}

static double lowest_of(const struct field *field, double lowest)
{
    return MAX(field->min, lowest);
}

static double highest_of(const struct field *field)
{
    return MIN(field->max, (double)RECORD_NUMBER_MAX);
}

bool record_number_is_good(const struct field *field, double value, double lowest)
{
    return value >= lowest_of(field, lowest) && value <= highest_of(field);
}

static bool check_range(const struct field *field, double value, double lowest,
                        const struct place *place, GError **error)
{
    double min = lowest_of(field, lowest);
    if (record_number_is_good(field, value, lowest))
        return true;
    g_autofree char *unit = record_unit(field);
    return value < min
               ? record_refuse(error, place, "must be at least %.15g%s", min, unit)
               : record_refuse(error, place, "must be at most %.16g%s", highest_of(field), unit);
}

static bool check_integer(const struct field *field, const json_t *json, double lowest,
                          const struct place *place, GError **error)
{
    if (json_is_real(json))
        return record_refuse(error, place, "must be a whole number");
    if (!json_is_integer(json))
        return record_refuse(error, place, "must be a number");
    /* Compared as an integer first: a double cannot tell 2^53 from 2^53 + 1. */
    json_int_t value = json_integer_value(json);
    double seen = value > RECORD_NUMBER_MAX ? 2.0 * RECORD_NUMBER_MAX : (double)value;
    return check_range(field, seen, lowest, place, error);
}

static bool check_float(const struct field *field, const json_t *json, const struct place *place,
                        GError **error)
{
    if (!json_is_number(json))
        return record_refuse(error, place, "must be a number");
    return check_range(field, json_number_value(json), -(double)RECORD_NUMBER_MAX, place, error);
}

static double most_characters(const struct field *field)
{
    return field->max < G_MAXDOUBLE ? field->max : (double)LIMIT_STRING_CHARS;
}

bool record_count_is_good(const struct field *field, size_t count)
{
    return (double)count <= most_characters(field) && (double)count >= field->min;
}

static bool check_string(const struct field *field, const json_t *json, const struct place *place,
                         GError **error)
{
    if (!json_is_string(json))
        return record_refuse(error, place, "must be a text");
    double max = most_characters(field);
    size_t bytes = json_string_length(json);
    if ((double)bytes <= max && field->min <= (bytes > 0 ? 1 : 0))
        return true; /* not more characters than bytes */
    glong chars = g_utf8_strlen(json_string_value(json), -1);
    if ((double)chars > max)
        return record_refuse(error, place, "must have at most %.0f characters, has %ld", max,
                             chars);
    if (chars == 0 && field->min >= 1)
        return record_refuse(error, place, "must not be empty");
    if ((double)chars < field->min)
        return record_refuse(error, place, "must have at least %.0f characters, has %ld",
                             field->min, chars);
    return true;
}

bool record_name_is_good(const char *name, size_t len)
{
    bool good = len >= 1 && len <= LIMIT_NAME_CHARS && g_ascii_isalnum(name[0]);
    for (size_t i = 0; good && i < len; i++)
        good = g_ascii_islower(name[i]) || g_ascii_isdigit(name[i]) || name[i] == '.' ||
               name[i] == '-';
    return good;
}

static bool check_name(const json_t *json, const struct place *place, GError **error)
{
    if (!json_is_string(json))
        return record_refuse(error, place, "must be a text");
    const char *name = json_string_value(json);
    return record_name_is_good(name, strlen(name)) ||
           record_refuse(error, place,
                         "must be a name: 1 to %d of a-z, 0-9, '.' and '-' (no upper "
                         "case), the first a letter or digit",
                         LIMIT_NAME_CHARS);
}

bool record_uuid_is_good(const char *text, size_t len)
{
    bool good = len == 36;
    for (int i = 0; good && i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        good = dash ? text[i] == '-' : g_ascii_isxdigit(text[i]) && !g_ascii_isupper(text[i]);
    }
    return good;
}

static bool check_uuid(const json_t *json, const struct place *place, GError **error)
{
    if (!json_is_string(json))
        return record_refuse(error, place, "must be a text");
    const char *text = json_string_value(json);
    return record_uuid_is_good(text, strlen(text)) ||
           record_refuse(error, place, "must be a UUID in lower case");
}

static bool check_enum(const struct field *field, const json_t *json, const struct place *place,
                       GError **error)
{
    if (!json_is_string(json))
        return record_refuse(error, place, "must be a text");
    if (enum_parse(field->words, json_string_value(json)) >= 0)
        return true;
    g_autoptr(GString) list = g_string_new(NULL);
    for (int i = 0; field->words->words[i] != NULL; i++) {
        const char *word = field->words->words[i];
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", word[0] != '\0' ? word : "\"\"");
    }
    return record_refuse(error, place, "must be one of %s", list->str);
}

bool record_check(const struct field *field, const json_t *json, const struct place *place,
                  GError **error)
{
    switch (field->type) {
    case FIELD_TYPE_STRING:
        return check_string(field, json, place, error);
    case FIELD_TYPE_NAME:
        return check_name(json, place, error);
    case FIELD_TYPE_UUID:
        return check_uuid(json, place, error);
    case FIELD_TYPE_UINT:
        return check_integer(field, json, 0, place, error);
    case FIELD_TYPE_INT:
        return check_integer(field, json, -(double)RECORD_NUMBER_MAX, place, error);
    case FIELD_TYPE_FLOAT:
        return check_float(field, json, place, error);
    case FIELD_TYPE_BOOL:
        return json_is_boolean(json) || record_refuse(error, place, "must be true or false");
    case FIELD_TYPE_ENUM:
        return check_enum(field, json, place, error);
    case FIELD_TYPE_STRINGS:
        return json_is_array(json) || record_refuse(error, place, "must be a list of texts");
    case FIELD_TYPE_OBJECTS:
        return json_is_array(json) || record_refuse(error, place, "must be a list of objects");
    case FIELD_TYPE_OBJECT: /* by the record's own parser */
    case FIELD_TYPE_JSON:
        return true;
    }
    g_assert_not_reached();
}

bool record_check_count(const struct field *field, size_t count, const struct place *place,
                        GError **error)
{
    if ((double)count > field->max)
        return record_refuse(error, place, "must have at most %.0f elements, has %zu", field->max,
                             count);
    if ((double)count < field->min)
        return record_refuse(error, place, "must have at least %.0f elements, has %zu", field->min,
                             count);
    return true;
}

bool record_check_line(const char *text, const struct place *place, GError **error)
{
    g_autofree char *control = text_control(text);
    return control == NULL ||
           record_refuse(error, place, "must have no control characters, has %s", control);
}

bool record_check_text(const json_t *json, const struct place *place, GError **error)
{
    if (!json_is_string(json))
        return record_refuse(error, place, "must be a text");
    if (json_string_length(json) <= LIMIT_STRING_CHARS ||
        g_utf8_strlen(json_string_value(json), -1) <= LIMIT_STRING_CHARS)
        return true;
    return record_refuse(error, place, "must have at most %d characters", LIMIT_STRING_CHARS);
}
