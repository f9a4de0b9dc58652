/* Fields of networks (proto/fields.def): what of their addresses is left, and who has them. */
#include "core/config/addresses.h"
#include "core/query/query_rows.h"

json_t *query_get_network_free_count(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    guint all, free;
    network_count(source->config, row, &all, &free);
    return json_integer(free);
}

json_t *query_get_network_reserved_count(struct query_source *source, const void *row,
                                         enum query_status *ret_status)
{
    guint all, free;
    network_count(source->config, row, &all, &free);
    return json_integer(all - free);
}

json_t *query_get_network_inst_list(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    g_autoptr(GPtrArray) instances = config_list(source->config, "instance");
    json_t *names = json_array();
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (network_has(row, instance))
            json_array_append_new(names, json_string(instance->name));
    }
    return names;
}

json_t *query_get_network_inst_cnt(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    json_autoptr names = query_get_network_inst_list(source, row, ret_status);
    return json_integer((json_int_t)json_array_size(names));
}

static void add_taken(const char *address, const char *who, void *data)
{
    json_array_append_new(data, json_make("[s, s]", address, who));
}

json_t *query_get_network_used(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    json_t *list = json_array();
    network_each_taken(source->config, row, add_taken, list);
    return list;
}

json_t *query_get_network_map(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    g_autofree char *map = network_map(source->config, row);
    return json_string(map);
}

json_t *query_get_network_serial_no(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return query_serial_no(source, "network", ((const struct network *)row)->uuid);
}

json_t *query_get_network_group_list(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct network *network = row;
    g_autoptr(GPtrArray) groups = config_list(source->config, "nodegroup");
    json_t *list = json_array();
    for (guint i = 0; i < groups->len; i++)
        json_array_append_new(
            list, json_make("[s, s, s, s]", ((const struct nodegroup *)groups->pdata[i])->name,
                            enum_word(&nic_mode_words, (int)network->mode), network->link, ""));
    return list;
}

json_t *query_get_network_group_cnt(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return json_integer(config_count(source->config, "nodegroup"));
}
