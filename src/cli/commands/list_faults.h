/*
 * What `fettle cluster verify` finds, beside the list of nodes: what a node says of itself may be
 * well although others have found something. Only commands/list.c includes this.
 */
#pragma once

#include "cli/cli.h"

/* Asks for it; NULL if nobody can tell, with an error only if luxid answers nothing at all. Free
 * with list_faults_free(). */
struct list_faults *list_faults_ask(struct cli *cli, GError **error);
void list_faults_free(struct list_faults *faults);
/* What stands in the place of `word`, the health of a node by its own word: that, or how much was
 * found of a node that is "well" by it; g_free(). */
char *list_faults_word(const struct list_faults *faults, const char *node, const char *word);
/* A line about all that was found, for below the list; nothing if all is well. */
void list_faults_say(const struct list_faults *faults, GString *below);
