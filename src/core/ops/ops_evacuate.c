/*
 * OP_NODE_MIGRATE and OP_NODE_EVACUATE: which jobs empty a node. They change nothing themselves:
 * the jobs are their result, and luxid queues them in the commit that ends this one, so that none
 * is lost and none comes twice (core/queue/child_jobs.h).
 *
 * What is done with an instance, step by step, is what auto-repair would do with it if the node
 * were drained (or is offline): the same table decides (core/repair/plan.h), on a small copy of the
 * configuration in which each step is taken for done before the next is asked for. A person may ask
 * for one thing more: local disks are migrated too.
 */
#include "core/ops/ops.h"
#include "core/repair/plan.h"

#include <string.h>

#define ELSEWHERE "00000000-0000-4000-8000-000000000000" /* a node that will be chosen */
#define LIMIT_STEPS 4                                    /* of the longest row of the table */

/* What is asked for, by either opcode. */
struct emptying {
    struct op *op;
    const struct node *node;
    const char *target; /* name of the node that takes them; "" for a choice */
    enum evacuate_mode mode;
    enum migration_mode migration;
    bool allow_failover;
    guint64 bandwidth, downtime_ms, timeout; /* of each migration */
    json_t *jobs;                            /* lists of opcodes */
    json_t *failed;                          /* [instance, reason] */
};

/* --- opcodes --- */

static json_t *opcode(const struct emptying *emptying, const char *id,
                      const struct instance *instance)
{
    const struct op_common *common = emptying->op->common;
    json_t *json = json_make("{ss ss sI}", "OP_ID", id, "instance_name", instance->name, "priority",
                             (json_int_t)common->priority);
    if (common->reason)
        json_object_set(json, "reason", common->reason);
    return json;
}

static json_t *migrate_op(const struct emptying *emptying, const struct instance *instance)
{
    json_t *json = opcode(emptying, "OP_INSTANCE_MIGRATE", instance);
    bool anywhere = instance->disk_template != TEMPLATE_MIRROR;
    json_object_set_new(json, "mode",
                        json_string(enum_word(&migration_mode_words, (int)emptying->migration)));
    json_object_set_new(json, "allow_failover", json_boolean(emptying->allow_failover));
    json_object_set_new(json, "bandwidth", json_integer((json_int_t)emptying->bandwidth));
    json_object_set_new(json, "downtime_ms", json_integer((json_int_t)emptying->downtime_ms));
    json_object_set_new(json, "timeout", json_integer((json_int_t)emptying->timeout));
    if (anywhere && *emptying->target)
        json_object_set_new(json, "target_node", json_string(emptying->target));
    return json;
}

static json_t *failover_op(const struct emptying *emptying, const struct instance *instance)
{
    json_t *json = opcode(emptying, "OP_INSTANCE_FAILOVER", instance);
    if (instance->disk_template != TEMPLATE_MIRROR && *emptying->target)
        json_object_set_new(json, "target_node", json_string(emptying->target));
    return json;
}

static json_t *replace_op(const struct emptying *emptying, const struct instance *instance,
                          const char *target)
{
    json_t *json = opcode(emptying, "OP_INSTANCE_REPLACE_DISKS", instance);
    json_object_set_new(json, "mode",
                        json_string(enum_word(&replace_mode_words, REPLACE_NEW_SECONDARY)));
    if (*target)
        json_object_set_new(json, "remote_node", json_string(target));
    return json;
}

/* --- the table, step by step --- */

static void copy_object(struct config *to, const char *kind, const char *key, json_t *object)
{
    record_autoptr(change) change = config_put(to, kind, key, object);
    config_apply(to, change, NULL); /* it has been read once already */
}

static void copy_node(const struct emptying *emptying, struct config *to, const char *uuid)
{
    json_t *node = config_object_json(op_config(emptying->op), "node", uuid);
    if (node && !strcmp(uuid, emptying->node->uuid))
        json_object_set_new(node, "drained", json_true());
    if (node)
        copy_object(to, "node", uuid, node);
}

static struct config *small_copy(const struct emptying *emptying, const struct instance *instance)
{
    struct config *copy = config_new();
    const struct config *config = op_config(emptying->op);
    json_t *replica = config_object_json(config, "replica", instance->replica);
    copy_node(emptying, copy, instance->primary_node);
    if (*instance->secondary_node)
        copy_node(emptying, copy, instance->secondary_node);
    if (replica)
        copy_object(copy, "replica", instance->replica, replica);
    copy_object(copy, "node", ELSEWHERE,
                json_make("{ss ss ss ss}", "uuid", ELSEWHERE, "name", "elsewhere", "primary_ip",
                          "-", "group", emptying->node->group));
    copy_object(copy, "instance", instance->uuid, instance_to_json(instance));
    return copy;
}

