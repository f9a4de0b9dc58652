/*
 * OP_INSTANCE_REPLACE_DISKS (SAF-18): a new replica by a full copy. From the first commit on the
 * instance has no redundancy on record until the copy is ready.
 */
#include "core/ops/instance.h"
#include "core/ops/ops.h"
#include "core/ops/placement.h"

#include <string.h>

/* --- declare --- */

static bool choose_other(struct op *op, const struct instance *instance, GError **error)
{
    record_autoptr(instance) copy = instance_copy(instance);
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    g_autoptr(GPtrArray) wanted = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->offline)
            g_ptr_array_add(wanted, g_strdup(node->uuid));
    }
    if (!op_gather_reports(op, wanted, error))
        return false;
    g_autofree char *what = g_strdup_printf("the secondary node of instance \"%s\"", copy->name);
    struct placement_need need = {
        .what = what,
        .disk = placement_disk_size(copy->disks),
        .excluded = {copy->primary_node, copy->secondary_node},
        .because = {"is its primary node", "is its secondary node now"},
        .prefer = op->secondary,
        .rank_by_disk = true,
    };
    const struct node *node = placement_choose(op_config(op), op->reports, &need, error);
    if (node)
        op_set_text(&op->secondary, node->uuid);
    return node != NULL;
}

/* Whether the node of the old replica can take the new one: it answers, and its disks work (disks
 * that fail have no space at all). */
static bool old_node_serves(struct op *op, const struct instance *instance, bool *ret_serves,
                            GError **error)
{
    *ret_serves = false;
    if (!*instance->secondary_node || op_node_offline(op, instance->secondary_node))
        return true;
    g_autofree char *uuid = g_strdup(instance->secondary_node);
    g_autoptr(GPtrArray) wanted = g_ptr_array_new();
    g_ptr_array_add(wanted, uuid);
    if (!op_gather_reports(op, wanted, error))
        return false;
    const struct node_report *report = op_report(op, uuid);
    *ret_serves = report && report->disk_total > 0;
    return true;
}

static bool find_target(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_replace_disks *params = op->params;
    if (*params->remote_node) {
        const struct node *node = op_find_node(op, params->remote_node, error);
        if (node)
            op_set_text(&op->secondary, node->uuid);
        return node != NULL;
    }
    bool same = params->mode == REPLACE_ON_SECONDARY;
    if (params->mode == REPLACE_AUTO && !old_node_serves(op, instance, &same, error))
        return false;
    if (!same)
        return choose_other(op, instance, error);
    if (*instance->secondary_node) {
        op_set_text(&op->secondary, instance->secondary_node);
        return true;
    }
    fettle_set_error(error, WRONG_STATE, "instance \"%s\" has no secondary node; name another",
                     instance->name);
    return false;
}

static bool replace_declare(struct op *op, GError **error)
{
    const struct op_instance_replace_disks *params = op->params;
    const struct instance *instance = op_find_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    if (instance->disk_template != TEMPLATE_MIRROR) {
        fettle_set_error(error, WRONG_STATE, "instance \"%s\" is %s: it has no replica",
                         instance->name,
                         enum_word(&disk_template_words, (int)instance->disk_template));
        return false;
    }
    op_lock_instance(op, instance->name);
    op_lock_node(op, instance->primary_node, LOCK_SHARED);
    op_lock_node(op, instance->secondary_node, LOCK_SHARED);
    if (!find_target(op, instance, error))
        return false;
    op_lock_node(op, op->secondary, LOCK_SHARED);
    return true;
}

/* --- check --- */

