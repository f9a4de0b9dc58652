/*
 * What recovery would do next, and what hosts show (the LUXI call PlanRecovery): `fettle recovery
 * plan` and `collect`, and the part of `show` that is asked afresh.
 */
#pragma once

#include "cli/cli.h"

/* How usages call a subject, and one that may be left out. */
extern const char recovery_subject[], recovery_any_subject[];

/* The two words of a subject. */
bool recovery_is_subject(const char *verb, int argc, char **argv, GError **error);
/* "Volume", for the beginning of a sentence; static. */
const char *recovery_kind_text(const char *kind);
/* The answer about one subject (its kind, its name); NULL with an error. Its only row; NULL: it has
 * gone just now. */
json_t *recovery_ask(struct cli *cli, char **subject, bool hosts, GError **error);
const json_t *recovery_row(const json_t *answer);
/* A list of lines under one head, nothing if it is empty. */
void recovery_print_lines(const char *head, const json_t *lines);
/* What comes of one row, as lines of a page, and what holds that up. */
void recovery_print_outcome(const json_t *answer);

int recovery_plan(struct cli *cli, int argc, char **argv, GError **error);
int recovery_collect(struct cli *cli, int argc, char **argv, GError **error);
