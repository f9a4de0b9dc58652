/*
 * Completion: `fettle --complete WORD…` answers what the last word can become; the scripts for bash
 * and zsh ask it. Commands, flags and words of enums come from the tables, names of objects from
 * the cluster: quietly, and only for COMPLETE_WAIT_MS.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/help.h"
#include "cli/usage.h"
#include "proto/cli/cli_args.h"

struct completion {
    struct cli *cli;
    const char *begin;  /* of the word that is completed */
    const char *before; /* put in front of each answer: "--memory=" */
};

static void offer(const struct completion *completion, const char *word, const char *meaning)
{
    if (g_str_has_prefix(word, completion->begin))
        printf("%s%s\t%s\n", completion->before, word, meaning);
}

/* --- names of objects --- */

/* What the field `first` of each row has, with the text of `second`. `filter` is stolen. */
static void offer_rows(const struct completion *completion, const char *what, json_t *filter,
                       const char *first, const char *second)
{
    json_autoptr rows =
        cli_query(completion->cli, what, (const char *const[]){first, second, NULL}, filter, NULL);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        g_autofree char *meaning = cli_cell_text(what, second, json_array_get(row, 1));
        offer(completion, cli_cell_string(row, 0), meaning);
    }
}

/* Jobs that are not over; the others can be too many. */
static void offer_jobs(const struct completion *completion)
{
    json_t *filter = json_make("[s[sss][sss][sss]]", "|", "=", "status", "queued", "=", "status",
                               "waiting", "=", "status", "running");
    json_autoptr rows = cli_query(completion->cli, "job",
                                  (const char *const[]){"id", "summary", NULL}, filter, NULL);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        g_autofree char *id =
            g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(cli_cell_value(row, 0)));
        g_autofree char *summary = cli_cell_text("job", "summary", json_array_get(row, 1));
        offer(completion, id, summary);
    }
}

/* Each name once, however many nodes have such a service. */
static void offer_services(const struct completion *completion)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    json_autoptr rows = cli_query(completion->cli, "service",
                                  (const char *const[]){"name", "binary", NULL}, NULL, NULL);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = cli_cell_string(row, 0);
        if (g_hash_table_add(seen, (gpointer)name))
            offer(completion, name, cli_cell_string(row, 1));
    }
}

/* `shape`: what the usage says of the word. */
static void offer_objects(const struct completion *completion, const char *noun, const char *shape)
{
    bool name = strcmp(shape, "NAME") == 0;
    if (strcmp(shape, "INSTANCE") == 0 || strcmp(shape, "INSTANCE-NAME") == 0 ||
        (name && strcmp(noun, "instance") == 0))
        offer_rows(completion, "instance", NULL, "name", "disk_template");
    else if (strcmp(shape, "NODE") == 0 || strcmp(shape, "NODE-NAME") == 0 ||
             (name && strcmp(noun, "node") == 0))
        offer_rows(completion, "node", NULL, "name", "pip");
    else if (strcmp(shape, "NETWORK-NAME") == 0 || (name && strcmp(noun, "network") == 0))
        offer_rows(completion, "network", NULL, "name", "network");
    else if (strcmp(shape, "BACKEND") == 0 || strcmp(shape, "BACKEND-NAME") == 0 ||
             (name && strcmp(noun, "backend") == 0))
        offer_rows(completion, "backend", NULL, "name", "path");
    else if (strcmp(shape, "VOLUME") == 0 || (name && strcmp(noun, "volume") == 0))
        offer_rows(completion, "volume", NULL, "name", "status");
    else if (strcmp(shape, "SNAPSHOT") == 0 || (name && strcmp(noun, "snapshot") == 0))
        offer_rows(completion, "snapshot", NULL, "name", "status");
    else if (strcmp(shape, "BACKUP") == 0 || (name && strcmp(noun, "backup") == 0))
        offer_rows(completion, "backup", NULL, "name", "status");
    else if (strcmp(shape, "TYPE") == 0 || (name && strcmp(noun, "volume-type") == 0))
        offer_rows(completion, "volume_type", NULL, "name", "description");
    else if (strcmp(shape, "IMAGE") == 0 || (name && strcmp(noun, "image") == 0))
        offer_rows(completion, "image", NULL, "name", "status");
    else if (strcmp(shape, "HOST") == 0)
        offer_rows(completion, "storage_service", NULL, "host", "state");
    else if (name && strcmp(noun, "service") == 0)
        offer_services(completion);
    else if (strcmp(shape, "GROUP") == 0 ||
             (name && (strcmp(noun, "nodegroup") == 0 || strcmp(noun, "group") == 0)))
        offer_rows(completion, "group", NULL, "name", "uuid");
    else if (strcmp(shape, "INVITATION") == 0)
        offer_rows(completion, "invitation", json_make("[s[sss]]", "!", "=", "state", "used"),
                   "name", "author");
    else if (strcmp(shape, "JOB") == 0 || (strcmp(shape, "ID") == 0 && strcmp(noun, "job") == 0))
        offer_jobs(completion);
    else if (strcmp(shape, "ID") == 0 && strcmp(noun, "repair") == 0)
        offer_rows(completion, "repair", NULL, "id", "instance");
    else if (strcmp(shape, "UUID") == 0 && strcmp(noun, "queue") == 0)
        offer_rows(completion, "filter", NULL, "uuid", "action");
    else if (strcmp(shape, "KIND") == 0)
        for (const char *const *word = tag_kind_words.words; *word != NULL; word++)
            offer(completion, *word, "");
}

