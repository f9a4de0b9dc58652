/*
 * Instances and reservations by their addresses: MAC, IP on its link, port of a display. See
 * model.h and model_index.h.
 */
#include "core/config/model_private.h"

#include <string.h>

static void change_port(struct config_indexes *indexes, guint64 port, struct config_object *object,
                        bool add)
{
    g_autofree char *key = config_port_key(port);
    if (port)
        index_lists_change(indexes->tables[INDEX_ADDRESSES], key, object, add);
}

void index_addresses(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct instance *instance = object->value;
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        g_autofree char *ip = config_ip_key(nic);
        index_lists_change(indexes->tables[INDEX_ADDRESSES], nic->mac, object, add);
        if (*nic->ip)
            index_lists_change(indexes->tables[INDEX_ADDRESSES], ip, object, add);
    }
    change_port(indexes, instance->network_port, object, add);
}

void index_reserved_addresses(struct config_indexes *indexes, struct config_object *object,
                              bool add)
{
    const struct reservation *reservation = object->value;
    for (guint i = 0; i < reservation->macs->len; i++)
        index_lists_change(indexes->tables[INDEX_ADDRESSES], reservation->macs->pdata[i], object,
                           add);
    for (guint i = 0; i < reservation->ips->len; i++)
        index_lists_change(indexes->tables[INDEX_ADDRESSES], reservation->ips->pdata[i], object,
                           add);
    change_port(indexes, reservation->port, object, add);
}

char *config_address_user(const struct config *config, const char *address, const char *except)
{
    config_need_all(config, "user of an address");
    for (const GSList *item = g_hash_table_lookup(config->indexes.tables[INDEX_ADDRESSES], address);
         item; item = item->next) {
        const struct config_object *object = item->data;
        if (!strcmp(object->key, except))
            continue;
        if (object->record == &instance_record)
            return g_strdup_printf("instance \"%s\"",
                                   ((const struct instance *)object->value)->name);
        const struct reservation *reservation = object->value;
        return g_strdup_printf("job %s for instance \"%s\"", reservation->owner->job,
                               reservation->name);
    }
    return NULL;
}

const struct instance *config_mac_user(const struct config *config, const char *mac,
                                       const char *except)
{
    config_need_all(config, "user of a MAC address");
    for (const GSList *item = g_hash_table_lookup(config->indexes.tables[INDEX_ADDRESSES], mac);
         item; item = item->next) {
        const struct config_object *object = item->data;
        if (object->record == &instance_record && strcmp(object->key, except) != 0)
            return object->value;
    }
    return NULL;
}
