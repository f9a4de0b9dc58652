/* Volumes: lists, one, made, changed, deleted. What is done to one that there is: volume_acts.c. */
#include <string.h>

#include "core/api/image_common.h"
#include "core/api/volume_view.h"
#include "core/config/attachments.h"

/* --- lists --- */

static const char *volume_id(const void *record)
{
    return ((const struct volume *)record)->uuid;
}

static const char *volume_text(const struct config *config, const void *record, const char *key,
                               char *scratch)
{
    const struct volume *volume = record;
    struct resource resource = resource_read(RESOURCE_VOLUME, volume);
    if (!strcmp(key, "status"))
        return volume_view_status(volume);
    if (!strcmp(key, "bootable"))
        return volume->bootable ? "true" : "false";
    if (!strcmp(key, "user_id"))
        return volume->user;
    if (!strcmp(key, "host"))
        return volume->host;
    if (!strcmp(key, "snapshot_id"))
        return volume->from_snapshot;
    if (!strcmp(key, "source_volid"))
        return volume->from_volume;
    if (!strcmp(key, "volume_type_id"))
        return volume->volume_type;
    if (!strcmp(key, "volume_type")) {
        const struct volume_type *type =
            config_get(config, "volume_type", volume->volume_type, NULL);
        return type ? type->name : "";
    }
    if (g_str_has_prefix(key, "metadata:"))
        return block_word(volume->metadata, key + strlen("metadata:"));
    return block_resource_text(config, &resource, key, scratch);
}

static guint64 volume_number(const void *record, const char *key)
{
    const struct volume *volume = record;
    return !strcmp(key, "size")         ? volume->size
           : !strcmp(key, "updated_at") ? volume->updated_us
                                        : volume->created_us;
}

static json_t *short_view(const struct api_call *call, const struct config *config,
                          const void *record)
{
    const struct volume *volume = record;
    return json_make("{s:s, s:o, s:o}", "id", volume->uuid, "name", block_text(volume->name),
                     "links", block_links(call, "volumes", volume->uuid));
}

static json_t *whole_view(const struct api_call *call, const struct config *config,
                          const void *record)
{
    return volume_view(call, config, record, true);
}

static struct http_answer *list_volumes(struct api_call *call, bool detail, GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    const struct block_list list = {.plural = "volumes",
                                    .record = &volume_record,
                                    .items = block_items(call, config, RESOURCE_VOLUME),
                                    .id = volume_id,
                                    .text = volume_text,
                                    .number = volume_number,
                                    .view = short_view,
                                    .detail = whole_view};
    return block_answer_list(call, &list, detail, error);
}

struct http_answer *api_volumes_list(struct api_call *call, GError **error)
{
    return list_volumes(call, false, error);
}

struct http_answer *api_volumes_detail(struct api_call *call, GError **error)
{
    return list_volumes(call, true, error);
}

/* Each value of each key, once. */
static void add_metadata(json_t *all, const struct volume *volume)
{
    json_autoptr metadata = block_metadata(volume->metadata);
    const char *key;
    json_t *value, *known;
    size_t i;
    json_object_foreach(metadata, key, value) {
        json_t *values = json_object_get(all, key);
        bool has = false;
        if (!values) {
            values = json_array();
            json_object_set_new(all, key, values);
        }
        json_array_foreach(values, i, known)
            has = has || json_equal(known, value);
        if (!has)
            json_array_append(values, value);
    }
}

struct http_answer *api_volumes_summary(struct api_call *call, GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    g_autoptr(GPtrArray) items = block_items(call, config, RESOURCE_VOLUME);
    json_autoptr metadata = json_object();
    guint64 size = 0;
    for (guint i = 0; i < items->len; i++) {
        size += ((const struct volume *)items->pdata[i])->size;
        add_metadata(metadata, items->pdata[i]);
    }
    json_t *summary = json_make("{s:I, s:I}", "total_size", (json_int_t)size, "total_count",
                                (json_int_t)items->len);
    if (call->minor >= 36)
        json_object_set(summary, "metadata", metadata);
    return api_answer(call, json_make("{s:o}", "volume-summary", summary));
}

