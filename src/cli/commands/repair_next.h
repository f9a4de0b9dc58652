/*
 * What a person can do about the repair of an instance as it stands: said after `fettle why`,
 * `fettle repair show` and `fettle repair history`.
 */
#pragma once

#include "cli/cli.h"

/* Commands to type, with a word what for; nothing if nothing waits for a person. */
bool repair_print_next(struct cli *cli, const char *instance, GError **error);
/* The commands that end the suspensions that count for the object (kind "cluster", "nodegroup" or
 * "instance"; the cluster's name is not looked at): its own, and, as far as it has no other
 * policy of its own, those of what it is in. */
json_t *repair_suspensions(struct cli *cli, const char *kind, const char *name, GError **error);
/* What repair_print_next() says, of a node that is silent or offline; `ret_said` whether there was
 * something to say. */
bool repair_print_next_node(struct cli *cli, const char *node, bool *ret_said, GError **error);
