/*
 * The `fettle` command: `fettle [general options] NOUN VERB [arguments]`. Commands that are opcodes
 * come from the tables (proto/cli.def); the others are rows of the parts below.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "proto/cli_table.h"

static const struct command *const parts[] = {cluster_commands, query_commands, job_commands,
                                              why_commands,     lab_commands,   node_commands};

static void print_commands(const char *noun)
{
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        for (const struct command *command = parts[i]; command->noun != NULL; command++) {
            if (noun != NULL && strcmp(noun, command->noun) != 0)
                continue;
            if (command->verb != NULL && cli_command_find(command->noun, command->verb) != NULL)
                continue; /* it comes with the opcodes */
            g_autofree char *words =
                g_strdup_printf("%s%s%s", command->noun, command->verb != NULL ? " " : "",
                                command->verb != NULL ? command->verb : "");
            printf("  %-24s %s\n", words, command->doc);
        }
    cli_print_opcode_commands(noun);
}

/* Every noun once, in the order of the tables. */
static GPtrArray *all_nouns(void)
{
    GPtrArray *nouns = g_ptr_array_new();
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        for (const struct command *command = parts[i]; command->noun != NULL; command++)
            if (!g_ptr_array_find_with_equal_func(nouns, command->noun, g_str_equal, NULL))
                g_ptr_array_add(nouns, (char *)command->noun);
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++)
        if (!g_ptr_array_find_with_equal_func(nouns, table[i].noun, g_str_equal, NULL))
            g_ptr_array_add(nouns, (char *)table[i].noun);
    return nouns;
}

static void print_help(const char *noun)
{
    printf("Usage: fettle [--root DIR] [--json] [-o FIELD,…] [--no-headers] [--separator SEP] NOUN "
           "VERB …\n\n");
    g_autoptr(GPtrArray) nouns = all_nouns();
    for (guint i = 0; i < nouns->len; i++)
        if (noun == NULL || strcmp(noun, nouns->pdata[i]) == 0)
            print_commands(nouns->pdata[i]);
    printf("\n  --root DIR         Folder of the node (also FETTLE_ROOT); / by default.\n"
           "  --json             Print JSON instead of tables.\n"
           "  -o FIELD,…         Choose fields; -o +FIELD,… adds to the usual ones.\n"
           "  --no-headers       Leave out the first line of tables.\n"
           "  --separator SEP    Separate fields by SEP instead of aligning them.\n"
           "  --help             After NOUN VERB: the flags of that command.\n"
           "  --version          Print the version.\n");
}

static bool is_noun(const char *word)
{
    g_autoptr(GPtrArray) nouns = all_nouns();
    return g_ptr_array_find_with_equal_func(nouns, word, g_str_equal, NULL);
}

static const struct command *find_command(const char *noun, const char *verb)
{
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        for (const struct command *command = parts[i]; command->noun != NULL; command++)
            if (strcmp(command->noun, noun) == 0 &&
                (command->verb == NULL || (verb != NULL && strcmp(command->verb, verb) == 0)))
                return command;
    return NULL;
}

static bool take_general(struct cli *cli, int *argc, char **argv, GError **error)
{
    g_autoptr(GError) bad = NULL;
    cli->json = cli_take_flag(argc, argv, "--json");
    cli->headers = !cli_take_flag(argc, argv, "--no-headers");
    cli->root = g_strdup(cli_take_option(argc, argv, "--root", &bad));
    if (bad == NULL)
        cli->separator = cli_take_option(argc, argv, "--separator", &bad);
    if (bad == NULL)
        cli->fields = cli_take_option(argc, argv, "-o", &bad);
    if (bad == NULL && cli->fields == NULL)
        cli->fields = cli_take_option(argc, argv, "--output", &bad);
    if (bad == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

static int run(struct cli *cli, int argc, char **argv, GError **error)
{
    const char *noun = argv[0], *verb = argc > 1 ? argv[1] : NULL;
    const struct command *command = find_command(noun, verb);
    if (command != NULL) {
        int words = command->verb != NULL ? 2 : 1;
        bool opcode_help = verb != NULL && cli_command_find(noun, verb) != NULL;
        if (!opcode_help && cli_take_flag(&argc, argv, "--help")) {
            printf("Usage: fettle %s%s%s%s%s\n\n%s\n", noun, command->verb != NULL ? " " : "",
                   command->verb != NULL ? command->verb : "", *command->usage ? " " : "",
                   command->usage, command->doc);
            if (g_strcmp0(verb, "list") == 0 || g_strcmp0(verb, "info") == 0)
                cli_print_fields(noun);
            return 0;
        }
        return command->run(cli, argc - words, argv + words, error);
    }
    if (verb != NULL) {
        int code = cli_run_opcode(cli, noun, verb, argc - 2, argv + 2, error);
        if (code != -2)
            return code;
        if (strcmp(verb, "--help") == 0 && is_noun(noun)) {
            print_help(noun);
            return 0;
        }
    }
    fettle_set_error(error, WRONG_INPUT, "there is no command \"%s%s%s\"; see fettle %s%s--help",
                     noun, verb != NULL ? " " : "", verb != NULL ? verb : "",
                     is_noun(noun) ? noun : "", is_noun(noun) ? " " : "");
    return -1;
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    g_autoptr(GError) error = NULL;
    int code = -1;
    argc--;
    argv++;
    if (take_general(&cli, &argc, argv, &error)) {
        if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "help") == 0) {
            print_help(NULL);
            code = argc == 0 ? 2 : 0;
        } else if (strcmp(argv[0], "--version") == 0) {
            printf("fettle %s\n", FETTLE_VERSION);
            code = 0;
        } else {
            code = run(&cli, argc, argv, &error);
        }
    }
    if (code < 0) {
        fprintf(stderr, "fettle: %s\n", error != NULL ? error->message : "failed without a reason");
        code = fettle_error_exit_code(error);
    }
    cli_disconnect(&cli);
    g_free(cli.root);
    return code;
}
