/*
 * What the usage of a command (cli.h, struct command) says of its words, for completion
 * (complete.c).
 *
 * Words in capitals stand for something ("NODE"), others for themselves, "a|b" for one of both,
 * "[…]" may be left out, "(a|b NAME)" is one of several sequences, "NAME…" may come again, "--flag
 * VALUE" is no word at all.
 */
#pragma once

#include <glib.h>

/* The words that can stand behind these `count`, which may have flags and their values among them;
 * NULL-terminated, each once: a shape in capitals, or a word as it is. Free with
 * g_ptr_array_unref().
 */
GPtrArray *usage_next(const char *usage, int count, char *const *words);

/* Every flag of the usage, in its order, as usage_next() gives words. */
GPtrArray *usage_flags(const char *usage);

/* What stands for the value of the flag that is the last of these words; NULL: it is none, or takes
 * none. Owned by the caller. */
char *usage_value(const char *usage, int count, char *const *words);
