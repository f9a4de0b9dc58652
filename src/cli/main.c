/*
 * The `fettle` command: `fettle [general options] NOUN VERB [arguments]`. Commands that are opcodes
 * come from the tables (proto/cli.def); the others are rows of the parts below.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "proto/cli_table.h"

static const struct command *const parts[] = {cluster_commands, query_commands, job_commands,
                                              why_commands, lab_commands};

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

static void print_help(const char *noun)
{
    printf("usage: fettle [--root DIR] [--json] [-o FIELD,…] [--no-headers] [--separator SEP] NOUN "
           "VERB …\n\n");
    print_commands(noun);
    printf("\n  --root DIR         Folder of the node (also FETTLE_ROOT); / by default.\n"
           "  --json             Print JSON instead of tables.\n"
           "  -o FIELD,…         Choose fields; -o +FIELD,… adds to the usual ones.\n"
           "  --no-headers       Leave out the first line of tables.\n"
           "  --separator SEP    Separate fields by SEP instead of aligning them.\n"
           "  --help             After NOUN VERB: the flags of that command.\n"
           "  --version          Print the version.\n");
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
        bool opcode_help = strcmp(noun, "cluster") == 0 && g_strcmp0(verb, "init") == 0;
        if (!opcode_help && cli_take_flag(&argc, argv, "--help")) {
            printf("usage: fettle %s%s%s %s\n\n%s\n", noun, command->verb != NULL ? " " : "",
                   command->verb != NULL ? command->verb : "", command->usage, command->doc);
            return 0;
        }
        return command->run(cli, argc - words, argv + words, error);
    }
    if (verb != NULL) {
        int code = cli_run_opcode(cli, noun, verb, argc - 2, argv + 2, error);
        if (code != -2)
            return code;
        if (strcmp(verb, "--help") == 0) {
            print_help(noun);
            return 0;
        }
    }
    fettle_set_error(error, WRONG_INPUT, "there is no command \"%s%s%s\"; see fettle --help", noun,
                     verb != NULL ? " " : "", verb != NULL ? verb : "");
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
