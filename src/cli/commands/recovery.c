/* `fettle recovery`: tasks that were left behind, and what is in ERROR (docs/guide/recovery.md). */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/info.h"
#include "cli/commands/list.h"
#include "cli/commands/recovery_findings.h"
#include "cli/commands/recovery_plan.h"

static int recovery_list(struct cli *cli, int argc, char **argv, GError **error)
{
    bool all;
    if (!cli_take_switch(&argc, argv, "--all", &all, error))
        return -1;
    json_t *stuck = all ? NULL : json_make("[ssb]", "=", "stuck", 1);
    return cli_list(cli, "recovery", "list", "task", stuck, argc, argv, error);
}

/* --- show --- */

static const char *const show_fields[] = {
    "subject_kind", "subject_name", "task",     "since",       "owner", "owner_state", "looks",
    "why",          "rule",         "evidence", "error_since", "next",  NULL};

static void print_stuck(const json_t *cells, const char *owner_why)
{
    g_autofree char *since = cli_time_text(info_number(cells, "since"));
    g_autofree char *error_since = cli_time_text(info_number(cells, "error_since"));
    const char *rule = info_string(cells, "rule"), *why = info_string(cells, "why");
    bool error = info_value(cells, "error_since") != NULL;
    bool job = info_value(cells, "owner") != NULL;
    printf("%s %s\n", recovery_kind_text(info_string(cells, "subject_kind")),
           info_string(cells, "subject_name"));
    if (*info_string(cells, "task") != '\0' && !job)
        info_line("Task", "%s", info_string(cells, "task"));
    else if (*info_string(cells, "task") != '\0')
        info_line("Task", "%s, set by job %" G_GINT64_FORMAT " at %s", info_string(cells, "task"),
                  info_number(cells, "owner"), since);
    info_line(job ? "That job" : "That work", "%s%s%s", info_string(cells, "owner_state"),
              *owner_why != '\0' ? ": " : "", owner_why);
    if (error)
        info_line("ERROR", "since %s: %s%s%s%s", error_since, why, *rule != '\0' ? " (" : "", rule,
                  *rule != '\0' ? ")" : "");
    else if (info_number(cells, "looks") > 0)
        info_line("Looks", "%" G_GINT64_FORMAT " failed: %s", info_number(cells, "looks"), why);
    recovery_print_lines("Seen then", info_value(cells, "evidence"));
}

static json_t *cells_of(const json_t *row)
{
    json_t *cells = json_object();
    for (size_t i = 0; show_fields[i] != NULL; i++)
        json_object_set(cells, show_fields[i], json_array_get(row, i));
    return cells;
}

/* What is on record of it; NULL with an error, also if nothing is any more. */
static json_t *stuck_row(struct cli *cli, const json_t *planned, char **named, GError **error)
{
    const char *kind = named[0], *name = named[1];
    json_t *subject = json_object_get(planned, "subject");
    json_autoptr rows = planned == NULL
                            ? json_array()
                            : cli_query(cli, "task", show_fields,
                                        json_make("[ssO]", "=", "subject", subject), error);
    if (rows != NULL && json_array_size(rows) == 0)
        fettle_set_error(error, WRONG_STATE,
                         "%s \"%s\": it was settled just now; see: fettle why %s%s%s", kind, name,
                         strcmp(kind, "instance") == 0 ? "" : kind,
                         strcmp(kind, "instance") == 0 ? "" : " ", name);
    return json_incref(json_array_get(rows, 0));
}

/* The nodes are asked afresh: the record tells what the last look has found. */
static int recovery_show(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!recovery_is_subject("show", argc, argv, error))
        return -1;
    json_autoptr answer = recovery_ask(cli, argv, false, error);
    json_t *planned = json_array_get(json_object_get(answer, "rows"), 0);
    json_autoptr row = answer != NULL ? stuck_row(cli, planned, argv, error) : NULL;
    if (row == NULL)
        return -1;
    json_autoptr rows = json_make("[O]", row);
    json_autoptr objects = cli_rows_as_objects(show_fields, rows);
    json_t *object = json_array_get(objects, 0);
    json_object_set(object, "plan", planned);
    json_object_set(object, "notes", json_object_get(answer, "notes"));
    if (cli->json) {
        cli_print_json(object);
        return 0;
    }
    json_autoptr cells = cells_of(row);
    const char *owner_why = json_string_value(json_object_get(planned, "owner_why"));
    print_stuck(cells, owner_why != NULL ? owner_why : "");
    recovery_print_outcome(answer);
    info_print_records(cli, "event", "level", "fettle event list",
                       info_string(cells, "subject_name"));
    return 0;
}

/* --- the rest --- */

static int recovery_retry(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!recovery_is_subject("retry", argc, argv, error))
        return -1;
    json_autoptr done = cli_call(cli, "RetryRecovery", json_make("[ss]", argv[0], argv[1]), error);
    if (done == NULL)
        return -1;
    cli_say(cli, json_make("{ss ss}", "kind", argv[0], "name", argv[1]),
            "%s %s is judged anew at the next pass; see: fettle recovery show %s %s",
            recovery_kind_text(argv[0]), argv[1], argv[0], argv[1]);
    return 0;
}

const struct command recovery_commands[] = {
    {"recovery", "list", "[--all] [--filter FILTER] [--sort FIELD,…] [--limit N] [NAME…]",
     "List tasks that were left behind, and what is in ERROR: whose it was, how it is with that "
     "job, and when it is looked at next. --all: also what is under way.",
     recovery_list},
    {"recovery", "plan", recovery_any_subject,
     "Tell what recovery would do next with each task that was left behind, or with one; its nodes "
     "are asked, and nothing is changed.",
     recovery_plan},
    {"recovery", "show", recovery_subject,
     "Show what is stuck: its task, why its owner counts as dead, what its nodes show now, what "
     "comes next.",
     recovery_show},
    {"recovery", "collect", recovery_subject,
     "Show what each node has of it right now, with a task or without one. Nothing is changed.",
     recovery_collect},
    {"recovery", "retry", recovery_subject,
     "Have it judged anew at once, also from ERROR; refused while the owner of the task lives.",
     recovery_retry},
    {"recovery", "findings", "",
     "List what nodes have that no record knows: guests, images, processes of QEMU, files, "
     "bridges. "
     "It is left alone.",
     recovery_findings},
    {0},
};
