/* Jobs go into the archive: archive, autoarchive. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#define TURN_S 5 /* one call of AutoArchiveJobs; then it is seen how far it is */

/* Why luxid did not archive it: it says no more than that. */
static int say_why_not(struct cli *cli, guint64 id, GError **error)
{
    json_autoptr rows = cli_query(cli, "job", (const char *const[]){"status", NULL},
                                  json_make("[ssI]", "=", "id", (json_int_t)id), error);
    if (rows == NULL)
        return -1;
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
    return -1;
}

static int job_archive(struct cli *cli, int argc, char **argv, GError **error)
{
    guint64 id;
    if (!cli_expect(argc, argv, 1, "job archive ID", error) || !cli_parse_job(argv[0], &id, error))
        return -1;
    json_autoptr done = cli_call(cli, "ArchiveJob", json_make("[I]", (json_int_t)id), error);
    if (done == NULL)
        return -1;
    if (!json_is_true(done))
        return say_why_not(cli, id, error);
    cli_say(cli, json_make("{sI sb}", "job", (json_int_t)id, "archived", 1),
            "Job %" G_GUINT64_FORMAT " is archived.", id);
    return 0;
}

/* "30", "90s", "10m", "6h", "2d", "1w", "all" as -1. */
static bool parse_age(const char *text, gint64 *ret_age, GError **error)
{
    static const char units[] = "smhdw";
    static const guint seconds[] = {1, 60, 3600, 86400, 604800};
    const char *end = text + strspn(text, "0123456789");
    const char *unit = *end == '\0' ? units : strchr(units, *end);
    g_autofree char *digits = g_strndup(text, (gsize)(end - text));
    guint64 number;

    if (strcmp(text, "all") == 0) {
        *ret_age = -1;
        return true;
    }
    if (unit != NULL && (*end == '\0' || end[1] == '\0') &&
        g_ascii_string_to_unsigned(digits, 10, 0, LIMIT_ARCHIVE_AGE_S / seconds[unit - units],
                                   &number, NULL)) {
        *ret_age = (gint64)(number * seconds[unit - units]);
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

const struct command archive_commands[] = {
    {"job", "archive", "ID",
     "Move a job that has ended into the archive: it is no longer listed, but can be looked at as "
     "before.",
     job_archive},
    {"job", "autoarchive", "AGE|all",
     "Archive all jobs that ended at least AGE ago: seconds, or 10m, 6h, 2d, 1w.", job_autoarchive},
    {0},
};
