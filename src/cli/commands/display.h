/* `fettle instance console --vnc`: where the screen of a guest is seen, and how to get there. */
#pragma once

#include "cli/cli.h"

/* Prints it; `name`: an instance by name or UUID. WRONG_STATE if it has no display. */
bool display_print(struct cli *cli, const char *name, GError **error);
