/*
 * OP_INSTANCE_REMOVE; also the undoing of a creation. What is left of the instance is a `removed`
 * record: the proof for nodes that were away that their copy is over (SAF-04). The images that it
 * runs from go last: until then it is whole, and stays if this job dies (SAF-23).
 */
#include "core/config/allocated.h"
#include "core/config/attachments.h"
#include "core/ops/instance.h"
#include "core/ops/ops.h"
#include "core/report/late.h"

#include <string.h>

/* --- the parts, shared with the undoing of a creation --- */

/* What the record said before. */
struct removing_call {
    enum admin_state before;
    bool settled; /* no mark of a dead job: nothing is half made or half removed */
};

static bool edit_removing(struct instance_edit *edit, void *data, GError **error)
{
    struct removing_call *call = data;
    struct instance *instance = edit->instance;
    call->before = instance->admin_state;
    call->settled = instance->task_state == TASK_NONE;
    instance->admin_state = ADMIN_DOWN;
    /* A disk that is half written stays so, whoever removes it (SAF-22). */
    if (instance->task_state != TASK_REMOVING && instance->task_state != TASK_CREATING)
        instance->task_over = instance->task_state;
    edit_mark(edit, TASK_REMOVING);
    return true;
}

static bool build_removed(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const char *uuid = data;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    config_delete_rest(op_config(op), instance, changes);
    attachment_end_all(op_config(op), uuid, changes);
    op_delete(op, changes, "instance", uuid);
    return true;
}

/* Removes what one node has of it. */
static bool clean_node(struct op *op, const struct instance *instance, const char *node,
                       guint patience_ms, GError **error)
{
    struct disks_remove_args args = {
        .instance = instance->uuid, .replica = "", .generation = instance->generation};
    record_autoptr(nothing) done = op_act(op, node, "disks_remove", &args, patience_ms, error);
    return done != NULL;
}

/* The guest first, gracefully; disks_remove would kill it. Of what was whole the wait for it can be
 * given up, and it is whole still. */
static bool stop_guest(struct op *op, const struct instance *instance, guint64 timeout_ms,
                       const struct removing_call *removing, GError **error)
{
    if (!*instance->holder || op_node_offline(op, instance->holder))
        return true;
    struct guest_stop_args args = {
        .instance = instance->uuid, .generation = instance->generation, .timeout_ms = timeout_ms};
    record_autoptr(guest_stop_result) result =
        removing->settled
            ? instance_end_guest(op, instance, timeout_ms, removing->before, error)
            : op_act(op, instance->holder, "guest_stop", &args, ACT_PATIENCE_MS, error);
    return result != NULL;
}

/* --- images that belong to no node --- */

/* Of template sharedfile, and the node that would remove its images does not: another one does. */
static bool needs_another(const struct op *op, const struct instance *instance)
{
    return instance->disk_template == TEMPLATE_SHAREDFILE && instance->disks->len > 0 &&
           op_node_offline(op, instance->primary_node);
}

/* Any node that mounts the folder. An image that a guest has open anywhere stays. */
static bool clean_shared(struct op *op, const struct instance *instance, GError **error)
{
    g_autoptr(GPtrArray) online = op_online_nodes(op, instance->primary_node);
    g_autofree char *why = g_strdup("no node that answers mounts the shared folder");
    if (!op_gather_reports(op, online, error))
        return false;
    for (guint i = 0; i < online->len; i++) {
        const char *node = online->pdata[i];
        const struct node_report *report = op_report(op, node);
        g_autoptr(GError) local = NULL;
        if (!report || !report->shared || !*report->shared || late_part_of(report, PART_SHARED))
            continue;
        if (clean_node(op, instance, node, 0, &local)) {
            op_log(op, "%s removed its images from the shared folder", op_node_name(op, node));
            return true;
        }
        if (fettle_error_is(local, KILLED)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
        g_free(why);
        why = g_strdup(local->message);
    }
    op_log(op, "its images in the shared folder could not be removed: %s", why);
    return true;
}

/* --- the parts again --- */

/* No flag makes up for its word that nothing of it runs (SAF-57). */
static bool may_have_volumes(const struct op *op, const struct instance *instance, const char *node)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(op_config(op), instance->uuid);
    return volumes->len > 0 &&
           (!strcmp(node, instance->holder) || !strcmp(node, instance->migration_node));
}

static void note_failure(struct op *op, GString *left, const char *node, const char *why)
{
    op_log(op, "could not be cleaned: %s", why);
    g_string_append_printf(left, "%s%s", left->len ? ", " : "", op_node_name(op, node));
}

