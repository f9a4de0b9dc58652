/* See call.h. */
#include "cli/call.h"

#include "base/error.h"
#include "base/limits.h"
#include "io/loop.h"

struct waiting {
    bool done;
    json_t *result;
    GError *error;
};

static void cli_call_cb(json_t *result, const GError *error, void *data)
{
    struct waiting *waiting = data;
    waiting->done = true;
    if (error)
        waiting->error = g_error_copy(error);
    else
        waiting->result = json_incref(result);
}

json_t *cli_call_rpc(struct rpc_client *client, const struct rpc_call *call, GError **error)
{
    struct waiting waiting = {0};
    rpc_client_call(client, call, cli_call_cb, &waiting);
    while (!waiting.done) /* the call has a time limit of its own */
        loop_run_until(&waiting.done, TIMEOUT_NORMAL_MS);
    if (waiting.error)
        g_propagate_error(error, waiting.error);
    return waiting.result;
}
