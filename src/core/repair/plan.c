/* See plan.h. */
#include "core/repair/plan.h"

#include "core/config/fault.h"
#include "core/config/unheard.h"
#include "core/report/report_lookup.h"

/* FAILED: it answers, and its disks have failed. BARRED: it answers, and can start nothing; of
 * primaries only. */
enum node_health { NODE_ONLINE, NODE_DRAINED, NODE_FAILED, NODE_OFFLINE, NODE_BARRED };

static const struct {
    const char *name, *word;
    enum repair_type type;
} steps[] = {
    [REPAIR_STEP_NONE] = {"nothing", "none", REPAIR_FIX_STORAGE},
    [REPAIR_STEP_REPLACE_DISKS] = {"replace-disks", "replace-disks", REPAIR_FIX_STORAGE},
    [REPAIR_STEP_MIGRATE] = {"migrate", "migrate", REPAIR_MIGRATE},
    [REPAIR_STEP_FAILOVER] = {"failover", "failover", REPAIR_FAILOVER},
    [REPAIR_STEP_REINSTALL] = {"recreate-disks and reinstall", "reinstall", REPAIR_REINSTALL},
};

struct row {
    enum repair_step step;
    enum repair_type needed;
};

/* [primary][secondary]; a replica that is not in sync counts as an offline secondary. Nothing is
 * given up while a node that answers may have it: where the primary is gone, a replica in sync on
 * failed disks is still the one to try. A copy to a new replica saves what failed disks still give.
 */
