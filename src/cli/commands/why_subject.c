/* See why_subject.h. */
#include "cli/commands/why_subject.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands/why_job.h"

/* So many of the newest jobs are looked through. */
#define JOBS_LOOKED_AT 5000

const char *const why_fields[] = {"at",         "subject_name", "state",    "verdict",   "summary",
                                  "evidence",   "policy",       "rejected", "repair_id", "jobs",
                                  "next_check", "serial_no",    "event",    "level",     "task",
                                  "old",        "new",          "rule",     "host",      NULL};

static const char *const job_fields[] = {"id",   "status",      "summary",  "ops",
                                         "user", "received_ts", "archived", NULL};
enum { ID, STATUS, SUMMARY, OPS, USER, RECEIVED };

static bool names(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (g_strcmp0(json_string_value(json_array_get(list, i)), name) == 0)
            return true;
    return false;
}

/* --- one job as an entry --- */

/* What of an opcode's parameters tells what was done, where its summary does not. */
static const char *const telling[] = {"drained", "offline",     "master_candidate", "statement",
                                      "mode",    "target_node", "remote_node"};

static bool op_names(const json_t *op, const char *name)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)op, key, value)
        if (g_strcmp0(json_string_value(value), name) == 0 || names(value, name))
            return true;
    return false;
}

/* Those that name it; all, if none does: they may name it by its UUID. */
static json_t *ops_about(const json_t *ops, const char *name)
{
    json_t *about = json_array();
    for (size_t i = 0; i < json_array_size(ops); i++)
        if (op_names(json_array_get(ops, i), name))
            json_array_append(about, json_array_get(ops, i));
    if (json_array_size(about) == 0)
        json_array_extend(about, (json_t *)ops);
    return about;
}

/* Who, and what was said about it. */
static json_t *told_of(const json_t *row, const char *name)
{
    const char *user = cli_cell_string(row, USER);
    json_autoptr ops = ops_about(cli_cell_value(row, OPS), name);
    json_t *lines = json_array();
    json_array_append_new(lines, json_string(*user ? user : "an account that is not on record"));
    why_add_reasons(ops, lines);
    size_t i;
    const json_t *op;
    json_array_foreach(ops, i, op) {
        const char *dry = json_is_true(json_object_get(op, "dry_run")) ? " (dry run)" : "";
        for (size_t k = 0; k < G_N_ELEMENTS(telling); k++) {
            const char *value = json_string_value(json_object_get(op, telling[k]));
            if (value != NULL && *value != '\0')
                json_array_append_new(lines, json_sprintf("%s: %s%s", telling[k], value, dry));
        }
    }
    return lines;
}

