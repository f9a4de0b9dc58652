/* Fields of back ends, volumes, snapshots, backups, rows of work and the services that work on them
 * (proto/fields_storage.def), and the order of their rows. */
#include "core/config/attachments.h"
#include "core/query/query_rows.h"

#include <string.h>

#include "core/config/resource.h"
#include "core/config/usage.h"
#include "proto/storage/backend_place.h"

/* --- rows --- */

static gint compare_numbers(guint64 a, guint64 b)
{
    return (a > b) - (a < b);
}

static gint compare_workers(gconstpointer left, gconstpointer right)
{
    return compare_numbers((*(const struct worker *const *)left)->id,
                           (*(const struct worker *const *)right)->id);
}

static gint compare_services(gconstpointer left, gconstpointer right)
{
    return compare_numbers((*(const struct storage_service *const *)left)->id,
                           (*(const struct storage_service *const *)right)->id);
}

GPtrArray *query_worker_rows(const struct config *config)
{
    GPtrArray *rows = config_list(config, "worker");
    g_ptr_array_sort(rows, compare_workers);
    return rows;
}

GPtrArray *query_storage_service_rows(const struct config *config)
{
    GPtrArray *rows = config_list(config, "storage_service");
    g_ptr_array_sort(rows, compare_services);
    return rows;
}

/* --- shared --- */

static json_t *text(const char *value)
{
    return *value ? json_string(value) : NULL;
}

/* What its row says stays on record when that is gone; a row of the version before says it alone.
 */
static json_t *asked_by(const struct worker *work, const char *last)
{
    return text(work && *work->request_id ? work->request_id : last);
}

static json_t *stamp(guint64 us)
{
    return us ? json_integer((json_int_t)(us / (guint64)G_USEC_PER_SEC)) : NULL;
}

static json_t *backend_name(const struct query_source *source, const char *uuid)
{
    const struct backend *backend = config_get(source->config, "backend", uuid, NULL);
    return text(backend ? backend->name : uuid);
}

/* NODE@BACKEND, or NODE of a scheduler. */
static json_t *host(const struct query_source *source, const struct storage_service *service)
{
    g_autofree char *name = config_storage_service_host(source->config, service);
    return json_string(name);
}

/* NULL: 0, or one that is off record. */
static json_t *service_of(const struct query_source *source, guint64 id)
{
    g_autoptr(GPtrArray) services = config_list(source->config, "storage_service");
    for (guint i = 0; i < services->len && id; i++) {
        const struct storage_service *service = services->pdata[i];
        if (service->id == id)
            return host(source, service);
    }
    return NULL;
}

/* Its own, or that of which it is the partner; NULL: nobody has asked for anything. */
static const struct worker *row_of(const struct query_source *source, enum resource_type type,
                                   const char *uuid)
{
    g_autofree char *key = config_work_key(type, uuid);
    g_autoptr(GPtrArray) held = config_held_work(source->config, type, uuid);
    const struct worker *row = config_get(source->config, "worker", key, NULL);
    for (guint i = 0; i < held->len && !row; i++) {
        const struct worker *other = held->pdata[i];
        row = other->partner_type == type && !strcmp(other->partner_id, uuid) ? other : NULL;
    }
    return row;
}

static const struct worker *row_of_volume(const struct query_source *source, const void *row)
{
    return row_of(source, RESOURCE_VOLUME, ((const struct volume *)row)->uuid);
}

static const struct worker *row_of_snapshot(const struct query_source *source, const void *row)
{
    return row_of(source, RESOURCE_SNAPSHOT, ((const struct snapshot *)row)->uuid);
}

static const struct worker *row_of_backup(const struct query_source *source, const void *row)
{
    return row_of(source, RESOURCE_BACKUP, ((const struct backup *)row)->uuid);
}

static const struct worker *row_of_image(const struct query_source *source, const void *row)
{
    return row_of(source, RESOURCE_IMAGE, ((const struct image *)row)->uuid);
}

/* --- backend --- */

json_t *query_get_backend_nodes(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct backend *backend = row;
    json_t *names = json_array();
    for (guint i = 0; i < backend->nodes->len; i++)
        json_array_append_new(
            names, json_string(config_node_name(source->config, backend->nodes->pdata[i])));
    return names;
}

json_t *query_get_backend_up(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct backend *backend = row;
    g_autoptr(GPtrArray) services = config_list(source->config, "storage_service");
    json_t *names = json_array();
    for (guint i = 0; i < backend->nodes->len; i++)
        for (guint k = 0; k < services->len; k++) {
            const struct storage_service *service = services->pdata[k];
            if (!strcmp(service->backend, backend->uuid) && service->state == STORAGE_UP &&
                !strcmp(service->node, backend->nodes->pdata[i]))
                json_array_append_new(names,
                                      json_string(config_node_name(source->config, service->node)));
        }
    return names;
}

