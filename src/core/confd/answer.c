/*
 * See answer.h. What is said when something is wrong is worded as Ganeti words it, so that tools
 * that look at the text go on working.
 */
#include "core/confd/answer.h"

#include <string.h>

#include "core/confd/objects.h"
#include "proto/monitor/collector_table.h"

enum role { ROLE_OF_MASTER, ROLE_CANDIDATE, ROLE_OFFLINE, ROLE_DRAINED, ROLE_REGULAR };

struct answer {
    enum confd_status status;
    json_t *value;
};

static struct answer good(json_t *value)
{
    return (struct answer){CONFD_OK, value};
}

static struct answer bad(enum confd_error number)
{
    return (struct answer){CONFD_ERROR, json_integer(number)};
}

static struct answer bad_text(const char *format, ...) G_GNUC_PRINTF(1, 2);
static struct answer bad_text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return (struct answer){CONFD_ERROR, json_string(text)};
}

static struct answer bad_kind(const struct confd_request *request)
{
    static const char *const names[] = {"EmptyQuery", "PlainQuery", "DictQuery"};
    return bad_text("Invalid query type %s", names[request->kind]);
}

static struct answer not_found(const char *what, const char *name)
{
    return bad_text("Failure: prerequisites not met for this operation:\n"
                    "error type: ECodeNoEnt, error details:\n%s name %s not found",
                    what, name);
}

/* The text that a question about one object must be; NULL: it is none. */
static const char *plain_of(const struct confd_request *request)
{
    return request->kind == CONFD_QUERY_PLAIN ? request->plain : NULL;
}

/* The node that a question is about; NULL: `*ret_refusal` is the answer. */
static const struct node *node_asked(const struct confd_copy *copy,
                                     const struct confd_request *request,
                                     struct answer *ret_refusal)
{
    const char *name = plain_of(request);
    const struct node *node =
        name ? config_find(confd_copy_config(copy), "node", name, NULL) : NULL;
    if (!node)
        *ret_refusal = name ? not_found("Node", name) : bad_kind(request);
    return node;
}

/* --- the cluster --- */

static struct answer answer_ping(const struct confd_copy *copy, const struct confd_request *request)
{
    return good(json_integer(CONFD_CONFIG_VERSION));
}

static const char *master_field(const struct config *config, const struct node *master,
                                enum confd_field field)
{
    switch (field) {
    case CONFD_FIELD_NAME:
        return master->name;
    case CONFD_FIELD_IP:
        return confd_cluster_address(config);
    case CONFD_FIELD_NODE_IP:
    case CONFD_FIELD_COUNT:
        break;
    }
    return master->primary_ip;
}

static struct answer answer_cluster_master(const struct confd_copy *copy,
                                           const struct confd_request *request)
{
    const struct config *config = confd_copy_config(copy);
    const struct node *master =
        config_get(config, "node", config_cluster(config)->master_node, NULL);
    if (request->kind == CONFD_QUERY_PLAIN)
        return bad(CONFD_ARGUMENT);
    if (!master)
        return not_found("Node", config_cluster(config)->master_node);
    if (request->kind == CONFD_QUERY_EMPTY)
        return good(json_string(master->name));
    json_t *values = json_array();
    for (guint i = 0; i < request->fields->len; i++) {
        enum confd_field field = g_array_index(request->fields, enum confd_field, i);
        json_array_append_new(values, json_string(master_field(config, master, field)));
    }
    return good(values);
}

static struct answer answer_data_collectors(const struct confd_copy *copy,
                                            const struct confd_request *request)
{
    json_t *all = json_object();
    for (guint i = 0; i < COLLECTOR_COUNT; i++) {
        const struct collector_setting setting =
            collector_setting(config_cluster(confd_copy_config(copy)), (enum collector_id)i);
        json_object_set_new(all, collectors[i].name,
                            json_make("{sb sI}", "active", setting.active, "interval",
                                      (json_int_t)setting.interval_us));
    }
    return good(all);
}

