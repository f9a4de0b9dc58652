/* The table of query fields and how a value is taken by it; see query.h. */
#include "core/query/query_rows.h"

#define ROW(resource_, name_, title_, kind_, doc_, ...)                                            \
    {                                                                                              \
        .resource = #resource_, .name = name_, .title = title_, .kind = QUERY_KIND_##kind_,        \
        .doc = doc_, __VA_ARGS__                                                                   \
    }

static const struct query_field fields[] = {
#define SOURCE_STATIC false
#define SOURCE_LIVE true
#define MEMBER(resource_, object, name_, title_, kind_, field, doc_)                               \
    ROW(resource_, name_, title_, kind_, doc_, .member = #field, .record = &object##_record),
#define GETTER(resource_, name_, title_, kind_, source, function, doc_)                            \
    ROW(resource_, name_, title_, kind_, doc_, .live = SOURCE_##source,                            \
        .get = query_get_##resource_##_##function),
#define FIXED(resource_, name_, title_, kind_, value, doc_)                                        \
    ROW(resource_, name_, title_, kind_, doc_, .fixed = value),
#define ELEMENT(resource_, name_, title_, kind_, function, index, doc_)                            \
    ROW(resource_, name_, title_, kind_, doc_, .list = query_get_##resource_##_##function,         \
        .at = index),
#define NONE(resource_, name_, title_, kind_, doc_)                                                \
    ROW(resource_, name_, title_, kind_, doc_, .at = 0),
#include "proto/fields.def"
#undef MEMBER
#undef GETTER
#undef FIXED
#undef ELEMENT
#undef NONE
};

const struct query_field *query_field_table(size_t *ret_count)
{
    *ret_count = G_N_ELEMENTS(fields);
    return fields;
}

const struct query_field *query_field_find(const char *resource, const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (g_str_equal(fields[i].resource, resource) && g_str_equal(fields[i].name, name))
            return &fields[i];
    return NULL;
}

bool query_resource_exists(const char *resource)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (g_str_equal(fields[i].resource, resource))
            return true;
    return false;
}

GPtrArray *query_fields_find(const char *resource, const GPtrArray *names, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    g_autoptr(GString) unknown = g_string_new(NULL);
    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        const struct query_field *field = query_field_find(resource, name);
        if (field)
            g_ptr_array_add(found, (void *)field);
        else
            g_string_append_printf(unknown, "%s%s", unknown->len > 0 ? ", " : "", name);
    }
    if (unknown->len > 0) {
        fettle_set_error(error, WRONG_INPUT, "Unknown output fields selected: %s", unknown->str);
        return NULL;
    }
    return g_steal_pointer(&found);
}

/* NULL: it is shorter, or has nothing there. */
static json_t *element(json_t *list, guint at)
{
    json_t *value = json_array_get(list, at);
    value = !value || json_is_null(value) ? NULL : json_incref(value);
    json_decref(list);
    return value;
}

static json_t *take_value(const struct query_field *field, struct query_source *source,
                          const void *row, enum query_status *ret_status)
{
    if (field->get)
        return field->get(source, row, ret_status);
    if (field->list)
        return element(field->list(source, row, ret_status), field->at);
    if (field->fixed)
        return json_loads(field->fixed, JSON_DECODE_ANY, NULL);
    if (!field->member)
        return NULL;
    return record_field_to_json(record_field(field->record, field->member), row);
}

const struct field *query_field_member(const struct query_field *field)
{
    bool plain = field && !field->get && !field->list && !field->fixed;
    const struct field *member =
        plain && field->member ? record_field(field->record, field->member) : NULL;
    bool may_lack =
        member && (member->type == FIELD_TYPE_JSON || member->type == FIELD_TYPE_OBJECT);
    return may_lack ? NULL : member;
}

json_t *query_field_value(const struct query_field *field, struct query_source *source,
                          const void *row, enum query_status *ret_status)
{
    *ret_status = QUERY_NO_DATA;
    json_t *value = take_value(field, source, row, ret_status);
    if (!value)
        return json_null();
    *ret_status = QUERY_NORMAL;
    return face_show(source->face, field->name, value);
}

/* Of a field of instances; NULL: it has none. */
static json_t *default_value(const struct query_field *field, const void *new_instance)
{
    const struct field *member =
        field->member ? record_field(&op_instance_create_record, field->member) : NULL;
    if (field->fixed)
        return json_loads(field->fixed, JSON_DECODE_ANY, NULL);
    return member ? record_field_to_json(member, new_instance) : NULL;
}

json_t *query_settings(struct query_source *source, const char *prefix,
                       const struct instance *instance)
{
    record_autoptr(op_instance_create) new_one = op_instance_create_new();
    json_t *settings = json_object();
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        enum query_status status = QUERY_NO_DATA;
        if (!g_str_equal(fields[i].resource, "instance") ||
            !g_str_has_prefix(fields[i].name, prefix))
            continue;
        json_t *value = instance ? take_value(&fields[i], source, instance, &status)
                                 : default_value(&fields[i], new_one);
        if (value)
            json_object_set_new(settings, fields[i].name + strlen(prefix), value);
    }
    return settings;
}

static void free_node_instances(gpointer data)
{
    struct node_instances *instances = data;
    g_ptr_array_unref(instances->primary);
    g_ptr_array_unref(instances->secondary);
    g_free(instances);
}

static struct node_instances *of_node(GHashTable *by_node, const char *node)
{
    struct node_instances *instances = g_hash_table_lookup(by_node, node);
    if (!instances) {
        instances = g_new0(struct node_instances, 1);
        instances->primary = g_ptr_array_new();
        instances->secondary = g_ptr_array_new();
        g_hash_table_insert(by_node, g_strdup(node), instances);
    }
    return instances;
}

const struct node_instances *query_node_instances(struct query_source *source, const char *node)
{
    if (source->by_node)
        return of_node(source->by_node, node);
    source->by_node = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_node_instances);
    g_autoptr(GPtrArray) all = config_list(source->config, "instance");
    for (guint i = 0; i < all->len; i++) {
        const struct instance *instance = all->pdata[i];
        g_ptr_array_add(of_node(source->by_node, instance->primary_node)->primary,
                        (void *)instance);
        if (instance->secondary_node[0] != '\0')
            g_ptr_array_add(of_node(source->by_node, instance->secondary_node)->secondary,
                            (void *)instance);
    }
    return of_node(source->by_node, node);
}

void query_source_clear(struct query_source *source)
{
    g_clear_pointer(&source->by_node, g_hash_table_unref);
    g_clear_pointer(&source->names, g_hash_table_unref);
    g_clear_pointer(&source->reports, reports_free);
    g_clear_pointer(&source->status, cluster_status_free);
}

/* --- shared by getters --- */

json_t *query_strings(const GPtrArray *texts)
{
    json_t *list = json_array();
    for (guint i = 0; texts && i < texts->len; i++)
        json_array_append_new(list, json_string(texts->pdata[i]));
    return list;
}

json_t *query_tags(const struct query_source *source, enum tag_kind kind, const char *object)
{
    g_autoptr(GPtrArray) tags = config_tags(source->config, kind, object);
    return query_strings(tags);
}

json_t *query_serial_no(const struct query_source *source, const char *kind, const char *key)
{
    guint64 version = 0;
    config_get(source->config, kind, key, &version);
    return json_integer((json_int_t)version);
}
