/*
 * The configuration in memory; see model.h. Per kind a hash from key to object and, where the kind
 * has unique names, a hash from name to objects; what else is asked for often is found through the
 * indexes of model_index.c. Objects are immutable and counted, so that two configurations which
 * differ in a few objects share the rest.
 */
#include "core/config/model_private.h"

#include <string.h>

#include "proto/change.h"
#include "proto/digest.h"
#include "proto/reader.h"

struct kind {
    const struct record *record;
    const struct field *name; /* unique name, NULL for none */
    GHashTable *by_key;       /* key -> struct config_object */
    GHashTable *by_name;      /* name -> GSList of struct config_object; NULL without names */
    GPtrArray *sorted;        /* made when first asked for, kept in order from then on */
};

struct config {
    guint64 history;
    guint64 serial;
    guint64 digest;    /* of all objects (proto/digest.h) */
    GHashTable *kinds; /* name of kind -> struct kind */
    struct config_indexes indexes;
    GHashTable *names; /* of the instances that it is limited to; NULL: it has all */
};

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

static const char *string_member(const void *value, const struct field *field)
{
    return *(char *const *)((const char *)value + field->offset);
}

/* --- kinds --- */

/* Names are unique in these kinds only: a removed instance's name may be used again. */
static const struct field *unique_name(const struct record *record)
{
    static const char *const named[] = {"cluster", "nodegroup", "network", "node", "instance"};
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
    kind->name = unique_name(record);
    kind->by_key = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, object_unref);
    if (kind->name)
        kind->by_name = index_lists_new();
    return kind;
}

static void kind_free(void *data)
{
    struct kind *kind = data;
    if (kind->by_name) {
        index_lists_clear(kind->by_name);
        g_hash_table_unref(kind->by_name);
    }
    g_hash_table_unref(kind->by_key);
    if (kind->sorted)
        g_ptr_array_unref(kind->sorted);
    g_free(kind);
}

static struct kind *kind_find(const struct config *config, const char *name)
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
    if (kind->name)
        index_lists_change(kind->by_name, string_member(object->value, kind->name), object, add);
}

/* --- the configuration --- */

struct config *config_new(void)
{
    struct config *config = g_new0(struct config, 1);
    config->kinds = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, kind_free);
    config_indexes_init(&config->indexes);
    return config;
}

void config_set_names(struct config *config, GHashTable *names)
{
    g_clear_pointer(&config->names, g_hash_table_unref);
    config->names = names ? g_hash_table_ref(names) : NULL;
}

void config_need_all(const struct config *config, const char *what)
{
    if (config->names)
        g_error("%s: this copy of the configuration has only the instances that the job names",
                what);
}

static const char *instance_itself(const void *value)
{
    return ((const struct instance *)value)->uuid;
}

static const char *instance_of_replica(const void *value)
{
    return ((const struct replica *)value)->instance;
}

static const char *instance_of_tag(const void *value)
{
    const struct tag *tag = value;
    return tag->kind == TAG_INSTANCE ? tag->object : NULL;
}

static const char *instance_removed(const void *value)
{
    return ((const struct removed *)value)->uuid;
}

static const struct {
    const char *kind;
    const char *(*instance)(const void *value);
} parts[] = {
    {"instance", instance_itself},
    {"replica", instance_of_replica},
    {"tag", instance_of_tag},
    {"removed", instance_removed},
};

bool config_is_part(const char *kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (!strcmp(parts[i].kind, kind))
            return true;
    }
    return false;
}

const char *config_instance_of(const char *kind, const void *value)
{
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (!strcmp(parts[i].kind, kind))
            return parts[i].instance(value);
    }
    return NULL;
}

static void need_all_of(const struct config *config, const char *kind)
{
    if (config_is_part(kind))
        config_need_all(config, kind);
}

const struct config_indexes *config_indexes(const struct config *config)
{
    return &config->indexes;
}

