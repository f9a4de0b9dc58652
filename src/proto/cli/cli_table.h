/*
 * What a command line is for opcodes (cli.def): words and flags of `fettle NOUN VERB`, turned into
 * an opcode, and its help, both read from the records. General flags of the CLI (--json, --root)
 * are taken out by the CLI before.
 */
#pragma once

#include "proto/records.h"

struct cli_done_case {
    const char *field, *value; /* of the opcode; "": any value */
    const char *sentence;
};

struct cli_command {
    const char *noun, *verb;
    const char *op_id;
    const char *words; /* see cli.def, as for what follows */
    const char *done;
    struct cli_done_case done_if[5]; /* ends with NULLs */
};

const struct cli_command *cli_command_table(size_t *ret_count);
/* NULL if there is none. */
const struct cli_command *cli_command_find(const char *noun, const char *verb);
/* That which is this opcode; NULL if there is none. */
const struct cli_command *cli_command_of(const char *op_id);
/* Whether it becomes a job; `cluster init` is carried out before there is a queue, and has none of
 * the flags of every job. */
bool cli_command_is_job(const struct cli_command *command);
/* The sentence that says what it does. */
const char *cli_command_doc(const struct cli_command *command);

/*
 * The words after `fettle NOUN VERB` as an opcode to submit; NULL-terminated. Flags: `--memory 512`
 * or `--memory=512`,
 * `--start` and `--no-start`, lists by repetition (`--disk size=64 --disk size=10G`), `--` before
 * words that begin with a dash. `--reason TEXT`, `--depends 12:success,15` and `--priority high`
 * are taken in plain words (or as they stand on the wire), sizes with a unit. WRONG_INPUT, naming
 * the word or flag: `--disk-template: is missing`.
 */
json_t *cli_command_parse(const struct cli_command *command, const char *const *words,
                          GError **error);

/* The same of a command that may name several objects: the opcode of the first, and the words for
 * all of them, NULL-terminated (they may be patterns); NULL for a command that takes none or one.
 * Free them with g_ptr_array_unref(). */
json_t *cli_command_parse_many(const struct cli_command *command, const char *const *words,
                               GPtrArray **ret_names, GError **error);
/* The kind of the objects that a command takes several of; NULL: it does not. */
const char *cli_command_many(const struct cli_command *command);

/* What is wrong with a field of the command's opcode, in the words of the command line: the error
 * "nics[1].ip: …" becomes "--net 2: ip: …; as in --net mac=auto,link=br0", with the name of the
 * flag that was typed, and an example if it is WRONG_INPUT. Any other error stays as it is. */
void cli_command_explain(const struct cli_command *command, const char *const *words,
                         GError **error);

/* Takes the flags of every job out of a command line, for commands that make their opcodes
 * themselves: their fields as an object, to be put into each opcode. The same errors. */
json_t *cli_common_take(int *argc, char **argv, GError **error);

/* What stands behind `fettle NOUN VERB`: "INSTANCE-NAME [flags]"; free with g_free(). */
char *cli_command_usage(const struct cli_command *command);
/* Text for `fettle NOUN VERB --help`, in lines of at most `width` letters; free with g_free(). */
char *cli_command_help(const struct cli_command *command, int width);
#define CLI_HELP_COLUMN 24 /* letters of a flag before its sentence */
/* A line of help, or several: `name` in a column of so many letters, and its sentence. */
void cli_help_row(GString *text, const char *name, int column, const char *doc, int width);
