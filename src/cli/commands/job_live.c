/*
 * `fettle job list --live`: the list of jobs, kept up to date by LUXI's WatchChanges
 * (docs/design/procedures.md, "Changes as a stream"); see cli.h.
 *
 * On a terminal as much of it as there is room for is drawn in place; elsewhere the list comes
 * first and then a line for each job whose row has changed.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/foreign.h"
#include "cli/interrupt.h"
#include "cli/screen.h"
#include "io/output.h"

#define FIXED_FIELDS 2 /* id and status stand before the chosen fields */

enum job_class { CLASS_UNDER_WAY, CLASS_QUEUED, CLASS_ENDED, CLASS_COUNT };

struct live_job {
    guint64 id;
    enum job_class class;
    json_t *row; /* cells of the chosen fields */
};

struct live {
    struct cli *cli;
    const char *const *names;
    GTree *jobs; /* id -> struct live_job */
    char *stream;
    json_int_t serial;
    int *widths;
    bool drawn;  /* on a terminal; false: line by line */
    bool listed; /* the list has been shown once */
};

/* --- the copy --- */

static gint compare_ids(gconstpointer left, gconstpointer right, gpointer unused)
{
    guint64 a = *(const guint64 *)left, b = *(const guint64 *)right;
    return a < b ? -1 : a > b;
}

static void live_job_free(void *data)
{
    struct live_job *job = data;
    json_decref(job->row);
    g_free(job);
}

static GTree *jobs_new(void)
{
    return g_tree_new_full(compare_ids, NULL, NULL, live_job_free);
}

static enum job_class class_of(const char *status)
{
    if (cli_job_final(status))
        return CLASS_ENDED;
    return g_strcmp0(status, "queued") == 0 ? CLASS_QUEUED : CLASS_UNDER_WAY;
}

/* NULL if that is no row of ours. */
static struct live_job *live_job_new(const json_t *row)
{
    const json_t *id = cli_cell_value(row, 0);
    if (!json_is_integer(id))
        return NULL;
    struct live_job *job = g_new0(struct live_job, 1);
    job->id = (guint64)json_integer_value(id);
    job->class = class_of(cli_cell_string(row, 1));
    job->row = json_array();
    for (size_t i = FIXED_FIELDS; i < json_array_size(row); i++)
        json_array_append(job->row, json_array_get(row, i));
    return job;
}

/* --- as lines --- */

static void print_object(const struct live *live, const struct live_job *job, const char *change)
{
    json_autoptr object = json_make("{ss, sI}", "change", change, "id", (json_int_t)job->id);
    for (guint i = 0; live->names[i] != NULL; i++) {
        const json_t *value = cli_cell_value(job->row, i);
        json_object_set_new(object, live->names[i],
                            value != NULL ? json_deep_copy(value) : json_null());
    }
    g_autofree char *text = foreign_json(json_to_text(object));
    printf("%s\n", text);
}

/* What is gone is in the archive: its last row says so in the place of its status. */
static void mark_archived(const struct live *live, GPtrArray *cells)
{
    for (guint i = 0; live->names[i] != NULL; i++) {
        if (strcmp(live->names[i], "status") == 0) {
            g_free(cells->pdata[i]);
            cells->pdata[i] = g_strdup("archived");
            return;
        }
    }
    g_ptr_array_add(cells, g_strdup("archived"));
}

static void print_job(struct live *live, const struct live_job *job, const char *change)
{
    if (live->drawn)
        return;
    if (live->cli->json) {
        print_object(live, job, change);
        return;
    }
    g_autoptr(GPtrArray) cells = cli_row_cells(live->cli, "job", live->names, job->row);
    if (strcmp(change, "gone") == 0)
        mark_archived(live, cells);
    g_autofree char *line = cli_cells_line(live->cli, cells, live->widths);
    printf("%s\n", line);
}

/* --- on a terminal --- */

struct view {
    GPtrArray *jobs; /* const struct live_job, borrowed */
    guint counts[CLASS_COUNT];
};

static gboolean view_add(gpointer key, gpointer value, gpointer data)
{
    struct view *view = data;
    g_ptr_array_add(view->jobs, value);
    view->counts[((const struct live_job *)value)->class]++;
    return FALSE;
}

/* What is under way first, then what comes next, then what ended last. */
static gint compare_interest(gconstpointer left, gconstpointer right)
{
    const struct live_job *a = *(const struct live_job *const *)left;
    const struct live_job *b = *(const struct live_job *const *)right;
    if (a->class != b->class)
        return (gint)a->class - (gint)b->class;
    return compare_ids(&a->id, &b->id, NULL) * (a->class == CLASS_ENDED ? -1 : 1);
}

