/* `fettle why`: what was seen, decided and rejected about a subject, and when it is looked at next
 * (ARP-68); of a job what it waits for. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/what_next.h"
#include "cli/commands/why_job.h"
#include "cli/commands/why_subject.h"
#include "cli/volume/why_storage.h"
#include "cli/why_entry.h"

/* Jobs about a subject that are shown, the newest. */
#define JOBS_SHOWN 50

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
    else if (strcmp(status, "ERROR_task") == 0)
        printf("%s is %s: what a job has left of it could not be settled:\n"
               "    fettle recovery show instance %s\n",
               name, status, name);
    else if (strcmp(status, "ERROR_nospace") == 0)
        printf("%s is %s: %s. It stands still, and goes on by itself when there is room.\n", name,
               status, cli_cell_string(row, 5));
    else if (*cli_cell_string(row, 4))
        printf("%s is %s, and its writes are held: its replica is lost, and %s cannot note that "
               "(%s), nor is another master candidate known to have it on record. Mend what the "
               "state of %s is written to, or bring another master candidate back; it goes on by "
               "itself.\n",
               name, status, node, cli_cell_string(row, 4), node);
    else if (!*status && *cli_cell_string(row, 3))
        printf("Whether %s runs is not known: its guest %s. The node answers, so it is not dead.\n",
               name, cli_cell_string(row, 3));
    else if (*cli_cell_string(row, 3))
        printf("%s is %s, and its guest on %s %s: what is told of it is what it said last. The "
               "node answers, so it is not dead. If its guest does not come back, end it, as a "
               "power cut would, and start it:\n"
               "    fettle instance shutdown %s --timeout 0\n    fettle instance startup %s\n",
               name, status, node, cli_cell_string(row, 3), name, name);
    else if (!*status)
        printf("How %s is now is not known.\n", name);
    else
        printf("%s%s is %s%s.\n", recorded ? "Now: " : "", name, status,
               recorded ? "" : "; nothing had to be decided about it");
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

/* Of what nothing else is to be said. */
static bool print_well(struct cli *cli, const char *name, bool recorded, GError **error)
{
    json_autoptr rows = objects(cli, "node", (const char *const[]){"name", NULL}, name, error);
    if (!recorded)
        printf("Nothing had to be decided about %s.\n", name);
    else if (json_array_size(rows) > 0)
        printf("Now: %s is online and answers.\n", name);
    return rows != NULL;
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

/* What is asked about. */
struct subject {
    char *name;
    json_t *instance; /* rows: one if it is an instance */
    bool other;       /* a node, a node group, the cluster */
    json_t *decisions, *jobs;
};

static void subject_clear(struct subject *subject)
{
    g_free(subject->name);
    json_decref(subject->instance);
    json_decref(subject->decisions);
    json_decref(subject->jobs);
}

static bool is_recorded(const struct subject *subject)
{
    return json_array_size(subject->decisions) + json_array_size(subject->jobs) > 0;
}

/* How it stands now, and what to do. */
static bool print_now(struct cli *cli, const struct subject *subject, GError **error)
{
    const char *name = subject->name;
    bool said = false;
    if (json_array_size(subject->instance) > 0) {
        print_status(name, json_array_get(subject->instance, 0), is_recorded(subject));
        return what_next_print(cli, "instance", name, NULL, error);
    }
    if (!subject->other) {
        printf("Now: there is no instance and no node %s any more.\n", name);
        return true;
    }
    bool late = false;
    if (!print_late(cli, name, &late, error) || !what_next_print(cli, "node", name, &said, error) ||
        !why_print_drained(cli, name, subject->jobs, &said, error) ||
        !why_print_waiting(cli, name, &said, error))
        return false;
    return said || late || print_well(cli, name, is_recorded(subject), error);
}

static int print_all(struct cli *cli, const struct subject *subject, GError **error)
{
    json_autoptr list = why_merge(subject->decisions, subject->jobs);
    if (cli->json) {
        cli_print_rows(cli, "decision", why_fields, list);
        return 0;
    }
    size_t jobs = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        if (!why_is_of_job(entry) || ++jobs <= JOBS_SHOWN)
            why_print_entry(entry);
    }
    if (jobs > JOBS_SHOWN)
        printf("… and %zu older jobs: fettle job list --archived --filter '\"%s\" in subjects'\n",
               jobs - JOBS_SHOWN, subject->name);
    bool fine = print_now(cli, subject, error) && why_print_pause(cli, error) &&
                cli_print_brake(cli, error);
    return fine ? 0 : -1;
}

static bool find_subject(struct cli *cli, struct subject *subject, GError **error)
{
    subject->instance = objects(cli, "instance",
                                (const char *const[]){"name", "status", "pnode", "guest.late",
                                                      "guest.held", "io.why", NULL},
                                subject->name, error);
    if (subject->instance == NULL || (json_array_size(subject->instance) == 0 &&
                                      !other_subject(cli, &subject->name, &subject->other, error)))
        return false;
    subject->decisions = cli_query(cli, "decision", why_fields,
                                   json_make("[sss]", "=", "subject_name", subject->name), error);
    subject->jobs = subject->decisions == NULL
                        ? NULL
                        : why_jobs_about(cli, subject->name, subject->decisions, error);
    if (subject->jobs == NULL)
        return false;
    if (json_array_size(subject->instance) > 0 || subject->other || is_recorded(subject))
        return true;
    fettle_set_error(error, UNKNOWN_ENTITY, "there is no instance, node or cluster \"%s\"",
                     subject->name);
    return false;
}

static bool is_job(const char *text)
{
    return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

#define USAGE                                                                                      \
    "INSTANCE|NODE|JOB|cluster|volume VOLUME|snapshot SNAPSHOT|backup BACKUP|image IMAGE|"         \
    "storage-service HOST"

static int why(struct cli *cli, int argc, char **argv, GError **error)
{
    bool of_kind = argc > 1 && (why_storage_knows(argv[0]) || !strcmp(argv[0], "storage-service"));
    if (!cli_expect(argc, argv, of_kind ? 2 : 1, "why " USAGE, error))
        return -1;
    if (of_kind)
        return why_storage_knows(argv[0]) ? why_storage_resource(cli, argv[0], argv[1], error)
                                          : why_storage_of_service(cli, argv[1], error);
    if (is_job(argv[0]))
        return why_job(cli, argv[0], error);
    struct subject subject = {.name = g_strdup(argv[0])};
    int code = find_subject(cli, &subject, error) ? print_all(cli, &subject, error) : -1;
    subject_clear(&subject);
    return code;
}

const struct command why_commands[] = {
    {"why", NULL, USAGE,
     "Tell why the cluster did or did not act on something, or what a job or a volume waits for.",
     why},
    {0},
};
