/* Waiting for a luxid that is away for a while; see cli.h. */
#include "cli/cli.h"

#include <stdio.h>

#include "cli/interrupt.h"
#include "cli/screen.h"

/* luxid is being restarted, or this node is on its way to become the master again. */
bool cli_is_passing(const GError *error)
{
    return fettle_error_is(error, UNREACHABLE) || fettle_error_is(error, UNKNOWN_RESULT) ||
           fettle_error_is(error, TIMEOUT) || fettle_error_is(error, TEMPORARY) ||
           fettle_error_is(error, KILLED);
}

static void say_away(struct cli *cli, const GError *reason)
{
    const char *text = fettle_error_is(reason, TEMPORARY)
                           ? reason->message
                           : "luxid does not answer; it is asked again until it does";
    if (g_strcmp0(cli->away, text) == 0)
        return;
    fflush(stdout);
    screen_print(text);
    g_free(cli->away);
    cli->away = g_strdup(text);
}

bool cli_wait_for_luxid(struct cli *cli, bool quiet, const GError *reason)
{
    if (!quiet)
        say_away(cli, reason);
    cli_disconnect(cli);
    return cli_wait_readable(-1, LUXID_RETRY_MS, true) != CLI_WAIT_INTERRUPTED;
}

static void say_back(struct cli *cli)
{
    if (cli->away == NULL)
        return;
    screen_print("luxid answers again");
    g_clear_pointer(&cli->away, g_free);
}

json_t *cli_call_patiently(struct cli *cli, const char *method, json_t *args, GError **error)
{
    json_autoptr asked = args;
    for (;;) {
        g_autoptr(GError) reason = NULL;
        json_t *answer = cli_call(cli, method, json_incref(asked), &reason);
        if (answer != NULL) {
            say_back(cli);
            return answer;
        }
        if (!cli->answered || !cli_is_passing(reason)) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return NULL;
        }
        if (!cli_wait_for_luxid(cli, cli->json, reason)) {
            fettle_set_error(error, DETACHED, "interrupted");
            return NULL;
        }
    }
}