static gint compare_jobs(gconstpointer left, gconstpointer right)
{
    const struct live_job *a = *(const struct live_job *const *)left;
    const struct live_job *b = *(const struct live_job *const *)right;
    return compare_ids(&a->id, &b->id, NULL);
}

static char *total_text(const struct view *view, guint left_out)
{
    g_autofree char *more =
        left_out > 0 ? g_strdup_printf("; %u of them not shown", left_out) : g_strdup("");
    return g_strdup_printf("%u under way, %u queued, %u ended%s. Ctrl-C ends this.",
                           view->counts[CLASS_UNDER_WAY], view->counts[CLASS_QUEUED],
                           view->counts[CLASS_ENDED], more);
}

/* Lines of the table for a terminal of so many, with the totals; NULL-terminated. */
static GPtrArray *make_lines(struct live *live, guint rows)
{
    struct view view = {.jobs = g_ptr_array_new()};
    guint room = rows > 4 ? rows - 3 : 1;
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    g_tree_foreach(live->jobs, view_add, &view);
    guint left_out = view.jobs->len > room ? view.jobs->len - room : 0;
    g_ptr_array_sort(view.jobs, compare_interest);
    g_ptr_array_set_size(view.jobs, (gint)(view.jobs->len - left_out));
    g_ptr_array_sort(view.jobs, compare_jobs);
    g_autoptr(GPtrArray) table = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    if (live->cli->headers)
        g_ptr_array_add(table, cli_title_cells("job", live->names));
    for (guint i = 0; i < view.jobs->len; i++)
        g_ptr_array_add(table, cli_row_cells(live->cli, "job", live->names,
                                             ((const struct live_job *)view.jobs->pdata[i])->row));
    /* Once for the widths of all, once for the lines. */
    for (guint i = 0; i < table->len; i++)
        g_free(cli_cells_line(live->cli, table->pdata[i], live->widths));
    for (guint i = 0; i < table->len; i++)
        g_ptr_array_add(lines, cli_cells_line(live->cli, table->pdata[i], live->widths));
    g_ptr_array_add(lines, total_text(&view, left_out));
    g_ptr_array_add(lines, NULL);
    g_ptr_array_unref(view.jobs);
    return lines;
}

/* False: nobody can see it. */
static bool show(struct live *live, GError **error)
{
    int columns, rows;
    if (!output_is_read(error))
        return false;
    if (!live->drawn)
        return true;
    screen_size(&columns, &rows);
    g_autoptr(GPtrArray) lines = make_lines(live, (guint)rows);
    screen_draw((const char *const *)lines->pdata);
    return true;
}

/* The last view stays on the terminal, without the line below it. */
static void leave(struct live *live)
{
    int columns, rows;
    if (!live->drawn || !live->listed)
        return;
    screen_clear();
    screen_size(&columns, &rows);
    g_autoptr(GPtrArray) lines = make_lines(live, (guint)rows);
    for (guint i = 0; i + 2 < lines->len; i++)
        printf("%s\n", (const char *)lines->pdata[i]);
}

/* --- what has changed --- */

/* Takes the job over. A row that says what it said is no news. */
static void put_job(struct live *live, struct live_job *job)
{
    const struct live_job *known = g_tree_lookup(live->jobs, &job->id);
    if (known == NULL || !json_equal(known->row, job->row))
        print_job(live, job, live->listed ? "changed" : "listed");
    g_tree_replace(live->jobs, &job->id, job);
}

static void remove_job(struct live *live, guint64 id)
{
    const struct live_job *known = g_tree_lookup(live->jobs, &id);
    if (known == NULL)
        return;
    print_job(live, known, "gone");
    g_tree_remove(live->jobs, &id);
}

static bool take_change(struct live *live, const json_t *change, GError **error)
{
    const json_t *row = json_array_get(change, 2);
    struct live_job *job = json_is_array(row) ? live_job_new(row) : NULL;
    const char *key = json_string_value(json_array_get(change, 1));
    guint64 id;
    if (job != NULL) {
        put_job(live, job);
    } else if (json_is_null(row) && key != NULL && cli_parse_job(key, &id, NULL)) {
        remove_job(live, id);
    } else {
        fettle_set_error(error, PROTOCOL, "luxid told of a change that is none");
        return false;
    }
    return true;
}

struct missing {
    GTree *found;
    GArray *ids;
};

static gboolean note_missing(gpointer key, gpointer value, gpointer data)
{
    struct missing *missing = data;
    if (g_tree_lookup(missing->found, key) == NULL)
        g_array_append_vals(missing->ids, key, 1);
    return FALSE;
}

