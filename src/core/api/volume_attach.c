/*
 * Whose volumes are, as Nova and people say it: acts on a volume, and attachments (3.27 on). They
 * follow what is there, never the wish: none takes a volume off a guest that has it but a job,
 * which sees it go (SAF-57). What a client only reserves is a note on the volume's record.
 */
#include <string.h>

#include "core/api/volume_view.h"
#include "core/config/attachments.h"
#include "proto/env.h"

/* --- jobs --- */

static bool submit_attach(struct api_call *call, const char *volume, const char *instance,
                          const char *attachment, GError **error)
{
    record_autoptr(op_instance_attach_volume) params = op_instance_attach_volume_new();
    text_set(&params->volume, volume);
    text_set(&params->instance_name, instance);
    text_set(&params->attachment, attachment);
    return cell_submit(call->api->cell, "OP_INSTANCE_ATTACH_VOLUME", params, call->request_id,
                       error) != 0;
}

/* From the guest that it was seen with: by now it may be another's. */
static bool submit_detach(struct api_call *call, const struct volume *volume, GError **error)
{
    record_autoptr(op_instance_detach_volume) params = op_instance_detach_volume_new();
    text_set(&params->volume, volume->uuid);
    text_set(&params->instance_name, attachment_of(volume)->instance);
    return cell_submit(call->api->cell, "OP_INSTANCE_DETACH_VOLUME", params, call->request_id,
                       error) != 0;
}

/* --- reservations --- */

static bool reserve(struct api_call *call, const char *volume, const char *as, const char *instance,
                    GError **error)
{
    struct change_volume_args *args = change_volume_args_new();
    text_set(&args->volume, volume);
    text_set(&args->reserve, as);
    text_set(&args->reserve_for, instance);
    return block_change(call, "change_volume", &change_volume_args_record, args, &args->commit_id,
                        error);
}

/* Only what is reserved by that id: another one's reservation stays. */
static bool release(struct api_call *call, const char *volume, const char *as, GError **error)
{
    struct change_volume_args *args = change_volume_args_new();
    text_set(&args->volume, volume);
    text_set(&args->reserved, as);
    args->unreserve = true;
    return block_change(call, "change_volume", &change_volume_args_record, args, &args->commit_id,
                        error);
}

/* By `mode` an attachment says that it only reads; what counts is the volume's own flag. False:
 * they do not go together. */
static bool is_mode(const struct volume *volume, const char *mode, GError **error)
{
    if (!*mode || !strcmp(mode, volume->readonly ? "ro" : "rw"))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "Invalid attachment mode '%s' for volume %s, which is %s; its flag says so: "
                     "os-update_readonly_flag.",
                     mode, volume->uuid, volume->readonly ? "only read" : "read and written");
    return false;
}

/* What was reserved for it becomes its own, under the same id; a volume that is attached stays with
 * whom it is. False: it is refused, or fails. */
static bool attach(struct api_call *call, const struct volume *volume, const char *instance,
                   struct http_answer **ret_refused, GError **error)
{
    const struct config *config = api_config(call, NULL);
    const struct instance *known =
        *instance ? config_get(config, "instance", instance, NULL) : NULL;
    *ret_refused = NULL;
    if (!api_is_admin(call))
        *ret_refused = api_refuse(call, 403,
                                  "Guests belong to no project in this version; an administrator "
                                  "attaches volumes.");
    else if (attachment_of(volume))
        *ret_refused =
            api_refuse(call, 409, "volume %s is attached already", config_volume_name(volume));
    else if (!known)
        *ret_refused = api_refuse(call, 400,
                                  "Invalid volume: it is attached to an instance of this cluster, "
                                  "by its UUID, and there is no instance %s",
                                  instance);
    if (*ret_refused)
        return false;
    return submit_attach(call, volume->uuid, known->uuid, volume->reserved, error);
}

/* --- acts on a volume --- */

struct http_answer *api_volume_reserve(struct api_call *call, GError **error)
{
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    g_autofree char *id = volume ? g_strdup(volume->uuid) : NULL;
    return id && reserve(call, id, id, "", error) ? api_answer(call, NULL) : NULL;
}

