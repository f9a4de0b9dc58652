/*
 * The argument list of this process, as others see it (/proc/PID/cmdline, ps). A process that was
 * forked from the nursery writes there what it is: a person, and a test, tell by it which job a
 * process runs.
 */
#pragma once

#include <stdbool.h>

/* First in main(), with what that was given. */
void words_init(int argc, char **argv);
/* The list becomes `words` (NULL at the end). False: there is no room, and nothing has changed.
 * What main() was given as `argv` is gone then. */
bool words_set(const char *const *words);
