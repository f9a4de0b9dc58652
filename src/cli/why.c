/* `fettle why`: what was seen, decided and rejected about a subject, and when it is looked at next
 * (ARP-68); of a job what it waits for. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/repair_next.h"

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
               "    fettle node modify %s --offline yes --statement \"…\"\n"
               "What would be done then:\n    fettle plan fail %s\n",
               name, status, node, node, node);
    else if (!recorded)
        printf("%s is %s; nothing had to be decided about it.\n", name, status);
}

/* What holds up every repair, whatever the records say. */
static bool print_brake(struct cli *cli, GError **error)
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
                                     : repair_print_next_node(cli, name, &said, error)))
        return -1;
    if (!said && json_array_size(list) == 0)
        printf("Nothing had to be decided about %s.\n", name);
    return print_brake(cli, error) ? 0 : -1;
}

/* --- a job: what it waits for --- */

enum { JOB, BLOCKERS, NODES };

static const json_t *waiter_of(const json_t *waiters, const char *job)
{
    for (size_t i = 0; i < json_array_size(waiters); i++) {
        const json_t *row = json_array_get(waiters, i);
        if (strcmp(cli_cell_string(row, JOB), job) == 0)
            return row;
    }
    return NULL;
}

static void print_owner(const char *job)
{
    printf("%s%s", g_ascii_isdigit(*job) ? "job " : "", job);
}

/* Each line is one edge of the wait-for graph, indented by its distance. */
static void print_waits(const json_t *waiters, const char *job, GHashTable *told, int depth)
{
    const json_t *row = waiter_of(waiters, job);
    if (row == NULL || !g_hash_table_add(told, (void *)job))
        return;
    const json_t *blockers = cli_cell_value(row, BLOCKERS), *nodes = cli_cell_value(row, NODES);
    for (size_t i = 0; i < json_array_size(nodes); i++)
        printf("%*swaits for node %s to answer this master\n", depth, "",
               json_string_value(json_array_get(nodes, i)));
    for (size_t i = 0; i < json_array_size(blockers); i++) {
        const char *owner, *lock, *mode;
        int waiting;
        json_int_t since;
        if (json_unpack(json_array_get(blockers, i), "[s, s, s, b, I]", &owner, &lock, &mode,
                        &waiting, &since) != 0)
            continue;
        g_autofree char *when = cli_time_text((gint64)since);
        printf("%*swaits for %s, %s by ", depth, "", lock, waiting ? "wanted first" : "held");
        print_owner(owner);
        printf(" (%s) since %s%s\n", mode, when,
               waiter_of(waiters, owner) != NULL ? ", which" : "");
        print_waits(waiters, owner, told, depth + 2);
    }
}

/* Why it was submitted, as its first opcode says: a list of [who, text, when]. What luxid adds
 * says no more than what is printed anyway. */
static void print_reasons(const json_t *ops)
{
    const json_t *reasons = json_object_get(json_array_get(ops, 0), "reason");
    for (size_t i = 0; i < json_array_size(reasons); i++) {
        const char *who, *text;
        if (json_unpack(json_array_get(reasons, i), "[ss]", &who, &text) == 0 &&
            !g_str_has_prefix(who, "gnt:"))
            printf("%s wanted it%s%s\n", who, *text != '\0' ? ": " : "", text);
    }
}

static bool print_ended(struct cli *cli, guint64 job, const char *status, GError **error)
{
    json_autoptr results = NULL;
    const char *message = NULL, *code;
    if (strcmp(status, "error") == 0) {
        results = cli_job_results(cli, job, error);
        if (results == NULL)
            return false;
        message = cli_job_message(results, &code);
    }
    printf("Job %" G_GUINT64_FORMAT " %s%s%s\n", job,
           strcmp(status, "success") == 0 ? "has succeeded."
           : strcmp(status, "error") == 0 ? "has failed"
                                          : "was canceled.",
           message != NULL ? ": " : "", message != NULL ? message : "");
    return true;
}

/* The jobs that must end before, as far as they have not. */
static bool print_dependencies(struct cli *cli, const json_t *ops, bool *ret_any, GError **error)
{
    json_autoptr filter = json_make("[s]", "|");
    size_t i, k;
    const json_t *op, *item;
    json_array_foreach(ops, i, op)
    {
        json_array_foreach(json_object_get(op, "depends"), k, item)
            json_array_append_new(filter, json_make("[ssO]", "=", "id", json_array_get(item, 0)));
    }
    if (json_array_size(filter) == 1)
        return true;
    json_autoptr rows = cli_query(cli, "job", (const char *const[]){"id", "status", NULL},
                                  json_incref(filter), error);
    json_array_foreach(rows, i, item)
    {
        if (cli_job_final(cli_cell_string(item, 1)))
            continue;
        printf("  waits for job %" JSON_INTEGER_FORMAT ", which is %s\n",
               json_integer_value(cli_cell_value(item, 0)), cli_cell_string(item, 1));
        *ret_any = true;
    }
    return rows != NULL;
}

/* A queued job: what keeps it from its turn. */
static int print_queued(struct cli *cli, const json_t *row, GError **error)
{
    const char *held = cli_cell_string(row, 3);
    bool any = *held != '\0';
    printf(" and\n");
    if (any)
        printf("  waits, because %s\n", held);
    if (g_str_has_prefix(held, "filter "))
        printf("  your rules about jobs, and how to take one away: fettle queue filter list; "
               "fettle queue filter remove UUID\n");
    if (!print_dependencies(cli, cli_cell_value(row, 2), &any, error))
        return -1;
    if (!any)
        printf("  waits for its turn: fettle queue info\n");
    return 0;
}

static int print_job(struct cli *cli, guint64 id, const json_t *row, const json_t *waiters,
                     GError **error)
{
    const char *status = cli_cell_string(row, 1);
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    if (cli_job_final(status)) {
        bool told = print_ended(cli, id, status, error);
        if (told)
            print_reasons(cli_cell_value(row, 2));
        return told ? 0 : -1;
    }
    printf("Job %s is %s", job, status);
    if (strcmp(status, "queued") == 0)
        return print_queued(cli, row, error);
    if (waiter_of(waiters, job) == NULL) {
        printf("; it waits for no locks.\n");
        return 0;
    }
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    printf(" and\n");
    print_waits(waiters, job, told, 2);
    return 0;
}

static int why_job(struct cli *cli, const char *job, GError **error)
{
    static const char *const waits[] = {"job", "blockers", "nodes", NULL};
    guint64 id = g_ascii_strtoull(job, NULL, 10);
    static const char *const names[] = {"id", "status", "ops", "held", NULL};
    json_autoptr rows =
        cli_query(cli, "job", names, json_make("[ssI]", "=", "id", (json_int_t)id), error);
    json_autoptr waiters = rows == NULL ? NULL : cli_query(cli, "waiter", waits, NULL, error);
    if (waiters == NULL)
        return -1;
    if (json_array_size(rows) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "there is no job %s", job);
        return -1;
    }
    if (cli->json) {
        cli_print_rows(cli, "waiter", waits, waiters);
        return 0;
    }
    return print_job(cli, id, json_array_get(rows, 0), waiters, error);
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
    json_autoptr known = objects(
        cli, "instance", (const char *const[]){"name", "status", "pnode", NULL}, name, error);
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
