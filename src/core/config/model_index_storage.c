/*
 * What is stored: services by their numbers, rows of work by who has them, and everything by its
 * back end. See model.h and model_index.h.
 */
#include "core/config/attachments.h"
#include "core/config/model_private.h"

static char *number_key(guint64 id)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT, id);
}

void index_storage_service(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct storage_service *service = object->value;
    g_autofree char *key = number_key(service->id);
    index_lists_change(indexes->tables[INDEX_SERVICES], key, object, add);
}

void index_worker(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct worker *row = object->value;
    g_autofree char *owner = number_key(row->service_id);
    index_sets_change(indexes->tables[INDEX_SERVICE_WORK], owner, object, add);
    index_sets_change(indexes->tables[INDEX_BACKEND_WORK], row->backend, object, add);
}

void index_volume(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct volume *volume = object->value;
    index_sets_change(indexes->tables[INDEX_BACKEND_VOLUMES], volume->backend, object, add);
    for (guint i = 0; i < volume->attachments->len; i++)
        index_sets_change(indexes->tables[INDEX_INSTANCE_VOLUMES],
                          ((const struct attachment *)volume->attachments->pdata[i])->instance,
                          object, add);
}

void index_trash(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct trash *trash = object->value;
    index_sets_change(indexes->tables[INDEX_BACKEND_TRASH], trash->backend, object, add);
}

/* --- questions --- */

static GPtrArray *values_of(const struct config *config, enum config_index index, const char *key)
{
    return index_set_values(g_hash_table_lookup(config->indexes.tables[index], key));
}

const struct storage_service *config_storage_service_of(const struct config *config, guint64 id)
{
    g_autofree char *key = number_key(id);
    const GSList *list = g_hash_table_lookup(config->indexes.tables[INDEX_SERVICES], key);
    return list ? ((const struct config_object *)list->data)->value : NULL;
}

static int compare_rows(const void *a, const void *b)
{
    const struct worker *one = *(const struct worker *const *)a;
    const struct worker *other = *(const struct worker *const *)b;
    return one->created_us < other->created_us ? -1 : one->created_us > other->created_us;
}

GPtrArray *config_service_work(const struct config *config, guint64 service_id)
{
    g_autofree char *key = number_key(service_id);
    GPtrArray *rows = values_of(config, INDEX_SERVICE_WORK, key);
    g_ptr_array_sort(rows, compare_rows);
    return rows;
}

GPtrArray *config_backend_work(const struct config *config, const char *backend)
{
    GPtrArray *rows = values_of(config, INDEX_BACKEND_WORK, backend);
    g_ptr_array_sort(rows, compare_rows);
    return rows;
}

GPtrArray *config_backend_volumes(const struct config *config, const char *backend)
{
    return values_of(config, INDEX_BACKEND_VOLUMES, backend);
}

GPtrArray *config_backend_trash(const struct config *config, const char *backend)
{
    return values_of(config, INDEX_BACKEND_TRASH, backend);
}

static guint64 slot_of(const struct volume *volume)
{
    return ((const struct attachment *)volume->attachments->pdata[0])->slot;
}

static int compare_slots(const void *a, const void *b)
{
    guint64 one = slot_of(*(const struct volume *const *)a);
    guint64 other = slot_of(*(const struct volume *const *)b);
    return (one > other) - (one < other);
}

GPtrArray *config_instance_volumes(const struct config *config, const char *instance)
{
    GPtrArray *volumes = values_of(config, INDEX_INSTANCE_VOLUMES, instance);
    g_ptr_array_sort(volumes, compare_slots);
    return volumes;
}

/* --- words --- */

const char *config_volume_name(const struct volume *volume)
{
    return *volume->name ? volume->name : volume->uuid;
}

char *config_storage_service_name(const struct config *config,
                                  const struct storage_service *service)
{
    const struct backend *backend = config_get(config, "backend", service->backend, NULL);
    return g_strdup_printf("%s %s%s%s", enum_word(&storage_binary_words, (int)service->binary),
                           service->host, *service->backend ? "@" : "",
                           backend ? backend->name : service->backend);
}
