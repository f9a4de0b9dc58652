/*
 * Making new disks; see recreate.h.
 */
#include "core/ops/recreate.h"

#include "core/config/allocated.h"
#include "core/ops/replica_copy.h"

#include <string.h>

/* Found by this mark if the job dies; wconfd lets new disks be made under it alone. A replica that
 * is on record as whole and whose node says that its images are gone is not promised any more; of
 * one on a dead node the record stays true until the new disks are there. */
static bool edit_giving_up(struct instance_edit *edit, void *data, GError **error)
{
    edit_mark(edit, TASK_RECREATING_DISKS);
    const struct replica *replica = edit->replica;
    if (replica && replica->state != REPLICA_STALE && !op_node_offline(edit->op, replica->node))
        edit_replica(edit, REPLICA_STALE, "its images are lost");
    return true;
}

/* The instance as it will be on record when its images are there: other disks, another replica, and
 * a generation that nobody holds, so that what any node has from before is superseded. */
static struct instance *plan_new_disks(const struct op *op, const struct instance *instance)
{
    struct instance *plan = instance_copy(instance);
    plan->generation++;
    plan->clean = false;
    text_set(&plan->holder, "");
    text_set(&plan->primary_node, op->primary);
    for (guint i = 0; i < plan->disks->len; i++) {
        g_autofree char *uuid = env_uuid(op->env);
        text_set(&((struct disk *)plan->disks->pdata[i])->uuid, uuid);
    }
    bool mirrored = op->secondary != NULL;
    g_autofree char *replica = mirrored ? env_uuid(op->env) : g_strdup("");
    text_set(&plan->replica, replica);
    text_set(&plan->secondary_node, mirrored ? op->secondary : "");
    return plan;
}

static void put_replica(struct instance_edit *edit)
{
    struct op *op = edit->op;
    const struct instance *instance = edit->instance;
    struct replica replica = {.uuid = instance->replica,
                              .instance = instance->uuid,
                              .node = instance->secondary_node,
                              .generation = instance->generation,
                              .sync = 1,
                              .state = REPLICA_STALE,
                              .why = (char *)"not copied yet",
                              .since = op_now_seconds(op)};
    op_put(op, edit->changes, "replica", replica.uuid, replica_to_json(&replica));
}

static bool edit_new_disks(struct instance_edit *edit, void *data, GError **error)
{
    const struct instance *plan = data;
    struct instance *instance = edit->instance;
    if (instance->generation + 1 != plan->generation) {
        fettle_set_error(error, VERSION_CONFLICT,
                         "new disks of instance \"%s\" were made for generation %" G_GUINT64_FORMAT
                         ", but %" G_GUINT64_FORMAT " is on record now",
                         instance->name, plan->generation, instance->generation);
        return false;
    }
    instance->generation = plan->generation;
    instance->clean = false;
    allocated_take_next(instance);
    text_set(&instance->holder, "");
    text_set(&instance->primary_node, plan->primary_node);
    text_set(&instance->secondary_node, plan->secondary_node);
    text_set(&instance->replica, plan->replica);
    for (guint i = 0; i < instance->disks->len && i < plan->disks->len; i++)
        text_set(&((struct disk *)instance->disks->pdata[i])->uuid,
                 ((const struct disk *)plan->disks->pdata[i])->uuid);
    if (edit->replica)
        op_delete(edit->op, edit->changes, "replica", edit->replica->uuid);
    if (*instance->replica)
        put_replica(edit);
    return true;
}

/* Under the name that they wait with until they are taken or opened. */
static bool make_images(struct op *op, const struct instance *plan, bool primary, GError **error)
{
    struct disk *first = plan->disks->pdata[0];
    struct disks_create_args args = {.instance = plan->uuid,
                                     .replica = primary ? first->uuid : plan->replica,
                                     .disks = plan->disks,
                                     .os_type = (char *)"",
                                     .disk_template = plan->disk_template,
                                     .generation = plan->generation,
                                     .set_aside = true};
    return replica_copy_make_images(op, primary ? plan->primary_node : plan->secondary_node, &args,
                                    error);
}

/* First the images, then the record of them. */
static bool make_disks(struct op *op, const char *uuid, GError **error)
{
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    record_autoptr(instance) plan = plan_new_disks(op, instance);
    op_log(op, "making the disks of %s on %s", plan->name, op_node_name(op, plan->primary_node));
    if (!*plan->replica && plan->disk_template == TEMPLATE_MIRROR)
        op_log(op, "%s has no replica then; when a node has room: fettle instance replace-disks %s",
               plan->name, plan->name);
    return make_images(op, plan, true, error) &&
           (!*plan->replica || make_images(op, plan, false, error)) &&
           instance_edit(op, "recreate_disks", uuid, edit_new_disks, plan, error);
}

static bool take_images(struct op *op, const struct instance *instance, GError **error)
{
    struct disk *first = instance->disks->pdata[0];
    struct replica_close_args args = {.instance = instance->uuid,
                                      .replica = first->uuid,
                                      .generation = instance->generation,
                                      .promote = true,
                                      .disks = instance->disks};
    record_autoptr(nothing) done =
        op_act(op, instance->primary_node, "replica_close", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* What is there from a job that died is not made again: it may have been used since. */
static bool finish_replica(struct op *op, const struct instance *instance, bool made,
                           GError **error)
{
    const struct op_instance_recreate_disks *params = op->params;
    const struct node_report *report = op_report(op, instance->secondary_node);
    bool there = made || report_has_images(report, instance, instance->replica);
    return (there || make_images(op, instance, false, error)) &&
           (!params->wait_for_sync ||
            replica_copy_at_rest(op, instance->uuid, TASK_RECREATING_DISKS, error));
}

bool recreate_make(struct op *op, const char *uuid, bool there, GError **error)
{
    if (!instance_edit(op, "change_replica", uuid, edit_giving_up, NULL, error) ||
        (!there && !make_disks(op, uuid, error)))
        return false;
    op_unlock_room(op); /* blank images are made at once; what follows is not */
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    if (there)
        op_log(op, "%s has its disks on %s already", instance->name,
               op_node_name(op, instance->primary_node));
    return take_images(op, instance, error) &&
           (!*instance->replica || finish_replica(op, instance, !there, error)) &&
           instance_settle(op, uuid, error);
}
