/* See metrics_call.h. */
#include "core/queue/metrics/metrics_call.h"

#include "core/config/allocated.h"
#include "core/job/job_state.h"
#include "core/queue/metrics/node_figures.h"
#include "core/queue/metrics/tally.h"
#include "core/repair/tags.h"
#include "proto/metrics/counts.h"

struct metrics {
    struct queue_context *context;
    struct rpc_request *request;
    const struct config *config;
    const struct cluster *cluster;
    struct lock_states *locks;     /* NULL: wconfd has not said */
    struct cluster_status *status; /* the same */
    json_t *document;
};

static void add_all(struct counts *counts, const struct enum_words *words)
{
    for (int i = 0; words->words[i]; i++)
        counts_add(counts, words->words[i], NULL, 0);
}

/* `counts` is freed. */
static void tell(const struct metrics *metrics, const char *member, struct counts *counts,
                 const char *first, const char *second)
{
    json_object_set_new(metrics->document, member, counts_tell(counts, first, second));
    counts_free(counts);
}

static void tell_number(const struct metrics *metrics, const char *member, guint64 number)
{
    json_object_set_new(metrics->document, member, json_integer((json_int_t)number));
}

/* --- what is on record --- */

static GHashTable *instances_in_error(const struct metrics *metrics)
{
    GHashTable *uuids = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) faults = config_list(metrics->config, "fault");
    for (guint i = 0; i < faults->len; i++) {
        const struct fault *fault = faults->pdata[i];
        if (g_str_equal(fault->subject_kind, "instance"))
            g_hash_table_add(uuids, fault->subject);
    }
    return uuids;
}

static void tell_instances(const struct metrics *metrics)
{
    struct counts *counts = counts_new();
    guint64 by_state[2] = {0}, error = 0;
    g_autoptr(GHashTable) wrong = instances_in_error(metrics);
    g_autoptr(GPtrArray) instances = config_list(metrics->config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        bool is_wrong = g_hash_table_contains(wrong, instance->uuid);
        error += is_wrong;
        by_state[instance->admin_state == ADMIN_UP] += !is_wrong;
    }
    counts_add(counts, "error", NULL, error);
    counts_add(counts, enum_word(&admin_state_words, ADMIN_DOWN), NULL, by_state[false]);
    counts_add(counts, enum_word(&admin_state_words, ADMIN_UP), NULL, by_state[true]);
    tell(metrics, "instances", counts, "status", NULL);
}

static void tell_replicas(const struct metrics *metrics)
{
    struct counts *counts = counts_new();
    guint64 by_state[REPLICA_IN_SYNC + 1] = {0};
    g_autoptr(GPtrArray) replicas = config_list(metrics->config, "replica");
    for (guint i = 0; i < replicas->len; i++)
        by_state[((const struct replica *)replicas->pdata[i])->state]++;
    for (int i = 0; i <= REPLICA_IN_SYNC; i++)
        counts_add(counts, enum_word(&replica_state_words, i), NULL, by_state[i]);
    tell(metrics, "replicas", counts, "state", NULL);
}

static void tell_jobs(const struct metrics *metrics)
{
    struct counts *counts = counts_new();
    guint64 by_state[JOB_STATE_COUNT] = {0};
    g_autoptr(GArray) ids = queue_ids(metrics->context->queue);
    for (guint i = 0; i < ids->len; i++)
        by_state[queue_find(metrics->context->queue, g_array_index(ids, guint64, i))->state]++;
    for (unsigned i = 0; i < JOB_STATE_COUNT; i++)
        counts_add(counts, sm_name(&job_sm, i), NULL, by_state[i]);
    tell(metrics, "jobs", counts, "status", NULL);
}

static void tell_repairs(const struct metrics *metrics)
{
    struct counts *counts = counts_new();
    g_autoptr(GPtrArray) tags = config_list(metrics->config, "tag");
    add_all(counts, &repair_type_words);
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(((const struct tag *)tags->pdata[i])->tag, &tag);
        if (tag.kind == REPAIR_TAG_PENDING)
            counts_add(counts, repair_type_name(tag.type), NULL, 1);
        repair_tag_clear(&tag);
    }
    tell(metrics, "repairs", counts, "type", NULL);
    g_autoptr(GPtrArray) brakes = config_list(metrics->config, "repair_brake");
    json_object_set_new(metrics->document, "repair_brake", json_boolean(brakes->len > 0));
}

static void tell_recovery(const struct metrics *metrics)
{
    struct counts *counts = counts_new();
    g_autoptr(GPtrArray) faults = config_list(metrics->config, "fault");
    g_autoptr(GPtrArray) stuck = config_list(metrics->config, "stuck");
    add_all(counts, &event_level_words);
    for (guint i = 0; i < faults->len; i++)
        counts_add(
            counts,
            enum_word(&event_level_words, (int)((const struct fault *)faults->pdata[i])->level),
            NULL, 1);
    tell(metrics, "faults", counts, "level", NULL);
    tell_number(metrics, "stuck_tasks", stuck->len);
}

