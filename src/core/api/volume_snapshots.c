/* Snapshots: lists, one, made, changed, deleted, reset. */
#include <string.h>

#include "core/api/volume_common.h"

static json_t *view(const struct api_call *call, const struct snapshot *snapshot, bool whole)
{
    json_t *json = json_make(
        "{s:s, s:s, s:o, s:o, s:s, s:I, s:o, s:o, s:o}", "id", snapshot->uuid, "status",
        enum_word(&snapshot_status_words, (int)snapshot->status), "name",
        block_text(snapshot->name), "description", block_text(snapshot->description), "volume_id",
        snapshot->volume, "size", (json_int_t)snapshot->size, "created_at",
        api_time((gint64)snapshot->created_us), "updated_at",
        api_time((gint64)snapshot->updated_us), "metadata", block_metadata(snapshot->metadata));
    if (call->minor >= 14)
        json_object_set_new(json, "group_snapshot_id", json_null());
    if (call->minor >= 41)
        json_object_set_new(json, "user_id", json_string(snapshot->user));
    if (call->minor >= 65)
        json_object_set_new(json, "consumes_quota", json_true());
    if (!whole)
        return json;
    json_object_set_new(json, "os-extended-snapshot-attributes:project_id",
                        json_string(snapshot->project));
    json_object_set_new(json, "os-extended-snapshot-attributes:progress",
                        json_string(*snapshot->data ? "100%" : "0%"));
    return json;
}

/* --- lists --- */

static const char *snapshot_id(const void *record)
{
    return ((const struct snapshot *)record)->uuid;
}

static const char *snapshot_text(const struct config *config, const void *record, const char *key,
                                 char *scratch)
{
    const struct snapshot *snapshot = record;
    struct resource resource = resource_read(RESOURCE_SNAPSHOT, snapshot);
    if (!strcmp(key, "user_id"))
        return snapshot->user;
    if (g_str_has_prefix(key, "metadata:"))
        return block_word(snapshot->metadata, key + strlen("metadata:"));
    return block_resource_text(config, &resource, key, scratch);
}

static json_t *short_view(const struct api_call *call, const struct config *config,
                          const void *record)
{
    return view(call, record, false);
}

static json_t *whole_view(const struct api_call *call, const struct config *config,
                          const void *record)
{
    return view(call, record, true);
}

static struct http_answer *list_snapshots(struct api_call *call, bool detail, GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    const struct block_list list = {.plural = "snapshots",
                                    .record = &snapshot_record,
                                    .items = block_items(call, config, RESOURCE_SNAPSHOT),
                                    .id = snapshot_id,
                                    .text = snapshot_text,
                                    .view = short_view,
                                    .detail = whole_view};
    return block_answer_list(call, &list, detail, error);
}

struct http_answer *api_snapshots_list(struct api_call *call, GError **error)
{
    return list_snapshots(call, false, error);
}

struct http_answer *api_snapshots_detail(struct api_call *call, GError **error)
{
    return list_snapshots(call, true, error);
}

/* --- one --- */

static struct http_answer *answer_snapshot(struct api_call *call, const char *id, bool whole,
                                           GError **error)
{
    const struct snapshot *snapshot = block_find(call, RESOURCE_SNAPSHOT, id, error);
    return snapshot ? api_answer(call, json_make("{s:o}", "snapshot", view(call, snapshot, whole)))
                    : NULL;
}

struct http_answer *api_snapshot_show(struct api_call *call, GError **error)
{
    return answer_snapshot(call, api_var(call, "id"), true, error);
}

struct http_answer *api_snapshot_create(struct api_call *call, GError **error)
{
    const struct snapshot_create_body *body = call->body;
    bool force;
    const struct volume *volume = block_find(call, RESOURCE_VOLUME, body->volume_id, error);
    GPtrArray *metadata = volume && block_truth(body->force, "snapshot.force", false, &force, error)
                              ? api_words(body->metadata, "snapshot.metadata", error)
                              : NULL;
    if (!metadata)
        return NULL;
    struct accept_work_args *args = block_work(call, RESOURCE_SNAPSHOT, "create-snapshot", "");
    block_set_words(&args->metadata, metadata);
    text_set(&args->source, volume->uuid);
    text_set(&args->name, *body->name ? body->name : body->display_name);
    text_set(&args->description,
             *body->description ? body->description : body->display_description);
    text_set(&args->project, volume->project);
    text_set(&args->user, call->token->user_id);
    block_add_quota(call, args, volume->project);
    record_autoptr(accepted_work) accepted = block_accept(call, args, error);
    return accepted && block_made(call, RESOURCE_SNAPSHOT, accepted->resource, error)
               ? answer_snapshot(call, accepted->resource, false, error)
               : NULL;
}

struct http_answer *api_snapshot_update(struct api_call *call, GError **error)
{
    const struct volume_update_body *body = call->body;
    GPtrArray *metadata = block_found(call, RESOURCE_SNAPSHOT, error)
                              ? api_words(body->metadata, "snapshot.metadata", error)
                              : NULL;
    if (!metadata)
        return NULL;
    record_autoptr(change_snapshot_args) args = change_snapshot_args_new();
    block_set_words(&args->metadata, metadata);
    args->only_metadata = body->metadata != NULL;
    text_set(&args->snapshot, api_var(call, "id"));
    bool changes = block_read_names(call, &args->name, &args->description, &args->no_name,
                                    &args->no_description) ||
                   args->only_metadata;
    char **commit_id = &args->commit_id;
    if (changes && !block_change(call, "change_snapshot", &change_snapshot_args_record,
                                 g_steal_pointer(&args), commit_id, error))
        return NULL;
    return answer_snapshot(call, api_var(call, "id"), false, error);
}

struct http_answer *api_snapshot_delete(struct api_call *call, GError **error)
{
    const struct snapshot *snapshot = block_found(call, RESOURCE_SNAPSHOT, error);
    return snapshot
               ? block_accept_act(
                     call, block_work(call, RESOURCE_SNAPSHOT, "delete-snapshot", snapshot->uuid),
                     error)
               : NULL;
}

struct http_answer *api_snapshot_reset_status(struct api_call *call, GError **error)
{
    return block_reset_act(call, RESOURCE_SNAPSHOT, error);
}

struct http_answer *api_snapshot_force_delete(struct api_call *call, GError **error)
{
    return block_force_delete_act(call, RESOURCE_SNAPSHOT, "delete-snapshot", error);
}
