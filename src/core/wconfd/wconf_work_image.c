/*
 * What accept_work is about where images are, the one that a volume is made of, the one that is
 * made of a volume; and what of them needs no work: add_image, change_image. See
 * wconf_work_private.h.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* --- a volume of an image --- */

static bool has_key(const char *pair, const char *key, gsize length)
{
    return strncmp(pair, key, length) == 0 && pair[length] == '=';
}

static bool is_member(const struct image *image, const char *project)
{
    for (guint i = 0; i < image->members->len; i++)
        if (has_key(image->members->pdata[i], project, strlen(project)))
            return true;
    return false;
}

/* Who asks for no project sees all. */
static bool is_seen(const struct image *image, const char *project)
{
    return !*project || image->visibility == IMAGE_PUBLIC || image->visibility == IMAGE_COMMUNITY ||
           !strcmp(image->project, project) ||
           (image->visibility == IMAGE_SHARED && is_member(image, project));
}

bool wconf_work_make_of_image(const struct config *head, const struct accept_work_args *args,
                              struct resource *resource, struct resource *ret_image, GError **error)
{
    struct resource found = resource_find(head, RESOURCE_IMAGE, args->image, error);
    const struct image *image = config_get(head, "image", found.uuid, NULL);
    *ret_image = found;
    if (!image)
        return false;
    if (!is_seen(image, args->project)) {
        fettle_set_error(error, UNKNOWN_ENTITY, "image \"%s\" does not exist", args->image);
        return false;
    }
    if (image->deactivated) {
        fettle_set_error(error, WRONG_STATE,
                         "image %s is deactivated; nobody may read it until it is reactivated",
                         resource_name(&found));
        return false;
    }
    if (!wconf_work_may_read(head, args->operation, &found, error))
        return false;
    guint64 needs = MAX(found.size, image->min_disk);
    resource->size = args->size ? args->size : needs;
    if (resource->size >= needs)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "size: %" G_GUINT64_FORMAT " GiB is smaller than image %s, which needs "
                     "%" G_GUINT64_FORMAT " GiB",
                     args->size, resource_name(&found), needs);
    return false;
}

/* --- an image of a volume --- */

static bool is_made_there(const struct backend *backend, enum disk_format format, GError **error)
{
    if (backend->kind != BACKEND_RBD || format == FORMAT_RAW)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "disk_format: what a pool of a Ceph keeps of a volume is raw; ask for it: "
                     "--disk-format raw, or name a back end of kind dir instead of %s: --backend",
                     backend->name);
    return false;
}

bool wconf_work_find_upload(const struct config *head, const struct accept_work_args *args,
                            struct work_request *request, GError **error)
{
    const struct resource *volume = &request->resource;
    const struct backend *backend =
        wconf_work_holder(head, RESOURCE_IMAGE, args->backend, volume->backend, error);
    struct resource image = resource_of(head, RESOURCE_IMAGE, args->commit_id);
    if (!backend || !is_made_there(backend, args->disk_format, error) ||
        !wconf_work_name_fits(head, &image, args->name, args->unique_name, error))
        return false;
    image.name = args->name;
    image.description = args->description;
    image.project = volume->project;
    image.backend = request->backend = backend->uuid;
    image.disk_format = args->disk_format;
    image.size = volume->size;
    image.virtual_size = volume->size * 1024 * MIB(1);
    request->partner = image;
    if (!image.exists)
        return wconf_work_one_sees_both(head, volume->backend, backend->uuid, error);
    fettle_set_error(error, ALREADY_EXISTS, "image %s exists already", args->commit_id);
    return false;
}

/* --- one that goes --- */

bool wconf_work_may_delete(const struct config *head, const struct work_row *row,
                           const struct resource *resource, GError **error)
{
    const struct image *image =
        resource->type == RESOURCE_IMAGE ? config_get(head, "image", resource->uuid, NULL) : NULL;
    if (!image || !image->protected || row->done != TASK_FINAL_REMOVED)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "image %s is protected; first: fettle image modify %s --protected no",
                     resource_name(resource), resource_name(resource));
    return false;
}

/* --- one whose bytes come --- */

/* Clients repeat a request by themselves, and do not go back to where a file or a pipe began: what
 * comes then is the rest. Only who says the same number of bytes again has all of them. */
bool wconf_work_may_send(const struct config *head, const struct work_row *row,
                         const struct accept_work_args *args, const struct resource *resource,
                         GError **error)
{
    const struct image *image = row->operation == TASK_OPERATION_SAVE_IMAGE
                                    ? config_get(head, "image", resource->uuid, NULL)
                                    : NULL;
    if (!image || !args->promised || !image->promised ||
        (args->promised > 0 && args->promised == image->promised))
        return true;
    fettle_set_error(
        error, WRONG_STATE,
        "image %s: an upload of it was begun before and came to nothing (%s), and what "
        "is sent now may be the rest of that; delete it and make another one, and "
        "send all of it to that",
        resource_name(resource), *image->status_why ? image->status_why : "unknown why");
    return false;
}

