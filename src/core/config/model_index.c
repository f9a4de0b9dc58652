/*
 * What is found in a configuration other than by kind and key: tags by the object that carries
 * them, instances by their addresses and ports and by the nodes that they use, and what is promised
 * of each node. See model.h, allocated.h and model_private.h.
 */
#include "core/config/allocated.h"
#include "core/config/model_private.h"

#include <string.h>

/* --- text -> list --- */

GHashTable *index_lists_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

void index_lists_clear(GHashTable *index)
{
    GHashTableIter iter;
    void *list;
    g_hash_table_iter_init(&iter, index);
    while (g_hash_table_iter_next(&iter, NULL, &list))
        g_slist_free(list);
    g_hash_table_remove_all(index);
}

void index_lists_change(GHashTable *index, const char *text, struct config_object *object, bool add)
{
    GSList *list = g_hash_table_lookup(index, text);
    list = add ? g_slist_prepend(list, object) : g_slist_remove(list, object);
    if (list)
        g_hash_table_replace(index, g_strdup(text), list);
    else
        g_hash_table_remove(index, text);
}

/* --- addresses --- */

char *config_ip_key(const struct nic *nic)
{
    return g_strconcat(nic->ip, "@", nic->link, NULL);
}

char *config_port_key(guint64 port)
{
    return g_strdup_printf("port %" G_GUINT64_FORMAT, port);
}

static void change_port(struct config_indexes *indexes, guint64 port, struct config_object *object,
                        bool add)
{
    g_autofree char *key = config_port_key(port);
    if (port)
        index_lists_change(indexes->addresses, key, object, add);
}

static void change_addresses(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct instance *instance = object->value;
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        g_autofree char *ip = config_ip_key(nic);
        index_lists_change(indexes->addresses, nic->mac, object, add);
        if (*nic->ip)
            index_lists_change(indexes->addresses, ip, object, add);
    }
    change_port(indexes, instance->network_port, object, add);
}

static void change_reserved(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct reservation *reservation = object->value;
    for (guint i = 0; i < reservation->macs->len; i++)
        index_lists_change(indexes->addresses, reservation->macs->pdata[i], object, add);
    for (guint i = 0; i < reservation->ips->len; i++)
        index_lists_change(indexes->addresses, reservation->ips->pdata[i], object, add);
    change_port(indexes, reservation->port, object, add);
}

char *config_address_user(const struct config *config, const char *address, const char *except)
{
    config_need_all(config, "user of an address");
    for (const GSList *item = g_hash_table_lookup(config->indexes.addresses, address); item;
         item = item->next) {
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
    for (const GSList *item = g_hash_table_lookup(config->indexes.addresses, mac); item;
         item = item->next) {
        const struct config_object *object = item->data;
        if (object->record == &instance_record && strcmp(object->key, except) != 0)
            return object->value;
    }
    return NULL;
}

/* --- tags --- */

static void change_tag(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct tag *tag = object->value;
    GHashTable *owners = indexes->tags[tag->kind];
    GHashTable *set = g_hash_table_lookup(owners, tag->object);
    if (!set && add) {
        set = g_hash_table_new(g_direct_hash, g_direct_equal);
        g_hash_table_insert(owners, g_strdup(tag->object), set);
    }
    if (add)
        g_hash_table_add(set, object);
    else if (set)
        g_hash_table_remove(set, object);
    if (set && g_hash_table_size(set) == 0)
        g_hash_table_remove(owners, tag->object);
}

char *config_tag_key(enum tag_kind kind, const char *object, const char *tag)
{
    return g_strdup_printf("%s/%s/%s", enum_word(&tag_kind_words, (int)kind), object, tag);
}

/* A UUID by a name, of SHA-1 (RFC 4122, version 5): the node is the name space. */
char *config_derived_uuid(const char *of, const char *text)
{
    guint8 sum[20];
    gsize len = sizeof sum;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA1);
    g_checksum_update(checksum, (const guchar *)of, (gssize)strlen(of));
    g_checksum_update(checksum, (const guchar *)text, (gssize)strlen(text));
    g_checksum_get_digest(checksum, sum, &len);
    sum[6] = (guint8)((sum[6] & 0x0f) | 0x50);
    sum[8] = (guint8)((sum[8] & 0x3f) | 0x80);
    GString *uuid = g_string_new(NULL);
    for (guint i = 0; i < 16; i++)
        g_string_append_printf(uuid, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                               sum[i]);
    return g_string_free(uuid, FALSE);
}

char *config_service_key(const char *node, const char *name)
{
    return config_derived_uuid(node, name);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool config_has_tags(const struct config *config, enum tag_kind kind, const char *object)
{
    return g_hash_table_contains(config->indexes.tags[kind], object);
}

GPtrArray *config_tags(const struct config *config, enum tag_kind kind, const char *object)
{
    GHashTable *set = g_hash_table_lookup(config->indexes.tags[kind], object);
    GPtrArray *tags = g_ptr_array_new();
    GHashTableIter iter;
    void *key;
    if (!set)
        return tags;
    g_hash_table_iter_init(&iter, set);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const struct tag *tag = ((const struct config_object *)key)->value;
        g_ptr_array_add(tags, tag->tag);
    }
    g_ptr_array_sort(tags, compare_strings);
    return tags;
}

