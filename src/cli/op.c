/* Commands that are opcodes: words and flags by the tables, submitted as a job and followed. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/op_many.h"
#include "cli/pattern.h"
#include "cli/screen.h"
#include "proto/cli/cli_table.h"

const struct cli_job_flag cli_job_flags[] = {
    {"--submit", "Print the job's id and do not wait for it."},
    {"--yes", "Do not ask on a terminal before data is lost."},
    {0},
};

int cli_say_submitted(const struct cli *cli, guint64 job)
{
    cli_say(cli, json_make("{sI ss}", "job", (json_int_t)job, "status", "queued"),
            "Job %" G_GUINT64_FORMAT
            " is submitted; follow it with: fettle job watch %" G_GUINT64_FORMAT,
            job, job);
    return 0;
}

/* What an opcode answers beside its success, for people; a list of names is in its sentence. */
static void print_result(const json_t *result)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_string(result))
        printf("%s\n", json_string_value(result));
    json_array_foreach(result, i, value) {
        if (json_is_string(value))
            continue;
        json_autoptr cell = json_make("[iO]", 0, value);
        g_autofree char *text = cli_cell_text(NULL, "", cell);
        printf("%s\n", text);
    }
    json_object_foreach((json_t *)result, key, value) {
        json_autoptr cell = json_make("[iO]", 0, value);
        g_autofree char *text = cli_cell_text(NULL, key, cell);
        printf("%-20s %s\n", key, text);
    }
}

/* A list of problems is an answer, and a reason for exit code 1. */
static int say_problems(const struct cli *cli, guint64 job, const json_t *opcode, json_t *result)
{
    const char *name = json_string_value(json_object_get(opcode, "instance_name"));
    const json_t *problems = json_is_object(result) ? json_object_get(result, "problems") : result;
    size_t count = json_array_size(problems);
    for (size_t i = 0; i < count && !cli->json; i++)
        printf("%s\n", json_string_value(json_array_get(problems, i)));
    json_t *object =
        json_make("{sI ss sO}", "job", (json_int_t)job, "status", "success", "result", result);
    if (count == 0)
        cli_say(cli, object, "Instance %s is as it should be.", name);
    else
        cli_say(cli, object, "Instance %s has %zu problem%s.", name, count, count == 1 ? "" : "s");
    return count == 0 ? 0 : 1;
}

static int say_done(struct cli *cli, guint64 job, const json_t *opcode, json_t *result,
                    json_t *children)
{
    if (g_strcmp0(json_string_value(json_object_get(opcode, "OP_ID")), "OP_INSTANCE_VERIFY") == 0 &&
        !json_is_true(json_object_get(opcode, "dry_run")))
        return say_problems(cli, job, opcode, result);
    g_autofree char *text = cli_done_text(cli, opcode);
    if (!cli->json && children == NULL)
        print_result(result);
    json_t *object =
        json_make("{sI ss sO}", "job", (json_int_t)job, "status", "success", "result", result);
    if (children != NULL)
        json_object_set(object, "jobs", children);
    cli_say(cli, object, "%s", text);
    return 0;
}

/* The job has succeeded: its own answer, and the jobs that it has submitted. */
static int finish(struct cli *cli, guint64 job, const json_t *opcode, GError **error)
{
    json_autoptr results = cli_job_results(cli, job, error);
    if (results == NULL)
        return -1;
    json_t *result = json_array_get(results, 0);
    g_autoptr(GPtrArray) refused = g_ptr_array_new_with_free_func((GDestroyNotify)g_error_free);
    g_autoptr(GArray) jobs = cli_child_jobs(result, refused);
    json_autoptr children = NULL;
    if (jobs != NULL && cli_follow_children(cli, jobs, refused, &children, error) != 0) {
        if (cli->json && children != NULL) {
            json_autoptr object = json_make("{sI ss sO sO}", "job", (json_int_t)job, "status",
                                            "success", "result", result, "jobs", children);
            cli_print_json(object);
        }
        return -1;
    }
    return say_done(cli, job, opcode, result, children);
}

static int run_one(struct cli *cli, json_t *opcode, bool submit_only, bool sure, GError **error)
{
    if (!sure && !cli_may_lose(cli, opcode, error))
        return -1;
    guint64 job = cli_submit(cli, json_make("[O]", opcode), error);
    if (job == 0)
        return -1;
    if (submit_only)
        return cli_say_submitted(cli, job);
    if (cli_follow_job(cli, job, cli->json, error) != 0)
        return -1;
    return finish(cli, job, opcode, error);
}

/* Patterns are resolved once, here. */
static int run_many(struct cli *cli, const struct many *typed, const char *const *words,
                    GError **error)
{
    struct many many = *typed;
    g_autoptr(GPtrArray) names = pattern_expand(cli, cli_command_many(many.command),
                                                (char **)typed->names->pdata, &many.pattern, error);
    many.names = names;
    return names != NULL ? op_many_run(cli, &many, words, error) : -1;
}

static void print_opcode_help(const struct cli_command *command)
{
    int width = screen_text_columns();
    g_autofree char *help = cli_command_help(command, width);
    g_autoptr(GString) text = g_string_new(help);
    for (const struct cli_job_flag *flag = cli_job_flags; flag->name != NULL; flag++)
        cli_help_row(text, flag->name, CLI_HELP_COLUMN, flag->doc, width);
    printf("%s", text->str);
}

int cli_run_opcode(struct cli *cli, const char *noun, const char *verb, int argc, char **argv,
                   GError **error)
{
    const struct cli_command *command = cli_command_find(noun, verb);
    if (command == NULL)
        return -2;
    if (cli_take_flag(&argc, argv, "--help")) {
        print_opcode_help(command);
        return 0;
    }
    bool submit_only, sure;
    if (!cli_take_switch(&argc, argv, "--submit", &submit_only, error) ||
        !cli_take_switch(&argc, argv, "--yes", &sure, error))
        return -1;
    argv[argc] = NULL;
    const char *const *words = (const char *const *)argv;
    g_autoptr(GPtrArray) typed = NULL;
    json_autoptr opcode = cli_command_parse_many(command, words, &typed, error);
    if (opcode == NULL)
        return -1;
    if (typed != NULL && (typed->len > 2 || pattern_is(typed->pdata[0])))
        return run_many(cli,
                        &(struct many){.command = command,
                                       .opcode = opcode,
                                       .names = typed,
                                       .submit_only = submit_only,
                                       .sure = sure},
                        words, error);
    int code = run_one(cli, opcode, submit_only, sure, error);
    if (code != 0)
        cli_command_explain(command, words, error);
    return code;
}
