/* The one line that says what is now true; see cli.h. */
#include "cli/cli.h"
#include "proto/cli/cli_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cli_note(const struct cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_string_vprintf(cli->said, format, args);
    va_end(args);
}

/* The line alone does not name the job that has done it. */
static void note_said(const struct cli *cli, const json_t *object, const char *text)
{
    const json_t *job = json_object_get(object, "job");
    const char *status = json_string_value(json_object_get(object, "status"));
    if (json_is_integer(job) && g_strcmp0(status, "success") == 0 &&
        !g_str_has_prefix(text, "Job "))
        cli_note(cli, "Job %" JSON_INTEGER_FORMAT " has succeeded: %s", json_integer_value(job),
                 text);
    else
        cli_note(cli, "%s", text);
}

void cli_say(const struct cli *cli, json_t *object, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    json_autoptr document = object != NULL ? object : json_object();
    note_said(cli, document, text);
    if (!cli->json) {
        printf("%s\n", text);
        return;
    }
    json_object_set_new(document, "message", json_string(text));
    cli_print_json(document);
}

static char *field_text(const json_t *opcode, const char *name)
{
    const json_t *value = json_object_get(opcode, name);
    if (json_is_boolean(value))
        return g_strdup(json_is_true(value) ? "true" : "false");
    if (json_is_real(value))
        return g_strdup_printf("%g", json_real_value(value));
    json_autoptr cell = value != NULL ? json_make("[iO]", 0, value) : NULL;
    return cell != NULL ? cli_cell_text(NULL, name, cell) : g_strdup("");
}

static bool holds(const struct cli_done_case *done, const json_t *opcode)
{
    g_autofree char *text = field_text(opcode, done->field);
    return *done->value == '\0' ? *text != '\0' : strcmp(text, done->value) == 0;
}

/* The sentence of its command (proto/cli.def). */
static const char *sentence_of(const json_t *opcode)
{
    const char *op_id = json_string_value(json_object_get(opcode, "OP_ID"));
    const struct cli_command *command = cli_command_of(op_id);
    g_assert(command != NULL); /* whoever submits is one */
    for (const struct cli_done_case *done = command->done_if; done->field != NULL; done++)
        if (holds(done, opcode))
            return done->sentence;
    return command->done;
}

/* --- asked of the cluster --- */

/* The row of an object by name or UUID; NULL if it is not there, or nobody answers. */
static json_t *ask_row(struct cli *cli, const char *what, const char *name,
                       const char *const *fields)
{
    json_autoptr rows =
        cli_query(cli, what, fields,
                  json_make("[s[sss][sss]]", "|", "=", "name", name, "=", "uuid", name), NULL);
    return json_incref(json_array_get(rows, 0));
}

/* "Instance web1 runs on node2; its replica on node3 is in-sync" */
static char *instance_now(struct cli *cli, const json_t *opcode)
{
    static const char *const fields[] = {"name",          "status",     "pnode", "snodes",
                                         "replica.state", "disk.count", NULL};
    g_autofree char *name = field_text(opcode, "instance_name");
    json_autoptr row = ask_row(cli, "instance", name, fields);
    if (row == NULL)
        return g_strdup_printf("Instance %s: done", name);
    const char *status = cli_cell_string(row, 1), *replica = cli_cell_string(row, 4);
    const char *node = cli_cell_string(row, 2);
    GString *text = g_string_new(NULL);
    if (strcmp(status, "running") == 0)
        g_string_printf(text, "Instance %s runs on %s", cli_cell_string(row, 0), node);
    else if (strcmp(status, "ADMIN_down") == 0 && json_integer_value(cli_cell_value(row, 5)) == 0)
        g_string_printf(text, "Instance %s is stopped", cli_cell_string(row, 0));
    else if (strcmp(status, "ADMIN_down") == 0)
        g_string_printf(text, "Instance %s is stopped; its disks are on %s",
                        cli_cell_string(row, 0), node);
    else
        g_string_printf(text, "Instance %s on %s is %s", cli_cell_string(row, 0), node, status);
    const char *second = json_string_value(json_array_get(cli_cell_value(row, 3), 0));
    if (second != NULL)
        g_string_append_printf(text, "; its replica on %s is %s", second, replica);
    return g_string_free(text, FALSE);
}

/* "it has 2 primary and 1 secondary instances" */
static char *node_now(struct cli *cli, const json_t *opcode)
{
    static const char *const fields[] = {"pinst_cnt", "sinst_cnt", NULL};
    g_autofree char *name = field_text(opcode, "node_name");
    json_autoptr row = ask_row(cli, "node", name, fields);
    if (row == NULL)
        return g_strdup("done");
    json_int_t primary = json_integer_value(cli_cell_value(row, 0));
    json_int_t secondary = json_integer_value(cli_cell_value(row, 1));
    if (primary == 0 && secondary == 0)
        return g_strdup("it has no instances and no replicas");
    return g_strdup_printf("it has %d primary and %d secondary instances", (int)primary,
                           (int)secondary);
}

/* --- putting it together --- */

static char *fill_in(struct cli *cli, const json_t *opcode, const char *name)
{
    if (strcmp(name, "@instance") == 0)
        return instance_now(cli, opcode);
    if (strcmp(name, "@node") == 0)
        return node_now(cli, opcode);
    return field_text(opcode, name);
}

char *cli_done_text(struct cli *cli, const json_t *opcode)
{
    if (json_is_true(json_object_get(opcode, "dry_run")))
        return g_strdup("Checked only, nothing was changed: it could be done now.");
    GString *text = g_string_new(NULL);
    const char *rest = sentence_of(opcode), *open, *close;
    while ((open = strchr(rest, '{')) != NULL && (close = strchr(open, '}')) != NULL) {
        g_autofree char *name = g_strndup(open + 1, (size_t)(close - open - 1));
        g_autofree char *value = fill_in(cli, opcode, name);
        g_string_append_len(text, rest, open - rest);
        g_string_append(text, value);
        rest = close + 1;
    }
    g_string_append(text, rest);
    return g_string_free(text, FALSE);
}
