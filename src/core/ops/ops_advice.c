/*
 * What people and outside systems tell the healer, short of submitting a repair: OP_ADVICE_SET (use
 * this node no more for now, ARP-69) and OP_REPAIR_CONTINUE (the storm is over). Advice and brake
 * are objects that need no lock: each is compared with the version that was read.
 */
#include "core/config/restored.h"
#include "core/ops/ops.h"
#include "core/ops/ops_restored.h"
#include "core/placement/placement.h"

#include <string.h>

static bool declare_nothing(struct op *op, GError **error)
{
    return true;
}

/* --- advice --- */

/* An author has one word about a node; it may change it. */
static const struct advice *advice_of(const struct op *op, const char *node)
{
    const struct op_advice_set *params = op->params;
    g_autoptr(GPtrArray) list = config_list(op_config(op), "advice");
    for (guint i = 0; i < list->len; i++) {
        const struct advice *advice = list->pdata[i];
        if (!strcmp(advice->subject, node) && !strcmp(advice->author, params->author))
            return advice;
    }
    return NULL;
}

static bool advice_check(struct op *op, GError **error)
{
    const struct op_advice_set *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node)
        return false;
    guint64 now = op_now_seconds(op);
    bool known = advice_of(op, node->uuid);
    if (params->withdraw && !known)
        fettle_set_error(error, UNKNOWN_ENTITY, "%s gives no advice about node \"%s\"",
                         params->author, node->name);
    else if (!params->withdraw && params->until && params->until <= now)
        fettle_set_error(error, WRONG_INPUT,
                         "until: %" G_GUINT64_FORMAT " has passed already (it is %" G_GUINT64_FORMAT
                         " now, in seconds since 1970)",
                         params->until, now);
    else if (!params->withdraw && !known && config_count(op_config(op), "advice") >= LIMIT_ADVICE)
        fettle_set_error(error, LIMIT, "there are %d pieces of advice, which is the limit",
                         LIMIT_ADVICE);
    else
        return true;
    return false;
}

static bool build_advice(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_advice_set *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node)
        return false;
    const struct advice *known = advice_of(op, node->uuid);
    if (params->withdraw) {
        if (known)
            op_delete(op, changes, "advice", known->uuid);
        return true;
    }
    g_autofree char *uuid = known ? g_strdup(known->uuid) : env_uuid(op->env);
    struct advice advice = {.uuid = uuid,
                            .author = params->author,
                            .subject_kind = (char *)"node",
                            .subject = node->uuid,
                            .advice = (char *)ADVICE_AVOID,
                            .reason = params->why,
                            .until = params->until};
    op_put(op, changes, "advice", uuid, advice_to_json(&advice));
    return true;
}

static bool advice_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "advise", build_advice, NULL, error);
}

/* --- go on --- */

/* After a restore every instance may get another record. */
static bool continue_declare(struct op *op, GError **error)
{
    if (restored_brake(op_config(op)))
        op_lock(op, "instance/[lockset]", LOCK_EXCLUSIVE);
    return true;
}

/* Also what a dry run tells. */
static bool compare_restored(struct op *op, GError **error)
{
    g_autoptr(GPtrArray) changes = op_changes_new();
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    if (!restored_gather(op, error) || !restored_adopt(op, changes, said, error))
        return false;
    for (guint i = 0; i < said->len; i++)
        op_log(op, "%s", (const char *)said->pdata[i]);
    return true;
}

static bool continue_check(struct op *op, GError **error)
{
    if (restored_brake(op_config(op)))
        return compare_restored(op, error);
    if (config_get(op_config(op), "repair_brake", BRAKE_KEY, NULL))
        return true;
    fettle_set_error(error, WRONG_STATE, "auto-repair is not stopped; there is nothing to release");
    return false;
}

/* Goes on record with the release, in one commit: who took the responsibility for it. */
static struct decision *decide_release(const struct op *op, const struct cluster *cluster,
                                       const struct repair_brake *brake)
{
    const struct op_repair_continue *params = op->params;
    struct decision *decision = decision_new();
    g_autofree char *uuid = env_uuid(op->env);
    g_autofree char *summary =
        g_strdup_printf("%s %s",
                        brake->restored ? "The restored record was compared with the nodes and "
                                          "follows them now; instances and repairs go on."
                                        : "The storm brake is released; repairs go on.",
                        *params->statement ? params->statement : "No statement was given.");
    text_set(&decision->uuid, uuid);
    text_set(&decision->author, "person");
    text_set(&decision->subject_kind, "cluster");
    text_set(&decision->subject, cluster->uuid);
    text_set(&decision->subject_name, cluster->name);
    decision->at_us = (guint64)op->env->ops->wall_us(op->env);
    text_set(&decision->state, "Released");
    decision->verdict = VERDICT_ACT;
    text_set(&decision->summary, summary);
    g_ptr_array_add(decision->evidence, g_strdup(brake->why));
    g_ptr_array_add(decision->jobs, g_strdup_printf("%" G_GUINT64_FORMAT, op->job));
    text_set(&decision->next_check, "in the next pass of auto-repair");
    return decision;
}

static bool build_release(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct repair_brake *brake = config_get(op_config(op), "repair_brake", BRAKE_KEY, NULL);
    const struct cluster *cluster = config_cluster(op_config(op));
    if (!brake || !cluster)
        return true; /* somebody else was faster */
    g_autoptr(GPtrArray) said = g_ptr_array_new_with_free_func(g_free);
    if (brake->restored && !restored_adopt(op, changes, said, error))
        return false;
    record_autoptr(decision) decision = decide_release(op, cluster, brake);
    for (guint i = 0; i < said->len && decision->evidence->len < LIMIT_REPAIR_EVIDENCE; i++)
        g_ptr_array_add(decision->evidence, g_strndup(said->pdata[i], LIMIT_STRING_CHARS / 2));
    op_delete(op, changes, "repair_brake", BRAKE_KEY);
    op_put(op, changes, "decision", decision->uuid, decision_to_json(decision));
    return true;
}

static bool continue_exec(struct op *op, GError **error)
{
    const char *change = restored_brake(op_config(op)) ? "adopt_restored" : "release_brake";
    return op_commit_built(op, change, build_release, NULL, error);
}

const struct op_impl ops_advice[] = {
    {"OP_ADVICE_SET", declare_nothing, advice_check, advice_exec, SEES_NAMED},
    {"OP_REPAIR_CONTINUE", continue_declare, continue_check, continue_exec},
    {NULL},
};