static guint64 sum_of_volumes(const struct query_source *source, const struct backend *backend,
                              guint *ret_count)
{
    g_autoptr(GPtrArray) volumes = config_list(source->config, "volume");
    guint64 size = 0;
    *ret_count = 0;
    for (guint i = 0; i < volumes->len; i++) {
        const struct volume *volume = volumes->pdata[i];
        if (strcmp(volume->backend, backend->uuid) != 0)
            continue;
        size += volume->size;
        ++*ret_count;
    }
    return size;
}

json_t *query_get_backend_volume_cnt(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    guint count;
    sum_of_volumes(source, row, &count);
    return json_integer(count);
}

json_t *query_get_backend_place(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    g_autofree char *place = backend_place(row);
    return json_string(place);
}

json_t *query_get_backend_size(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    guint count;
    return json_integer((json_int_t)sum_of_volumes(source, row, &count));
}

/* NULL: nobody has said. */
static const struct backend_space *space_of(const struct query_source *source, const void *row)
{
    const struct cluster_status *status = source->status;
    for (guint i = 0; status && i < status->spaces->len; i++) {
        const struct backend_space *space = status->spaces->pdata[i];
        if (!strcmp(space->backend, ((const struct backend *)row)->uuid))
            return space;
    }
    return NULL;
}

json_t *query_get_backend_free(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    const struct backend_space *space = space_of(source, row);
    return space ? json_integer((json_int_t)space->free_mib) : NULL;
}

json_t *query_get_backend_total(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct backend_space *space = space_of(source, row);
    return space ? json_integer((json_int_t)space->total_mib) : NULL;
}

json_t *query_get_backend_promised(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    return json_integer((json_int_t)usage_promised_mib(source->config, row));
}

json_t *query_get_backend_snapshot_cnt(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    g_autoptr(GPtrArray) snapshots =
        config_backend_snapshots(source->config, ((const struct backend *)row)->uuid);
    return json_integer(snapshots->len);
}

json_t *query_get_backend_backup_cnt(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    g_autoptr(GPtrArray) backups =
        config_backend_backups(source->config, ((const struct backend *)row)->uuid);
    return json_integer(backups->len);
}

json_t *query_get_backend_image_cnt(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    g_autoptr(GPtrArray) images =
        config_backend_images(source->config, ((const struct backend *)row)->uuid);
    return json_integer(images->len);
}

json_t *query_get_backend_worker_cnt(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct backend *backend = row;
    g_autoptr(GPtrArray) workers = config_list(source->config, "worker");
    json_int_t count = 0;
    for (guint i = 0; i < workers->len; i++)
        count += !strcmp(((const struct worker *)workers->pdata[i])->backend, backend->uuid);
    return json_integer(count);
}

json_t *query_get_backend_trash(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct backend *backend = row;
    g_autoptr(GPtrArray) trash = config_list(source->config, "trash");
    json_t *names = json_array();
    for (guint i = 0; i < trash->len; i++) {
        const struct trash *one = trash->pdata[i];
        if (!strcmp(one->backend, backend->uuid))
            json_array_append_new(names, json_string(one->name));
    }
    return names;
}

json_t *query_get_backend_serial_no(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return query_serial_no(source, "backend", ((const struct backend *)row)->uuid);
}

/* --- volume --- */

json_t *query_get_volume_status(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    return json_string(attachment_status_word(row));
}

json_t *query_get_volume_instance(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct attachment *attachment = attachment_of(row);
    const struct instance *instance =
        attachment ? config_get(source->config, "instance", attachment->instance, NULL) : NULL;
    return instance ? json_string(instance->name) : NULL;
}

json_t *query_get_volume_device(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct attachment *attachment = attachment_of(row);
    return attachment ? text(attachment->device) : NULL;
}

json_t *query_get_volume_leaving_since(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    const struct attachment *attachment = attachment_of(row);
    return attachment ? stamp(attachment->leaving_us) : NULL;
}

json_t *query_get_volume_why(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return text(((const struct volume *)row)->status_why);
}

json_t *query_get_volume_backend(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return backend_name(source, ((const struct volume *)row)->backend);
}

json_t *query_get_volume_host(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return text(((const struct volume *)row)->host);
}

json_t *query_get_volume_data(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return text(((const struct volume *)row)->data);
}

json_t *query_get_volume_created(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return stamp(((const struct volume *)row)->created_us);
}

json_t *query_get_volume_operation(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct worker *work = row_of_volume(source, row);
    return work ? json_string(work->operation) : NULL;
}

