/* Following one job to its end: its log, its progress, its outcome; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/screen.h"

struct follow {
    struct cli *cli;
    guint64 job;
    bool quiet;
    json_int_t serial; /* of the last log entry that was shown */
    struct progress progress;
};

bool cli_job_final(const char *status)
{
    return status != NULL && (strcmp(status, "success") == 0 || strcmp(status, "error") == 0 ||
                              strcmp(status, "canceled") == 0);
}

const char *cli_job_message(const json_t *results, const char **ret_code)
{
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *result = json_array_get(results, i);
        const json_t *args = json_array_get(result, 1);
        const char *message = json_is_string(result) ? json_string_value(result)
                                                     : json_string_value(json_array_get(args, 0));
        if (message == NULL || (!json_is_string(result) && !json_is_array(args)))
            continue;
        *ret_code = json_string_value(json_array_get(args, 1));
        return message;
    }
    return NULL;
}

void cli_set_job_error(guint64 job, const json_t *results, GError **error)
{
    const char *code = NULL, *message = cli_job_message(results, &code);
    enum fettle_error number =
        code != NULL ? fettle_error_from_name(code) : FETTLE_ERROR_JOB_FAILED;
    if (message == NULL)
        fettle_set_error(error, JOB_FAILED, "job %" G_GUINT64_FORMAT " failed without a reason",
                         job);
    else
        g_set_error(error, FETTLE_ERROR,
                    number == FETTLE_ERROR_INTERNAL ? FETTLE_ERROR_JOB_FAILED : (int)number,
                    "%s (job %" G_GUINT64_FORMAT ")", message, job);
}

json_t *cli_job_results(struct cli *cli, guint64 job, GError **error)
{
    g_autoptr(GError) reason = NULL;
    json_autoptr rows = cli_call_patiently(
        cli, "QueryJobs", json_make("[[I][s]]", (json_int_t)job, "opresult"), &reason);
    if (fettle_error_is(reason, DETACHED))
        fettle_set_error(error, DETACHED,
                         "what job %" G_GUINT64_FORMAT
                         " answered was not waited for; see it with: fettle job info "
                         "%" G_GUINT64_FORMAT,
                         job, job);
    else if (reason != NULL)
        g_propagate_error(error, g_steal_pointer(&reason));
    return rows == NULL ? NULL : json_incref(json_array_get(json_array_get(rows, 0), 0));
}

/* What is left, and what to do next, says the opcode that was given up in the middle. */
static void set_canceled(guint64 job, const json_t *results, GError **error)
{
    static const char plain[] = "Job canceled by request";
    const char *code = NULL, *message = cli_job_message(results, &code);
    g_autofree char *left = g_strdup(message != NULL ? message : plain);
    if (g_str_has_suffix(left, plain))
        left[strlen(left) - strlen(plain)] = '\0';
    if (g_str_has_suffix(left, ": "))
        left[strlen(left) - 2] = '\0';
    fettle_set_error(error, CANCELED, "job %" G_GUINT64_FORMAT " was canceled%s%s", job,
                     *left != '\0' ? ": " : "", left);
}

static int outcome(const struct follow *follow, const char *status, GError **error)
{
    if (strcmp(status, "success") == 0) {
        cli_note(follow->cli, "Job %" G_GUINT64_FORMAT " has succeeded.", follow->job);
        return 0;
    }
    json_autoptr results = cli_job_results(follow->cli, follow->job, error);
    if (results == NULL)
        return -1;
    if (strcmp(status, "canceled") == 0)
        set_canceled(follow->job, results, error);
    else
        cli_set_job_error(follow->job, results, error);
    return -1;
}

/* --- what is shown --- */

static void show_progress(struct follow *follow)
{
    if (screen_live()) {
        int columns, rows;
        screen_size(&columns, &rows);
        g_autofree char *bar = progress_bar(&follow->progress, columns);
        screen_draw((const char *const[]){bar, NULL});
        return;
    }
    g_autofree char *line = progress_tenth(&follow->progress);
    if (line != NULL)
        screen_print(line);
}

static void show_log(struct follow *follow, const json_t *log)
{
    for (size_t i = 0; i < json_array_size(log); i++) {
        const json_t *entry = json_array_get(log, i);
        const char *text = json_string_value(json_array_get(entry, 3));
        json_int_t serial = json_integer_value(json_array_get(entry, 0));
        if (serial <= follow->serial)
            continue;
        follow->serial = serial;
        if (follow->quiet)
            continue;
        if (progress_take(&follow->progress, entry))
            show_progress(follow);
        else if (text != NULL)
            screen_print(text);
    }
}

/* Until the first progress, a terminal shows what the job is waiting for. */
static void show_status(const struct follow *follow, const char *status)
{
    if (follow->quiet || follow->progress.what != NULL || status == NULL)
        return;
    g_autofree char *line = g_strdup_printf("job %" G_GUINT64_FORMAT ": %s", follow->job, status);
    screen_draw((const char *const[]){line, NULL});
}

/* --- until the end --- */

/* The next news as [[status], log entries], or "nochange". */
static json_t *wait_news(struct follow *follow, json_t *known, GError **error)
{
    g_autoptr(GError) reason = NULL;
    json_autoptr answer = cli_call_patiently(
        follow->cli, "WaitForJobChange",
        json_make("[I[s]OIi]", (json_int_t)follow->job, "status", known, follow->serial, 60),
        &reason);
    if (answer != NULL && !json_is_null(answer))
        return json_steal(&answer);
    if (answer != NULL) {
        fettle_set_error(error, UNKNOWN_ENTITY, "job %" G_GUINT64_FORMAT " does not exist",
                         follow->job);
        return NULL;
    }
    if (fettle_error_is(reason, DETACHED)) {
        cli_set_detached(&follow->job, 1, error);
        return NULL;
    }
    if (follow->cli->answered)
        cli_prefix_followed(&follow->job, 1, &reason);
    g_propagate_error(error, g_steal_pointer(&reason));
    return NULL;
}

static int follow_to_end(struct follow *follow, GError **error)
{
    json_autoptr known = json_null();
    for (;;) {
        json_autoptr answer = wait_news(follow, known, error);
        if (answer == NULL)
            return -1;
        if (!json_is_array(answer))
            continue;
        json_decref(known);
        known = json_incref(json_array_get(answer, 0));
        const char *status = json_string_value(json_array_get(known, 0));
        show_log(follow, json_array_get(answer, 1));
        if (cli_job_final(status))
            return outcome(follow, status, error);
        show_status(follow, status);
    }
}

int cli_follow_job(struct cli *cli, guint64 job, bool quiet, GError **error)
{
    struct follow follow = {.cli = cli, .job = job, .quiet = quiet, .serial = -1};
    cli_interrupt_catch();
    cli->interruptible = true;
    int code = follow_to_end(&follow, error);
    cli->interruptible = false;
    screen_clear();
    progress_clear(&follow.progress);
    return code;
}
