/* See cli_table.h: `fettle NOUN VERB --help` of a command that is an opcode. */
#include "proto/cli/cli_args.h"

#include "base/text.h"
#include "base/time_text.h"
#include "proto/record_private.h"

#include <string.h>

/* The default as it can be typed; NULL: what is left out asks for nothing, or is said by the doc.
 */
static char *default_of(const struct field *field)
{
    enum record_time time = record_time(field);
    static const char *const nothing[] = {"-1", "0", "false", NULL};
    gint64 number;
    if (field->def == NULL || g_strv_contains(nothing, field->def))
        return NULL;
    if (strcmp(field->def, "true") == 0)
        return g_strdup("yes");
    if (time == RECORD_TIME_NONE ||
        !g_ascii_string_to_signed(field->def, 10, 0, G_MAXINT32, &number, NULL))
        return g_strdup(field->def);
    return time_text_of(number * (time == RECORD_TIME_MS ? 1 : 1000));
}

/* What is to be known of an argument beyond its sentence. */
static char *remarks(const struct cli_arg *arg)
{
    GString *text = g_string_new(NULL);
    g_autofree char *def = default_of(arg->field);
    if (arg->field->type == FIELD_TYPE_ENUM) {
        g_autofree char *list = g_strjoinv(", ", arg->words);
        g_string_append_printf(text, " One of: %s.", list);
    }
    if (arg->many)
        g_string_append(text, " Several are a job each; patterns as web* too.");
    else if (cli_arg_repeats(arg))
        g_string_append(text, arg->word ? " One or more." : " May be repeated.");
    if (def != NULL)
        g_string_append_printf(text, " Default: %s.", def);
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

void cli_help_row(GString *text, const char *name, int column, const char *doc, int width)
{
    int letters = (int)g_utf8_strlen(name, -1), indent = column + 3;
    g_string_append(text, "  ");
    text_fold(text, name, 2, 6, width);
    if (letters > column)
        g_string_append_printf(text, "\n%*s", indent, "");
    else
        g_string_append_printf(text, "%*s", column - letters + 1, "");
    text_fold(text, doc, indent, indent, width);
    g_string_append_c(text, '\n');
}

static void help_line(GString *text, const struct cli_arg *arg, int width)
{
    g_autofree char *name = shown_name(arg);
    g_autofree char *more = remarks(arg);
    g_autofree char *told = record_doc(arg->field->doc);
    g_autofree char *doc = g_strconcat(told, more, NULL);
    cli_help_row(text, name, CLI_HELP_COLUMN, doc, width);
}

/* Of what is only taken so that clients of Ganeti can give it nobody needs to hear. */
static bool is_told(const struct cli_arg *arg)
{
    return !g_str_has_prefix(arg->field->doc, "Accepted for Ganeti's clients");
}

static void help_group(GString *text, const char *title, const GPtrArray *args, bool common,
                       int width)
{
    bool any = false;
    for (guint i = 0; i < args->len; i++) {
        const struct cli_arg *arg = args->pdata[i];
        if (arg->word || arg->common != common || !is_told(arg))
            continue;
        if (!any)
            g_string_append_printf(text, "\n%s\n", title);
        any = true;
        help_line(text, arg, width);
    }
}

/* How what shapes stand for is typed, of those that the command has. */
static void help_shapes(GString *text, const GPtrArray *args, int width)
{
    static const struct {
        const char *shape, *told;
    } shapes[] = {{"SIZE", "SIZE is in MiB or has a unit: 512M, 10G, 1T."},
                  {"TIME", "TIME has a unit: 90s, 10m, 2h, 3d."},
                  {"WHEN", "WHEN is a time from now on, as 2h or 3d, or a date, as 2026-12-01 or "
                           "\"2026-12-01 08:00\"."}};
    for (size_t n = 0; n < G_N_ELEMENTS(shapes); n++) {
        bool has = false;
        for (guint i = 0; i < args->len; i++)
            has = has || strstr(((const struct cli_arg *)args->pdata[i])->shape, shapes[n].shape);
        if (!has)
            continue;
        g_string_append_c(text, '\n');
        text_fold(text, shapes[n].told, 0, 0, width);
        g_string_append_c(text, '\n');
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
                                   arg->rest || arg->many ? "…" : "");
    }
    g_string_append(text, "[flags]");
    return g_string_free(text, FALSE);
}

char *cli_command_help(const struct cli_command *command, int width)
{
    g_autoptr(GPtrArray) args = cli_args(command);
    g_autofree char *usage = cli_command_usage(command);
    GString *text = g_string_new(NULL);
    g_autofree char *doc = record_doc(cli_command_doc(command));
    g_autofree char *line =
        g_strdup_printf("Usage: fettle %s %s %s", command->noun, command->verb, usage);
    text_fold(text, line, 0, 7, width);
    g_string_append(text, "\n\n");
    text_fold(text, doc, 0, 0, width);
    g_string_append_c(text, '\n');
    for (guint i = 0; i < args->len && ((const struct cli_arg *)args->pdata[i])->word; i++) {
        if (i == 0)
            g_string_append_c(text, '\n');
        help_line(text, args->pdata[i], width);
    }
    help_group(text, "Flags:", args, false, width);
    help_shapes(text, args, width);
    help_group(text, "Flags of every job:", args, true, width);
    return g_string_free(text, FALSE);
}