/* --- commands that are opcodes --- */

static void offer_value(const struct completion *completion, const char *noun,
                        const struct cli_arg *arg)
{
    for (char **word = arg->words; word != NULL && *word != NULL; word++)
        offer(completion, *word, "");
    if (arg->words == NULL)
        offer_objects(completion, noun, arg->word ? arg->name : arg->shape);
}

static void offer_flags(const struct completion *completion, const GPtrArray *args)
{
    for (guint i = 0; i < args->len; i++) {
        const struct cli_arg *arg = args->pdata[i];
        if (arg->word)
            continue;
        offer(completion, arg->name, arg->field->doc);
        if (arg->field->type != FIELD_TYPE_BOOL || !g_str_has_prefix(completion->begin, "--no"))
            continue;
        g_autofree char *negative = g_strdup_printf("--no-%s", arg->name + 2);
        offer(completion, negative, arg->field->doc);
    }
    for (const struct cli_job_flag *flag = cli_job_flags; flag->name != NULL; flag++)
        offer(completion, flag->name, flag->doc);
}

/* The flag whose value comes next; `*ret_words`: plain words before the last one. */
static const struct cli_arg *waiting_flag(const GPtrArray *args, int argc, char **argv,
                                          GPtrArray *ret_words)
{
    const struct cli_arg *waiting = NULL;
    for (int i = 0; i + 1 < argc; i++) {
        bool no;
        if (waiting != NULL) {
            waiting = NULL;
        } else if (g_str_has_prefix(argv[i], "--")) {
            const struct cli_arg *arg = cli_arg_flag(args, argv[i], &no);
            bool takes = arg != NULL && arg->field->type != FIELD_TYPE_BOOL;
            waiting = takes ? arg : NULL;
        } else {
            g_ptr_array_add(ret_words, argv[i]);
        }
    }
    return waiting;
}

/* The plain word at this place; its kind of object may have been given before it. */
static void offer_word(const struct completion *completion, const char *noun, const GPtrArray *args,
                       const GPtrArray *words)
{
    guint place = words->len;
    bool tags =
        args->len > 1 && strcmp(((const struct cli_arg *)args->pdata[0])->name, "KIND") == 0;
    if (tags && place == 1)
        noun = words->pdata[0];
    const struct cli_arg *arg = place < args->len ? args->pdata[place] : NULL;
    if (args->len > 0 && ((const struct cli_arg *)args->pdata[0])->many)
        arg = args->pdata[0];
    if (arg != NULL && arg->word)
        offer_value(completion, noun, arg);
}

static void complete_opcode(struct completion *completion, const struct cli_command *command,
                            int argc, char **argv)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    const struct cli_arg *flag = waiting_flag(args, argc, argv, words);
    const char *equals = strchr(completion->begin, '=');
    if (flag == NULL && g_str_has_prefix(completion->begin, "--") && equals != NULL) {
        g_autofree char *name = g_strndup(completion->begin, (size_t)(equals - completion->begin));
        g_autofree char *before = g_strconcat(name, "=", NULL);
        struct completion value = {completion->cli, equals + 1, before};
        bool no;
        flag = cli_arg_flag(args, name, &no);
        if (flag != NULL)
            offer_value(&value, command->noun, flag);
    } else if (flag != NULL) {
        offer_value(completion, command->noun, flag);
    } else if (completion->begin[0] == '-') {
        offer_flags(completion, args);
    } else {
        offer_word(completion, command->noun, args, words);
    }
}

/* --- other commands: by their usage --- */

/* What one shape or word of a usage offers, behind these words. */
static void offer_shape(const struct completion *completion, const char *noun, const char *shape,
                        const char *last)
{
    /* Of which kind it is a name may stand right before it. */
    bool kind = last != NULL && g_strv_contains(tag_kind_words.words, last);
    if (g_ascii_islower(*shape) || g_ascii_isdigit(*shape))
        offer(completion, shape, "");
    else
        offer_objects(completion, kind ? last : noun, shape);
}