static char *summary_of(const json_t *row)
{
    const json_t *parts = cli_cell_value(row, SUMMARY), *part;
    g_autoptr(GString) text = g_string_new(NULL);
    size_t i;
    json_array_foreach(parts, i, part)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", json_string_value(part));
    g_string_append_printf(text, ": %s", cli_cell_string(row, STATUS));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static json_t *entry_of(const json_t *row, const char *name)
{
    json_int_t id = json_integer_value(cli_cell_value(row, ID));
    const json_t *at = json_array_get(cli_cell_value(row, RECEIVED), 0);
    const char *status = cli_cell_string(row, STATUS);
    bool more = !cli_job_final(status) || strcmp(status, "error") == 0;
    g_autofree char *number = g_strdup_printf("%" JSON_INTEGER_FORMAT, id);
    g_autofree char *state = g_strdup_printf("Job %s", number);
    g_autofree char *next = more ? g_strdup_printf("fettle why %s", number) : g_strdup("");
    g_autofree char *summary = summary_of(row);
    json_t *entry =
        json_make("[[iI], [is], [is], [is], [is], [io], [is], [i[]], [is], [i[s]], [is], [ii]]", 0,
                  json_integer_value(at), 0, name, 0, state, 0, WHY_OF_JOB, 0, summary, 0,
                  told_of(row, name), 0, "", 0, 0, "", 0, number, 0, next, 0, 0);
    for (int i = WHY_EVENT; why_fields[i] != NULL; i++)
        json_array_append_new(entry, json_make("[is]", 0, ""));
    return entry;
}

/* --- all of them --- */

static void note_jobs(const json_t *decisions, GHashTable *ids)
{
    for (size_t i = 0; i < json_array_size(decisions); i++) {
        const json_t *jobs = cli_cell_value(json_array_get(decisions, i), WHY_JOB_IDS), *job;
        size_t k;
        json_array_foreach(jobs, k, job)
            g_hash_table_add(
                ids, GINT_TO_POINTER((int)g_ascii_strtoll(json_string_value(job), NULL, 10)));
    }
}

static gint newest_first(const void *a, const void *b)
{
    json_int_t left = json_integer_value(cli_cell_value(*(json_t *const *)a, ID));
    json_int_t right = json_integer_value(cli_cell_value(*(json_t *const *)b, ID));
    return left > right ? -1 : left < right;
}

json_t *why_jobs_about(struct cli *cli, const char *name, const json_t *decisions, GError **error)
{
    json_autoptr info = cli_call(cli, "QueryClusterInfo", json_array(), error);
    const json_t *newest = json_object_get(info, "jobs_newest");
    if (info && !newest) { /* a luxid before this version: its jobs have no subjects */
        fprintf(stderr,
                "fettle: which jobs were about %s is not told: luxid is of a version that cannot "
                "tell\n",
                name);
        return json_null();
    }
    json_autoptr rows =
        info == NULL ? NULL
                     : cli_query(cli, "job", job_fields,
                                 json_make("[s[sss][ssI]]", "&", "=[]", "subjects", name, ">", "id",
                                           json_integer_value(newest) - JOBS_LOOKED_AT),
                                 error);
    if (rows == NULL)
        return NULL;
    g_autoptr(GHashTable) decided = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    json_t *entries = json_array();
    note_jobs(decisions, decided);
    for (size_t i = 0; i < json_array_size(rows); i++)
        g_ptr_array_add(list, json_array_get(rows, i));
    g_ptr_array_sort(list, newest_first);
    for (guint i = 0; i < list->len; i++) {
        int id = (int)json_integer_value(cli_cell_value(list->pdata[i], ID));
        if (!g_hash_table_contains(decided, GINT_TO_POINTER(id)))
            json_array_append_new(entries, entry_of(list->pdata[i], name));
    }
    return entries;
}

static gint by_serial(const void *a, const void *b)
{
    double left = json_number_value(cli_cell_value(*(json_t *const *)a, WHY_SERIAL));
    double right = json_number_value(cli_cell_value(*(json_t *const *)b, WHY_SERIAL));
    return left > right ? -1 : left < right;
}

/* Each list keeps its own order, which is not that of a clock: clocks can be set. */
json_t *why_merge(const json_t *decisions, const json_t *jobs)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    for (size_t i = 0; i < json_array_size(decisions); i++)
        g_ptr_array_add(list, json_array_get(decisions, i));
    g_ptr_array_sort(list, by_serial);
    json_t *merged = json_array();
    size_t job = 0;
    for (guint i = 0; i < list->len; i++) {
        double at = json_number_value(cli_cell_value(list->pdata[i], WHY_AT));
        for (; job < json_array_size(jobs) &&
               json_number_value(cli_cell_value(json_array_get(jobs, job), WHY_AT)) > at;
             job++)
            json_array_append(merged, json_array_get(jobs, job));
        json_array_append(merged, list->pdata[i]);
    }
    for (; job < json_array_size(jobs); job++)
        json_array_append(merged, json_array_get(jobs, job));
    return merged;
}

/* --- a node --- */