static const struct row mirror_rows[5][4] = {
    [NODE_ONLINE] = {{REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
                     {REPAIR_STEP_REPLACE_DISKS, REPAIR_FIX_STORAGE},
                     {REPAIR_STEP_REPLACE_DISKS, REPAIR_FIX_STORAGE},
                     {REPAIR_STEP_REPLACE_DISKS, REPAIR_FIX_STORAGE}},
    [NODE_DRAINED] = {{REPAIR_STEP_MIGRATE, REPAIR_MIGRATE},
                      {REPAIR_STEP_REPLACE_DISKS, REPAIR_MIGRATE},
                      {REPAIR_STEP_REPLACE_DISKS, REPAIR_MIGRATE},
                      {REPAIR_STEP_REPLACE_DISKS, REPAIR_MIGRATE}},
    [NODE_FAILED] = {{REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                     {REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                     {REPAIR_STEP_NONE, REPAIR_FAILOVER},
                     {REPAIR_STEP_REPLACE_DISKS, REPAIR_FAILOVER}},
    [NODE_OFFLINE] = {{REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                      {REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                      {REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                      {REPAIR_STEP_REINSTALL, REPAIR_REINSTALL}},
    [NODE_BARRED] = {{REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                     {REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
                     {REPAIR_STEP_NONE, REPAIR_FAILOVER},
                     {REPAIR_STEP_NONE, REPAIR_FAILOVER}},
};

/* Data that every node can reach, or none to lose. */
static const struct row shared_rows[5] = {
    [NODE_ONLINE] = {REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
    [NODE_DRAINED] = {REPAIR_STEP_MIGRATE, REPAIR_MIGRATE},
    [NODE_FAILED] = {REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
    [NODE_OFFLINE] = {REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
    [NODE_BARRED] = {REPAIR_STEP_FAILOVER, REPAIR_FAILOVER},
};

/* Data on one node only. On a drained one it is there and alive, on failed disks it may be: nothing
 * is done to it. */
static const struct row local_rows[5] = {
    [NODE_ONLINE] = {REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
    [NODE_DRAINED] = {REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
    [NODE_FAILED] = {REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
    [NODE_OFFLINE] = {REPAIR_STEP_REINSTALL, REPAIR_REINSTALL},
    [NODE_BARRED] = {REPAIR_STEP_NONE, REPAIR_FIX_STORAGE},
};

#define LEFT_DRAINED                                                                               \
    "Its only data is there and alive: reinstalling would destroy it. Move it by hand: fettle "    \
    "instance migrate."
#define LEFT_FAILED                                                                                \
    "What its disks still give is its only data: save that, then mark the node offline or "        \
    "reinstall it by hand."
#define LEFT_BOTH_FAILED                                                                           \
    "The disks below its replica have failed too: it is not stopped for a copy that may not be "   \
    "there. Mend the disks of one of the two nodes, or save what they give."
#define LEFT_BARRED                                                                                \
    "No other node has a whole copy of its data: it goes on when the state of its node can be "    \
    "written again."
#define LEFT_SHARED_FAILED                                                                         \
    "Its disks are in the folder that all nodes share, and another node would see the same: mend " \
    "that folder, then restart it: fettle instance reboot."

#define LEFT_UNHEARD                                                                               \
    "A master that is lost may have put on record that its replica is stale, and its node cannot " \
    "tell: if that may be promoted all the same, say: fettle instance failover."

bool repair_template_mirrored(enum disk_template template)
{
    return template == TEMPLATE_MIRROR;
}

bool repair_template_shared(enum disk_template template)
{
    return template == TEMPLATE_SHAREDFILE || template == TEMPLATE_DISKLESS;
}

const char *repair_healthy_text(enum disk_template template)
{
    if (repair_template_mirrored(template))
        return "All its nodes are online and its replica is in sync";
    if (template == TEMPLATE_DISKLESS)
        return "Its node is online, and it has no disks";
    return repair_template_shared(template)
               ? "Its node is online, and its disks are in the folder that all nodes share"
               : "Its node is online; its disks are there and nowhere else";
}

/* --- seeing --- */

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
        see(plan, "%s node %s is offline: %s", as, node->name,
            *node->offline_statement ? node->offline_statement
                                     : "a person's word, without a statement");
        return NODE_OFFLINE;
    }
    if (node->drained) {
        see(plan, "%s node %s is drained", as, node->name);
        return NODE_DRAINED;
    }
    return NODE_ONLINE;
}

/* How it ended last, if that leaves its replica the only copy that is sure to be whole: nothing is
 * started from the other (SAF-24). */
static const char *unsound_end(const struct instance *instance, const struct replica *replica)
{
    if (replica == NULL || replica->state != REPLICA_IN_SYNC || *instance->holder != '\0' ||
        instance->clean || instance->sound == SOUND_YES)
        return NULL;
    return instance->sound == SOUND_NO ? "says that its images of it were not whole when it ended"
                                       : "does not know whether its images of it are whole";
}

/* How the disks have failed that the instance runs from; NULL: they are not known to have. What a
 * node finds of its own disks is nothing to guests whose data are elsewhere. */
static const char *failure_of(const struct instance *instance, const struct replica *replica,
                              const struct repair_evidence *sight)
{
    if (sight->guest_failed != NULL)
        return sight->guest_failed;
    if (repair_template_shared(instance->disk_template))
        return NULL;
    return sight->primary_failed != NULL ? sight->primary_failed : unsound_end(instance, replica);
}

static enum node_health primary_health(const struct config *config, const struct instance *instance,
                                       const struct replica *replica,
                                       const struct repair_evidence *sight,
                                       struct repair_plan *plan)
{
    enum node_health health = node_health(config, instance->primary_node, "primary", plan);
    const char *failure = failure_of(instance, replica, sight);
    if (health == NODE_ONLINE && failure == NULL && sight->no_room) {
        see(plan,
            "it stands still for lack of room on primary node %s; its replica's node has some",
            config_node_name(config, instance->primary_node));
        return NODE_DRAINED;
    }
    const char *why = failure != NULL ? failure : sight->primary_barred;
    if (health == NODE_OFFLINE || why == NULL)
        return health;
    see(plan, "primary node %s %s", config_node_name(config, instance->primary_node), why);
    return failure != NULL ? NODE_FAILED : NODE_BARRED;
}

/* A copy that somebody carries on. Without an answer of the holder's node it is taken to be one. */
static bool copying(const struct config *config, const struct instance *instance,
                    const struct replica *replica, const struct guest_report *guest)
{
    return replica->state == REPLICA_SYNCING && *instance->holder != '\0' &&
           (fault_mark(config, instance, NULL) != TASK_NONE || guest == NULL ||
            guest->mirror == MIRROR_SYNCING || guest->mirror == MIRROR_READY);
}

/* The secondary's side: its node, what is on record of the replica, and what that node has. */
static enum node_health replica_health(const struct config *config, const struct instance *instance,
                                       const struct replica *replica,
                                       const struct repair_evidence *sight,
                                       struct repair_plan *plan)
{
    if (replica == NULL) {
        see(plan, "it has no replica");
        return NODE_OFFLINE;
    }
    enum node_health health = node_health(config, replica->node, "secondary", plan);
    if (health != NODE_OFFLINE && sight->secondary_failed != NULL) {
        see(plan, "secondary node %s %s", config_node_name(config, replica->node),
            sight->secondary_failed);
        health = NODE_FAILED;
    }
    plan->elsewhere = health == NODE_DRAINED || health == NODE_FAILED;
    if (replica->state != REPLICA_IN_SYNC)
        see(plan, "its replica on %s is %s%s%s", config_node_name(config, replica->node),
            enum_word(&replica_state_words, (int)replica->state), *replica->why ? ": " : "",
            replica->why);
    if (health == NODE_OFFLINE)
        return health;
    if (replica->state != REPLICA_IN_SYNC) {
        plan->wait = copying(config, instance, replica, sight->guest);
        return NODE_OFFLINE;
    }
    if (sight->replica_broken) {
        g_autofree char *missing = images_missing(instance, sight->replica_images);
        see(plan, "%s answers that it does not have %s of the replica",
            config_node_name(config, replica->node), missing);
        return NODE_OFFLINE;
    }
    return health;
}

/* Why no operation helps. */
static const char *why_left(const struct instance *instance, enum node_health primary)
{
    if (primary != NODE_FAILED)
        return primary == NODE_BARRED ? LEFT_BARRED : LEFT_DRAINED;
    if (repair_template_mirrored(instance->disk_template))
        return LEFT_BOTH_FAILED;
    return repair_template_shared(instance->disk_template) ? LEFT_SHARED_FAILED : LEFT_FAILED;
}

/* What its holder was answered last may be lost, and it cannot say it (SAF-09). */
static bool unheard(const struct config *config, const struct instance *instance,
                    const struct replica *replica, struct repair_plan *plan)
{
    guint64 since = unheard_since(config, instance, replica);
    g_autofree char *time = unheard_time(since);
    if (!since)
        return false;
    see(plan,
        "%s has not told what it runs since a person's word made the master: what was answered to "
        "it from %s on may be lost, if no copy was in reach then",
        config_node_name(config, instance->primary_node), time);
    return true;
}

struct repair_plan repair_plan_of(const struct config *config, const struct instance *instance,
                                  const struct replica *replica,
                                  const struct repair_evidence *sight)
{
    struct repair_plan plan = {.evidence = g_ptr_array_new_with_free_func(g_free)};
    enum node_health primary = primary_health(config, instance, replica, sight, &plan);
    struct row row = local_rows[primary];
    if (repair_template_mirrored(instance->disk_template))
        row = mirror_rows[primary][replica_health(config, instance, replica, sight, &plan)];
    else if (repair_template_shared(instance->disk_template))
        row = shared_rows[primary];
    /* A copy that runs is waited for; the copy of a dead primary goes nowhere. */
    plan.wait = plan.wait && primary != NODE_OFFLINE;
    plan.healthy = row.step == REPAIR_STEP_NONE && primary == NODE_ONLINE;
    if (row.step == REPAIR_STEP_FAILOVER && !sight->told &&
        unheard(config, instance, replica, &plan)) {
        row.step = REPAIR_STEP_NONE;
        plan.left = LEFT_UNHEARD;
    } else if (row.step == REPAIR_STEP_NONE && !plan.healthy) {
        plan.left = why_left(instance, primary);
    }
    plan.failed = primary == NODE_FAILED;
    plan.barred = primary == NODE_BARRED;
    plan.no_room = sight->no_room && row.step == REPAIR_STEP_MIGRATE;
    plan.step = row.step;
    plan.step_type = steps[row.step].type;
    plan.needed = row.needed;
    return plan;
}

bool repair_plan_needs_primary(const struct repair_plan *plan, const struct instance *instance)
{
    return plan->step == REPAIR_STEP_REPLACE_DISKS || plan->step == REPAIR_STEP_MIGRATE ||
           ((plan->failed || plan->barred) && *instance->holder != '\0');
}

char *repair_plan_no_other(const struct repair_plan *plan, const struct instance *instance)
{
    const char *name = instance->name;
    switch (plan->step) {
    case REPAIR_STEP_REPLACE_DISKS:
        return plan->failed ? g_strdup(LEFT_FAILED)
                            : g_strdup_printf("It has one copy of its data until then, and nothing "
                                              "else makes another: fettle instance replace-disks "
                                              "%s.",
                                              name);
    case REPAIR_STEP_MIGRATE:
        return g_strdup_printf(
            "%s: that it is moved by a restart instead is for you to say: fettle "
            "instance failover %s.",
            plan->no_room ? "It goes on by itself when there is room, and nothing is lost"
                          : "It runs and is well",
            name);
    case REPAIR_STEP_FAILOVER:
        return g_strdup_printf("Its data are whole where it was to be started, so nothing is given "
                               "up; when the cause is mended: fettle instance failover %s.",
                               name);
    case REPAIR_STEP_REINSTALL:
        return g_strdup("Nothing comes after new disks.");
    case REPAIR_STEP_NONE:
        break;
    }
    return g_strdup(plan->left);
}

char *repair_plan_causes(const struct repair_plan *plan)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < plan->evidence->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "; " : "", (char *)plan->evidence->pdata[i]);
    return g_string_free(g_steal_pointer(&text), false);
}

void repair_plan_clear(struct repair_plan *plan)
{
    g_clear_pointer(&plan->evidence, g_ptr_array_unref);
}

/* --- steps --- */

guint repair_step_urgency(enum repair_step step)
{
    return step == REPAIR_STEP_FAILOVER || step == REPAIR_STEP_REINSTALL ? 0
           : step == REPAIR_STEP_MIGRATE                                 ? 1
                                                                         : 2;
}

const char *repair_step_name(enum repair_step step)
{
    return steps[step].name;
}

const char *repair_step_word(enum repair_step step)
{
    return steps[step].word;
}

static void add_opcode(json_t *list, const char *id, const struct instance *instance)
{
    json_array_append_new(list, json_make("{ssss}", "OP_ID", id, "instance_name", instance->name));
}

static void add_reinstall(json_t *list, const struct instance *instance)
{
    add_opcode(list, "OP_INSTANCE_RECREATE_DISKS", instance);
    /* What was made from no image is blank again, as it was. */
    if (*instance->os)
        add_opcode(list, "OP_INSTANCE_REINSTALL", instance);
    if (instance->admin_state == ADMIN_UP)
        add_opcode(list, "OP_INSTANCE_STARTUP", instance);
    /* The last one copies, once; a guest runs meanwhile. */
    for (size_t i = 0; i + 1 < json_array_size(list); i++)
        json_object_set_new(json_array_get(list, i), "wait_for_sync", json_false());
}

json_t *repair_plan_opcodes(const struct repair_plan *plan, const struct instance *instance)
{
    json_t *list = json_array();
    switch (plan->step) {
    case REPAIR_STEP_NONE:
        break;
    case REPAIR_STEP_REPLACE_DISKS:
        add_opcode(list, "OP_INSTANCE_REPLACE_DISKS", instance);
        if (plan->elsewhere)
            json_object_set_new(json_array_get(list, 0), "mode",
                                json_string(enum_word(&replace_mode_words, REPLACE_NEW_SECONDARY)));
        break;
    case REPAIR_STEP_MIGRATE:
        add_opcode(list, "OP_INSTANCE_MIGRATE", instance);
        json_object_set_new(json_array_get(list, 0), "allow_failover", json_true());
        break;
    case REPAIR_STEP_FAILOVER:
        add_opcode(list, "OP_INSTANCE_FAILOVER", instance);
        /* It can write nothing back, however long it is given. */
        if (plan->failed || plan->barred)
            json_object_set_new(json_array_get(list, 0), "shutdown_timeout", json_integer(0));
        break;
    case REPAIR_STEP_REINSTALL:
        add_reinstall(list, instance);
        break;
    }
    return list;
}
