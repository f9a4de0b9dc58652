/* The table of query fields and how a value is taken by it; see query.h. */
#include "core/queue/query_rows.h"

static const struct query_field fields[] = {
#define SOURCE_STATIC false
#define SOURCE_LIVE true
#define MEMBER(resource, record, name, title, kind, member, doc)                                   \
    {#resource, name, title, QUERY_KIND_##kind, false, NULL, #member, &record##_record, doc},
#define GETTER(resource, name, title, kind, source, function, doc)                                 \
    {                                                                                              \
        #resource,                                                                                 \
        name,                                                                                      \
        title,                                                                                     \
        QUERY_KIND_##kind,                                                                         \
        SOURCE_##source,                                                                           \
        query_get_##resource##_##function,                                                         \
        NULL,                                                                                      \
        NULL,                                                                                      \
        doc},
#include "proto/fields.def"
#undef MEMBER
#undef GETTER
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
        const char *name = g_ptr_array_index(names, i);
        const struct query_field *field = query_field_find(resource, name);

        if (field != NULL)
            g_ptr_array_add(found, (gpointer)field);
        else
            g_string_append_printf(unknown, "%s%s", unknown->len > 0 ? ", " : "", name);
    }
    if (unknown->len > 0) {
        fettle_set_error(error, WRONG_INPUT, "Unknown output fields selected: %s", unknown->str);
        return NULL;
    }
    return g_steal_pointer(&found);
}

json_t *query_field_value(const struct query_field *field, struct query_source *source,
                          const void *row, enum query_status *ret_status)
{
    json_t *value;

    *ret_status = QUERY_NO_DATA;
    value = field->get != NULL
                ? field->get(source, row, ret_status)
                : record_field_to_json(record_field(field->record, field->member), row);
    if (value == NULL)
        return json_null();
    *ret_status = QUERY_NORMAL;
    return value;
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

    if (instances == NULL) {
        instances = g_new0(struct node_instances, 1);
        instances->primary = g_ptr_array_new();
        instances->secondary = g_ptr_array_new();
        g_hash_table_insert(by_node, g_strdup(node), instances);
    }
    return instances;
}

const struct node_instances *query_node_instances(struct query_source *source, const char *node)
{
    g_autoptr(GPtrArray) all = NULL;

    if (source->by_node != NULL)
        return of_node(source->by_node, node);
    source->by_node = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_node_instances);
    all = config_list(source->config, "instance");
    for (guint i = 0; i < all->len; i++) {
        const struct instance *instance = g_ptr_array_index(all, i);

        g_ptr_array_add(of_node(source->by_node, instance->primary_node)->primary,
                        (gpointer)instance);
        if (instance->secondary_node[0] != '\0')
            g_ptr_array_add(of_node(source->by_node, instance->secondary_node)->secondary,
                            (gpointer)instance);
    }
    return of_node(source->by_node, node);
}

void query_source_clear(struct query_source *source)
{
    g_clear_pointer(&source->by_node, g_hash_table_unref);
    g_clear_pointer(&source->live, live_free);
}

/* --- shared by getters --- */

json_t *query_strings(const GPtrArray *texts)
{
    json_t *list = json_array();

    for (guint i = 0; texts != NULL && i < texts->len; i++)
        json_array_append_new(list, json_string(g_ptr_array_index(texts, i)));
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
