/* Help: the list of commands for people, and the description of all of them as JSON, from which
 * manual pages and docs/reference are made. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/did_you_mean.h"
#include "cli/help.h"
#include "cli/screen.h"
#include "proto/cli/cli_args.h"

/* What each noun is; with `verbs` it is one for every day, and stands at the top of the help. */
static const struct noun {
    const char *noun, *doc, *verbs;
} noun_rows[] = {
    {"instance", "Virtual machines",
     "list, info, create, startup, shutdown, reboot, migrate, failover, modify, console, remove"},
    {"node", "Hosts", "list, info, modify, migrate, evacuate, invite, remove"},
    {"job", "Jobs: every change is one", "list, info, watch, cancel"},
    {"why", "Why something was done, or was not",
     "INSTANCE, NODE, JOB, cluster, volume, storage-service"},
    {"cluster", "The cluster as a whole", "info, verify, modify, backup, master-failover"},
    {"repair", "Auto-repair of instances", "list, policy, suspend, resume, continue"},
    {"recovery", "Tasks that were left behind", "list, plan, show, collect, retry, reset"},
    {"network", "Networks with pools of addresses", "list, info, add, modify, remove"},
    {"volume", "Disks that live by themselves",
     "list, info, create, extend, attach, detach, migrate, delete"},
    {"snapshot", "What volumes were at one moment", "list, info, create, rename, delete"},
    {"backup", "What is kept of volumes elsewhere", "list, info, create, restore, delete"},
    {"tag", "Tags on the cluster, node groups, nodes and instances", "list, add, remove"},
    {"event", "What recovery tells: once each, as it happens", NULL},
    {"image", "Disks that volumes are made of", NULL},
    {"backend", "Places where volumes are kept", NULL},
    {"volume-type", "Kinds of volumes: where they may be, and whose", NULL},
    {"cleanup", "Have others clean what dead volume services have left", NULL},
    {"api", "Front ends for clients of OpenStack", NULL},
    {"rapi", "REST, as Ganeti's RAPI: who may ask it", NULL},
    {"webhook", "Receivers of events outside", NULL},
    {"plan", "What would happen", NULL},
    {"queue", "The queue of jobs, and rules about them", NULL},
    {"group", "Node groups", NULL},
    {"service", "Daemons of the nodes", NULL},
    {"worker", "Work on volumes that is not done yet", NULL},
    {"storage-service", "Services that work on what is stored", NULL},
    {"decision", "What was decided, by whom, and why", NULL},
    {"advice", "What others advise about nodes", NULL},
    {"brake", "The storm brake of auto-repair", NULL},
    {"confd",
     "The configuration without a master, by signed datagrams; each query takes "
     "--candidates ADDRESS[:PORT],…, --key FILE and --timeout-ms MS",
     NULL},
    {"metrics", "What monitoring of the nodes shows to Prometheus", NULL},
    {"lock", "Locks that jobs hold and wait for", NULL},
    {"export", "Exports of instances, for clients of Ganeti", NULL},
    {"reservation", "What jobs have reserved for instances", NULL},
    {"ganeti-root", "A folder for clients made for Ganeti", NULL},
    {"lab", "A whole cluster on this machine", NULL},
    {"test", "For tests", NULL},
    {"query-fields", "Fields of the lists", NULL},
    {"help", "Help", NULL},
    {"completion", "Completion in shells", NULL},
};

