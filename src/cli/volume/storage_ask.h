/*
 * What commands about stored things ask of fettle-wconfd of this host, which must be the master's.
 */
#pragma once

#include "cli/cli.h"

/* A method that changes something, under a commit id of its own: repeated, in the name of the same
 * history, until it is answered. `args` is stolen. `see`: the command that shows whether it is on
 * record, for an answer that does not come. */
json_t *storage_ask(struct cli *cli, const char *method, json_t *args, const char *see,
                    GError **error);
