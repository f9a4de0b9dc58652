/* `fettle why`: what was seen, decided and rejected about a subject, and when it is looked at next
 * (ARP-68). */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const char *const fields[] = {"at",        "subject_name", "state",      "verdict",
                                     "summary",   "evidence",     "policy",     "rejected",
                                     "repair_id", "jobs",         "next_check", NULL};
enum { AT, NAME, STATE, VERDICT, SUMMARY, EVIDENCE, POLICY, REJECTED, REPAIR, JOBS, NEXT };

static void print_each(const char *head, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        printf("    %-10s %s\n", i == 0 ? head : "", json_string_value(json_array_get(list, i)));
}

static void print_decision(const json_t *row)
{
    g_autofree char *when = cli_time_text((gint64)json_number_value(cli_cell_value(row, AT)));
    printf("%s  %s: %s\n", when, cli_cell_string(row, STATE), cli_cell_string(row, SUMMARY));
    print_each("seen", cli_cell_value(row, EVIDENCE));
    if (*cli_cell_string(row, POLICY))
        printf("    %-10s %s\n", "policy", cli_cell_string(row, POLICY));
    print_each("rejected", cli_cell_value(row, REJECTED));
    print_each("job", cli_cell_value(row, JOBS));
    if (*cli_cell_string(row, REPAIR))
        printf("    %-10s %s\n", "repair", cli_cell_string(row, REPAIR));
    if (*cli_cell_string(row, NEXT))
        printf("    %-10s %s\n", "next look", cli_cell_string(row, NEXT));
}

static gint by_time(const void *a, const void *b)
{
    double left = json_number_value(cli_cell_value(*(json_t *const *)a, AT));
    double right = json_number_value(cli_cell_value(*(json_t *const *)b, AT));
    return left < right ? -1 : left > right;
}

static json_t *sorted(const json_t *rows)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    for (size_t i = 0; i < json_array_size(rows); i++)
        g_ptr_array_add(list, json_array_get(rows, i));
    g_ptr_array_sort(list, by_time);
    json_t *result = json_array();
    for (guint i = 0; i < list->len; i++)
        json_array_append(result, list->pdata[i]);
    return result;
}

/* What its status means for repair when no record says it: of a node that does not answer nobody
 * decides anything until a person has said that it is dead. */
static void print_status(const char *name, const json_t *row, bool recorded)
{
    const char *status = cli_cell_string(row, 1), *node = cli_cell_string(row, 2);
    if (strcmp(status, "ERROR_nodedown") == 0)
        printf("%s is %s: %s does not answer, but may still run it. Nothing is done until it "
               "answers, or you say that it is dead:\n"
               "    fettle node modify %s --offline yes --statement \"…\"\n",
               name, status, node, node);
    else if (!recorded)
        printf("%s is %s; nothing had to be decided about it.\n", name, status);
}

static int why(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "why INSTANCE", error))
        return -1;
    json_autoptr known =
        cli_query(cli, "instance", (const char *const[]){"name", "status", "pnode", NULL},
                  json_make("[sss]", "=", "name", argv[0]), error);
    if (known == NULL)
        return -1;
    json_autoptr rows =
        cli_query(cli, "decision", fields, json_make("[sss]", "=", "subject_name", argv[0]), error);
    if (rows == NULL)
        return -1;
    if (json_array_size(rows) == 0 && json_array_size(known) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "instance \"%s\" does not exist", argv[0]);
        return -1;
    }
    json_autoptr list = sorted(rows);
    if (cli->json) {
        cli_print_rows(cli, "decision", fields, list);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        print_decision(json_array_get(list, i));
    if (json_array_size(known) > 0)
        print_status(argv[0], json_array_get(known, 0), json_array_size(list) > 0);
    return 0;
}

const struct command why_commands[] = {
    {"why", NULL, "INSTANCE", "Tell why the cluster did or did not act on an instance.", why},
    {0},
};
