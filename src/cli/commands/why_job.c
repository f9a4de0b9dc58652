/* See why_job.h. */
#include "cli/commands/why_job.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/why_running.h"

static const char *const job_fields[] = {
    "id",       "status",  "summary", "ops",    "held",    "held_since", "held_by", "holds",
    "opstatus", "opstart", "opexec",  "cancel", "kill_at", "oplog",      "epoch",   NULL};
enum { ID, STATUS, SUMMARY, OPS, HELD, HELD_SINCE, HELD_BY, HOLDS, EPOCH = 14 };

/* What luxid adds says no more than what is printed anyway. */
static bool is_of_luxid(const char *who)
{
    return g_str_has_prefix(who, "gnt:opcode:") || g_str_has_prefix(who, "gnt:daemon:luxid:");
}

/* [who, text, when] each; `did` stands behind who. */
static void add_reasons(const json_t *ops, const char *did, json_t *list)
{
    const json_t *reasons = json_object_get(json_array_get(ops, 0), "reason");
    for (size_t i = 0; i < json_array_size(reasons); i++) {
        const char *who, *text;
        if (json_unpack(json_array_get(reasons, i), "[ss]", &who, &text) == 0 && !is_of_luxid(who))
            json_array_append_new(
                list, json_sprintf("%s%s%s%s", who, did, *text != '\0' ? ": " : "", text));
    }
}

void why_add_reasons(const json_t *ops, json_t *list)
{
    add_reasons(ops, "", list);
}

static void print_reasons(const json_t *ops)
{
    json_autoptr lines = json_array();
    add_reasons(ops, " wanted it", lines);
    for (size_t i = 0; i < json_array_size(lines); i++)
        printf("%s\n", json_string_value(json_array_get(lines, i)));
}

static bool is_dry(const json_t *ops)
{
    size_t i;
    const json_t *op;
    json_array_foreach(ops, i, op)
        if (!json_is_true(json_object_get(op, "dry_run")))
            return false;
    return json_array_size(ops) > 0;
}

static bool print_ended(struct cli *cli, guint64 job, const char *status, const json_t *ops,
                        GError **error)
{
    json_autoptr results = NULL;
    const char *message = NULL, *code;
    if (strcmp(status, "error") == 0) {
        results = cli_job_results(cli, job, error);
        if (results == NULL)
            return false;
        message = cli_job_message(results, &code);
    }
    printf("Job %" G_GUINT64_FORMAT "%s %s%s%s\n", job,
           is_dry(ops) ? ", a dry run, which changes nothing," : "",
           strcmp(status, "success") == 0 ? "has succeeded."
           : strcmp(status, "error") == 0 ? "has failed"
                                          : "was canceled.",
           message != NULL ? ": " : "", message != NULL ? message : "");
    return true;
}

/* --- jobs of a master before this one --- */

json_t *why_older_jobs(struct cli *cli, const json_t *info, GError **error)
{
    return cli_query(cli, "job", (const char *const[]){"id", NULL},
                     json_make("[s[s[sss][sss][sss]][s[ssI]]]", "&", "|", "=", "status", "waiting",
                               "=", "status", "running", "=", "status", "canceling", "!", "=",
                               "epoch", json_integer_value(json_object_get(info, "epoch"))),
                     error);
}

/* Of such a job: the nodes that have not heard of this master yet, which is what it waits for;
 * NULL: it is none. False on error. */
static bool find_pending(struct cli *cli, const json_t *epoch, json_t **ret_pending, GError **error)
{
    bool started = json_integer_value(epoch) > 0;
    json_autoptr info = started ? cli_call(cli, "QueryClusterInfo", json_array(), error) : NULL;
    bool older = info != NULL && !json_equal(json_object_get(info, "epoch"), epoch);
    *ret_pending = older ? json_incref(json_object_get(info, "nodes_pending")) : NULL;
    return !started || info != NULL;
}

/* --- a queued job --- */

/* The jobs that must end before and have not, as objects with the states that are wanted (none:
 * any); NULL on error. */
static json_t *unmet(struct cli *cli, const json_t *ops, GError **error)
{
    json_autoptr filter = json_make("[s]", "|");
    json_autoptr wanted = json_object();
    size_t i, k;
    json_t *op, *item;
    json_array_foreach(ops, i, op) {
        json_array_foreach(json_object_get(op, "depends"), k, item) {
            g_autofree char *id = g_strdup_printf("%" JSON_INTEGER_FORMAT,
                                                  json_integer_value(json_array_get(item, 0)));
            json_array_append_new(filter, json_make("[ssO]", "=", "id", json_array_get(item, 0)));
            json_object_set(wanted, id, json_array_get(item, 1));
        }
    }
    json_t *left = json_array();
    if (json_array_size(filter) == 1)
        return left;
    json_autoptr rows = cli_query(cli, "job", (const char *const[]){"id", "status", NULL},
                                  json_incref(filter), error);
    json_array_foreach(rows, i, item) {
        json_int_t number = json_integer_value(cli_cell_value(item, 0));
        g_autofree char *id = g_strdup_printf("%" JSON_INTEGER_FORMAT, number);
        if (!cli_job_final(cli_cell_string(item, 1)))
            json_array_append_new(left, json_make("{sI ss sO}", "id", number, "status",
                                                  cli_cell_string(item, 1), "wanted",
                                                  json_object_get(wanted, id)));
    }
    if (rows == NULL)
        g_clear_pointer(&left, json_decref);
    return left;
}

