/* See image_common.h. */
#include "core/api/image_common.h"

#include <string.h>

#include "proto/env.h"

/* --- finding --- */

bool image_is_own(const struct api_call *call, const struct image *image)
{
    return api_is_admin(call) || !strcmp(image->project, call->token->project_id);
}

/* The value of a pair whose key that is. */
static const char *value_of(const GPtrArray *pairs, const char *key)
{
    size_t length = strlen(key);
    for (guint i = 0; i < pairs->len; i++) {
        const char *pair = pairs->pdata[i];
        if (!strncmp(pair, key, length) && pair[length] == '=')
            return pair + length + 1;
    }
    return NULL;
}

const char *image_member_status(const struct image *image, const char *project)
{
    return image->visibility == IMAGE_SHARED ? value_of(image->members, project) : NULL;
}

const char *image_property(const struct image *image, const char *key)
{
    return value_of(image->properties, key);
}

bool image_is_seen(const struct api_call *call, const struct image *image)
{
    if (image->status == IMAGE_DELETING) /* as Glance has it: gone */
        return false;
    return image_is_own(call, image) || image->visibility == IMAGE_PUBLIC ||
           image->visibility == IMAGE_COMMUNITY ||
           image_member_status(image, call->token->project_id);
}

const struct image *image_found(struct api_call *call, GError **error)
{
    const struct config *config = api_config(call, error);
    const char *id = api_var(call, "id");
    const struct image *image = config ? config_get(config, "image", id, NULL) : NULL;
    if (image && image_is_seen(call, image)) {
        text_set(&call->resource, image->uuid);
        return image;
    }
    if (config)
        fettle_set_error(error, UNKNOWN_ENTITY, "No image found with ID %s", id);
    return NULL;
}

const struct image *image_owned(struct api_call *call, GError **error)
{
    const struct image *image = image_found(call, error);
    if (!image || image_is_own(call, image))
        return image;
    fettle_set_error(error, PERMISSION, "image %s is another project's", image->uuid);
    return NULL;
}

/* --- showing --- */

const char *image_status_shown(const struct image *image)
{
    return image->deactivated && image->status == IMAGE_ACTIVE
               ? "deactivated"
               : enum_word(&image_status_words, (int)image->status);
}

static json_t *seconds_text(guint64 us)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc((gint64)(us / G_USEC_PER_SEC));
    g_autofree char *text = g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ");
    return json_string(text);
}

static json_t *text_or_null(const char *text)
{
    return *text ? json_string(text) : json_null();
}

static json_t *number_or_null(guint64 number)
{
    return number ? json_integer((json_int_t)number) : json_null();
}

json_t *image_view(const struct image *image)
{
    bool whole = image->status == IMAGE_ACTIVE;
    g_autofree char *self = g_strdup_printf("/v2/images/%s", image->uuid);
    g_autofree char *file = g_strdup_printf("/v2/images/%s/file", image->uuid);
    json_t *json = json_object();
    for (guint i = 0; i < image->properties->len; i++) {
        g_auto(GStrv) pair = g_strsplit(image->properties->pdata[i], "=", 2);
        json_object_set_new(json, pair[0], json_string(pair[1]));
    }
    if (*image->description)
        json_object_set_new(json, "description", json_string(image->description));
    json_t *tags = json_array();
    for (guint i = 0; i < image->tags->len; i++)
        json_array_append_new(tags, json_string(image->tags->pdata[i]));
    json_autoptr base = json_make(
        "{s:s, s:o, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:I, s:I, s:s, s:s, s:o, s:o, s:o, s:o, "
        "s:o, "
        "s:s, s:s, s:s, s:b}",
        "id", image->uuid, "name", text_or_null(image->name), "status", image_status_shown(image),
        "visibility", enum_word(&image_visibility_words, (int)image->visibility), "protected",
        (int)image->protected, "checksum", text_or_null(image->checksum), "os_hash_algo",
        *image->os_hash_value ? json_string("sha512") : json_null(), "os_hash_value",
        text_or_null(image->os_hash_value), "owner", text_or_null(image->project), "min_ram",
        (json_int_t)image->min_ram, "min_disk", (json_int_t)image->min_disk, "disk_format",
        enum_word(&disk_format_words, (int)image->disk_format), "container_format",
        image->container_format, "size", number_or_null(whole ? image->size : 0), "virtual_size",
        number_or_null(whole ? image->virtual_size : 0), "created_at",
        seconds_text(image->created_us), "updated_at",
        seconds_text(MAX(image->updated_us, image->created_us)), "tags", tags, "self", self, "file",
        file, "schema", "/v2/schemas/image", "os_hidden", (int)image->hidden);
    json_object_update(json, base);
    return json;
}

bool image_is_base(const char *key)
{
    static const char *const keys[] = {"id",
                                       "name",
                                       "status",
                                       "visibility",
                                       "protected",
                                       "checksum",
                                       "owner",
                                       "min_ram",
                                       "min_disk",
                                       "size",
                                       "disk_format",
                                       "virtual_size",
                                       "created_at",
                                       "updated_at",
                                       "container_format",
                                       "tags",
                                       "self",
                                       "file",
                                       "schema",
                                       "os_hidden",
                                       "os_hash_algo",
                                       "locations",
                                       "os_hash_value",
                                       "description",
                                       "direct_url",
                                       NULL};
    return g_strv_contains(keys, key);
}

/* --- what is asked of wconfd --- */

struct accepted_work *image_work(struct api_call *call, enum task_operation operation,
                                 const char *image, gint64 promised, GError **error)
{
    g_autofree char *commit_id = env_uuid(call->api->env);
    record_autoptr(accept_work_args) args = accept_work_args_new();
    text_set(&args->commit_id, commit_id);
    args->resource_type = RESOURCE_IMAGE;
    text_set(&args->operation, task_operation_words[operation]);
    text_set(&args->resource, image);
    text_set(&args->request_id, call->request_id);
    args->promised = promised;
    return cell_call(call->api->cell, "accept_work", args, error);
}

struct change_image_args *image_change_new(const struct api_call *call)
{
    struct change_image_args *args = change_image_args_new();
    g_autofree char *commit_id = env_uuid(call->api->env);
    text_set(&args->commit_id, commit_id);
    text_set(&args->image, api_var(call, "id"));
    return args;
}

bool image_change(struct api_call *call, struct change_image_args *args, GError **error)
{
    g_autoptr(GError) local = NULL;
    record_autoptr(change_image_args) asked = args;
    record_autoptr(commit_result) result =
        cell_call(call->api->cell, "change_image", asked, &local);
    if (result && !cell_has_own(call->api->cell))
        fettle_set_error(&local, UNKNOWN_RESULT,
                         "it is on record, and not to be seen here yet: no news comes from the "
                         "master; try again");
    else if (result || (fettle_error_is(local, WRONG_INPUT) &&
                        g_str_has_prefix(local->message, "nothing to change")))
        return true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}
