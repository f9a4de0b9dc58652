/*
 * What accept_work is about where images are, the one that a volume is made of, the one that is
 * made of a volume; and what of them needs no work: add_image, change_image. See
 * wconf_work_private.h.
 */
#include <string.h>

#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* --- a volume of an image --- */

/* Who asks for no project sees all. */
static bool is_seen(const struct image *image, const char *project)
{
    return !*project || image->visibility == IMAGE_PUBLIC || !strcmp(image->project, project);
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

/* --- add_image --- */

static void put_image(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                      const struct image *image)
{
    GPtrArray *changes = change_list_new();
    g_ptr_array_add(changes, config_put(wconf->head, "image", image->uuid, image_to_json(image)));
    wconf_work_commit(wconf, request, commit_id, changes, NULL);
}

static struct image *new_image(struct wconf *wconf, const struct add_image_args *args,
                               GError **error)
{
    struct resource none = resource_of(wconf->head, RESOURCE_IMAGE, args->commit_id);
    const struct backend *backend =
        wconf_work_holder(wconf->head, RESOURCE_IMAGE, args->backend, "", error);
    if (!backend || !wconf_work_name_fits(wconf->head, &none, args->name, args->unique_name, error))
        return NULL;
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
                                .properties = args->properties};
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

static bool has_key(const char *pair, const char *key, gsize length)
{
    return strncmp(pair, key, length) == 0 && pair[length] == '=';
}

/* KEY=VALUE takes the place of what the key had; KEY= leaves none. */
static bool set_property(GPtrArray *properties, const char *pair, GError **error)
{
    const char *equals = strchr(pair, '=');
    if (!equals || equals == pair) {
        fettle_set_error(error, WRONG_INPUT, "properties: \"%s\" is not KEY=VALUE", pair);
        return false;
    }
    for (guint i = properties->len; i > 0; i--)
        if (has_key(properties->pdata[i - 1], pair, (gsize)(equals - pair)))
            g_ptr_array_remove_index(properties, i - 1);
    if (equals[1])
        g_ptr_array_add(properties, g_strdup(pair));
    return true;
}

static bool set_visibility(struct image *image, const char *word, GError **error)
{
    int visibility = *word ? enum_parse(&image_visibility_words, word) : (int)image->visibility;
    if (visibility >= 0)
        image->visibility = (enum image_visibility)visibility;
    else
        fettle_set_error(error, WRONG_INPUT, "visibility: must be private or public, not \"%s\"",
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
    for (guint i = 0; i < args->properties->len; i++)
        if (!set_property(image->properties, args->properties->pdata[i], error))
            return NULL;
    if (!set_visibility(image, args->visibility, error))
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
