/*
 * Filters of queries, in Ganeti's form: ["|", ["=", "name", "web1"], ["?", "offline"]]. Parsed
 * once, then applied to rows. It knows nothing of what the fields are: the caller resolves names
 * and gives values.
 *
 * Operators: "&" "|" (any number of filters), "!" (one filter); "==" or "=", "!=", "<", ">", "<=",
 * ">=" (field, value);
 * "?" (field: has a value that is not empty, zero or false); "=~" (field, regular expression, found
 * anywhere);
 * "=[]" (field, value: the list contains it). A value of another kind than the field's is never
 * equal, less or greater, nor is a field without a value; "!=" is the opposite of "==". A regular
 * expression that does not get to its end within LIMIT_FILTER_REGEX_STEPS is not found.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

struct filter;

/* Gives the handle of a field that a filter names; NULL: there is no such field. */
typedef const void *(*filter_resolve)(const char *name, void *data);
/* Value of a field of the row at hand: a new reference, NULL or null for none. */
typedef json_t *(*filter_value)(const void *field, void *data);

/* NULL json and JSON null: NULL without error, which matches everything. WRONG_INPUT with the path
 * in the filter, LIMIT if it is nested deeper than LIMIT_FILTER_DEPTH or has more than
 * LIMIT_FILTER_TERMS terms or LIMIT_FILTER_REGEXES regular expressions. */
struct filter *filter_parse(const json_t *json, filter_resolve resolve, void *data, GError **error);
void filter_free(struct filter *filter);
/* `steps`, if not NULL, grows by what it costs: one for each value that is looked at, more for a
 * regular expression that tries long. */
bool filter_match(const struct filter *filter, filter_value value, void *data, guint64 *steps);
/* If only rows can match whose `field` has one of certain values: these, as GPtrArray of borrowed
 * const json_t *; unref it. NULL: it does not say so. */
GPtrArray *filter_values(const struct filter *filter, const void *field);
/* Narrows [*least, *most] to the whole numbers that `field` can have in rows that match, as far as
 * comparisons with whole numbers say so; an empty range has *least > *most. */
void filter_bounds(const struct filter *filter, const void *field, gint64 *least, gint64 *most);
/* Calls `each` for every field that the filter names. */
void filter_fields(const struct filter *filter, void (*each)(const void *field, void *data),
                   void *data);
