/* Fields of nodes and groups (proto/fields.def). */
#include "core/query/query_rows.h"
#include "core/report/faults.h"

#include "core/report/late.h"

/* --- nodes, configured --- */

static bool is_master(const struct query_source *source, const struct node *node)
{
    const struct cluster *cluster = config_cluster(source->config);
    return cluster && g_str_equal(cluster->master_node, node->uuid);
}

json_t *query_get_node_master(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return json_boolean(is_master(source, row));
}

json_t *query_get_node_role(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    const struct node *node = row;
    if (is_master(source, node))
        return json_string("M");
    if (node->offline)
        return json_string("O");
    if (node->drained)
        return json_string("D");
    return json_string(node->master_candidate ? "C" : "R");
}

json_t *query_get_node_group(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct nodegroup *group =
        config_get(source->config, "nodegroup", ((const struct node *)row)->group, NULL);
    return group ? json_string(group->name) : NULL;
}

static json_t *instance_names(const GPtrArray *instances)
{
    json_t *names = json_array();
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        json_array_append_new(names, json_string(instance->name));
    }
    return names;
}

static const struct node_instances *instances_of(struct query_source *source, const void *row)
{
    return query_node_instances(source, ((const struct node *)row)->uuid);
}

json_t *query_get_node_pinst_cnt(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return json_integer(instances_of(source, row)->primary->len);
}

json_t *query_get_node_sinst_cnt(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return json_integer(instances_of(source, row)->secondary->len);
}

json_t *query_get_node_pinst_list(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return instance_names(instances_of(source, row)->primary);
}

json_t *query_get_node_sinst_list(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return instance_names(instances_of(source, row)->secondary);
}

json_t *query_get_node_tags(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    return query_tags(source, TAG_NODE, ((const struct node *)row)->uuid);
}

json_t *query_get_node_serial_no(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return query_serial_no(source, "node", ((const struct node *)row)->uuid);
}

/* --- nodes, live --- */

const struct node_report *query_node_report(const struct query_source *source, const char *node,
                                            enum query_status *ret_status)
{
    const struct node_report *report = reports_of(source->reports, node);
    enum report_state state = reports_state(source->reports, node);
    if (!report)
        *ret_status = state == REPORT_OFFLINE  ? QUERY_OFFLINE
                      : state == REPORT_SILENT ? QUERY_UNAVAILABLE
                                               : QUERY_NO_DATA;
    return report;
}

static const struct node_report *report_of(const struct query_source *source, const void *row,
                                           enum query_status *ret_status)
{
    return query_node_report(source, ((const struct node *)row)->uuid, ret_status);
}

json_t *query_get_node_mtotal(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_integer((json_int_t)report->memory_total) : NULL;
}

json_t *query_get_node_mfree(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_integer((json_int_t)report->memory_free) : NULL;
}

json_t *query_get_node_mnode(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    if (!report)
        return NULL;
    return json_integer((json_int_t)report->memory_total - (json_int_t)report->memory_free);
}

json_t *query_get_node_dtotal(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_integer((json_int_t)report->disk_total) : NULL;
}

json_t *query_get_node_dfree(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_integer((json_int_t)report->disk_free) : NULL;
}

json_t *query_get_node_ctotal(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_integer((json_int_t)report->cpus) : NULL;
}

json_t *query_get_node_bootid(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_string(report->boot_id) : NULL;
}

json_t *query_get_node_version(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_string(report->version) : NULL;
}

json_t *query_get_node_master_ip(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? query_strings(report->master_ip) : NULL;
}

