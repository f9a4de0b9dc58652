/* What is done to a volume that there is: POST …/volumes/ID/action, of those that guests know
 * nothing of. What they do: volume_attach.c. */
#include <string.h>

#include "core/api/volume_view.h"
#include "core/config/attachments.h"
#include "proto/env.h"

struct http_answer *api_volume_extend_action(struct api_call *call, GError **error)
{
    const struct extend_body *body = call->body;
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    guint64 size;
    if (!volume || !block_size(body->new_size, &size, error))
        return NULL;
    if (call->minor < 42 && attachment_of(volume))
        return api_refuse(call, 400,
                          "Invalid volume: Volume %s status must be 'available' to extend, "
                          "currently %s; from 3.42 on it may be in-use.",
                          volume->uuid, volume_view_status(volume));
    struct accept_work_args *args =
        block_work(call, RESOURCE_VOLUME, "extend-volume", volume->uuid);
    args->size = size;
    block_add_quota(call, args, volume->project);
    return block_accept_act(call, args, error);
}

/* --- statuses --- */

static bool is_free(const struct config *config, const struct volume *volume, const char *wish,
                    GError **error)
{
    if (!*wish)
        return true;
    if (!strcmp(wish, "detached"))
        return attachment_need_none(config, volume, error);
    fettle_set_error(error, WRONG_INPUT,
                     "os-reset_status.attach_status: \"%s\" is what a guest says; a person can say "
                     "detached of what none has",
                     wish);
    return false;
}

struct http_answer *api_volume_reset_status(struct api_call *call, GError **error)
{
    const struct reset_status_body *body = call->body;
    const struct config *config = api_config(call, error);
    const struct volume *volume = config ? block_found(call, RESOURCE_VOLUME, error) : NULL;
    if (!volume || !is_free(config, volume, body->attach_status, error))
        return NULL;
    if (*body->migration_status && strcmp(body->migration_status, "none") != 0)
        return api_refuse(call, 400,
                          "os-reset_status.migration_status: a move is a status here, so it can "
                          "only be none");
    if (!*body->status && !*body->attach_status && !*body->migration_status)
        return api_refuse(call, 400,
                          "os-reset_status: one of status, attach_status, migration_status is to "
                          "be given");
    if (*body->status &&
        !block_reset(call, RESOURCE_VOLUME, api_var(call, "id"), body->status, error))
        return NULL;
    return api_answer(call, NULL);
}

struct http_answer *api_volume_force_delete(struct api_call *call, GError **error)
{
    return block_force_delete_act(call, RESOURCE_VOLUME, "delete-volume", error);
}

/* --- moved --- */

struct http_answer *api_volume_retype(struct api_call *call, GError **error)
{
    const struct retype_body *body = call->body;
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    if (!volume)
        return NULL;
    bool moves = !strcmp(body->migration_policy, "on-demand");
    if (!moves && *body->migration_policy && strcmp(body->migration_policy, "never") != 0)
        return api_refuse(call, 400,
                          "os-retype.migration_policy: must be never or on-demand, not \"%s\"",
                          body->migration_policy);
    if (!config_find(api_config(call, NULL), "volume_type", body->new_type, NULL))
        return api_refuse(call, 404, "Volume type %s could not be found.", body->new_type);
    struct accept_work_args *args =
        block_work(call, RESOURCE_VOLUME, "retype-volume", volume->uuid);
    text_set(&args->volume_type, body->new_type);
    args->migrate = moves;
    return block_accept_act(call, args, error);
}

/* BACKEND of HOST@BACKEND#POOL. */
static char *backend_of(const char *host)
{
    const char *at = strchr(host, '@');
    return at ? g_strndup(at + 1, strcspn(at + 1, "#")) : g_strdup("");
}

struct http_answer *api_volume_migrate(struct api_call *call, GError **error)
{
    const struct migrate_volume_body *body = call->body;
    const char *host = *body->host ? body->host : call->minor >= 16 ? body->cluster : "";
    const struct config *config = api_config(call, error);
    const struct volume *volume = config ? block_found(call, RESOURCE_VOLUME, error) : NULL;
    if (!volume)
        return NULL;
    g_autofree char *name = backend_of(host);
    const struct backend *backend = config_find(config, "backend", name, NULL);
    if (!backend)
        return api_refuse(call, 400,
                          "Invalid input received: No available service named '%s'; host is "
                          "HOST@BACKEND#POOL as scheduler-stats/get_pools has it.",
                          host);
    struct accept_work_args *args =
        block_work(call, RESOURCE_VOLUME, "migrate-volume", volume->uuid);
    text_set(&args->backend, backend->uuid);
    return block_accept_act(call, args, error);
}

/* --- an image of it --- */

static bool read_upload(const struct upload_image_body *body, struct accept_work_args *args,
                        GError **error)
{
    bool force, protected;
    int format = enum_parse(&disk_format_words, body->disk_format);
    if (!block_truth(body->force, "os-volume_upload_image.force", false, &force, error) ||
        !block_truth(body->protected, "os-volume_upload_image.protected", false, &protected, error))
        return false;
    if (format < 0)
        fettle_set_error(error, WRONG_INPUT,
                         "os-volume_upload_image.disk_format: must be raw or qcow2, not \"%s\"",
                         body->disk_format);
    else if (strcmp(body->container_format, "bare") != 0)
        fettle_set_error(error, WRONG_INPUT,
                         "os-volume_upload_image.container_format: must be bare, not \"%s\"",
                         body->container_format);
    else if (strcmp(body->visibility, "private") != 0 || protected)
        fettle_set_error(error, WRONG_INPUT,
                         "os-volume_upload_image: it is private and not protected until it is "
                         "active; say so of the image then");
    else {
        args->disk_format = (enum disk_format)format;
        text_set(&args->name, body->image_name);
        return true;
    }
    return false;
}

