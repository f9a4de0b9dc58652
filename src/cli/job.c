/* Jobs: list, info, wait, cancel, and following one to its end. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static bool parse_id(const char *text, guint64 *ret_id, GError **error)
{
    if (g_ascii_string_to_unsigned(text, 10, 1, (guint64)1 << 53, ret_id, NULL))
        return true;
    fettle_set_error(error, WRONG_INPUT, "\"%s\" is no job id", text);
    return false;
}

static bool is_final(const char *status)
{
    return status != NULL && (strcmp(status, "success") == 0 || strcmp(status, "error") == 0 ||
                              strcmp(status, "canceled") == 0);
}

/* The first opcode result that tells of an error, as an error. */
static void set_job_error(guint64 job, const json_t *results, GError **error)
{
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *result = json_array_get(results, i);
        const json_t *args = json_array_get(result, 1);
        const char *message = json_is_string(result) ? json_string_value(result)
                                                     : json_string_value(json_array_get(args, 0));
        const char *code = json_string_value(json_array_get(args, 1));
        if (message == NULL || (!json_is_string(result) && !json_is_array(args)))
            continue;
        enum fettle_error number =
            code != NULL ? fettle_error_from_name(code) : FETTLE_ERROR_JOB_FAILED;
        if (number == FETTLE_ERROR_INTERNAL)
            number = FETTLE_ERROR_JOB_FAILED;
        g_set_error(error, FETTLE_ERROR, (int)number, "%s (job %" G_GUINT64_FORMAT ")", message,
                    job);
        return;
    }
    fettle_set_error(error, JOB_FAILED, "job %" G_GUINT64_FORMAT " failed without a reason", job);
}

static int outcome(struct cli *cli, guint64 job, GError **error)
{
    json_autoptr rows = cli_call(
        cli, "QueryJobs", json_make("[[I][ss]]", (json_int_t)job, "status", "opresult"), error);
    if (rows == NULL)
        return -1;
    const json_t *row = json_array_get(rows, 0);
    const char *status = json_string_value(json_array_get(row, 0));
    if (g_strcmp0(status, "success") == 0)
        return 0;
    if (g_strcmp0(status, "canceled") == 0)
        fettle_set_error(error, CANCELED, "job %" G_GUINT64_FORMAT " was canceled", job);
    else
        set_job_error(job, json_array_get(row, 1), error);
    return -1;
}

int cli_follow_job(struct cli *cli, guint64 job, bool quiet, GError **error)
{
    json_autoptr known = json_null();
    json_int_t serial = -1;
    for (;;) {
        json_autoptr answer =
            cli_call(cli, "WaitForJobChange",
                     json_make("[I[s]OIi]", (json_int_t)job, "status", known, serial, 60), error);
        if (answer == NULL)
            return -1;
        if (json_is_null(answer)) {
            fettle_set_error(error, UNKNOWN_ENTITY, "job %" JSON_INTEGER_FORMAT " does not exist",
                             (json_int_t)job);
            return -1;
        }
        if (!json_is_array(answer))
            continue;
        const json_t *log = json_array_get(answer, 1);
        for (size_t i = 0; i < json_array_size(log); i++) {
            const json_t *entry = json_array_get(log, i);
            serial = MAX(serial, json_integer_value(json_array_get(entry, 0)));
            if (!quiet)
                fprintf(stderr, "%s\n", json_string_value(json_array_get(entry, 3)));
        }
        json_decref(known);
        known = json_incref(json_array_get(answer, 0));
        if (is_final(json_string_value(json_array_get(known, 0))))
            return outcome(cli, job, error);
    }
}

static int job_list(struct cli *cli, int argc, char **argv, GError **error)
{
    if (!cli_expect(argc, argv, 0, "job list", error))
        return -1;
    g_auto(GStrv) names = cli_choose_fields(cli, "id,status,summary,received_ts,end_ts");
    if (!cli_check_fields(cli, "job", (const char *const *)names, error))
        return -1;
    json_autoptr rows = cli_query(cli, "job", (const char *const *)names, NULL, error);
    if (rows == NULL)
        return -1;
    cli_print_rows(cli, "job", (const char *const *)names, rows);
    return 0;
}

