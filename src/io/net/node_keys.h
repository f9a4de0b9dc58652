/*
 * The files of a node's certificates below etc: node.crt and node.key, and ca.crt, whom it trusts.
 * A new key and its certificate take the place of the old ones together, also if the power is cut
 * in between: node-next.key is made first; node-next.crt, once it is there, says that both count,
 * and who reads them next finishes the change. Blocking, and short.
 */
#pragma once

#include "io/node_config.h"

#define NODE_KEYS_NEXT_KEY "node-next.key"
#define NODE_KEYS_NEXT_CRT "node-next.crt"

/* "ETC/NAME"; free with g_free(). */
char *node_keys_path(const struct node_paths *paths, const char *name);
/* Finishes what was begun. STORAGE. */
bool node_keys_settle(const struct node_paths *paths, GError **error);
/* Whom this node trusts, as certs_split() gives it. CORRUPT, STORAGE, with the file. */
GPtrArray *node_keys_trusted(const struct node_paths *paths, GError **error);
/* Its own certificate, settled. */
char *node_keys_certificate(const struct node_paths *paths, GError **error);
/* Puts a certificate in force whose key lies in node-next.key. */
bool node_keys_take(const struct node_paths *paths, const char *certificate, GError **error);