/* What of another job would let it go. */
static bool print_behind(struct cli *cli, json_int_t by, GError **error)
{
    json_autoptr rows =
        cli_query(cli, "job", (const char *const[]){"status", "summary", "epoch", NULL},
                  json_make("[ssI]", "=", "id", by), error);
    json_autoptr pending = NULL;
    if (rows == NULL ||
        !find_pending(cli, cli_cell_value(json_array_get(rows, 0), 2), &pending, error))
        return false;
    const json_t *other = json_array_get(rows, 0);
    const char *what = json_string_value(json_array_get(cli_cell_value(other, 1), 0));
    printf("  goes on once job %" JSON_INTEGER_FORMAT " has ended%s%s%s%s%s\n", by,
           other != NULL ? " (" : "", what != NULL ? what : "", what != NULL ? ", " : "",
           other != NULL ? cli_cell_string(other, 0) : "", other != NULL ? ")" : "");
    printf("  what that one waits for: fettle why %" JSON_INTEGER_FORMAT, by);
    if (pending == NULL)
        printf("; to end it: fettle job cancel %" JSON_INTEGER_FORMAT, by);
    printf("\n");
    return true;
}

/* What it waits for, since when, and what would let it go. */
static bool print_hold(struct cli *cli, const json_t *hold, GError **error)
{
    const char *kind = json_string_value(json_object_get(hold, "kind"));
    json_int_t job = json_integer_value(json_object_get(hold, "job"));
    g_autofree char *since =
        cli_time_text((gint64)json_integer_value(json_object_get(hold, "since")));
    printf("  waits since %s, because %s\n", since,
           json_string_value(json_object_get(hold, "why")));
    if (g_strcmp0(kind, "locks") == 0)
        return print_behind(cli, job, error);
    printf("  goes on once %s", json_string_value(json_object_get(hold, "until")));
    if (g_strcmp0(kind, "dependency") == 0)
        printf(": fettle why %" JSON_INTEGER_FORMAT, job);
    printf("\n");
    if (g_strcmp0(kind, "rule") == 0)
        printf("  your rules about jobs, and how to take one away: fettle queue filter list; "
               "fettle queue filter remove UUID\n");
    return true;
}

/* What keeps it from its turn. */
static int print_queued(struct cli *cli, const json_t *row, GError **error)
{
    const json_t *holds = cli_cell_value(row, HOLDS), *hold;
    size_t i;
    printf(" and\n");
    json_array_foreach(holds, i, hold)
        if (!print_hold(cli, hold, error))
            return -1;
    if (json_array_size(holds) == 0)
        printf("  is about to start: nothing holds it\n");
    return 0;
}

static int print_job(struct cli *cli, guint64 id, const json_t *row, const json_t *waiters,
                     GError **error)
{
    const char *status = cli_cell_string(row, STATUS);
    if (cli_job_final(status)) {
        bool told = print_ended(cli, id, status, cli_cell_value(row, OPS), error);
        if (told)
            print_reasons(cli_cell_value(row, OPS));
        return told ? 0 : -1;
    }
    printf("Job %" G_GUINT64_FORMAT " is %s", id, status);
    if (strcmp(status, "queued") == 0)
        return print_queued(cli, row, error);
    printf("\n");
    json_autoptr pending = NULL;
    if (!find_pending(cli, cli_cell_value(row, EPOCH), &pending, error))
        return -1;
    why_running_print(id, row, job_fields, waiters, pending);
    return 0;
}

/* --- as JSON --- */

/* The requests for locks that the job waits with, and those behind which it does. */
static void add_waits(const json_t *waiters, const char *job, GHashTable *told, json_t *list)
{
    json_t *row = (json_t *)why_waiter_of(waiters, job);
    if (row == NULL || !g_hash_table_add(told, (void *)job))
        return;
    json_array_append(list, row);
    const json_t *blockers = cli_cell_value(row, WHY_BLOCKERS);
    for (size_t i = 0; i < json_array_size(blockers); i++)
        add_waits(waiters, json_string_value(json_array_get(json_array_get(blockers, i), 0)), told,
                  list);
}

static void print_json(const json_t *row, json_t *dependencies, const json_t *waiters)
{
    g_autoptr(GHashTable) told = g_hash_table_new(g_str_hash, g_str_equal);
    g_autofree char *id =
        g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(cli_cell_value(row, ID)));
    json_autoptr waits = json_array();
    json_autoptr rows = json_make("[O]", row);
    json_autoptr jobs = cli_rows_as_objects(job_fields, rows);
    json_t *object = json_array_get(jobs, 0);
    add_waits(waiters, id, told, waits);
    json_object_del(object, "ops");
    json_object_del(object, "oplog");
    json_object_set(object, "log", why_last_entry(row, job_fields));
    json_object_set(object, "dependencies", dependencies);
    json_object_set_new(object, "waits", cli_rows_as_objects(why_wait_fields, waits));
    cli_print_json(jobs);
}

int why_job(struct cli *cli, const char *job, GError **error)
{
    guint64 id = g_ascii_strtoull(job, NULL, 10);
    json_autoptr rows =
        cli_query(cli, "job", job_fields, json_make("[ssI]", "=", "id", (json_int_t)id), error);
    json_autoptr waiters =
        rows == NULL ? NULL : cli_query(cli, "waiter", why_wait_fields, NULL, error);
    if (waiters == NULL)
        return -1;
    if (json_array_size(rows) == 0) {
        fettle_set_error(error, UNKNOWN_ENTITY, "there is no job %s", job);
        return -1;
    }
    json_t *row = json_array_get(rows, 0);
    if (!cli->json)
        return print_job(cli, id, row, waiters, error);
    json_autoptr dependencies = cli_job_final(cli_cell_string(row, STATUS))
                                    ? json_array()
                                    : unmet(cli, cli_cell_value(row, OPS), error);
    if (dependencies == NULL)
        return -1;
    print_json(row, dependencies, waiters);
    return 0;
}