json_t *query_get_volume_worker(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct worker *work = row_of_volume(source, row);
    return work ? service_of(source, work->service_id) : NULL;
}

json_t *query_get_volume_work_backend(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct worker *work = row_of_volume(source, row);
    return work ? backend_name(source, work->backend) : NULL;
}

json_t *query_get_volume_waits_since(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct worker *work = row_of_volume(source, row);
    return work && !work->service_id ? stamp(work->updated_us) : NULL;
}

json_t *query_get_volume_request_id(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    const struct worker *work = row_of_volume(source, row);
    return asked_by(work, ((const struct volume *)row)->request_id);
}

json_t *query_get_volume_serial_no(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    return query_serial_no(source, "volume", ((const struct volume *)row)->uuid);
}

json_t *query_get_volume_volume_type(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const char *uuid = ((const struct volume *)row)->volume_type;
    const struct volume_type *type = config_get(source->config, "volume_type", uuid, NULL);
    return text(type ? type->name : uuid);
}

/* --- volume_type --- */

json_t *query_get_volume_type_volume_cnt(struct query_source *source, const void *row,
                                         enum query_status *ret_status)
{
    g_autoptr(GPtrArray) volumes =
        config_type_volumes(source->config, ((const struct volume_type *)row)->uuid);
    return json_integer(volumes->len);
}

json_t *query_get_volume_type_serial_no(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    return query_serial_no(source, "volume_type", ((const struct volume_type *)row)->uuid);
}

/* --- snapshot --- */

json_t *query_get_snapshot_why(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return text(((const struct snapshot *)row)->status_why);
}

json_t *query_get_snapshot_backend(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    return backend_name(source, ((const struct snapshot *)row)->backend);
}

json_t *query_get_snapshot_host(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    return text(((const struct snapshot *)row)->host);
}

json_t *query_get_snapshot_data(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    return text(((const struct snapshot *)row)->data);
}

json_t *query_get_snapshot_created(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    return stamp(((const struct snapshot *)row)->created_us);
}

json_t *query_get_snapshot_operation(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct worker *work = row_of_snapshot(source, row);
    return work ? json_string(work->operation) : NULL;
}

json_t *query_get_snapshot_worker(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct worker *work = row_of_snapshot(source, row);
    return work ? service_of(source, work->service_id) : NULL;
}

json_t *query_get_snapshot_waits_since(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    const struct worker *work = row_of_snapshot(source, row);
    return work && !work->service_id ? stamp(work->updated_us) : NULL;
}

json_t *query_get_snapshot_request_id(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct worker *work = row_of_snapshot(source, row);
    return asked_by(work, ((const struct snapshot *)row)->request_id);
}

json_t *query_get_snapshot_serial_no(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    return query_serial_no(source, "snapshot", ((const struct snapshot *)row)->uuid);
}

json_t *query_get_snapshot_volume(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    struct resource volume =
        resource_of(source->config, RESOURCE_VOLUME, ((const struct snapshot *)row)->volume);
    return text(resource_name(&volume));
}

/* --- backup --- */

json_t *query_get_backup_why(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return text(((const struct backup *)row)->status_why);
}

json_t *query_get_backup_backend(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return backend_name(source, ((const struct backup *)row)->backend);
}

json_t *query_get_backup_host(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return text(((const struct backup *)row)->host);
}

json_t *query_get_backup_data(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return text(((const struct backup *)row)->data);
}

json_t *query_get_backup_sum(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return text(((const struct backup *)row)->sum);
}

json_t *query_get_backup_created(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return stamp(((const struct backup *)row)->created_us);
}

json_t *query_get_backup_operation(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct worker *work = row_of_backup(source, row);
    return work ? json_string(work->operation) : NULL;
}

json_t *query_get_backup_worker(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct worker *work = row_of_backup(source, row);
    return work ? service_of(source, work->service_id) : NULL;
}

json_t *query_get_backup_waits_since(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct worker *work = row_of_backup(source, row);
    return work && !work->service_id ? stamp(work->updated_us) : NULL;
}

json_t *query_get_backup_request_id(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    const struct worker *work = row_of_backup(source, row);
    return asked_by(work, ((const struct backup *)row)->request_id);
}

json_t *query_get_backup_serial_no(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    return query_serial_no(source, "backup", ((const struct backup *)row)->uuid);
}

json_t *query_get_backup_volume(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    struct resource volume =
        resource_of(source->config, RESOURCE_VOLUME, ((const struct backup *)row)->volume);
    return text(resource_name(&volume));
}

/* --- image --- */

json_t *query_get_image_why(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    return text(((const struct image *)row)->status_why);
}

