/*
 * The configuration in memory; see model.h. Per kind a hash from key to object and, where the kind
 * has unique names, a hash from name to objects; what else is asked for often is found through the
 * indexes of model_index.h. Objects are immutable and counted, so that two configurations which
 * differ in a few objects share the rest.
 */
#include "core/config/model_private.h"

#include <string.h>

#include "proto/change.h"
#include "proto/digest.h"

#define NAMED_SHOWN 8u /* of those that have one name */

/* --- objects --- */

struct config_object *config_object_ref(struct config_object *object)
{
    object->refs++;
    return object;
}

void config_object_unref(struct config_object *object)
{
    if (!object || --object->refs > 0)
        return;
    record_free(object->record, object->value);
    g_free(object->key);
    g_free(object);
}

const void *config_object_value(const struct config_object *object)
{
    return object->value;
}

static void object_unref(void *data)
{
    config_object_unref(data);
}

/* --- kinds --- */

/* What is found by its name: not by that of a removed instance, which may be used again. */
static const struct field *name_field(const struct record *record)
{
    static const char *const named[] = {
        "cluster",  "nodegroup", "network", "node",        "instance",  "backend", "volume",
        "snapshot", "backup",    "image",   "volume_type", "rapi_user", "webhook"};
    for (guint i = 0; i < G_N_ELEMENTS(named); i++) {
        if (strcmp(record->name, named[i]) == 0)
            return record_field(record, "name");
    }
    return NULL;
}

static struct kind *kind_new(const struct record *record)
{
    struct kind *kind = g_new0(struct kind, 1);
    kind->record = record;
    kind->name = name_field(record);
    kind->by_key = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, object_unref);
    if (kind->name)
        kind->by_name = index_lists_new();
    return kind;
}

static void kind_free(void *data)
{
    struct kind *kind = data;
    if (kind->by_name)
        g_hash_table_unref(kind->by_name);
    g_hash_table_unref(kind->by_key);
    if (kind->sorted)
        g_ptr_array_unref(kind->sorted);
    g_free(kind);
}

struct kind *kind_find(const struct config *config, const char *name)
{
    return g_hash_table_lookup(config->kinds, name);
}

static struct kind *kind_need(struct config *config, const struct record *record)
{
    struct kind *kind = kind_find(config, record->name);
    if (!kind) {
        kind = kind_new(record);
        g_hash_table_insert(config->kinds, (char *)record->name, kind);
    }
    return kind;
}

static void kind_index_name(struct kind *kind, struct config_object *object, bool add)
{
    const char *name = kind->name ? string_member(object->value, kind->name) : "";
    if (*name)
        index_lists_change(kind->by_name, name, object, add);
}

/* --- the configuration --- */

struct config *config_new(void)
{
    struct config *config = g_new0(struct config, 1);
    config->holders = 1;
    config->kinds = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, kind_free);
    config_indexes_init(&config->indexes);
    return config;
}

struct config *config_hold(struct config *config)
{
    config->holders++;
    return config;
}

void config_free(struct config *config)
{
    if (!config || --config->holders > 0)
        return;
    config_indexes_free(&config->indexes);
    config_set_names(config, NULL);
    g_hash_table_unref(config->kinds);
    g_free(config);
}

void config_reset(struct config *config)
{
    config_indexes_clear(&config->indexes);
    g_hash_table_remove_all(config->kinds);
    config->history = 0;
    config->serial = 0;
    config->digest = 0;
}

guint64 config_history(const struct config *config)
{
    return config->history;
}

guint64 config_serial(const struct config *config)
{
    return config->serial;
}

guint64 config_digest(const struct config *config)
{
    return config->digest;
}

void config_set_position(struct config *config, guint64 history, guint64 serial)
{
    config->history = history;
    config->serial = serial;
}

/* --- changing --- */

static void kind_drop(struct config *config, struct kind *kind, const char *key)
{
    struct config_object *old = g_hash_table_lookup(kind->by_key, key);
    if (!old)
        return;
    kind_sorted_remove(kind, old);
    kind_index_name(kind, old, false);
    config_indexes_change(&config->indexes, old, false);
    config->digest ^= digest_object(kind->record->name, old->key, old->version);
    g_hash_table_remove(kind->by_key, key);
}