bool instance_remove_rest(struct op *op, const struct instance *instance, const char *except,
                          bool go_on, GString *left, GError **error)
{
    /* What a migration that was not settled left on its target is ended there too. */
    const char *nodes[3];
    for (guint i = allocated_nodes(instance, nodes); i > 0; i--) {
        const char *node = nodes[i - 1];
        g_autoptr(GError) local = NULL;
        if (!strcmp(node, except))
            continue;
        if (op_node_offline(op, node)) {
            note_failure(op, left, node, "its node is offline");
        } else if (!clean_node(op, instance, node, go_on ? 0 : ACT_PATIENCE_MS, &local)) {
            if (!go_on || may_have_volumes(op, instance, node)) {
                g_propagate_error(error, g_steal_pointer(&local));
                return false;
            }
            note_failure(op, left, node, local->message);
        }
    }
    if (needs_another(op, instance) && !clean_shared(op, instance, error))
        return false;
    return op_commit_built(op, "remove_instance", build_removed, instance->uuid, error);
}

bool instance_remove(struct op *op, const char *uuid, guint64 timeout_ms, bool go_on, GString *left,
                     GError **error)
{
    struct removing_call removing = {ADMIN_DOWN, false};
    if (!instance_edit(op, "mark_instance", uuid, edit_removing, &removing, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    g_autoptr(GError) failure = NULL;
    if (!stop_guest(op, instance, timeout_ms, &removing, &failure) &&
        (!go_on || fettle_error_is(failure, CANCELED))) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    return instance_remove_rest(op, instance, "", go_on, left, error);
}

/* --- the opcode --- */

static bool remove_declare(struct op *op, GError **error)
{
    const struct op_instance_remove *params = op->params;
    const struct instance *instance = op_declare_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    op_lock_node(op, instance->migration_node, LOCK_SHARED);
    g_autoptr(GPtrArray) online = needs_another(op, instance)
                                      ? op_online_nodes(op, instance->primary_node)
                                      : g_ptr_array_new();
    for (guint i = 0; i < online->len; i++)
        op_lock_node(op, online->pdata[i], LOCK_SHARED);
    return true;
}

static bool need_answer(const struct op *op, const struct instance *instance, const char *node,
                        GError **error)
{
    if (op_report(op, node))
        return true;
    g_autofree char *why = op_no_report(op, node);
    if (may_have_volumes(op, instance, node))
        fettle_set_error(error, TEMPORARY,
                         "%s, which may run instance \"%s\" with its volumes, %s; try again, or if "
                         "its power is off: fettle node modify %s --offline yes --statement \"…\"",
                         op_node_name(op, node), instance->name, why, op_node_name(op, node));
    else
        fettle_set_error(error, TEMPORARY,
                         "%s, which has disks of instance \"%s\", %s; try again, or with "
                         "--ignore-failures",
                         op_node_name(op, node), instance->name, why);
    return false;
}

static bool remove_check(struct op *op, GError **error)
{
    const struct op_instance_remove *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    const char *nodes[3];
    guint count = allocated_nodes(instance, nodes);
    g_autoptr(GPtrArray) asked = g_ptr_array_new();
    for (guint i = 0; i < count; i++) {
        if (!op_node_offline(op, nodes[i]) &&
            (!params->ignore_failures || may_have_volumes(op, instance, nodes[i])))
            g_ptr_array_add(asked, (void *)nodes[i]);
    }
    if (!op_gather_reports(op, asked, error))
        return false;
    for (guint i = 0; i < asked->len; i++) {
        if (!need_answer(op, instance, asked->pdata[i], error))
            return false;
    }
    return true;
}

static bool remove_exec(struct op *op, GError **error)
{
    const struct op_instance_remove *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    g_autofree char *uuid = g_strdup(found->uuid);
    g_autoptr(GString) left = g_string_new(NULL);
    /* No settling after a failure: a half removed instance keeps its mark, so that nobody starts
     * it until it is known whether anything is gone (ops_settle.c). */
    if (!instance_remove(op, uuid, params->shutdown_timeout * 1000, params->ignore_failures, left,
                         error))
        return false;
    if (left->len)
        op_log(op, "disks are left on %s; they are set aside when the node returns", left->str);
    return true;
}

const struct op_impl ops_remove[] = {
    {"OP_INSTANCE_REMOVE", remove_declare, remove_check, remove_exec, SEES_NAMED},
    {NULL},
};
