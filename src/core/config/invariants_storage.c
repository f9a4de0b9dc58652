/*
 * What must be true of back ends, storage services, rows of work, resources and trash at any
 * time; see invariants.h. A resource with a transient status and without a row is allowed: a reset
 * or a restore leaves one.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/config/invariants.h"
#include "core/config/resource.h"
#include "core/config/volume_types.h"
#include "proto/storage/volume_driver.h"

#define SUM_CHARS 128
#define MD5_CHARS 32

/* --- back ends --- */

static bool nodes_rule(const struct config *config, const struct backend *backend, GError **error)
{
    for (guint i = 0; i < backend->nodes->len; i++) {
        const char *node = backend->nodes->pdata[i];
        guint first;
        g_autofree char *field = g_strdup_printf("nodes[%u]", i);
        if (!invariants_exists(config, "node", node, field, error))
            return false;
        g_ptr_array_find_with_equal_func(backend->nodes, node, g_str_equal, &first);
        if (first == i)
            continue;
        fettle_set_error(error, WRONG_INPUT, "%s: %s is named twice", field,
                         config_node_name(config, node));
        return false;
    }
    return true;
}

/* PATH is below FOLDER. */
static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return length && !strncmp(path, folder, length) && path[length] == '/';
}

/* Two that write into one directory would sweep each other's data, and one below another's is no
 * place of its own: it comes and goes with that. */
static bool path_rule(const struct config *config, const struct backend *backend, GError **error)
{
    g_autofree char *shortest = g_canonicalize_filename(backend->path, "/");
    if (strcmp(shortest, backend->path) != 0 || !strcmp(shortest, "/")) {
        fettle_set_error(error, WRONG_INPUT,
                         "path: \"%s\" is not the path of a directory below /, as short as can be",
                         backend->path);
        return false;
    }
    g_autoptr(GPtrArray) all = config_list(config, "backend");
    for (guint i = 0; i < all->len; i++) {
        const struct backend *other = all->pdata[i];
        bool same = !strcmp(other->path, backend->path);
        bool below = is_below(backend->path, other->path);
        if (!strcmp(other->uuid, backend->uuid) ||
            (!same && !below && !is_below(other->path, backend->path)))
            continue;
        if (same)
            fettle_set_error(error, ALREADY_EXISTS, "path: %s is that of back end %s already",
                             backend->path, other->name);
        else
            fettle_set_error(error, WRONG_INPUT,
                             "path: %s is %s %s, that of back end %s; take a directory beside it",
                             backend->path, below ? "below" : "above", other->path, other->name);
        return false;
    }
    return true;
}

bool invariants_backend(const struct config *config, const void *object, GError **error)
{
    const struct backend *backend = object;
    return invariants_unique_name(config, "backend", backend->name, error) &&
           nodes_rule(config, backend, error) && path_rule(config, backend, error);
}

/* --- services --- */

static bool number_rule(const struct config *config, const struct storage_service *service,
                        GError **error)
{
    const struct counter *given = config_get(config, "counter", "storage-service", NULL);
    g_autoptr(GPtrArray) all = config_list(config, "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *other = all->pdata[i];
        if (other == service || other->id != service->id)
            continue;
        g_autofree char *name = config_storage_service_name(config, other);
        fettle_set_error(error, ALREADY_EXISTS, "id: %" G_GUINT64_FORMAT " is that of %s",
                         service->id, name);
        return false;
    }
    if (given && service->id <= given->value)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "id: %" G_GUINT64_FORMAT
                     " was not given out (counter storage-service: %" G_GUINT64_FORMAT ")",
                     service->id, given ? given->value : 0);
    return false;
}

bool invariants_storage_service(const struct config *config, const void *object, GError **error)
{
    const struct storage_service *service = object;
    bool scheduler = service->binary == STORAGE_SCHEDULER;
    g_autofree char *name = config_storage_service_name(config, service);
    g_autofree char *key =
        config_storage_service_key(service->binary, service->host, service->backend);
    if (strcmp(service->uuid, key) != 0) {
        fettle_set_error(error, WRONG_INPUT, "uuid: that of %s is %s", name, key);
        return false;
    }
    if (scheduler && *service->backend) {
        fettle_set_error(error, WRONG_INPUT, "backend: a scheduler has none");
        return false;
    }
    return (scheduler ||
            invariants_exists(config, "backend", service->backend, "backend", error)) &&
           invariants_exists(config, "node", service->node, "node", error) &&
           number_rule(config, service, error);
}

/* --- rows of work --- */

static bool owner_rule(const struct config *config, const struct worker *row, GError **error)
{
    if (!row->service_id)
        return true;
    if (!config_storage_service_of(config, row->service_id)) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "service_id: there is no storage service %" G_GUINT64_FORMAT,
                         row->service_id);
        return false;
    }
    if (row->claim)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "claim: service %" G_GUINT64_FORMAT " works on it without one",
                     row->service_id);
    return false;
}

