/* See op_many.h. */
#include "cli/op_many.h"

#include <stdio.h>
#include <string.h>

#include "cli/interrupt.h"
#include "proto/records.h"

/* "web1, web2, web3" */
static char *list_of(const GPtrArray *names)
{
    return g_strjoinv(", ", (char **)names->pdata);
}

static const char *field_of(const struct many *many)
{
    const char *kind = cli_command_many(many->command);
    return strcmp(kind, "instance") == 0  ? "instance_name"
           : strcmp(kind, "node") == 0    ? "node_name"
           : strcmp(kind, "network") == 0 ? "network_name"
                                          : "backend_name";
}

/* A word about a node's death is one about that node, or about what stood there. */
static bool may_be_many(const struct many *many, GError **error)
{
    static const char *const words[] = {"offline", "statement"};
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        if (!json_object_get(many->opcode, words[i]))
            continue;
        fettle_set_error(error, WRONG_INPUT,
                         "--%s is a word about one %s: say it of each by itself", words[i],
                         cli_command_many(many->command));
        return false;
    }
    return true;
}

/* One of each job's own, and the same the next time, whatever else is named or matches then; NULL:
 * none is given. */
static char *request_of(const struct many *many, const char *name)
{
    const char *request = json_string_value(json_object_get(many->opcode, "request_id"));
    return request && *request ? g_strdup_printf("%s.%s", request, name) : NULL;
}

static bool check_requests(const struct many *many, GError **error)
{
    glong most = (glong)record_field(&op_common_record, "request_id")->max;
    for (guint i = 0; many->names->pdata[i]; i++) {
        g_autofree char *request = request_of(many, many->names->pdata[i]);
        glong count = request ? g_utf8_strlen(request, -1) : 0;
        if (count <= most)
            continue;
        fettle_set_error(error, WRONG_INPUT,
                         "--request-id: must have at most %ld characters with the name of each "
                         "behind it, has %ld: %s",
                         most, count, request);
        return false;
    }
    return true;
}

/* Whoever follows the log on standard error sees what a pattern has matched. */
static void say_matches(const struct cli *cli, const struct many *many)
{
    g_autofree char *names = list_of(many->names);
    if (many->pattern && !cli->json)
        fprintf(stderr, "%s %s: %s\n", many->command->noun, many->command->verb, names);
}

static json_t *opcode_for(const struct many *many, const char *name)
{
    json_t *opcode = json_deep_copy(many->opcode);
    g_autofree char *request = request_of(many, name);
    json_object_set_new(opcode, field_of(many), json_string(name));
    if (request)
        json_object_set_new(opcode, "request_id", json_string(request));
    return opcode;
}

/* The job of one of them; 0: it is refused, or Ctrl-C was said before it. */
static guint64 submit_one(struct cli *cli, const struct many *many, const char *name,
                          const char *const *words, GError **error)
{
    if (cli_interrupted()) {
        fettle_set_error(error, CANCELED, "left out by Ctrl-C");
        return 0;
    }
    if (cli->silent) {
        fettle_set_error(error, UNREACHABLE, "left out, as luxid does not answer");
        return 0;
    }
    guint64 job = cli_submit(cli, json_make("[o]", opcode_for(many, name)), error);
    cli_command_explain(many->command, words, error);
    return job;
}

/* One job for each; `refused` gets why there is none, as struct GError. */
static GArray *submit_all(struct cli *cli, const struct many *many, const char *const *words,
                          GPtrArray *refused)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (guint i = 0; many->names->pdata[i] != NULL; i++) {
        GError *reason = NULL;
        const char *name = many->names->pdata[i];
        guint64 job = submit_one(cli, many, name, words, &reason);
        if (job != 0) {
            g_array_append_val(jobs, job);
        } else {
            g_prefix_error(&reason, "%s: ", name);
            g_ptr_array_add(refused, reason);
        }
    }
    return jobs;
}

/* The error that counts is that with the highest exit code. */
static void take_worse(GError *error, int code)
{
    g_autoptr(GError) other = g_error_new_literal(FETTLE_ERROR, code, "");
    if (fettle_error_exit_code(other) > fettle_error_exit_code(error))
        error->code = code;
}

static const char *text_of(const GPtrArray *refused, guint index)
{
    return ((const GError *)refused->pdata[index])->message;
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
        g_autoptr(GError) worst = NULL;
        fettle_set_error(&worst, JOB_FAILED, "%u of %u jobs are submitted (%s); %s", jobs->len,
                         jobs->len + refused->len, ids->str, text_of(refused, 0));
        for (guint i = 0; i < refused->len; i++)
            take_worse(worst, ((const GError *)refused->pdata[i])->code);
        g_propagate_error(error, g_steal_pointer(&worst));
        return -1;
    }
    cli_say(cli, json_make("{sO}", "jobs", list),
            "Jobs %s are submitted; follow one with: fettle job watch ID", ids->str);
    return 0;
}

/* The code of the job that ended worst. */
static void set_worst(const json_t *list, GError *error)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one) {
        const char *name = json_string_value(json_object_get(one, "code"));
        if (name && *name)
            take_worse(error, (int)fettle_error_from_name(name));
    }
}

/* Who follows them no more is told of what was not submitted, too. */
static void add_refused(GError *error, guint jobs, const GPtrArray *refused)
{
    if (refused->len == 0)
        return;
    g_autofree char *text = error->message;
    error->message =
        g_strdup_printf("%s; %u of %u are not submitted: %s%s", text, refused->len,
                        jobs + refused->len, text_of(refused, 0), refused->len > 1 ? ", …" : "");
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
        set_worst(list, failure);
        if (cli->json) {
            json_autoptr object = json_make("{sO}", "jobs", list);
            cli_print_json(object);
        }
    } else {
        add_refused(failure, jobs->len, refused);
    }
    g_propagate_error(error, g_steal_pointer(&failure));
    return -1;
}

int op_many_run(struct cli *cli, const struct many *many, const char *const *words, GError **error)
{
    if (!may_be_many(many, error) || !check_requests(many, error))
        return -1;
    say_matches(cli, many);
    if (!many->sure && !cli_may_lose_many(cli, many->opcode, many->names, many->pattern, error))
        return -1;
    g_autoptr(GPtrArray) refused = g_ptr_array_new_with_free_func((GDestroyNotify)g_error_free);
    g_autoptr(GArray) jobs = submit_all(cli, many, words, refused);
    return many->submit_only ? say_all_submitted(cli, jobs, refused, error)
                             : follow_all(cli, many, jobs, refused, error);
}
