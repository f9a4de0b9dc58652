/*
 * Filters of lists (--filter), as people write them, made into what LUXI takes
 * (core/job/filter.h):
 *
 *     status == "running" and (be/memory > 512 or not tags)      "web" in tags      name =~ "^web"
 *
 * Ganeti's language: == != < <= > >=, =~ and !~ (a regular expression, found anywhere), `in` and
 * `not in` (a list has it), a field alone (it has a value), and, or, not, brackets. A value is a
 * text in quotes, a number, true or false. What begins with a [ is taken as JSON, as LUXI has it.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

/* WRONG_INPUT says what was expected, and where. */
json_t *filter_text_parse(const char *text, GError **error);
/* Both have to hold; either may be NULL; both are stolen. */
json_t *filter_text_both(json_t *left, json_t *right);