json_t *query_get_image_backend(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    return backend_name(source, ((const struct image *)row)->backend);
}

json_t *query_get_image_host(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return text(((const struct image *)row)->host);
}

json_t *query_get_image_data(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return text(((const struct image *)row)->data);
}

json_t *query_get_image_os_hash_value(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    return text(((const struct image *)row)->os_hash_value);
}

json_t *query_get_image_created(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    return stamp(((const struct image *)row)->created_us);
}

json_t *query_get_image_operation(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct worker *work = row_of_image(source, row);
    return work ? json_string(work->operation) : NULL;
}

json_t *query_get_image_worker(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    const struct worker *work = row_of_image(source, row);
    return work ? service_of(source, work->service_id) : NULL;
}

json_t *query_get_image_waits_since(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    const struct worker *work = row_of_image(source, row);
    return work && !work->service_id ? stamp(work->updated_us) : NULL;
}

json_t *query_get_image_request_id(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct worker *work = row_of_image(source, row);
    return asked_by(work, ((const struct image *)row)->request_id);
}

json_t *query_get_image_serial_no(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return query_serial_no(source, "image", ((const struct image *)row)->uuid);
}

json_t *query_get_image_checksum(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return text(((const struct image *)row)->checksum);
}

json_t *query_get_image_gib(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    return json_integer((json_int_t)resource_read(RESOURCE_IMAGE, row).size);
}

/* --- worker --- */

json_t *query_get_worker_resource(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    const struct worker *work = row;
    return text(resource_of_row(source->config, work).name);
}

json_t *query_get_worker_source(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct work_source *read = ((const struct worker *)row)->source;
    if (!read)
        return NULL;
    struct resource resource = resource_of(source->config, read->resource_type, read->resource_id);
    return text(resource_name(&resource));
}

json_t *query_get_worker_backend(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return backend_name(source, ((const struct worker *)row)->backend);
}

json_t *query_get_worker_service(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return service_of(source, ((const struct worker *)row)->service_id);
}

json_t *query_get_worker_created(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return stamp(((const struct worker *)row)->created_us);
}

json_t *query_get_worker_updated(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return stamp(((const struct worker *)row)->updated_us);
}

json_t *query_get_worker_was(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return service_of(source, ((const struct worker *)row)->was_service_id);
}

json_t *query_get_worker_request_id(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return text(((const struct worker *)row)->request_id);
}

/* --- storage_service --- */

json_t *query_get_storage_service_host(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    return host(source, row);
}

json_t *query_get_storage_service_backend(struct query_source *source, const void *row,
                                          enum query_status *ret_status)
{
    return backend_name(source, ((const struct storage_service *)row)->backend);
}

json_t *query_get_storage_service_node(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    return json_string(
        config_node_name(source->config, ((const struct storage_service *)row)->node));
}

json_t *query_get_storage_service_state_since(struct query_source *source, const void *row,
                                              enum query_status *ret_status)
{
    return stamp(((const struct storage_service *)row)->state_since_us);
}

json_t *query_get_storage_service_disabled_reason(struct query_source *source, const void *row,
                                                  enum query_status *ret_status)
{
    return text(((const struct storage_service *)row)->disabled_reason);
}

json_t *query_get_storage_service_cleanup(struct query_source *source, const void *row,
                                          enum query_status *ret_status)
{
    const struct storage_service *service = row;
    g_autofree char *key = config_cleanup_key(service->id, "", "");
    const struct cleanup *cleanup = config_get(source->config, "cleanup", key, NULL);
    json_autoptr by = cleanup ? service_of(source, cleanup->by) : NULL;
    if (!cleanup)
        return NULL;
    const char *who = by ? json_string_value(by) : "nobody";
    if (cleanup->state == CLEANUP_UNAVAILABLE)
        return json_string("unavailable: no other service of its kind is up");
    if (cleanup->state == CLEANUP_ASKED)
        return json_sprintf("asked: %s is to do it", who);
    return json_sprintf("%s by %s: %u of %u rows cleaned, %u left alone, %u failed",
                        enum_word(&cleanup_state_words, (int)cleanup->state), who,
                        (guint)cleanup->cleaned, (guint)cleanup->found, (guint)cleanup->skipped,
                        (guint)cleanup->failed);
}

json_t *query_get_storage_service_worker_cnt(struct query_source *source, const void *row,
                                             enum query_status *ret_status)
{
    const struct storage_service *service = row;
    g_autoptr(GPtrArray) workers = config_list(source->config, "worker");
    json_int_t count = 0;
    for (guint i = 0; i < workers->len; i++)
        count += ((const struct worker *)workers->pdata[i])->service_id == service->id;
    return json_integer(count);
}
