/*
 * OP_INSTANCE_FAILOVER (SAF-16): the replica becomes the instance, on evidence only: the replica is
 * on record as in-sync, and the old node is offline on a person's word or has stopped the guest
 * itself.
 */
#include "core/ops/instance.h"
#include "core/ops/ops.h"
#include "core/ops/placement.h"

#include <string.h>

static bool mirrored(const struct instance *instance)
{
    return instance->disk_template == TEMPLATE_MIRROR;
}

/* --- declare --- */

/* A diskless instance can go anywhere; the choice made before the locks were granted is kept if it
 * still fits. */
static bool choose_target(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_failover *params = op->params;
    if (*params->target_node) {
        const struct node *node = op_find_node(op, params->target_node, error);
        if (node)
            op_set_text(&op->primary, node->uuid);
        return node != NULL;
    }
    record_autoptr(instance) copy = instance_copy(instance);
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    g_autoptr(GPtrArray) wanted = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->offline && strcmp(node->uuid, copy->primary_node))
            g_ptr_array_add(wanted, g_strdup(node->uuid));
    }
    if (!op_gather_reports(op, wanted, error))
        return false;
    g_autofree char *what = g_strdup_printf("the new node of instance \"%s\"", copy->name);
    struct placement_need need = {.what = what,
                                  .memory = copy->memory,
                                  .excluded = {copy->primary_node},
                                  .because = {"is its node now"},
                                  .skip = copy->uuid,
                                  .prefer = op->primary};
    const struct node *node = placement_choose(op_config(op), op->reports, &need, error);
    if (node)
        op_set_text(&op->primary, node->uuid);
    return node != NULL;
}

static bool failover_declare(struct op *op, GError **error)
{
    const struct op_instance_failover *params = op->params;
    const struct instance *instance = op_find_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    op_lock_instance(op, instance->name);
    /* Shared also on an offline primary: it cannot be declared alive in the middle. */
    op_lock_node(op, instance->primary_node, LOCK_SHARED);
    if (mirrored(instance))
        op_set_text(&op->primary, instance->secondary_node);
    else if (!choose_target(op, instance, error))
        return false;
    op_lock_node(op, op->primary, LOCK_SHARED);
    return true;
}

/* --- check --- */

static char *since_text(const struct replica *replica)
{
    if (!replica->since)
        return g_strdup_printf("generation %" G_GUINT64_FORMAT, replica->generation);
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc((gint64)replica->since);
    return time ? g_date_time_format(time, "%Y-%m-%d %H:%M:%S UTC")
                : g_strdup_printf("%" G_GUINT64_FORMAT, replica->since);
}

/* UNSAFE unless every write that the guest saw acknowledged is on the replica (SAF-13). */
static bool replica_is_whole(const struct op *op, const struct instance *instance,
                             const struct replica *replica, GError **error)
{
    if (!replica || !*instance->secondary_node) {
        fettle_set_error(error, WRONG_STATE, "instance \"%s\" has no replica to fail over to",
                         instance->name);
        return false;
    }
    if (replica->state == REPLICA_IN_SYNC)
        return true;
    g_autofree char *since = since_text(replica);
    fettle_set_error(error, UNSAFE,
                     "the replica of instance \"%s\" on %s is %s since %s (%s): acknowledged "
                     "writes would be lost",
                     instance->name, op_node_name(op, replica->node),
                     enum_word(&replica_state_words, (int)replica->state), since,
                     *replica->why ? replica->why : "no reason on record");
    return false;
}

/* Evidence that the guest runs no more on the old node, or can be stopped there. */
static bool primary_is_judged(const struct op *op, const struct instance *instance, GError **error)
{
    const char *name = op_node_name(op, instance->primary_node);
    if (op_node_offline(op, instance->primary_node) || !*instance->holder ||
        op_report(op, instance->primary_node))
        return true;
    fettle_set_error(error, UNSAFE,
                     "%s does not answer, but nobody said that it is dead, so instance \"%s\" may "
                     "still run there; if it is really dead: fettle node modify %s --offline=yes "
                     "--statement ...",
                     name, instance->name, name);
    return false;
}

static bool target_has_memory(const struct op *op, const struct instance *instance, GError **error)
{
    const struct node *node = config_get(op_config(op), "node", op->primary, NULL);
    struct placement_need need = {.memory = instance->memory, .skip = instance->uuid};
    g_autofree char *why = NULL;
    if (mirrored(instance) && instance->admin_state == ADMIN_DOWN)
        return true;
    /* A drained node takes no new instances, but its own replica may be all that is left. */
    record_autoptr(node) judged = node_copy(node);
    judged->drained = judged->drained && !mirrored(instance);
    if (placement_fits(op_config(op), judged, op_report(op, node->uuid), &need, &why))
        return true;
    fettle_set_error(error, NO_RESOURCES, "instance \"%s\" cannot go to %s: it %s", instance->name,
                     node->name, why);
    return false;
}

static bool failover_check(struct op *op, GError **error)
{
    const struct op_instance_failover *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || !instance_need_whole(found, error))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    if (mirrored(instance) && !replica_is_whole(op, instance, op_replica_of(op, instance), error))
        return false;
    if (!strcmp(op->primary, instance->primary_node)) {
        fettle_set_error(error, WRONG_INPUT, "instance \"%s\" is on %s already", instance->name,
                         op_node_name(op, op->primary));
        return false;
    }
    return instance_gather(op, instance->primary_node, op->primary, error) &&
           primary_is_judged(op, instance, error) &&
           instance_need_node(op, instance, op->primary, mirrored(instance) ? "secondary" : "new",
                              error) &&
           target_has_memory(op, instance, error);
}

/* --- exec --- */

