/*
 * Every command there is, by noun and verb. Those that are opcodes come from the tables
 * (proto/cli.def); the others are rows of the parts below.
 */
#include "cli/cli.h"

#include <string.h>

#include "proto/cli/cli_table.h"

static const struct command *const parts[] = {
    cluster_commands,     failover_commands, flush_commands,         query_commands,
    info_commands,        verify_commands,   console_commands,       job_commands,
    job_verb_commands,    queue_commands,    why_commands,           lab_commands,
    node_commands,        repair_commands,   recovery_commands,      event_commands,
    plan_commands,        confd_commands,    engine_commands,        renew_keys_commands,
    export_commands,      import_commands,   backup_commands,        ganeti_commands,
    volume_commands,      snapshot_commands, volume_backup_commands, image_commands,
    volume_type_commands, cleanup_commands,  api_commands,           metrics_commands,
    rapi_commands,        webhook_commands,  help_commands,          NULL};

const struct command *const *cli_parts(void)
{
    return parts;
}

/* --- nouns and verbs --- */

static void add_once(GPtrArray *words, const char *word)
{
    if (word != NULL && !g_ptr_array_find_with_equal_func(words, word, g_str_equal, NULL))
        g_ptr_array_add(words, (char *)word);
}

GPtrArray *cli_nouns(void)
{
    GPtrArray *nouns = g_ptr_array_new();
    for (size_t i = 0; parts[i] != NULL && parts[i] != help_commands; i++)
        for (const struct command *command = parts[i]; command->noun != NULL; command++)
            add_once(nouns, command->noun);
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++)
        add_once(nouns, table[i].noun);
    for (const struct command *command = help_commands; command->noun != NULL; command++)
        add_once(nouns, command->noun);
    g_ptr_array_add(nouns, NULL);
    return nouns;
}

GPtrArray *cli_verbs(const char *noun)
{
    GPtrArray *verbs = g_ptr_array_new();
    for (size_t i = 0; parts[i] != NULL; i++)
        for (const struct command *command = parts[i]; command->noun != NULL; command++)
            if (strcmp(command->noun, noun) == 0)
                add_once(verbs, command->verb);
    size_t count;
    const struct cli_command *table = cli_command_table(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].noun, noun) == 0)
            add_once(verbs, table[i].verb);
    g_ptr_array_add(verbs, NULL);
    return verbs;
}

const struct command *cli_find_command(const char *noun, const char *verb)
{
    for (size_t i = 0; parts[i] != NULL; i++)
        for (const struct command *command = parts[i]; command->noun != NULL; command++)
            if (strcmp(command->noun, noun) == 0 &&
                (command->verb == NULL || (verb != NULL && strcmp(command->verb, verb) == 0)))
                return command;
    return NULL;
}

const char *cli_shown_resource(const struct command *command)
{
    static const struct {
        const char *noun, *verb, *what;
    } others[] = {{"recovery", "list", "task"},
                  {"lock", "waiters", "waiter"},
                  {"node", "invite --list", "invitation"},
                  {"storage-service", "list", "storage_service"},
                  {"volume-type", "list", "volume_type"}};
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (strcmp(others[i].noun, command->noun) == 0 &&
            g_strcmp0(others[i].verb, command->verb) == 0)
            return others[i].what;
    bool shows = g_strcmp0(command->verb, "list") == 0 || g_strcmp0(command->verb, "info") == 0;
    return shows ? command->noun : NULL;
}

char *cli_long_verb(const char *noun, int argc, char **argv)
{
    if (argc < 2)
        return NULL;
    g_autofree char *verb = g_strdup_printf("%s %s", argv[0], argv[1]);
    const struct command *command = cli_find_command(noun, verb);
    bool known = cli_command_find(noun, verb) != NULL || (command != NULL && command->verb != NULL);
    return known ? g_steal_pointer(&verb) : NULL;
}
