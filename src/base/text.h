/*
 * Texts: owned ones replaced; those that somebody else wrote where a person reads them, and what a
 * terminal would obey in them in place of showing it. Control characters here are those of ASCII,
 * DEL, U+0080 to U+009F, and the marks that turn the direction of writing over (U+202A to U+202E,
 * U+2066 to U+2069).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Replaces a text that is owned by a copy of another, which may be a part of it; NULL for none. */
void text_set(char **text, const char *value);

/* The first control character, as it is shown ("\x1b", "\n", "\u202e"), to be freed; NULL: it has
 * none. `text` is UTF-8; a byte that is not counts as one ("\xff"). */
char *text_control(const char *text);
/* The text with its control characters shown, to be freed; NULL: it has none and is as it is. */
char *text_shown(const char *text);

/* Appends a text in lines of at most `width` letters, broken at spaces, behind "|" and before "[,";
 * `column` letters stand in the first line already, later ones begin with `indent` spaces. A word
 * that is longer than the room stands alone. No line break behind the last one. */
void text_fold(GString *out, const char *text, int column, int indent, int width);

/* Its first `letters` letters, to be freed. */
char *text_head(const char *text, glong letters);

/* Seconds since 1970 as "2026-01-02 03:04:05 UTC", to be freed; what no calendar has is a number.
 */
char *text_time(gint64 seconds);
/* The numbers of the bits that are set, as of a sum of disks: "0, 2". To be freed. */
char *text_bits(guint64 bits);
