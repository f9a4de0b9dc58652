/* Backups: lists, one, made, changed, restored, deleted, reset. */
#include <string.h>

#include "core/api/volume_common.h"

static json_t *short_view(const struct api_call *call, const struct config *config,
                          const void *record)
{
    const struct backup *backup = record;
    return json_make("{s:s, s:o, s:o}", "id", backup->uuid, "name", block_text(backup->name),
                     "links", block_links(call, "backups", backup->uuid));
}

static json_t *whole_view(const struct api_call *call, const struct config *config,
                          const void *record)
{
    const struct backup *backup = record;
    const struct backend *backend = config_get(config, "backend", backup->backend, NULL);
    json_t *json = json_make(
        "{s:s, s:s, s:o, s:o, s:s, s:I, s:I, s:o, s:o, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o}",
        "id", backup->uuid, "status", enum_word(&backup_status_words, (int)backup->status), "name",
        block_text(backup->name), "description", block_text(backup->description), "volume_id",
        backup->volume, "size", (json_int_t)backup->size, "object_count",
        (json_int_t)(*backup->data ? 1 : 0), "container",
        backend ? json_string(backend->name) : json_null(), "fail_reason",
        block_text(backup->status_why), "availability_zone", BLOCK_ZONE, "has_dependent_backups", 0,
        "is_incremental", 0, "created_at", api_time((gint64)backup->created_us), "updated_at",
        api_time((gint64)backup->updated_us), "data_timestamp",
        api_time((gint64)backup->created_us), "snapshot_id", block_text(backup->snapshot_id),
        "links", block_links(call, "backups", backup->uuid));
    if (call->minor >= 18)
        json_object_set_new(json, "os-backup-project-attr:project_id",
                            json_string(backup->project));
    if (call->minor >= 43)
        json_object_set_new(json, "metadata", block_metadata(backup->metadata));
    if (call->minor >= 56)
        json_object_set_new(json, "user_id", json_string(backup->user));
    return json;
}

/* --- lists --- */

static const char *backup_id(const void *record)
{
    return ((const struct backup *)record)->uuid;
}

static const char *backup_text(const struct config *config, const void *record, const char *key,
                               char *scratch)
{
    const struct backup *backup = record;
    struct resource resource = resource_read(RESOURCE_BACKUP, backup);
    if (!strcmp(key, "user_id"))
        return backup->user;
    if (!strcmp(key, "snapshot_id"))
        return backup->snapshot_id;
    if (g_str_has_prefix(key, "metadata:"))
        return block_word(backup->metadata, key + strlen("metadata:"));
    return block_resource_text(config, &resource, key, scratch);
}

static struct http_answer *list_backups(struct api_call *call, bool detail, GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    const struct block_list list = {.plural = "backups",
                                    .record = &backup_record,
                                    .items = block_items(call, config, RESOURCE_BACKUP),
                                    .id = backup_id,
                                    .text = backup_text,
                                    .view = short_view,
                                    .detail = whole_view};
    return block_answer_list(call, &list, detail, error);
}

struct http_answer *api_backups_list(struct api_call *call, GError **error)
{
    return list_backups(call, false, error);
}

struct http_answer *api_backups_detail(struct api_call *call, GError **error)
{
    return list_backups(call, true, error);
}

/* --- one --- */

static struct http_answer *answer_backup(struct api_call *call, const char *id, bool whole,
                                         GError **error)
{
    const struct backup *backup = block_find(call, RESOURCE_BACKUP, id, error);
    const struct config *config = api_config(call, NULL);
    return backup ? api_answer(call,
                               json_make("{s:o}", "backup",
                                         (whole ? whole_view : short_view)(call, config, backup)))
                  : NULL;
}

struct http_answer *api_backup_show(struct api_call *call, GError **error)
{
    return answer_backup(call, api_var(call, "id"), true, error);
}

static bool may_make(const struct api_call *call, const struct volume *volume,
                     const struct backup_create_body *body, GError **error)
{
    bool incremental, force;
    if (!block_truth(body->incremental, "backup.incremental", false, &incremental, error) ||
        !block_truth(body->force, "backup.force", false, &force, error))
        return false;
    if (incremental)
        fettle_set_error(error, WRONG_INPUT,
                         "Invalid backup: No backups available to do an incremental backup; each "
                         "backup here is whole.");
    else if (volume->attachments->len && !force && !*body->snapshot_id)
        fettle_set_error(error, WRONG_INPUT,
                         "Invalid volume: Backing up an in-use volume must use the force flag.");
    else
        return true;
    return false;
}

