/*
 * The master's side of what a node's monitoring asks ConfD with: a key of its own, made of the
 * cluster's and the node's UUID (proto/confd.h). Given after a barrier, to the node daemon of that
 * node alone: a master that was replaced would give one that ConfD does not take any more.
 */
#include "core/wconfd/wconf_private.h"
#include "proto/confd.h"

void wconf_handle_monitor_key(struct wconf *wconf, struct rpc_request *request)
{
    const struct node *node = config_get(wconf->committed, "node", request->from_node, NULL);
    const struct secret *secret = config_get(wconf->committed, "secret", "confd", NULL);
    if (!node) {
        rpc_fail_new(request, FETTLE_ERROR_PERMISSION, "node %s is not on record",
                     request->from_node);
    } else if (!secret) {
        rpc_fail_new(request, FETTLE_ERROR_WRONG_STATE,
                     "this cluster has no key of ConfD; it gets one by: fettle cluster renew-keys");
    } else {
        g_autofree char *key = confd_node_key(secret->value, node->uuid);
        wconf_answer_after_barrier(wconf, request, json_make("{ss}", "key", key));
    }
}
