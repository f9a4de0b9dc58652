/*
 * The `fettle` command: `fettle [general options] NOUN VERB [arguments]`. Which commands there are:
 * commands.c.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/did_you_mean.h"
#include "cli/foreign.h"
#include "cli/help.h"
#include "cli/nearest_object.h"
#include "io/output.h"
#include "proto/cli/cli_table.h"

/* --- what is wrong with a command line --- */

static bool is_noun(const char *word)
{
    g_autoptr(GPtrArray) nouns = cli_nouns();
    return g_strv_contains((const char *const *)nouns->pdata, word);
}

static bool take_units(struct cli *cli, int *argc, char **argv, GError **error)
{
    const char *units = cli_take_option(argc, argv, "--units", error);
    if (units == NULL)
        return error == NULL || *error == NULL;
    if (strlen(units) == 1 && strchr("mgth", *units) != NULL) {
        cli->units = *units;
        return true;
    }
    fettle_set_error(error, WRONG_INPUT, "--units: \"%s\" is none of m, g, t, h", units);
    return false;
}

static bool take_general(struct cli *cli, int *argc, char **argv, GError **error)
{
    g_autoptr(GError) bad = NULL;
    cli->json = cli_take_flag(argc, argv, "--json");
    cli->headers = !cli_take_flag(argc, argv, "--no-headers");
    cli->root = g_strdup(cli_take_option(argc, argv, "--root", &bad));
    if (bad == NULL)
        cli->separator = cli_take_option(argc, argv, "--separator", &bad);
    if (bad == NULL && take_units(cli, argc, argv, &bad))
        cli->fields = cli_take_option(argc, argv, "-o", &bad);
    if (bad == NULL && cli->fields == NULL)
        cli->fields = cli_take_option(argc, argv, "--output", &bad);
    if (bad == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

/* --- running --- */

static int run(struct cli *cli, int argc, char **argv, GError **error)
{
    g_autofree char *long_verb = cli_long_verb(argv[0], argc - 1, argv + 1);
    const char *noun = argv[0], *verb = long_verb != NULL ? long_verb : argc > 1 ? argv[1] : NULL;
    int verb_words = long_verb != NULL ? 2 : 1;
    const struct command *command = cli_find_command(noun, verb);
    if (command != NULL) {
        int words = command->verb != NULL ? 1 + verb_words : 1;
        bool opcode_help = verb != NULL && cli_command_find(noun, verb) != NULL;
        if (!opcode_help && cli_take_flag(&argc, argv, "--help")) {
            help_print_command(command);
            return 0;
        }
        return command->run(cli, argc - words, argv + words, error);
    }
    if (verb != NULL) {
        int words = 1 + verb_words;
        int code = cli_run_opcode(cli, noun, verb, argc - words, argv + words, error);
        if (code != -2)
            return code;
        if (strcmp(verb, "--help") == 0 && is_noun(noun)) {
            cli_print_help(noun);
            return 0;
        }
    }
    did_you_mean_set_error(noun, verb, error);
    return -1;
}

/* For a person, not for scripts: where the names are that exist. */
static void print_hint(const GError *error)
{
    static const char *const nouns[][2] = {
        {"instance \"", "instance"}, {"node \"", "node"},   {"network \"", "network"},
        {"nodegroup \"", "group"},   {"group \"", "group"}, {"service \"", "service"},
    };
    if (!fettle_error_is(error, UNKNOWN_ENTITY) || !isatty(STDERR_FILENO) ||
        strstr(error->message, "\" does not exist") == NULL)
        return;
    for (guint i = 0; i < G_N_ELEMENTS(nouns); i++)
        if (g_str_has_prefix(error->message, nouns[i][0]))
            fprintf(stderr, "What there is: fettle %s list\n", nouns[i][1]);
}

static void print_error(const struct cli *cli, const GError *error)
{
    const char *message = error != NULL ? error->message : "failed without a reason";
    if (!cli->json) {
        g_autofree char *shown = foreign_text(message);
        fprintf(stderr, "fettle: %s\n", shown);
        print_hint(error);
        return;
    }
    json_autoptr document =
        json_make("{s{ss ss si}}", "error", "code", fettle_error_name(error), "message", message,
                  "exit_code", fettle_error_exit_code(error));
    g_autofree char *text = foreign_json(json_to_text(document));
    fprintf(stderr, "%s\n", text);
}

static int run_line(struct cli *cli, int argc, char **argv, GError **error)
{
    if (argc > 0 && strcmp(argv[0], "--complete") == 0) {
        cli_complete(cli, argc - 1, argv + 1);
        return 0;
    }
    if (!take_general(cli, &argc, argv, error))
        return -1;
    if (argc == 0 && cli->json) {
        fettle_set_error(error, WRONG_INPUT, "no command is given; see fettle help");
        return -1;
    }
    if (argc == 0 || strcmp(argv[0], "--help") == 0) {
        cli_print_help(NULL);
        return argc == 0 ? 2 : 0;
    }
    if (strcmp(argv[0], "--version") == 0) {
        if (cli->json)
            printf("{\"version\": \"%s\"}\n", FETTLE_VERSION);
        else
            printf("fettle %s\n", FETTLE_VERSION);
        return 0;
    }
    return run(cli, argc, argv, error);
}

/* What the command has printed must have arrived, whatever it is; the exit code. A reader who has
 * seen enough needs no word, unless something was done that he has not heard of. */
static int finish(const struct cli *cli, int code, GError *failed)
{
    g_autoptr(GError) error = failed, lost = NULL;
    const char *said = cli->said->len > 0 ? cli->said->str : NULL;
    bool failed_itself = code < 0 && !fettle_error_is(error, OUTPUT);
    if (!output_end(said, &lost)) {
        if (said == NULL && !failed_itself)
            output_end_unread();
        if (failed_itself) {
            g_prefix_error(&error, "%s; ", lost->message);
        } else {
            g_clear_error(&error);
            error = g_steal_pointer(&lost);
        }
        code = -1;
    }
    if (code >= 0)
        return code;
    print_error(cli, error);
    return fettle_error_exit_code(error);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    output_begin("fettle");
    struct cli cli = {.headers = true, .said = g_string_new(NULL)};
    GError *error = NULL;
    int code = run_line(&cli, argc - 1, argv + 1, &error);
    nearest_object_add(&cli, error);
    code = finish(&cli, code, error);
    cli_disconnect(&cli);
    g_string_free(cli.said, TRUE);
    g_free(cli.root);
    g_free(cli.away);
    return code;
}
