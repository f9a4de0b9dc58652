/*
 * What is drawn on a terminal and changes: a few lines at the bottom of standard error that are
 * redrawn in place. Elsewhere nothing of it is written.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Standard output and standard error are a terminal, NO_COLOR is unset and TERM is not "dumb". */
bool screen_live(void);
/* Columns and lines of the terminal. */
void screen_size(int *ret_columns, int *ret_lines);
/* Letters of a line of text on standard output: what the terminal has, 80 at most, as a pipe. */
int screen_text_columns(void);
/* Replaces the lines at the bottom (NULL-terminated), each cut to the width of the terminal. */
void screen_draw(const char *const *lines);
/* Takes them away. */
void screen_clear(void);
/* One line on standard error above them. */
void screen_print(const char *text);

/* The colour that a word of state deserves, as an escape sequence: "" if it needs none. */
const char *screen_colour(const char *word);
extern const char screen_plain[]; /* back to normal */
