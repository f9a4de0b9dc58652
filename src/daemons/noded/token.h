/*
 * Where the token of `fettle-noded join` comes from: it is a secret, so it is read from standard
 * input; as an argument it works too, but stands in the list of processes until this has run.
 */
#pragma once

#include "base/error.h"

/* The words from the one that begins a token on are gone from the process's title; a copy of all of
 * them as they were, to be freed with g_strfreev(). First of all. */
char **token_hide(int argc, char **argv);
/* Standard input: a line of a terminal, which does not show it, or all there is. WRONG_INPUT if
 * that is nothing, or too much to be a token. */
char *token_read(GError **error);