static json_t *asked_fields(const struct live *live)
{
    json_t *fields = json_make("[ss]", "id", "status");
    for (guint i = 0; live->names[i] != NULL; i++)
        json_array_append_new(fields, json_string(live->names[i]));
    return fields;
}

/* The first list as a table: the columns have the widths that all of it needs. */
static void begin_table(struct live *live, const json_t *rows)
{
    g_autoptr(GPtrArray) titles = cli_title_cells("job", live->names);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        struct live_job *job = live_job_new(json_array_get(rows, i));
        if (job == NULL)
            continue;
        g_autoptr(GPtrArray) cells = cli_row_cells(live->cli, "job", live->names, job->row);
        g_free(cli_cells_line(live->cli, cells, live->widths));
        live_job_free(job);
    }
    if (!live->cli->headers)
        return;
    g_autofree char *line = cli_cells_line(live->cli, titles, live->widths);
    printf("%s\n", line);
}

/* The whole list; of one that was shown already, what is different. */
static bool list_all(struct live *live, GError **error)
{
    json_autoptr answer =
        cli_call(live->cli, "Query", json_make("[son]", "job", asked_fields(live)), error);
    const json_t *rows = json_object_get(answer, "data");
    g_autoptr(GTree) found = jobs_new();
    g_autoptr(GArray) gone = g_array_new(FALSE, FALSE, sizeof(guint64));
    if (answer == NULL)
        return false;
    if (!live->listed && !live->drawn && !live->cli->json)
        begin_table(live, rows);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        struct live_job *job = live_job_new(json_array_get(rows, i));
        if (job == NULL)
            continue;
        struct live_job *same = live_job_new(json_array_get(rows, i));
        g_tree_replace(found, &same->id, same);
        put_job(live, job);
    }
    g_tree_foreach(live->jobs, note_missing, &(struct missing){found, gone});
    for (guint i = 0; i < gone->len; i++)
        remove_job(live, g_array_index(gone, guint64, i));
    live->listed = true;
    return true;
}

/* --- following --- */

static json_t *ask(struct live *live, GError **error)
{
    return cli_call(live->cli, "WatchChanges",
                    json_make("[{so} s I i]", "job", asked_fields(live), live->stream, live->serial,
                              LIVE_WAIT_S),
                    error);
}

/* One question, and what follows from its answer. */
static bool follow(struct live *live, GError **error)
{
    json_autoptr answer = ask(live, error);
    if (answer == NULL)
        return false;
    const char *stream = json_string_value(json_object_get(answer, "stream"));
    const json_t *changes = json_object_get(answer, "changes");
    bool anew = json_is_true(json_object_get(answer, "anew"));
    if (live->listed && anew) {
        g_autofree char *text = g_strdup_printf("The list is read anew: %s.",
                                                json_string_value(json_object_get(answer, "why")));
        screen_print(text);
    }
    if (anew && !list_all(live, error))
        return false;
    for (size_t i = 0; i < json_array_size(changes); i++)
        if (!take_change(live, json_array_get(changes, i), error))
            return false;
    g_free(live->stream);
    live->stream = g_strdup(stream != NULL ? stream : "");
    live->serial = json_integer_value(json_object_get(answer, "serial"));
    g_clear_pointer(&live->cli->away, g_free);
    return show(live, error);
}

static int follow_until_left(struct live *live, GError **error)
{
    for (;;) {
        g_autoptr(GError) reason = NULL;
        if (follow(live, &reason))
            continue;
        if (fettle_error_is(reason, DETACHED))
            return 0;
        if (!live->listed || !cli_is_passing(reason)) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return -1;
        }
        if (!cli_wait_for_luxid(live->cli, false, reason))
            return 0;
    }
}

int cli_live_jobs(struct cli *cli, const char *const *names, GError **error)
{
    if (g_strv_contains(names, "archived")) {
        fettle_set_error(error, WRONG_INPUT,
                         "--live shows jobs that are not in the archive: leave out \"archived\"");
        return -1;
    }
    struct live live = {.cli = cli, .names = names, .jobs = jobs_new(), .stream = g_strdup("")};
    live.widths = g_new0(int, g_strv_length((char **)names) + 1);
    live.drawn = !cli->json && cli->separator == NULL && screen_live();
    cli_interrupt_catch();
    cli->interruptible = true;
    int code = follow_until_left(&live, error);
    cli->interruptible = false;
    leave(&live);
    g_tree_unref(live.jobs);
    g_free(live.stream);
    g_free(live.widths);
    return code;
}
