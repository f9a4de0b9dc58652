/*
 * Numbers by one or two words each: "OP_INSTANCE_START", "success" -> 7. What metrics are told as
 * (metrics_call.h).
 */
#pragma once

#include "base/json.h"

struct counts;

struct counts *counts_new(void);
void counts_free(struct counts *counts);
/* `second` NULL: there is one word. `by` 0: it is told of, also if nothing is ever added. */
void counts_add(struct counts *counts, const char *first, const char *second, guint64 by);
/* [{first: …, second: …, "count": n}, …] in the order of the words. */
json_t *counts_tell(const struct counts *counts, const char *first, const char *second);