struct http_answer *api_backup_create(struct api_call *call, GError **error)
{
    const struct backup_create_body *body = call->body;
    const struct volume *volume = block_find(call, RESOURCE_VOLUME, body->volume_id, error);
    if (!volume || !may_make(call, volume, body, error) ||
        (*body->snapshot_id && !block_find(call, RESOURCE_SNAPSHOT, body->snapshot_id, error)))
        return NULL;
    GPtrArray *metadata = api_words(body->metadata, "backup.metadata", error);
    if (!metadata)
        return NULL;
    struct accept_work_args *args = block_work(call, RESOURCE_BACKUP, "back-up-volume", "");
    block_set_words(&args->metadata, metadata);
    text_set(&args->source, volume->uuid);
    text_set(&args->snapshot, body->snapshot_id);
    text_set(&args->name, body->name);
    text_set(&args->description, body->description);
    text_set(&args->backend, body->container);
    text_set(&args->project, volume->project);
    text_set(&args->user, call->token->user_id);
    block_add_quota(call, args, volume->project);
    record_autoptr(accepted_work) accepted = block_accept(call, args, error);
    return accepted && block_made(call, RESOURCE_BACKUP, accepted->resource, error)
               ? answer_backup(call, accepted->resource, false, error)
               : NULL;
}

struct http_answer *api_backup_update(struct api_call *call, GError **error)
{
    const struct volume_update_body *body = call->body;
    GPtrArray *metadata = block_found(call, RESOURCE_BACKUP, error)
                              ? api_words(body->metadata, "backup.metadata", error)
                              : NULL;
    if (!metadata)
        return NULL;
    record_autoptr(change_backup_args) args = change_backup_args_new();
    block_set_words(&args->metadata, metadata);
    args->only_metadata = body->metadata != NULL;
    text_set(&args->backup, api_var(call, "id"));
    bool changes = block_read_names(call, &args->name, &args->description, &args->no_name,
                                    &args->no_description) ||
                   args->only_metadata;
    char **commit_id = &args->commit_id;
    if (changes && !block_change(call, "change_backup", &change_backup_args_record,
                                 g_steal_pointer(&args), commit_id, error))
        return NULL;
    return answer_backup(call, api_var(call, "id"), false, error);
}

/* --- restored --- */

static struct http_answer *answer_restore(struct api_call *call, const char *backup, const char *id,
                                          GError **error)
{
    const struct volume *volume = block_find(call, RESOURCE_VOLUME, id, error);
    return volume
               ? api_answer(call, json_make("{s:{s:s, s:s, s:s}}", "restore", "backup_id", backup,
                                            "volume_id", id, "volume_name", volume->name))
               : NULL;
}

/* What was said of the volume that the backup is of, if that is there. */
static void as_it_was(const struct config *config, const struct backup *backup,
                      struct accept_work_args *args)
{
    const struct volume *volume = config_get(config, "volume", backup->volume, NULL);
    if (!volume)
        return;
    args->bootable = volume->bootable;
    for (guint i = 0; i < volume->metadata->len; i++)
        g_ptr_array_add(args->metadata, g_strdup(volume->metadata->pdata[i]));
    for (guint i = 0; i < volume->image_metadata->len; i++)
        g_ptr_array_add(args->image_metadata, g_strdup(volume->image_metadata->pdata[i]));
}

struct accept_work_args *block_restore_new(struct api_call *call, const struct backup *backup,
                                           const char *name)
{
    struct accept_work_args *args =
        block_work(call, RESOURCE_BACKUP, "restore-backup", backup->uuid);
    text_set(&args->name, name);
    text_set(&args->user, call->token->user_id);
    as_it_was(api_config(call, NULL), backup, args);
    block_add_quota(call, args, backup->project);
    return args;
}

struct http_answer *api_backup_restore(struct api_call *call, GError **error)
{
    const struct backup_restore_body *body = call->body;
    const struct backup *backup = block_found(call, RESOURCE_BACKUP, error);
    const char *target = body->volume_id;
    if (!backup || (*target && !block_find(call, RESOURCE_VOLUME, target, error)))
        return NULL;
    g_autofree char *name =
        *body->name ? g_strdup(body->name) : g_strconcat("restore_backup_", backup->uuid, NULL);
    struct accept_work_args *args =
        *target ? block_work(call, RESOURCE_BACKUP, "restore-backup", backup->uuid)
                : block_restore_new(call, backup, name);
    g_autofree char *id = g_strdup(*target ? target : args->commit_id);
    text_set(&args->target, target);
    record_autoptr(accepted_work) accepted = block_accept(call, args, error);
    return accepted && block_made(call, RESOURCE_VOLUME, id, error)
               ? answer_restore(call, api_var(call, "id"), id, error)
               : NULL;
}

/* --- deleted, reset --- */

struct http_answer *api_backup_delete(struct api_call *call, GError **error)
{
    const struct backup *backup = block_found(call, RESOURCE_BACKUP, error);
    return backup
               ? block_accept_act(
                     call, block_work(call, RESOURCE_BACKUP, "delete-backup", backup->uuid), error)
               : NULL;
}

struct http_answer *api_backup_reset_status(struct api_call *call, GError **error)
{
    return block_reset_act(call, RESOURCE_BACKUP, error);
}

struct http_answer *api_backup_force_delete(struct api_call *call, GError **error)
{
    return block_force_delete_act(call, RESOURCE_BACKUP, "delete-backup", error);
}