static void tell_cleanup(const struct metrics *metrics)
{
    struct counts *counts = counts_new();
    g_autoptr(GPtrArray) cleanups = config_list(metrics->config, "cleanup");
    g_autoptr(GPtrArray) workers = config_list(metrics->config, "worker");
    add_all(counts, &cleanup_state_words);
    for (guint i = 0; i < cleanups->len; i++)
        counts_add(counts,
                   enum_word(&cleanup_state_words,
                             (int)((const struct cleanup *)cleanups->pdata[i])->state),
                   NULL, 1);
    tell(metrics, "cleanups", counts, "state", NULL);
    tell_number(metrics, "storage_work", workers->len);
}

static void tell_switches(const struct metrics *metrics)
{
    const struct switches *switches = config_get(metrics->config, "switches", "switches", NULL);
    guint64 now_s = context_now_us(metrics->context) / G_USEC_PER_SEC;
    json_object_set_new(metrics->document, "queue_drained",
                        json_boolean(switches && switches->drained));
    json_object_set_new(metrics->document, "watcher_paused",
                        json_boolean(switches && switches->watcher_paused_until > now_s));
}

/* --- nodes, and the groups that they are in --- */

static const char *role_of(const struct metrics *metrics, const struct node *node)
{
    if (g_str_equal(node->uuid, metrics->cluster->master_node))
        return "master";
    return node->master_candidate ? "candidate" : "regular";
}

/* What is on record counts before what was said: that may be of before. */
static const char *state_of(const struct node *node, const struct node_figure *figure)
{
    if (node->offline)
        return "offline";
    if (!figure)
        return "unknown";
    return node->drained && g_str_equal(figure->state, "well") ? "drained" : figure->state;
}

static void tell_nodes(const struct metrics *metrics)
{
    struct counts *counts = counts_new(), *members = counts_new();
    g_autoptr(GPtrArray) nodes = config_list(metrics->config, "node");
    counts_add(members, "well", NULL, 0);
    counts_add(members, "ill", NULL, 0);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_figure *figure =
            node_figures_of(metrics->context->node_figures, node->uuid);
        const char *role = role_of(metrics, node);
        counts_add(counts, role, state_of(node, figure), 1);
        if (!g_str_equal(role, "regular") && figure)
            counts_add(members, figure->member_well ? "well" : "ill", NULL, 1);
    }
    tell(metrics, "nodes", counts, "role", "state");
    if (metrics->cluster->engine == ENGINE_KIND_ETCD)
        tell(metrics, "engine_members", members, "state", NULL);
    else
        counts_free(members);
}

struct group_sums {
    guint64 memory_mib, disk_mib, cpus;
    struct allocated promised;
    guint64 vcpus;
};

static void add_node(const struct metrics *metrics, GHashTable *groups, const struct node *node)
{
    const struct node_figure *figure = node_figures_of(metrics->context->node_figures, node->uuid);
    struct group_sums *sums = g_hash_table_lookup(groups, node->group);
    struct allocated promised = config_promised(metrics->config, node->uuid);
    if (!sums)
        return;
    allocated_add(&sums->promised, &promised);
    if (!figure || node->offline)
        return;
    sums->memory_mib += figure->memory_mib;
    sums->disk_mib += figure->disk_mib;
    sums->cpus += figure->cpus;
}

/* Node -> sums of its group. */
static GHashTable *sums_by_node(const struct metrics *metrics, GHashTable *groups)
{
    GHashTable *by_node = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) nodes = config_list(metrics->config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        add_node(metrics, groups, node);
        g_hash_table_insert(by_node, node->uuid, g_hash_table_lookup(groups, node->group));
    }
    return by_node;
}

static void add_vcpus(const struct metrics *metrics, GHashTable *groups)
{
    g_autoptr(GHashTable) by_node = sums_by_node(metrics, groups);
    g_autoptr(GPtrArray) instances = config_list(metrics->config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        struct group_sums *sums = g_hash_table_lookup(by_node, instance->primary_node);
        if (sums)
            sums->vcpus += instance->vcpus;
    }
}

static json_t *tell_group(const struct nodegroup *group, const struct group_sums *sums)
{
    return json_make("{ss, sI, sI, sI, sI, sI, sI}", "group", group->name, "memory_mib",
                     (json_int_t)sums->memory_mib, "memory_promised_mib",
                     (json_int_t)sums->promised.memory, "disk_mib", (json_int_t)sums->disk_mib,
                     "disk_promised_mib", (json_int_t)sums->promised.disk, "cpus",
                     (json_int_t)sums->cpus, "vcpus_promised", (json_int_t)sums->vcpus);
}

