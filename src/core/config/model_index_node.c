/*
 * What nodes are used for: their instances, and what is promised of each to instances and
 * reservations. See model.h, allocated.h and model_index.h.
 */
#include "core/config/allocated.h"
#include "core/config/model_private.h"

#include <string.h>

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

GHashTable *index_nodes_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, use_free);
}

static struct node_use *use_need(struct config_indexes *indexes, const char *node)
{
    struct node_use *use = g_hash_table_lookup(indexes->tables[INDEX_NODES], node);
    if (!use) {
        use = g_new0(struct node_use, 1);
        use->instances = index_set_new();
        g_hash_table_insert(indexes->tables[INDEX_NODES], g_strdup(node), use);
    }
    return use;
}

static void drop_unused(struct config_indexes *indexes, const struct node_use *use,
                        const char *node)
{
    if (g_hash_table_size(use->instances) == 0 && use->reservations == 0)
        g_hash_table_remove(indexes->tables[INDEX_NODES], node);
}

void index_rooms(struct config_indexes *indexes, struct config_object *object, bool add)
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

void index_nodes(struct config_indexes *indexes, struct config_object *object, bool add)
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
    const struct node_use *use = g_hash_table_lookup(config->indexes.tables[INDEX_NODES], node);
    GPtrArray *instances = index_set_values(use ? use->instances : NULL);
    g_ptr_array_sort(instances, compare_names);
    return instances;
}

struct allocated config_promised(const struct config *config, const char *node)
{
    config_need_all(config, "what is promised of a node");
    const struct node_use *use = g_hash_table_lookup(config->indexes.tables[INDEX_NODES], node);
    return use ? use->promised : (struct allocated){0};
}
