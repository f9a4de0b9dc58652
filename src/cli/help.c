/* Help: the list of commands for people, and the description of all of them as JSON, from which
 * manual pages and docs/reference are made. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/did_you_mean.h"
#include "cli/help.h"
#include "cli/table_fold.h"
#include "proto/cli/cli_args.h"

static const struct noun {
    const char *noun, *doc;
} noun_rows[] = {
    {"cluster", "The cluster as a whole"},
    {"instance", "Virtual machines"},
    {"node", "Hosts"},
    {"group", "Node groups"},
    {"service", "Daemons of the nodes"},
    {"advice", "What others advise about nodes"},
    {"network", "Networks with pools of addresses"},
    {"tag", "Tags on the cluster, node groups, nodes and instances"},
    {"repair", "Auto-repair of instances"},
    {"brake", "The storm brake of auto-repair"},
    {"decision", "What was decided, by whom, and why"},
    {"why", "Why something was done, or was not"},
    {"plan", "What would happen"},
    {"confd", "The configuration without a master, by signed datagrams; each query takes "
              "--candidates ADDRESS[:PORT],…, --key FILE and --timeout-ms MS"},
    {"lock", "Locks that jobs hold and wait for"},
    {"export", "Exports of instances, for clients of Ganeti"},
    {"reservation", "What jobs have reserved for instances"},
    {"job", "Jobs: every change is one"},
    {"queue", "The queue of jobs, and rules about them"},
    {"ganeti-root", "A folder for clients made for Ganeti"},
    {"lab", "A whole cluster on this machine"},
    {"test", "For tests"},
    {"query-fields", "Fields of the lists"},
    {"help", "Help"},
    {"completion", "Completion in shells"},
};

const struct general_option general_options[] = {
    {"--root DIR", "Folder of the node (also FETTLE_ROOT); / by default."},
    {"--json", "Print one JSON document, also for errors (to standard error)."},
    {"-o FIELD,…", "Choose fields; -o +FIELD,… adds to the usual ones."},
    {"--no-headers", "Leave out the first line of tables."},
    {"--separator SEP", "Separate fields by SEP instead of aligning them."},
    {"--units U", "Show sizes in m, g or t (MiB, GiB, TiB), or in h, what suits each."},
    {"--help", "After NOUN VERB: the flags of that command."},
    {"--version", "Print the version."},
    {NULL, NULL},
};

const char *help_noun_doc(const char *noun)
{
    for (size_t i = 0; i < G_N_ELEMENTS(noun_rows); i++)
        if (strcmp(noun_rows[i].noun, noun) == 0)
            return noun_rows[i].doc;
    return noun;
}

/* --- for people --- */

/* The first sentence of `doc` will do. */
void cli_print_command(const char *words, const char *doc)
{
    const char *end = strstr(doc, ". ");
    printf("  %-26s %.*s\n", words, end != NULL ? (int)(end - doc) + 1 : (int)strlen(doc), doc);
}

static void print_part_commands(const char *noun)
{
    for (const struct command *const *part = cli_parts(); *part != NULL; part++)
        for (const struct command *command = *part; command->noun != NULL; command++) {
            if (strcmp(noun, command->noun) != 0)
                continue;
            if (command->verb != NULL && cli_command_find(command->noun, command->verb) != NULL)
                continue; /* it comes with the opcodes */
            g_autofree char *words =
                g_strdup_printf("%s%s%s", command->noun, command->verb != NULL ? " " : "",
                                command->verb != NULL ? command->verb : "");
            cli_print_command(words, command->doc);
        }
}

void cli_print_help(const char *noun)
{
    printf("Usage: fettle [--root DIR] [--json] [-o FIELD,…] [--no-headers] [--separator SEP] "
           "[--units U] NOUN "
           "VERB …\n");
    g_autoptr(GPtrArray) nouns = cli_nouns();
    for (guint i = 0; nouns->pdata[i] != NULL; i++) {
        if (noun != NULL && strcmp(noun, nouns->pdata[i]) != 0)
            continue;
        printf("\n%s:\n", help_noun_doc(nouns->pdata[i]));
        print_part_commands(nouns->pdata[i]);
        cli_print_opcode_commands(nouns->pdata[i]);
    }
    printf("\nOptions of every command:\n");
    for (const struct general_option *option = general_options; option->name != NULL; option++)
        printf("  %s%*s %s\n", option->name, MAX(26 - table_fold_width(option->name), 0), "",
               option->doc);
    printf("\nSIZE is in MiB, or has a unit: 512M, 10G, 1T.\n");
}

void help_print_command(const struct command *command)
{
    printf("Usage: fettle %s%s%s%s%s\n\n%s\n", command->noun, command->verb != NULL ? " " : "",
           command->verb != NULL ? command->verb : "", *command->usage ? " " : "", command->usage,
           command->doc);
    const char *shown = cli_shown_resource(command);
    if (shown != NULL)
        cli_print_fields(shown);
}