void config_free(struct config *config)
{
    if (!config)
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

/* The key that an object of the kind must stand under; NULL: any. */
static char *natural_key(const struct record *record, const void *value)
{
    if (record == &tag_record) {
        const struct tag *tag = value;
        return config_tag_key(tag->kind, tag->object, tag->tag);
    }
    if (record == &job_record)
        return g_strdup_printf("%" G_GUINT64_FORMAT, ((const struct job *)value)->id);
    const struct field *uuid = record_field(record, "uuid");
    return uuid ? g_strdup(string_member(value, uuid)) : NULL;
}

/* Of a parsed value, which it owns from then on. */
static struct config_object *object_make(const struct change *change, const struct record *record,
                                         void *value, GError **error)
{
    g_autofree char *key = natural_key(record, value);
    if (key && strcmp(key, change->key) != 0) {
        fettle_set_error(error, WRONG_INPUT, "%s %s: the object says that its key is %s",
                         change->kind, change->key, key);
        record_free(record, value);
        return NULL;
    }
    struct config_object *object = g_new(struct config_object, 1);
    *object = (struct config_object){1, record, g_strdup(change->key), change->version, value};
    return object;
}

static struct config_object *object_parse(const struct change *change, const struct record *record,
                                          GError **error)
{
    if (!change->object) {
        fettle_set_error(error, WRONG_INPUT, "%s %s: object: is missing in a put", change->kind,
                         change->key);
        return NULL;
    }
    void *value = record_parse(record, change->object, RECORD_KEEP, error);
    if (!value) {
        g_prefix_error(error, "%s %s: ", change->kind, change->key);
        return NULL;
    }
    return object_make(change, record, value, error);
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* Numbers (job ids) by value, everything else by its bytes. */
static int compare_labels(const char *a, const char *b)
{
    if (is_number(a) && is_number(b) && strlen(a) != strlen(b))
        return strlen(a) < strlen(b) ? -1 : 1;
    return strcmp(a, b);
}

static int compare_objects(const void *a, const void *b, void *data)
{
    const struct config_object *one = *(const struct config_object *const *)a;
    const struct config_object *other = *(const struct config_object *const *)b;
    const struct field *name = data;
    if (name) {
        int order =
            compare_labels(string_member(one->value, name), string_member(other->value, name));
        if (order)
            return order;
    }
    return compare_labels(one->key, other->key);
}

/* Where an object stands in the sorted list, or would. */
static guint sorted_place(const struct kind *kind, const struct config_object *object)
{
    const struct field *name = record_field(kind->record, "name");
    guint low = 0, high = kind->sorted->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (compare_objects(&kind->sorted->pdata[middle], &object, (void *)name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Names that are partly numbers ("9", "10", "1a") have no order that a search can rely on: then the
 * list is made anew when it is next asked for. */
static void sorted_remove(struct kind *kind, const struct config_object *object)
{
    guint place = sorted_place(kind, object);
    if (place < kind->sorted->len && kind->sorted->pdata[place] == object)
        g_ptr_array_remove_index(kind->sorted, place);
    else
        g_ptr_array_unref(g_steal_pointer(&kind->sorted));
}

static void kind_drop(struct config *config, struct kind *kind, const char *key)
{
    struct config_object *old = g_hash_table_lookup(kind->by_key, key);
    if (!old)
        return;
    if (kind->sorted)
        sorted_remove(kind, old);
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
    if (kind->sorted)
        g_ptr_array_insert(kind->sorted, (gint)sorted_place(kind, object), object);
    kind_index_name(kind, object, true);
    config_indexes_change(&config->indexes, object, true);
}

bool config_apply(struct config *config, const struct change *change, GError **error)
{
    const struct record *record = object_record(change->kind);
    if (!record) {
        fettle_set_error(error, WRONG_INPUT, "kind: \"%s\" is no kind of object", change->kind);
        return false;
    }
    if (change->op == CHANGE_DELETE) {
        config_set(config, change->kind, change->key, NULL);
        return true;
    }
    struct config_object *object = object_parse(change, record, error);
    if (!object)
        return false;
    config_set(config, change->kind, change->key, object);
    config_object_unref(object);
    return true;
}

void config_load_object(const char *kind, const char *key, guint64 version, json_t *object,
                        void *data)
{
    struct config_loading *loading = data;
    struct change change = {.op = CHANGE_PUT,
                            .kind = (char *)kind,
                            .key = (char *)key,
                            .version = version,
                            .object = object};
    if (!loading->error)
        config_apply(loading->config, &change, &loading->error);
}

bool config_load_text(const char *kind, const char *key, guint64 version, const char *text,
                      void *data)
{
    struct config_loading *loading = data;
    const struct record *record = object_record(kind);
    struct reader reader = {text, text + strlen(text)};
    void *value = record && !loading->error ? record_read(record, &reader) : NULL;
    if (value && reader_is_over(&reader)) {
        struct change change = {
            .op = CHANGE_PUT, .kind = (char *)kind, .key = (char *)key, .version = version};
        struct config_object *object = object_make(&change, record, value, &loading->error);
        if (object)
            config_set(loading->config, kind, key, object);
        config_object_unref(object);
        return true;
    }
    if (value)
        record_free(record, value);
    json_autoptr json = json_parse_limited(text, strlen(text), LIMIT_FRAME_BYTES, NULL);
    if (json)
        config_load_object(kind, key, version, json, data);
    return json != NULL;
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

const void *config_find(const struct config *config, const char *kind_name,
                        const char *name_or_uuid, GError **error)
{
    const struct kind *kind = kind_find(config, kind_name);
    const GSList *named =
        kind && kind->by_name ? g_hash_table_lookup(kind->by_name, name_or_uuid) : NULL;
    if (named)
        return ((const struct config_object *)named->data)->value;
    const struct config_object *object = config_peek(config, kind_name, name_or_uuid);
    if (object)
        return object->value;
    if (config->names && !g_hash_table_contains(config->names, name_or_uuid))
        need_all_of(config, kind_name);
    fettle_set_error(error, UNKNOWN_ENTITY, "%s \"%s\" does not exist", kind_name, name_or_uuid);
    return NULL;
}

guint config_count_name(const struct config *config, const char *kind_name, const char *name)
{
    const struct kind *kind = kind_find(config, kind_name);
    return kind && kind->by_name ? g_slist_length(g_hash_table_lookup(kind->by_name, name)) : 0;
}

static void kind_sort(struct kind *kind)
{
    GHashTableIter iter;
    void *object;
    kind->sorted = g_ptr_array_sized_new(g_hash_table_size(kind->by_key));
    g_hash_table_iter_init(&iter, kind->by_key);
    while (g_hash_table_iter_next(&iter, NULL, &object))
        g_ptr_array_add(kind->sorted, object);
    g_ptr_array_sort_with_data(kind->sorted, compare_objects,
                               (void *)record_field(kind->record, "name"));
}

GPtrArray *config_list(const struct config *config, const char *kind_name)
{
    need_all_of(config, kind_name);
    struct kind *kind = kind_find(config, kind_name);
    if (!kind)
        return g_ptr_array_new();
    if (!kind->sorted)
        kind_sort(kind);
    GPtrArray *list = g_ptr_array_sized_new(kind->sorted->len);
    for (guint i = 0; i < kind->sorted->len; i++)
        g_ptr_array_add(list, ((struct config_object *)kind->sorted->pdata[i])->value);
    return list;
}

guint config_count(const struct config *config, const char *kind_name)
{
    need_all_of(config, kind_name);
    const struct kind *kind = kind_find(config, kind_name);
    return kind ? g_hash_table_size(kind->by_key) : 0;
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

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *sorted_keys(GHashTable *table)
{
    GPtrArray *keys = g_ptr_array_sized_new(g_hash_table_size(table));
    GHashTableIter iter;
    void *key;
    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_ptr_array_add(keys, key);
    g_ptr_array_sort(keys, compare_texts);
    return keys;
}

GPtrArray *config_kinds(const struct config *config)
{
    return sorted_keys(config->kinds);
}

GPtrArray *config_keys(const struct config *config, const char *kind_name)
{
    need_all_of(config, kind_name);
    const struct kind *kind = kind_find(config, kind_name);
    return kind ? sorted_keys(kind->by_key) : g_ptr_array_new();
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
