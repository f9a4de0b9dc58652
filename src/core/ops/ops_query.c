/*
 * OP_INSTANCE_QUERY_DATA: what Ganeti's `gnt-instance info` shows of instances, in the shape that
 * it takes. It locks nothing and changes nothing; the values are those of the fields of Query.
 */
#include "core/ops/ops.h"
#include "core/query/query.h"

static bool query_declare(struct op *op, GError **error)
{
    return true;
}

/* Those that are meant; array of const struct instance *. */
static GPtrArray *instances_meant(struct op *op, GError **error)
{
    const struct op_instance_query_data *params = op->params;
    if (!params->instances->len)
        return config_list(op_config(op), "instance");
    g_autoptr(GPtrArray) meant = g_ptr_array_new();
    for (guint i = 0; i < params->instances->len; i++) {
        const struct instance *found = op_find_instance(op, params->instances->pdata[i], error);
        if (!found)
            return NULL;
        g_ptr_array_add(meant, (void *)found);
    }
    return g_steal_pointer(&meant);
}

static bool query_check(struct op *op, GError **error)
{
    g_autoptr(GPtrArray) meant = instances_meant(op, error);
    if (!meant || meant->len <= LIMIT_QUERY_DATA)
        return meant != NULL;
    fettle_set_error(error, LIMIT,
                     "instances: %u are more than the %u that one job tells of; name some of them",
                     meant->len, (guint)LIMIT_QUERY_DATA);
    return false;
}

/* --- one instance --- */

/* Members of the answer that are fields of Query. */
static const char *const members[][2] = {
    {"name", "name"},
    {"uuid", "uuid"},
    {"config_state", "admin_state"},
    {"pnode", "pnode"},
    {"pnode_group_uuid", "pnode.group.uuid"},
    {"pnode_group_name", "pnode.group"},
    {"snodes", "snodes"},
    {"snodes_group_uuids", "snodes.group.uuid"},
    {"snodes_group_names", "snodes.group"},
    {"os", "os"},
    {"disk_template", "disk_template"},
    {"hypervisor", "hypervisor"},
    {"network_port", "network_port"},
    {"serial_no", "serial_no"},
    {"ctime", "ctime"},
    {"mtime", "mtime"},
};

static json_t *field(struct query_source *source, const struct instance *instance, const char *name,
                     enum query_status *ret_status)
{
    return query_field_value(query_field_find("instance", name), source, instance, ret_status);
}

/* "up" or "down"; null for what no node has told. */
static json_t *run_state(struct op *op, struct query_source *source,
                         const struct instance *instance)
{
    enum query_status status;
    json_autoptr runs = field(source, instance, "oper_state", &status);
    if (status == QUERY_NORMAL)
        return json_string(json_is_true(runs) ? "up" : "down");
    op_log(op, "%s: %s, its primary node, %s: what is told is on record only", instance->name,
           op_node_name(op, instance->primary_node),
           op_node_offline(op, instance->primary_node) ? "is offline"
                                                       : "does not say whether it runs");
    return json_null();
}

static json_t *nics_of(const struct op *op, const struct instance *instance)
{
    json_t *list = json_array();
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        const struct network *network =
            *nic->network ? config_get(op_config(op), "network", nic->network, NULL) : NULL;
        json_t *net = network ? json_make("{ss}", "name", network->name) : json_null();
        json_array_append_new(list,
                              json_make("[n, s, o, s, s, s, s, o, o]", nic->uuid,
                                        *nic->ip ? json_string(nic->ip) : json_null(), nic->mac,
                                        enum_word(&nic_mode_words, (int)nic->mode), nic->link, "",
                                        network ? json_string(network->uuid) : json_null(), net));
    }
    return list;
}

static json_t *disks_of(const struct instance *instance)
{
    json_t *list = json_array();
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        g_autofree char *name = g_strdup_printf("disk/%u", i);
        json_array_append_new(
            list,
            json_make("{ss, ss, sn, sn, sn, sn, s[], ss, sI, sn, sn, ss}", "iv_name", name,
                      "dev_type", enum_word(&disk_template_words, (int)instance->disk_template),
                      "logical_id", "drbd_info", "pstatus", "sstatus", "children", "mode", "rw",
                      "size", (json_int_t)disk->size, "spindles", "name", "uuid", disk->uuid));
    }
    return list;
}

static json_t *describe(struct op *op, struct query_source *source, const struct instance *instance)
{
    const struct op_instance_query_data *params = op->params;
    json_t *data = json_object();
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        enum query_status status;
        json_object_set_new(data, members[i][0], field(source, instance, members[i][1], &status));
    }
    json_autoptr backend = query_settings(source, "be/", instance);
    json_autoptr hypervisor = query_settings(source, "hv/", instance);
    json_autoptr rest =
        json_make("{sO, sO, sO, sO, s{}, s{}, so, so}", "be_instance", backend, "be_actual",
                  backend, "hv_instance", hypervisor, "hv_actual", hypervisor, "os_instance",
                  "os_actual", "nics", nics_of(op, instance), "disks", disks_of(instance));
    json_object_update(data, rest);
    json_object_set_new(data, "run_state",
                        params->on_record ? json_null() : run_state(op, source, instance));
    return data;
}

/* --- all of them --- */

static bool ask_nodes(struct op *op, const GPtrArray *instances, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < instances->len; i++) {
        const char *node = ((const struct instance *)instances->pdata[i])->primary_node;
        if (!op_node_offline(op, node) &&
            !g_ptr_array_find_with_equal_func(nodes, node, g_str_equal, NULL))
            g_ptr_array_add(nodes, g_strdup(node));
    }
    return op_gather_reports(op, nodes, error);
}

static bool query_exec(struct op *op, GError **error)
{
    const struct op_instance_query_data *params = op->params;
    g_autoptr(GPtrArray) before = instances_meant(op, error);
    if (!before || (!params->on_record && !ask_nodes(op, before, error)))
        return false;
    /* As it is by now, with what they have said. */
    g_autoptr(GPtrArray) meant = instances_meant(op, error);
    if (!meant)
        return false;
    struct queries queries = {.env = op->env, .follow = op->follow};
    struct query_source source = {
        .queries = &queries, .config = op_config(op), .reports = op->reports};
    op->result = json_object();
    for (guint i = 0; i < meant->len; i++) {
        const struct instance *instance = meant->pdata[i];
        json_object_set_new(op->result, instance->name, describe(op, &source, instance));
    }
    source.reports = NULL; /* they are the opcode's */
    query_source_clear(&source);
    return true;
}

const struct op_impl ops_query[] = {
    {"OP_INSTANCE_QUERY_DATA", query_declare, query_check, query_exec, SEES_ALL},
    {NULL},
};
