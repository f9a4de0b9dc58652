/*
 * What is said about a command that does not exist: the one that was most likely meant, by its
 * spelling or because other cluster managers call it so. Used by main.c.
 */
#pragma once

#include <glib.h>

/* The word of `words` (NULL-terminated) that another manager's `word` stands for, such as startup
 * for start; NULL: none. Borrowed. */
const char *did_you_mean_synonym(const char *word, const char *const *words);
/* WRONG_INPUT: there is no such command; `verb` NULL: none was given. */
void did_you_mean_set_error(const char *noun, const char *verb, GError **error);
