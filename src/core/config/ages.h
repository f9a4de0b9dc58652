/*
 * How long ago something was, that a record dates by a wall clock (SAF-93). Such a clock can be set
 * while nothing else changes, so each date is read once: what it says then is how old the thing was
 * when it was first seen – nothing, if the date lies in the future –, and from then on it ages by
 * the boot clock. Nothing becomes older, or younger, by a step of the clock, and what lies years
 * ahead is over as soon as what is of this moment.
 *
 * For spans: "within the last hour", "ended six hours ago". What a person has named as a date – the
 * end of a suspension, of an advice, of an invitation – is a date, and the wall clock tells it.
 */
#pragma once

#include "proto/env.h"

struct ages;
struct ages *ages_new(const struct env *env);
/* NULL is allowed. */
void ages_free(struct ages *ages);

/* In microseconds, never negative. `key`: which date of which thing; another date under the same
 * key is another thing. What nobody asks for in a day is forgotten. */
gint64 ages_us(struct ages *ages, const char *key, guint64 at_us);
/* By how much the wall clock was set since the last time that this was called, in milliseconds; 0:
 * it was not, or by less than LIMIT_CLOCK_OFF_MS. */
gint64 ages_step_ms(struct ages *ages);