/* --- nodes --- */

static enum role role_of(const struct config *config, const struct node *node)
{
    if (strcmp(config_cluster(config)->master_node, node->uuid) == 0)
        return ROLE_OF_MASTER;
    if (node->offline)
        return ROLE_OFFLINE;
    if (node->drained)
        return ROLE_DRAINED;
    return node->master_candidate ? ROLE_CANDIDATE : ROLE_REGULAR;
}

static struct answer answer_node_role(const struct confd_copy *copy,
                                      const struct confd_request *request)
{
    struct answer refusal;
    const struct node *node = node_asked(copy, request, &refusal);
    if (!node)
        return refusal;
    return good(json_integer(role_of(confd_copy_config(copy), node)));
}

static struct answer list_nodes(const struct confd_copy *copy, bool candidates_only)
{
    g_autoptr(GPtrArray) nodes = config_list(confd_copy_config(copy), "node");
    json_t *list = json_array();
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!candidates_only || node->master_candidate)
            json_array_append_new(list, json_string(node->primary_ip));
    }
    return good(list);
}

static struct answer answer_node_ips(const struct confd_copy *copy,
                                     const struct confd_request *request)
{
    return list_nodes(copy, false);
}

static struct answer answer_candidate_ips(const struct confd_copy *copy,
                                          const struct confd_request *request)
{
    return list_nodes(copy, true);
}

/* No template of this cluster is made of DRBD. */
static struct answer answer_node_drbd(const struct confd_copy *copy,
                                      const struct confd_request *request)
{
    struct answer refusal;
    return node_asked(copy, request, &refusal) ? good(json_array()) : refusal;
}

/* --- instances --- */

static int compare_names(const void *a, const void *b)
{
    const struct instance *one = *(const struct instance *const *)a;
    const struct instance *other = *(const struct instance *const *)b;
    return strcmp(one->name, other->name);
}

static json_t *list_instances(const struct confd_copy *copy, const char *node, bool primary)
{
    GHashTable *uuids = confd_copy_instances_of(copy, node, primary);
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    json_t *list = json_array();
    GHashTableIter iter;
    void *uuid;
    if (!uuids)
        return list;
    g_hash_table_iter_init(&iter, uuids);
    while (g_hash_table_iter_next(&iter, &uuid, NULL))
        g_ptr_array_add(found, (void *)config_get(confd_copy_config(copy), "instance", uuid, NULL));
    g_ptr_array_sort(found, compare_names);
    for (guint i = 0; i < found->len; i++)
        json_array_append_new(list, confd_instance_json(copy, found->pdata[i]));
    return list;
}

static guint count_instances(const struct confd_copy *copy, const char *node)
{
    GHashTable *primaries = confd_copy_instances_of(copy, node, true);
    GHashTable *secondaries = confd_copy_instances_of(copy, node, false);
    return (primaries ? g_hash_table_size(primaries) : 0) +
           (secondaries ? g_hash_table_size(secondaries) : 0);
}

static struct answer too_many(const char *what, guint count)
{
    return bad_text("%s: there are %u, and one answer has at most %d; ask for them one by one",
                    what, count, LIMIT_CONFD_OBJECTS);
}

static struct answer answer_node_instances(const struct confd_copy *copy,
                                           const struct confd_request *request)
{
    struct answer refusal;
    const struct node *node = node_asked(copy, request, &refusal);
    if (!node)
        return refusal;
    guint count = count_instances(copy, node->uuid);
    if (count > LIMIT_CONFD_OBJECTS)
        return too_many("instances", count);
    return good(json_make("[oo]", list_instances(copy, node->uuid, true),
                          list_instances(copy, node->uuid, false)));
}

