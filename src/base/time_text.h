/*
 * Times as people type them on a command line: how long, and when. Used by the command line and by
 * what reads its flags (proto/record_text.c).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* "2h", "90m", "1h30m", "1.5d", "300ms": weeks, days, hours, minutes (m or min), seconds,
 * milliseconds. A number alone is so many times `unit_ms`. False: it is none, or is longer than a
 * hundred years. */
bool time_text_duration(const char *text, guint64 unit_ms, gint64 *ret_ms);

/* A moment in seconds since 1970: "2026-12-01", "2026-12-01 08:00" (with a T, with seconds, with a
 * zone; local time without), that number, or a duration with a unit, from `now` on. */
bool time_text_moment(const char *text, gint64 now, gint64 *ret_seconds);

/* A duration as it can be typed, with the largest unit that is whole: "2h", "90m"; "0" for none. To
 * be freed. */
char *time_text_of(gint64 ms);
