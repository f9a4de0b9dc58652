/* What auto-repair has done: `fettle repair history`, `fettle repair show`; see repair_show.h. */
#include "cli/commands/repair_show.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/what_next.h"

static const char *const repair_fields[] = {"started", "ended", "type",     "state",
                                            "jobs",    "id",    "instance", NULL};
enum { R_STARTED, R_ENDED, R_TYPE, R_STATE, R_JOBS, R_ID, R_INSTANCE };

static bool instance_exists(struct cli *cli, const char *name, GError **error)
{
    json_autoptr rows = cli_query(cli, "instance", (const char *const[]){"name", NULL},
                                  json_make("[sss]", "=", "name", name), error);
    if (rows != NULL && json_array_size(rows) == 0)
        fettle_set_error(error, UNKNOWN_ENTITY, "instance \"%s\" does not exist", name);
    return rows != NULL && json_array_size(rows) > 0;
}

int repair_history(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "repair history INSTANCE", error) ||
        !instance_exists(cli, argv[0], error))
        return -1;
    json_autoptr rows = cli_query(cli, "repair", repair_fields,
                                  json_make("[sss]", "=", "instance", argv[0]), error);
    if (rows == NULL)
        return -1;
    if (json_array_size(rows) > 0 || cli->json)
        cli_print_rows(cli, "repair", repair_fields, rows);
    else
        printf("%s has never been repaired, as far as its tags tell.\n", argv[0]);
    if (!cli->json && json_array_size(rows) > 0)
        printf("\nOne of them:  fettle repair show %.8s     What is thought now:  fettle why %s\n",
               cli_cell_string(json_array_get(rows, json_array_size(rows) - 1), R_ID), argv[0]);
    return cli->json || what_next_print(cli, "instance", argv[0], NULL, error) ? 0 : -1;
}

/* The repair whose id begins so. */
static const json_t *find_repair(const json_t *rows, const char *id, GError **error)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!g_str_has_prefix(cli_cell_string(row, R_ID), id))
            continue;
        if (found != NULL && strcmp(cli_cell_string(row, R_ID), id) != 0) {
            fettle_set_error(error, WRONG_INPUT,
                             "several repairs begin with \"%s\": give more of "
                             "the id; see fettle repair list",
                             id);
            return NULL;
        }
        found = row;
    }
    if (found == NULL)
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "there is no repair \"%s\", or its tag is gone; see fettle repair list",
                         id);
    return found;
}

static const char *const step_fields[] = {"at", "state", "summary", "jobs", NULL};
static const char *const job_fields[] = {"id", "status", "summary", "end_ts", NULL};

static json_t *jobs_of(struct cli *cli, const json_t *repair, GError **error)
{
    const json_t *ids = cli_cell_value(repair, R_JOBS);
    if (json_array_size(ids) == 0)
        return json_array();
    json_t *filter = json_make("[s]", "|");
    for (size_t i = 0; i < json_array_size(ids); i++)
        json_array_append_new(filter, json_make("[ssO]", "=", "id", json_array_get(ids, i)));
    return cli_query(cli, "job", job_fields, filter, error);
}

static void print_repair(const struct cli *cli, const json_t *repair, json_t *steps, json_t *jobs)
{
    for (size_t i = 0; repair_fields[i] != NULL; i++) {
        g_autofree char *text =
            cli_cell_text("repair", repair_fields[i], json_array_get(repair, i));
        printf("%-12s %s\n", repair_fields[i], *text ? text : "-");
    }
    printf("\nWhat was decided:\n");
    cli_print_rows(cli, "decision", step_fields, steps);
    printf("\nJobs:\n");
    cli_print_rows(cli, "job", job_fields, jobs);
}

static void print_repair_json(const json_t *repair, const json_t *steps, const json_t *jobs)
{
    json_autoptr one = json_make("[O]", (json_t *)repair);
    json_autoptr list = cli_rows_as_objects(repair_fields, one);
    json_t *object = json_array_get(list, 0);
    json_object_set_new(object, "decisions", cli_rows_as_objects(step_fields, steps));
    json_object_set_new(object, "job_details", cli_rows_as_objects(job_fields, jobs));
    cli_print_json(object);
}

int repair_show(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 1, "repair show ID", error))
        return -1;
    json_autoptr rows = cli_query(cli, "repair", repair_fields, NULL, error);
    const json_t *repair = rows == NULL ? NULL : find_repair(rows, argv[0], error);
    if (repair == NULL)
        return -1;
    json_autoptr steps =
        cli_query(cli, "decision", step_fields,
                  json_make("[sss]", "=", "repair_id", cli_cell_string(repair, R_ID)), error);
    json_autoptr jobs = steps == NULL ? NULL : jobs_of(cli, repair, error);
    if (jobs == NULL)
        return -1;
    if (cli->json)
        print_repair_json(repair, steps, jobs);
    else
        print_repair(cli, repair, steps, jobs);
    return cli->json || what_next_print(cli, "instance", cli_cell_string(repair, R_INSTANCE), NULL,
                                        error)
               ? 0
               : -1;
}
