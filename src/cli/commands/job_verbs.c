/* What is done to jobs: cancel, change-priority, archive, autoarchive. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/time_text.h"
#include "cli/commands/job_select.h"

#define TURN_S 5 /* one call of AutoArchiveJobs; then it is seen how far it is */

#define CANCEL_USAGE "[--kill] " JOB_SELECT_USAGE
#define PRIORITY_USAGE JOB_SELECT_USAGE " low|normal|high|NUMBER"

/* `format` is what is true now, behind "Job ID ". */
static json_t *done(guint64 id, const char *status, const char *text)
{
    json_t *object = json_make("{sI}", "job", (json_int_t)id);
    if (status != NULL)
        json_object_set_new(object, "status", json_string(status));
    json_object_set_new(object, "message", json_sprintf("Job %" G_GUINT64_FORMAT " %s", id, text));
    return object;
}

/* --- cancel --- */

/* A running job is asked to give up, and decides by itself how far it is. `already`: it was asked
 * before. */
static json_t *canceled(guint64 id, const char *status, bool already)
{
    g_autofree char *text = NULL;
    if (status != NULL && !cli_job_final(status))
        text = g_strdup_printf("%s to give up. How it ends: fettle job watch %" G_GUINT64_FORMAT,
                               already ? "has been asked already" : "is asked", id);
    else if (status == NULL || strcmp(status, "canceled") == 0)
        text = g_strdup("is canceled.");
    else
        text = g_strdup_printf("had ended already, with %s. What it did: fettle job info "
                               "%" G_GUINT64_FORMAT,
                               status, id);
    return done(id, status != NULL ? status : "canceled", text);
}

static json_t *query_one(struct cli *cli, guint64 id, const char *const *fields, GError **error)
{
    return cli_query(cli, "job", fields, json_make("[ssI]", "=", "id", (json_int_t)id), error);
}

static json_t *cancel(struct cli *cli, guint64 id, void *data, GError **error)
{
    bool kill = *(bool *)data;
    /* For the sentence alone: if that fails, it is asked for all the same. */
    g_autoptr(GError) unknown = NULL;
    json_autoptr before =
        query_one(cli, id, (const char *const[]){"cancel", "kill_at", NULL}, &unknown);
    const json_t *row = json_array_get(before, 0);
    bool already =
        json_is_true(cli_cell_value(row, 0)) && (!kill || json_is_number(cli_cell_value(row, 1)));
    json_autoptr answer =
        cli_call(cli, "CancelJob", json_make("[Ib]", (json_int_t)id, kill), error);
    if (answer == NULL)
        return NULL;
    if (!json_is_true(json_array_get(answer, 0))) {
        job_set_refused(cli, id, json_string_value(json_array_get(answer, 1)), error);
        return NULL;
    }
    json_autoptr now = query_one(cli, id, (const char *const[]){"status", NULL}, error);
    if (now == NULL)
        return NULL;
    return canceled(
        id, json_array_size(now) == 0 ? NULL : cli_cell_string(json_array_get(now, 0), 0), already);
}

static int job_cancel(struct cli *cli, int argc, char **argv, GError **error)
{
    bool kill = cli_take_flag(&argc, argv, "--kill");
    GArray *jobs = job_select(
        cli, &argc, argv, "job cancel " CANCEL_USAGE,
        kill ? "will be canceled, and killed after 10 seconds" : "will be canceled", error);
    return jobs == NULL ? -1 : job_each(cli, jobs, cancel, &kill, error);
}

/* --- change-priority --- */

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

static json_t *change_priority(struct cli *cli, guint64 id, void *data, GError **error)
{
    gint64 priority = *(gint64 *)data;
    json_autoptr answer = cli_call(cli, "ChangeJobPriority",
                                   json_make("[II]", (json_int_t)id, (json_int_t)priority), error);
    if (answer == NULL)
        return NULL;
    if (!json_is_true(json_array_get(answer, 0))) {
        job_set_refused(cli, id, json_string_value(json_array_get(answer, 1)), error);
        return NULL;
    }
    g_autofree char *text = g_strdup_printf("has priority %" G_GINT64_FORMAT " now.", priority);
    return done(id, NULL, text);
}

/* The last word; -20 is no option. */
static int job_priority(struct cli *cli, int argc, char **argv, GError **error)
{
    static const char usage[] = "job change-priority " PRIORITY_USAGE;
    gint64 priority;
    const char *last = argc > 0 ? argv[argc - 1] : "";
    if (argc < 2) {
        cli_expect(argc, argv, 2, usage, error);
        return -1;
    }
    argv[--argc] = NULL;
    if (!parse_priority(last, &priority, error))
        return -1;
    g_autofree char *will = g_strdup_printf("will have priority %" G_GINT64_FORMAT, priority);
    GArray *jobs = job_select(cli, &argc, argv, usage, will, error);
    return jobs == NULL ? -1 : job_each(cli, jobs, change_priority, &priority, error);
}

