/* What a list says that is empty because of its filter. For list.c. */
#pragma once

#include "cli/cli.h"

/* Names, on standard error, the fields of the filter that no row of the resource has a value in:
 * what is compared with them is never found. */
bool list_explain_empty(struct cli *cli, const char *what, const json_t *filter, GError **error);
