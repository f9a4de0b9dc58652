/*
 * The `fettle` command: what its parts share. Everything about the cluster goes through LUXI
 * (LUX-15); only `cluster init` and `lab` work without a cluster.
 */
#pragma once

#include "proto/records.h"

struct luxi_client;

struct cli {
    char *root; /* folder of the node, NULL: FETTLE_ROOT or / */
    bool json;
    bool headers;
    const char *separator; /* NULL: aligned columns */
    const char *fields;    /* of -o, NULL: the command's own */
    struct luxi_client *luxi;
};

/* A command: gets what stands after its words; returns the exit code, or -1 with `error`. */
typedef int (*command_run)(struct cli *cli, int argc, char **argv, GError **error);
struct command {
    const char *noun, *verb; /* verb NULL: the noun alone is the command */
    const char *usage;       /* what stands behind the words: "INSTANCE" */
    const char *doc;
    command_run run;
};
extern const struct command cluster_commands[], query_commands[], job_commands[], why_commands[],
    lab_commands[], node_commands[];

/* --- luxi.c: one blocking connection, made when first needed --- */
json_t *cli_call(struct cli *cli, const char *method, json_t *args,
                 GError **error); /* `args` is stolen */
/* Query: the "data" rows, each a list of [status, value]. `filter` is stolen, NULL: all. */
json_t *cli_query(struct cli *cli, const char *what, const char *const *fields, json_t *filter,
                  GError **error);
void cli_disconnect(struct cli *cli);

/* --- table.c --- */
/* Prints rows of [status, value] cells as the global options ask: a table, separated values or
 * JSON. `what` is the resource whose fields (proto/fields.def) `names` are, NULL: they are none. */
void cli_print_rows(const struct cli *cli, const char *what, const char *const *names,
                    json_t *rows);
/* The fields of a resource with their meaning, for --help; nothing if it is no resource. */
void cli_print_fields(const char *what);
/* The fields that -o asks for: `-o a,b` replaces the standard ones, `-o +a,b` adds to them. */
GStrv cli_choose_fields(const struct cli *cli, const char *standard);
/* WRONG_INPUT names the first chosen field that the resource does not have. */
bool cli_check_fields(struct cli *cli, const char *what, const char *const *fields, GError **error);
/* A cell as text: lists joined by commas, times as cli_time_text; "?" unknown, "-" no data,
 * "(unavailable)", "(offline)". */
char *cli_cell_text(const char *what, const char *name, const json_t *cell);
/* Local time of seconds since 1970; "-" for 0, which stands for never. */
char *cli_time_text(gint64 seconds);
/* The value of a cell if its status is normal, else NULL; borrowed. */
const json_t *cli_cell_value(const json_t *row, size_t index);
const char *cli_cell_string(const json_t *row, size_t index); /* "" if it is none */

/* --- options.c --- */
/* Takes `--name value` or `--name=value` out of argv; NULL if it is not there. */
const char *cli_take_option(int *argc, char **argv, const char *name, GError **error);
bool cli_take_flag(int *argc, char **argv, const char *name);
/* Everything that is left must be positional: `count` words. WRONG_INPUT names the usage. */
bool cli_expect(int argc, char **argv, int count, const char *usage, GError **error);

/* --- op.c: commands made of opcodes --- */
int cli_run_opcode(struct cli *cli, const char *noun, const char *verb, int argc, char **argv,
                   GError **error);
void cli_print_opcode_commands(const char *noun);
/* Follows a job to its end and prints its log; the exit code of its outcome. */
int cli_follow_job(struct cli *cli, guint64 job, bool quiet, GError **error);
