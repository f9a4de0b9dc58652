/*
 * Objects of the configuration as ConfD's clients know them: names and shapes of Ganeti 3.0, and
 * beside them what Fettle has more. All results are new references.
 */
#pragma once

#include "core/confd/copy.h"

/* The address that the cluster is reached at: its master IP, without one that of the master's node;
 * borrowed. */
const char *confd_cluster_address(const struct config *config);
json_t *confd_cluster_json(const struct confd_copy *copy);
json_t *confd_nodegroup_json(const struct confd_copy *copy, const struct nodegroup *group);
json_t *confd_node_json(const struct confd_copy *copy, const struct node *node);
json_t *confd_instance_json(const struct confd_copy *copy, const struct instance *instance);
/* Its disks, in order. */
json_t *confd_disks_json(const struct confd_copy *copy, const struct instance *instance);
