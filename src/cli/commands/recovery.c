/* `fettle recovery`: tasks that were left behind, and what is in ERROR (docs/guide/recovery.md). */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/info.h"
#include "cli/commands/list.h"
#include "cli/commands/recovery_findings.h"

#define SUBJECT_USAGE "instance INSTANCE"
#define EVENTS_SHOWN 3

static int recovery_list(struct cli *cli, int argc, char **argv, GError **error)
{
    bool all;
    if (!cli_take_switch(&argc, argv, "--all", &all, error))
        return -1;
    json_t *stuck = all ? NULL : json_make("[ssb]", "=", "stuck", 1);
    return cli_list(cli, "recovery", "list", "task", stuck, argc, argv, error);
}

/* The two words of a subject. */
static bool is_subject(const char *verb, int argc, char **argv, GError **error)
{
    g_autofree char *usage = g_strdup_printf("recovery %s " SUBJECT_USAGE, verb);
    if (!cli_expect(argc, argv, 2, usage, error))
        return false;
    if (strcmp(argv[0], "instance") == 0)
        return true;
    fettle_set_error(error, WRONG_INPUT, "\"%s\": must be instance; usage: fettle %s", argv[0],
                     usage);
    return false;
}

/* --- show --- */

static const char *const show_fields[] = {
    "subject_kind", "subject_name", "task",     "since",       "owner", "owner_state", "looks",
    "why",          "rule",         "evidence", "error_since", "next",  NULL};

/* When the last job about it ended; "" if none is known. Free with g_free(). */
static char *last_end(struct cli *cli, const char *name)
{
    json_autoptr rows =
        cli_query(cli, "job", (const char *const[]){"end_ts", NULL},
                  json_make("[s[sss][ss]]", "&", "=[]", "subjects", name, "?", "end_ts"), NULL);
    json_int_t last = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        last =
            MAX(last,
                json_integer_value(json_array_get(cli_cell_value(json_array_get(rows, i), 0), 0)));
    return last > 0 ? cli_time_text((gint64)last) : g_strdup("");
}

static void set_nothing(struct cli *cli, const char *name, GError **error)
{
    json_autoptr rows = cli_query(cli, "instance", (const char *const[]){"name", NULL},
                                  json_make("[sss]", "=", "name", name), error);
    if (rows == NULL)
        return;
    if (json_array_size(rows) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "instance \"%s\" does not exist", name);
        return;
    }
    g_autofree char *when = last_end(cli, name);
    fettle_set_error(error, WRONG_STATE, "instance \"%s\": nothing is stuck; %s%s", name,
                     *when != '\0' ? "its last task ended at " : "it has no task", when);
}

static void print_events(struct cli *cli, const char *name)
{
    static const char *const fields[] = {"at", "summary", NULL};
    json_autoptr rows =
        cli_query(cli, "event", fields, json_make("[sss]", "=", "subject_name", name), NULL);
    size_t count = json_array_size(rows);
    if (count > 0)
        printf("\nLast events (all: fettle event list %s)\n", name);
    for (size_t i = count > EVENTS_SHOWN ? count - EVENTS_SHOWN : 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i);
        g_autofree char *at = cli_time_text((gint64)json_number_value(cli_cell_value(row, 0)));
        printf("  %s  %s\n", at, cli_cell_string(row, 1));
    }
}

static void print_stuck(const json_t *cells)
{
    g_autofree char *since = cli_time_text(info_number(cells, "since"));
    g_autofree char *error_since = cli_time_text(info_number(cells, "error_since"));
    const char *rule = info_string(cells, "rule"), *why = info_string(cells, "why");
    bool error = info_value(cells, "error_since") != NULL;
    printf("Instance %s\n", info_string(cells, "subject_name"));
    if (*info_string(cells, "task") != '\0')
        info_line("Task", "%s, set by job %" G_GINT64_FORMAT " at %s", info_string(cells, "task"),
                  info_number(cells, "owner"), since);
    info_line("That job", "%s", info_string(cells, "owner_state"));
    if (error)
        info_line("ERROR", "since %s: %s%s%s%s", error_since, why, *rule != '\0' ? " (" : "", rule,
                  *rule != '\0' ? ")" : "");
    else if (info_number(cells, "looks") > 0)
        info_line("Looks", "%" G_GINT64_FORMAT " failed: %s", info_number(cells, "looks"), why);
    const json_t *evidence = info_value(cells, "evidence"), *line;
    size_t i;
    json_array_foreach(evidence, i, line)
        info_line(i == 0 ? "Seen" : "", "%s", json_string_value(line));
    info_line("Next", "%s", info_string(cells, "next"));
}

static json_t *cells_of(const json_t *row)
{
    json_t *cells = json_object();
    for (size_t i = 0; show_fields[i] != NULL; i++)
        json_object_set(cells, show_fields[i], json_array_get(row, i));
    return cells;
}

static int recovery_show(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!is_subject("show", argc, argv, error))
        return -1;
    json_autoptr rows = cli_query(cli, "task", show_fields,
                                  json_make("[sss]", "=", "subject_name", argv[1]), error);
    if (rows == NULL)
        return -1;
    if (json_array_size(rows) == 0) {
        set_nothing(cli, argv[1], error);
        return -1;
    }
    if (cli->json) {
        json_autoptr objects = cli_rows_as_objects(show_fields, rows);
        cli_print_json(json_array_get(objects, 0));
        return 0;
    }
    json_autoptr cells = cells_of(json_array_get(rows, 0));
    print_stuck(cells);
    print_events(cli, argv[1]);
    return 0;
}

/* --- the rest --- */

static int recovery_retry(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!is_subject("retry", argc, argv, error))
        return -1;
    json_autoptr done = cli_call(cli, "RetryRecovery", json_make("[ss]", argv[0], argv[1]), error);
    if (done == NULL)
        return -1;
    cli_say(cli, json_make("{ss ss}", "kind", argv[0], "name", argv[1]),
            "Instance %s is judged anew at the next pass; see: fettle recovery show instance %s",
            argv[1], argv[1]);
    return 0;
}

const struct command recovery_commands[] = {
    {"recovery", "list", "[--all] [--filter FILTER] [--sort FIELD,…] [--limit N] [INSTANCE…]",
     "List tasks that were left behind, and what is in ERROR: whose it was, how it is with that "
     "job, and when it is looked at next. --all: also what is under way.",
     recovery_list},
    {"recovery", "show", SUBJECT_USAGE,
     "Show what is stuck: its task, its owner, what was seen, what comes next.", recovery_show},
    {"recovery", "retry", SUBJECT_USAGE,
     "Have it judged anew at once, also from ERROR; refused while the owner of the task lives.",
     recovery_retry},
    {"recovery", "findings", "",
     "List what nodes have that no record knows: guests, images, processes of QEMU, files, "
     "bridges. "
     "It is left alone.",
     recovery_findings},
    {0},
};
