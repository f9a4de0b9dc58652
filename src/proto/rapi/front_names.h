/*
 * Whom a certificate is for that a daemon shows to clients from outside. Pure. Used by wconfd,
 * which has it signed, and by noded, which looks whether the one that it has for REST still is for
 * them.
 */
#pragma once

/* Names and addresses, free with g_strfreev(): the node's, and the machine's own. `cluster` and
 * `master_ip`: the cluster's as well, each unless it is NULL or empty. */
char **front_names(const char *node, const char *address, const char *cluster,
                   const char *master_ip);
