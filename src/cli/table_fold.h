/*
 * Tables that are wider than the terminal: cells are folded within their column, at spaces and
 * after marks between words, so that no line is broken by the terminal itself. Used by table.c.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Characters of UTF-8. */
int table_fold_width(const char *text);
/* How wide its widest part is that is not broken. `title`: it may also be before a capital,
 * or after a "_". */
int table_fold_least(const char *text, bool title);
/* Makes columns narrower, the widest first and none below its `least`, until they fit into `room`
 * with a space between them. False: they cannot, and are as they were. */
bool table_fold_columns(int *widths, const int *least, guint columns, int room);
/* Bytes of the line that `text` begins with, at most `width` wide if that can be, and where the
 * next one begins (at the end of the text: there is none). */
size_t table_fold_line(const char *text, int width, bool title, const char **ret_next);