static bool target_takes_it(struct op *op, const struct instance *instance, GError **error)
{
    const struct node *node = config_get(op_config(op), "node", op->secondary, NULL);
    /* On the same node the old replica makes room for the new one. */
    bool same = !strcmp(op->secondary, instance->secondary_node);
    struct placement_need need = {.disk = same ? 0 : placement_disk_size(instance->disks),
                                  .excluded = {instance->primary_node},
                                  .because = {"is its primary node"}};
    g_autofree char *why = NULL;
    if (placement_fits(op_config(op), node, op_report(op, node->uuid), &need, &why))
        return true;
    const char *format = "node \"%s\" cannot take the replica of instance \"%s\": it %s";
    g_autofree char *message = g_strdup_printf(format, node->name, instance->name, why);
    if (!strcmp(node->uuid, instance->primary_node))
        fettle_set_error(error, WRONG_INPUT, "%s", message);
    else if (node->offline || node->drained)
        fettle_set_error(error, WRONG_STATE, "%s", message);
    else if (!op_report(op, node->uuid))
        fettle_set_error(error, TEMPORARY, "%s", message);
    else
        fettle_set_error(error, NO_RESOURCES, "%s", message);
    return false;
}

static bool replace_check(struct op *op, GError **error)
{
    const struct op_instance_replace_disks *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || !instance_need_whole(found, error))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    return instance_gather(op, instance->primary_node, op->secondary, error) &&
           instance_need_node(op, instance, instance->primary_node, "primary", error) &&
           target_takes_it(op, instance, error);
}

/* --- exec --- */

static bool edit_without_redundancy(struct instance_edit *edit, void *data, GError **error)
{
    edit_mark(edit, TASK_REPLACING_DISKS);
    if (edit->replica)
        edit_replica(edit, REPLICA_STALE, "is being replaced");
    return true;
}

/* The old replica goes: mirror first, on the word `stale` that is on record now; then its images.
 * A node that does not give them up is named, and finds out by itself that they are over. */
static bool drop_old(struct op *op, const struct instance *instance, bool runs, GError **error)
{
    if (!*instance->replica)
        return true;
    struct guest_args guest = {.instance = instance->uuid, .generation = instance->generation};
    if (runs) {
        record_autoptr(nothing) detached =
            op_act(op, instance->holder, "mirror_detach", &guest, ACT_PATIENCE_MS, error);
        if (!detached)
            return false;
    }
    if (op_node_offline(op, instance->secondary_node))
        return true;
    struct disks_remove_args args = {.instance = instance->uuid,
                                     .replica = instance->replica,
                                     .generation = instance->generation};
    g_autoptr(GError) failure = NULL;
    record_autoptr(nothing) removed =
        op_act(op, instance->secondary_node, "disks_remove", &args, 0, &failure);
    if (!removed)
        op_log(op, "the old replica could not be removed: %s", failure->message);
    return true;
}

struct new_replica {
    char *uuid;
    const char *node;
};

static bool edit_new_replica(struct instance_edit *edit, void *data, GError **error)
{
    const struct new_replica *new = data;
    struct op *op = edit->op;
    struct instance *instance = edit->instance;
    if (edit->replica)
        op_delete(op, edit->changes, "replica", edit->replica->uuid);
    struct replica replica = {.uuid = new->uuid,
                              .instance = instance->uuid,
                              .node = (char *)new->node,
                              .generation = instance->generation,
                              .sync = 1,
                              .state = REPLICA_SYNCING,
                              .why = (char *)"new replica",
                              .since = op_now_seconds(op)};
    op_put(op, edit->changes, "replica", replica.uuid, replica_to_json(&replica));
    op_set_text(&instance->secondary_node, new->node);
    op_set_text(&instance->replica, new->uuid);
    edit_mark(edit, TASK_REPLACING_DISKS);
    return true;
}

