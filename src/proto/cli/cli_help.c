/* See cli_table.h: `fettle NOUN VERB --help` of a command that is an opcode. */
#include "proto/cli/cli_args.h"

#include <string.h>

#define NAME_COLUMN 28 /* letters of a name before its sentence */

/* What is to be known of an argument beyond its sentence. */
static char *remarks(const struct cli_arg *arg)
{
    GString *text = g_string_new(NULL);
    if (arg->field->type == FIELD_TYPE_ENUM) {
        g_autofree char *list = g_strjoinv(", ", arg->words);
        g_string_append_printf(text, " One of: %s.", list);
    }
    if (cli_arg_repeats(arg))
        g_string_append(text, arg->word ? " One or more." : " May be repeated.");
    if (arg->field->def != NULL)
        g_string_append_printf(text, " Default: %s.", arg->field->def);
    else if (arg->field->required && !arg->word)
        g_string_append(text, " Required.");
    return g_string_free(text, FALSE);
}

static char *shown_name(const struct cli_arg *arg)
{
    if (arg->word)
        return g_strdup(arg->name);
    if (arg->field->type == FIELD_TYPE_BOOL)
        return g_strdup_printf("--[no-]%s", arg->name + 2);
    return g_strdup_printf("%s %s", arg->name, arg->shape);
}

static void help_line(GString *text, const struct cli_arg *arg)
{
    g_autofree char *name = shown_name(arg);
    g_autofree char *more = remarks(arg);
    if (strlen(name) <= NAME_COLUMN)
        g_string_append_printf(text, "  %-*s %s%s\n", NAME_COLUMN, name, arg->field->doc, more);
    else
        g_string_append_printf(text, "  %s\n  %-*s %s%s\n", name, NAME_COLUMN, "", arg->field->doc,
                               more);
}

static void help_group(GString *text, const char *title, const GPtrArray *args, bool common)
{
    bool any = false;
    for (guint i = 0; i < args->len; i++) {
        const struct cli_arg *arg = args->pdata[i];
        if (arg->word || arg->common != common)
            continue;
        if (!any)
            g_string_append_printf(text, "\n%s\n", title);
        any = true;
        help_line(text, arg);
    }
}

char *cli_command_usage(const struct cli_command *command)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < args->len; i++) {
        const struct cli_arg *arg = args->pdata[i];
        if (arg->word)
            g_string_append_printf(text, arg->unless_field != NULL ? "[%s]%s " : "%s%s ", arg->name,
                                   arg->rest ? "..." : "");
    }
    g_string_append(text, "[flags]");
    return g_string_free(text, FALSE);
}

char *cli_command_help(const struct cli_command *command)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    g_autofree char *usage = cli_command_usage(command);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "Usage: fettle %s %s %s\n\n%s\n", command->noun, command->verb,
                           usage, cli_command_doc(command));
    for (guint i = 0; i < args->len && ((const struct cli_arg *)args->pdata[i])->word; i++) {
        if (i == 0)
            g_string_append_c(text, '\n');
        help_line(text, args->pdata[i]);
    }
    help_group(text, "Flags:", args, false);
    help_group(text, "Flags of every job:", args, true);
    return g_string_free(text, FALSE);
}