static bool tells(const json_t *job, const char *what)
{
    const json_t *told = cli_cell_value(job, WHY_EVIDENCE), *line;
    size_t i;
    json_array_foreach(told, i, line)
        if (strcmp(json_string_value(line), what) == 0)
            return true;
    return false;
}

/* The first that has drained it, of those about it, since it was last in use. */
static const json_t *who_drained(const json_t *jobs)
{
    const json_t *first = NULL;
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        if (!g_str_has_suffix(cli_cell_string(job, WHY_SUMMARY), ": success"))
            continue;
        if (tells(job, "drained: no"))
            break;
        if (tells(job, "drained: yes"))
            first = job;
    }
    return first;
}

bool why_print_drained(struct cli *cli, const char *node, const json_t *jobs, bool *said,
                       GError **error)
{
    json_autoptr rows = cli_query(cli, "node", (const char *const[]){"drained", "offline", NULL},
                                  json_make("[sss]", "=", "name", node), error);
    const json_t *row = json_array_get(rows, 0), *job = who_drained(jobs);
    if (row == NULL || !json_is_true(cli_cell_value(row, 0)))
        return rows != NULL;
    *said = true;
    if (json_is_null(jobs)) {
        printf("%s is drained. Which job has done it is not known here.\n", node);
        return true;
    }
    if (job == NULL) {
        printf("%s is drained. The job that has done it is none of the newest %d any more.\n", node,
               JOBS_LOOKED_AT);
        return true;
    }
    g_autofree char *when = cli_time_text((gint64)json_number_value(cli_cell_value(job, WHY_AT)));
    g_autofree char *id = g_ascii_strdown(cli_cell_string(job, WHY_STATE), -1);
    printf("%s is drained since %s, by %s of %s", node, when, id,
           json_string_value(json_array_get(cli_cell_value(job, WHY_EVIDENCE), 0)));
    const json_t *told = cli_cell_value(job, WHY_EVIDENCE);
    for (size_t i = 1; i < json_array_size(told); i++)
        if (strcmp(json_string_value(json_array_get(told, i)), "drained: yes") != 0)
            printf("; %s", json_string_value(json_array_get(told, i)));
    printf("\n");
    return true;
}

static void print_waits(const char *job, const char *node, bool *said)
{
    printf("Job %s waits for %s: fettle why %s\n", job, node, job);
    *said = true;
}

bool why_print_waiting(struct cli *cli, const char *node, bool *said, GError **error)
{
    json_autoptr waiters =
        cli_query(cli, "waiter", (const char *const[]){"job", "nodes", NULL}, NULL, error);
    json_autoptr info =
        waiters == NULL ? NULL : cli_call(cli, "QueryClusterInfo", json_array(), error);
    if (info == NULL)
        return false;
    for (size_t i = 0; i < json_array_size(waiters); i++) {
        const json_t *row = json_array_get(waiters, i);
        if (names(cli_cell_value(row, 1), node))
            print_waits(cli_cell_string(row, 0), node, said);
    }
    if (!names(json_object_get(info, "nodes_pending"), node))
        return true;
    json_autoptr old = why_older_jobs(cli, info, error);
    for (size_t i = 0; i < json_array_size(old); i++) {
        g_autofree char *id = g_strdup_printf(
            "%" JSON_INTEGER_FORMAT, json_integer_value(cli_cell_value(json_array_get(old, i), 0)));
        print_waits(id, node, said);
    }
    return old != NULL;
}

/* --- the watcher --- */

bool why_print_pause(struct cli *cli, GError **error)
{
    json_autoptr values =
        cli_call(cli, "QueryConfigValues", json_make("[[s]]", "watcher_pause"), error);
    const json_t *pause = json_array_get(values, 0);
    if (!json_is_integer(pause))
        return values != NULL;
    g_autofree char *until = cli_time_text((gint64)json_integer_value(pause));
    printf("The watcher is paused until %s: nothing is decided and nothing repaired before. To end "
           "that: fettle queue pause-watcher 0\n",
           until);
    return true;
}