static struct answer answer_instance_disks(const struct confd_copy *copy,
                                           const struct confd_request *request)
{
    const char *name = plain_of(request);
    const struct instance *instance =
        name ? config_find(confd_copy_config(copy), "instance", name, NULL) : NULL;
    if (!name)
        return bad_kind(request);
    return instance ? good(confd_disks_json(copy, instance)) : not_found("Instance", name);
}

/* --- addresses of instances --- */

static const char *default_link(const struct confd_copy *copy)
{
    return config_cluster(confd_copy_config(copy))->default_link;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct answer answer_instance_ips(const struct confd_copy *copy,
                                         const struct confd_request *request)
{
    if (request->kind == CONFD_QUERY_DICT)
        return bad_text("Invalid query type");
    const char *link = plain_of(request) ? request->plain : default_link(copy);
    GHashTable *known = confd_copy_addresses_on(copy, link);
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    json_t *list = json_array();
    GHashTableIter iter;
    void *ip;
    if (!known)
        return good(list);
    g_hash_table_iter_init(&iter, known);
    while (g_hash_table_iter_next(&iter, &ip, NULL))
        g_ptr_array_add(sorted, ip);
    g_ptr_array_sort(sorted, compare_texts);
    for (guint i = 0; i < sorted->len; i++)
        json_array_append_new(list, json_string(sorted->pdata[i]));
    return good(list);
}

static struct answer node_at(const struct confd_copy *copy, const char *link, const char *ip)
{
    const struct instance *instance = confd_copy_instance_at(copy, link, ip);
    const struct node *node =
        instance ? config_get(confd_copy_config(copy), "node", instance->primary_node, NULL) : NULL;
    return node ? good(json_string(node->primary_ip)) : bad(CONFD_UNKNOWN_ENTRY);
}

static struct answer answer_node_by_instance_ip(const struct confd_copy *copy,
                                                const struct confd_request *request)
{
    if (request->kind != CONFD_QUERY_DICT)
        return bad(CONFD_ARGUMENT);
    const char *link = request->link ? request->link : default_link(copy);
    if (request->ip)
        return node_at(copy, link, request->ip);
    json_t *pairs = json_array();
    for (guint i = 0; i < request->addresses->len; i++) {
        struct answer one = node_at(copy, link, request->addresses->pdata[i]);
        json_array_append_new(pairs, json_make("[io]", (int)one.status, one.value));
    }
    return good(pairs);
}

/* --- any part of the configuration --- */

static json_t *object_at(const struct confd_copy *copy, const char *kind, const void *value)
{
    if (strcmp(kind, "node") == 0)
        return confd_node_json(copy, value);
    if (strcmp(kind, "instance") == 0)
        return confd_instance_json(copy, value);
    return confd_nodegroup_json(copy, value);
}

static const char *container_kind(const char *container)
{
    static const char *const kinds[] = {"node", "instance", "nodegroup"};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_str_has_prefix(container, kinds[i]) && strcmp(container + strlen(kinds[i]), "s") == 0)
            return kinds[i];
    return NULL;
}

/* All objects of a kind by UUID. */
static json_t *container_json(const struct confd_copy *copy, const char *kind)
{
    const struct config *config = confd_copy_config(copy);
    g_autoptr(GPtrArray) objects = config_list(config, kind);
    const struct field *uuid = record_field(object_record(kind), "uuid");
    json_t *container = json_object();
    for (guint i = 0; i < objects->len; i++) {
        const char *key = *(char *const *)((const char *)objects->pdata[i] + uuid->offset);
        json_object_set_new(container, key, object_at(copy, kind, objects->pdata[i]));
    }
    return container;
}

/* The value that the first words of a path stand for; takes them off `*path`. NULL: there is none.
 */