/* What os-reserve has reserved; of anything else nothing changes, as Cinder has it. */
static struct http_answer *let_go(struct api_call *call, GError **error)
{
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    if (!volume || (!strcmp(volume->reserved, volume->uuid) &&
                    !release(call, api_var(call, "id"), api_var(call, "id"), error)))
        return NULL;
    return api_answer(call, NULL);
}

struct http_answer *api_volume_unreserve(struct api_call *call, GError **error)
{
    return let_go(call, error);
}

struct http_answer *api_volume_roll_detaching(struct api_call *call, GError **error)
{
    return let_go(call, error);
}

#define NOT_ATTACHED                                                                               \
    "Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status "   \
    "must be 'attached' to detach."

struct http_answer *api_volume_begin_detaching(struct api_call *call, GError **error)
{
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    return !volume                 ? NULL
           : attachment_of(volume) ? api_answer(call, NULL)
                                   : api_refuse(call, 409, NOT_ATTACHED);
}

struct http_answer *api_volume_attach(struct api_call *call, GError **error)
{
    const struct attach_body *body = call->body;
    struct http_answer *refused = NULL;
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    return volume && is_mode(volume, body->mode, error) &&
                   attach(call, volume, body->instance_uuid, &refused, error)
               ? api_answer(call, NULL)
               : refused;
}

static struct http_answer *detach(struct api_call *call, const char *attachment, GError **error)
{
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    const struct attachment *has = volume ? attachment_of(volume) : NULL;
    if (!volume)
        return NULL;
    if (!has)
        return api_refuse(call, 409, NOT_ATTACHED);
    if (*attachment && strcmp(attachment, has->uuid) != 0)
        return api_refuse(call, 404,
                          "Volume attachment could not be found with filter: "
                          "attachment_id = %s.",
                          attachment);
    return submit_detach(call, volume, error) ? api_answer(call, NULL) : NULL;
}

struct http_answer *api_volume_detach(struct api_call *call, GError **error)
{
    const struct detach_body *body = call->body;
    return detach(call, body->attachment_id, error);
}

struct http_answer *api_volume_force_detach(struct api_call *call, GError **error)
{
    const struct detach_body *body = call->body;
    return detach(call, body->attachment_id, error);
}

/* --- attachments --- */

/* Of a volume that has one, or is reserved for one; "": neither. */
static const char *id_of(const struct volume *volume)
{
    const struct attachment *attachment = attachment_of(volume);
    return attachment                                    ? attachment->uuid
           : strcmp(volume->reserved, volume->uuid) != 0 ? volume->reserved
                                                         : "";
}

static const char *instance_of(const struct volume *volume)
{
    const struct attachment *attachment = attachment_of(volume);
    return attachment ? attachment->instance : volume->reserved_for;
}

static const char *status_of(const struct volume *volume)
{
    const struct attachment *attachment = attachment_of(volume);
    return attachment ? enum_word(&attachment_state_words, (int)attachment->state) : "reserved";
}

static const char *attachment_id(const void *record)
{
    return id_of(record);
}

static const char *attachment_text(const struct config *config, const void *record, const char *key,
                                   char *scratch)
{
    const struct volume *volume = record;
    struct resource resource = resource_read(RESOURCE_VOLUME, volume);
    return !strcmp(key, "id")            ? id_of(volume)
           : !strcmp(key, "volume_id")   ? volume->uuid
           : !strcmp(key, "instance_id") ? instance_of(volume)
           : !strcmp(key, "status")      ? status_of(volume)
                                         : block_resource_text(config, &resource, key, scratch);
}

static json_t *short_view(const struct api_call *call, const struct config *config,
                          const void *record)
{
    const struct volume *volume = record;
    return json_make("{s:s, s:s, s:o, s:s}", "id", id_of(volume), "status", status_of(volume),
                     "instance", block_text(instance_of(volume)), "volume_id", volume->uuid);
}

