/* What lists of other parts share with those of list.c. */
#pragma once

#include "cli/cli.h"

/* `fettle NOUN VERB` as a list of `what`, of those that `also` lets through (stolen; NULL: all);
 * with --filter, --sort and --limit, and words that choose by name. */
int cli_list(struct cli *cli, const char *noun, const char *verb, const char *what, json_t *also,
             int argc, char **argv, GError **error);
