/* What help.c and complete.c share: the general options, nouns and shell scripts. */
#pragma once

#include "cli/cli.h"

/* Options that stand before or after any command; ends with a NULL name. */
struct general_option {
    const char *name, *doc;
};
extern const struct general_option general_options[];

/* What a noun stands for; the noun itself if nothing is said. */
const char *help_noun_doc(const char *noun);

/* What `fettle NOUN VERB --help` says of a command that is no opcode. */
void help_print_command(const struct command *command);

int cli_completion_bash(struct cli *cli, int argc, char **argv, GError **error);
int cli_completion_zsh(struct cli *cli, int argc, char **argv, GError **error);
