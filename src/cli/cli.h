/*
 * The `fettle` command: what its parts share. Everything about the cluster goes through LUXI
 * (LUX-15); only `cluster init` and `lab` work without a cluster.
 *
 * Every command says in one line what is now true, or prints one JSON document with --json; an
 * error goes to standard error, with --json as {"error": {…}} (docs/guide/command-line.md).
 */
#pragma once

#include "proto/records.h"

struct luxi_client;
struct node_paths;

struct cli {
    char *root; /* folder of the node, NULL: FETTLE_ROOT or / */
    bool json;
    bool headers;
    const char *separator; /* NULL: aligned columns */
    char units;            /* of sizes: m, g, t, h; 0: h for people, m with a separator */
    const char *fields;    /* of -o, NULL: the command's own */
    guint patience_ms;     /* longest wait for an answer; 0: as long as luxid answers others */
    guint silence_ms;      /* then it is asked whether it does (luxi.c); 0: LUXID_SILENCE_MS */
    bool interruptible;    /* Ctrl-C ends a wait for an answer with DETACHED (interrupt.h) */
    struct luxi_client *luxi;
    bool answered; /* luxid has done something for this command */
    bool silent;   /* luxid has taken the last request, and answers nobody (UNREACHABLE) */
    char *away;    /* what was said of a luxid that does not answer; NULL: nothing */
    GString *said; /* what is now true: goes with an error of standard output */
};

/* A command: gets what stands after its words; returns the exit code, or -1 with `error`. */
typedef int (*command_run)(struct cli *cli, int argc, char **argv, GError **error);
struct command {
    const char *noun, *verb; /* verb NULL: the noun alone is the command */
    const char *usage;       /* what stands behind the words: "INSTANCE" */
    const char *doc;
    command_run run;
};
extern const struct command cluster_commands[], query_commands[], info_commands[], job_commands[],
    console_commands[], why_commands[], lab_commands[], node_commands[], help_commands[],
    repair_commands[], plan_commands[], confd_commands[], export_commands[], import_commands[],
    backup_commands[], engine_commands[], renew_keys_commands[], failover_commands[],
    flush_commands[], queue_commands[], event_commands[], recovery_commands[], job_verb_commands[],
    verify_commands[], ganeti_commands[], volume_commands[], snapshot_commands[],
    volume_backup_commands[], image_commands[], volume_type_commands[], cleanup_commands[],
    api_commands[], metrics_commands[], rapi_commands[], webhook_commands[];

/* --- commands.c: every command there is --- */
/* All parts, NULL-terminated; commands that are opcodes are in proto/cli/cli_table.h. */
const struct command *const *cli_parts(void);
/* Every noun once, in the order of the tables; NULL-terminated, borrowed strings. */
GPtrArray *cli_nouns(void);
/* The verbs of a noun, NULL-terminated, borrowed strings. */
GPtrArray *cli_verbs(const char *noun);
/* The command of a part; NULL if it is none, or an opcode. */
const struct command *cli_find_command(const char *noun, const char *verb);
/* The verb of two words that these begin with ("invite --list"); NULL: there is none. */
char *cli_long_verb(const char *noun, int argc, char **argv);
/* The resource whose fields -o of a command can choose; NULL: it has no -o. */
const char *cli_shown_resource(const struct command *command);

/* --- luxi.c: one blocking connection, made when first needed. How long an answer may take is
 * luxid's to say: a wait ends when another connection has no answer to a simple question either.
 * --- */
json_t *cli_call(struct cli *cli, const char *method, json_t *args,
                 GError **error); /* `args` is stolen */
/* Query: the "data" rows, each a list of [status, value]. `filter` is stolen, NULL: all. */
json_t *cli_query(struct cli *cli, const char *what, const char *const *fields, json_t *filter,
                  GError **error);
/* The same, row by row: for lists that may be long. */
bool cli_query_each(struct cli *cli, const char *what, const char *const *fields, json_t *filter,
                    json_item_fn give, void *data, GError **error);
/* The two halves of cli_call(), and what to poll for between them. */
bool cli_send(struct cli *cli, const char *method, json_t *args, GError **error);
json_t *cli_receive(struct cli *cli, GError **error);
int cli_descriptor(const struct cli *cli);
/* Of a node that is not the master, as far as its files tell: "This is node4, and the master it
 * last heard of is node1"; "" of the master, NULL: not known. To be freed. */
char *cli_other_master(const struct node_paths *paths);
void cli_disconnect(struct cli *cli);