static json_t *path_start(const struct confd_copy *copy, char ***path)
{
    const struct config *config = confd_copy_config(copy);
    const char *first = *(*path)++;
    const char *kind = container_kind(first);
    if (strcmp(first, "cluster") == 0)
        return confd_cluster_json(copy);
    if (strcmp(first, "version") == 0)
        return json_integer(CONFD_CONFIG_VERSION);
    if (strcmp(first, "serial_no") == 0)
        return json_integer((json_int_t)config_serial(config));
    if (!kind)
        return NULL;
    if (!**path)
        return container_json(copy, kind);
    const void *value = config_find(config, kind, *(*path)++, NULL);
    return value ? object_at(copy, kind, value) : NULL;
}

static struct answer answer_config(const struct confd_copy *copy,
                                   const struct confd_request *request)
{
    if (!plain_of(request))
        return bad_kind(request);
    g_auto(GStrv) words = g_strsplit(request->plain + (*request->plain == '/'), "/", -1);
    const char *kind = words[0] ? container_kind(words[0]) : NULL;
    guint count = kind && !words[1] ? config_count(confd_copy_config(copy), kind) : 0;
    if (!words[0])
        return bad(CONFD_ARGUMENT);
    if (count > LIMIT_CONFD_OBJECTS)
        return too_many(words[0], count);
    char **rest = words;
    json_autoptr start = path_start(copy, &rest);
    const json_t *value = start;
    for (; value && *rest; rest++)
        value = json_object_get(value, *rest);
    return value ? good(json_incref((json_t *)value)) : bad(CONFD_ARGUMENT);
}

/* --- the monitoring of a node --- */

/* Of an instance no more than it shows, so that a datagram has room for those of any node. */
static json_t *brief_instance(const struct instance *instance)
{
    return json_make("{ss ss ss}", "name", instance->name, "uuid", instance->uuid, "admin_state",
                     enum_word(&admin_state_words, (int)instance->admin_state));
}

static struct answer answer_monitored(const struct confd_copy *copy, const struct node *node)
{
    GHashTable *uuids = confd_copy_instances_of(copy, node->uuid, true);
    json_t *list = json_array();
    GHashTableIter iter;
    void *uuid;
    if (uuids)
        g_hash_table_iter_init(&iter, uuids);
    while (uuids && g_hash_table_iter_next(&iter, &uuid, NULL))
        json_array_append_new(
            list, brief_instance(config_get(confd_copy_config(copy), "instance", uuid, NULL)));
    return good(json_make("[o[]]", list));
}

/* Its key opens what it needs for its reports, and nothing else. */
static struct answer answer_monitoring(const struct confd_copy *copy,
                                       const struct confd_request *request, const struct node *node)
{
    const char *asked = plain_of(request);
    bool itself = asked && (strcmp(asked, node->name) == 0 || strcmp(asked, node->uuid) == 0);
    if (request->type == CONFD_TYPE_ping)
        return answer_ping(copy, request);
    if (request->type == CONFD_TYPE_data_collectors)
        return answer_data_collectors(copy, request);
    if (request->type == CONFD_TYPE_node_instances && itself)
        return answer_monitored(copy, node);
    return bad_text(
        "With the key of its monitoring node %s may ask for the data collectors and for "
        "its own instances alone",
        node->name);
}

/* --- all of them --- */

static struct answer answer_any(const struct confd_copy *copy, const struct confd_request *request)
{
    struct answer answer = {CONFD_NOT_IMPLEMENTED, NULL};
    switch (request->type) {
#define CONFD(number, name, verb, usage, doc)                                                      \
    case number:                                                                                   \
        answer = answer_##name(copy, request);                                                     \
        break;
#include "proto/confd.def"
#undef CONFD
    default:
        answer.value = json_string("There is no such request type");
    }
    return answer;
}

void confd_answer(const struct confd_copy *copy, const struct confd_request *request,
                  const struct node *monitored, struct confd_reply *ret_reply)
{
    struct answer answer =
        monitored ? answer_monitoring(copy, request, monitored) : answer_any(copy, request);
    *ret_reply = (struct confd_reply){.status = answer.status,
                                      .answer = answer.value,
                                      .serial = config_serial(confd_copy_config(copy))};
}
