/* QueryClusterInfo and QueryTags. */
#include "core/job/job_file.h"
#include "core/query/query.h"
#include "core/query/query_rows.h"

#define GANETI_PROTOCOL_VERSION 3000000 /* what Ganeti's clients of 3.0 expect */

struct cluster_info {
    struct queries *queries;
    struct rpc_request *request;
};

/* Names of nodes; the list in the answer has UUIDs. */
static json_t *node_names(const struct config *config, const GPtrArray *uuids)
{
    json_t *names = json_array();
    for (guint i = 0; i < uuids->len; i++)
        json_array_append_new(names, json_string(config_node_name(config, uuids->pdata[i])));
    return names;
}

static json_t *texts(const GPtrArray *list)
{
    json_t *json = json_array();
    for (guint i = 0; i < list->len; i++)
        json_array_append_new(json, json_string(list->pdata[i]));
    return json;
}

/* Every setting of the cluster's record; what it is stands beside them. */
static json_t *parameters(const struct cluster *cluster)
{
    json_t *settings = cluster_to_json(cluster);
    json_object_del(settings, "uuid");
    json_object_del(settings, "name");
    json_object_del(settings, "master_node");
    return settings;
}

static json_t *describe_copies(const struct config *config, const GPtrArray *copies)
{
    json_t *list = json_array();
    for (guint i = 0; i < copies->len; i++) {
        const struct copy_status *copy = copies->pdata[i];
        json_array_append_new(
            list, json_make("{ss, sI, sb, sb, sb}", "node", config_node_name(config, copy->node),
                            "serial", (json_int_t)copy->serial, "reachable", copy->reachable,
                            "filling", copy->filling, "authority", copy->authority));
    }
    return list;
}

static json_t *all_templates(void)
{
    json_t *list = json_array();
    for (const char *const *word = disk_template_words.words; *word; word++)
        json_array_append_new(list, json_string(*word));
    return list;
}

static json_t *describe(const struct queries *queries, enum face face,
                        const struct cluster *cluster, const struct cluster_status *status,
                        const GPtrArray *bad_files)
{
    const struct config *config = follow_config(queries->follow);
    g_autoptr(GPtrArray) tags = config_tags(config, TAG_CLUSTER, cluster->uuid);
    guint queued, running;
    queries->jobs->count(queries->jobs_data, &queued, &running);
    json_t *info = json_make(
        "{ss, sI, sI, ss, ss, ss, ss, ss, so}", "software_version", FETTLE_VERSION,
        "protocol_version", (json_int_t)GANETI_PROTOCOL_VERSION, "config_version",
        (json_int_t)GANETI_PROTOCOL_VERSION, "name", cluster->name, "uuid", cluster->uuid, "master",
        config_node_name(config, cluster->master_node), "master_uuid", cluster->master_node,
        "default_hypervisor", "kvm", "enabled_hypervisors", json_make("[s]", "kvm"));
    json_autoptr numbers =
        json_make("{sI, sI, sI, so, so, sI, sI}", "history", (json_int_t)status->history, "epoch",
                  (json_int_t)status->epoch, "serial", (json_int_t)status->serial, "nodes_pending",
                  node_names(config, status->nodes_pending), "problems", texts(status->problems),
                  "jobs_queued", (json_int_t)queued, "jobs_running", (json_int_t)running);
    json_autoptr settings = parameters(cluster);

    json_object_update(info, numbers);
    json_object_update(info, settings);
    json_object_set_new(info, "tags", texts(tags));
    json_object_set_new(info, "enabled_disk_templates", all_templates());
    json_object_set_new(info, "ipolicy", query_ipolicy(face));
    json_object_set_new(info, "copies", describe_copies(config, status->copies));
    json_object_set_new(info, "bad_job_files", texts(bad_files));
    json_object_set_new(info, "authority_key", json_boolean(status->authority));
    return face_show(face, NULL, info);
}

