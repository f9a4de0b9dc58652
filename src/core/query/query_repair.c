/* Fields of repairs, policies, the storm brake and advice (proto/fields.def), and their rows. */
#include "core/query/query_rows.h"

#include "core/repair/policy.h"

/* --- repairs: what the pending and result tags of instances say --- */

static void repair_free(gpointer data)
{
    struct query_repair *repair = data;
    g_free(repair->id);
    g_free(repair->instance);
    g_strfreev(repair->jobs);
    g_free(repair);
}

/* When the repair was noticed: every job that the watcher submits names the time of its cause. */
static gint64 started_by_job(const struct config *config, const char *job)
{
    const struct job *record = job ? config_get(config, "job", job, NULL) : NULL;
    const struct job_op *op = record ? record->ops->pdata[0] : NULL;
    const json_t *trail = op ? json_object_get(op->input, "reason") : NULL;
    size_t index;
    const json_t *entry;
    json_array_foreach(trail, index, entry) {
        if (g_strcmp0(json_string_value(json_array_get(entry, 0)), "fettle:watcher") == 0)
            return json_integer_value(json_array_get(entry, 2)) / 1000000000;
    }
    return 0;
}

static void add_repair(GPtrArray *rows, const struct config *config,
                       const struct instance *instance, const char *text)
{
    struct repair_tag tag;
    repair_tag_parse(text, &tag);
    bool pending = tag.kind == REPAIR_TAG_PENDING;
    if (pending || tag.kind == REPAIR_TAG_RESULT) {
        struct query_repair *repair = g_new0(struct query_repair, 1);
        repair->id = g_strdup(tag.id);
        repair->instance = g_strdup(instance->name);
        repair->type = repair_type_name(tag.type);
        repair->state = pending ? "pending" : repair_outcome_name(tag.outcome);
        repair->started = pending ? tag.timestamp : started_by_job(config, tag.jobs[0]);
        repair->ended = pending ? 0 : tag.timestamp;
        repair->jobs = g_strdupv(tag.jobs);
        g_ptr_array_add(rows, repair);
    }
    repair_tag_clear(&tag);
}

/* By instance; of one instance the oldest first. */
static gint compare_repairs(gconstpointer left, gconstpointer right)
{
    const struct query_repair *a = *(const struct query_repair *const *)left;
    const struct query_repair *b = *(const struct query_repair *const *)right;
    gint64 at = a->started != 0 ? a->started : a->ended;
    gint64 bt = b->started != 0 ? b->started : b->ended;
    gint order = g_strcmp0(a->instance, b->instance);
    if (order != 0)
        return order;
    if (at != bt)
        return at < bt ? -1 : 1;
    return g_strcmp0(a->id, b->id);
}

GPtrArray *query_repair_rows(const struct config *config)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(repair_free);
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        g_autoptr(GPtrArray) tags = config_tags(config, TAG_INSTANCE, instance->uuid);
        for (guint k = 0; k < tags->len; k++)
            add_repair(rows, config, instance, tags->pdata[k]);
    }
    g_ptr_array_sort(rows, compare_repairs);
    return rows;
}

json_t *query_get_repair_id(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    return json_string(((const struct query_repair *)row)->id);
}

json_t *query_get_repair_instance(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return json_string(((const struct query_repair *)row)->instance);
}

json_t *query_get_repair_type(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return json_string(((const struct query_repair *)row)->type);
}

json_t *query_get_repair_state(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_string(((const struct query_repair *)row)->state);
}

json_t *query_get_repair_started(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    gint64 started = ((const struct query_repair *)row)->started;
    return started == 0 ? NULL : json_integer(started);
}

json_t *query_get_repair_ended(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    gint64 ended = ((const struct query_repair *)row)->ended;
    return ended == 0 ? NULL : json_integer(ended);
}

