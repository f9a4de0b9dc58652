/* Tags by the object that carries them. See model.h and model_index.h. */
#include "core/config/model_private.h"

#include <string.h>

static GHashTable *tags_of(const struct config_indexes *indexes, enum tag_kind kind)
{
    return indexes->tables[INDEX_TAGS + kind];
}

void index_tag(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct tag *tag = object->value;
    index_sets_change(tags_of(indexes, tag->kind), tag->object, object, add);
}

bool config_has_tags(const struct config *config, enum tag_kind kind, const char *object)
{
    return g_hash_table_contains(tags_of(&config->indexes, kind), object);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *config_tags(const struct config *config, enum tag_kind kind, const char *object)
{
    GPtrArray *tags =
        index_set_values(g_hash_table_lookup(tags_of(&config->indexes, kind), object));
    for (guint i = 0; i < tags->len; i++)
        tags->pdata[i] = ((const struct tag *)tags->pdata[i])->tag;
    g_ptr_array_sort(tags, compare_strings);
    return tags;
}
