/*
 * Inside of base/json: reading values of the plain kind in one pass (json_plain.c).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* A place in a text that ends at `end`; no NUL is needed there. */
struct json_cursor {
    const char *at, *end;
};

/* Behind blanks; takes `letter` if it is the next one. */
void json_skip_blank(struct json_cursor *cursor);
bool json_take(struct json_cursor *cursor, char letter);

/* The value that begins here, which stands in `depth` lists and objects; the cursor is behind it.
 * NULL: it is broken, or has something in it that jansson reads better (a name twice, \u, too
 * deep). Then jansson has to look at the whole, and says what is wrong. */
json_t *json_plain_value(struct json_cursor *cursor, unsigned depth);