/* A partner is in a status of this work, so nobody else works on it (SAF-121). */
static bool partner_rule(const struct config *config, const struct worker *row, GError **error)
{
    g_autofree char *key = config_work_key(row->partner_type, row->partner_id);
    if (!*row->partner_id || !config_get(config, "worker", key, NULL))
        return true;
    fettle_set_error(error, UNSAFE, "partner_id: %s has a row of its own (SAF-121)", key);
    return false;
}

/* That its resource is there is a rule about the step that makes it: afterwards a row may be left
 * over, and is ended by who has it (CLN-18). */
bool invariants_worker(const struct config *config, const void *object, GError **error)
{
    const struct worker *row = object;
    g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
    if (config_get(config, "worker", key, NULL) != object) {
        fettle_set_error(error, WRONG_INPUT, "its key is not %s", key);
        return false;
    }
    return owner_rule(config, row, error) && partner_rule(config, row, error) &&
           (!*row->volume_type ||
            invariants_exists(config, "volume_type", row->volume_type, "volume_type", error)) &&
           (!*row->backend || invariants_exists(config, "backend", row->backend, "backend", error));
}

/* --- resources and trash --- */

static bool data_rule(const struct config *config, const struct resource *resource, GError **error)
{
    g_autofree char *uuid = NULL;
    g_autofree char *trash = config_trash_key(resource->backend, resource->data);
    guint64 claim = 0;
    if (!*resource->data)
        return true;
    if (!volume_data_parse(resource->data, &uuid, &claim) || strcmp(uuid, resource->uuid) != 0) {
        fettle_set_error(error, WRONG_INPUT, "data: \"%s\" is not %s.CLAIM (SAF-52)",
                         resource->data, resource->uuid);
        return false;
    }
    if (!*resource->backend) {
        fettle_set_error(error, WRONG_INPUT, "data: %s is on no back end", resource->data);
        return false;
    }
    if (!config_get(config, "trash", trash, NULL))
        return true;
    fettle_set_error(error, UNSAFE, "data: %s is in the trash (SAF-53)", resource->data);
    return false;
}

static bool resource_rule(const struct config *config, enum resource_type type, const void *record,
                          GError **error)
{
    struct resource resource = resource_read(type, record);
    if (resource_is_ready(&resource) && !*resource.data) {
        fettle_set_error(error, UNSAFE, "status: %s, but it has no data", resource.status);
        return false;
    }
    return (!*resource.backend ||
            invariants_exists(config, "backend", resource.backend, "backend", error)) &&
           data_rule(config, &resource, error);
}

static bool attachments_rule(const struct config *config, const struct volume *volume,
                             GError **error)
{
    const struct attachment *attachment = attachment_of(volume);
    if (!attachment)
        return true;
    if (!invariants_exists(config, "instance", attachment->instance, "attachments[0].instance",
                           error))
        return false;
    const struct instance *instance = config_get(config, "instance", attachment->instance, NULL);
    g_autoptr(GPtrArray) others = config_instance_volumes(config, attachment->instance);
    for (guint i = 0; i < others->len; i++) {
        if (others->pdata[i] == volume || attachment_of(others->pdata[i])->slot != attachment->slot)
            continue;
        fettle_set_error(error, ALREADY_EXISTS,
                         "attachments: place %" G_GUINT64_FORMAT " of %s is that of volume %s",
                         attachment->slot, instance->name, config_volume_name(others->pdata[i]));
        return false;
    }
    return attachment_places(config, instance, error);
}

/* KEY=VALUE, each key once; `empty`: a value may be. */
static bool pairs_rule(const char *field, const GPtrArray *pairs, bool empty, GError **error)
{
    g_autoptr(GHashTable) keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < pairs->len; i++) {
        const char *pair = pairs->pdata[i];
        const char *equals = strchr(pair, '=');
        if (!equals || equals == pair || (!equals[1] && !empty)) {
            fettle_set_error(error, WRONG_INPUT, "%s: \"%s\" is not KEY=VALUE", field, pair);
            return false;
        }
        char *key = g_strndup(pair, (gsize)(equals - pair));
        if (g_hash_table_add(keys, key))
            continue;
        fettle_set_error(error, WRONG_INPUT, "%s: %.*s is given twice", field, (int)(equals - pair),
                         pair);
        return false;
    }
    return true;
}

static bool projects_rule(const struct volume_type *type, GError **error)
{
    if (!type->public || !type->projects->len)
        return true;
    fettle_set_error(error, WRONG_INPUT, "projects: each may use it, as it is public");
    return false;
}

bool invariants_volume_type(const struct config *config, const void *object, GError **error)
{
    const struct volume_type *type = object;
    return invariants_unique_name(config, "volume_type", type->name, error) &&
           pairs_rule("extra_specs", type->extra_specs, false, error) && projects_rule(type, error);
}

