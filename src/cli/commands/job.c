/* Jobs: list, info, watch, wait. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/list_empty.h"
#include "cli/filter_text.h"
#include "cli/order.h"
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

#define LIST_USAGE                                                                                 \
    "[--status queued|waiting|canceling|running|canceled|success|error|pending|ended] [--filter "  \
    "FILTER] " ORDER_USAGE " [--archived] [--live] [ID…]"

static bool add_status(json_t *filter, const char *word)
{
    static const struct {
        const char *word, *states[4];
    } words[] = {{"queued", {"queued"}},
                 {"waiting", {"waiting"}},
                 {"canceling", {"canceling"}},
                 {"running", {"running"}},
                 {"canceled", {"canceled"}},
                 {"success", {"success"}},
                 {"error", {"error"}},
                 {"pending", {"queued", "waiting"}},
                 {"ended", {"canceled", "success", "error"}}};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strcmp(words[i].word, word) != 0)
            continue;
        for (size_t k = 0; words[i].states[k] != NULL; k++)
            json_array_append_new(filter, json_make("[sss]", "=", "status", words[i].states[k]));
        return true;
    }
    return false;
}

/* "running,pending"; NULL with an error. */
static json_t *status_filter(const char *text, GError **error)
{
    json_autoptr filter = json_make("[s]", "|");
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    for (char **word = words; *word != NULL; word++) {
        if (add_status(filter, *word))
            continue;
        fettle_set_error(error, WRONG_INPUT,
                         "--status: \"%s\" is no state of jobs: queued, waiting, canceling, "
                         "running, canceled, success, error, pending (queued or waiting), ended "
                         "(canceled, success or error)",
                         *word);
        return NULL;
    }
    return json_steal(&filter);
}

static json_t *ids_filter(int argc, char **argv, GError **error)
{
    json_autoptr filter = json_make("[s]", "|");
    for (int i = 0; i < argc; i++) {
        guint64 id;
        if (!cli_parse_job(argv[i], &id, error))
            return NULL;
        json_array_append_new(filter, json_make("[ssI]", "=", "id", (json_int_t)id));
    }
    return json_steal(&filter);
}

/* What --status, --filter and ids choose; false with an error. NULL: all. */
static bool take_choice(int *argc, char **argv, json_t **ret_filter, GError **error)
{
    g_autoptr(GError) bad = NULL;
    const char *status = cli_take_option(argc, argv, "--status", &bad);
    const char *filter = bad == NULL ? cli_take_option(argc, argv, "--filter", &bad) : NULL;
    json_t *choice = NULL;
    if (bad == NULL && filter != NULL)
        choice = filter_text_parse(filter, &bad);
    if (bad == NULL && status != NULL)
        choice = filter_text_both(choice, status_filter(status, &bad));
    if (bad == NULL && cli_expect(*argc, argv, *argc, "job list " LIST_USAGE, &bad) && *argc > 0)
        choice = filter_text_both(choice, ids_filter(*argc, argv, &bad));
    if (bad == NULL) {
        *ret_filter = choice;
        return true;
    }
    json_decref(choice);
    g_propagate_error(error, g_steal_pointer(&bad));
    return false;
}

/* Ids that do not exist are an error: a shorter list alone would be overlooked. */
static bool ids_exist(struct cli *cli, int argc, char **argv, GError **error)
{
    json_autoptr rows = cli_query(cli, "job", (const char *const[]){"id", NULL},
                                  ids_filter(argc, argv, NULL), error);
    for (int i = 0; rows != NULL && i < argc; i++) {
        bool found = false;
        guint64 id;
        if (!cli_parse_job(argv[i], &id, error))
            return false;
        for (size_t k = 0; k < json_array_size(rows) && !found; k++)
            found =
                json_integer_value(cli_cell_value(json_array_get(rows, k), 0)) == (json_int_t)id;
        if (found)
            continue;
        fettle_set_error(error, UNKNOWN_ENTITY, "job %s does not exist", argv[i]);
        return false;
    }
    return rows != NULL;
}

