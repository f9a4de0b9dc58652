/* Jobs that a job has submitted (node evacuate, node migrate): waiting for them all; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/screen.h"

#define LOOK_AGAIN_S 1 /* between two looks at all of them, if the first one has no news */

struct child {
    guint64 id;
    char *status, *summary, *why, *code; /* `code`: name of the error, NULL or "": none */
    struct progress progress;
    json_int_t serial;
    bool told;
};

static void child_free(void *data)
{
    struct child *child = data;
    g_free(child->status);
    g_free(child->summary);
    g_free(child->why);
    g_free(child->code);
    progress_clear(&child->progress);
    g_free(child);
}

/* --- which --- */

/* An id, or Ganeti's [true, id] and [false, reason]. */
static void take_one(const json_t *item, GArray *ids, GPtrArray *refused)
{
    const json_t *value = json_is_array(item) ? json_array_get(item, 1) : item;
    if (json_is_integer(value)) {
        guint64 id = (guint64)json_integer_value(value);
        g_array_append_val(ids, id);
    } else if (json_is_string(value)) {
        g_ptr_array_add(refused, g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_JOB_FAILED,
                                                     json_string_value(value)));
    }
}

GArray *cli_child_jobs(const json_t *result, GPtrArray *refused)
{
    const json_t *jobs = json_object_get(result, "jobs");
    if (!json_is_array(jobs))
        return NULL;
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (size_t i = 0; i < json_array_size(jobs); i++)
        take_one(json_array_get(jobs, i), ids, refused);
    return ids;
}

/* --- how they are --- */

static void set_text(char **member, const char *text)
{
    g_free(*member);
    *member = g_strdup(text != NULL ? text : "");
}

static void take_log(struct child *child, const json_t *log)
{
    for (size_t i = 0; i < json_array_size(log); i++) {
        const json_t *entry = json_array_get(log, i);
        json_int_t serial = json_integer_value(json_array_get(entry, 0));
        if (serial > child->serial) {
            child->serial = serial;
            progress_take(&child->progress, entry);
        }
    }
}

static void take_row(struct child *child, const json_t *row)
{
    g_autoptr(GError) failure = NULL;
    if (!json_is_array(row)) { /* archived, or never there */
        set_text(&child->status, "error");
        set_text(&child->why, "the job does not exist any more");
        set_text(&child->code, "unknown_entity");
        return;
    }
    set_text(&child->status, json_string_value(json_array_get(row, 0)));
    set_text(&child->summary, json_string_value(json_array_get(json_array_get(row, 1), 0)));
    const json_t *logs = json_array_get(row, 3);
    for (size_t i = 0; i < json_array_size(logs); i++)
        take_log(child, json_array_get(logs, i));
    if (strcmp(child->status, "canceled") == 0)
        set_text(&child->code, "canceled");
    if (strcmp(child->status, "error") != 0)
        return;
    cli_set_job_error(child->id, json_array_get(row, 2), &failure);
    set_text(&child->why, failure->message);
    set_text(&child->code, fettle_error_name(failure));
}

static bool look(struct cli *cli, const GPtrArray *children, GError **error)
{
    json_autoptr ids = json_array();
    for (guint i = 0; i < children->len; i++)
        json_array_append_new(ids,
                              json_integer((json_int_t)((struct child *)children->pdata[i])->id));
    json_autoptr rows = cli_call_patiently(
        cli, "QueryJobs", json_make("[O[ssss]]", ids, "status", "summary", "opresult", "oplog"),
        error);
    for (guint i = 0; rows != NULL && i < children->len; i++)
        take_row(children->pdata[i], json_array_get(rows, i));
    return rows != NULL;
}

static const struct child *first_unfinished(const GPtrArray *children)
{
    for (guint i = 0; i < children->len; i++)
        if (!cli_job_final(((const struct child *)children->pdata[i])->status))
            return children->pdata[i];
    return NULL;
}

/* --- what is shown meanwhile --- */

static char *child_line(const struct child *child, int columns)
{
    g_autofree char *head = g_strdup_printf("job %" G_GUINT64_FORMAT "  %-40s  %-9s", child->id,
                                            child->summary, child->status);
    if (child->progress.what == NULL || cli_job_final(child->status))
        return g_steal_pointer(&head);
    g_autofree char *bar =
        progress_bar(&child->progress, columns - (int)g_utf8_strlen(head, -1) - 2);
    return g_strdup_printf("%s  %s", head, bar);
}

/* Those that run before those that wait; the ended ones are a number. */
static void draw(const GPtrArray *children)
{
    int columns, rows;
    guint ended = 0, left_out = 0;
    screen_size(&columns, &rows);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < children->len; i++) {
        const struct child *child = children->pdata[i];
        if (cli_job_final(child->status))
            ended++;
        else if ((int)lines->len < rows - 3)
            g_ptr_array_add(lines, child_line(child, columns));
        else
            left_out++;
    }
    GString *total = g_string_new(NULL);
    g_string_printf(total, "%u of %u jobs have ended", ended, children->len);
    if (left_out > 0)
        g_string_append_printf(total, "; %u more are not shown", left_out);
    g_ptr_array_add(lines, g_string_free(total, FALSE));
    g_ptr_array_add(lines, NULL);
    screen_draw((const char *const *)lines->pdata);
}