static bool make_images(struct op *op, const struct instance *instance, GError **error)
{
    struct disks_create_args args = {.instance = instance->uuid,
                                     .replica = instance->replica,
                                     .disks = instance->disks,
                                     .os_type = (char *)""};
    record_autoptr(nothing) done =
        op_act(op, instance->secondary_node, "disks_create", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* Under a running guest: its generation stays. */
static bool attach(struct op *op, const struct instance *instance, GError **error)
{
    const struct replica *replica = op_replica_of(op, instance);
    guint64 sync = replica ? replica->sync : 0;
    struct replica_open_args open = {.instance = instance->uuid,
                                     .replica = instance->replica,
                                     .generation = instance->generation,
                                     .disks = instance->disks};
    record_autoptr(export_target) target =
        op_act(op, instance->secondary_node, "replica_open", &open, ACT_PATIENCE_MS, error);
    if (!target)
        return false;
    struct mirror_attach_args args = {.instance = instance->uuid,
                                      .generation = instance->generation,
                                      .target = target,
                                      .sync = sync};
    record_autoptr(nothing) done =
        op_act(op, instance->holder, "mirror_attach", &args, ACT_PATIENCE_MS, error);
    return done && instance_wait_mirror(op, instance->uuid, error);
}

/* Without a running guest: a generation that only copies, closed clean at the end; if the instance
 * should run it is simply started. */
static bool copy_at_rest(struct op *op, const struct instance *instance, GError **error)
{
    bool up = instance->admin_state == ADMIN_UP;
    struct instance_start start = {.mark = TASK_REPLACING_DISKS, .run = up};
    struct instance_stop stop = {.mark = TASK_REPLACING_DISKS, .after = TASK_REPLACING_DISKS};
    if (!instance_start(op, instance->uuid, &start, error))
        return false;
    if (instance_wait_mirror(op, instance->uuid, error))
        return up || instance_stop(op, instance->uuid, &stop, error);
    g_autoptr(GError) ignored = NULL; /* the mark, or the next start, mends what stays paused */
    if (!up && !fettle_error_is(*error, KILLED))
        instance_stop(op, instance->uuid, &stop, &ignored);
    return false;
}

static bool replace_body(struct op *op, const char *uuid, GError **error)
{
    if (!instance_edit(op, uuid, edit_without_redundancy, NULL, error))
        return false;
    record_autoptr(instance) old = instance_now(op, uuid, error);
    if (!old)
        return false;
    const struct guest_report *guest = instance_guest(op_report(op, old->primary_node), old);
    bool current = *old->holder && guest && guest->generation == old->generation;
    bool runs = current && guest->state == GUEST_RUNNING;
    /* Paused: left by a copy whose job died, or switched off by itself. It is closed, and what
     * follows is as for a stopped one. */
    struct instance_stop stop = {.mark = TASK_REPLACING_DISKS,
                                 .after = TASK_REPLACING_DISKS,
                                 .wish_down = current && guest->state == GUEST_SHUTDOWN};
    if (current && !runs) {
        if (!instance_stop(op, uuid, &stop, error))
            return false;
        g_clear_pointer(&old, instance_free);
        old = instance_now(op, uuid, error);
        if (!old)
            return false;
    }
    g_autofree char *replica = env_uuid(op->env);
    struct new_replica new = {replica, op->secondary};
    if (!drop_old(op, old, runs, error) || !instance_edit(op, uuid, edit_new_replica, &new, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    op_log(op, "copying %s to %s", instance->name, op_node_name(op, new.node));
    return make_images(op, instance, error) &&
           (runs ? attach(op, instance, error) : copy_at_rest(op, instance, error)) &&
           instance_settle(op, uuid, error);
}

/* Whether there is nothing to mend: `replace_auto` leaves a whole replica alone. */
static bool is_whole(const struct op *op, const struct instance *instance)
{
    const struct op_instance_replace_disks *params = op->params;
    const struct replica *replica = op_replica_of(op, instance);
    return params->mode == REPLACE_AUTO && !*params->remote_node && replica &&
           replica->state == REPLICA_IN_SYNC && !op_node_offline(op, replica->node);
}

static bool replace_exec(struct op *op, GError **error)
{
    const struct op_instance_replace_disks *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    g_autofree char *uuid = g_strdup(found->uuid);
    if (is_whole(op, found)) {
        op_log(op, "the replica of %s is in sync; nothing to do", found->name);
        return true;
    }
    GError *local = NULL;
    if (replace_body(op, uuid, &local))
        return true;
    g_autoptr(GError) ignored = NULL; /* it is `syncing` then, which is no promise either */
    if (!fettle_error_is(local, KILLED))
        instance_set_stale(op, uuid, local->message, &ignored);
    return instance_fail(op, uuid, local, error);
}

const struct op_impl ops_replace[] = {
    {"OP_INSTANCE_REPLACE_DISKS", replace_declare, replace_check, replace_exec},
    {NULL},
};
