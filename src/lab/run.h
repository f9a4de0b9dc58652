/*
 * Runs a helper program to its end, without threads and without touching SIGCHLD, so that the
 * supervisor can call it between two turns of its loop.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Starts `argv` (looked up in PATH) with `input` (may be NULL) as standard input and waits.
 * Anything but exit code 0 is an error with the last line that the program wrote; ENVIRONMENT if it
 * cannot be started. */
bool run_program(const char *const *argv, const char *input, GError **error);