/* --- retry.c: luxid is away for a while --- */
/* Whether luxid may do what it failed with when it is asked again. */
bool cli_is_passing(const GError *error);
/* Ends the connection and waits a little; says what is waited for, once, unless `quiet`. False
 * after Ctrl-C. */
bool cli_wait_for_luxid(struct cli *cli, bool quiet, const GError *reason);
/* cli_call() for what may be asked twice: if luxid has answered this command before, it is asked
 * until it does again. DETACHED after Ctrl-C. `args` is stolen. */
json_t *cli_call_patiently(struct cli *cli, const char *method, json_t *args, GError **error);

/* --- table.c --- */
/* Prints rows of [status, value] cells as the global options ask: a table, separated values or
 * JSON. `what` is the resource whose fields (proto/fields.def) `names` are, NULL: they are none. */
void cli_print_rows(const struct cli *cli, const char *what, const char *const *names,
                    json_t *rows);
/* The same from rows that come one by one; what is borrowed here must outlive the table. */
struct cli_table *cli_table_new(const struct cli *cli, const char *what, const char *const *names);
void cli_table_add(json_t *row, void *table);
void cli_table_print(struct cli_table *table);
void cli_table_free(struct cli_table *table);
/* The parts of that, for tables that change while they are shown: the texts of a row's cells, the
 * titles above them; a line of them, for which `widths` (of the columns, 0 at first) grow as
 * needed. Free with g_ptr_array_unref(), g_free(). */
GPtrArray *cli_row_cells(const struct cli *cli, const char *what, const char *const *names,
                         const json_t *row);
GPtrArray *cli_title_cells(const char *what, const char *const *names);
char *cli_cells_line(const struct cli *cli, const GPtrArray *cells, int *widths);
/* Prints one JSON document, indented. */
void cli_print_json(const json_t *json);
/* Each row as an object with those names, as --json shows it. */
json_t *cli_rows_as_objects(const char *const *names, const json_t *rows);
/* Fields of one row, one a line. */
void cli_print_details(const char *what, const char *const *fields, const json_t *row);
/* What holds up every repair, if its brake is on, and how to go on. */
bool cli_print_brake(struct cli *cli, GError **error);

/* --- table_cells.c --- */
/* The fields of a resource with their meaning, for --help; nothing if it is no resource. */
void cli_print_fields(const char *what);
/* The same as a list of {"name", "doc"}. */
json_t *cli_list_fields(const char *what);
/* The fields that -o asks for: `-o a,b` replaces the standard ones, `-o +a,b` adds to them; words
 * for people (columns.h) are taken for the fields that they stand for. */
GStrv cli_choose_fields(const struct cli *cli, const char *what, const char *standard);
/* One of them: also what its column is called, in whatever letters. The word itself if there is
 * none such. */
const char *cli_field_named(const char *what, const char *word);
/* WRONG_INPUT names the first chosen field that the resource does not have. */
bool cli_check_fields(struct cli *cli, const char *what, const char *const *fields, GError **error);
/* The same of fields that another flag names. */
bool cli_fields_exist(struct cli *cli, const char *flag, const char *what,
                      const char *const *fields, GError **error);
/* A cell as text: lists joined by commas, times as cli_time_text; "?" unknown, "-" no data,
 * "(unavailable)", "(offline)". */
char *cli_cell_text(const char *what, const char *name, const json_t *cell);
/* Local time of seconds since 1970; "-" for 0, which stands for never. */
char *cli_time_text(gint64 seconds);
/* The value of a cell if its status is normal, else NULL; borrowed. */
const json_t *cli_cell_value(const json_t *row, size_t index);
const char *cli_cell_string(const json_t *row, size_t index); /* "" if it is none */
/* What a role letter of a node means; NULL if it is none. */
const char *cli_role_word(const char *letter);

/* --- done_text.c --- */
/* One line of success: `format` on standard output, or with --json `object` (stolen, may be NULL)
 * with that line as its "message". */