/* fettle help NOUN VERB: the same as fettle NOUN VERB --help. */
static int help_of_command(struct cli *cli, const char *noun, int argc, char **argv, GError **error)
{
    g_autofree char *long_verb = cli_long_verb(noun, argc, argv);
    const char *verb = long_verb != NULL ? long_verb : argv[0];
    char *flag[] = {(char *)"--help", NULL};
    const struct command *command = cli_find_command(noun, verb);
    if (cli_command_find(noun, verb) != NULL)
        return command != NULL ? command->run(cli, 1, flag, error)
                               : cli_run_opcode(cli, noun, verb, 1, flag, error);
    if (command != NULL)
        help_print_command(command);
    else
        did_you_mean_set_error(noun, verb, error);
    return command != NULL ? 0 : -1;
}

static int help(struct cli *cli, int argc, char **argv, GError **error)
{
    if (cli->json) {
        json_autoptr description = cli_describe();
        cli_print_json(description);
        return 0;
    }
    g_autoptr(GPtrArray) nouns = cli_nouns();
    if (argc > 0 && !g_strv_contains((const char *const *)nouns->pdata, argv[0])) {
        fettle_set_error(error, WRONG_INPUT, "there is no noun \"%s\"; see fettle help", argv[0]);
        return -1;
    }
    if (argc > 1)
        return help_of_command(cli, argv[0], argc - 1, argv + 1, error);
    cli_print_help(argc > 0 ? argv[0] : NULL);
    return 0;
}

/* --- as JSON --- */

static void describe_arg(json_t *words, json_t *flags, const struct cli_arg *arg)
{
    json_t *object = json_make("{ss ss ss sb sb sb sb}", "name", arg->name, "shape", arg->shape,
                               "doc", arg->field->doc, "required", (int)arg->field->required,
                               "repeats", (int)cli_arg_repeats(arg), "common", (int)arg->common,
                               "switch", (int)(arg->field->type == FIELD_TYPE_BOOL));
    if (arg->field->def != NULL)
        json_object_set_new(object, "default", json_string(arg->field->def));
    if (arg->words != NULL) {
        json_t *list = json_array();
        for (char **word = arg->words; *word != NULL; word++)
            json_array_append_new(list, json_string(*word));
        json_object_set_new(object, "words", list);
    }
    json_array_append_new(arg->word ? words : flags, object);
}

static json_t *describe_opcode(const struct cli_command *command)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    g_autofree char *usage = cli_command_usage(command);
    json_t *words = json_array(), *flags = json_array();
    for (guint i = 0; i < args->len; i++)
        describe_arg(words, flags, args->pdata[i]);
    return json_make("{ss ss ss so so}", "verb", command->verb, "usage", usage, "doc",
                     cli_command_doc(command), "words", words, "flags", flags);
}

static json_t *describe_command(const struct command *command)
{
    json_t *object = json_make("{ss ss}", "usage", command->usage, "doc", command->doc);
    json_object_set_new(object, "verb",
                        command->verb != NULL ? json_string(command->verb) : json_null());
    const char *shown = cli_shown_resource(command);
    json_autoptr fields = shown != NULL ? cli_list_fields(shown) : json_array();
    if (json_array_size(fields) > 0)
        json_object_set(object, "fields", fields);
    return object;
}

static json_t *describe_noun(const char *noun)
{
    json_t *list = json_array();
    for (const struct command *const *part = cli_parts(); *part != NULL; part++)
        for (const struct command *command = *part; command->noun != NULL; command++)
            if (strcmp(command->noun, noun) == 0 &&
                (command->verb == NULL || cli_command_find(noun, command->verb) == NULL))
                json_array_append_new(list, describe_command(command));
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].noun, noun) == 0)
            json_array_append_new(list, describe_opcode(&table[i]));
    return json_make("{ss ss so}", "noun", noun, "doc", help_noun_doc(noun), "commands", list);
}

json_t *cli_describe(void)
{
    json_t *nouns = json_array(), *options = json_array(), *codes = json_array();
    json_t *job_flags = json_array();
    g_autoptr(GPtrArray) names = cli_nouns();
    for (guint i = 0; names->pdata[i] != NULL; i++)
        json_array_append_new(nouns, describe_noun(names->pdata[i]));
    for (const struct general_option *option = general_options; option->name != NULL; option++)
        json_array_append_new(options,
                              json_make("{ss ss}", "name", option->name, "doc", option->doc));
    for (const struct cli_job_flag *flag = cli_job_flags; flag->name != NULL; flag++)
        json_array_append_new(job_flags,
                              json_make("{ss ss}", "name", flag->name, "doc", flag->doc));
    for (int i = 0; i < FETTLE_ERROR_COUNT; i++) {
        g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, i, "");
        json_array_append_new(codes, json_make("{si ss ss}", "code", fettle_error_exit_code(error),
                                               "name", fettle_error_name(error), "doc",
                                               fettle_error_doc((enum fettle_error)i)));
    }
    return json_make("{ss so so so so}", "version", FETTLE_VERSION, "nouns", nouns, "options",
                     options, "job_flags", job_flags, "exit_codes", codes);
}

const struct command help_commands[] = {
    {"help", NULL, "[NOUN [VERB]]",
     "List the commands, or tell about one; with --json: describe every one of them.", help},
    {"completion", "bash", "", "Print the completion of bash.", cli_completion_bash},
    {"completion", "zsh", "", "Print the completion of zsh.", cli_completion_zsh},
    {0},
};