static char *stamp_text(const json_t *stamp)
{
    if (!json_is_array(stamp))
        return g_strdup("-");
    g_autofree char *seconds = cli_time_text(json_integer_value(json_array_get(stamp, 0)));
    return g_strdup_printf("%s.%03d", seconds,
                           (int)(json_integer_value(json_array_get(stamp, 1)) / 1000));
}

static void print_op(const json_t *op, const char *status, const json_t *result, const json_t *log)
{
    printf("  %s: %s\n", json_string_value(json_object_get(op, "OP_ID")), status);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)op, key, value)
    {
        if (strcmp(key, "OP_ID") == 0 || json_is_null(value))
            continue;
        json_autoptr cell = json_make("[iO]", 0, value);
        g_autofree char *text = cli_cell_text(NULL, key, cell);
        if (*text != '\0')
            printf("    %-18s %s\n", key, text);
    }
    for (size_t i = 0; i < json_array_size(log); i++)
        printf("    log                %s\n",
               json_string_value(json_array_get(json_array_get(log, i), 3)));
    if (result != NULL && !json_is_null(result)) {
        g_autofree char *text = json_dumps(result, JSON_ENCODE_ANY | JSON_COMPACT);
        printf("    result             %s\n", text);
    }
}

static int job_info(struct cli *cli, int argc, char **argv, GError **error)
{
    static const char *const names[] = {"id",  "status",   "received_ts", "start_ts", "end_ts",
                                        "ops", "opstatus", "opresult",    "oplog",    NULL};
    guint64 id;
    if (!cli_expect(argc, argv, 1, "job info ID", error) || !parse_id(argv[0], &id, error))
        return -1;
    json_autoptr rows =
        cli_query(cli, "job", names, json_make("[ssI]", "=", "id", (json_int_t)id), error);
    if (rows == NULL)
        return -1;
    if (json_array_size(rows) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "job %s does not exist", argv[0]);
        return -1;
    }
    if (cli->json) {
        cli_print_rows(cli, "job", names, rows);
        return 0;
    }
    const json_t *row = json_array_get(rows, 0);
    printf("Job %s: %s\n", argv[0], cli_cell_string(row, 1));
    const char *const heads[] = {"received", "started", "ended"};
    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        g_autofree char *text = stamp_text(cli_cell_value(row, 2 + i));
        printf("  %-20s %s\n", heads[i], text);
    }
    const json_t *ops = cli_cell_value(row, 5);
    for (size_t i = 0; i < json_array_size(ops); i++)
        print_op(
            json_array_get(ops, i), json_string_value(json_array_get(cli_cell_value(row, 6), i)),
            json_array_get(cli_cell_value(row, 7), i), json_array_get(cli_cell_value(row, 8), i));
    return 0;
}

static int job_wait(struct cli *cli, int argc, char **argv, GError **error)
{
    guint64 id;
    if (!cli_expect(argc, argv, 1, "job wait ID", error) || !parse_id(argv[0], &id, error))
        return -1;
    return cli_follow_job(cli, id, false, error);
}

static int job_cancel(struct cli *cli, int argc, char **argv, GError **error)
{
    guint64 id;
    if (!cli_expect(argc, argv, 1, "job cancel ID", error) || !parse_id(argv[0], &id, error))
        return -1;
    json_autoptr known = cli_query(cli, "job", (const char *const[]){"id", NULL},
                                   json_make("[ssI]", "=", "id", (json_int_t)id), error);
    if (known == NULL)
        return -1;
    if (json_array_size(known) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "job %s does not exist", argv[0]);
        return -1;
    }
    json_autoptr answer = cli_call(cli, "CancelJob", json_make("[I]", (json_int_t)id), error);
    if (answer == NULL)
        return -1;
    const char *text = json_string_value(json_array_get(answer, 1));
    if (!json_is_true(json_array_get(answer, 0))) {
        fettle_set_error(error, WRONG_STATE, "%s",
                         text != NULL ? text : "the job was not canceled");
        return -1;
    }
    printf("%s\n", text);
    return 0;
}

const struct command job_commands[] = {
    {"job", "list", "", "List jobs.", job_list},
    {"job", "info", "ID", "Show a job, its opcodes and its log.", job_info},
    {"job", "wait", "ID", "Follow a job to its end; the exit code is its outcome.", job_wait},
    {"job", "cancel", "ID", "Cancel a job that has not started.", job_cancel},
    {0},
};
