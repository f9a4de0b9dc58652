/*
 * "Did you mean …?": the word of a list that somebody most likely meant. Used by the command line
 * for commands and flags.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Changes (a letter more, less, other, or two swapped) that make one word of the other. */
guint nearest_distance(const char *a, const char *b);
/* The nearest of `words` (NULL-terminated), the first of several; NULL if none is near: more than
 * one change for each three letters. Words that begin with `word` are near. */
const char *nearest_word(const char *word, const char *const *words);
