/* Images as what is said of them: lists, one that is made, shown, deleted; tags; deactivation. */
#include <string.h>

#include "core/api/image_common.h"
#include "core/api/image_fields.h"
#include "proto/env.h"

#define FEW 25 /* in a list, if nobody says how many */

/* --- lists --- */

/* Whether `number` is at least, or at most, what the query says; nothing said: yes. */
static bool is_within(const struct api_call *call, guint64 number, GError **error)
{
    static const char *const names[] = {"size_min", "size_max"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *text = api_query(call, names[i]);
        guint64 bound;
        if (!text)
            continue;
        if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &bound, NULL)) {
            fettle_set_error(error, WRONG_INPUT, "%s: \"%s\" is no number of bytes", names[i],
                             text);
            return false;
        }
        if (i == 0 ? number < bound : number > bound)
            return false;
    }
    return true;
}

static bool is_asked(const char *filter, const char *value)
{
    if (!g_str_has_prefix(filter, "in:"))
        return !strcmp(filter, value);
    g_auto(GStrv) words = g_strsplit(filter + 3, ",", -1);
    return g_strv_contains((const char *const *)words, value);
}

/* Of a member of its view, or of a property. */
static bool fits_one(const json_t *view, const char *key, const char *filter)
{
    const json_t *value = json_object_get(view, key);
    if (json_is_string(value))
        return is_asked(filter, json_string_value(value));
    if (json_is_boolean(value))
        return !g_ascii_strcasecmp(filter, json_is_true(value) ? "true" : "false");
    if (json_is_integer(value)) {
        g_autofree char *text = g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return is_asked(filter, text);
    }
    return false;
}

static bool has_tag(const struct image *image, const char *tag)
{
    return g_ptr_array_find_with_equal_func(image->tags, tag, g_str_equal, NULL);
}

static bool fits_filters(const struct api_call *call, const struct image *image, const json_t *view,
                         GError **error)
{
    static const char *const others[] = {"limit",     "marker",     "sort_key", "sort_dir",
                                         "sort",      "size_min",   "size_max", "member_status",
                                         "os_hidden", "visibility", "tag",      NULL};
    GHashTableIter iter;
    void *key, *filter;
    const char *tag = api_query(call, "tag");
    if ((tag && !has_tag(image, tag)) || !is_within(call, image->size, error))
        return false;
    g_hash_table_iter_init(&iter, call->query);
    while (g_hash_table_iter_next(&iter, &key, &filter))
        if (!g_strv_contains(others, key) && !fits_one(view, key, filter))
            return false;
    return true;
}

/* Which of those that may be seen a list shows: others' of a community are not forced upon
 * anybody, nor what is shared and was not accepted. */
static bool is_shown(const struct api_call *call, const struct image *image)
{
    const char *visibility = api_query(call, "visibility");
    const char *taken = image_member_status(image, call->token->project_id);
    const char *wanted = api_query(call, "member_status");
    bool hidden = false;
    api_query_bool(call, "os_hidden", false, &hidden, NULL);
    if (image->hidden != hidden || image->status == IMAGE_DELETING)
        return false;
    if (visibility && strcmp(visibility, "all") != 0 &&
        strcmp(visibility, enum_word(&image_visibility_words, (int)image->visibility)) != 0)
        return false;
    if (image_is_own(call, image) || image->visibility == IMAGE_PUBLIC)
        return true;
    if (image->visibility == IMAGE_COMMUNITY)
        return visibility != NULL;
    if (!taken)
        return false;
    wanted = wanted ? wanted : "accepted";
    return !strcmp(wanted, "all") || !strcmp(wanted, taken);
}

struct order {
    const char *keys[8];
    bool descends[8];
    guint count;
};

static int compare_values(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) || json_is_integer(b)) {
        json_int_t one = json_integer_value(a), other = json_integer_value(b);
        return one < other ? -1 : one > other;
    }
    return g_strcmp0(json_string_value(a), json_string_value(b));
}

static int compare(const void *a, const void *b, void *data)
{
    const json_t *one = *(json_t *const *)a, *other = *(json_t *const *)b;
    const struct order *order = data;
    for (guint i = 0; i < order->count; i++) {
        int verdict = compare_values(json_object_get(one, order->keys[i]),
                                     json_object_get(other, order->keys[i]));
        if (verdict)
            return order->descends[i] ? -verdict : verdict;
    }
    return 0;
}

