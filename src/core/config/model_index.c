/* Which indexes there are, and what they are made of. See model_index.h. */
#include "core/config/model_private.h"
#include "core/config/storage/takes.h"

/* --- text -> list --- */

static void free_list(void *list)
{
    g_slist_free(list);
}

GHashTable *index_lists_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_list);
}

void index_lists_change(GHashTable *index, const char *text, struct config_object *object, bool add)
{
    void *key = NULL, *list = NULL;
    g_hash_table_steal_extended(index, text, &key, &list);
    list = add ? g_slist_prepend(list, object) : g_slist_remove(list, object);
    if (list)
        g_hash_table_insert(index, key ? key : g_strdup(text), list);
    else
        g_free(key);
}

/* --- text -> set --- */

static guint key_hash(const void *object)
{
    return g_str_hash(((const struct config_object *)object)->key);
}

GHashTable *index_set_new(void)
{
    return g_hash_table_new(key_hash, NULL);
}

GHashTable *index_sets_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                 (GDestroyNotify)g_hash_table_unref);
}

void index_sets_change(GHashTable *index, const char *text, struct config_object *object, bool add)
{
    GHashTable *set = g_hash_table_lookup(index, text);
    if (!set && add) {
        set = index_set_new();
        g_hash_table_insert(index, g_strdup(text), set);
    }
    if (add)
        g_hash_table_add(set, object);
    else if (set)
        g_hash_table_remove(set, object);
    if (set && g_hash_table_size(set) == 0)
        g_hash_table_remove(index, text);
}

GPtrArray *index_set_values(GHashTable *set)
{
    GPtrArray *values = g_ptr_array_new();
    GHashTableIter iter;
    void *object;
    if (!set)
        return values;
    g_hash_table_iter_init(&iter, set);
    while (g_hash_table_iter_next(&iter, &object, NULL))
        g_ptr_array_add(values, ((const struct config_object *)object)->value);
    return values;
}

/* --- all of them --- */

static GHashTable *(*const makers[INDEX_COUNT])(void) = {
    [INDEX_ADDRESSES] = index_lists_new,
    [INDEX_TAGS... INDEX_TAGS + TAG_INSTANCE] = index_sets_new,
    [INDEX_NODES] = index_nodes_new,
    [INDEX_SERVICES] = index_lists_new,
    [INDEX_SERVICE_WORK... INDEX_TYPE_VOLUMES] = index_sets_new,
    [INDEX_TAKES] = takes_index_new,
};

static const struct {
    const struct record *record;
    void (*change)(struct config_indexes *indexes, struct config_object *object, bool add);
} changes[] = {
    {&tag_record, index_tag},           {&instance_record, index_addresses},
    {&instance_record, index_nodes},    {&reservation_record, index_reserved_addresses},
    {&reservation_record, index_rooms}, {&storage_service_record, index_storage_service},
    {&worker_record, index_worker},     {&volume_record, index_volume},
    {&snapshot_record, index_snapshot}, {&backup_record, index_backup},
    {&image_record, index_image},       {&trash_record, index_trash},
};

void config_indexes_init(struct config_indexes *indexes)
{
    for (guint i = 0; i < INDEX_COUNT; i++)
        indexes->tables[i] = makers[i]();
}

void config_indexes_clear(struct config_indexes *indexes)
{
    for (guint i = 0; i < INDEX_COUNT; i++)
        g_hash_table_remove_all(indexes->tables[i]);
}

void config_indexes_free(struct config_indexes *indexes)
{
    for (guint i = 0; i < INDEX_COUNT; i++)
        g_hash_table_unref(indexes->tables[i]);
}

void config_indexes_change(struct config_indexes *indexes, struct config_object *object, bool add)
{
    for (guint i = 0; i < G_N_ELEMENTS(changes); i++)
        if (changes[i].record == object->record)
            changes[i].change(indexes, object, add);
}