/* --- archive --- */

/* Why luxid did not archive it: it says no more than that. */
static void set_why_not(struct cli *cli, guint64 id, GError **error)
{
    json_autoptr rows = cli_query(cli, "job", (const char *const[]){"status", NULL},
                                  json_make("[ssI]", "=", "id", (json_int_t)id), error);
    if (rows == NULL)
        return;
    const char *status =
        json_array_size(rows) == 0 ? NULL : cli_cell_string(json_array_get(rows, 0), 0);
    if (status == NULL)
        fettle_set_error(error, UNKNOWN_ENTITY, "job %" G_GUINT64_FORMAT " does not exist", id);
    else if (!cli_job_final(status))
        fettle_set_error(error, WRONG_STATE,
                         "job %" G_GUINT64_FORMAT
                         " is %s: only a job that has ended can be archived",
                         id, status);
    else
        fettle_set_error(error, WRONG_STATE,
                         "job %" G_GUINT64_FORMAT
                         " stays on record: a job that has not ended depends on it, or auto-repair "
                         "still looks at it; try again later",
                         id);
}

static json_t *archive(struct cli *cli, guint64 id, void *data, GError **error)
{
    json_autoptr there = cli_call(cli, "ArchiveJob", json_make("[I]", (json_int_t)id), error);
    if (there == NULL)
        return NULL;
    if (!json_is_true(there)) {
        set_why_not(cli, id, error);
        return NULL;
    }
    json_t *object = done(id, NULL, "is archived.");
    json_object_set_new(object, "archived", json_true());
    return object;
}

static int job_archive(struct cli *cli, int argc, char **argv, GError **error)
{
    GArray *jobs = NULL;
    bool fine = cli_expect(argc, argv, MAX(argc, 1), "job archive ID…", error);
    if (fine)
        jobs = job_select(cli, &argc, argv, "job archive ID…", "", error);
    return jobs == NULL ? -1 : job_each(cli, jobs, archive, NULL, error);
}

/* "all" as -1. */
static bool parse_age(const char *text, gint64 *ret_age, GError **error)
{
    gint64 ms;
    bool all = strcmp(text, "all") == 0;
    if (all || (time_text_duration(text, 1000, &ms) &&
                ms <= LIMIT_ARCHIVE_AGE_S * G_GINT64_CONSTANT(1000))) {
        *ret_age = all ? -1 : ms / 1000;
        return true;
    }
    fettle_set_error(
        error, WRONG_INPUT,
        "\"%s\" is no age of at most 365d: a number of seconds, or one with s, m, h, d "
        "or w behind it, or all",
        text);
    return false;
}

static int job_autoarchive(struct cli *cli, int argc, char **argv, GError **error)
{
    gint64 age;
    json_int_t total = 0, archived, left;
    if (!cli_expect(argc, argv, 1, "job autoarchive AGE|all", error) ||
        !parse_age(argv[0], &age, error))
        return -1;
    do {
        json_autoptr answer =
            cli_call(cli, "AutoArchiveJobs", json_make("[Ii]", (json_int_t)age, TURN_S), error);
        if (answer == NULL)
            return -1;
        archived = json_integer_value(json_array_get(answer, 0));
        left = json_integer_value(json_array_get(answer, 1));
        total += archived;
    } while (left > 0 && archived > 0);
    cli_say(cli, json_make("{sI sI}", "archived", total, "left", left),
            "%" JSON_INTEGER_FORMAT " jobs are archived now, %" JSON_INTEGER_FORMAT
            " of that age are left.",
            total, left);
    return 0;
}

const struct command job_verb_commands[] = {
    {"job", "cancel", CANCEL_USAGE,
     "Cancel jobs: those with these ids, or all of a kind (--pending: queued or waiting), after "
     "asking. One that is queued ends at once; one that is under way gives up at its next safe "
     "point, "
     "with --kill after 10 seconds in any case.",
     job_cancel},
    {"job", "change-priority", PRIORITY_USAGE,
     "Change the priority of what has not ended of jobs; -20 is the most urgent.", job_priority},
    {"job", "archive", "ID…",
     "Move jobs that have ended into the archive: they are no longer listed, but can be looked at "
     "as "
     "before.",
     job_archive},
    {"job", "autoarchive", "AGE|all",
     "Archive all jobs that ended at least AGE ago: seconds, or 10m, 6h, 2d, 1w.", job_autoarchive},
    {0},
};