static json_t *fields_of(GStrv names)
{
    json_t *list = json_array();
    for (char **name = names; *name != NULL; name++)
        json_array_append_new(list, json_string(*name));
    return list;
}

/* Shows the jobs of an answer, in the order that was asked for. */
static void print_jobs(const struct cli *cli, const struct order *order, char **names,
                       const json_t *answer)
{
    size_t left;
    json_autoptr rows =
        order_rows(order, json_object_get(answer, "data"), g_strv_length(names), &left);
    cli_print_rows(cli, "job", (const char *const *)names, rows);
    order_say_left(cli, left);
    if (json_is_true(json_object_get(answer, "more")))
        fprintf(stderr,
                "fettle: the archive has older jobs, too, which are not shown: see them with "
                "--filter 'id < N', N the least id here\n");
}

static int show_jobs(struct cli *cli, const struct order *order, char **names, json_t *filter,
                     int argc, char **argv, GError **error)
{
    g_autoptr(GPtrArray) asked = order_fields(order, (const char *const *)names);
    if (order->keys != NULL &&
        !cli_fields_exist(cli, "--sort", "job", (const char *const *)order->keys, error))
        return -1;
    json_autoptr answer = cli_call(
        cli, "Query", json_make("[soO?]", "job", fields_of((GStrv)asked->pdata), filter), error);
    if (answer == NULL || (argc > 0 && !ids_exist(cli, argc, argv, error)))
        return -1;
    print_jobs(cli, order, names, answer);
    bool empty = json_array_size(json_object_get(answer, "data")) == 0;
    if (!empty || filter == NULL || cli->json)
        return 0;
    if (!g_strv_contains((const char *const *)names, "archived"))
        fprintf(stderr, "fettle: archived jobs were not looked through; --archived does that\n");
    return list_explain_empty(cli, "job", filter, error) ? 0 : -1;
}

static int job_list(struct cli *cli, int argc, char **argv, GError **error)
{
    bool archived = cli_take_flag(&argc, argv, "--archived");
    bool live = cli_take_flag(&argc, argv, "--live");
    order_auto struct order order = {0};
    json_t *filter = NULL;
    if (!order_take(&order, &argc, argv, "job", error) || !take_choice(&argc, argv, &filter, error))
        return -1;
    json_autoptr owned = filter;
    if (live && (filter != NULL || order_is_asked(&order))) {
        fettle_set_error(error, WRONG_INPUT,
                         "job list: --live follows all jobs: leave out ids, --status, --filter, "
                         "--sort and --limit");
        return -1;
    }
    g_auto(GStrv) names = cli_choose_fields(cli, "job",
                                            cli->json || cli->separator != NULL
                                                ? "id,status,summary,received_ts,end_ts"
                                                : "id,status,summary,received_ts");
    if (archived)
        names = with_archived(g_steal_pointer(&names));
    if (!cli_check_fields(cli, "job", (const char *const *)names, error))
        return -1;
    if (live)
        return cli_live_jobs(cli, (const char *const *)names, error);
    return show_jobs(cli, &order, names, filter, argc, argv, error);
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
    json_object_foreach((json_t *)op, key, value) {
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
    g_auto(GStrv) chosen = cli_choose_fields(cli, "job", standard);
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

const struct command job_commands[] = {
    {"job", "list", LIST_USAGE,
     "List jobs: all, or those with these ids, of these states (pending: queued or waiting, "
     "ended: canceled, success or error; several with commas between), that a filter lets "
     "through; with --archived those in the archive, too. --limit shows the newest. With "
     "--live the list follows what happens until Ctrl-C: on a terminal it is drawn anew, elsewhere "
     "each change is a line, with --json an object a line.",
     job_list},
    {"job", "info", "ID", "Show a job, its opcodes and its log.", job_info},
    {"job", "watch", "ID",
     "Follow a job to its end, with its progress; the exit code is its outcome. Ctrl-C leaves it "
     "alone.",
     job_watch},
    {"job", "wait", "ID", "The same as watch.", job_wait},
    {0},
};
