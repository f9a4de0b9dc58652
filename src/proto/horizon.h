/*
 * How far ahead the numbers of a mastership may be (SAF-103): they only ever rise, so whoever could
 * name any would use them up, and nobody could be master after him. No honest clock comes near.
 * Used by whoever takes such a number from a peer (core/epoch/epoch_fence.c), and by whoever makes
 * one.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* In the unit of each: history (s), epoch (ms), serial (us). */
enum horizon { HORIZON_HISTORY, HORIZON_EPOCH, HORIZON_SERIAL };

/* The highest number that counts: LIMIT_HORIZON_S after the clock of this host or the date of this
 * build, whichever is later, or LIMIT_HORIZON_STORED above what is stored here. */
guint64 horizon_of(enum horizon kind, guint64 stored, gint64 wall_us);

/* False: it is beyond that, with WRONG_INPUT "history 9007199254740000 is beyond any clock". */
bool horizon_check(enum horizon kind, guint64 number, guint64 stored, gint64 wall_us,
                   GError **error);