/* --- what nodes are used for --- */

struct node_use {
    GHashTable *instances; /* set of struct config_object */
    guint reservations;
    struct allocated promised;
};

static void use_free(void *data)
{
    struct node_use *use = data;
    g_hash_table_unref(use->instances);
    g_free(use);
}

static struct node_use *use_need(struct config_indexes *indexes, const char *node)
{
    struct node_use *use = g_hash_table_lookup(indexes->uses, node);
    if (!use) {
        use = g_new0(struct node_use, 1);
        use->instances = g_hash_table_new(g_direct_hash, g_direct_equal);
        g_hash_table_insert(indexes->uses, g_strdup(node), use);
    }
    return use;
}

static void drop_unused(struct config_indexes *indexes, const struct node_use *use,
                        const char *node)
{
    if (g_hash_table_size(use->instances) == 0 && use->reservations == 0)
        g_hash_table_remove(indexes->uses, node);
}

static void change_rooms(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct reservation *reservation = object->value;
    for (guint i = 0; i < reservation->rooms->len; i++) {
        const struct reserved_room *room = reservation->rooms->pdata[i];
        struct node_use *use = use_need(indexes, room->node);
        struct allocated part = allocated_room(room);
        (add ? allocated_add : allocated_take)(&use->promised, &part);
        use->reservations += add ? 1u : -1u; /* modular: adding -1u takes one away */
        drop_unused(indexes, use, room->node);
    }
}

static void change_uses(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const char *nodes[4];
    guint count = allocated_nodes(object->value, nodes);
    if (((const struct instance *)object->value)->disk_template == TEMPLATE_SHAREDFILE)
        nodes[count++] = SHARED_FOLDER_ROOM;
    for (guint i = 0; i < count; i++) {
        struct node_use *use = use_need(indexes, nodes[i]);
        struct allocated part = allocated_to(object->value, nodes[i]);
        if (add) {
            g_hash_table_add(use->instances, object);
            allocated_add(&use->promised, &part);
        } else {
            g_hash_table_remove(use->instances, object);
            allocated_take(&use->promised, &part);
        }
        drop_unused(indexes, use, nodes[i]);
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct instance *one = *(const struct instance *const *)a;
    const struct instance *other = *(const struct instance *const *)b;
    int order = strcmp(one->name, other->name);
    return order ? order : strcmp(one->uuid, other->uuid);
}

GPtrArray *config_node_instances(const struct config *config, const char *node)
{
    config_need_all(config, "instances of a node");
    const struct node_use *use = g_hash_table_lookup(config->indexes.uses, node);
    GPtrArray *instances = g_ptr_array_new();
    GHashTableIter iter;
    void *key;
    if (!use)
        return instances;
    g_hash_table_iter_init(&iter, use->instances);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_ptr_array_add(instances, ((const struct config_object *)key)->value);
    g_ptr_array_sort(instances, compare_names);
    return instances;
}

struct allocated config_promised(const struct config *config, const char *node)
{
    config_need_all(config, "what is promised of a node");
    const struct node_use *use = g_hash_table_lookup(config->indexes.uses, node);
    return use ? use->promised : (struct allocated){0};
}

/* --- all of them --- */

void config_indexes_init(struct config_indexes *indexes)
{
    indexes->addresses = index_lists_new();
    for (guint i = 0; i < G_N_ELEMENTS(indexes->tags); i++)
        indexes->tags[i] = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                                 (GDestroyNotify)g_hash_table_unref);
    indexes->uses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, use_free);
}

void config_indexes_clear(struct config_indexes *indexes)
{
    index_lists_clear(indexes->addresses);
    for (guint i = 0; i < G_N_ELEMENTS(indexes->tags); i++)
        g_hash_table_remove_all(indexes->tags[i]);
    g_hash_table_remove_all(indexes->uses);
}

void config_indexes_free(struct config_indexes *indexes)
{
    config_indexes_clear(indexes);
    g_hash_table_unref(indexes->addresses);
    for (guint i = 0; i < G_N_ELEMENTS(indexes->tags); i++)
        g_hash_table_unref(indexes->tags[i]);
    g_hash_table_unref(indexes->uses);
}

void config_indexes_change(struct config_indexes *indexes, struct config_object *object, bool add)
{
    if (object->record == &tag_record) {
        change_tag(indexes, object, add);
    } else if (object->record == &instance_record) {
        change_addresses(indexes, object, add);
        change_uses(indexes, object, add);
    } else if (object->record == &reservation_record) {
        change_reserved(indexes, object, add);
        change_rooms(indexes, object, add);
    }
}
