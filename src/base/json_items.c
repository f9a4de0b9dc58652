/*
 * A long list in a document without a tree of the whole; see json.h. What is walked over here is
 * only measured: what is left of the document is parsed by jansson, as are items that are no lists
 * of plain values.
 */
#include "base/json.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"

struct cursor {
    const char *at, *end;
};

static void skip_blank(struct cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) != NULL &&
           *cursor->at != '\0')
        cursor->at++;
}

static bool take(struct cursor *cursor, char letter)
{
    skip_blank(cursor);
    if (cursor->at == cursor->end || *cursor->at != letter)
        return false;
    cursor->at++;
    return true;
}

/* Behind the text that begins here. */
static void skip_text(struct cursor *cursor)
{
    for (cursor->at++; cursor->at < cursor->end; cursor->at++) {
        if (*cursor->at == '\\' && cursor->at + 1 < cursor->end)
            cursor->at++;
        else if (*cursor->at == '"')
            break;
    }
    cursor->at += cursor->at < cursor->end;
}

/* Behind the value that begins here: at what separates or ends it on this level. */
static void skip_value(struct cursor *cursor)
{
    unsigned depth = 0;
    while (cursor->at < cursor->end) {
        char letter = *cursor->at;
        if (letter == '"') {
            skip_text(cursor);
            continue;
        }
        bool opens = letter == '[' || letter == '{';
        bool closes = letter == ']' || letter == '}';
        if (depth == 0 && (closes || letter == ','))
            return;
        depth = opens ? depth + 1 : closes ? depth - 1 : depth;
        cursor->at++;
    }
}

/* To the value of the member `name` of the object that begins here. */
static bool find_member(struct cursor *cursor, const char *name)
{
    if (!take(cursor, '{'))
        return false;
    do {
        skip_blank(cursor);
        const char *key = cursor->at;
        if (key == cursor->end || *key != '"')
            return false;
        skip_text(cursor);
        size_t len = (size_t)(cursor->at - key);
        bool found = len == strlen(name) + 2 && memcmp(key + 1, name, len - 2) == 0;
        if (!take(cursor, ':'))
            return false;
        if (found)
            return true;
        skip_blank(cursor);
        skip_value(cursor);
    } while (take(cursor, ','));
    return false;
}

/* --- items of the plain kind: lists of texts and whole numbers, read in one pass. NULL: there is
 * something else in them, or they are broken, and jansson has to look --- */

static json_t *plain_value(struct cursor *cursor, unsigned depth);

static json_t *plain_list(struct cursor *cursor, unsigned depth)
{
    json_autoptr list = json_array();
    cursor->at++;
    if (depth > LIMIT_JSON_DEPTH)
        return NULL;
    if (take(cursor, ']'))
        return json_steal(&list);
    do {
        skip_blank(cursor);
        json_t *value = plain_value(cursor, depth + 1);
        if (value == NULL || json_array_append_new(list, value) != 0)
            return NULL;
    } while (take(cursor, ','));
    return take(cursor, ']') ? json_steal(&list) : NULL;
}

static json_t *plain_text(struct cursor *cursor)
{
    const char *begin = ++cursor->at;
    while (cursor->at < cursor->end && *cursor->at != '"') {
        if (*cursor->at == '\\' || (unsigned char)*cursor->at < 0x20)
            return NULL;
        cursor->at++;
    }
    if (cursor->at == cursor->end)
        return NULL;
    return json_stringn(begin, (size_t)(cursor->at++ - begin));
}

#define PLAIN_DIGITS 15

static json_t *plain_number(struct cursor *cursor)
{
    json_int_t number = 0;
    bool negative = *cursor->at == '-';
    const char *begin = cursor->at += negative;
    for (; cursor->at < cursor->end && g_ascii_isdigit(*cursor->at); cursor->at++)
        if (cursor->at - begin < PLAIN_DIGITS)
            number = number * 10 + (*cursor->at - '0');
    size_t digits = (size_t)(cursor->at - begin);
    bool ends = cursor->at < cursor->end && (*cursor->at == ',' || *cursor->at == ']');
    if (digits == 0 || digits > PLAIN_DIGITS || (*begin == '0' && (digits > 1 || negative)) ||
        !ends)
        return NULL;
    return json_integer(negative ? -number : number);
}

static json_t *plain_word(struct cursor *cursor)
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

static json_t *plain_value(struct cursor *cursor, unsigned depth)
{
    if (cursor->at == cursor->end)
        return NULL;
    if (*cursor->at == '[')
        return plain_list(cursor, depth);
    if (*cursor->at == '"')
        return plain_text(cursor);
    return *cursor->at == '-' || g_ascii_isdigit(*cursor->at) ? plain_number(cursor)
                                                              : plain_word(cursor);
}

/* --- items --- */

/* Whether an item is to end here; if not, jansson says what is wrong. */
static bool at_end_of_item(struct cursor cursor)
{
    skip_blank(&cursor);
    return cursor.at < cursor.end && (*cursor.at == ',' || *cursor.at == ']');
}

static json_t *take_item(struct cursor *cursor, size_t max_bytes, GError **error)
{
    skip_blank(cursor);
    struct cursor plain = *cursor;
    json_autoptr list = plain.at < plain.end && *plain.at == '[' ? plain_list(&plain, 1) : NULL;
    if (list != NULL && at_end_of_item(plain)) {
        *cursor = plain;
        return json_steal(&list);
    }
    const char *item = cursor->at;
    skip_value(cursor);
    json_t *json = json_parse_limited(item, (size_t)(cursor->at - item), max_bytes, error);
    if (json == NULL)
        g_prefix_error(error, "an item of a list: ");
    return json;
}

static bool give_items(struct cursor *cursor, size_t max_bytes, json_item_fn give, void *data,
                       GError **error)
{
    if (take(cursor, ']'))
        return true;
    do {
        json_autoptr json = take_item(cursor, max_bytes, error);
        if (json == NULL)
            return false;
        give(json, data);
    } while (take(cursor, ','));
    if (take(cursor, ']'))
        return true;
    fettle_set_error(error, PROTOCOL, "broken JSON: a list is not ended");
    return false;
}

json_t *json_parse_items(const char *text, size_t len, size_t max_bytes, const char *const *path,
                         json_item_fn give, void *data, GError **error)
{
    struct cursor cursor = {text, text + len};
    bool found = len <= max_bytes;
    for (; found && *path != NULL; path++)
        found = find_member(&cursor, *path);
    if (!found || !take(&cursor, '['))
        return json_parse_limited(text, len, max_bytes, error);
    g_autoptr(GString) rest = g_string_new_len(text, cursor.at - text);
    if (!give_items(&cursor, max_bytes, give, data, error))
        return NULL;
    g_string_append_c(rest, ']');
    g_string_append_len(rest, cursor.at, cursor.end - cursor.at);
    return json_parse_limited(rest->str, rest->len, max_bytes, error);
}