static void complete_command(const struct completion *completion, const struct command *command,
                             int argc, char **argv)
{
    int before = argc > 0 ? argc - 1 : 0;
    const char *last = before > 0 ? argv[before - 1] : NULL;
    g_autofree char *value = usage_value(command->usage, before, argv);
    g_autoptr(GPtrArray) flags = usage_flags(command->usage);
    g_autoptr(GPtrArray) next = usage_next(command->usage, before, argv);
    if (value != NULL) {
        g_auto(GStrv) choices = g_strsplit(value, "|", -1);
        for (guint i = 0; choices[i] != NULL; i++)
            if (!g_ascii_isdigit(*choices[i])) /* an example of a number or time */
                offer_shape(completion, command->noun, choices[i], NULL);
        return;
    }
    for (guint i = 0; flags->pdata[i] != NULL && completion->begin[0] == '-'; i++)
        offer(completion, flags->pdata[i], "");
    for (guint i = 0; next->pdata[i] != NULL && completion->begin[0] != '-'; i++)
        offer_shape(completion, command->noun, next->pdata[i], last);
}

static void offer_general(const struct completion *completion)
{
    for (const struct general_option *option = general_options; option->name != NULL; option++) {
        g_auto(GStrv) halves = g_strsplit(option->name, " ", 2);
        offer(completion, halves[0], option->doc);
    }
}

static void complete_head(const struct completion *completion, const char *noun)
{
    g_autoptr(GPtrArray) words = noun == NULL ? cli_nouns() : cli_verbs(noun);
    for (guint i = 0; words->pdata[i] != NULL; i++) {
        const char *word = words->pdata[i];
        if (strchr(word, ' ') != NULL)
            continue; /* its second word comes next */
        const struct cli_command *opcode = noun != NULL ? cli_command_find(noun, word) : NULL;
        const struct command *command = noun != NULL ? cli_find_command(noun, word) : NULL;
        offer(completion, word,
              noun == NULL      ? help_noun_doc(word)
              : opcode != NULL  ? cli_command_doc(opcode)
              : command != NULL ? command->doc
                                : "");
    }
}

/* The second words of verbs of two, directly behind the first. */
static void offer_long_verbs(const struct completion *completion, const char *noun,
                             const char *verb)
{
    g_autoptr(GPtrArray) verbs = cli_verbs(noun);
    size_t length = strlen(verb);
    for (guint i = 0; verbs->pdata[i] != NULL; i++) {
        const char *other = verbs->pdata[i];
        if (strncmp(other, verb, length) != 0 || other[length] != ' ')
            continue;
        const struct cli_command *opcode = cli_command_find(noun, other);
        const struct command *command = cli_find_command(noun, other);
        offer(completion, other + length + 1,
              opcode != NULL ? cli_command_doc(opcode) : command->doc);
    }
}

/* `=` alone is a word to bash: `--memory = 5`. */
static int drop_equals(int argc, char **argv)
{
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "=") != 0)
            argv[kept++] = argv[i];
        else if (i + 1 == argc)
            argv[kept++] = (char *)"";
    }
    return kept;
}

void cli_complete(struct cli *cli, int argc, char **argv)
{
    argc = drop_equals(argc, argv);
    cli->patience_ms = COMPLETE_WAIT_MS;
    struct completion completion = {cli, argc > 0 ? argv[argc - 1] : "", ""};
    const char *noun = argc > 1 ? argv[0] : NULL;
    const struct command *alone = noun != NULL ? cli_find_command(noun, NULL) : NULL;
    g_autofree char *long_verb = argc > 3 ? cli_long_verb(noun, argc - 2, argv + 1) : NULL;
    const char *verb = long_verb != NULL ? long_verb : argc > 2 ? argv[1] : NULL;
    int words = long_verb != NULL ? 3 : 2;
    if (completion.begin[0] == '-')
        offer_general(&completion);
    if (argc == 3)
        offer_long_verbs(&completion, noun, verb);
    if (alone != NULL) {
        complete_command(&completion, alone, argc - 1, argv + 1);
    } else if (verb == NULL) {
        complete_head(&completion, noun);
    } else if (cli_command_find(noun, verb) != NULL) {
        complete_opcode(&completion, cli_command_find(noun, verb), argc - words, argv + words);
    } else if (cli_find_command(noun, verb) != NULL) {
        complete_command(&completion, cli_find_command(noun, verb), argc - words, argv + words);
    }
}

/* --- the scripts --- */

int cli_completion_bash(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "completion bash", error))
        return -1;
    printf("# bash completion of fettle; made by `fettle completion bash`\n"
           "_fettle()\n"
           "{\n"
           "    local IFS=$'\\n'\n"
           "    COMPREPLY=($(\"${COMP_WORDS[0]}\" --complete "
           "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null | cut -f1))\n"
           "}\n"
           "complete -F _fettle fettle\n");
    return 0;
}

int cli_completion_zsh(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "completion zsh", error))
        return -1;
    printf("#compdef fettle\n"
           "# zsh completion of fettle; made by `fettle completion zsh`\n"
           "_fettle()\n"
           "{\n"
           "    local line\n"
           "    local -a found\n"
           "    for line in ${(f)\"$(\"${words[1]}\" --complete \"${(@)words[2,CURRENT]}\" "
           "2>/dev/null)\"}; do\n"
           "        found+=(\"${${line%%%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
           "    done\n"
           "    _describe 'fettle' found\n"
           "}\n"
           "_fettle \"$@\"\n");
    return 0;
}