/* --- add_image --- */

static void put_image(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                      const struct image *image)
{
    GPtrArray *changes = change_list_new();
    g_ptr_array_add(changes, config_put(wconf->head, "image", image->uuid, image_to_json(image)));
    wconf_work_commit(wconf, request, commit_id, changes, NULL);
}

/* A client chooses the id, which is that of the commit; the end of an attachment is a commit of its
 * own id, and would be taken for done (SAF-124). */
static bool is_no_attachment(const struct config *head, const char *id, GError **error)
{
    g_autoptr(GPtrArray) volumes = config_list(head, "volume");
    for (guint i = 0; i < volumes->len; i++) {
        const struct volume *volume = volumes->pdata[i];
        const struct attachment *attachment = attachment_of(volume);
        if (strcmp(volume->reserved, id) != 0 && (!attachment || strcmp(attachment->uuid, id) != 0))
            continue;
        fettle_set_error(
            error, ALREADY_EXISTS,
            "an image cannot have the id %s: an attachment of volume %s has it; choose "
            "another one",
            id, config_volume_name(volume));
        return false;
    }
    return true;
}

static struct image *new_image(struct wconf *wconf, const struct add_image_args *args,
                               GError **error)
{
    struct resource none = resource_of(wconf->head, RESOURCE_IMAGE, args->commit_id);
    const struct backend *backend =
        wconf_work_holder(wconf->head, RESOURCE_IMAGE, args->backend, "", error);
    if (!backend || !is_no_attachment(wconf->head, args->commit_id, error) ||
        !wconf_work_name_fits(wconf->head, &none, args->name, args->unique_name, error))
        return NULL;
    g_autoptr(GPtrArray) none_of = g_ptr_array_new();
    const struct image image = {.uuid = args->commit_id,
                                .name = args->name,
                                .description = args->description,
                                .project = args->project,
                                .visibility = args->visibility,
                                .created_us = wconf_stamp(wconf),
                                .status = IMAGE_QUEUED,
                                .status_why = (char *)"",
                                .backend = backend->uuid,
                                .host = (char *)"",
                                .data = (char *)"",
                                .disk_format = args->disk_format,
                                .checksum = (char *)"",
                                .os_hash_value = (char *)"",
                                .min_disk = args->min_disk,
                                .protected = args->protected,
                                .properties = args->properties,
                                .container_format = (char *)"bare",
                                .min_ram = args->min_ram,
                                .tags = args->tags,
                                .members = none_of,
                                .hidden = args->hidden};
    return image_copy(&image);
}

