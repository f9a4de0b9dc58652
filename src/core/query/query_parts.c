/* Fields of the parts of an instance (proto/fields.def): its disks' formats, its network cards, the
 * migration under way. */
#include <string.h>

#include "core/config/ports.h"
#include "core/query/query_rows.h"

json_t *query_get_instance_disk_formats(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *list = json_array();
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        json_array_append_new(list, json_string(enum_word(&disk_format_words, (int)disk->format)));
    }
    return list;
}

/* One text for each card. */
static json_t *each_nic(const void *row, const char *(*text)(const struct nic *nic))
{
    const struct instance *instance = row;
    json_t *list = json_array();
    for (guint i = 0; i < instance->nics->len; i++)
        json_array_append_new(list, json_string(text(instance->nics->pdata[i])));
    return list;
}

static const char *mac_of(const struct nic *nic)
{
    return nic->mac;
}

static const char *mode_of(const struct nic *nic)
{
    return enum_word(&nic_mode_words, (int)nic->mode);
}

static const char *link_of(const struct nic *nic)
{
    return nic->link;
}

static const char *ip_of(const struct nic *nic)
{
    return nic->ip;
}

json_t *query_get_instance_nic_count(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    return json_integer(((const struct instance *)row)->nics->len);
}

json_t *query_get_instance_nic_macs(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return each_nic(row, mac_of);
}

json_t *query_get_instance_nic_modes(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    return each_nic(row, mode_of);
}

json_t *query_get_instance_nic_links(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    return each_nic(row, link_of);
}

json_t *query_get_instance_nic_networks(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *list = json_array();
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        const struct network *network = config_get(source->config, "network", nic->network, NULL);
        json_array_append_new(list, json_string(network ? network->name : ""));
    }
    return list;
}

json_t *query_get_instance_nic_ips(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    return each_nic(row, ip_of);
}

json_t *query_get_instance_migration_node(struct query_source *source, const void *row,
                                          enum query_status *ret_status)
{
    const struct instance *instance = row;
    return instance->migration_node[0] == '\0'
               ? NULL
               : json_string(config_node_name(source->config, instance->migration_node));
}

/* --- the same for clients of Ganeti --- */

json_t *query_get_instance_migration_downtime(struct query_source *source, const void *row,
                                              enum query_status *ret_status)
{
    const struct cluster *cluster = config_cluster(source->config);
    return cluster ? json_integer((json_int_t)cluster->migration_downtime_ms) : NULL;
}

/* A bridge, or null. */
json_t *query_get_instance_nic_bridges(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *list = json_array();
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        bool bridged = nic->mode != NIC_ROUTED;
        json_array_append_new(list, bridged ? json_string(nic->link) : json_null());
    }
    return list;
}

static json_t *nulls(guint count)
{
    json_t *list = json_array();
    for (guint i = 0; i < count; i++)
        json_array_append_new(list, json_null());
    return list;
}

json_t *query_get_instance_nic_nothing(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    return nulls(((const struct instance *)row)->nics->len);
}

json_t *query_get_instance_disk_nothing(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    return nulls(((const struct instance *)row)->disks->len);
}

static const char *uuid_of(const struct nic *nic)
{
    return nic->uuid;
}

json_t *query_get_instance_nic_uuids(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    return each_nic(row, uuid_of);
}

json_t *query_get_instance_nic_network_uuids(struct query_source *source, const void *row,
                                             enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *list = json_array();
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        json_array_append_new(list, *nic->network ? json_string(nic->network) : json_null());
    }
    return list;
}

json_t *query_get_instance_nicparams(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *list = json_array();
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        json_array_append_new(list, json_make("{ss, ss}", "mode", mode_of(nic), "link", nic->link));
    }
    return list;
}

json_t *query_get_instance_beparams(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_int_t memory = (json_int_t)instance->memory;
    return json_make("{sI, sI, sI, sI, sb, sb, si}", "maxmem", memory, "memory", memory, "minmem",
                     memory, "vcpus", (json_int_t)instance->vcpus, "always_failover", 0,
                     "auto_balance", 1, "spindle_use", 1);
}

json_t *query_get_instance_hvparams(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    const struct instance *instance = row;
    return json_make("{ss, ss, ss, ss, ss}", "machine_version", instance->machine_type,
                     "kernel_path", instance->kernel_path, "initrd_path", instance->initrd_path,
                     "kernel_args", instance->kernel_args, "vnc_bind_address",
                     instance->vnc_bind_address);
}

json_t *query_get_instance_network_port(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    const struct instance *instance = row;
    return instance->network_port != 0 ? json_integer((json_int_t)instance->network_port) : NULL;
}

/* As Ganeti's clients know it. A display of 0.0.0.0 or :: is found at the node's own address; one
 * of 127.0.0.1 from that node only. */
json_t *query_get_instance_console(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct instance *instance = row;
    const struct node *node = config_get(source->config, "node", instance->primary_node, NULL);
    bool everywhere = display_is_everywhere(instance->vnc_bind_address);
    json_int_t port = (json_int_t)instance->network_port;
    if (port == 0)
        return NULL;
    return json_make("{ss, ss, ss, sI, sI, sn, sn, sn}", "instance", instance->name, "kind", "vnc",
                     "host", everywhere && node ? node->primary_ip : instance->vnc_bind_address,
                     "port", port, "display", port - PORT_OF_DISPLAY_0, "message", "user",
                     "command");
}

json_t *query_get_instance_disks_active(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    return json_boolean(((const struct instance *)row)->holder[0] != '\0');
}

static const struct nodegroup *secondary_group(const struct query_source *source, const void *row)
{
    const struct instance *instance = row;
    const struct node *node = config_get(source->config, "node", instance->secondary_node, NULL);
    return node ? config_get(source->config, "nodegroup", node->group, NULL) : NULL;
}

json_t *query_get_instance_snodes_group(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    const struct nodegroup *group = secondary_group(source, row);
    return group ? json_make("[s]", group->name) : json_array();
}

json_t *query_get_instance_snodes_group_uuid(struct query_source *source, const void *row,
                                             enum query_status *ret_status)
{
    const struct nodegroup *group = secondary_group(source, row);
    return group ? json_make("[s]", group->uuid) : json_array();
}
