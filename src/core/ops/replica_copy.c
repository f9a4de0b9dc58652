/*
 * Making images and bringing a replica up to date. See replica_copy.h.
 */
#include "core/ops/replica_copy.h"

#include "core/report/late.h"

#include "core/ops/long_call.h"

#include <string.h>

/* --- images --- */

bool replica_copy_make_images(struct op *op, const char *node, const struct disks_create_args *args,
                              GError **error)
{
    bool copies = args->os_type && *args->os_type;
    g_autofree char *what = g_strdup_printf("image %s", args->os_type);
    struct attended call = {
        .instance = args->instance, .method = "disks_create", .args = args, .progress = what};
    record_autoptr(nothing) done =
        copies ? long_call_act(op, node, &call, error)
               : op_act(op, node, "disks_create", args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* --- under a running guest --- */

struct syncing_call {
    enum task_state mark;
    const char *why;
};

static bool edit_syncing(struct instance_edit *edit, void *data, GError **error)
{
    const struct syncing_call *call = data;
    if (!edit->replica) {
        fettle_set_error(error, WRONG_STATE, "instance \"%s\" has no replica any more",
                         edit->instance->name);
        return false;
    }
    edit_mark(edit, call->mark);
    edit_replica(edit, REPLICA_SYNCING, call->why);
    return true;
}

bool replica_copy_set_syncing(struct op *op, const char *uuid, enum task_state mark,
                              const char *why, GError **error)
{
    struct syncing_call call = {mark, why};
    return instance_edit(op, "change_replica", uuid, edit_syncing, &call, error);
}

bool replica_copy_attach(struct op *op, const char *uuid, bool since, GError **error)
{
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    const struct replica *replica = op_replica_of(op, instance);
    guint64 sync = replica ? replica->sync : 0;
    struct replica_open_args open = {.instance = instance->uuid,
                                     .replica = instance->replica,
                                     .generation = instance->generation,
                                     .disks = instance->disks,
                                     .keep = replica ? replica->keep : 0};
    record_autoptr(export_target) target = instance_open_exports(
        op, instance, instance->secondary_node, &open, ACT_PATIENCE_MS, error);
    if (!target || (open.keep > 0 && !target->kept &&
                    !instance_tell_of_one_copy(op, instance, instance->secondary_node, error)))
        return false;
    struct mirror_attach_args args = {.instance = instance->uuid,
                                      .generation = instance->generation,
                                      .target = target,
                                      .sync = sync,
                                      .since = since};
    record_autoptr(nothing) done =
        op_act(op, instance->holder, "mirror_attach", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* --- at rest --- */

bool replica_copy_at_rest(struct op *op, const char *uuid, enum task_state mark, GError **error)
{
    struct instance_start start = {.mark = mark};
    struct instance_stop stop = {.mark = mark, .after = mark};
    GError *failure = NULL;
    if (!instance_start(op, uuid, &start, error))
        return false;
    if (instance_wait_mirror(op, uuid, &failure))
        return instance_stop(op, uuid, &stop, error);
    g_autoptr(GError) ignored = NULL; /* the mark, or the next start, mends what stays paused */
    if (!fettle_error_is(failure, KILLED))
        instance_stop(op, uuid, &stop, &ignored);
    g_propagate_error(error, failure);
    return false;
}

/* --- conditions --- */

bool replica_copy_need_replica(struct op *op, const struct instance *instance, const char *what,
                               GError **error)
{
    if (!*instance->replica)
        return true;
    if (!instance_need_node(op, instance, instance->secondary_node, "secondary", error)) {
        g_prefix_error(error, "its replica %s: ", what);
        return false;
    }
    guint64 disks =
        report_images(op_report(op, instance->secondary_node), instance, instance->replica);
    if (images_are_whole(instance, disks))
        return true;
    g_autofree char *missing = images_missing(instance, disks);
    fettle_set_error(error, WRONG_STATE,
                     "%s does not have %s of the replica of instance \"%s\"; give it another "
                     "first: fettle instance replace-disks %s",
                     op_node_name(op, instance->secondary_node), missing, instance->name,
                     instance->name);
    return false;
}
