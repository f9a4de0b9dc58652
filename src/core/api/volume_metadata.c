/* What else is said of volumes and snapshots: …/metadata. */
#include <string.h>

#include "core/api/volume_common.h"

/* What the path is about; of that its words and how they are changed. */
static enum resource_type type_of(const struct api_call *call)
{
    return strstr(call->route->path, "/snapshots/") ? RESOURCE_SNAPSHOT : RESOURCE_VOLUME;
}

static const GPtrArray *words_of(struct api_call *call, GError **error)
{
    const void *record = block_found(call, type_of(call), error);
    return !record                              ? NULL
           : type_of(call) == RESOURCE_SNAPSHOT ? ((const struct snapshot *)record)->metadata
                                                : ((const struct volume *)record)->metadata;
}

/* Both lists are stolen. */
static bool change_words(struct api_call *call, GPtrArray *set, GPtrArray *drop, bool only,
                         GError **error)
{
    if (type_of(call) == RESOURCE_SNAPSHOT) {
        struct change_snapshot_args *args = change_snapshot_args_new();
        text_set(&args->snapshot, api_var(call, "id"));
        block_set_words(&args->metadata, set);
        block_set_words(&args->drop_metadata, drop);
        args->only_metadata = only;
        return block_change(call, "change_snapshot", &change_snapshot_args_record, args,
                            &args->commit_id, error);
    }
    struct change_volume_args *args = change_volume_args_new();
    text_set(&args->volume, api_var(call, "id"));
    block_set_words(&args->metadata, set);
    block_set_words(&args->drop_metadata, drop);
    args->only_metadata = only;
    return block_change(call, "change_volume", &change_volume_args_record, args, &args->commit_id,
                        error);
}

static struct http_answer *answer_words(struct api_call *call, GError **error)
{
    const GPtrArray *words = words_of(call, error);
    return words ? api_answer(call, json_make("{s:o}", "metadata", block_metadata(words))) : NULL;
}

static struct http_answer *set_words(struct api_call *call, bool only, GError **error)
{
    const struct metadata_body *body = call->body;
    GPtrArray *words = words_of(call, error) ? api_words(body->metadata, "metadata", error) : NULL;
    if (!words)
        return NULL;
    if (!words->len && !only) {
        g_ptr_array_unref(words);
        return answer_words(call, error);
    }
    return change_words(call, words, g_ptr_array_new(), only, error) ? answer_words(call, error)
                                                                     : NULL;
}

static struct http_answer *set_one(struct api_call *call, GError **error)
{
    const struct meta_body *body = call->body;
    const char *key = api_var(call, "key");
    if (!words_of(call, error))
        return NULL;
    if (json_object_size(body->meta) != 1 || !json_object_get(body->meta, key))
        return api_refuse(
            call, 400, "meta: must be an object with the key of the path, %s, and no other", key);
    GPtrArray *words = api_words(body->meta, "meta", error);
    if (!words || !change_words(call, words, g_ptr_array_new(), false, error))
        return NULL;
    return api_answer(call, json_make("{s:O}", "meta", body->meta));
}

/* NULL: it says nothing by the key of the path; an answer, or an error. */
static const char *find_one(struct api_call *call, struct http_answer **ret_none, GError **error)
{
    const GPtrArray *words = words_of(call, error);
    const char *key = api_var(call, "key");
    const char *value = words ? block_word(words, key) : NULL;
    *ret_none = NULL;
    if (words && !value)
        *ret_none =
            api_refuse(call, 404, "%s %s has no metadata with key %s.",
                       enum_word(&resource_type_words, (int)type_of(call)), call->resource, key);
    return value;
}

static struct http_answer *show_one(struct api_call *call, GError **error)
{
    struct http_answer *none;
    const char *value = find_one(call, &none, error);
    return value ? api_answer(call, json_make("{s:{s:s}}", "meta", api_var(call, "key"), value))
                 : none;
}

static struct http_answer *delete_one(struct api_call *call, GError **error)
{
    struct http_answer *none;
    if (!find_one(call, &none, error))
        return none;
    GPtrArray *drop = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(drop, g_strdup(api_var(call, "key")));
    return change_words(call, g_ptr_array_new(), drop, false, error) ? api_answer(call, NULL)
                                                                     : NULL;
}

struct http_answer *api_volume_metadata_list(struct api_call *call, GError **error)
{
    return answer_words(call, error);
}

struct http_answer *api_volume_metadata_add(struct api_call *call, GError **error)
{
    return set_words(call, false, error);
}

struct http_answer *api_volume_metadata_replace(struct api_call *call, GError **error)
{
    return set_words(call, true, error);
}

struct http_answer *api_volume_metadata_show(struct api_call *call, GError **error)
{
    return show_one(call, error);
}

struct http_answer *api_volume_metadata_set(struct api_call *call, GError **error)
{
    return set_one(call, error);
}

struct http_answer *api_volume_metadata_delete(struct api_call *call, GError **error)
{
    return delete_one(call, error);
}

struct http_answer *api_snapshot_metadata_list(struct api_call *call, GError **error)
{
    return answer_words(call, error);
}

struct http_answer *api_snapshot_metadata_add(struct api_call *call, GError **error)
{
    return set_words(call, false, error);
}

struct http_answer *api_snapshot_metadata_replace(struct api_call *call, GError **error)
{
    return set_words(call, true, error);
}

struct http_answer *api_snapshot_metadata_show(struct api_call *call, GError **error)
{
    return show_one(call, error);
}

struct http_answer *api_snapshot_metadata_set(struct api_call *call, GError **error)
{
    return set_one(call, error);
}

struct http_answer *api_snapshot_metadata_delete(struct api_call *call, GError **error)
{
    return delete_one(call, error);
}
