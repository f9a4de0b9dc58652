/* The first objects of a cluster (OP_CLUSTER_INIT): itself, a node group, its only node. */
#include "core/wconfd/wconf.h"

#include "proto/change.h"
#include "proto/master_ip.h"

static void add_put(GPtrArray *changes, const char *kind, const char *key, json_t *object)
{
    g_ptr_array_add(changes, change_make(CHANGE_PUT, kind, key, 1, object));
}

bool wconf_bootstrap_check(const struct op_cluster_init *params, GError **error)
{
    g_autofree char *address = NULL;
    guint netmask;
    if (!*params->master_ip && !*params->master_netdev)
        return true;
    if (!*params->master_ip || !*params->master_netdev) {
        fettle_set_error(error, WRONG_INPUT,
                         "master_ip and master_netdev go together: the address, and the network "
                         "device of the master's node that is to carry it");
        return false;
    }
    if (!master_ip_parse(params->master_ip, &address, &netmask, error) ||
        !master_ip_check_netdev(params->master_netdev, error))
        return false;
    if (!master_ip_same(address, params->primary_ip))
        return true;
    fettle_set_error(error, ALREADY_EXISTS,
                     "master_ip: %s is the address of node \"%s\"; it needs one of its own",
                     address, params->node_name);
    return false;
}

GPtrArray *wconf_bootstrap_changes(const struct op_cluster_init *params, const char *cluster_uuid,
                                   const char *node_uuid, guint port, const char *group_uuid)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(cluster) cluster = cluster_new();
    record_autoptr(nodegroup) group = nodegroup_new();
    record_autoptr(node) node = node_new();
    text_set(&cluster->uuid, cluster_uuid);
    text_set(&cluster->name, params->cluster_name);
    text_set(&cluster->master_node, node_uuid);
    cluster->accelerator = params->accelerator;
    cluster->replica_lost_ms = params->replica_lost_ms;
    cluster->watcher_interval_ms = params->watcher_interval_ms;
    cluster->max_running_jobs = params->max_running_jobs;
    cluster->candidate_pool_size = params->candidate_pool_size;
    if (*params->master_ip) {
        g_autofree char *address = NULL;
        guint netmask = 0;
        if (master_ip_parse(params->master_ip, &address, &netmask, NULL))
            text_set(&cluster->master_ip, address);
        cluster->master_netmask = netmask;
        text_set(&cluster->master_netdev, params->master_netdev);
    }
    add_put(changes, "cluster", cluster_uuid, cluster_to_json(cluster));
    text_set(&group->uuid, group_uuid);
    text_set(&group->name, "default");
    add_put(changes, "nodegroup", group_uuid, nodegroup_to_json(group));
    text_set(&node->uuid, node_uuid);
    text_set(&node->name, params->node_name);
    text_set(&node->primary_ip, params->primary_ip);
    text_set(&node->group, group_uuid);
    node->port = port;
    node->master_candidate = true;
    add_put(changes, "node", node_uuid, node_to_json(node));
    return changes;
}

struct change *wconf_bootstrap_secret(const char *name, const char *value)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new();
    const struct secret secret = {.value = (char *)value};
    add_put(changes, "secret", name, secret_to_json(&secret));
    return changes->pdata[0];
}
