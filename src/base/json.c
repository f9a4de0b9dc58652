/* See json.h. The depth is counted before parsing, because the parser recurses. */
#include "base/json.h"
#include "base/json_private.h"

#include "base/error.h"
#include "base/limits.h"

#include <string.h>

/* Deepest nesting of brackets outside of texts. On broken input it is right up to the first error,
 * where the parser stops anyway. */
static unsigned nesting(const char *data, size_t len)
{
    unsigned depth = 0, deepest = 0;
    bool in_text = false;
    for (size_t i = 0; i < len; i++) {
        char c = data[i];
        if (in_text) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_text = false;
        } else if (c == '"') {
            in_text = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest)
                deepest = depth;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

/* NULL: jansson has to look. */
static json_t *parse_plain(const char *data, size_t len)
{
    struct json_cursor cursor = {data, data + len};
    json_skip_blank(&cursor);
    if (cursor.at == cursor.end || (*cursor.at != '{' && *cursor.at != '['))
        return NULL;
    json_autoptr json = json_plain_value(&cursor, 0);
    json_skip_blank(&cursor);
    return cursor.at == cursor.end ? json_steal(&json) : NULL;
}

json_t *json_parse_limited(const char *data, size_t len, size_t max_bytes, GError **error)
{
    if (len > max_bytes) {
        fettle_set_error(error, LIMIT, "JSON of %zu bytes: at most %zu are allowed", len,
                         max_bytes);
        return NULL;
    }
    json_t *plain = parse_plain(data, len);
    if (plain)
        return plain;
    if (nesting(data, len) > LIMIT_JSON_DEPTH) {
        fettle_set_error(error, LIMIT, "JSON is nested deeper than %d levels", LIMIT_JSON_DEPTH);
        return NULL;
    }
    json_error_t problem;
    json_t *json = json_loadb(data, len, JSON_REJECT_DUPLICATES, &problem);
    if (json == NULL)
        fettle_set_error(error, PROTOCOL, "broken JSON at byte %d (line %d): %s", problem.position,
                         problem.line, problem.text);
    return json;
}

json_t *json_parse_own(const char *text)
{
    struct json_cursor cursor = {text, text + strlen(text)};
    json_autoptr json = json_plain_value(&cursor, 0);
    return *cursor.at == '\0' && json ? json_steal(&json) : json_loads(text, JSON_DECODE_ANY, NULL);
}

char *json_to_text(const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    g_assert(text != NULL);
    return text;
}

static void append_escaped(GString *out, unsigned char letter)
{
    static const char short_ones[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *pair = short_ones; *pair != '\0'; pair += 2) {
        if ((unsigned char)pair[0] == letter) {
            g_string_append_c(out, '\\');
            g_string_append_c(out, pair[1]);
            return;
        }
    }
    g_string_append_printf(out, "\\u%04X", letter);
}

void json_append_string(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (const char *rest = text; *rest != '\0';) {
        size_t plain = 0;
        while ((unsigned char)rest[plain] >= 0x20 && rest[plain] != '"' && rest[plain] != '\\')
            plain++;
        g_string_append_len(out, rest, (gssize)plain);
        rest += plain;
        if (*rest != '\0')
            append_escaped(out, (unsigned char)*rest++);
    }
    g_string_append_c(out, '"');
}

void json_append_integer(GString *out, gint64 number)
{
    char digits[24];
    char *at = digits + sizeof digits;
    guint64 left = number < 0 ? -(guint64)number : (guint64)number;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0)
        *--at = '-';
    g_string_append_len(out, at, digits + sizeof digits - at);
}

static void append_any(GString *out, const json_t *json)
{
    char *text = json_to_text(json);
    g_string_append(out, text);
    free(text);
}

static void append_array(GString *out, const json_t *array)
{
    g_string_append_c(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        json_append(out, json_array_get(array, i));
    }
    g_string_append_c(out, ']');
}

/* Objects of documents are small: their names are put in order as they are taken. */
#define NAMES_SORTED 24

static void append_object(GString *out, json_t *object)
{
    const char *names[NAMES_SORTED];
    size_t count = 0;
    const char *name;
    json_t *member;
    json_object_foreach(object, name, member) {
        size_t at = count++;
        for (; at > 0 && strcmp(names[at - 1], name) > 0; at--)
            names[at] = names[at - 1];
        names[at] = name;
    }
    g_string_append_c(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        json_append_string(out, names[i]);
        g_string_append_c(out, ':');
        json_append(out, json_object_get(object, names[i]));
    }
    g_string_append_c(out, '}');
}

void json_append(GString *out, const json_t *json)
{
    if (json_is_string(json) && strlen(json_string_value(json)) == json_string_length(json))
        json_append_string(out, json_string_value(json));
    else if (json_is_integer(json))
        json_append_integer(out, json_integer_value(json));
    else if (json_is_null(json))
        g_string_append(out, "null");
    else if (json_is_boolean(json))
        g_string_append(out, json_is_true(json) ? "true" : "false");
    else if (json_is_array(json))
        append_array(out, json);
    else if (json_is_object(json) && json_object_size(json) <= NAMES_SORTED)
        append_object(out, (json_t *)json);
    else
        append_any(out, json);
}

json_t *json_make(const char *format, ...)
{
    json_error_t problem;
    va_list args;
    va_start(args, format);
    json_t *json = json_vpack_ex(&problem, 0, format, args);
    va_end(args);
    if (json == NULL)
        g_error("json_make(\"%s\"): %s", format, problem.text);
    return json;
}
