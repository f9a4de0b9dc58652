/*
 * Calls to luxid over its LUXI socket. LUXI answers in order and some calls wait long
 * (WaitForJobChange), so each call under way has a connection of its own; a few are kept for the
 * next.
 */
#pragma once

#include "proto/rpc.h"

struct luxi_client;

struct luxi_client *luxi_client_new(const char *path);
/* Calls that are under way are answered with KILLED now. */
void luxi_client_free(struct luxi_client *client);
/* `call->args`: the positional array, stolen. */
void luxi_client_call(struct luxi_client *client, const struct rpc_call *call, rpc_reply_fn done,
                      void *data);

/* Exactly one of `text`, which is given away, and `error` is set. */
typedef void (*luxi_text_fn)(char *text, size_t len, const GError *error, void *data);
/* The same, with the text of the result as it came: no tree is made of it. */
void luxi_client_call_text(struct luxi_client *client, const struct rpc_call *call,
                           luxi_text_fn done, void *data);
