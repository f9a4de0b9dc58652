/* See plan.h. */
#include "core/repair/plan.h"

enum node_health { NODE_ONLINE, NODE_DRAINED, NODE_OFFLINE };

static const struct {
    const char *name;
    const char *opcode;
    enum repair_type type;
} steps[] = {
    [REPAIR_STEP_NONE] = {"nothing", NULL, REPAIR_FIX_STORAGE},
    [REPAIR_STEP_REPLACE_DISKS] = {"replace-disks", "OP_INSTANCE_REPLACE_DISKS",
                                   REPAIR_FIX_STORAGE},
    [REPAIR_STEP_MIGRATE] = {"migrate", NULL, REPAIR_MIGRATE},
    [REPAIR_STEP_FAILOVER] = {"failover", "OP_INSTANCE_FAILOVER", REPAIR_FAILOVER},
    [REPAIR_STEP_REINSTALL] = {"recreate-disks and reinstall", NULL, REPAIR_REINSTALL},
};

struct row {
    enum repair_step step;
    enum repair_type needed;
};

/* [primary][secondary]; a replica that is not in sync counts as an offline secondary. */
static const struct row mirror_rows[3][3] = {
    [NODE_ONLINE] = {{REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
                     {REPAIR_STEP_REPLACE_DISKS, REPAIR_FIX_STORAGE},
                     {REPAIR_STEP_REPLACE_DISKS, REPAIR_FIX_STORAGE}},
    [NODE_DRAINED] = {{REPAIR_STEP_MIGRATE, REPAIR_MIGRATE},
                      {REPAIR_STEP_REPLACE_DISKS, REPAIR_MIGRATE},
                      {REPAIR_STEP_REPLACE_DISKS, REPAIR_MIGRATE}},
    [NODE_OFFLINE] = {{REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                      {REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                      {REPAIR_STEP_REINSTALL, REPAIR_REINSTALL}},
};

/* Templates whose data every node can reach, or that have none to lose. */
static const struct row shared_rows[3] = {
    [NODE_ONLINE] = {REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
    [NODE_DRAINED] = {REPAIR_STEP_MIGRATE, REPAIR_MIGRATE},
    [NODE_OFFLINE] = {REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
};

static void see(struct repair_plan *plan, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void see(struct repair_plan *plan, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(plan->evidence, g_strdup_vprintf(format, args));
    va_end(args);
}

static enum node_health node_health(const struct config *config, const char *uuid, const char *as,
                                    struct repair_plan *plan)
{
    const struct node *node = config_get(config, "node", uuid, NULL);
    if (node == NULL) {
        see(plan, "%s node %s does not exist any more", as, uuid);
        return NODE_OFFLINE;
    }
    if (node->offline) {
        see(plan, "%s node %s is offline%s%s", as, node->name, *node->offline_statement ? ": " : "",
            node->offline_statement);
        return NODE_OFFLINE;
    }
    if (node->drained) {
        see(plan, "%s node %s is drained", as, node->name);
        return NODE_DRAINED;
    }
    return NODE_ONLINE;
}

/* The secondary's side: its node, and what is on record of the replica. */
static enum node_health replica_health(const struct config *config, const struct instance *instance,
                                       const struct guest_report *report, struct repair_plan *plan)
{
    const struct replica *replica =
        *instance->replica ? config_get(config, "replica", instance->replica, NULL) : NULL;
    if (replica == NULL) {
        see(plan, "it has no replica");
        return NODE_OFFLINE;
    }
    enum node_health health = node_health(config, replica->node, "secondary", plan);
    if (health == NODE_OFFLINE || replica->state == REPLICA_IN_SYNC)
        return health;
    see(plan, "its replica on %s is %s%s%s", config_node_name(config, replica->node),
        enum_word(&replica_state_words, (int)replica->state), *replica->why ? ": " : "",
        replica->why);
    bool copying = replica->state == REPLICA_SYNCING &&
                   (instance->task_state != TASK_NONE || report == NULL ||
                    report->mirror == MIRROR_SYNCING || report->mirror == MIRROR_READY);
    plan->wait = copying && *instance->holder;
    return NODE_OFFLINE;
}

struct repair_plan repair_plan_of(const struct config *config, const struct instance *instance,
                                  const struct guest_report *report)
{
    struct repair_plan plan = {.evidence = g_ptr_array_new_with_free_func(g_free)};
    enum node_health primary = node_health(config, instance->primary_node, "primary", &plan);
    struct row row = shared_rows[primary];
    if (instance->disk_template == TEMPLATE_MIRROR)
        row = mirror_rows[primary][replica_health(config, instance, report, &plan)];
    /* A copy that runs is waited for; the copy of a dead primary goes nowhere. */
    plan.wait = plan.wait && primary != NODE_OFFLINE;
    plan.healthy = row.step == REPAIR_STEP_NONE;
    plan.step = row.step;
    plan.step_type = steps[row.step].type;
    plan.needed = row.needed;
    return plan;
}

void repair_plan_clear(struct repair_plan *plan)
{
    g_clear_pointer(&plan->evidence, g_ptr_array_unref);
}

const char *repair_step_name(enum repair_step step)
{
    return steps[step].name;
}

const char *repair_step_by_hand(enum repair_step step)
{
    return step == REPAIR_STEP_MIGRATE ? "which this version cannot do: stop it and move it by hand"
                                       : "which would give up its data and is left to a person";
}

const char *repair_step_opcode(enum repair_step step)
{
    return steps[step].opcode;
}
