/*
 * Ganeti's opcodes that check the cluster. What is found is what luxid answers to Verify
 * (core/verify), which `fettle cluster verify` prints too: here it goes to the log of a job, a line
 * each, and the job's result says whether nothing was wrong. They lock nothing and change nothing.
 */
#include "core/ops/instance.h"
#include "core/ops/ops.h"

static bool lock_nothing(struct op *op, GError **error)
{
    return true;
}

static bool group_exists(struct op *op, const char *name, GError **error)
{
    return !*name || config_find(op_config(op), "nodegroup", name, error);
}

/* --- what others do in their jobs --- */

static json_t *group_job(const char *id, const char *name)
{
    return json_make("[{ss ss}]", "OP_ID", id, "group_name", name);
}

/* `jobs` is stolen; with one for each group, or for the one that is named. */
static void submit_groups(struct op *op, json_t *jobs, const char *id, const char *name)
{
    g_autoptr(GPtrArray) groups = config_list(op_config(op), "nodegroup");
    for (guint i = 0; !*name && i < groups->len; i++)
        json_array_append_new(jobs,
                              group_job(id, ((const struct nodegroup *)groups->pdata[i])->name));
    if (*name)
        json_array_append_new(jobs, group_job(id, name));
    op->result = json_make("{so}", "jobs", jobs);
}

static bool verify_check(struct op *op, GError **error)
{
    return group_exists(op, ((const struct op_cluster_verify *)op->params)->group_name, error);
}

static bool verify_exec(struct op *op, GError **error)
{
    const struct op_cluster_verify *params = op->params;
    json_t *jobs = json_array();
    if (!*params->group_name)
        json_array_append_new(jobs, json_make("[{ss}]", "OP_ID", "OP_CLUSTER_VERIFY_CONFIG"));
    submit_groups(op, jobs, "OP_CLUSTER_VERIFY_GROUP", params->group_name);
    return true;
}

static bool disks_check(struct op *op, GError **error)
{
    return group_exists(op, ((const struct op_cluster_verify_disks *)op->params)->group_name,
                        error);
}

static bool disks_exec(struct op *op, GError **error)
{
    const struct op_cluster_verify_disks *params = op->params;
    submit_groups(op, json_array(), "OP_GROUP_VERIFY_DISKS", params->group_name);
    return true;
}

/* --- looking --- */

static void log_each(struct op *op, const json_t *sentences, const char *kind)
{
    size_t i;
    const json_t *sentence;
    json_array_foreach(sentences, i, sentence)
        op_log(op, "  - %s: %s", kind, json_string_value(sentence));
}

/* Again while luxid has too much of that kind to do, or is away: it only looks. `args` is stolen.
 */
static json_t *ask_luxid(struct op *op, json_t *args, GError **error)
{
    json_autoptr held = args;
    for (;;) {
        g_autoptr(GError) local = NULL;
        struct rpc_call call = {.to_node = NODE_LOCAL,
                                .to_role = ROLE_LUXID,
                                .method = "Verify",
                                .args = json_incref(held)};
        json_t *answer = env_call_wait(op->env, &call, &local);
        if (answer)
            return answer;
        bool busy = fettle_error_is(local, TEMPORARY) || env_no_answer(local);
        if (busy && op_canceled(op)) {
            op_give_up(error);
            return NULL;
        }
        if (!busy || !env_sleep(op->env, JOB_RETRY_MS)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return NULL;
        }
    }
}

/* `args` is stolen. */
static bool look(struct op *op, json_t *args, GError **error)
{
    json_autoptr answer = ask_luxid(op, args, error);
    const json_t *problems = json_object_get(answer, "problems");
    if (!answer)
        return false;
    if (!json_is_array(problems)) {
        fettle_set_error(error, PROTOCOL, "luxid answered Verify with something else");
        return false;
    }
    log_each(op, problems, "ERROR");
    log_each(op, json_object_get(answer, "notes"), "NOTICE");
    op->result = json_boolean(json_array_size(problems) == 0);
    return true;
}

static bool nothing_to_check(struct op *op, GError **error)
{
    return true;
}

static bool config_exec(struct op *op, GError **error)
{
    op_log(op, "* Checking the cluster itself");
    return look(op, json_make("[s, s, b]", "", "", 1), error);
}

static bool group_check(struct op *op, GError **error)
{
    return group_exists(op, ((const struct op_cluster_verify_group *)op->params)->group_name,
                        error);
}

static bool group_exec(struct op *op, GError **error)
{
    const struct op_cluster_verify_group *params = op->params;
    op_log(op, "* Checking group %s", params->group_name);
    return look(op, json_make("[s, s, b]", "", params->group_name, 0), error);
}

/* --- disks --- */

static bool group_disks_check(struct op *op, GError **error)
{
    return group_exists(op, ((const struct op_group_verify_disks *)op->params)->group_name,
                        error) &&
           instance_gather_online(op, error);
}

/* {node: why}. */
static json_t *silent_nodes(const struct op *op, const struct nodegroup *group)
{
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    json_t *silent = json_object();
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->offline || !g_str_equal(node->group, group->uuid) || op_report(op, node->uuid))
            continue;
        g_autofree char *why = op_no_report(op, node->uuid);
        json_object_set_new(silent, node->name, json_string(why));
    }
    return silent;
}

/* Whether OP_INSTANCE_ACTIVATE_DISKS has something to do. */
static bool is_behind(const struct config *config, const struct instance *instance)
{
    const struct replica *replica =
        *instance->replica ? config_get(config, "replica", instance->replica, NULL) : NULL;
    return instance->admin_state == ADMIN_DOWN && replica && replica->state != REPLICA_IN_SYNC;
}

static json_t *instances_behind(const struct op *op, const struct nodegroup *group)
{
    const struct config *config = op_config(op);
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    json_t *behind = json_array();
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        const struct node *node = config_get(config, "node", instance->primary_node, NULL);
        if (node && g_str_equal(node->group, group->uuid) && is_behind(config, instance))
            json_array_append_new(behind, json_string(instance->name));
    }
    return behind;
}

static bool group_disks_exec(struct op *op, GError **error)
{
    const struct op_group_verify_disks *params = op->params;
    const struct nodegroup *group =
        config_find(op_config(op), "nodegroup", params->group_name, error);
    if (!group)
        return false;
    op->result = json_make("[o, o, {}]", silent_nodes(op, group), instances_behind(op, group));
    return true;
}

const struct op_impl ops_verify_cluster[] = {
    {"OP_CLUSTER_VERIFY", lock_nothing, verify_check, verify_exec, SEES_NAMED, .submits = true},
    {"OP_CLUSTER_VERIFY_CONFIG", lock_nothing, nothing_to_check, config_exec, SEES_NAMED},
    {"OP_CLUSTER_VERIFY_GROUP", lock_nothing, group_check, group_exec, SEES_NAMED},
    {"OP_CLUSTER_VERIFY_DISKS", lock_nothing, disks_check, disks_exec, SEES_NAMED, .submits = true},
    {"OP_GROUP_VERIFY_DISKS", lock_nothing, group_disks_check, group_disks_exec, SEES_ALL},
    {0},
};
