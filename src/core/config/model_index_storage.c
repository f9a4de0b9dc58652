/*
 * What is stored: services by their numbers, rows of work by who has them, and everything by its
 * back end. See model.h and model_index.h.
 */
#include "core/config/attachments.h"
#include "core/config/model_private.h"
#include "core/config/storage/takes.h"

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
    takes_row(indexes, object, add);
    if (*row->partner_id) {
        g_autofree char *partner = config_work_key(row->partner_type, row->partner_id);
        index_sets_change(indexes->tables[INDEX_HELD_WORK], partner, object, add);
    }
    if (row->source) {
        g_autofree char *source =
            config_work_key(row->source->resource_type, row->source->resource_id);
        index_sets_change(indexes->tables[INDEX_HELD_WORK], source, object, add);
    }
}

void index_volume(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct volume *volume = object->value;
    takes_volume(indexes, object, add);
    index_sets_change(indexes->tables[INDEX_BACKEND_VOLUMES], volume->backend, object, add);
    if (*volume->project)
        index_sets_change(indexes->tables[INDEX_PROJECT_VOLUMES], volume->project, object, add);
    if (*volume->volume_type)
        index_sets_change(indexes->tables[INDEX_TYPE_VOLUMES], volume->volume_type, object, add);
    for (guint i = 0; i < volume->attachments->len; i++)
        index_sets_change(indexes->tables[INDEX_INSTANCE_VOLUMES],
                          ((const struct attachment *)volume->attachments->pdata[i])->instance,
                          object, add);
}

void index_snapshot(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct snapshot *snapshot = object->value;
    takes_snapshot(indexes, snapshot, add);
    index_sets_change(indexes->tables[INDEX_BACKEND_SNAPSHOTS], snapshot->backend, object, add);
    index_sets_change(indexes->tables[INDEX_VOLUME_SNAPSHOTS], snapshot->volume, object, add);
    if (*snapshot->project)
        index_sets_change(indexes->tables[INDEX_PROJECT_SNAPSHOTS], snapshot->project, object, add);
}

void index_backup(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct backup *backup = object->value;
    takes_backup(indexes, backup, add);
    index_sets_change(indexes->tables[INDEX_BACKEND_BACKUPS], backup->backend, object, add);
    if (*backup->project)
        index_sets_change(indexes->tables[INDEX_PROJECT_BACKUPS], backup->project, object, add);
}

void index_image(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct image *image = object->value;
    takes_image(indexes, image, add);
    index_sets_change(indexes->tables[INDEX_BACKEND_IMAGES], image->backend, object, add);
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

GPtrArray *config_held_work(const struct config *config, enum resource_type type, const char *uuid)
{
    g_autofree char *key = config_work_key(type, uuid);
    GPtrArray *rows = values_of(config, INDEX_HELD_WORK, key);
    g_ptr_array_sort(rows, compare_rows);
    return rows;
}

GPtrArray *config_backend_volumes(const struct config *config, const char *backend)
{
    return values_of(config, INDEX_BACKEND_VOLUMES, backend);
}

GPtrArray *config_backend_snapshots(const struct config *config, const char *backend)
{
    return values_of(config, INDEX_BACKEND_SNAPSHOTS, backend);
}

GPtrArray *config_backend_backups(const struct config *config, const char *backend)
{
    return values_of(config, INDEX_BACKEND_BACKUPS, backend);
}

GPtrArray *config_backend_images(const struct config *config, const char *backend)
{
    return values_of(config, INDEX_BACKEND_IMAGES, backend);
}

GPtrArray *config_project_volumes(const struct config *config, const char *project)
{
    return values_of(config, INDEX_PROJECT_VOLUMES, project);
}

GPtrArray *config_project_snapshots(const struct config *config, const char *project)
{
    return values_of(config, INDEX_PROJECT_SNAPSHOTS, project);
}

GPtrArray *config_project_backups(const struct config *config, const char *project)
{
    return values_of(config, INDEX_PROJECT_BACKUPS, project);
}

GPtrArray *config_type_volumes(const struct config *config, const char *volume_type)
{
    return values_of(config, INDEX_TYPE_VOLUMES, volume_type);
}

const struct volume *config_volume_of_type(const struct config *config, const char *volume_type)
{
    g_autoptr(GPtrArray) volumes = config_type_volumes(config, volume_type);
    if (volumes->len)
        return volumes->pdata[0];
    g_autoptr(GPtrArray) rows = config_list(config, "worker");
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        const struct volume *volume = strcmp(row->volume_type, volume_type) != 0
                                          ? NULL
                                          : config_get(config, "volume", row->resource_id, NULL);
        if (volume) /* its record may be gone before its row */
            return volume;
    }
    return NULL;
}

guint64 config_volume_gib(const struct config *config, const struct volume *volume)
{
    if (volume->status != VOLUME_EXTENDING)
        return volume->size; /* at a glance: all of a back end are summed up for each request */
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, volume->uuid);
    const struct worker *row = config_get(config, "worker", key, NULL);
    return MAX(volume->size, row ? row->size : 0);
}

static int compare_snapshots(const void *a, const void *b)
{
    const struct snapshot *one = *(const struct snapshot *const *)a;
    const struct snapshot *other = *(const struct snapshot *const *)b;
    return one->created_us < other->created_us ? -1 : one->created_us > other->created_us;
}

GPtrArray *config_volume_snapshots(const struct config *config, const char *volume)
{
    GPtrArray *snapshots = values_of(config, INDEX_VOLUME_SNAPSHOTS, volume);
    g_ptr_array_sort(snapshots, compare_snapshots);
    return snapshots;
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

static const char *backend_name(const struct config *config, const struct storage_service *service)
{
    const struct backend *backend = config_get(config, "backend", service->backend, NULL);
    return backend ? backend->name : service->backend;
}

char *config_storage_service_host(const struct config *config,
                                  const struct storage_service *service)
{
    return g_strdup_printf("%s%s%s", service->host, *service->backend ? "@" : "",
                           backend_name(config, service));
}

char *config_storage_service_cluster(const struct config *config,
                                     const struct storage_service *service)
{
    return *service->backend ? g_strdup_printf("fettle@%s", backend_name(config, service))
                             : g_strdup("");
}

char *config_storage_service_name(const struct config *config,
                                  const struct storage_service *service)
{
    g_autofree char *host = config_storage_service_host(config, service);
    return g_strdup_printf("%s %s", enum_word(&storage_binary_words, (int)service->binary), host);
}
