/* See op_many.h. */
#include "cli/op_many.h"

#include <stdio.h>
#include <string.h>

/* "web1, web2, web3" */
static char *list_of(const GPtrArray *names)
{
    return g_strjoinv(", ", (char **)names->pdata);
}

static const char *field_of(const struct many *many)
{
    const char *kind = cli_command_many(many->command);
    return strcmp(kind, "instance") == 0 ? "instance_name"
           : strcmp(kind, "node") == 0   ? "node_name"
                                         : "network_name";
}

/* A word about a node's death is one about that node. */
static bool may_be_many(const struct many *many, GError **error)
{
    if (!json_object_get(many->opcode, "offline") && !json_object_get(many->opcode, "statement"))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "--offline is a word about one node: say it of each by itself");
    return false;
}

/* Whoever follows the log on standard error sees what a pattern has matched. */
static void say_matches(const struct cli *cli, const struct many *many)
{
    g_autofree char *names = list_of(many->names);
    if (many->pattern && !cli->json)
        fprintf(stderr, "%s %s: %s\n", many->command->noun, many->command->verb, names);
}

static json_t *opcode_for(const struct many *many, const char *name, guint number)
{
    json_t *opcode = json_deep_copy(many->opcode);
    const char *request = json_string_value(json_object_get(opcode, "request_id"));
    json_object_set_new(opcode, field_of(many), json_string(name));
    if (request != NULL && *request != '\0') /* one of each job's own, and the same the next time */
        json_object_set_new(opcode, "request_id", json_sprintf("%s.%u", request, number));
    return opcode;
}

/* One job for each; what luxid refuses is kept as a sentence. */
static GArray *submit_all(struct cli *cli, const struct many *many, const char *const *words,
                          GPtrArray *refused)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (guint i = 0; many->names->pdata[i] != NULL; i++) {
        g_autoptr(GError) reason = NULL;
        const char *name = many->names->pdata[i];
        guint64 job = cli_submit(cli, json_make("[o]", opcode_for(many, name, i + 1)), &reason);
        cli_command_explain(many->command, words, &reason);
        if (job != 0)
            g_array_append_val(jobs, job);
        else
            g_ptr_array_add(refused, g_strdup_printf("%s: %s", name, reason->message));
    }
    return jobs;
}

static int say_all_submitted(const struct cli *cli, const GArray *jobs, const GPtrArray *refused,
                             GError **error)
{
    json_autoptr list = json_array();
    g_autoptr(GString) ids = g_string_new(NULL);
    for (guint i = 0; i < jobs->len; i++) {
        guint64 job = g_array_index(jobs, guint64, i);
        json_array_append_new(list,
                              json_make("{sI ss}", "job", (json_int_t)job, "status", "queued"));
        g_string_append_printf(ids, "%s%" G_GUINT64_FORMAT, i > 0 ? ", " : "", job);
    }
    if (refused->len > 0) {
        fettle_set_error(error, JOB_FAILED, "%u of %u jobs are submitted (%s); %s", jobs->len,
                         jobs->len + refused->len, ids->str, (const char *)refused->pdata[0]);
        return -1;
    }
    cli_say(cli, json_make("{sO}", "jobs", list),
            "Jobs %s are submitted; follow one with: fettle job watch ID", ids->str);
    return 0;
}

/* The error that counts: that of the job with the highest exit code. */
static void set_worst(const json_t *list, GError **error)
{
    int worst = 0;
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one) {
        const char *name = json_string_value(json_object_get(one, "code"));
        if (name == NULL || *name == '\0')
            continue;
        g_autoptr(GError) other =
            g_error_new_literal(FETTLE_ERROR, (int)fettle_error_from_name(name), "");
        if (fettle_error_exit_code(other) <= worst)
            continue;
        worst = fettle_error_exit_code(other);
        (*error)->code = other->code;
    }
}

static int follow_all(struct cli *cli, const struct many *many, const GArray *jobs,
                      const GPtrArray *refused, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *names = list_of(many->names);
    json_autoptr list = NULL;
    if (cli_follow_children(cli, jobs, refused, &list, &failure) == 0) {
        cli_say(cli, json_make("{sO}", "jobs", list), "%s of %s: all %u jobs have succeeded.",
                many->command->verb, names, jobs->len);
        return 0;
    }
    if (list != NULL) {
        set_worst(list, &failure);
        if (cli->json) {
            json_autoptr object = json_make("{sO}", "jobs", list);
            cli_print_json(object);
        }
    }
    g_propagate_error(error, g_steal_pointer(&failure));
    return -1;
}

int op_many_run(struct cli *cli, const struct many *many, const char *const *words, GError **error)
{
    if (!may_be_many(many, error))
        return -1;
    say_matches(cli, many);
    if (!many->sure && !cli_may_lose_many(cli, many->opcode, many->names, many->pattern, error))
        return -1;
    g_autoptr(GPtrArray) refused = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) jobs = submit_all(cli, many, words, refused);
    return many->submit_only ? say_all_submitted(cli, jobs, refused, error)
                             : follow_all(cli, many, jobs, refused, error);
}
