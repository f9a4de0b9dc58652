/*
 * A JSON document in a file that must not lie: with a checksum, as the member "check" (16
 * hexadecimal digits over the text of all other members, keys sorted). One bit of a number read
 * wrongly would be another epoch or generation, which nothing else would notice.
 */
#pragma once

#include <glib.h>
#include <jansson.h>

#define SEAL_MEMBER "check"
#define SEAL_DIGITS 16

/* `json` is an object without that member. g_free() the text. */
char *seal_to_text(const json_t *json);

/* The object without its checksum. A text that has none is of a version before and is taken as it
 * is. PROTOCOL, LIMIT: no JSON object of at most `max` bytes; CORRUPT: another checksum. */
json_t *seal_from_text(const char *text, size_t len, size_t max, GError **error);

/* The digits for any bytes; `ret` holds SEAL_DIGITS and a NUL. */
void seal_digits(const void *data, size_t len, char ret[SEAL_DIGITS + 1]);
