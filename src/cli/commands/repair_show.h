/* Commands of `fettle repair` that look at what was done; rows of the table in repair.c. */
#pragma once

#include "cli/cli.h"

/* The repairs of an instance, oldest first. */
int repair_history(struct cli *cli, int argc, char **argv, GError **error);
/* One of them, by its id or the beginning of it. */
int repair_show(struct cli *cli, int argc, char **argv, GError **error);