void config_set(struct config *config, const char *kind_name, const char *key,
                struct config_object *object)
{
    const struct record *record = object_record(kind_name);
    g_assert(record && (!object || object->record == record));
    struct kind *kind = kind_need(config, record);
    if (object)
        config_object_ref(object);
    kind_drop(config, kind, key);
    if (!object)
        return;
    config->digest ^= digest_object(kind_name, object->key, object->version);
    g_hash_table_insert(kind->by_key, object->key, object);
    kind_sorted_add(kind, object);
    kind_index_name(kind, object, true);
    config_indexes_change(&config->indexes, object, true);
}

void config_share(const struct config *from, struct config *to)
{
    g_autoptr(GPtrArray) kinds = config_kinds(from);
    for (guint k = 0; k < kinds->len; k++) {
        GHashTableIter iter;
        void *key, *object;
        g_hash_table_iter_init(&iter, kind_find(from, kinds->pdata[k])->by_key);
        while (g_hash_table_iter_next(&iter, &key, &object))
            config_set(to, kinds->pdata[k], key, object);
    }
}

/* --- reading --- */

struct config_object *config_peek(const struct config *config, const char *kind_name,
                                  const char *key)
{
    const struct kind *kind = kind_find(config, kind_name);
    return kind && key ? g_hash_table_lookup(kind->by_key, key) : NULL;
}

const void *config_get(const struct config *config, const char *kind_name, const char *key,
                       guint64 *ret_version)
{
    const struct config_object *object = config_peek(config, kind_name, key);
    if (ret_version)
        *ret_version = object ? object->version : 0;
    return object ? object->value : NULL;
}

