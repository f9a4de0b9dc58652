/* See volume_view.h. */
#include "core/api/volume_view.h"

#include <string.h>

#include "core/config/attachments.h"

const char *volume_view_status(const struct volume *volume)
{
    return attachment_status_word(volume);
}

/* On which host, administrators alone are told. */
static json_t *volume_view_attachments(const struct api_call *call, const struct config *config,
                                       const struct volume *volume)
{
    const struct attachment *attachment = attachment_of(volume);
    json_t *list = json_array();
    if (!attachment ||
        (attachment->state != ATTACHMENT_ATTACHED && attachment->state != ATTACHMENT_DETACHING))
        return list;
    const struct instance *instance = config_get(config, "instance", attachment->instance, NULL);
    json_array_append_new(
        list, json_make("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "id", volume->uuid, "volume_id",
                        volume->uuid, "attachment_id", attachment->uuid, "server_id",
                        attachment->instance, "device", block_text(attachment->device), "host_name",
                        instance && api_is_admin(call)
                            ? json_string(config_node_name(config, instance->primary_node))
                            : json_null(),
                        "attached_at", api_time((gint64)attachment->since_us)));
    return list;
}

/* UUID of the service whose HOST@BACKEND a record has. */
static json_t *service_of(const struct config *config, const struct volume *volume)
{
    g_autofree char *host = g_strndup(volume->host, strcspn(volume->host, "@"));
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, volume->backend);
    return *volume->host ? json_string(key) : json_null();
}

static void add_by_version(const struct api_call *call, const struct config *config,
                           const struct volume *volume, json_t *view)
{
    const struct backend *backend = config_get(config, "backend", volume->backend, NULL);
    g_autofree char *cluster = backend ? g_strconcat("fettle@", backend->name, NULL) : NULL;
    if (call->minor >= 13)
        json_object_set_new(view, "group_id", json_null());
    if (call->minor >= 21 && api_is_admin(call))
        json_object_set_new(view, "provider_id", json_null());
    if (call->minor >= 48) {
        json_object_set_new(view, "shared_targets", json_false());
        json_object_set_new(view, "service_uuid", service_of(config, volume));
    }
    if (call->minor >= 61 && api_is_admin(call))
        json_object_set_new(view, "cluster_name", cluster ? json_string(cluster) : json_null());
    if (call->minor >= 63)
        json_object_set_new(view, "volume_type_id", block_text(volume->volume_type));
    if (call->minor >= 65)
        json_object_set_new(view, "consumes_quota", json_true());
}

static void add_whole(const struct api_call *call, const struct config *config,
                      const struct volume *volume, json_t *view)
{
    json_object_set_new(view, "os-vol-tenant-attr:tenant_id", json_string(volume->project));
    if (volume->image_metadata->len)
        json_object_set_new(view, "volume_image_metadata", block_metadata(volume->image_metadata));
    if (!api_is_admin(call))
        return;
    g_autofree char *host = block_host(config, volume->host, volume->backend);
    bool moves = volume->status == VOLUME_MIGRATING || volume->status == VOLUME_RETYPING;
    json_object_set_new(view, "os-vol-host-attr:host", host ? json_string(host) : json_null());
    json_object_set_new(view, "os-vol-mig-status-attr:migstat",
                        moves ? json_string("migrating") : json_null());
    json_object_set_new(view, "os-vol-mig-status-attr:name_id", json_null());
}

/* That guests may only read it stands there, as Cinder shows it; whatever else is said by that key.
 */
static json_t *metadata_of(const struct volume *volume)
{
    json_t *metadata = block_metadata(volume->metadata);
    if (volume->readonly || json_object_get(metadata, "readonly"))
        json_object_set_new(metadata, "readonly", json_string(volume->readonly ? "True" : "False"));
    return metadata;
}

json_t *volume_view(const struct api_call *call, const struct config *config,
                    const struct volume *volume, bool whole)
{
    const struct volume_type *type = config_get(config, "volume_type", volume->volume_type, NULL);
    json_t *view = json_make(
        "{s:s, s:s, s:o, s:o, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:b, s:b, s:o, s:o, "
        "s:n, s:n, s:n, s:o}",
        "id", volume->uuid, "status", volume_view_status(volume), "name", block_text(volume->name),
        "description", block_text(volume->description), "size", (json_int_t)volume->size,
        "availability_zone", BLOCK_ZONE, "user_id", volume->user, "created_at",
        api_time((gint64)volume->created_us), "volume_type",
        type ? json_string(type->name) : json_null(), "snapshot_id",
        block_text(volume->from_snapshot), "source_volid", block_text(volume->from_volume),
        "metadata", metadata_of(volume), "bootable", volume->bootable ? "true" : "false",
        "encrypted", 0, "multiattach", 0, "attachments",
        volume_view_attachments(call, config, volume), "updated_at",
        api_time((gint64)volume->updated_us), "migration_status", "replication_status",
        "consistencygroup_id", "links", block_links(call, "volumes", volume->uuid));
    add_by_version(call, config, volume, view);
    if (whole)
        add_whole(call, config, volume, view);
    return view;
}