bool invariants_volume(const struct config *config, const void *object, GError **error)
{
    const struct volume *volume = object;
    if (volume->status != VOLUME_ATTACHING && volume->status != VOLUME_DETACHING &&
        volume->status != VOLUME_RESERVED)
        return (!*volume->volume_type ||
                invariants_exists(config, "volume_type", volume->volume_type, "volume_type",
                                  error)) &&
               resource_rule(config, RESOURCE_VOLUME, volume, error) &&
               attachments_rule(config, volume, error);
    fettle_set_error(error, WRONG_INPUT,
                     "status: %s is what an attachment says, and never on record",
                     enum_word(&volume_status_words, (int)volume->status));
    return false;
}

bool invariants_snapshot(const struct config *config, const void *object, GError **error)
{
    const struct snapshot *snapshot = object;
    return invariants_exists(config, "volume", snapshot->volume, "volume", error) &&
           resource_rule(config, RESOURCE_SNAPSHOT, snapshot, error);
}

static bool is_sum(const char *text, size_t chars)
{
    return strlen(text) == chars && strspn(text, "0123456789abcdef") == chars;
}

/* Its volume may be gone. What has data can be told from anything else. */
bool invariants_backup(const struct config *config, const void *object, GError **error)
{
    const struct backup *backup = object;
    if (*backup->data && (!backup->bytes || !is_sum(backup->sum, SUM_CHARS))) {
        fettle_set_error(error, WRONG_INPUT, "sum: %s is not known by length and SHA-512",
                         backup->data);
        return false;
    }
    return resource_rule(config, RESOURCE_BACKUP, backup, error);
}

/* SAF-60. */
bool invariants_image(const struct config *config, const void *object, GError **error)
{
    const struct image *image = object;
    if (*image->data &&
        (!image->size || !image->virtual_size || !is_sum(image->os_hash_value, SUM_CHARS) ||
         !is_sum(image->checksum, MD5_CHARS))) {
        fettle_set_error(error, UNSAFE, "data: %s is not known by sizes and sums (SAF-60)",
                         image->data);
        return false;
    }
    if (image->status == IMAGE_QUEUED && *image->data) {
        fettle_set_error(error, WRONG_INPUT, "status: queued, but it has data");
        return false;
    }
    return pairs_rule("properties", image->properties, true, error) &&
           resource_rule(config, RESOURCE_IMAGE, image, error);
}

bool invariants_trash(const struct config *config, const void *object, GError **error)
{
    const struct trash *trash = object;
    g_autofree char *key = config_trash_key(trash->backend, trash->name);
    g_autofree char *uuid = NULL;
    guint64 claim = 0;
    if (config_get(config, "trash", key, NULL) != object) {
        fettle_set_error(error, WRONG_INPUT, "its key is not %s", key);
        return false;
    }
    if (!volume_data_parse(trash->name, &uuid, &claim)) {
        fettle_set_error(error, WRONG_INPUT, "name: \"%s\" is no name of data", trash->name);
        return false;
    }
    if (!invariants_exists(config, "backend", trash->backend, "backend", error))
        return false;
    struct resource resource = resource_of(config, trash->resource_type, uuid);
    if (strcmp(resource.data, trash->name) != 0)
        return true;
    fettle_set_error(error, UNSAFE, "%s %s names it (SAF-53)", resource_kind(resource.type),
                     resource_name(&resource));
    return false;
}

/* --- cleanups --- */

bool invariants_cleanup(const struct config *config, const void *object, GError **error)
{
    const struct cleanup *cleanup = object;
    g_autofree char *key =
        config_cleanup_key(cleanup->service_id, cleanup->resource_type, cleanup->resource_id);
    if (config_get(config, "cleanup", key, NULL) != object)
        fettle_set_error(error, WRONG_INPUT, "its key is not %s", key);
    else if (*cleanup->resource_type &&
             enum_parse(&resource_type_words, cleanup->resource_type) < 0)
        fettle_set_error(error, WRONG_INPUT, "resource_type: there is no %s",
                         cleanup->resource_type);
    else if (*cleanup->resource_id && !*cleanup->resource_type)
        fettle_set_error(error, WRONG_INPUT, "resource_id: without its kind");
    else if (!cleanup->by != (cleanup->state == CLEANUP_UNAVAILABLE))
        fettle_set_error(error, WRONG_INPUT, "by: %" G_GUINT64_FORMAT ", but it is %s", cleanup->by,
                         enum_word(&cleanup_state_words, (int)cleanup->state));
    else if (cleanup->by == cleanup->service_id)
        fettle_set_error(error, WRONG_INPUT, "by: nobody stands in for himself");
    else
        return true;
    return false;
}

bool invariants_front_end(const struct config *config, const void *object, GError **error)
{
    const struct api_front_end *front_end = object;
    if (config_get(config, "api_front_end", front_end->node, NULL) == object)
        return invariants_exists(config, "node", front_end->node, "node", error);
    fettle_set_error(error, WRONG_INPUT, "its key is not that of its node");
    return false;
}
