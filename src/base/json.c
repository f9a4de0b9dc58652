/* See json.h. The depth is counted before parsing, because the parser recurses. */
#include "base/json.h"

#include "base/error.h"
#include "base/limits.h"

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

json_t *json_parse_limited(const char *data, size_t len, size_t max_bytes, GError **error)
{
    if (len > max_bytes) {
        fettle_set_error(error, LIMIT, "JSON of %zu bytes: at most %zu are allowed", len,
                         max_bytes);
        return NULL;
    }
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

char *json_to_text(const json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    g_assert(text != NULL);
    return text;
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
