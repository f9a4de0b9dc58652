/*
 * Secrets that a person types: read from standard input, which a terminal does not show (SAF-109).
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

bool secret_input_is_typed(void);
/* A line of a terminal, asked for by `prompt` on standard error, or all that standard input has; as
 * it is. WRONG_INPUT: more than `limit` bytes, too long to be `what` ("a token"). */
char *secret_input_read(const char *prompt, size_t limit, const char *what, GError **error);
