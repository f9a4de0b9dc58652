/* `fettle why JOB`: what a job waits for, since when, and what would let it go. */
#pragma once

#include "cli/cli.h"

/* Exit code, -1 on error. `job` is a number. */
int why_job(struct cli *cli, const char *job, GError **error);
