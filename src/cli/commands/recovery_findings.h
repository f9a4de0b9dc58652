/* `fettle recovery findings`: what hosts have that no record knows. For recovery.c. */
#pragma once

#include "cli/cli.h"

int recovery_findings(struct cli *cli, int argc, char **argv, GError **error);