/* --- one --- */

/* As it is now. */
static struct http_answer *answer_volume(struct api_call *call, const char *id, bool whole,
                                         GError **error)
{
    const struct volume *volume = block_find(call, RESOURCE_VOLUME, id, error);
    const struct config *config = api_config(call, NULL);
    return volume ? api_answer(call, json_make("{s:o}", "volume",
                                               volume_view(call, config, volume, whole)))
                  : NULL;
}

struct http_answer *api_volume_show(struct api_call *call, GError **error)
{
    return answer_volume(call, api_var(call, "id"), true, error);
}

/* --- made --- */

static bool is_refused_field(const char *field, const char *value, const char *why, GError **error)
{
    if (!*value)
        return false;
    fettle_set_error(error, WRONG_INPUT, "volume.%s: %s", field, why);
    return true;
}

static bool asks_for_what_there_is(const struct volume_create_body *body, GError **error)
{
    bool many = false;
    if (is_refused_field("consistencygroup_id", body->consistencygroup_id, "there are no groups",
                         error) ||
        is_refused_field("group_id", body->group_id, "there are no groups", error) ||
        is_refused_field("source_replica", body->source_replica, "there are no replicas", error) ||
        !block_truth(body->multiattach, "volume.multiattach", false, &many, error))
        return false;
    if (many)
        fettle_set_error(error, WRONG_INPUT,
                         "volume.multiattach: a volume is attached to one instance at most");
    else if (*body->availability_zone && strcmp(body->availability_zone, BLOCK_ZONE) != 0)
        fettle_set_error(error, WRONG_INPUT,
                         "Invalid input received: Availability zone '%s' is invalid.",
                         body->availability_zone);
    else
        return true;
    return false;
}

/* What is told of an image to who boots from its volume, with the words of Cinder. */
static GPtrArray *image_words(const struct image *image)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(words, g_strconcat("image_id=", image->uuid, NULL));
    g_ptr_array_add(words, g_strconcat("image_name=", image->name, NULL));
    g_ptr_array_add(words, g_strconcat("checksum=", image->checksum, NULL));
    g_ptr_array_add(words, g_strdup("container_format=bare"));
    g_ptr_array_add(
        words,
        g_strconcat("disk_format=", enum_word(&disk_format_words, (int)image->disk_format), NULL));
    g_ptr_array_add(words, g_strdup_printf("min_disk=%" G_GUINT64_FORMAT, image->min_disk));
    g_ptr_array_add(words, g_strdup("min_ram=0"));
    g_ptr_array_add(words, g_strdup_printf("size=%" G_GUINT64_FORMAT, image->size));
    for (guint i = 0; i < image->properties->len; i++)
        g_ptr_array_add(words, g_strdup(image->properties->pdata[i]));
    return words;
}

/* By its id, or the name of the only one that who asks sees: whatever others call theirs. */
static const struct image *find_image(const struct api_call *call, const struct config *config,
                                      const char *id)
{
    const struct image *image = config_get(config, "image", id, NULL);
    if (image)
        return image_is_seen(call, image) ? image : NULL;
    guint count = 0;
    g_autoptr(GPtrArray) all = config_list(config, "image");
    for (guint i = 0; i < all->len; i++) {
        const struct image *other = all->pdata[i];
        if (strcmp(other->name, id) != 0 || !image_is_seen(call, other))
            continue;
        image = other;
        count++;
    }
    return count == 1 ? image : NULL;
}

