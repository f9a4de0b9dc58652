/* See record.h and record_private.h: settings as they are typed on a command line, and the schema
 * of a record. */
#include "proto/record_private.h"

#include <string.h>

#include "base/time_text.h"

/* --- text to JSON; limits are checked afterwards, as for any other JSON --- */

static json_t *integer_of(const char *text, const char *path, GError **error)
{
    gint64 number;
    if (g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, &number, NULL))
        return json_integer(number);
    fettle_set_error(error, WRONG_INPUT, "%s: must be a whole number, not \"%s\"", path, text);
    return NULL;
}

/* `10G`, `1.5T`, `2048K`, or a plain number of `unit` MiB. Only whole ones are taken. */
static json_t *size_of(const char *text, guint unit, const char *path, GError **error)
{
    static const struct {
        const char *letter;
        double mib;
    } units[] = {{"K", 1.0 / 1024}, {"M", 1}, {"G", 1024}, {"T", 1024 * 1024}};
    char *end = NULL;
    double number = g_ascii_strtod(text, &end), mib = -1;
    if (end != text && g_ascii_isdigit(text[0]) && *end == '\0')
        mib = number * unit;
    for (size_t i = 0; end != text && g_ascii_isdigit(text[0]) && i < G_N_ELEMENTS(units); i++) {
        g_autofree char *longer = g_strconcat(units[i].letter, "iB", NULL);
        if (g_ascii_strcasecmp(end, units[i].letter) == 0 || g_ascii_strcasecmp(end, longer) == 0)
            mib = number * units[i].mib;
    }
    mib /= unit;
    if (mib >= 0 && mib <= (double)RECORD_NUMBER_MAX && mib == (double)(gint64)mib)
        return json_integer((gint64)mib);
    fettle_set_error(error, WRONG_INPUT, "%s: must be a size in whole %s 10G or 1T, not \"%s\"",
                     path, unit == 1 ? "MiB, such as 512, 512M," : "GiB, such as 10,", text);
    return NULL;
}

/* `90s`, `2h`, or a plain number in the field's own unit. */
static json_t *duration_of(const struct field *field, const char *text, const char *path,
                           GError **error)
{
    gint64 ms, plain, unit_ms = record_time(field) == RECORD_TIME_MS ? 1 : 1000;
    bool real = field->type == FIELD_TYPE_FLOAT;
    char *end = NULL;
    double number = g_ascii_strtod(text, &end);
    if (real && end != text && *end == '\0')
        return json_real(number);
    if (g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, &plain, NULL))
        return json_integer(plain);
    if (time_text_duration(text, (guint64)unit_ms, &ms) && (real || ms % unit_ms == 0))
        return real ? json_real((double)ms / (double)unit_ms) : json_integer(ms / unit_ms);
    fettle_set_error(error, WRONG_INPUT,
                     "%s: must be a %snumber of %sseconds, or a time such as %s, not \"%s\"", path,
                     real ? "" : "whole ", unit_ms == 1 ? "milli" : "",
                     unit_ms == 1 ? "300ms, 10s or 5m" : "90s, 10m, 2h or 3d", text);
    return NULL;
}

static json_t *moment_of(const char *text, const char *path, GError **error)
{
    gint64 seconds;
    if (time_text_moment(text, g_get_real_time() / G_USEC_PER_SEC, &seconds))
        return json_integer(seconds);
    fettle_set_error(error, WRONG_INPUT,
                     "%s: must be a time from now on, such as 2h or 3d, or a date such as "
                     "2026-12-01 or \"2026-12-01 08:00\", not \"%s\"",
                     path, text);
    return NULL;
}

static json_t *real_of(const char *text, const char *path, GError **error)
{
    char *end = NULL;
    double number = g_ascii_strtod(text, &end);
    json_t *json = end != text && *end == '\0' ? json_real(number) : NULL;
    if (json == NULL)
        fettle_set_error(error, WRONG_INPUT, "%s: must be a number, not \"%s\"", path, text);
    return json;
}

static json_t *bool_of(const char *text, const char *path, GError **error)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0)
        return json_true();
    if (strcmp(text, "false") == 0 || strcmp(text, "no") == 0)
        return json_false();
    fettle_set_error(error, WRONG_INPUT, "%s: must be true or false, not \"%s\"", path, text);
    return NULL;
}

static json_t *string_of(const char *text, const char *path, GError **error)
{
    json_t *json = json_string(text);
    if (json == NULL)
        fettle_set_error(error, WRONG_INPUT, "%s: must be UTF-8", path);
    return json;
}

static json_t *json_of(const char *text, const char *path, GError **error)
{
    json_t *json = json_parse_limited(text, strlen(text), LIMIT_FRAME_BYTES, error);
    if (json == NULL)
        g_prefix_error(error, "%s: ", path);
    return json;
}

