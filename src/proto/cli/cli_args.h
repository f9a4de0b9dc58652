/*
 * The words and flags of a command that is an opcode, as people see them: read from cli.def and the
 * opcode's record. Parsing, help, completion, manual pages and `fettle help --json` all start here.
 */
#pragma once

#include "proto/cli/cli_table.h"

struct cli_arg {
    const struct field *field;
    /* A number that becomes one of a record, whose bounds count: on the wire another stands for
     * "as it is", and of a person that would be another wish. NULL: it does not. */
    const struct field *setting;
    char *name;          /* of a flag "--disk", of a plain word "INSTANCE-NAME" */
    char *also;          /* another name that is accepted: "--disks"; NULL: none */
    char *shape;         /* what stands for its value: "SIZE"; "" for a switch */
    char **words;        /* the only values that it takes; NULL: any */
    bool word;           /* it is a plain word */
    bool rest;           /* a plain word that takes all that are left */
    bool many;           /* the same: each names an object, which has an opcode of its own */
    const char *example; /* a value that messages show; NULL: none */
    bool common;         /* every job has it */
    char *unless_field;  /* a plain word that takes nothing if that field ... */
    char *unless_word;   /* ... was given as this; NULL: always takes one */
};

/* Plain words in their order, then flags of its own, then those of every job if it becomes one;
 * OP_ID is not among them. Free with g_ptr_array_unref(). */
GPtrArray *cli_args(const struct cli_command *command);
/* Whether it may be given several times. */
bool cli_arg_repeats(const struct cli_arg *arg);
/* The flag of that name (with its dashes); `*ret_no` tells whether it was asked for as --no-NAME,
 * which a switch allows. NULL: there is none. */
const struct cli_arg *cli_arg_flag(const GPtrArray *args, const char *name, bool *ret_no);
/* Every name that a flag of the command can have, NULL-terminated; borrowed from `args`. */
GPtrArray *cli_arg_flag_names(const GPtrArray *args);

/* The text of a command line as the value of the argument (of a list: a list of one), checked by
 * itself. WRONG_INPUT with `name`, which is how it was called. */
json_t *cli_arg_value(const struct cli_arg *arg, const char *name, const char *text,
                      GError **error);
