/* A person's word before what cannot be undone; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/output.h"

/* What is lost; %s is the instance. */
static const struct loss {
    const char *op_id, *text;
} losses[] = {
    {"OP_INSTANCE_REMOVE", "Instance %s and all its disks will be removed, for good."},
    {"OP_INSTANCE_REINSTALL", "What is on the first disk of instance %s will be lost, for good."},
};

static const char *text_of_loss(const json_t *opcode)
{
    const char *op_id = json_string_value(json_object_get(opcode, "OP_ID"));
    for (size_t i = 0; i < G_N_ELEMENTS(losses); i++)
        if (strcmp(op_id, losses[i].op_id) == 0)
            return losses[i].text;
    return NULL;
}

/* What is typed then; "" at the end of the input. NULL: what was to be read before is lost, so
 * nobody is asked. */
static const char *ask(const char *question, const char *how, char *line, int size, GError **error)
{
    *line = '\0';
    if (!output_flush(error))
        return NULL;
    fprintf(stderr, "%s %s ", question, how);
    fflush(stderr);
    return fgets(line, size, stdin) != NULL ? g_strstrip(line) : "";
}

bool cli_has_typed(const char *question, const char *how, const char *word, GError **error)
{
    char line[256];
    const char *typed = ask(question, how, line, sizeof line, error);
    if (typed == NULL || strcmp(typed, word) == 0)
        return typed != NULL;
    fettle_set_error(error, CANCELED,
                     "that is not what was to be typed; nothing was done; --yes does not ask");
    return false;
}

bool cli_is_sure(const char *question, GError **error)
{
    char line[16];
    const char *typed = ask(question, "Go on? [y/N]", line, sizeof line, error);
    if (typed == NULL)
        return false;
    if (g_ascii_strcasecmp(typed, "y") == 0 || g_ascii_strcasecmp(typed, "yes") == 0)
        return true;
    fettle_set_error(error, CANCELED, "nothing was done; --yes does not ask");
    return false;
}

/* Whoever removes a disk means one number among several: the name is to be typed, and a script says
 * that it is sure. */
static bool may_lose_disks(const json_t *opcode, bool asks, GError **error)
{
    const char *name = json_string_value(json_object_get(opcode, "instance_name"));
    const json_t *list = json_object_get(opcode, "remove_disks");
    g_autoptr(GString) numbers = g_string_new(NULL);
    size_t i;
    const json_t *disk;
    json_array_foreach(list, i, disk) {
        bool last = g_strcmp0(json_string_value(disk), "-1") == 0;
        g_string_append_printf(numbers, "%s%s", i > 0 ? ", " : "",
                               last ? "the last one" : json_string_value(disk));
    }
    g_autofree char *question =
        g_strdup_printf("Instance %s loses disk%s %s and what is on %s, for good.", name,
                        json_array_size(list) == 1 ? "" : "s", numbers->str,
                        json_array_size(list) == 1 ? "it" : "them");
    if (asks)
        return cli_has_typed(question, "Type the name of the instance to go on:", name, error);
    fettle_set_error(error, WRONG_INPUT, "%s Nobody can be asked here: say --yes", question);
    return false;
}

bool cli_may_lose(const struct cli *cli, const json_t *opcode, GError **error)
{
    const char *name = json_string_value(json_object_get(opcode, "instance_name"));
    bool asks = !cli->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    if (json_is_true(json_object_get(opcode, "dry_run")))
        return true;
    if (json_array_size(json_object_get(opcode, "remove_disks")) > 0)
        return may_lose_disks(opcode, asks, error);
    const char *text = text_of_loss(opcode);
    if (!asks || text == NULL)
        return true;
    g_autoptr(GString) question = g_string_new(text);
    g_string_replace(question, "%s", name, 1);
    return cli_is_sure(question->str, error);
}

bool cli_may_lose_many(const struct cli *cli, const json_t *opcode, const GPtrArray *names,
                       bool pattern, GError **error)
{
    bool asks = !cli->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    bool disks = json_array_size(json_object_get(opcode, "remove_disks")) > 0;
    const char *text = disks ? "Disks of instance %s are lost, for good." : text_of_loss(opcode);
    if (text == NULL || json_is_true(json_object_get(opcode, "dry_run")))
        return true;
    g_autofree char *list = g_strjoinv(", ", (char **)names->pdata);
    g_autoptr(GString) question = g_string_new(text);
    g_string_replace(question, "instance %s", "each of %s", 1);
    g_string_replace(question, "Instance %s", "Each of %s", 1);
    g_string_replace(question, "%s", list, 1);
    if (asks)
        return cli_is_sure(question->str, error);
    if (!pattern && !disks)
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s Nobody can be asked here: say --yes", question->str);
    return false;
}
