/* Commands that are opcodes: words and flags by the tables, submitted as a job and followed. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "proto/cli_table.h"

static int submit(struct cli *cli, json_t *opcode, bool submit_only, GError **error)
{
    json_autoptr answer = cli_call(cli, "SubmitJob", json_make("[[o]]", opcode), error);
    if (answer == NULL)
        return -1;
    guint64 job = (guint64)json_integer_value(answer);
    if (submit_only) {
        if (cli->json)
            printf("{\"job\": %" G_GUINT64_FORMAT "}\n", job);
        else
            printf("job %" G_GUINT64_FORMAT
                   " submitted; follow it with: fettle job wait %" G_GUINT64_FORMAT "\n",
                   job, job);
        return 0;
    }
    return cli_follow_job(cli, job, cli->json, error);
}

int cli_run_opcode(struct cli *cli, const char *noun, const char *verb, int argc, char **argv,
                   GError **error)
{
    const struct cli_command *command = cli_command_find(noun, verb);
    if (command == NULL)
        return -2;
    if (cli_take_flag(&argc, argv, "--help")) {
        g_autofree char *help = cli_command_help(command);
        printf("%s"
               "  --submit                     Print the job's id and do not wait for it.\n",
               help);
        return 0;
    }
    bool submit_only = cli_take_flag(&argc, argv, "--submit");
    argv[argc] = NULL;
    json_t *opcode = cli_command_parse(command, (const char *const *)argv, error);
    if (opcode == NULL)
        return -1;
    return submit(cli, opcode, submit_only, error);
}

void cli_print_opcode_commands(const char *noun)
{
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (noun != NULL && strcmp(noun, table[i].noun) != 0)
            continue;
        g_autofree char *words = g_strdup_printf("%s %s", table[i].noun, table[i].verb);
        printf("  %-24s %s\n", words, cli_command_doc(&table[i]));
    }
}