const struct general_option general_options[] = {
    {"--json", "Print one JSON document, also for errors."},
    {"-o FIELD,…", "Choose the fields of a list; +FIELD,… adds to the usual."},
    {"--no-headers", "Leave out the first line of tables."},
    {"--separator SEP", "Separate fields by SEP instead of aligning them."},
    {"--units U", "Show sizes in m, g or t, or in h: what suits each."},
    {"--root DIR", "Folder of the node (also FETTLE_ROOT); / by default."},
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

#define NOUN_COLUMN 10   /* letters of a noun */
#define OPTION_COLUMN 17 /* of an option of every command */

void cli_print_folded(const char *text, int indent)
{
    g_autoptr(GString) out = g_string_new(NULL);
    text_fold(out, text, 0, indent, screen_text_columns());
    printf("%s\n", out->str);
}

static void print_row(const char *name, int column, const char *doc)
{
    g_autoptr(GString) out = g_string_new(NULL);
    cli_help_row(out, name, column, doc, screen_text_columns());
    printf("%s", out->str);
}

/* What it does, without the details that its own help tells: up to the first stop, semicolon or
 * colon that stands in no brackets. */
static char *brief(const char *doc)
{
    int depth = 0;
    for (const char *at = doc; *at != '\0'; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        bool ends = strchr(".;:", *at) != NULL && (at[1] == ' ' || at[1] == '\0');
        if (ends && depth == 0)
            return g_strdup_printf("%.*s.", (int)(at - doc), doc);
    }
    return g_strdup(doc);
}

/* The sentence about a command, whichever kind it is; NULL: it has no such verb. */
static char *doc_of(const char *noun, const char *verb)
{
    const struct cli_command *opcode = cli_command_find(noun, verb);
    const struct command *command = cli_find_command(noun, verb);
    if (opcode != NULL)
        return record_doc(cli_command_doc(opcode));
    return command != NULL ? g_strdup(command->doc) : NULL;
}

/* `fettle help NOUN`: its verbs, those for every day first. */
static void print_noun(const char *noun)
{
    g_autoptr(GPtrArray) verbs = cli_verbs(noun);
    size_t widest = 0;
    if (verbs->len <= 1) {
        help_print_command(cli_find_command(noun, NULL));
        return;
    }
    for (guint i = 0; verbs->pdata[i] != NULL; i++)
        widest = MAX(widest, strlen(verbs->pdata[i]));
    printf("Usage: fettle %s VERB …\n\n", noun);
    g_autofree char *head = g_strdup_printf("%s:", help_noun_doc(noun));
    cli_print_folded(head, 0);
    for (guint i = 0; verbs->pdata[i] != NULL; i++) {
        g_autofree char *doc = doc_of(noun, verbs->pdata[i]);
        g_autofree char *what = brief(doc);
        print_row(verbs->pdata[i], (int)widest, what);
    }
    printf("\nfettle %s VERB --help: the words and flags of one.\n", noun);
}

static bool is_everyday(const char *noun)
{
    for (size_t i = 0; i < G_N_ELEMENTS(noun_rows); i++)
        if (strcmp(noun_rows[i].noun, noun) == 0)
            return noun_rows[i].verbs != NULL;
    return false;
}

static void print_nouns(void)
{
    g_autoptr(GPtrArray) nouns = cli_nouns();
    g_autoptr(GString) others = g_string_new("Also:");
    printf("Usage: fettle NOUN VERB …\n\nVerbs of what is used every day:\n");
    for (size_t i = 0; i < G_N_ELEMENTS(noun_rows) && noun_rows[i].verbs != NULL; i++)
        print_row(noun_rows[i].noun, NOUN_COLUMN, noun_rows[i].verbs);
    for (guint i = 0; nouns->pdata[i] != NULL; i++)
        if (!is_everyday(nouns->pdata[i]))
            g_string_append_printf(others, " %s", (const char *)nouns->pdata[i]);
    printf("\n");
    cli_print_folded(others->str, 6);
}

void cli_print_help(const char *noun)
{
    if (noun != NULL) {
        print_noun(noun);
        return;
    }
    print_nouns();
    printf("\n");
    for (const struct general_option *option = general_options; option->name != NULL; option++)
        print_row(option->name, OPTION_COLUMN, option->doc);
    printf("\n");
    cli_print_folded("fettle NOUN --help: its verbs; fettle NOUN VERB --help: words and flags.", 0);
}

void help_print_command(const struct command *command)
{
    g_autofree char *usage = g_strdup_printf(
        "Usage: fettle %s%s%s%s%s", command->noun, command->verb != NULL ? " " : "",
        command->verb != NULL ? command->verb : "", *command->usage ? " " : "", command->usage);
    cli_print_folded(usage, 7);
    printf("\n");
    cli_print_folded(command->doc, 0);
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
    g_autofree char *doc = record_doc(arg->field->doc);
    json_t *object =
        json_make("{ss ss ss sb sb sb sb}", "name", arg->name, "shape", arg->shape, "doc", doc,
                  "required", (int)arg->field->required, "repeats", (int)cli_arg_repeats(arg),
                  "common", (int)arg->common, "switch", (int)(arg->field->type == FIELD_TYPE_BOOL));
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
    g_autofree char *doc = record_doc(cli_command_doc(command));
    json_t *words = json_array(), *flags = json_array();
    for (guint i = 0; i < args->len; i++)
        describe_arg(words, flags, args->pdata[i]);
    return json_make("{ss ss ss so so}", "verb", command->verb, "usage", usage, "doc", doc, "words",
                     words, "flags", flags);
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