void wconf_handle_add_image(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(add_image_args) args = rpc_request_args(request, &add_image_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    record_autoptr(image) image =
        args && wconf_work_allowed(wconf, &error) ? new_image(wconf, args, &error) : NULL;
    if (image)
        put_image(wconf, request, args->commit_id, image);
    else
        wconf_work_refuse(wconf, request, error);
}

/* --- change_image --- */

static void remove_key(GPtrArray *pairs, const char *key, gsize length)
{
    for (guint i = pairs->len; i > 0; i--)
        if (has_key(pairs->pdata[i - 1], key, length))
            g_ptr_array_remove_index(pairs, i - 1);
}

/* KEY=VALUE takes the place of what the key had. */
static bool set_pair(GPtrArray *pairs, const char *what, guint most, const char *pair,
                     GError **error)
{
    const char *equals = strchr(pair, '=');
    if (!equals || equals == pair) {
        fettle_set_error(error, WRONG_INPUT, "%s: \"%s\" is not KEY=VALUE", what, pair);
        return false;
    }
    remove_key(pairs, pair, (gsize)(equals - pair));
    if (pairs->len == most) {
        fettle_set_error(error, LIMIT, "%s: more than %u are not kept", what, most);
        return false;
    }
    g_ptr_array_add(pairs, g_strdup(pair));
    return true;
}

static bool set_member(struct image *image, const char *pair, GError **error)
{
    static const char *const known[] = {"pending", "accepted", "rejected", NULL};
    const char *equals = strchr(pair, '=');
    if (!equals || g_strv_contains(known, equals + 1))
        return set_pair(image->members, "members", LIMIT_IMAGE_MEMBERS, pair, error);
    fettle_set_error(error, WRONG_INPUT, "members: \"%s\" must be pending, accepted or rejected",
                     equals + 1);
    return false;
}

/* Each once, in their order. */
static bool set_tag(GPtrArray *tags, const char *tag, GError **error)
{
    if (g_ptr_array_find_with_equal_func(tags, tag, g_str_equal, NULL))
        return true;
    if (tags->len == LIMIT_IMAGE_TAGS) {
        fettle_set_error(error, LIMIT, "tags: more than %d are not kept", LIMIT_IMAGE_TAGS);
        return false;
    }
    g_ptr_array_add(tags, g_strdup(tag));
    return true;
}

static bool set_lists(struct image *image, const struct change_image_args *args, GError **error)
{
    bool ok = true;
    guint at;
    for (guint i = 0; i < args->remove_properties->len; i++)
        remove_key(image->properties, args->remove_properties->pdata[i],
                   strlen(args->remove_properties->pdata[i]));
    for (guint i = 0; i < args->remove_members->len; i++)
        remove_key(image->members, args->remove_members->pdata[i],
                   strlen(args->remove_members->pdata[i]));
    for (guint i = 0; i < args->remove_tags->len; i++)
        if (g_ptr_array_find_with_equal_func(image->tags, args->remove_tags->pdata[i], g_str_equal,
                                             &at))
            g_ptr_array_remove_index(image->tags, at);
    for (guint i = 0; ok && i < args->properties->len; i++)
        ok = set_pair(image->properties, "properties", LIMIT_IMAGE_PROPERTIES,
                      args->properties->pdata[i], error);
    for (guint i = 0; ok && i < args->members->len; i++)
        ok = set_member(image, args->members->pdata[i], error);
    for (guint i = 0; ok && i < args->add_tags->len; i++)
        ok = set_tag(image->tags, args->add_tags->pdata[i], error);
    return ok;
}

static bool clear_fields(struct image *image, const GPtrArray *fields, GError **error)
{
    for (guint i = 0; i < fields->len; i++) {
        if (!strcmp(fields->pdata[i], "name"))
            text_set(&image->name, "");
        else if (!strcmp(fields->pdata[i], "description"))
            text_set(&image->description, "");
        else {
            fettle_set_error(error, WRONG_INPUT, "clear: \"%s\" is neither name nor description",
                             (const char *)fields->pdata[i]);
            return false;
        }
    }
    return true;
}

static bool set_format(struct image *image, const char *word, GError **error)
{
    int format = *word ? enum_parse(&disk_format_words, word) : (int)image->disk_format;
    if (format < 0) {
        fettle_set_error(error, WRONG_INPUT, "disk_format: must be raw or qcow2, not \"%s\"", word);
        return false;
    }
    if (format != (int)image->disk_format && image->status != IMAGE_QUEUED) {
        fettle_set_error(error, WRONG_STATE,
                         "disk_format: image %s is %s; what its bytes are is said before they come",
                         *image->name ? image->name : image->uuid,
                         enum_word(&image_status_words, (int)image->status));
        return false;
    }
    image->disk_format = (enum disk_format)format;
    return true;
}

static bool set_visibility(struct image *image, const char *word, GError **error)
{
    int visibility = *word ? enum_parse(&image_visibility_words, word) : (int)image->visibility;
    if (visibility >= 0)
        image->visibility = (enum image_visibility)visibility;
    else
        fettle_set_error(error, WRONG_INPUT,
                         "visibility: must be private, public, shared or community, not \"%s\"",
                         word);
    return visibility >= 0;
}

static struct image *changed_image(const struct wconf *wconf, const struct change_image_args *args,
                                   GError **error)
{
    struct resource found = resource_find(wconf->head, RESOURCE_IMAGE, args->image, error);
    record_autoptr(image) image =
        found.exists ? image_copy(config_get(wconf->head, "image", found.uuid, NULL)) : NULL;
    if (!image || !wconf_work_name_fits(wconf->head, &found, args->name, args->unique_name, error))
        return NULL;
    if (*args->name)
        text_set(&image->name, args->name);
    if (*args->description)
        text_set(&image->description, args->description);
    if (args->min_disk >= 0)
        image->min_disk = (guint64)args->min_disk;
    if (args->protected >= 0)
        image->protected = args->protected;
    if (args->min_ram >= 0)
        image->min_ram = (guint64)args->min_ram;
    if (args->hidden >= 0)
        image->hidden = args->hidden;
    if (args->deactivated >= 0)
        image->deactivated = args->deactivated;
    if (!clear_fields(image, args->clear, error) || !set_lists(image, args, error) ||
        !set_format(image, args->disk_format, error) ||
        !set_visibility(image, args->visibility, error))
        return NULL;
    json_autoptr before = config_object_json(wconf->head, "image", found.uuid);
    json_autoptr after = image_to_json(image);
    if (!json_equal(before, after))
        return g_steal_pointer(&image);
    fettle_set_error(error, WRONG_INPUT, "nothing to change: image %s is so already",
                     resource_name(&found));
    return NULL;
}

void wconf_handle_change_image(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(change_image_args) args =
        rpc_request_args(request, &change_image_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    record_autoptr(image) image = args ? changed_image(wconf, args, &error) : NULL;
    if (image)
        put_image(wconf, request, args->commit_id, image);
    else
        wconf_work_refuse(wconf, request, error);
}
