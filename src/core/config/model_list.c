/*
 * All objects of a kind, in an order that does not depend on how they came: lists that people see,
 * and keys. See model.h.
 */
#include "core/config/model_private.h"

#include <string.h>

/* --- the order --- */

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* Numbers (job ids) by value, everything else by its bytes. */
static int compare_labels(const char *a, const char *b)
{
    if (is_number(a) && is_number(b) && strlen(a) != strlen(b))
        return strlen(a) < strlen(b) ? -1 : 1;
    return strcmp(a, b);
}

static int compare_objects(const void *a, const void *b, void *data)
{
    const struct config_object *one = *(const struct config_object *const *)a;
    const struct config_object *other = *(const struct config_object *const *)b;
    const struct field *name = data;
    if (name) {
        int order =
            compare_labels(string_member(one->value, name), string_member(other->value, name));
        if (order)
            return order;
    }
    return compare_labels(one->key, other->key);
}

/* Where an object stands in the sorted list, or would. */
static guint sorted_place(const struct kind *kind, const struct config_object *object)
{
    const struct field *name = record_field(kind->record, "name");
    guint low = 0, high = kind->sorted->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (compare_objects(&kind->sorted->pdata[middle], &object, (void *)name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void kind_sorted_add(struct kind *kind, struct config_object *object)
{
    if (kind->sorted)
        g_ptr_array_insert(kind->sorted, (gint)sorted_place(kind, object), object);
}

/* Names that are partly numbers ("9", "10", "1a") have no order that a search can rely on: then the
 * list is made anew when it is next asked for. */
void kind_sorted_remove(struct kind *kind, const struct config_object *object)
{
    if (!kind->sorted)
        return;
    guint place = sorted_place(kind, object);
    if (place < kind->sorted->len && kind->sorted->pdata[place] == object)
        g_ptr_array_remove_index(kind->sorted, place);
    else
        g_ptr_array_unref(g_steal_pointer(&kind->sorted));
}

/* --- lists --- */

static void kind_sort(struct kind *kind)
{
    GHashTableIter iter;
    void *object;
    kind->sorted = g_ptr_array_sized_new(g_hash_table_size(kind->by_key));
    g_hash_table_iter_init(&iter, kind->by_key);
    while (g_hash_table_iter_next(&iter, NULL, &object))
        g_ptr_array_add(kind->sorted, object);
    g_ptr_array_sort_with_data(kind->sorted, compare_objects,
                               (void *)record_field(kind->record, "name"));
}

GPtrArray *config_list(const struct config *config, const char *kind_name)
{
    config_need_all_of(config, kind_name);
    struct kind *kind = kind_find(config, kind_name);
    if (!kind)
        return g_ptr_array_new();
    if (!kind->sorted)
        kind_sort(kind);
    GPtrArray *list = g_ptr_array_sized_new(kind->sorted->len);
    for (guint i = 0; i < kind->sorted->len; i++)
        g_ptr_array_add(list, ((struct config_object *)kind->sorted->pdata[i])->value);
    return list;
}

/* --- keys --- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *sorted_keys(GHashTable *table)
{
    GPtrArray *keys = g_ptr_array_sized_new(g_hash_table_size(table));
    GHashTableIter iter;
    void *key;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_ptr_array_add(keys, key);
    g_ptr_array_sort(keys, compare_texts);
    return keys;
}

GPtrArray *config_kinds(const struct config *config)
{
    return sorted_keys(config->kinds);
}

GPtrArray *config_keys(const struct config *config, const char *kind_name)
{
    config_need_all_of(config, kind_name);
    const struct kind *kind = kind_find(config, kind_name);
    return kind ? sorted_keys(kind->by_key) : g_ptr_array_new();
}
