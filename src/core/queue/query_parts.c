/* Fields of the parts of an instance (proto/fields.def): its disks' formats, its network cards, the
 * migration under way. */
#include "core/queue/query_rows.h"

json_t *query_get_instance_disk_formats(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    const struct instance *instance = row;
    json_t *list = json_array();

    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = g_ptr_array_index(instance->disks, i);

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
        json_array_append_new(list, json_string(text(g_ptr_array_index(instance->nics, i))));
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
        const struct nic *nic = g_ptr_array_index(instance->nics, i);
        const struct network *network = config_get(source->config, "network", nic->network, NULL);

        json_array_append_new(list, json_string(network == NULL ? "" : network->name));
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
