/* QueryClusterInfo: the settings of the cluster, and what proto/cluster_info.def tells beside them.
 */
#include "core/job/job_file.h"
#include "core/query/query_rows.h"
#include "proto/monitor/collector_table.h"

#include <string.h>

#if defined(__x86_64__)
#define PROCESSOR "x86_64"
#elif defined(__aarch64__)
#define PROCESSOR "aarch64"
#else
#define PROCESSOR "unknown"
#endif

struct cluster_info {
    struct queries *queries;
    struct rpc_request *request;
};

/* What the members are taken from. */
struct info_source {
    const struct queries *queries;
    const struct config *config;
    const struct cluster *cluster;
    const struct cluster_status *status;
    const GPtrArray *bad_files;
    enum face face;
};

static json_t *number(guint64 value)
{
    return json_integer((json_int_t)value);
}

/* --- who it is --- */

static json_t *tell_version(const struct info_source *source)
{
    return json_string(FETTLE_VERSION);
}

static json_t *tell_architecture(const struct info_source *source)
{
    return json_make("[s, s]", sizeof(void *) == 8 ? "64bits" : "32bits", PROCESSOR);
}

static json_t *tell_name(const struct info_source *source)
{
    return json_string(source->cluster->name);
}

static json_t *tell_uuid(const struct info_source *source)
{
    return json_string(source->cluster->uuid);
}

static json_t *tell_master(const struct info_source *source)
{
    return json_string(config_node_name(source->config, source->cluster->master_node));
}

static json_t *tell_master_uuid(const struct info_source *source)
{
    return json_string(source->cluster->master_node);
}

static json_t *tell_ip_version(const struct info_source *source)
{
    const struct node *master =
        config_get(source->config, "node", source->cluster->master_node, NULL);
    return json_integer(master && strchr(master->primary_ip, ':') ? 6 : 4);
}

static json_t *tell_tags(const struct info_source *source)
{
    g_autoptr(GPtrArray) tags = config_tags(source->config, TAG_CLUSTER, source->cluster->uuid);
    return query_strings(tags);
}

/* --- instances --- */

static json_t *tell_templates(const struct info_source *source)
{
    json_t *list = json_array();
    for (const char *const *word = disk_template_words.words; *word; word++)
        json_array_append_new(list, json_string(*word));
    return list;
}

static json_t *tell_ipolicy(const struct info_source *source)
{
    return query_ipolicy(source->face);
}

static json_t *tell_beparams(const struct info_source *source)
{
    return json_make("{so}", "default", query_settings(NULL, "be/", NULL));
}

static json_t *tell_hvparams(const struct info_source *source)
{
    return json_make("{so}", "kvm", query_settings(NULL, "hv/", NULL));
}

static json_t *tell_nicparams(const struct info_source *source)
{
    return json_make("{s{ss, ss, ss}}", "default", "mode", "bridged", "link",
                     source->cluster->default_link, "vlan", "");
}

/* --- monitoring --- */

static json_t *tell_collectors(const struct info_source *source)
{
    json_t *all = json_object();
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        json_object_set_new(
            all, collectors[i].name,
            json_boolean(collector_setting(source->cluster, (enum collector_id)i).active));
    return all;
}

static json_t *tell_collector_intervals(const struct info_source *source)
{
    json_t *all = json_object();
    for (guint i = 0; i < COLLECTOR_COUNT; i++)
        json_object_set_new(
            all, collectors[i].name,
            number(collector_setting(source->cluster, (enum collector_id)i).interval_us));
    return all;
}

/* --- keys --- */

/* Of the nodes' certificates each node says itself when it ends. */
static json_t *tell_keys(const struct info_source *source)
{
    const struct keys_progress *keys = source->status->keys;
    if (!keys)
        return json_object();
    return json_make("{sI, ss, so, so}", "authority_ends", (json_int_t)keys->ends, "renewal",
                     enum_word(&renewal_phase_words, (int)keys->phase), "waits",
                     query_strings(keys->waits), "missed", query_strings(keys->missed));
}

/* --- jobs --- */

static json_t *tell_tracked_jobs(const struct info_source *source)
{
    return number(source->cluster->max_running_jobs);
}

