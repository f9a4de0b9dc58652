/*
 * Patterns of names, as shells have them: `web*`, `db?`, `node[12]`. Used by lists and by verbs
 * that take several objects.
 */
#pragma once

#include "cli/cli.h"

bool pattern_is(const char *word);
/* The regular expression that finds the whole of such names, for a filter (core/job/filter.h); to
 * be freed. */
char *pattern_regex(const char *pattern);
/* The condition that `field` is that word, or matches it if it is a pattern. */
json_t *pattern_filter(const char *field, const char *word);
/* UNKNOWN_ENTITY: nothing of that kind matches. */
void pattern_set_none(const char *what, const char *pattern, GError **error);
/* These words with each pattern replaced by the names of that kind that it matches now, sorted, and
 * each name once; NULL-terminated. UNKNOWN_ENTITY for a pattern that matches none. `*ret_any` tells
 * whether there was one. Free with g_ptr_array_unref(). */
GPtrArray *pattern_expand(struct cli *cli, const char *what, char *const *words, bool *ret_any,
                          GError **error);
