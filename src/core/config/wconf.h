/*
 * The configuration daemon's thinking: transactions, epoch, change stream, confirmations, locks.
 * fettle-wconfd wires it to a socket and an engine; the simulator to its own.
 */
#pragma once

#include "proto/env.h"

struct wconf;

struct wconf *wconf_new(const struct env *env);
/* In a task: journal, load, campaign, then announces to the nodes in tasks of their own. CORRUPT,
 * STORAGE: do not serve. */
bool wconf_start(struct wconf *wconf, GError **error);
/* One call; answers now or later. */
void wconf_handle(struct wconf *wconf, struct rpc_request *request);
void wconf_free(struct wconf *wconf);

/* The objects of a new cluster (OP_CLUSTER_INIT): GPtrArray of struct change. `node` is what
 * etc/node.json says. */
GPtrArray *wconf_bootstrap_changes(const struct op_cluster_init *params, const char *cluster_uuid,
                                   const char *node_uuid, guint port, const char *group_uuid);