static struct http_answer *answer_upload(struct api_call *call, const char *image, GError **error)
{
    const struct upload_image_body *body = call->body;
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    if (!volume)
        return NULL;
    const struct volume_type *type =
        config_get(api_config(call, NULL), "volume_type", volume->volume_type, NULL);
    json_t *of_type = type ? json_make("{s:s, s:s, s:b}", "id", type->uuid, "name", type->name,
                                       "is_public", type->public)
                           : json_null();
    json_t *upload = json_make(
        "{s:s, s:s, s:o, s:I, s:o, s:s, s:s, s:s, s:s, s:o}", "id", volume->uuid, "status",
        volume_view_status(volume), "display_description", block_text(volume->description), "size",
        (json_int_t)volume->size, "volume_type", of_type, "image_id", image, "container_format",
        "bare", "disk_format", body->disk_format, "image_name", body->image_name, "updated_at",
        api_time((gint64)volume->updated_us));
    if (call->minor >= 1) {
        json_object_set_new(upload, "visibility", json_string("private"));
        json_object_set_new(upload, "protected", json_false());
    }
    return api_answer(call, json_make("{s:o}", "os-volume_upload_image", upload));
}

struct http_answer *api_volume_upload_image(struct api_call *call, GError **error)
{
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    if (!volume)
        return NULL;
    struct accept_work_args *args =
        block_work(call, RESOURCE_VOLUME, "upload-volume", volume->uuid);
    g_autofree char *image = g_strdup(args->commit_id);
    if (!read_upload(call->body, args, error)) {
        accept_work_args_free(args);
        return NULL;
    }
    record_autoptr(accepted_work) accepted = block_accept(call, args, error);
    return accepted ? answer_upload(call, image, error) : NULL;
}

/* --- what is said of it --- */

static struct http_answer *change_volume(struct api_call *call, struct change_volume_args *args,
                                         GError **error)
{
    text_set(&args->volume, api_var(call, "id"));
    return block_change(call, "change_volume", &change_volume_args_record, args, &args->commit_id,
                        error)
               ? api_answer(call, NULL)
               : NULL;
}

struct http_answer *api_volume_set_bootable(struct api_call *call, GError **error)
{
    const struct bootable_body *body = call->body;
    bool bootable;
    if (!block_found(call, RESOURCE_VOLUME, error) ||
        !block_truth(body->bootable, "os-set_bootable.bootable", false, &bootable, error))
        return NULL;
    struct change_volume_args *args = change_volume_args_new();
    args->bootable = bootable;
    return change_volume(call, args, error);
}

/* Guests are held to it; it is shown with the metadata, as Cinder does. */
struct http_answer *api_volume_update_readonly(struct api_call *call, GError **error)
{
    const struct readonly_body *body = call->body;
    bool readonly;
    if (!block_found(call, RESOURCE_VOLUME, error) ||
        !block_truth(body->readonly, "os-update_readonly_flag.readonly", false, &readonly, error))
        return NULL;
    struct change_volume_args *args = change_volume_args_new();
    args->readonly = readonly;
    g_ptr_array_add(args->metadata, g_strdup(readonly ? "readonly=True" : "readonly=False"));
    return change_volume(call, args, error);
}

static struct http_answer *answer_image_metadata(struct api_call *call, GError **error)
{
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    return volume ? api_answer(call, json_make("{s:o}", "metadata",
                                               block_metadata(volume->image_metadata)))
                  : NULL;
}

struct http_answer *api_volume_show_image_metadata(struct api_call *call, GError **error)
{
    return answer_image_metadata(call, error);
}

struct http_answer *api_volume_set_image_metadata(struct api_call *call, GError **error)
{
    const struct metadata_body *body = call->body;
    GPtrArray *words = block_found(call, RESOURCE_VOLUME, error)
                           ? api_words(body->metadata, "os-set_image_metadata.metadata", error)
                           : NULL;
    if (!words)
        return NULL;
    struct change_volume_args *args = change_volume_args_new();
    bool any = words->len > 0;
    block_set_words(&args->image_metadata, words);
    if (!any)
        change_volume_args_free(args);
    struct http_answer *changed = any ? change_volume(call, args, error) : NULL;
    if (any && !changed)
        return NULL;
    if (changed)
        http_answer_free(changed);
    return answer_image_metadata(call, error);
}

struct http_answer *api_volume_unset_image_metadata(struct api_call *call, GError **error)
{
    const struct image_key_body *body = call->body;
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    if (!volume)
        return NULL;
    if (!block_word(volume->image_metadata, body->key))
        return api_refuse(call, 404, "Volume %s has no metadata with key %s.", volume->uuid,
                          body->key);
    struct change_volume_args *args = change_volume_args_new();
    g_ptr_array_add(args->drop_image_metadata, g_strdup(body->key));
    return change_volume(call, args, error);
}
