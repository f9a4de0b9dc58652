/*
 * What a person can do about an object as it stands, as luxid says it (LUXI's WhatNext): printed
 * after `fettle why`, `fettle repair show` and `fettle repair history`.
 */
#pragma once

#include "cli/cli.h"

/* The answer; empty of an object that there is not. NULL with `error`. */
json_t *what_next_ask(struct cli *cli, const char *kind, const char *name, GError **error);
/* Sentences, and commands to type; nothing if nothing waits for a person. `ret_said` (may be NULL):
 * whether there was something to say. */
bool what_next_print(struct cli *cli, const char *kind, const char *name, bool *ret_said,
                     GError **error);