void cli_say(const struct cli *cli, json_t *object, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* Whoever changes something without cli_say(): what is said of it if the answer cannot be printed.
 * The last word counts. */
void cli_note(const struct cli *cli, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* What is now true after an opcode of a command (proto/cli.def) has succeeded; free with g_free().
 * `opcode` is what was submitted. Asks the cluster where that is the answer. */
char *cli_done_text(struct cli *cli, const json_t *opcode);

/* --- options.c --- */
/* Takes `--name value` or `--name=value` out of argv; NULL if it is not there. */
const char *cli_take_option(int *argc, char **argv, const char *name, GError **error);
bool cli_take_flag(int *argc, char **argv, const char *name);
/* The same; WRONG_INPUT if it has a value (`--submit=yes`). */
bool cli_take_switch(int *argc, char **argv, const char *name, bool *ret_given, GError **error);
/* Everything that is left must be positional: `count` words. WRONG_INPUT names the usage. */
bool cli_expect(int argc, char **argv, int count, const char *usage, GError **error);

/* --- confirm.c --- */
/* Asks on the terminal; anything but yes: CANCELED. */
bool cli_is_sure(const char *question, GError **error);
/* For what is rare and grave: that very word has to be typed, as `how` says; else CANCELED. */
bool cli_has_typed(const char *question, const char *how, const char *word, GError **error);
/* Before an opcode that loses something for good: asks, if there is somebody to ask. */
bool cli_may_lose(const struct cli *cli, const json_t *opcode, GError **error);
/* The same before it is done to each of these (NULL-terminated): who is asked sees which they are.
 * What a `pattern` has chosen, or loses single disks, is not lost without a word: where nobody can
 * be asked it needs --yes. */
bool cli_may_lose_many(const struct cli *cli, const json_t *opcode, const GPtrArray *names,
                       bool pattern, GError **error);

/* --- op.c: commands made of opcodes --- */
/* Flags of every such command that are no fields of its opcode; ends with a name of NULL. */
struct cli_job_flag {
    const char *name, *doc;
};
extern const struct cli_job_flag cli_job_flags[];
int cli_run_opcode(struct cli *cli, const char *noun, const char *verb, int argc, char **argv,
                   GError **error);
/* What --submit says. */
int cli_say_submitted(const struct cli *cli, guint64 job);

/* --- submit.c --- */
/* Submits opcodes (a list, stolen) as a job; 0 with an error. It is one job, however often luxid is
 * restarted meanwhile: they get a request id if they have none. */
guint64 cli_submit(struct cli *cli, json_t *opcodes, GError **error);

/* --- follow.c --- */
/* Follows a job to its end, with its log and progress on standard error; the exit code of its
 * outcome. DETACHED after Ctrl-C: the job goes on. */
int cli_follow_job(struct cli *cli, guint64 job, bool quiet, GError **error);
/* Results of the job's opcodes, as they stand; NULL with an error. Waits for a luxid that is
 * away. */
json_t *cli_job_results(struct cli *cli, guint64 job, GError **error);
bool cli_job_final(const char *status);
/* A job id as a word; WRONG_INPUT if it is none. */
bool cli_parse_job(const char *text, guint64 *ret_id, GError **error);
/* Why a job failed, from its results, and the name of the error; NULL if they do not say.
 * Borrowed. */
const char *cli_job_message(const json_t *results, const char **ret_code);
/* The same as an error that names the job. */
void cli_set_job_error(guint64 job, const json_t *results, GError **error);

/* --- job_live.c: job list --live --- */
/* Lists jobs and then shows each change until Ctrl-C (0) or an error that waiting does not mend. */
int cli_live_jobs(struct cli *cli, const char *const *names, GError **error);

/* --- child_jobs.c: jobs that a job has submitted --- */
/* Ids of the jobs in an opcode's result {"jobs": …}; NULL if it has none. Array of guint64.
 * `refused` gets a GError for each that could not be submitted. */
GArray *cli_child_jobs(const json_t *result, GPtrArray *refused);
/* Follows them all to their ends with a table of where they are, and prints the table of outcomes
 * (or fills `ret_jobs` if --json). JOB_FAILED if one did not succeed. */
int cli_follow_children(struct cli *cli, const GArray *jobs, const GPtrArray *refused,
                        json_t **ret_jobs, GError **error);

/* --- lab.c --- */
/* For a command that asks other nodes itself: in a lab their network is reached from the node's. */
void cli_join_lab(const struct cli *cli);

/* --- help.c, complete.c --- */
void cli_print_help(const char *noun);
/* A text in lines that fit the help; later ones begin with `indent` spaces. */
void cli_print_folded(const char *text, int indent);
/* Every command with words, flags, values and fields, as JSON. */
json_t *cli_describe(void);
/* `fettle --complete WORD…`: what the last word can become, one a line: word, tab, meaning. */
void cli_complete(struct cli *cli, int argc, char **argv);
