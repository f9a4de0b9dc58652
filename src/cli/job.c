/* Jobs: list, info, watch, wait, cancel. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/progress.h"

bool cli_parse_job(const char *text, guint64 *ret_id, GError **error)
{
    if (g_ascii_string_to_unsigned(text, 10, 1, (guint64)1 << 53, ret_id, NULL))
        return true;
    fettle_set_error(error, WRONG_INPUT, "\"%s\" is no job id", text);
    return false;
}

/* Archived jobs are listed if the field `archived` is asked for. */
static GStrv with_archived(GStrv names)
{
    if (g_strv_contains((const char *const *)names, "archived"))
        return names;
    guint count = g_strv_length(names);
    names = g_renew(char *, names, count + 2);
    names[count] = g_strdup("archived");
    names[count + 1] = NULL;
    return names;
}

static int job_list(struct cli *cli, int argc, char **argv, GError **error)
{
    bool archived = cli_take_flag(&argc, argv, "--archived");
    bool live = cli_take_flag(&argc, argv, "--live");
    if (!cli_expect(argc, argv, 0, "job list [--archived] [--live]", error))
        return -1;
    g_auto(GStrv) names = cli_choose_fields(cli, "id,status,summary,received_ts,end_ts");
    if (archived)
        names = with_archived(g_steal_pointer(&names));
    if (!cli_check_fields(cli, "job", (const char *const *)names, error))
        return -1;
    if (live)
        return cli_live_jobs(cli, (const char *const *)names, error);
    json_autoptr rows = cli_query(cli, "job", (const char *const *)names, NULL, error);
    if (rows == NULL)
        return -1;
    cli_print_rows(cli, "job", (const char *const *)names, rows);
    return 0;
}

/* ["=", "id", N], for one job. */
static json_t *id_filter(guint64 id)
{
    return json_make("[ssI]", "=", "id", (json_int_t)id);
}

static char *stamp_text(const json_t *stamp)
{
    if (!json_is_array(stamp))
        return g_strdup("-");
    g_autofree char *seconds = cli_time_text(json_integer_value(json_array_get(stamp, 0)));
    return g_strdup_printf("%s.%03d", seconds,
                           (int)(json_integer_value(json_array_get(stamp, 1)) / 1000));
}

/* A log entry as one line with its time. */
static char *log_text(const json_t *entry)
{
    struct progress progress = {0};
    const json_t *message = json_array_get(entry, 3);
    g_autofree char *when = stamp_text(json_array_get(entry, 1));
    g_autofree char *what = NULL;
    if (progress_take(&progress, entry))
        what = g_strdup_printf("%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " %s",
                               progress.what, progress.done, progress.total, progress.unit);
    else if (json_is_string(message))
        what = g_strdup(json_string_value(message));
    else
        what = json_to_text(message);
    progress_clear(&progress);
    return g_strdup_printf("%s  %s", when, what);
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
    for (size_t i = 0; i < json_array_size(log); i++) {
        g_autofree char *text = log_text(json_array_get(log, i));
        printf("    log                %s\n", text);
    }
    if (result != NULL && !json_is_null(result)) {
        g_autofree char *text = json_dumps(result, JSON_ENCODE_ANY | JSON_COMPACT);
        printf("    result             %s\n", text);
    }
}

static const char *const info_fields[] = {"id",     "status", "received_ts", "start_ts",
                                          "end_ts", "ops",    "opstatus",    "opresult",
                                          "oplog",  "held",   NULL};

static void print_job(const json_t *row)
{
    const char *const heads[] = {"received", "started", "ended"};
    printf("Job %" JSON_INTEGER_FORMAT ": %s\n", json_integer_value(cli_cell_value(row, 0)),
           cli_cell_string(row, 1));
    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        g_autofree char *text = stamp_text(cli_cell_value(row, 2 + i));
        printf("  %-20s %s\n", heads[i], text);
    }
    if (*cli_cell_string(row, 9) != '\0')
        printf("  %-20s %s\n", "held", cli_cell_string(row, 9));
    const json_t *ops = cli_cell_value(row, 5);
    for (size_t i = 0; i < json_array_size(ops); i++)
        print_op(
            json_array_get(ops, i), json_string_value(json_array_get(cli_cell_value(row, 6), i)),
            json_array_get(cli_cell_value(row, 7), i), json_array_get(cli_cell_value(row, 8), i));
}

static int job_info(struct cli *cli, int argc, char **argv, GError **error)
{
    guint64 id;
    if (!cli_expect(argc, argv, 1, "job info ID", error) || !cli_parse_job(argv[0], &id, error))
        return -1;
    g_autofree char *standard = g_strjoinv(",", (char **)info_fields);
    g_auto(GStrv) chosen = cli_choose_fields(cli, standard);
    if (!cli_check_fields(cli, "job", (const char *const *)chosen, error))
        return -1;
    json_autoptr rows = cli_query(cli, "job", (const char *const *)chosen, id_filter(id), error);
    if (rows == NULL)
        return -1;
    if (json_array_size(rows) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "job %s does not exist", argv[0]);
        return -1;
    }
    if (cli->json)
        cli_print_rows(cli, "job", (const char *const *)chosen, rows);
    else if (cli->fields != NULL)
        cli_print_details("job", (const char *const *)chosen, json_array_get(rows, 0));
    else
        print_job(json_array_get(rows, 0));
    return 0;
}

