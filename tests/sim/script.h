/* Scenario scripts of the simulator: one command a line; tests/sim/README lists them. */
#pragma once

#include "sim.h"

/* Runs a script; NULL if everything it expects came true, else what did not, with its line number
 * (g_free). */
char *script_run(struct sim *sim, const char *text);
