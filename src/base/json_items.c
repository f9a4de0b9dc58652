/*
 * A long list in a document without a tree of the whole; see json.h. What is walked over here is
 * only measured; the items, and what is left of the document, are read as every document is.
 */
#include "base/json.h"
#include "base/json_private.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"

/* Behind the text that begins here. */
static void skip_text(struct json_cursor *cursor)
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
static void skip_value(struct json_cursor *cursor)
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
static bool find_member(struct json_cursor *cursor, const char *name)
{
    if (!json_take(cursor, '{'))
        return false;
    do {
        json_skip_blank(cursor);
        const char *key = cursor->at;
        if (key == cursor->end || *key != '"')
            return false;
        skip_text(cursor);
        size_t len = (size_t)(cursor->at - key);
        bool found = len == strlen(name) + 2 && memcmp(key + 1, name, len - 2) == 0;
        if (!json_take(cursor, ':'))
            return false;
        if (found)
            return true;
        json_skip_blank(cursor);
        skip_value(cursor);
    } while (json_take(cursor, ','));
    return false;
}

/* --- items --- */

/* Whether an item is to end here; if not, jansson says what is wrong. */
static bool at_end_of_item(struct json_cursor cursor)
{
    json_skip_blank(&cursor);
    return cursor.at < cursor.end && (*cursor.at == ',' || *cursor.at == ']');
}

static json_t *take_item(struct json_cursor *cursor, size_t max_bytes, GError **error)
{
    json_skip_blank(cursor);
    struct json_cursor plain = *cursor;
    bool closed = plain.at < plain.end && (*plain.at == '[' || *plain.at == '{');
    json_autoptr list = closed ? json_plain_value(&plain, 0) : NULL;
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

static bool give_items(struct json_cursor *cursor, size_t max_bytes, json_item_fn give, void *data,
                       GError **error)
{
    if (json_take(cursor, ']'))
        return true;
    do {
        json_autoptr json = take_item(cursor, max_bytes, error);
        if (json == NULL)
            return false;
        give(json, data);
    } while (json_take(cursor, ','));
    if (json_take(cursor, ']'))
        return true;
    fettle_set_error(error, PROTOCOL, "broken JSON: a list is not ended");
    return false;
}

json_t *json_parse_items(const char *text, size_t len, size_t max_bytes, const char *const *path,
                         json_item_fn give, void *data, GError **error)
{
    struct json_cursor cursor = {text, text + len};
    bool found = len <= max_bytes;
    for (; found && *path != NULL; path++)
        found = find_member(&cursor, *path);
    if (!found || !json_take(&cursor, '['))
        return json_parse_limited(text, len, max_bytes, error);
    g_autoptr(GString) rest = g_string_new_len(text, cursor.at - text);
    if (!give_items(&cursor, max_bytes, give, data, error))
        return NULL;
    g_string_append_c(rest, ']');
    g_string_append_len(rest, cursor.at, cursor.end - cursor.at);
    return json_parse_limited(rest->str, rest->len, max_bytes, error);
}
