/*
 * ssconf: small files with a few facts about the cluster, on every node, also on those that have no
 * copy of the configuration (WCF-20). They are for people, scripts and tools that must work without
 * any daemon; names and contents are those of Ganeti where the same thing exists. noded writes them
 * from what the master announces: so a node that was away gets them when it is back, and nothing is
 * sent when none of the facts has changed.
 *
 * var/ssconf/: cluster_name, cluster_uuid, master_node, master_ip, node_list, node_primary_ips,
 * master_candidates, master_candidates_ips, online_nodes, offline_nodes (a line for each node, by
 * name), and serial: of the configuration in which these facts changed last. master_ip is the
 * address of the master's node, unless the cluster has a master IP: then that, with master_netmask
 * and master_netdev.
 */
#pragma once

#include "proto/env.h"

struct ssconf_file {
    const char *name;
    char *text; /* ends with a newline, or is empty */
};

/* GPtrArray of struct ssconf_file, without `serial`. Pure. */
GPtrArray *ssconf_files(const struct announce_args *announced);

/* In a task: writes the files that differ from what is there, each as a whole. What cannot be
 * written is logged: nothing of the cluster rests on these files. Whether all are right now. */
bool ssconf_update(const struct env *env, const struct announce_args *announced);
