/*
 * Joining, from the side of the new host (`fettle-noded join`): finds the master by the
 * token, makes sure of its authority, asks for a certificate and writes what makes this host a
 * node: etc/ca.crt, node.crt, node.key, var/node/state.json (master and members) and at last
 * etc/node.json, whose presence says that it is one.
 *
 * The private key is made here and never leaves. It is kept as etc/join-TOKEN.key as long as the
 * answer is unknown, so that repeating the command gives the same answer; after a refusal nothing
 * is left.
 */
#pragma once

#include "io/node_config.h"
#include "proto/invitation.h"

/* `new_keys`: the host is a node already, and was away while the cluster's keys were renewed; all
 * but certificates and key stays as it is.
 * In a task; also blocks for short times. The new node's configuration, free with
 * node_config_free().
 * WRONG_STATE: this host is a node already; UNREACHABLE: no connection; PERMISSION: the authority
 * there is not the token's (nothing was sent or written); what the master answers; TIMEOUT and
 * UNKNOWN_RESULT: repeat it. */
struct node_config *join_cluster(const struct node_paths *paths,
                                 const struct invitation *invitation, bool new_keys,
                                 GError **error);
