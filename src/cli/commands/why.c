/* `fettle why`: what was seen, decided and rejected about a subject, and when it is looked at next
 * (ARP-68); of a job what it waits for. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/repair_next.h"
#include "cli/commands/why_job.h"

static const char *const fields[] = {
    "at",       "subject_name", "state", "verdict",    "summary",   "evidence", "policy",
    "rejected", "repair_id",    "jobs",  "next_check", "serial_no", NULL};
enum { AT, NAME, STATE, VERDICT, SUMMARY, EVIDENCE, POLICY, REJECTED, REPAIR, JOBS, NEXT, SERIAL };

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

/* Not by time: clocks can be set. */
static gint by_serial(const void *a, const void *b)
{
    double left = json_number_value(cli_cell_value(*(json_t *const *)a, SERIAL));
    double right = json_number_value(cli_cell_value(*(json_t *const *)b, SERIAL));
    return left < right ? -1 : left > right;
}

static json_t *sorted(const json_t *rows)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    for (size_t i = 0; i < json_array_size(rows); i++)
        g_ptr_array_add(list, json_array_get(rows, i));
    g_ptr_array_sort(list, by_serial);
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
               "    fettle node modify %s --offline yes --statement \"…\"\n"
               "What would be done then:\n    fettle plan fail %s\n",
               name, status, node, node, node);
    else if (strcmp(status, "ERROR_nospace") == 0)
        printf(
            "%s is %s: %s has no room for its disks. It stands still, and goes on by itself when "
            "there is room.\n",
            name, status, node);
    else if (!*status && *cli_cell_string(row, 3))
        printf("Whether %s runs is not known: its guest %s. The node answers, so it is not dead.\n",
               name, cli_cell_string(row, 3));
    else if (*cli_cell_string(row, 3))
        printf("%s is %s, and its guest on %s %s: what is told of it is what it said last. The "
               "node answers, so it is not dead. If its guest does not come back, end it, as a "
               "power cut would, and start it:\n"
               "    fettle instance shutdown %s --timeout 0\n    fettle instance startup %s\n",
               name, status, node, cli_cell_string(row, 3), name, name);
    else if (!recorded)
        printf("%s is %s; nothing had to be decided about it.\n", name, status);
}

bool cli_print_brake(struct cli *cli, GError **error)
{
    json_autoptr rows =
        cli_query(cli, "brake", (const char *const[]){"since", "why", NULL}, NULL, error);
    if (rows == NULL)
        return false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        g_autofree char *since = cli_time_text((gint64)json_number_value(cli_cell_value(row, 0)));
        printf("The storm brake is on since %s: %s No repair goes on until you say so: fettle "
               "repair continue\n",
               since, cli_cell_string(row, 1));
    }
    return true;
}

/* Rows of a kind of object by that name. */
static json_t *objects(struct cli *cli, const char *what, const char *const *names,
                       const char *name, GError **error)
{
    return cli_query(cli, what, names, json_make("[sss]", "=", "name", name), error);
}

/* Whether there is a node, a node group or a cluster of that name; the cluster also by that word.
 */
static bool other_subject(struct cli *cli, char **name, bool *ret_known, GError **error)
{
    json_autoptr policies =
        cli_query(cli, "policy", (const char *const[]){"name", "kind", NULL},
                  strcmp(*name, "cluster") == 0 ? json_make("[sss]", "=", "kind", "cluster")
                                                : json_make("[s[sss][sss]]", "&", "=", "name",
                                                            *name, "!=", "kind", "instance"),
                  error);
    json_autoptr nodes =
        policies == NULL ? NULL
                         : objects(cli, "node", (const char *const[]){"name", NULL}, *name, error);
    if (nodes == NULL)
        return false;
    *ret_known = json_array_size(nodes) + json_array_size(policies) > 0;
    if (json_array_size(policies) > 0) {
        g_free(*name);
        *name = g_strdup(cli_cell_string(json_array_get(policies, 0), 0));
    }
    return true;
}

/* Of a node that answers: what of it does not. */
static bool print_late(struct cli *cli, const char *name, bool *said, GError **error)
{
    json_autoptr rows = objects(cli, "node", (const char *const[]){"late", NULL}, name, error);
    const json_t *late = cli_cell_value(json_array_get(rows, 0), 0), *part;
    size_t i;
    json_array_foreach(late, i, part) {
        printf("%s answers, but for %s\n", name, json_string_value(part));
        *said = true;
    }
    return rows != NULL;
}

static int print_all(struct cli *cli, const char *name, json_t *known, const json_t *rows,
                     GError **error)
{
    json_autoptr list = sorted(rows);
    if (cli->json) {
        cli_print_rows(cli, "decision", fields, list);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        print_decision(json_array_get(list, i));
    bool said = json_array_size(known) > 0 || json_array_size(list) > 0;
    if (json_array_size(known) > 0)
        print_status(name, json_array_get(known, 0), json_array_size(list) > 0);
    if (!(json_array_size(known) > 0 ? repair_print_next(cli, name, error)
                                     : print_late(cli, name, &said, error) &&
                                           repair_print_next_node(cli, name, &said, error)))
        return -1;
    if (!said && json_array_size(list) == 0)
        printf("Nothing had to be decided about %s.\n", name);
    return cli_print_brake(cli, error) ? 0 : -1;
}

static bool is_job(const char *text)
{
    return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

static int why(struct cli *cli, int argc, char **argv, GError **error)
{
    bool other = false;
    if (!cli_expect(argc, argv, 1, "why INSTANCE|NODE|JOB|cluster", error))
        return -1;
    if (is_job(argv[0]))
        return why_job(cli, argv[0], error);
    g_autofree char *name = g_strdup(argv[0]);
    json_autoptr known =
        objects(cli, "instance",
                (const char *const[]){"name", "status", "pnode", "guest.late", NULL}, name, error);
    if (known == NULL || (json_array_size(known) == 0 && !other_subject(cli, &name, &other, error)))
        return -1;
    json_autoptr rows =
        cli_query(cli, "decision", fields, json_make("[sss]", "=", "subject_name", name), error);
    if (rows == NULL)
        return -1;
    if (json_array_size(rows) == 0 && json_array_size(known) == 0 && !other) {
        fettle_set_error(error, UNKNOWN_ENTITY, "there is no instance, node or cluster \"%s\"",
                         argv[0]);
        return -1;
    }
    return print_all(cli, name, known, rows, error);
}

const struct command why_commands[] = {
    {"why", NULL, "INSTANCE|NODE|JOB|cluster",
     "Tell why the cluster did or did not act on something, or what a job waits for.", why},
    {0},
};