static bool of_image(struct api_call *call, const char *id, struct accept_work_args *args,
                     GError **error)
{
    const struct config *config = api_config(call, error);
    const struct image *image = config ? find_image(call, config, id) : NULL;
    if (config && !image)
        fettle_set_error(error, WRONG_INPUT,
                         "Invalid image identifier or unable to access requested image.");
    if (!image)
        return false;
    text_set(&args->image, image->uuid);
    block_set_words(&args->image_metadata, image_words(image));
    args->bootable = true;
    return true;
}

/* What was said of a volume goes with its copy. */
static void as_its_source(const struct volume *volume, struct accept_work_args *args)
{
    if (!volume)
        return;
    args->bootable = volume->bootable;
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < volume->image_metadata->len; i++)
        g_ptr_array_add(words, g_strdup(volume->image_metadata->pdata[i]));
    block_set_words(&args->image_metadata, words);
}

/* At most one of these. */
static bool add_source(struct api_call *call, const struct volume_create_body *body,
                       struct accept_work_args *args, GError **error)
{
    const char *image = *body->imageRef ? body->imageRef : body->image_id;
    if ((*image != 0) + (*body->snapshot_id != 0) + (*body->source_volid != 0) +
            (*body->backup_id != 0) >
        1) {
        fettle_set_error(error, WRONG_INPUT,
                         "volume: it is made of one of imageRef, snapshot_id, source_volid, "
                         "backup_id at most");
        return false;
    }
    if (*image)
        return of_image(call, image, args, error);
    if (*body->snapshot_id) {
        const struct snapshot *snapshot =
            block_find(call, RESOURCE_SNAPSHOT, body->snapshot_id, error);
        if (!snapshot)
            return false;
        text_set(&args->source, snapshot->uuid);
        as_its_source(config_get(api_config(call, NULL), "volume", snapshot->volume, NULL), args);
    }
    if (*body->source_volid) {
        const struct volume *volume = block_find(call, RESOURCE_VOLUME, body->source_volid, error);
        if (!volume)
            return false;
        text_set(&args->volume, volume->uuid);
        as_its_source(volume, args);
    }
    return true;
}

static bool add_size(const struct volume_create_body *body, struct accept_work_args *args,
                     GError **error)
{
    bool copies = *args->image || *args->source || *args->volume;
    return (!body->size && copies) || block_size(body->size, &args->size, error);
}

/* A type that there is and that the project may use; UNKNOWN_ENTITY in Cinder's words. */
static bool add_type(struct api_call *call, const char *name, struct accept_work_args *args,
                     GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return false;
    if (!*name) {
        bool copies = *args->source || *args->volume; /* which has that of what it is made of */
        const struct volume_type *own = copies ? NULL : block_default_type(call);
        text_set(&args->volume_type, own ? own->uuid : "");
        return true;
    }
    const struct volume_type *type = config_find(config, "volume_type", name, NULL);
    if (!type) {
        fettle_set_error(error, UNKNOWN_ENTITY, "Volume type %s could not be found.", name);
        return false;
    }
    text_set(&args->volume_type, type->uuid);
    return true;
}

static void add_words(const struct volume_create_body *body, struct accept_work_args *args)
{
    text_set(&args->name, *body->name ? body->name : body->display_name);
    text_set(&args->description,
             *body->description ? body->description : body->display_description);
}

static struct http_answer *make_volume(struct api_call *call, struct accept_work_args *args,
                                       GError **error)
{
    text_set(&args->project, call->token->project_id);
    text_set(&args->user, call->token->user_id);
    block_add_quota(call, args, call->token->project_id);
    record_autoptr(accepted_work) accepted = block_accept(call, args, error);
    return accepted && block_made(call, RESOURCE_VOLUME, accepted->resource, error)
               ? answer_volume(call, accepted->resource, false, error)
               : NULL;
}