GPtrArray *config_find_all(const struct config *config, const char *kind_name,
                           const char *name_or_uuid)
{
    const struct kind *kind = kind_find(config, kind_name);
    const struct config_object *object = config_peek(config, kind_name, name_or_uuid);
    GSList *named = kind && kind->by_name ? g_hash_table_lookup(kind->by_name, name_or_uuid) : NULL;
    GPtrArray *found = g_ptr_array_new();
    if (object)
        g_ptr_array_add(found, object->value);
    for (; named; named = named->next)
        if (named->data != object)
            g_ptr_array_add(found, ((const struct config_object *)named->data)->value);
    return found;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *config_keys_of_name(const struct config *config, const char *kind_name, const char *name,
                          const char *but)
{
    const struct kind *kind = kind_find(config, kind_name);
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    GSList *named = kind && kind->by_name ? g_hash_table_lookup(kind->by_name, name) : NULL;
    for (; named; named = named->next) {
        const struct config_object *object = named->data;
        if (strcmp(object->key, but) != 0)
            g_ptr_array_add(keys, object->key);
    }
    guint more = keys->len > NAMED_SHOWN ? keys->len - NAMED_SHOWN : 0;
    g_ptr_array_sort(keys, compare_texts);
    g_ptr_array_set_size(keys, (gint)(keys->len - more));
    g_ptr_array_add(keys, NULL);
    g_autofree char *shown = g_strjoinv(", ", (char **)keys->pdata);
    return more ? g_strdup_printf("%s and %u more", shown, more) : g_steal_pointer(&shown);
}

const void *config_find(const struct config *config, const char *kind_name,
                        const char *name_or_uuid, GError **error)
{
    const struct kind *kind = kind_find(config, kind_name);
    GSList *named = kind && kind->by_name ? g_hash_table_lookup(kind->by_name, name_or_uuid) : NULL;
    /* The UUID first: somebody may give his volume a name that is another's. */
    const struct config_object *object = config_peek(config, kind_name, name_or_uuid);
    if (object || (named && !named->next))
        return (object ? object : (const struct config_object *)named->data)->value;
    if (named) {
        g_autofree char *keys = config_keys_of_name(config, kind_name, name_or_uuid, "");
        fettle_set_error(error, WRONG_INPUT, "%s \"%s\" is the name of %u %ss: %s; use a UUID",
                         kind_name, name_or_uuid, g_slist_length(named), kind_name, keys);
        return NULL;
    }
    config_need_kind(config, kind_name);
    if (config->names && !g_hash_table_contains(config->names, name_or_uuid))
        config_need_all_of(config, kind_name);
    fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", kind_name, name_or_uuid);
    return NULL;
}

guint config_count_name(const struct config *config, const char *kind_name, const char *name)
{
    const struct kind *kind = kind_find(config, kind_name);
    return kind && kind->by_name ? g_slist_length(g_hash_table_lookup(kind->by_name, name)) : 0;
}

guint config_count(const struct config *config, const char *kind_name)
{
    config_need_all_of(config, kind_name);
    const struct kind *kind = kind_find(config, kind_name);
    return kind ? g_hash_table_size(kind->by_key) : 0;
}

bool config_has_any(const struct config *config, const char *kind_name)
{
    const struct kind *kind = kind_find(config, kind_name);
    return kind && g_hash_table_size(kind->by_key) > 0;
}

guint config_total(const struct config *config)
{
    GHashTableIter kinds;
    void *value;
    guint total = 0;
    config_need_all(config, "total");
    g_hash_table_iter_init(&kinds, config->kinds);
    while (g_hash_table_iter_next(&kinds, NULL, &value))
        total += g_hash_table_size(((const struct kind *)value)->by_key);
    return total;
}

json_t *config_object_json(const struct config *config, const char *kind_name, const char *key)
{
    const struct config_object *object = config_peek(config, kind_name, key);
    return object ? record_to_json(object->record, object->value) : NULL;
}

void config_each(const struct config *config, config_visit visit, void *data)
{
    GHashTableIter kinds;
    void *name;
    void *value;
    g_hash_table_iter_init(&kinds, config->kinds);
    while (g_hash_table_iter_next(&kinds, &name, &value)) {
        const struct kind *kind = value;
        GHashTableIter objects;
        void *entry;
        g_hash_table_iter_init(&objects, kind->by_key);
        while (g_hash_table_iter_next(&objects, NULL, &entry)) {
            const struct config_object *object = entry;
            visit(name, object->key, object->version, object->value, data);
        }
    }
}

const struct cluster *config_cluster(const struct config *config)
{
    const struct kind *kind = kind_find(config, "cluster");
    if (!kind)
        return NULL;
    GHashTableIter iter;
    void *object;
    g_hash_table_iter_init(&iter, kind->by_key);
    return g_hash_table_iter_next(&iter, NULL, &object)
               ? ((const struct config_object *)object)->value
               : NULL;
}

const struct switches *config_switches(const struct config *config)
{
    return config_get(config, "switches", "switches", NULL);
}

const char *config_node_name(const struct config *config, const char *uuid)
{
    if (!*uuid)
        return "nobody";
    const struct node *node = config_get(config, "node", uuid, NULL);
    return node ? node->name : uuid;
}

/* --- writing --- */

struct change *config_put(const struct config *config, const char *kind, const char *key,
                          json_t *object)
{
    guint64 version = 0;
    config_get(config, kind, key, &version);
    return change_make(CHANGE_PUT, kind, key, version, object);
}

struct change *config_delete(const struct config *config, const char *kind, const char *key)
{
    guint64 version = 0;
    config_get(config, kind, key, &version);
    return change_make(CHANGE_DELETE, kind, key, version, NULL);
}

void config_delete_tags(const struct config *config, enum tag_kind kind, const char *object,
                        GPtrArray *changes)
{
    g_autoptr(GPtrArray) tags = config_tags(config, kind, object);
    for (guint i = 0; i < tags->len; i++) {
        g_autofree char *key = config_tag_key(kind, object, tags->pdata[i]);
        g_ptr_array_add(changes, config_delete(config, "tag", key));
    }
}

void config_delete_rest(const struct config *config, const struct instance *instance,
                        GPtrArray *changes)
{
    struct removed removed = {
        .uuid = instance->uuid, .name = instance->name, .generation = instance->generation + 1};
    g_ptr_array_add(changes,
                    config_put(config, "removed", instance->uuid, removed_to_json(&removed)));
    if (*instance->replica && config_get(config, "replica", instance->replica, NULL))
        g_ptr_array_add(changes, config_delete(config, "replica", instance->replica));
    config_delete_tags(config, TAG_INSTANCE, instance->uuid, changes);
}
