/* See job_select.h. */
#include "cli/commands/job_select.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct kinds {
    bool queued, waiting, running;
};

static bool any(const struct kinds *kinds)
{
    return kinds->queued || kinds->waiting || kinds->running;
}

static struct kinds take_kinds(int *argc, char **argv)
{
    struct kinds kinds = {0};
    bool pending = cli_take_flag(argc, argv, "--pending");
    kinds.queued = cli_take_flag(argc, argv, "--queued") || pending;
    kinds.waiting = cli_take_flag(argc, argv, "--waiting") || pending;
    kinds.running = cli_take_flag(argc, argv, "--running");
    return kinds;
}

static GArray *of_words(int argc, char **argv, const char *usage, GError **error)
{
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(guint64));
    if (!cli_expect(argc, argv, MAX(argc, 1), usage, error))
        return NULL;
    for (int i = 0; i < argc; i++) {
        guint64 id;
        if (!cli_parse_job(argv[i], &id, error))
            return NULL;
        g_array_append_val(ids, id);
    }
    return g_steal_pointer(&ids);
}

static GArray *of_kinds(struct cli *cli, const struct kinds *kinds, GError **error)
{
    json_t *filter = json_make("[s]", "|");
    if (kinds->queued)
        json_array_append_new(filter, json_make("[sss]", "=", "status", "queued"));
    if (kinds->waiting)
        json_array_append_new(filter, json_make("[sss]", "=", "status", "waiting"));
    if (kinds->running)
        json_array_append_new(filter, json_make("[sss]", "=", "status", "running"));
    json_autoptr rows = cli_query(cli, "job", (const char *const[]){"id", NULL}, filter, error);
    if (rows == NULL)
        return NULL;
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        guint64 id = (guint64)json_integer_value(cli_cell_value(json_array_get(rows, i), 0));
        g_array_append_val(ids, id);
    }
    return ids;
}

/* Whoever asks for all of a kind sees first which these are. */
static bool is_sure(const struct cli *cli, const GArray *ids, const char *will, GError **error)
{
    g_autoptr(GString) question = g_string_new(ids->len == 1 ? "Job" : "Jobs");
    for (guint i = 0; i < ids->len; i++)
        g_string_append_printf(question, "%s %" G_GUINT64_FORMAT, i > 0 ? "," : "",
                               g_array_index(ids, guint64, i));
    g_string_append_printf(question, " %s.", will);
    if (!cli->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        return cli_is_sure(question->str, error);
    fettle_set_error(error, WRONG_INPUT, "%s Nobody can be asked here: say --yes", question->str);
    return false;
}

GArray *job_select(struct cli *cli, int *argc, char **argv, const char *usage, const char *will,
                   GError **error)
{
    bool yes = cli_take_flag(argc, argv, "--yes");
    const struct kinds kinds = take_kinds(argc, argv);
    if (!any(&kinds))
        return of_words(*argc, argv, usage, error);
    if (!cli_expect(*argc, argv, 0, usage, error))
        return NULL;
    g_autoptr(GArray) ids = of_kinds(cli, &kinds, error);
    if (ids == NULL || (ids->len > 0 && !yes && !is_sure(cli, ids, will, error)))
        return NULL;
    return g_steal_pointer(&ids);
}

/* --- what is done to them --- */

static void say_failed(const struct cli *cli, guint64 id, const GError *failed, json_t *list)
{
    if (!cli->json) {
        fprintf(stderr, "fettle: %s\n", failed->message);
        return;
    }
    json_array_append_new(list,
                          json_make("{sI s{ss ss si}}", "job", (json_int_t)id, "error", "code",
                                    fettle_error_name(failed), "message", failed->message,
                                    "exit_code", fettle_error_exit_code(failed)));
}

static int of_several(struct cli *cli, const GArray *jobs, job_act act, void *data)
{
    json_autoptr list = json_array();
    g_autoptr(GString) all = g_string_new(NULL);
    int code = 0;
    for (guint i = 0; i < jobs->len; i++) {
        guint64 id = g_array_index(jobs, guint64, i);
        g_autoptr(GError) failed = NULL;
        json_autoptr done = act(cli, id, data, &failed);
        if (done == NULL) {
            say_failed(cli, id, failed, list);
            code = code == 0 ? fettle_error_exit_code(failed) : code;
            continue;
        }
        const char *text = json_string_value(json_object_get(done, "message"));
        g_string_append_printf(all, "%s%s", all->len > 0 ? " " : "", text);
        if (cli->json)
            json_array_append(list, done);
        else
            printf("%s\n", text);
    }
    cli_note(cli, "%s", all->str);
    if (cli->json)
        cli_print_json(list);
    return code;
}

int job_each(struct cli *cli, GArray *jobs, job_act act, void *data, GError **error)
{
    g_autoptr(GArray) owned = jobs;
    if (jobs->len == 0 && !cli->json)
        printf("There is no such job.\n");
    if (jobs->len != 1)
        return of_several(cli, jobs, act, data);
    json_t *done = act(cli, g_array_index(jobs, guint64, 0), data, error);
    if (done == NULL)
        return -1;
    g_autofree char *text = g_strdup(json_string_value(json_object_get(done, "message")));
    cli_say(cli, done, "%s", text);
    return 0;
}

void job_set_refused(struct cli *cli, guint64 id, const char *said, GError **error)
{
    json_autoptr rows = cli_query(cli, "job", (const char *const[]){"id", NULL},
                                  json_make("[ssI]", "=", "id", (json_int_t)id), error);
    if (rows == NULL)
        return;
    if (json_array_size(rows) == 0)
        fettle_set_error(error, UNKNOWN_ENTITY, "job %" G_GUINT64_FORMAT " does not exist", id);
    else
        fettle_set_error(error, WRONG_STATE, "%s", said != NULL ? said : "nothing was changed");
}