static void tell(const GPtrArray *children)
{
    for (guint i = 0; i < children->len; i++) {
        struct child *child = children->pdata[i];
        if (child->told || !cli_job_final(child->status))
            continue;
        child->told = true;
        g_autofree char *line = g_strdup_printf("job %" G_GUINT64_FORMAT " %s: %s", child->id,
                                                child->summary, child->status);
        screen_print(line);
    }
    if (screen_live())
        draw(children);
}

/* Why the children are not followed any more, with those that may go on. */
static void set_left(const GPtrArray *children, GError *reason, GError **error)
{
    g_autoptr(GArray) jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    const guint64 *ids;
    for (guint i = 0; i < children->len; i++) {
        const struct child *child = children->pdata[i];
        if (!cli_job_final(child->status))
            g_array_append_val(jobs, child->id);
    }
    ids = (const guint64 *)(void *)jobs->data;
    if (fettle_error_is(reason, DETACHED)) {
        cli_set_detached(ids, jobs->len, error);
        g_error_free(reason);
        return;
    }
    cli_prefix_followed(ids, jobs->len, &reason);
    g_propagate_error(error, reason);
}

/* Waits for news of one of them, or a little while. */
static bool wait_one(struct cli *cli, const struct child *child, GError **error)
{
    json_autoptr news = cli_call_patiently(cli, "WaitForJobChange",
                                           json_make("[I[s][s]Ii]", (json_int_t)child->id, "status",
                                                     child->status, child->serial, LOOK_AGAIN_S),
                                           error);
    return news != NULL;
}

static bool wait_all(struct cli *cli, const GPtrArray *children, GError **error)
{
    g_autoptr(GError) reason = NULL;
    while (look(cli, children, &reason)) {
        const struct child *next = first_unfinished(children);
        if (!cli->json)
            tell(children);
        if (next == NULL)
            return true;
        if (!wait_one(cli, next, &reason))
            break;
    }
    set_left(children, g_steal_pointer(&reason), error);
    return false;
}

/* --- how they ended --- */

static json_t *to_json(const GPtrArray *children, const GPtrArray *refused)
{
    json_t *list = json_array();
    for (guint i = 0; i < children->len; i++) {
        const struct child *child = children->pdata[i];
        json_array_append_new(list, json_make("{sI ss ss ss ss}", "job", (json_int_t)child->id,
                                              "summary", child->summary, "status", child->status,
                                              "error", child->why != NULL ? child->why : "", "code",
                                              child->code != NULL ? child->code : ""));
    }
    for (guint i = 0; i < refused->len; i++) {
        const GError *error = refused->pdata[i];
        json_array_append_new(list, json_make("{sn ss ss ss ss}", "job", "summary", "", "status",
                                              "refused", "error", error->message, "code",
                                              fettle_error_name(error)));
    }
    return list;
}

static void print_table(const struct cli *cli, const json_t *list)
{
    json_autoptr rows = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        json_array_append_new(rows, json_make("[[iO][iO][iO][iO]]", 0, json_object_get(one, "job"),
                                              0, json_object_get(one, "summary"), 0,
                                              json_object_get(one, "status"), 0,
                                              json_object_get(one, "error")));
    }
    if (json_array_size(rows) > 0)
        cli_print_rows(cli, NULL, (const char *const[]){"job", "summary", "status", "error", NULL},
                       rows);
}

static guint count_failed(const json_t *list)
{
    guint failed = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *status = json_object_get(json_array_get(list, i), "status");
        failed += strcmp(json_string_value(status), "success") != 0;
    }
    return failed;
}

int cli_follow_children(struct cli *cli, const GArray *jobs, const GPtrArray *refused,
                        json_t **ret_jobs, GError **error)
{
    g_autoptr(GPtrArray) children = g_ptr_array_new_with_free_func(child_free);
    for (guint i = 0; i < jobs->len; i++) {
        struct child *child = g_new0(struct child, 1);
        child->id = g_array_index(jobs, guint64, i);
        child->serial = -1;
        g_ptr_array_add(children, child);
    }
    cli_interrupt_catch();
    cli->interruptible = jobs->len > 0;
    bool ok = wait_all(cli, children, error);
    cli->interruptible = false;
    screen_clear();
    if (!ok)
        return -1;
    json_autoptr list = to_json(children, refused);
    if (!cli->json)
        print_table(cli, list);
    *ret_jobs = json_incref(list);
    guint failed = count_failed(list);
    if (failed == 0)
        return 0;
    fettle_set_error(error, JOB_FAILED,
                     "%u of %zu jobs did not succeed; see what each did with: fettle job info ID",
                     failed, json_array_size(list));
    return -1;
}
