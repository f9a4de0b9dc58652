/*
 * A verb for several objects: `fettle instance startup web1 'db*'`. Each is a job of its own; all
 * are followed, and one table and one line say how they ended. Used by op.c.
 */
#pragma once

#include "cli/cli.h"
#include "proto/cli/cli_table.h"

struct many {
    const struct cli_command *command;
    json_t *opcode;         /* of the first; the others differ by the name alone */
    GPtrArray *names;       /* NULL-terminated */
    bool pattern;           /* some of them come from one */
    bool submit_only, sure; /* --submit, --yes */
};

/* The exit code is that of the job that ended worst, or was refused: the highest of theirs. Ctrl-C
 * leaves out those that are not submitted yet. */
int op_many_run(struct cli *cli, const struct many *many, const char *const *words, GError **error);
