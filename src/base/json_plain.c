/*
 * Values as programs write them, read in one pass into jansson's trees: its own reader takes each
 * letter by a call of its own, and was a tenth and more of what every daemon does. What is left out
 * here is read by jansson, so both take the same documents: json_private.h.
 */
#include "base/json.h"
#include "base/json_private.h"

#include <string.h>

#include "base/limits.h"

void json_skip_blank(struct json_cursor *cursor)
{
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\n' ||
                                        *cursor->at == '\t' || *cursor->at == '\r'))
        cursor->at++;
}

bool json_take(struct json_cursor *cursor, char letter)
{
    json_skip_blank(cursor);
    if (cursor->at == cursor->end || *cursor->at != letter)
        return false;
    cursor->at++;
    return true;
}

/* --- texts --- */

/* Bytes of a text, quotes and escapes resolved: they stand in the document, or in `own`. */
struct bytes {
    const char *start;
    size_t len;
    GString *own;
};

static void bytes_drop(struct bytes *bytes)
{
    if (bytes->own)
        g_string_free(bytes->own, TRUE);
}

static const char *plain_run(const char *at, const char *end)
{
    while (at < end && (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\')
        at++;
    return at;
}

/* What stands for the letter behind a backslash; 0: jansson has to look. */
static char escaped(char letter)
{
    static const char pairs[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    for (const char *pair = pairs; *pair != '\0'; pair += 2)
        if (pair[0] == letter)
            return pair[1];
    return '\0';
}

/* From the first backslash on. */
static bool take_escaped(struct json_cursor *cursor, const char *start, struct bytes *ret_bytes)
{
    GString *own = g_string_new_len(start, cursor->at - start);
    while (cursor->end - cursor->at >= 2 && *cursor->at == '\\') {
        char letter = escaped(cursor->at[1]);
        if (letter == '\0')
            break;
        g_string_append_c(own, letter);
        start = cursor->at + 2;
        cursor->at = plain_run(start, cursor->end);
        g_string_append_len(own, start, cursor->at - start);
    }
    *ret_bytes = (struct bytes){own->str, own->len, own};
    return cursor->at < cursor->end && *cursor->at++ == '"';
}

static bool take_text(struct json_cursor *cursor, struct bytes *ret_bytes)
{
    if (!json_take(cursor, '"'))
        return false;
    const char *start = cursor->at;
    cursor->at = plain_run(start, cursor->end);
    if (cursor->at < cursor->end && *cursor->at == '\\')
        return take_escaped(cursor, start, ret_bytes);
    *ret_bytes = (struct bytes){start, (size_t)(cursor->at - start), NULL};
    return cursor->at < cursor->end && *cursor->at++ == '"';
}

static json_t *plain_text(struct json_cursor *cursor)
{
    struct bytes bytes = {0};
    /* It is NULL for what is not UTF-8. */
    json_t *text = take_text(cursor, &bytes) ? json_stringn(bytes.start, bytes.len) : NULL;
    bytes_drop(&bytes);
    return text;
}

/* --- numbers and words --- */

#define PLAIN_DIGITS 18 /* they fit into 63 bits */

static bool is_of_number(char letter)
{
    return g_ascii_isdigit(letter) || letter == '-' || letter == '+' || letter == '.' ||
           letter == 'e' || letter == 'E';
}

static json_t *plain_number(struct json_cursor *cursor)
{
    const char *begin = cursor->at;
    bool negative = *begin == '-';
    const char *first = begin + negative;
    json_int_t number = 0;

    for (cursor->at = first; cursor->at < cursor->end && g_ascii_isdigit(*cursor->at); cursor->at++)
        if (cursor->at - first < PLAIN_DIGITS)
            number = number * 10 + (*cursor->at - '0');
    size_t digits = (size_t)(cursor->at - first);
    bool more = cursor->at < cursor->end && is_of_number(*cursor->at);
    if (digits > 0 && digits <= PLAIN_DIGITS && !more && (*first != '0' || cursor->at == begin + 1))
        return json_integer(negative ? -number : number);
    while (cursor->at < cursor->end && is_of_number(*cursor->at))
        cursor->at++;
    return json_loadb(begin, (size_t)(cursor->at - begin), JSON_DECODE_ANY, NULL);
}

static json_t *plain_word(struct json_cursor *cursor)
{
    static const char *const words[] = {"null", "true", "false"};
    size_t left = (size_t)(cursor->end - cursor->at), i = 0;
    while (i < G_N_ELEMENTS(words) &&
           (left < strlen(words[i]) || memcmp(cursor->at, words[i], strlen(words[i])) != 0))
        i++;
    if (i == G_N_ELEMENTS(words))
        return NULL;
    cursor->at += strlen(words[i]);
    return i == 0 ? json_null() : json_boolean(i == 1);
}

/* --- lists and objects --- */

static json_t *plain_list(struct json_cursor *cursor, unsigned depth)
{
    json_autoptr list = json_array();
    cursor->at++;
    if (json_take(cursor, ']'))
        return json_steal(&list);
    do {
        json_t *value = json_plain_value(cursor, depth + 1);
        if (!value || json_array_append_new(list, value) != 0)
            return NULL;
    } while (json_take(cursor, ','));
    return json_take(cursor, ']') ? json_steal(&list) : NULL;
}

static bool plain_member(json_t *object, struct json_cursor *cursor, unsigned depth)
{
    struct bytes name = {0};
    size_t before = json_object_size(object);
    bool ok = take_text(cursor, &name) && json_take(cursor, ':');
    json_t *value = ok ? json_plain_value(cursor, depth + 1) : NULL;
    ok = value && json_object_setn_new(object, name.start, name.len, value) == 0;
    bytes_drop(&name);
    return ok && json_object_size(object) == before + 1;
}

static json_t *plain_object(struct json_cursor *cursor, unsigned depth)
{
    json_autoptr object = json_object();
    cursor->at++;
    if (json_take(cursor, '}'))
        return json_steal(&object);
    do {
        if (!plain_member(object, cursor, depth))
            return NULL;
    } while (json_take(cursor, ','));
    return json_take(cursor, '}') ? json_steal(&object) : NULL;
}

json_t *json_plain_value(struct json_cursor *cursor, unsigned depth)
{
    json_skip_blank(cursor);
    if (cursor->at == cursor->end)
        return NULL;
    switch (*cursor->at) {
    case '{':
        return depth < LIMIT_JSON_DEPTH ? plain_object(cursor, depth) : NULL;
    case '[':
        return depth < LIMIT_JSON_DEPTH ? plain_list(cursor, depth) : NULL;
    case '"':
        return plain_text(cursor);
    default:
        return *cursor->at == '-' || g_ascii_isdigit(*cursor->at) ? plain_number(cursor)
                                                                  : plain_word(cursor);
    }
}