json_t *query_get_repair_jobs(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct query_repair *repair = row;
    json_t *jobs = json_array();
    for (char **job = repair->jobs; job && *job; job++) {
        guint64 id;
        if (g_ascii_string_to_unsigned(*job, 10, 1, G_MAXINT64, &id, NULL))
            json_array_append_new(jobs, json_integer((json_int_t)id));
        else
            json_array_append_new(jobs, json_string(*job));
    }
    return jobs;
}

/* --- policies --- */

static void add_policy(GPtrArray *rows, enum tag_kind kind, const char *uuid, const char *name)
{
    struct query_policy *policy = g_new(struct query_policy, 1);
    *policy = (struct query_policy){kind, uuid, name};
    g_ptr_array_add(rows, policy);
}

GPtrArray *query_policy_rows(const struct config *config)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(g_free);
    const struct cluster *cluster = config_cluster(config);
    g_autoptr(GPtrArray) groups = config_list(config, "nodegroup");
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    if (cluster)
        add_policy(rows, TAG_CLUSTER, cluster->uuid, cluster->name);
    for (guint i = 0; i < groups->len; i++) {
        const struct nodegroup *group = groups->pdata[i];
        add_policy(rows, TAG_NODEGROUP, group->uuid, group->name);
    }
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        add_policy(rows, TAG_INSTANCE, instance->uuid, instance->name);
    }
    return rows;
}

static struct repair_policy policy_of(const struct query_source *source, const void *row)
{
    const struct query_policy *policy = row;
    const struct env *env = source->queries->env;
    return repair_policy_of_object(source->config, policy->kind, policy->uuid,
                                   env->ops->wall_us(env) / G_USEC_PER_SEC);
}

json_t *query_get_policy_kind(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return json_string(enum_word(&tag_kind_words, (int)((const struct query_policy *)row)->kind));
}

json_t *query_get_policy_name(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return json_string(((const struct query_policy *)row)->name);
}

json_t *query_get_policy_policy(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    return json_string(policy_of(source, row).text);
}

json_t *query_get_policy_state(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    static const char *const words[] = {[REPAIR_POLICY_ABSENT] = "none",
                                        [REPAIR_POLICY_ENABLED] = "enabled",
                                        [REPAIR_POLICY_SUSPENDED] = "suspended"};
    return json_string(words[policy_of(source, row).kind]);
}

json_t *query_get_policy_type(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    struct repair_policy policy = policy_of(source, row);
    return policy.kind == REPAIR_POLICY_ENABLED ? json_string(repair_type_name(policy.type)) : NULL;
}

json_t *query_get_policy_until(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    struct repair_policy policy = policy_of(source, row);
    return policy.kind == REPAIR_POLICY_SUSPENDED && !policy.forever ? json_integer(policy.until)
                                                                     : NULL;
}

json_t *query_get_policy_tags(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct query_policy *policy = row;
    g_autoptr(GPtrArray) tags = repair_policy_tags(source->config, policy->kind, policy->uuid);
    return query_strings(tags);
}

/* --- the storm brake, advice --- */

json_t *query_get_brake_nodes(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    const struct repair_brake *brake = row;
    json_t *names = json_array();
    for (guint i = 0; i < brake->nodes->len; i++)
        json_array_append_new(
            names, json_string(config_node_name(source->config, brake->nodes->pdata[i])));
    return names;
}

static gint compare_advice(gconstpointer left, gconstpointer right, gpointer data)
{
    const struct advice *a = *(const struct advice *const *)left;
    const struct advice *b = *(const struct advice *const *)right;
    int order = g_strcmp0(config_node_name(data, a->subject), config_node_name(data, b->subject));
    return order != 0 ? order : g_strcmp0(a->author, b->author);
}

GPtrArray *query_advice_rows(const struct config *config)
{
    GPtrArray *rows = config_list(config, "advice");
    g_ptr_array_sort_with_data(rows, compare_advice, (void *)config);
    return rows;
}

json_t *query_get_advice_node(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return json_string(config_node_name(source->config, ((const struct advice *)row)->subject));
}
