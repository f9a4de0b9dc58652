/*
 * Folders of scenarios, for the programs that run them: README (one sentence; its last line may
 * name requirement ids), cluster.json, script, expect.log. The log is made of lines in virtual
 * time; a missing or changed one fails and says how to bless it.
 */
#pragma once

#include "base/json.h"

/* Runs one script and appends to its log. NULL, or why it failed; to be freed. */
typedef char *(*golden_fn)(const char *script, const json_t *cluster, GString *log);

/* All folders of the one that the first argument names. */
int golden_main(int argc, char **argv, golden_fn run);