struct promotion {
    char *replica;     /* out: UUID of the replica that is promoted, "" for none */
    char *old_primary; /* out */
};

/* The commit that moves the instance. Judged anew on the record that it is compared with. */
static bool edit_promote(struct instance_edit *edit, void *data, GError **error)
{
    struct promotion *promotion = data;
    struct instance *instance = edit->instance;
    struct op *op = edit->op;
    if (mirrored(instance) && !replica_is_whole(op, instance, edit->replica, error))
        return false;
    if (*instance->holder && !op_node_offline(op, instance->holder)) {
        fettle_set_error(error, UNSAFE, "instance \"%s\" may run on %s, which is not offline",
                         instance->name, op_node_name(op, instance->holder));
        return false;
    }
    op_set_text(&promotion->replica, instance->replica);
    op_set_text(&promotion->old_primary, instance->primary_node);
    if (edit->replica)
        op_delete(op, edit->changes, "replica", edit->replica->uuid);
    instance->generation++;
    instance->clean = false;
    op_set_text(&instance->primary_node, op->primary);
    op_set_text(&instance->holder, instance->admin_state == ADMIN_UP ? op->primary : "");
    op_set_text(&instance->secondary_node, "");
    op_set_text(&instance->replica, "");
    edit_mark(edit, TASK_FAILING_OVER);
    return true;
}

static bool promote_images(struct op *op, const struct instance *instance, const char *replica,
                           GError **error)
{
    if (!*replica)
        return true;
    struct replica_close_args args = {.instance = instance->uuid,
                                      .replica = (char *)replica,
                                      .generation = instance->generation,
                                      .promote = true};
    record_autoptr(nothing) done =
        op_act(op, instance->primary_node, "replica_close", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

static bool start_promoted(struct op *op, struct instance *instance, GError **error)
{
    if (instance->admin_state != ADMIN_UP)
        return true;
    struct guest_start_args args = {.instance = instance, .full = true, .run = true};
    g_autoptr(GError) local = NULL;
    record_autoptr(nothing) done =
        op_act(op, instance->primary_node, "guest_start", &args, ACT_PATIENCE_MS, &local);
    if (done)
        return true;
    if (fettle_error_is(local, REFUSED)) {
        /* Used up by a node daemon that died in the middle. */
        struct instance_start next = {.mark = TASK_FAILING_OVER, .run = true};
        op_log(op, "%s; trying the next generation", local->message);
        return instance_start(op, instance->uuid, &next, error);
    }
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

/* The guest still runs on a node that answers: it is stopped there, so the replica is closed
 * clean. If that does not work out the instance goes on where it was. */
static bool stop_on_old_primary(struct op *op, const struct instance *instance, guint64 timeout_ms,
                                GError **error)
{
    if (!*instance->holder || op_node_offline(op, instance->holder))
        return true;
    struct instance_stop stop = {
        .mark = TASK_FAILING_OVER, .after = TASK_FAILING_OVER, .timeout_ms = timeout_ms};
    if (!instance_stop(op, instance->uuid, &stop, error))
        return false;
    record_autoptr(instance) stopped = instance_now(op, instance->uuid, error);
    g_autoptr(GError) refusal = NULL;
    if (!stopped)
        return false;
    if (!mirrored(stopped) || replica_is_whole(op, stopped, op_replica_of(op, stopped), &refusal))
        return true;
    op_log(op, "the copies were not equal at the end; starting again on %s",
           op_node_name(op, stopped->primary_node));
    struct instance_start start = {.mark = TASK_FAILING_OVER, .run = true};
    g_autoptr(GError) restart = NULL;
    if (stopped->admin_state == ADMIN_UP && !instance_start(op, stopped->uuid, &start, &restart))
        op_log(op, "it could not be started again: %s", restart->message);
    g_propagate_error(error, g_steal_pointer(&refusal));
    return false;
}

/* The old images are of no more use: the close was clean, so the promoted ones are equal. */
static void clean_old_primary(struct op *op, const struct instance *instance, const char *node)
{
    if (op_node_offline(op, node) || !mirrored(instance))
        return;
    struct disks_remove_args args = {
        .instance = instance->uuid, .replica = "", .generation = instance->generation};
    g_autoptr(GError) failure = NULL;
    record_autoptr(nothing) done = op_act(op, node, "disks_remove", &args, 0, &failure);
    if (!done)
        op_log(op, "the old images could not be removed: %s", failure->message);
}

static bool fail_over(struct op *op, const struct instance *before, struct promotion *promotion,
                      guint64 timeout_ms, GError **error)
{
    if (!stop_on_old_primary(op, before, timeout_ms, error) ||
        !instance_edit(op, before->uuid, edit_promote, promotion, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, before->uuid, error);
    if (!instance)
        return false;
    op_log(op, "%s is now on %s, generation %" G_GUINT64_FORMAT, instance->name,
           op_node_name(op, instance->primary_node), instance->generation);
    if (!promote_images(op, instance, promotion->replica, error) ||
        !start_promoted(op, instance, error) || !instance_settle(op, instance->uuid, error))
        return false;
    clean_old_primary(op, instance, promotion->old_primary);
    return true;
}

static bool failover_exec(struct op *op, GError **error)
{
    const struct op_instance_failover *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    struct promotion promotion = {NULL};
    GError *local = NULL;
    bool done = fail_over(op, instance, &promotion, params->shutdown_timeout * 1000, &local) ||
                instance_fail(op, instance->uuid, local, error);
    g_free(promotion.replica);
    g_free(promotion.old_primary);
    return done;
}

const struct op_impl ops_failover[] = {
    {"OP_INSTANCE_FAILOVER", failover_declare, failover_check, failover_exec},
    {NULL},
};
