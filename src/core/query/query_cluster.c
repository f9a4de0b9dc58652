/* QueryConfigValues, QueryExports and QueryTags; QueryClusterInfo is in query_cluster_info.c. */
#include "core/query/query.h"
#include "core/query/query_rows.h"

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

void query_rapi_users(struct queries *queries, struct rpc_request *request)
{
    const struct config *config = follow_config(queries->follow);
    const struct cluster *cluster = config_cluster(config);
    g_autoptr(GPtrArray) users = config_list(config, "rapi_user");
    json_t *told = json_array();
    for (guint i = 0; i < users->len; i++) {
        const struct rapi_user *user = users->pdata[i];
        json_array_append_new(told, json_make("{ss ss sb}", "name", user->name, "hash", user->hash,
                                              "write", user->write));
    }
    rpc_answer(request, json_make("{sb so}", "anonymous_reads",
                                  cluster && cluster->rapi_anonymous_reads, "users", told));
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
    rpc_answer(request, query_strings(tags));
}