/* Its disks are on `primary` then, and a whole copy on `secondary` ("" for none). */
static void take_as_done(struct config *copy, const char *uuid, const char *primary,
                         const char *secondary)
{
    json_t *instance = config_object_json(copy, "instance", uuid);
    json_object_set_new(instance, "primary_node", json_string(primary));
    json_object_set_new(instance, "secondary_node", json_string(secondary));
    json_object_set_new(instance, "replica", json_string(*secondary ? ELSEWHERE : ""));
    if (*secondary)
        copy_object(copy, "replica", ELSEWHERE,
                    json_make("{ss ss ss si si ss}", "uuid", ELSEWHERE, "instance", uuid, "node",
                              secondary, "generation", 0, "sync", 1, "state", "in-sync"));
    copy_object(copy, "instance", uuid, instance);
}

static bool still_there(const struct emptying *emptying, const struct instance *instance)
{
    bool primary = !strcmp(instance->primary_node, emptying->node->uuid);
    bool secondary = !strcmp(instance->secondary_node, emptying->node->uuid);
    switch (emptying->mode) {
    case EVACUATE_PRIMARY:
        return primary;
    case EVACUATE_SECONDARY:
        return secondary && !primary;
    case EVACUATE_ALL:
        break;
    }
    return primary || secondary;
}

/* Moved away, it is not left without a replica. */
static bool unfinished(const struct emptying *emptying, const struct instance *instance)
{
    bool bare = instance->disk_template == TEMPLATE_MIRROR && !*instance->replica;
    return still_there(emptying, instance) || bare;
}

/* One step: its opcode, and the small copy after it. NULL: the table has none that keeps the data.
 */
static json_t *next_step(const struct emptying *emptying, struct config *copy,
                         const struct instance *instance, bool *target_used)
{
    const struct repair_evidence unseen = {.told = true};
    const struct replica *replica = config_get(copy, "replica", instance->replica, NULL);
    struct repair_plan plan = repair_plan_of(copy, instance, replica, &unseen);
    enum repair_step step = plan.step;
    repair_plan_clear(&plan);
    bool mirrored = instance->disk_template == TEMPLATE_MIRROR;
    g_autofree char *uuid = g_strdup(instance->uuid);
    g_autofree char *from = g_strdup(instance->primary_node);
    g_autofree char *to = g_strdup(mirrored ? instance->secondary_node : ELSEWHERE);
    json_t *opcode = NULL;
    if (step == REPAIR_STEP_REPLACE_DISKS) {
        opcode = replace_op(emptying, instance, *target_used ? "" : emptying->target);
        *target_used = true;
        take_as_done(copy, uuid, from, ELSEWHERE);
    } else if (step == REPAIR_STEP_MIGRATE) {
        opcode = migrate_op(emptying, instance);
        take_as_done(copy, uuid, to, mirrored ? from : "");
    } else if (step == REPAIR_STEP_FAILOVER) {
        opcode = failover_op(emptying, instance);
        take_as_done(copy, uuid, to, "");
    }
    return opcode;
}

static json_t *steps_of(const struct emptying *emptying, const struct instance *instance)
{
    struct config *copy = small_copy(emptying, instance);
    json_t *steps = json_array();
    bool target_used = false;
    for (guint i = 0; i < LIMIT_STEPS; i++) {
        const struct instance *now = config_get(copy, "instance", instance->uuid, NULL);
        json_t *step =
            unfinished(emptying, now) ? next_step(emptying, copy, now, &target_used) : NULL;
        if (!step)
            break;
        json_array_append_new(steps, step);
    }
    const struct instance *end = config_get(copy, "instance", instance->uuid, NULL);
    if (still_there(emptying, end))
        json_array_clear(steps);
    config_free(copy);
    return steps;
}

/* --- one instance --- */

static void add_failed(struct emptying *emptying, const struct instance *instance, const char *why)
{
    op_log(emptying->op, "%s stays: %s", instance->name, why);
    json_array_append_new(emptying->failed, json_make("[s, s]", instance->name, why));
}

/* Local disks: only a running guest takes them along. */
static void empty_local(struct emptying *emptying, const struct instance *instance)
{
    if (emptying->node->offline)
        add_failed(emptying, instance, "its disks are on this node only, which is offline");
    else if (!*instance->holder)
        add_failed(
            emptying, instance,
            "its disks are on this node only, and only a running guest takes them along; start "
            "it, and say it again");
    else
        json_array_append_new(emptying->jobs, json_make("[o]", migrate_op(emptying, instance)));
}