static json_t *whole_view(const struct api_call *call, const struct config *config,
                          const void *record)
{
    const struct attachment *attachment = attachment_of(record);
    json_t *json = short_view(call, config, record);
    json_object_set_new(json, "attached_at",
                        api_time(attachment ? (gint64)attachment->since_us : 0));
    json_object_set_new(json, "detached_at", json_null());
    json_object_set_new(json, "attach_mode",
                        json_string(((const struct volume *)record)->readonly ? "ro" : "rw"));
    json_object_set_new(json, "connection_info", json_object());
    return json;
}

static struct http_answer *list_attachments(struct api_call *call, bool detail, GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    GPtrArray *items = block_items(call, config, RESOURCE_VOLUME);
    for (guint i = items->len; i > 0; i--)
        if (!*id_of(items->pdata[i - 1]))
            g_ptr_array_remove_index(items, i - 1);
    const struct block_list list = {.plural = "attachments",
                                    .record = &volume_record,
                                    .items = items,
                                    .id = attachment_id,
                                    .text = attachment_text,
                                    .view = short_view,
                                    .detail = whole_view};
    return block_answer_list(call, &list, detail, error);
}

struct http_answer *api_attachments_list(struct api_call *call, GError **error)
{
    return list_attachments(call, false, error);
}

struct http_answer *api_attachments_detail(struct api_call *call, GError **error)
{
    return list_attachments(call, true, error);
}

/* The volume whose attachment the path names. */
static const struct volume *find_attached(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "id");
    const struct config *config = api_config(call, error);
    g_autoptr(GPtrArray) all = config ? config_list(config, "volume") : g_ptr_array_new();
    for (guint i = 0; i < all->len; i++) {
        const struct volume *volume = all->pdata[i];
        if (strcmp(id_of(volume), id) != 0 ||
            (!api_is_admin(call) && strcmp(volume->project, call->token->project_id) != 0))
            continue;
        text_set(&call->resource, id);
        return volume;
    }
    if (config)
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "Volume attachment could not be found with filter: attachment_id = %s.",
                         id);
    return NULL;
}

static struct http_answer *answer_attachment(struct api_call *call, const struct volume *volume)
{
    return api_answer(
        call, json_make("{s:o}", "attachment", whole_view(call, api_config(call, NULL), volume)));
}

struct http_answer *api_attachment_show(struct api_call *call, GError **error)
{
    const struct volume *volume = find_attached(call, error);
    return volume ? answer_attachment(call, volume) : NULL;
}

struct http_answer *api_attachment_create(struct api_call *call, GError **error)
{
    const struct attachment_create_body *body = call->body;
    const struct volume *found = block_find(call, RESOURCE_VOLUME, body->volume_uuid, error);
    if (!found || !is_mode(found, body->mode, error))
        return NULL;
    g_autofree char *as = env_uuid(call->api->env);
    if (!reserve(call, body->volume_uuid, as, body->instance_uuid, error))
        return NULL;
    const struct volume *volume = block_find(call, RESOURCE_VOLUME, body->volume_uuid, error);
    return volume ? answer_attachment(call, volume) : NULL;
}

struct http_answer *api_attachment_update(struct api_call *call, GError **error)
{
    struct http_answer *refused = NULL;
    const struct volume *volume = find_attached(call, error);
    if (!volume)
        return NULL;
    return attach(call, volume, instance_of(volume), &refused, error)
               ? api_attachment_show(call, error)
               : refused;
}

struct http_answer *api_attachment_complete(struct api_call *call, GError **error)
{
    struct http_answer *refused = NULL;
    const struct volume *volume = find_attached(call, error);
    const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
    if (!volume)
        return NULL;
    if (attachment && attachment->state == ATTACHMENT_ATTACHED)
        return api_answer(call, NULL);
    return attach(call, volume, instance_of(volume), &refused, error) ? api_answer(call, NULL)
                                                                      : refused;
}

struct http_answer *api_attachment_delete(struct api_call *call, GError **error)
{
    const struct volume *volume = find_attached(call, error);
    if (!volume)
        return NULL;
    g_autofree char *id = g_strdup(volume->uuid);
    bool done = attachment_of(volume) ? submit_detach(call, volume, error)
                                      : release(call, id, api_var(call, "id"), error);
    return done ? api_answer(call, json_make("{s:[]}", "attachments")) : NULL;
}