/* A task: how the master stands is asked of wconfd, whose word it is. */
static void cluster_info_task(void *data)
{
    struct cluster_info *info = data;
    struct queries *queries = info->queries;
    g_autoptr(GError) error = NULL;
    record_autoptr(cluster_status) status =
        env_call_record(queries->env, NODE_LOCAL, ROLE_WCONFD, "cluster_status", NULL,
                        follow_stamp(queries->follow), 0, 0, &error);
    g_autoptr(GPtrArray) bad_files = status ? job_file_list_bad(queries->env) : NULL;
    const struct cluster *cluster = config_cluster(follow_config(queries->follow));
    if (!status)
        rpc_fail(info->request, error);
    else if (!cluster)
        rpc_fail_new(info->request, FETTLE_ERROR_TEMPORARY,
                     "the configuration has no cluster yet; run `fettle cluster init`");
    else
        rpc_answer(info->request,
                   describe(queries, info->request->face, cluster, status, bad_files));
    g_free(info);
}

void query_cluster_info(struct queries *queries, struct rpc_request *request)
{
    struct cluster_info *info = g_new0(struct cluster_info, 1);
    info->queries = queries;
    info->request = request;
    task_spawn(queries->env->tasks, cluster_info_task, info);
}

/* --- QueryConfigValues --- */

/* A pause that is over is none. */
static bool is_paused(const struct env *env, const struct switches *switches)
{
    return switches &&
           (gint64)switches->watcher_paused_until > env->ops->wall_us(env) / G_USEC_PER_SEC;
}

static json_t *config_value(const struct queries *queries, const char *name)
{
    const struct config *config = follow_config(queries->follow);
    const struct cluster *cluster = config_cluster(config);
    const struct switches *switches = config_switches(config);
    if (cluster && g_str_equal(name, "cluster_name"))
        return json_string(cluster->name);
    if (cluster && g_str_equal(name, "master_node"))
        return json_string(config_node_name(config, cluster->master_node));
    if (g_str_equal(name, "drain_flag"))
        return json_boolean(switches && switches->drained);
    if (g_str_equal(name, "watcher_pause") && is_paused(queries->env, switches))
        return json_integer((json_int_t)switches->watcher_paused_until);
    return json_null();
}

void query_config_values(struct queries *queries, struct rpc_request *request,
                         const struct luxi_query_config_values_args *args)
{
    json_t *values = json_array();
    for (guint i = 0; i < args->fields->len; i++)
        json_array_append_new(values, config_value(queries, args->fields->pdata[i]));
    rpc_answer(request, values);
}

/* --- QueryExports --- */

/* No node has any: instances are not exported here. */
void query_node_exports(struct queries *queries, struct rpc_request *request,
                        const struct luxi_query_exports_args *args)
{
    const struct config *config = follow_config(queries->follow);
    g_autoptr(GPtrArray) all = config_list(config, "node");
    g_autoptr(GError) error = NULL;
    json_autoptr exports = json_object();
    for (guint i = 0; i < (args->nodes->len > 0 ? args->nodes->len : all->len); i++) {
        const struct node *node = args->nodes->len == 0
                                      ? all->pdata[i]
                                      : config_find(config, "node", args->nodes->pdata[i], &error);
        if (!node) {
            rpc_fail(request, error);
            return;
        }
        json_object_set_new(exports, node->name, json_array());
    }
    rpc_answer(request, json_steal(&exports));
}

/* --- QueryTags --- */

static const char *tagged_uuid(const struct config *config, enum tag_kind kind, const char *name,
                               GError **error)
{
    const struct cluster *cluster = config_cluster(config);
    const struct nodegroup *group;
    const struct node *node;
    const struct instance *instance;
    switch (kind) {
    case TAG_CLUSTER:
        if (!cluster)
            fettle_set_error(error, TEMPORARY, "the configuration has no cluster yet");
        return cluster ? cluster->uuid : NULL;
    case TAG_NODEGROUP:
        group = config_find(config, "nodegroup", name, error);
        return group ? group->uuid : NULL;
    case TAG_NODE:
        node = config_find(config, "node", name, error);
        return node ? node->uuid : NULL;
    case TAG_INSTANCE:
        instance = config_find(config, "instance", name, error);
        return instance ? instance->uuid : NULL;
    }
    g_assert_not_reached();
}

void query_object_tags(struct queries *queries, struct rpc_request *request,
                       const struct luxi_query_tags_args *args)
{
    const struct config *config = follow_config(queries->follow);
    g_autoptr(GError) error = NULL;
    const char *uuid = tagged_uuid(config, args->kind, args->name, &error);
    if (!uuid) {
        rpc_fail(request, error);
        return;
    }
    g_autoptr(GPtrArray) tags = config_tags(config, args->kind, uuid);
    rpc_answer(request, texts(tags));
}
