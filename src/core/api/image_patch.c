/* PATCH of an image: openstack-images-v2.1-json-patch, operations on its members one by one. */
#include <string.h>

#include "core/api/image_common.h"
#include "core/api/image_fields.h"

#define PATCH_TYPE "application/openstack-images-v2.1-json-patch"
#define OLD_PATCH_TYPE "application/openstack-images-v2.0-json-patch"
#define MOST_OPERATIONS 256

/* "/owner_specified.shade~1md5" -> its key; NULL: it is none of one member. */
static char *key_of(const char *path)
{
    if (!path || path[0] != '/' || !path[1] || strchr(path + 1, '/'))
        return NULL;
    g_auto(GStrv) slashes = g_strsplit(path + 1, "~1", -1);
    g_autofree char *joined = g_strjoinv("/", slashes);
    g_auto(GStrv) tildes = g_strsplit(joined, "~0", -1);
    return g_strjoinv("~", tildes);
}

static bool has_it(const struct image *image, const struct change_image_args *args, const char *key)
{
    g_autofree char *prefix = g_strconcat(key, "=", NULL);
    if (image_is_base(key))
        return strcmp(key, "description") != 0 || *image->description;
    for (guint i = 0; i < args->properties->len; i++) /* by an operation before this one */
        if (g_str_has_prefix(args->properties->pdata[i], prefix))
            return true;
    return image_property(image, key) &&
           !g_ptr_array_find_with_equal_func(args->remove_properties, key, g_str_equal, NULL);
}

/* As 2.1 says it: {"op": "add", "path": "/name", …}; or 2.0: {"add": "/name", …}. */
static const char *op_of(const json_t *operation, const char **ret_path)
{
    static const char *const ops[] = {"add", "replace", "remove"};
    const char *op = json_string_value(json_object_get(operation, "op"));
    *ret_path = json_string_value(json_object_get(operation, "path"));
    for (guint i = 0; i < G_N_ELEMENTS(ops) && !op; i++) {
        *ret_path = json_string_value(json_object_get(operation, ops[i]));
        op = *ret_path ? ops[i] : NULL;
    }
    return op;
}

/* An answer: it is refused; NULL without an error: it is done. */
static struct http_answer *do_one(struct api_call *call, const struct image *image,
                                  const json_t *operation, struct change_image_args *args,
                                  GError **error)
{
    const char *path, *op = op_of(operation, &path);
    const json_t *value = json_object_get(operation, "value");
    g_autofree char *key = key_of(path);
    bool removes = !g_strcmp0(op, "remove"), replaces = !g_strcmp0(op, "replace");
    if (!op || (!removes && !replaces && strcmp(op, "add") != 0))
        return api_refuse(call, 400, "op: must be add, replace or remove");
    if (!key)
        return api_refuse(call, 400, "path: \"%s\" is not that of one member", path ? path : "");
    if (!removes && !value)
        return api_refuse(call, 400, "Operation \"%s\" requires a member named \"value\".", op);
    if (!strcmp(key, "locations"))
        return api_refuse(call, 403,
                          "It's not allowed to change locations: bytes come by PUT of "
                          "the file alone");
    if ((removes || replaces) && !has_it(image, args, key))
        return api_refuse(call, 409, "Property %s does not exist.", key);
    image_field_change(args, image, key, removes ? NULL : value, error);
    return NULL;
}

static struct http_answer *do_all(struct api_call *call, const struct image *image,
                                  const json_t *patch, struct change_image_args *args,
                                  GError **error)
{
    for (size_t i = 0; i < json_array_size(patch); i++) {
        g_autoptr(GError) local = NULL;
        struct http_answer *answer = do_one(call, image, json_array_get(patch, i), args, &local);
        if (answer || local) {
            if (local)
                g_propagate_error(error, g_steal_pointer(&local));
            return answer;
        }
    }
    if (!g_strcmp0(args->visibility, "public") && image->visibility != IMAGE_PUBLIC &&
        !api_is_admin(call))
        return api_refuse(call, 403, "only an administrator makes an image public");
    return NULL;
}

/* NULL with the error, or with an answer. */
static json_t *read_patch(const struct api_call *call, struct http_answer **ret_answer,
                          GError **error)
{
    const struct http_request *request = call->request;
    const char *type = http_request_header(request, "content-type");
    g_autofree char *bare = g_strndup(type, strcspn(type, "; "));
    if (strcmp(bare, PATCH_TYPE) != 0 && strcmp(bare, OLD_PATCH_TYPE) != 0) {
        *ret_answer = api_refuse(call, 415, "Content-Type must be " PATCH_TYPE);
        http_answer_add_header(*ret_answer, "Accept-Patch", PATCH_TYPE);
        return NULL;
    }
    json_t *patch = json_parse_limited(request->body, request->body_len, request->body_len, error);
    if (!patch || (json_is_array(patch) && json_array_size(patch) <= MOST_OPERATIONS))
        return patch;
    json_decref(patch);
    fettle_set_error(error, WRONG_INPUT, "the body must be a list of at most %d operations",
                     MOST_OPERATIONS);
    return NULL;
}

struct http_answer *api_image_patch(struct api_call *call, GError **error)
{
    const struct image *image = image_owned(call, error);
    struct http_answer *answer = NULL;
    json_autoptr patch = image ? read_patch(call, &answer, error) : NULL;
    if (!patch)
        return answer;
    g_autoptr(GError) local = NULL;
    struct change_image_args *args = image_change_new(call);
    answer = do_all(call, image, patch, args, &local);
    if (answer || local) {
        change_image_args_free(args);
        if (local)
            g_propagate_error(error, g_steal_pointer(&local));
        return answer;
    }
    if (!image_change(call, args, error))
        return NULL;
    image = image_found(call, error);
    return image ? api_answer(call, image_view(image)) : NULL;
}
