/*
 * The calls of a process to its cluster (env's `call`): daemons of this host over run/ROLE.sock,
 * everything on other nodes and the master by way of run/noded.sock, luxid over LUXI. Connections
 * are made when they are first needed and again after they were lost. Every call is answered
 * exactly once, from the loop.
 */
#pragma once

#include "io/node_config.h"
#include "proto/rpc.h"

struct rpc_client;

/* `role`: of this process. `paths` is kept by reference. */
struct rpc_client *rpc_client_new(const struct node_paths *paths, const char *node_uuid,
                                  const char *role);
/* Calls that are under way are answered with KILLED now. */
void rpc_client_free(struct rpc_client *client);
void rpc_client_call(struct rpc_client *client, const struct rpc_call *call, rpc_reply_fn done,
                     void *data);

struct envelope;
/* Passes another node's request on to a daemon of this host; for the bus. */
void rpc_client_forward(struct rpc_client *client, const char *role, const struct envelope *request,
                        guint timeout_ms, rpc_reply_fn done, void *data);