/* By a restore, which says what cannot be asked for beside it. `metadata` is stolen. */
static struct http_answer *make_of_backup(struct api_call *call, GPtrArray *metadata,
                                          GError **error)
{
    const struct volume_create_body *body = call->body;
    g_autoptr(GPtrArray) words = metadata;
    const struct backup *backup =
        call->minor >= 47 ? block_find(call, RESOURCE_BACKUP, body->backup_id, error) : NULL;
    if (call->minor < 47)
        fettle_set_error(error, WRONG_INPUT,
                         "volume.backup_id: a volume is made of a backup from 3.47 on");
    if (!backup)
        return NULL;
    record_autoptr(accept_work_args) args = block_restore_new(call, backup, "");
    g_autofree char *id = g_strdup(args->commit_id);
    add_words(body, args);
    text_set(&args->volume_type, body->volume_type);
    if (words->len)
        block_set_words(&args->metadata, g_steal_pointer(&words));
    if (body->size && !block_size(body->size, &args->size, error))
        return NULL;
    record_autoptr(accepted_work) accepted = block_accept(call, g_steal_pointer(&args), error);
    return accepted && block_made(call, RESOURCE_VOLUME, id, error)
               ? answer_volume(call, id, false, error)
               : NULL;
}

struct http_answer *api_volume_create(struct api_call *call, GError **error)
{
    const struct volume_create_body *body = call->body;
    record_autoptr(accept_work_args) args = block_work(call, RESOURCE_VOLUME, "create-volume", "");
    GPtrArray *metadata = api_words(body->metadata, "volume.metadata", error);
    if (!metadata)
        return NULL;
    block_set_words(&args->metadata, metadata);
    add_words(body, args);
    if (!asks_for_what_there_is(body, error) || !add_source(call, body, args, error))
        return NULL;
    if (*body->backup_id)
        return make_of_backup(call, g_ptr_array_ref(metadata), error);
    if (!add_size(body, args, error) || !add_type(call, body->volume_type, args, error))
        return NULL;
    return make_volume(call, g_steal_pointer(&args), error);
}

/* --- changed --- */

struct http_answer *api_volume_update(struct api_call *call, GError **error)
{
    const struct volume_update_body *body = call->body;
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    GPtrArray *metadata = volume ? api_words(body->metadata, "volume.metadata", error) : NULL;
    if (!metadata)
        return NULL;
    record_autoptr(change_volume_args) args = change_volume_args_new();
    block_set_words(&args->metadata, metadata);
    args->only_metadata = body->metadata != NULL;
    text_set(&args->volume, volume->uuid);
    bool changes = block_read_names(call, &args->name, &args->description, &args->no_name,
                                    &args->no_description) ||
                   args->only_metadata;
    char **commit_id = &args->commit_id;
    if (changes && !block_change(call, "change_volume", &change_volume_args_record,
                                 g_steal_pointer(&args), commit_id, error))
        return NULL;
    return answer_volume(call, api_var(call, "id"), false, error);
}

/* --- deleted --- */

#define CANNOT_GO                                                                                  \
    "Invalid volume: Volume status must be available or error or error_restoring or "              \
    "error_extending or error_managing and must not be migrating, attached, belong to a group, "   \
    "have snapshots, awaiting a transfer, or be disassociated from snapshots after volume "        \
    "transfer."

struct http_answer *api_volume_delete(struct api_call *call, GError **error)
{
    bool cascade, force;
    g_autoptr(GError) why = NULL;
    const struct volume *volume = block_found(call, RESOURCE_VOLUME, error);
    if (!volume || !api_query_bool(call, "cascade", false, &cascade, error) ||
        !api_query_bool(call, "force", false, &force, error))
        return NULL;
    struct accept_work_args *args =
        block_work(call, RESOURCE_VOLUME, "delete-volume", volume->uuid);
    args->cascade = cascade;
    args->force = force && call->minor >= 23 && api_is_admin(call);
    record_autoptr(accepted_work) accepted = block_accept(call, args, &why);
    if (accepted)
        return api_answer(call, NULL);
    if (!fettle_error_is(why, WRONG_STATE)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return NULL;
    }
    return api_refuse(call, 400, CANNOT_GO " (%s)", why->message);
}
