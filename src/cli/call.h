/*
 * One call of a command to a daemon, and the wait for its answer: of those that speak to wconfd of
 * their own host (wconfd.h), and of a front end that asks its master (api/certificate.h).
 */
#pragma once

#include "io/net/rpc_client.h"

/* What it answers, to be released; NULL with `error`. Takes call->args. loop_init() was called. */
json_t *cli_call_rpc(struct rpc_client *client, const struct rpc_call *call, GError **error);