static bool add_key(struct order *order, const char *key, const char *direction, GError **error)
{
    static const char *const known[] = {"name",        "status",     "container_format",
                                        "disk_format", "size",       "id",
                                        "created_at",  "updated_at", NULL};
    if (!g_strv_contains(known, key) || order->count == G_N_ELEMENTS(order->keys)) {
        fettle_set_error(error, WRONG_INPUT, "Invalid sort key provided: %s", key);
        return false;
    }
    if (strcmp(direction, "asc") != 0 && strcmp(direction, "desc") != 0) {
        fettle_set_error(error, WRONG_INPUT, "Invalid sort direction: %s", direction);
        return false;
    }
    order->keys[order->count] = key;
    order->descends[order->count++] = direction[0] == 'd';
    return true;
}

/* `sort=name:asc,status`, or `sort_key` with `sort_dir`; newest first otherwise. `words` keeps the
 * texts. */
static bool read_order(const struct api_call *call, char ***words, struct order *order,
                       GError **error)
{
    const char *sort = api_query(call, "sort"), *key = api_query(call, "sort_key");
    const char *direction = api_query(call, "sort_dir");
    *order = (struct order){0};
    *words = g_strsplit(sort ? sort : "", ",", -1);
    for (char **word = *words; *word; word++) {
        char *colon = strchr(*word, ':');
        if (colon)
            *colon++ = '\0';
        if (!add_key(order, *word, colon ? colon : "desc", error))
            return false;
    }
    if (order->count == 0 &&
        !add_key(order, key ? key : "created_at", direction ? direction : "desc", error))
        return false;
    return add_key(order, "id", order->descends[0] ? "desc" : "asc", error);
}

static GPtrArray *gather(struct api_call *call, const struct config *config, GError **error)
{
    g_autoptr(GPtrArray) all = config_list(config, "image");
    g_autoptr(GPtrArray) views = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    for (guint i = 0; i < all->len; i++) {
        const struct image *image = all->pdata[i];
        g_autoptr(GError) local = NULL;
        json_autoptr view = is_shown(call, image) ? image_view(image) : NULL;
        if (view && fits_filters(call, image, view, &local))
            g_ptr_array_add(views, json_incref(view));
        if (local) {
            g_propagate_error(error, g_steal_pointer(&local));
            return NULL;
        }
    }
    return g_steal_pointer(&views);
}

/* Paths as Glance gives them, without the prefix that all of the service has. */
static const char *without_prefix(const char *path)
{
    return path + 1 + strlen(api_service_name(API_IMAGE));
}

struct http_answer *api_images_list(struct api_call *call, GError **error)
{
    const struct config *config = api_config(call, error);
    bool hidden;
    if (!config || !api_no_times(call, error) ||
        !api_query_bool(call, "os_hidden", false, &hidden, error))
        return NULL;
    g_autoptr(GPtrArray) views = gather(call, config, error);
    g_auto(GStrv) words = NULL;
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    struct api_page page;
    struct order order;
    if (!views || !read_order(call, &words, &order, error))
        return NULL;
    g_ptr_array_sort_with_data(views, compare, &order);
    for (guint i = 0; i < views->len; i++)
        g_ptr_array_add(ids, (char *)json_string_value(json_object_get(views->pdata[i], "id")));
    if (!api_query(call, "limit")) {
        g_autofree char *few = g_strdup_printf("%d", FEW);
        g_hash_table_replace(call->query, g_strdup("limit"), g_steal_pointer(&few));
    }
    if (!api_page(call, ids, &page, error))
        return NULL;
    json_t *list = json_array();
    for (guint i = page.from; i < page.until; i++)
        json_array_append(list, views->pdata[i]);
    json_t *json = json_make("{s:o, s:s, s:s}", "images", list, "first", "/v2/images", "schema",
                             "/v2/schemas/images");
    if (page.next)
        json_object_set_new(json, "next", json_string(without_prefix(page.next)));
    api_page_clear(&page);
    return api_answer(call, json);
}

/* --- one --- */

struct http_answer *api_image_show(struct api_call *call, GError **error)
{
    const struct image *image = image_found(call, error);
    return image ? api_answer(call, image_view(image)) : NULL;
}

static bool is_uuid(const char *text)
{
    return g_uuid_string_is_valid(text);
}

