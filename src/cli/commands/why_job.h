/* `fettle why JOB`: what a job waits for, since when, and what would let it go. */
#pragma once

#include "cli/cli.h"

/* Adds why it was submitted, as its first opcode says, to a list: "WHO: TEXT" for each entry but
 * those of luxid. */
void why_add_reasons(const json_t *ops, json_t *list);
/* Jobs that began under a master before this one and have not ended: rows with their ids. `info` is
 * QueryClusterInfo's. */
json_t *why_older_jobs(struct cli *cli, const json_t *info, GError **error);
/* Exit code, -1 on error. `job` is a number. */
int why_job(struct cli *cli, const char *job, GError **error);