static guint count_jobs(const struct info_source *source, bool running)
{
    guint counts[2];
    source->queries->jobs->count(source->queries->jobs_data, &counts[0], &counts[1]);
    return counts[running];
}

static json_t *tell_jobs_queued(const struct info_source *source)
{
    return number(count_jobs(source, false));
}

static json_t *tell_jobs_running(const struct info_source *source)
{
    return number(count_jobs(source, true));
}

static json_t *tell_jobs_newest(const struct info_source *source)
{
    const struct counter *counter = config_get(source->config, "counter", "job", NULL);
    return number(counter ? counter->value : 0);
}

static json_t *tell_bad_files(const struct info_source *source)
{
    return query_strings(source->bad_files);
}

/* --- how the master stands --- */

static json_t *tell_history(const struct info_source *source)
{
    return number(source->status->history);
}

static json_t *tell_epoch(const struct info_source *source)
{
    return number(source->status->epoch);
}

static json_t *tell_serial(const struct info_source *source)
{
    return number(source->status->serial);
}

/* Names; the list in the answer has UUIDs. */
static json_t *tell_nodes_pending(const struct info_source *source)
{
    const GPtrArray *uuids = source->status->nodes_pending;
    json_t *names = json_array();
    for (guint i = 0; i < uuids->len; i++)
        json_array_append_new(names,
                              json_string(config_node_name(source->config, uuids->pdata[i])));
    return names;
}

static json_t *tell_problems(const struct info_source *source)
{
    return query_strings(source->status->problems);
}

static json_t *tell_copies(const struct info_source *source)
{
    const GPtrArray *copies = source->status->copies;
    json_t *list = json_array();
    for (guint i = 0; i < copies->len; i++) {
        const struct copy_status *copy = copies->pdata[i];
        json_array_append_new(list,
                              json_make("{ss, sI, sb, sb, sb}", "node",
                                        config_node_name(source->config, copy->node), "serial",
                                        (json_int_t)copy->serial, "reachable", copy->reachable,
                                        "filling", copy->filling, "authority", copy->authority));
    }
    return list;
}

static json_t *tell_authority(const struct info_source *source)
{
    return json_boolean(source->status->authority);
}

/* --- the answer --- */

static const struct {
    const char *name;
    json_t *(*tell)(const struct info_source *source); /* NULL: it is fixed */
    const char *fixed;                                 /* JSON */
} members[] = {
#define TOLD(name, function, doc) {#name, tell_##function, NULL},
#define CLIENTS TOLD
#define FIXED(name, value, doc) {#name, NULL, value},
#include "proto/cluster_info.def"
#undef TOLD
#undef CLIENTS
#undef FIXED
};

static json_t *describe(const struct info_source *source)
{
    json_t *info = cluster_to_json(source->cluster);
    static const char *const of_keys[] = {"authority", "etcd_authority", "renewal",
                                          "renewal_since"};
    json_object_del(info, "master_node");
    for (guint i = 0; i < G_N_ELEMENTS(of_keys); i++)
        json_object_del(info, of_keys[i]); /* `keys` says it */
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
        json_object_set_new(info, members[i].name,
                            members[i].tell ? members[i].tell(source)
                                            : json_loads(members[i].fixed, JSON_DECODE_ANY, NULL));
    return face_show(source->face, NULL, info);
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
    const struct config *config = follow_config(queries->follow);
    const struct info_source source = {queries, config,    config_cluster(config),
                                       status,  bad_files, info->request->face};
    if (!status)
        rpc_fail(info->request, error);
    else if (!source.cluster)
        rpc_fail_new(info->request, FETTLE_ERROR_TEMPORARY,
                     "the configuration has no cluster yet; run `fettle cluster init`");
    else
        rpc_answer(info->request, describe(&source));
    g_free(info);
}

void query_cluster_info(struct queries *queries, struct rpc_request *request)
{
    struct cluster_info *info = g_new0(struct cluster_info, 1);
    info->queries = queries;
    info->request = request;
    task_spawn(queries->env->tasks, cluster_info_task, info);
}