static void tell_groups(const struct metrics *metrics)
{
    json_t *list = json_array();
    g_autoptr(GPtrArray) all = config_list(metrics->config, "nodegroup");
    g_autoptr(GHashTable) groups = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    for (guint i = 0; i < all->len; i++)
        g_hash_table_insert(groups, ((struct nodegroup *)all->pdata[i])->uuid,
                            g_new0(struct group_sums, 1));
    add_vcpus(metrics, groups);
    for (guint i = 0; i < all->len; i++) {
        const struct nodegroup *group = all->pdata[i];
        json_array_append_new(list, tell_group(group, g_hash_table_lookup(groups, group->uuid)));
    }
    json_object_set_new(metrics->document, "groups", list);
}

/* --- what wconfd has said --- */

static void tell_locks(const struct metrics *metrics)
{
    guint64 waiting = 0;
    if (!metrics->locks)
        return;
    for (guint i = 0; i < metrics->locks->locks->len; i++)
        waiting += ((const struct lock_state *)metrics->locks->locks->pdata[i])->waiting;
    tell_number(metrics, "locks_held", metrics->locks->locks->len - waiting);
    tell_number(metrics, "locks_waiting", waiting);
}

static void tell_copies(const struct metrics *metrics)
{
    struct counts *counts = counts_new();
    counts_add(counts, "current", NULL, 0);
    counts_add(counts, "filling", NULL, 0);
    counts_add(counts, "behind", NULL, 0);
    for (guint i = 0; i < metrics->status->copies->len; i++) {
        const struct copy_status *copy = metrics->status->copies->pdata[i];
        const char *state = copy->filling ? "filling" : copy->reachable ? "current" : "behind";
        counts_add(counts, state, NULL, 1);
    }
    tell(metrics, "candidates", counts, "state", NULL);
}

static void tell_engine(const struct metrics *metrics)
{
    const char *word = enum_word(&engine_kind_words, (int)metrics->cluster->engine);
    json_object_set_new(
        metrics->document, "engine",
        json_make("[{ss, sb}]", "engine", word, "up", (int)(metrics->status != NULL)));
    if (!metrics->status)
        return;
    tell_copies(metrics);
    tell_number(metrics, "nodes_pending", metrics->status->nodes_pending->len);
    tell_number(metrics, "config_problems", metrics->status->problems->len);
}

/* --- the whole --- */

static void tell_position(const struct metrics *metrics)
{
    tell_number(metrics, "history", config_history(metrics->config));
    tell_number(metrics, "epoch", follow_epoch(metrics->context->follow));
    tell_number(metrics, "serial", config_serial(metrics->config));
}

/* Nothing waits here: it is one moment of the record. */
static json_t *tell_all(const struct metrics *metrics)
{
    tell_position(metrics);
    tell_instances(metrics);
    tell_replicas(metrics);
    tell_jobs(metrics);
    tally_tell(metrics->context->tally, metrics->document);
    tell_repairs(metrics);
    tell_recovery(metrics);
    tell_cleanup(metrics);
    tell_switches(metrics);
    tell_nodes(metrics);
    tell_groups(metrics);
    tell_locks(metrics);
    tell_engine(metrics);
    tell_number(metrics, "nodes_asked_ms",
                (guint64)node_figures_age_ms(metrics->context->node_figures));
    return metrics->document;
}

static void *ask(const struct metrics *metrics, const char *method)
{
    return env_call_record(metrics->context->env, NODE_LOCAL, ROLE_WCONFD, method, NULL,
                           follow_stamp(metrics->context->follow), 0, 0, NULL);
}

static void answer(struct metrics *metrics)
{
    metrics->config = follow_config(metrics->context->follow);
    metrics->cluster = config_cluster(metrics->config);
    metrics->document = json_object();
    if (metrics->cluster) {
        rpc_answer(metrics->request, tell_all(metrics));
        return;
    }
    json_decref(metrics->document);
    rpc_fail_new(metrics->request, FETTLE_ERROR_TEMPORARY,
                 "the configuration has no cluster yet; run `fettle cluster init`");
}

static void metrics_task(void *data)
{
    struct metrics *metrics = data;
    if (node_figures_ask(metrics->context->node_figures)) {
        metrics->locks = ask(metrics, "list_all_locks");
        metrics->status = ask(metrics, "cluster_status");
        answer(metrics);
    } else {
        rpc_fail_new(metrics->request, FETTLE_ERROR_KILLED, "luxid has ended");
    }
    lock_states_free(metrics->locks);
    cluster_status_free(metrics->status);
    g_free(metrics);
}

void metrics_call(struct queue_context *context, struct rpc_request *request)
{
    struct metrics *metrics = g_new0(struct metrics, 1);
    metrics->context = context;
    metrics->request = request;
    task_spawn(context->env->tasks, metrics_task, metrics);
}