/* `size=64,name=data` by the record of a part. */
static json_t *object_of(const struct record *record, const char *text, const char *path,
                         GError **error)
{
    json_autoptr object = json_object();
    g_auto(GStrv) settings = g_strsplit(text, ",", -1);
    for (int i = 0; settings[i] != NULL; i++) {
        char *equals = strchr(settings[i], '=');
        if (equals == NULL) {
            fettle_set_error(error, WRONG_INPUT, "%s: must be NAME=VALUE,..., not \"%s\"", path,
                             text);
            return NULL;
        }
        *equals = '\0';
        g_autofree char *at = g_strconcat(path, ".", settings[i], NULL);
        const struct field *field = record_field(record, settings[i]);
        if (field == NULL) {
            fettle_set_error(error, WRONG_INPUT, "%s: is not known", at);
            return NULL;
        }
        if (json_object_get(object, settings[i]) != NULL) {
            fettle_set_error(error, WRONG_INPUT, "%s: is given twice", at);
            return NULL;
        }
        json_t *member = record_text_to_json(field, equals + 1, at, error);
        if (member == NULL)
            return NULL;
        json_object_set_new(object, settings[i], member);
    }
    return json_steal(&object);
}

static json_t *list_of(json_t *element)
{
    if (element == NULL)
        return NULL;
    json_t *list = json_array();
    json_array_append_new(list, element);
    return list;
}

/* In MiB; 0: it is no size. */
static guint size_unit(const struct field *field)
{
    g_autofree char *unit = record_unit(field);
    return strcmp(unit, " (MiB)") == 0 ? 1 : strcmp(unit, " (GiB)") == 0 ? 1024 : 0;
}

json_t *record_text_to_json(const struct field *field, const char *text, const char *path,
                            GError **error)
{
    enum record_time time = record_time(field);
    if (time == RECORD_TIME_MOMENT)
        return moment_of(text, path, error);
    if (time != RECORD_TIME_NONE)
        return duration_of(field, text, path, error);
    switch (field->type) {
    case FIELD_TYPE_STRING:
    case FIELD_TYPE_NAME:
    case FIELD_TYPE_UUID:
    case FIELD_TYPE_ENUM:
        return string_of(text, path, error);
    case FIELD_TYPE_UINT:
        return size_unit(field) ? size_of(text, size_unit(field), path, error)
                                : integer_of(text, path, error);
    case FIELD_TYPE_INT:
        return integer_of(text, path, error);
    case FIELD_TYPE_FLOAT:
        return real_of(text, path, error);
    case FIELD_TYPE_BOOL:
        return bool_of(text, path, error);
    case FIELD_TYPE_JSON:
        return json_of(text, path, error);
    case FIELD_TYPE_OBJECT:
        return object_of(field->record, text, path, error);
    case FIELD_TYPE_STRINGS:
        return list_of(string_of(text, path, error));
    case FIELD_TYPE_OBJECTS:
        return list_of(object_of(field->record, text, path, error));
    }
    g_assert_not_reached();
}

/* --- schema --- */

const char *field_type_name(enum field_type type)
{
    static const char *const names[] = {
        [FIELD_TYPE_STRING] = "string", [FIELD_TYPE_NAME] = "name",
        [FIELD_TYPE_UUID] = "uuid",     [FIELD_TYPE_UINT] = "uint",
        [FIELD_TYPE_INT] = "int",       [FIELD_TYPE_FLOAT] = "float",
        [FIELD_TYPE_BOOL] = "bool",     [FIELD_TYPE_STRINGS] = "strings",
        [FIELD_TYPE_JSON] = "json",     [FIELD_TYPE_ENUM] = "enum",
        [FIELD_TYPE_OBJECT] = "object", [FIELD_TYPE_OBJECTS] = "objects",
    };
    return names[type];
}

static json_t *field_schema(const struct field *field)
{
    json_t *json =
        json_make("{s:s, s:s, s:b, s:s}", "name", field->name, "type", field_type_name(field->type),
                  "required", (int)field->required, "doc", field->doc);
    if (field->def != NULL)
        json_object_set_new(json, "default", json_string(field->def));
    if (field->min > -G_MAXDOUBLE)
        json_object_set_new(json, "min", json_integer((json_int_t)field->min));
    if (field->max < G_MAXDOUBLE)
        json_object_set_new(json, "max", json_integer((json_int_t)field->max));
    if (field->record != NULL)
        json_object_set_new(json, "record", json_string(field->record->name));
    if (field->words != NULL)
        json_object_set_new(json, "words", json_string(field->words->name));
    return json;
}

json_t *record_schema(const struct record *record)
{
    json_t *fields = json_array();
    for (const struct field *field = record->fields(); field->name != NULL; field++)
        json_array_append_new(fields, field_schema(field));
    return json_make("{s:s, s:s, s:o}", "name", record->name, "doc", record->doc, "fields", fields);
}