/* Of a body whose keys are fields or properties. */
static bool read_body(struct api_call *call, struct add_image_args *args, GError **error)
{
    const char *key;
    json_t *value;
    if (!call->json) {
        fettle_set_error(error, WRONG_INPUT, "the body must be an object");
        return false;
    }
    json_object_foreach(call->json, key, value) {
        if (!strcmp(key, "id")) {
            if (!json_is_string(value) || !is_uuid(json_string_value(value))) {
                fettle_set_error(error, WRONG_INPUT, "id: must be a UUID");
                return false;
            }
            g_free(args->commit_id);
            args->commit_id = g_ascii_strdown(json_string_value(value), -1);
        } else if (!image_field_add(args, key, value, error))
            return false;
    }
    return true;
}

struct http_answer *api_image_create(struct api_call *call, GError **error)
{
    record_autoptr(add_image_args) args = add_image_args_new();
    const struct config *config = api_config(call, error);
    g_free(args->commit_id);
    args->commit_id = env_uuid(call->api->env);
    text_set(&args->project, call->token->project_id);
    args->visibility = IMAGE_SHARED; /* as Glance has it */
    if (!config || !read_body(call, args, error))
        return NULL;
    if (config_get(config, "image", args->commit_id, NULL))
        return api_refuse(call, 409, "Image ID %s already exists!", args->commit_id);
    if (args->visibility == IMAGE_PUBLIC && !api_is_admin(call))
        return api_refuse(call, 403, "only an administrator makes an image public");
    record_autoptr(commit_result) result = cell_call(call->api->cell, "add_image", args, error);
    if (!result)
        return NULL;
    config = cell_config(call->api->cell);
    const struct image *image = config_get(config, "image", args->commit_id, NULL);
    if (!image) { /* the copy has not got so far */
        fettle_set_error(error, UNKNOWN_RESULT,
                         "image %s is made, and not to be seen here yet; look for it before you "
                         "ask again",
                         args->commit_id);
        return NULL;
    }
    text_set(&call->resource, image->uuid);
    struct http_answer *answer = api_answer(call, image_view(image));
    g_autofree char *place =
        g_strdup_printf("%s/%s/v2/images/%s", call->base, api_service_name(API_IMAGE), image->uuid);
    http_answer_add_header(answer, "Location", place);
    return answer;
}

struct http_answer *api_image_delete(struct api_call *call, GError **error)
{
    const struct image *image = image_owned(call, error);
    if (!image)
        return NULL;
    if (image->protected)
        return api_refuse(call, 403, "Image %s is protected and cannot be deleted.", image->uuid);
    record_autoptr(accepted_work) accepted =
        image_work(call, TASK_OPERATION_DELETE_IMAGE, image->uuid, 0, error);
    return accepted ? api_answer(call, NULL) : NULL;
}

/* --- tags, deactivation --- */

static struct http_answer *change_tag(struct api_call *call, bool add, GError **error)
{
    const struct image *image = image_owned(call, error);
    const char *tag = api_var(call, "tag");
    if (!image)
        return NULL;
    if (g_utf8_strlen(tag, -1) > 255)
        return api_refuse(call, 400, "a tag has 255 letters at most");
    if (!add && !has_tag(image, tag))
        return api_refuse(call, 404, "Image %s has no tag %s", image->uuid, tag);
    struct change_image_args *args = image_change_new(call);
    g_ptr_array_add(add ? args->add_tags : args->remove_tags, g_strdup(tag));
    return image_change(call, args, error) ? api_answer(call, NULL) : NULL;
}

struct http_answer *api_image_tag_add(struct api_call *call, GError **error)
{
    return change_tag(call, true, error);
}

struct http_answer *api_image_tag_remove(struct api_call *call, GError **error)
{
    return change_tag(call, false, error);
}

static struct http_answer *set_deactivated(struct api_call *call, bool deactivated, GError **error)
{
    const struct image *image = image_owned(call, error);
    if (!image)
        return NULL;
    if (image->status != IMAGE_ACTIVE)
        return api_refuse(call, 403, "image %s is %s; only an active one is %s", image->uuid,
                          image_status_shown(image), deactivated ? "deactivated" : "reactivated");
    struct change_image_args *args = image_change_new(call);
    args->deactivated = deactivated;
    return image_change(call, args, error) ? api_answer(call, NULL) : NULL;
}

struct http_answer *api_image_deactivate(struct api_call *call, GError **error)
{
    return set_deactivated(call, true, error);
}

struct http_answer *api_image_reactivate(struct api_call *call, GError **error)
{
    return set_deactivated(call, false, error);
}
