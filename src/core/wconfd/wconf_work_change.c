/*
 * What is said of volumes, snapshots and backups and needs no work: names, descriptions, metadata.
 * It is changed on the head, so of two that change it at once neither undoes the other. See
 * wconf_work_private.h.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* --- of one that is made --- */

static void say_all(json_t *object, const char *field, const GPtrArray *words)
{
    json_t *list = json_array();
    for (guint i = 0; i < words->len; i++)
        json_array_append_new(list, json_string(words->pdata[i]));
    json_object_set_new(object, field, list);
}

void wconf_work_say(const struct accept_work_args *args, enum resource_type type,
                    const struct resource *source, struct change *change)
{
    if (type == RESOURCE_IMAGE)
        return;
    json_object_set_new(change->object, "user", json_string(args->user));
    say_all(change->object, "metadata", args->metadata);
    if (type != RESOURCE_VOLUME)
        return;
    say_all(change->object, "image_metadata", args->image_metadata);
    json_object_set_new(change->object, "bootable", json_boolean(args->bootable));
    if (source && (source->type == RESOURCE_SNAPSHOT || source->type == RESOURCE_VOLUME))
        json_object_set_new(change->object,
                            source->type == RESOURCE_VOLUME ? "from_volume" : "from_snapshot",
                            json_string(source->uuid));
}

/* --- of one that there is --- */

/* What all three methods have. */
struct words {
    enum resource_type type;
    const char *commit_id, *resource;
    const char *name, *description;
    bool unique_name, no_name, no_description;
    const GPtrArray *metadata, *drop_metadata;
    bool only_metadata;
    const struct change_volume_args *volume; /* NULL: it is about none */
};

static bool is_of_key(const char *word, const char *key)
{
    size_t length = strcspn(key, "=");
    return strcspn(word, "=") == length && !strncmp(word, key, length);
}

static json_t *without(const json_t *list, const char *key)
{
    json_t *left = json_array(), *word;
    size_t i;
    json_array_foreach(list, i, word)
        if (!is_of_key(json_string_value(word), key))
            json_array_append(left, word);
    return left;
}

/* FALSE: there would be too much. */
static bool set_words(json_t *object, const char *field, const GPtrArray *set,
                      const GPtrArray *drop, bool only, GError **error)
{
    json_t *list = only ? json_array() : json_deep_copy(json_object_get(object, field));
    if (!list)
        list = json_array();
    for (guint pass = 0; pass < 2; pass++) {
        const GPtrArray *keys = pass ? set : drop;
        for (guint i = 0; i < keys->len; i++) {
            json_t *left = without(list, keys->pdata[i]);
            json_decref(list);
            list = left;
            if (pass)
                json_array_append_new(list, json_string(keys->pdata[i]));
        }
    }
    bool fits = json_array_size(list) <= LIMIT_METADATA;
    if (!fits)
        fettle_set_error(error, LIMIT, "%s: there would be more than %d keys", field,
                         LIMIT_METADATA);
    json_object_set_new(object, field, list);
    return fits;
}

void wconf_work_unreserve(struct change *change)
{
    json_object_set_new(change->object, "reserved", json_string(""));
    json_object_set_new(change->object, "reserved_for", json_string(""));
}

/* For one client at a time, and of what is nobody's. */
static bool may_reserve(const struct config *head, const char *uuid, GError **error)
{
    const struct volume *volume = config_get(head, "volume", uuid, NULL);
    if (!attachment_need_none(head, volume, error))
        return false;
    if (volume->status == VOLUME_AVAILABLE)
        return true;
    fettle_set_error(error, WRONG_STATE, "volume %s is %s; only an available one can be reserved",
                     config_volume_name(volume), attachment_status_word(volume));
    return false;
}

static bool set_reserved(const struct config *head, const char *uuid, struct change *put,
                         const struct change_volume_args *args, GError **error)
{
    if (args && args->unreserve)
        wconf_work_unreserve(put);
    if (!args || !*args->reserve)
        return true;
    json_object_set_new(put->object, "reserved", json_string(args->reserve));
    json_object_set_new(put->object, "reserved_for", json_string(args->reserve_for));
    return may_reserve(head, uuid, error);
}

static bool set_of_volume(json_t *object, const struct change_volume_args *args, GError **error)
{
    if (args && args->bootable >= 0)
        json_object_set_new(object, "bootable", json_boolean(args->bootable > 0));
    return !args || set_words(object, "image_metadata", args->image_metadata,
                              args->drop_image_metadata, false, error);
}

static bool says_anything(const struct words *words)
{
    const struct change_volume_args *volume = words->volume;
    return *words->name || *words->description || words->no_name || words->no_description ||
           words->metadata->len || words->drop_metadata->len || words->only_metadata ||
           (volume && (volume->bootable >= 0 || *volume->reserve || volume->unreserve ||
                       volume->image_metadata->len || volume->drop_image_metadata->len));
}

/* What is empty stays as it is. */
static void change(struct wconf *wconf, struct rpc_request *request, const struct words *words)
{
    GError *error = NULL;
    if (wconf_answer_repeated(wconf, words->commit_id, request))
        return;
    struct resource resource = resource_find(wconf->head, words->type, words->resource, &error);
    if (resource.exists && !says_anything(words))
        fettle_set_error(&error, WRONG_INPUT, "name, description: nothing is to change");
    if (error ||
        !wconf_work_name_fits(wconf->head, &resource, words->name, words->unique_name, &error)) {
        wconf_work_refuse(wconf, request, error);
        return;
    }
    GPtrArray *changes = change_list_new();
    resource.name = words->no_name ? "" : *words->name ? words->name : resource.name;
    resource.description = words->no_description ? ""
                           : *words->description ? words->description
                                                 : resource.description;
    struct change *put = resource_put(wconf->head, &resource);
    g_ptr_array_add(changes, put);
    if (set_words(put->object, "metadata", words->metadata, words->drop_metadata,
                  words->only_metadata, &error) &&
        set_of_volume(put->object, words->volume, &error) &&
        set_reserved(wconf->head, resource.uuid, put, words->volume, &error)) {
        wconf_work_commit(wconf, request, words->commit_id, changes, NULL);
        return;
    }
    g_ptr_array_unref(changes);
    wconf_work_refuse(wconf, request, error);
}

#define WORDS_OF(args, kind, resource_type)                                                        \
    {                                                                                              \
        .type = resource_type, .commit_id = args->commit_id, .resource = args->kind,               \
        .name = args->name, .description = args->description, .unique_name = args->unique_name,    \
        .no_name = args->no_name, .no_description = args->no_description,                          \
        .metadata = args->metadata, .drop_metadata = args->drop_metadata,                          \
        .only_metadata = args->only_metadata                                                       \
    }

void wconf_handle_change_volume(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change_volume_args) args =
        rpc_request_args(request, &change_volume_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    struct words words = WORDS_OF(args, volume, RESOURCE_VOLUME);
    words.volume = args;
    change(wconf, request, &words);
}

void wconf_handle_change_snapshot(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change_snapshot_args) args =
        rpc_request_args(request, &change_snapshot_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    const struct words words = WORDS_OF(args, snapshot, RESOURCE_SNAPSHOT);
    change(wconf, request, &words);
}

void wconf_handle_change_backup(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change_backup_args) args =
        rpc_request_args(request, &change_backup_args_record, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    const struct words words = WORDS_OF(args, backup, RESOURCE_BACKUP);
    change(wconf, request, &words);
}