static int wait_for(struct cli *cli, const char *verb, int argc, char **argv, GError **error)
{
    guint64 id;
    g_autofree char *usage = g_strdup_printf("job %s ID", verb);
    if (!cli_expect(argc, argv, 1, usage, error) || !cli_parse_job(argv[0], &id, error))
        return -1;
    int code = cli_follow_job(cli, id, cli->json, error);
    if (code != 0)
        return code;
    json_autoptr results = cli_job_results(cli, id, error);
    if (results == NULL)
        return -1;
    cli_say(cli,
            json_make("{sI ss sO}", "job", (json_int_t)id, "status", "success", "result", results),
            "Job %" G_GUINT64_FORMAT " has succeeded.", id);
    return 0;
}

static int job_watch(struct cli *cli, int argc, char **argv, GError **error)
{
    return wait_for(cli, "watch", argc, argv, error);
}

static int job_wait(struct cli *cli, int argc, char **argv, GError **error)
{
    return wait_for(cli, "wait", argc, argv, error);
}

static void say_ended(struct cli *cli, guint64 id, const char *status)
{
    json_t *what = json_make("{sI ss}", "job", (json_int_t)id, "status", status);
    if (strcmp(status, "canceled") == 0)
        cli_say(cli, what, "Job %" G_GUINT64_FORMAT " is canceled.", id);
    else
        cli_say(cli, what,
                "Job %" G_GUINT64_FORMAT " had ended already, with %s. What it did: fettle job "
                "info %" G_GUINT64_FORMAT,
                id, status, id);
}

/* A running job is asked to give up, and decides by itself how far it is. */
static int say_canceled(struct cli *cli, guint64 id, GError **error)
{
    json_autoptr now =
        cli_query(cli, "job", (const char *const[]){"status", NULL}, id_filter(id), error);
    if (now == NULL)
        return -1;
    const json_t *row = json_array_get(now, 0);
    const char *status = json_string_value(json_array_get(json_array_get(row, 0), 1));
    if (status != NULL && !cli_job_final(status))
        cli_say(cli, json_make("{sI ss}", "job", (json_int_t)id, "status", status),
                "Job %" G_GUINT64_FORMAT " is asked to give up. How it ends: fettle job "
                "watch %" G_GUINT64_FORMAT,
                id, id);
    else
        say_ended(cli, id, status != NULL ? status : "canceled");
    return 0;
}

static int job_cancel(struct cli *cli, int argc, char **argv, GError **error)
{
    guint64 id;
    bool kill = cli_take_flag(&argc, argv, "--kill");
    if (!cli_expect(argc, argv, 1, "job cancel [--kill] ID", error) ||
        !cli_parse_job(argv[0], &id, error))
        return -1;
    json_autoptr known =
        cli_query(cli, "job", (const char *const[]){"id", NULL}, id_filter(id), error);
    if (known == NULL)
        return -1;
    if (json_array_size(known) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "job %s does not exist", argv[0]);
        return -1;
    }
    json_autoptr answer =
        cli_call(cli, "CancelJob", json_make("[Ib]", (json_int_t)id, kill), error);
    if (answer == NULL)
        return -1;
    const char *text = json_string_value(json_array_get(answer, 1));
    if (!json_is_true(json_array_get(answer, 0))) {
        fettle_set_error(error, WRONG_STATE, "%s",
                         text != NULL ? text : "the job was not canceled");
        return -1;
    }
    return say_canceled(cli, id, error);
}

static bool parse_priority(const char *text, gint64 *ret_priority, GError **error)
{
    static const struct {
        const char *word;
        gint64 priority;
    } words[] = {{"low", 10}, {"normal", 0}, {"high", -10}};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strcmp(words[i].word, text) == 0) {
            *ret_priority = words[i].priority;
            return true;
        }
    }
    if (g_ascii_string_to_signed(text, 10, -20, 19, ret_priority, NULL))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "\"%s\" is no priority: low, normal, high or a number from -20 to 19", text);
    return false;
}

static int job_priority(struct cli *cli, int argc, char **argv, GError **error)
{
    guint64 id;
    gint64 priority;
    if (!cli_expect(argc, argv, 2, "job change-priority ID low|normal|high|NUMBER", error) ||
        !cli_parse_job(argv[0], &id, error) || !parse_priority(argv[1], &priority, error))
        return -1;
    json_autoptr answer = cli_call(cli, "ChangeJobPriority",
                                   json_make("[II]", (json_int_t)id, (json_int_t)priority), error);
    if (answer == NULL)
        return -1;
    if (!json_is_true(json_array_get(answer, 0))) {
        const char *text = json_string_value(json_array_get(answer, 1));
        fettle_set_error(error, WRONG_STATE, "%s", text != NULL ? text : "nothing was changed");
        return -1;
    }
    cli_say(cli, NULL, "Job %" G_GUINT64_FORMAT " has priority %" G_GINT64_FORMAT " now.", id,
            priority);
    return 0;
}

const struct command job_commands[] = {
    {"job", "list", "[--archived] [--live]",
     "List jobs; with --archived those in the archive, too. With --live the list follows what "
     "happens until Ctrl-C: on a terminal it is drawn anew, elsewhere each change is a line, with "
     "--json an object a line.",
     job_list},
    {"job", "info", "ID", "Show a job, its opcodes and its log.", job_info},
    {"job", "watch", "ID",
     "Follow a job to its end, with its progress; the exit code is its outcome. Ctrl-C leaves it "
     "alone.",
     job_watch},
    {"job", "wait", "ID", "The same as watch.", job_wait},
    {"job", "cancel", "[--kill] ID",
     "Cancel a job. One that is queued ends at once; one that is under way gives up at its next "
     "safe point, with --kill after 10 seconds in any case.",
     job_cancel},
    {"job", "change-priority", "ID low|normal|high|NUMBER",
     "Change the priority of what has not ended of a job; -20 is the most urgent.", job_priority},
    {0},
};
