/*
 * Standard output of a program, as a stream that knows what could not be written and why. Every
 * main() that answers there begins it and asks at its end; whoever follows something asks as often
 * as it has shown news, and ends.
 *
 * A reader that has gone away (a pipe into `head`) kills nobody in the middle of what he does: it
 * is a failure like any other, which output_end_unread() makes the usual silent end of.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* First of all: whatever is opened later must not get the number of a standard descriptor that is
 * closed. `program` stays: its name, for an error of what GLib prints before it ends it. */
void output_begin(const char *program);
/* Writes out what was printed. OUTPUT, "standard output: No space left on device", if that or
 * anything before it failed. */
bool output_flush(GError **error);
/* The same, and also if nobody reads it any more though nothing was to be written. */
bool output_is_read(GError **error);
/* Past the stream, at once. */
bool output_write(const void *data, gsize len, GError **error);
/* output_flush() as the last of a program; `said`, the line on what is now true (NULL: there is
 * none), goes with the error. */
bool output_end(const char *said, GError **error);
/* Ends the program by SIGPIPE if that is how a reader that went away ends programs here, and if one
 * has. */
void output_end_unread(void);
