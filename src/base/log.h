/*
 * Logging: one line per decision on standard error, for a journal to collect:
 * `<6>2026-11-20T18:00:01.123Z fettle-noded: guest started INSTANCE=web1 GENERATION=4`.
 * Leaf code does not log; a daemon logs once, where the decision is taken.
 */
#pragma once

#include <glib.h>

/* Names the program in every line; call first in main(). */
void log_init(const char *program);

/* `fields` is "KEY=value KEY=value" or ""; values with spaces are the caller's to quote. */
void log_info(const char *fields, const char *format, ...) G_GNUC_PRINTF(2, 3);
void log_warning(const char *fields, const char *format, ...) G_GNUC_PRINTF(2, 3);
void log_error(const char *fields, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Lines go to `sink` instead of standard error (without the line's end); NULL: standard error
 * again. */
typedef void (*log_sink)(const char *line, void *ctx);
void log_set_sink(log_sink sink, void *ctx);