json_t *query_get_node_late(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    const char *refusal = reports_refusal(source->reports, ((const struct node *)row)->uuid);
    if (!report)
        return refusal
                   ? json_make("[s+]", "report: its node daemon answers with an error: ", refusal)
                   : NULL;
    json_t *list = json_array();
    for (guint i = 0; report->late && i < report->late->len; i++) {
        const struct late_part *part = report->late->pdata[i];
        g_autofree char *words = late_part_words(part);
        g_autofree char *text = g_strdup_printf("%s: %s", part->part, words);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

json_t *query_get_node_without_kvm(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_string(report->without_kvm) : NULL;
}

json_t *query_get_node_certificate_ends(struct query_source *source, const void *row,
                                        enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? json_integer(report->keys ? (json_int_t)report->keys->ends : 0) : NULL;
}

json_t *query_get_node_leftovers(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    return report ? query_strings(report->leftovers) : NULL;
}

json_t *query_get_node_faults(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    if (!report)
        return NULL;
    json_t *list = json_array();
    for (guint i = 0; i < report->faults->len; i++) {
        g_autofree char *text = faults_one_text(report->faults->pdata[i]);
        json_array_append_new(list, json_string(text));
    }
    return list;
}

json_t *query_get_node_health(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    g_autoptr(GString) kinds = g_string_new(NULL);
    if (!report)
        return NULL;
    for (guint i = 0; i < report->faults->len; i++) {
        const struct node_fault *fault = report->faults->pdata[i];
        g_string_append_printf(kinds, "%s%s", i > 0 ? ", " : "", fault->kind);
    }
    if (kinds->len == 0)
        g_string_assign(kinds, report->faults_known ? "well" : "unknown");
    return json_string(kinds->str);
}

/* In which way the record has images of this instance on that node. */
static const char *image_role(const struct instance *instance, const struct node *node,
                              const char *replica)
{
    if (!instance)
        return "unknown";
    if (*replica == '\0')
        return g_str_equal(instance->primary_node, node->uuid) ? "primary" : "unknown";
    if (g_str_equal(instance->replica, replica) &&
        g_str_equal(instance->secondary_node, node->uuid))
        return "replica";
    return g_str_equal(instance->migration, replica) ? "migration" : "unknown";
}

static guint64 image_generation(const struct query_source *source, const struct instance *instance,
                                const char *role)
{
    const struct replica *replica =
        instance ? config_get(source->config, "replica", instance->replica, NULL) : NULL;
    if (g_str_equal(role, "replica") && replica)
        return replica->generation;
    return instance && !g_str_equal(role, "unknown") ? instance->generation : 0;
}

static json_t *image_disks(guint64 disks)
{
    json_t *list = json_array();
    for (guint i = 0; i < LIMIT_DISKS; i++)
        if ((disks >> i & 1) != 0)
            json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

static void add_images(const struct query_source *source, const struct node *node,
                       const GPtrArray *sets, bool aside, json_t *list)
{
    for (guint i = 0; sets && i < sets->len; i++) {
        const struct image_set *set = sets->pdata[i];
        const struct instance *instance =
            config_get(source->config, "instance", set->instance, NULL);
        const char *role = aside ? "aside" : image_role(instance, node, set->replica);
        guint64 generation = aside ? set->generation : image_generation(source, instance, role);
        json_array_append_new(list,
                              json_make("{ss ss ss ss sI so sI}", "instance",
                                        instance ? instance->name : set->instance, "instance_uuid",
                                        set->instance, "replica", set->replica, "role", role,
                                        "generation", (json_int_t)generation, "disks",
                                        image_disks(set->disks), "space", (json_int_t)set->space));
    }
}

json_t *query_get_node_images(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct node_report *report = report_of(source, row, ret_status);
    if (!report)
        return NULL;
    json_t *list = json_array();
    add_images(source, row, report->image_sets, false, list);
    add_images(source, row, report->aside_sets, true, list);
    return list;
}

/* --- groups --- */

/* Nodes of a group, sorted by name. */
static GPtrArray *group_nodes(const struct query_source *source, const struct nodegroup *group)
{
    g_autoptr(GPtrArray) all = config_list(source->config, "node");
    GPtrArray *nodes = g_ptr_array_new();
    for (guint i = 0; i < all->len; i++) {
        const struct node *node = all->pdata[i];
        if (g_str_equal(node->group, group->uuid))
            g_ptr_array_add(nodes, (void *)node);
    }
    return nodes;
}

json_t *query_get_group_node_cnt(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    g_autoptr(GPtrArray) nodes = group_nodes(source, row);
    return json_integer(nodes->len);
}

json_t *query_get_group_node_list(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    g_autoptr(GPtrArray) nodes = group_nodes(source, row);
    json_t *names = json_array();
    for (guint i = 0; i < nodes->len; i++)
        json_array_append_new(names, json_string(((const struct node *)nodes->pdata[i])->name));
    return names;
}

static gint compare_names(gconstpointer left, gconstpointer right)
{
    const struct instance *a = *(const struct instance *const *)left;
    const struct instance *b = *(const struct instance *const *)right;
    return g_strcmp0(a->name, b->name);
}

static GPtrArray *group_instances(struct query_source *source, const struct nodegroup *group)
{
    g_autoptr(GPtrArray) nodes = group_nodes(source, group);
    GPtrArray *instances = g_ptr_array_new();
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const GPtrArray *primary = query_node_instances(source, node->uuid)->primary;
        for (guint k = 0; k < primary->len; k++)
            g_ptr_array_add(instances, primary->pdata[k]);
    }
    g_ptr_array_sort(instances, compare_names);
    return instances;
}

json_t *query_get_group_pinst_cnt(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    g_autoptr(GPtrArray) instances = group_instances(source, row);
    return json_integer(instances->len);
}

json_t *query_get_group_pinst_list(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    g_autoptr(GPtrArray) instances = group_instances(source, row);
    return instance_names(instances);
}

json_t *query_get_group_tags(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return query_tags(source, TAG_NODEGROUP, ((const struct nodegroup *)row)->uuid);
}

json_t *query_get_group_serial_no(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return query_serial_no(source, "nodegroup", ((const struct nodegroup *)row)->uuid);
}
