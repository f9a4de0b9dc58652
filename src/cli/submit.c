/* Submitting a job, exactly once; see cli.h. */
#include "cli/cli.h"

#include <string.h>

#include "cli/interrupt.h"

/* The job's request id is the first one among its opcodes. One that is not given is drawn. */
static const char *name_request(json_t *opcodes)
{
    size_t i;
    const json_t *opcode;
    json_array_foreach(opcodes, i, opcode) {
        const char *given = json_string_value(json_object_get(opcode, "request_id"));
        if (given != NULL && *given != '\0')
            return given;
    }
    json_t *first = json_array_get(opcodes, 0);
    g_autofree char *drawn = g_uuid_string_random();
    json_object_set_new(first, "request_id", json_string(drawn));
    return json_string_value(json_object_get(first, "request_id"));
}

/* Whether luxid may have taken the job nevertheless. */
static bool is_open(const GError *error)
{
    return fettle_error_is(error, UNKNOWN_RESULT) || fettle_error_is(error, KILLED) ||
           fettle_error_is(error, TIMEOUT);
}

static void set_open(const char *request, const GError *last, GError **error)
{
    fettle_set_error(error, UNKNOWN_RESULT,
                     "it is not known whether the job was accepted: %s. Look at `fettle job list`, "
                     "or say the same again with --request-id %s: that gives one job, not two",
                     last->message, request);
}

/* The same request is the same job (SAF-31), so it is sent until there is an answer. */
static json_t *submit_again(struct cli *cli, const char *request, json_t *args, GError *cut,
                            GError **error)
{
    gint64 end = g_get_monotonic_time() + SUBMIT_PATIENCE_S * G_USEC_PER_SEC;
    g_autoptr(GError) last = cut;
    while (g_get_monotonic_time() < end && cli_wait_for_luxid(cli, cli->json, last)) {
        g_clear_error(&last);
        json_t *answer = cli_call(cli, "SubmitJob", json_incref(args), &last);
        if (answer != NULL)
            return answer;
        if (!cli_is_passing(last))
            break;
    }
    set_open(request, last, error);
    return NULL;
}

guint64 cli_submit(struct cli *cli, json_t *opcodes, GError **error)
{
    const char *request = name_request(opcodes);
    json_autoptr args = json_make("[o]", opcodes);
    g_autoptr(GError) reason = NULL;
    /* Ctrl-C waits for the answer: a job whose id nobody knows would be of no use. */
    cli_interrupt_catch();
    json_autoptr answer = cli_call(cli, "SubmitJob", json_incref(args), &reason);
    if (answer == NULL && cli->silent)
        set_open(request, reason, error);
    else if (answer == NULL && is_open(reason))
        answer = submit_again(cli, request, args, g_steal_pointer(&reason), error);
    else if (answer == NULL)
        g_propagate_error(error, g_steal_pointer(&reason));
    if (answer == NULL)
        return 0;
    guint64 job = (guint64)json_integer_value(answer);
    cli_note(cli,
             "Job %" G_GUINT64_FORMAT
             " is submitted; follow it with: fettle job watch %" G_GUINT64_FORMAT,
             job, job);
    return job;
}
