/*
 * Small helpers on jansson that every layer uses: automatic cleanup, parsing of untrusted bytes
 * with limits, and compact, sorted writing. Typed access with limits and error paths is
 * proto/record.h.
 */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

static inline void json_unref_ptr(json_t **json)
{
    json_decref(*json);
}
/* `json_autoptr x = …;` drops the reference at the end of the scope. */
#define json_autoptr __attribute__((cleanup(json_unref_ptr))) json_t *

/* Parses exactly one JSON document (object or array). Refused: larger than `max_bytes`, nested
 * deeper than LIMIT_JSON_DEPTH, duplicate keys, bytes after the document, NUL characters. Errors:
 * PROTOCOL with position, LIMIT. */
json_t *json_parse_limited(const char *data, size_t len, size_t max_bytes, GError **error);

/* The same of a document with a long list in it, at `path` (names of members, NULL at the end):
 * each of the list's items, arrays or objects, is given to `give`, which may keep a reference, and
 * the list is empty in what is returned. A document without a list there is returned as it is. In
 * an error some of the items have been given. */
typedef void (*json_item_fn)(json_t *item, void *data);
json_t *json_parse_items(const char *text, size_t len, size_t max_bytes, const char *const *path,
                         json_item_fn give, void *data, GError **error);

/* Any value, of a text that our own code has just written. */
json_t *json_parse_own(const char *text);

/* Compact text with sorted keys; free with g_free(). */
char *json_to_text(const json_t *json);

/* The same of any value, at the end of `out`; of a text in UTF-8, as a JSON string. For answers of
 * many values, which need no tree. */
void json_append(GString *out, const json_t *json);
void json_append_string(GString *out, const char *text);
void json_append_integer(GString *out, gint64 number);

/* json_pack() that aborts on a bad format: for literals in our own code only. */
json_t *json_make(const char *format, ...);

/* Takes `*ret` out of a holder: `return json_steal(&result);` */
static inline json_t *json_steal(json_t **json)
{
    json_t *taken = *json;
    *json = NULL;
    return taken;
}