static void empty_one(struct emptying *emptying, const struct instance *instance)
{
    if (instance->disk_template == TEMPLATE_FILE) {
        empty_local(emptying, instance);
        return;
    }
    json_t *steps = steps_of(emptying, instance);
    if (json_array_size(steps)) {
        json_array_append_new(emptying->jobs, steps);
        return;
    }
    json_decref(steps);
    add_failed(emptying, instance,
               "its node is offline and no replica in sync is left, so moving it would give up its "
               "data");
}

static void empty_node(struct emptying *emptying)
{
    struct op *op = emptying->op;
    g_autoptr(GPtrArray) instances = config_list(op_config(op), "instance");
    guint left = 0;
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (!still_there(emptying, instance))
            continue;
        if (json_array_size(emptying->jobs) < LIMIT_JOBS_PER_CALL)
            empty_one(emptying, instance);
        else
            left++;
    }
    if (left)
        op_log(op, "%u instance%s left for the next time: one job gives out at most %d others",
               left, left == 1 ? " is" : "s are", LIMIT_JOBS_PER_CALL);
    size_t jobs = json_array_size(emptying->jobs);
    op_log(op, "%zu job%s queued when this one has ended", jobs, jobs == 1 ? " is" : "s are");
}

static void run_emptying(struct emptying *emptying)
{
    emptying->jobs = json_array();
    emptying->failed = json_array();
    empty_node(emptying);
    emptying->op->result = json_make("{so so}", "jobs", emptying->jobs, "failed", emptying->failed);
}

/* --- the opcodes --- */

/* Nothing is touched, so nothing is locked: the jobs lock what they touch. */
static bool node_exists(struct op *op, const char *name, GError **error)
{
    return op_find_node(op, name, error) != NULL;
}

static bool target_is_good(const struct op *op, const struct node *node, const char *name,
                           GError **error)
{
    const struct node *target = *name ? op_find_node(op, name, error) : NULL;
    if (!*name)
        return true;
    if (!target)
        return false;
    if (target == node)
        fettle_set_error(error, WRONG_INPUT, "node \"%s\" is the one that is to be emptied",
                         node->name);
    else if (target->offline || target->drained)
        fettle_set_error(error, WRONG_STATE, "node \"%s\" is %s and takes no instances",
                         target->name, target->offline ? "offline" : "drained");
    else
        return true;
    return false;
}

static bool migrate_declare(struct op *op, GError **error)
{
    return node_exists(op, ((const struct op_node_migrate *)op->params)->node_name, error);
}

static bool migrate_check(struct op *op, GError **error)
{
    const struct op_node_migrate *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node)
        return false;
    if (!node->offline)
        return target_is_good(op, node, params->target_node, error);
    fettle_set_error(error, WRONG_STATE,
                     "node \"%s\" is offline, so nothing runs there that could migrate; use node "
                     "evacuate",
                     node->name);
    return false;
}

/* Only the first steps: whoever wants the replicas moved too evacuates the node. */
static bool migrate_exec(struct op *op, GError **error)
{
    const struct op_node_migrate *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node)
        return false;
    struct emptying emptying = {.op = op,
                                .node = node,
                                .target = params->target_node,
                                .mode = EVACUATE_PRIMARY,
                                .migration = params->mode,
                                .allow_failover = params->allow_failover,
                                .bandwidth = params->bandwidth,
                                .downtime_ms = params->downtime_ms,
                                .timeout = params->timeout};
    run_emptying(&emptying);
    return true;
}

static bool evacuate_declare(struct op *op, GError **error)
{
    return node_exists(op, ((const struct op_node_evacuate *)op->params)->node_name, error);
}

static bool evacuate_check(struct op *op, GError **error)
{
    const struct op_node_evacuate *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    return node && target_is_good(op, node, params->remote_node, error);
}

static bool evacuate_exec(struct op *op, GError **error)
{
    const struct op_node_evacuate *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node)
        return false;
    struct emptying emptying = {.op = op,
                                .node = node,
                                .target = params->remote_node,
                                .mode = params->mode,
                                .migration = MIGRATION_LIVE,
                                .allow_failover = true,
                                .bandwidth = params->bandwidth,
                                .downtime_ms = params->downtime_ms,
                                .timeout = params->timeout};
    run_emptying(&emptying);
    return true;
}

const struct op_impl ops_evacuate[] = {
    {"OP_NODE_MIGRATE", migrate_declare, migrate_check, migrate_exec, .submits = true},
    {"OP_NODE_EVACUATE", evacuate_declare, evacuate_check, evacuate_exec, .submits = true},
    {NULL},
};
