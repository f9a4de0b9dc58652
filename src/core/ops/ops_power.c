/*
 * OP_INSTANCE_STARTUP, OP_INSTANCE_SHUTDOWN, OP_INSTANCE_REBOOT.
 */
#include "core/config/fault.h"
#include "core/ops/instance.h"
#include "core/ops/ops.h"
#include "core/placement/placement.h"

#include <string.h>

static bool edit_up_and_settled(struct instance_edit *edit, void *data, GError **error)
{
    edit->instance->admin_state = ADMIN_UP;
    edit_mark(edit, TASK_NONE);
    return true;
}

static bool edit_down_and_settled(struct instance_edit *edit, void *data, GError **error)
{
    const bool *keeps_wish = data;
    if (!*keeps_wish)
        edit->instance->admin_state = ADMIN_DOWN;
    if (!instance_half_installed(edit->instance))
        edit_mark(edit, TASK_NONE);
    return true;
}

/* Power has to work also where a disk cannot be finished now; then nobody will by himself. */
static void tell_of_growth(struct op *op, const struct instance *instance)
{
    if (instance->task_state == TASK_GROWING_DISK)
        op_log(op,
               "job %" G_GUINT64_FORMAT " ended while it made a disk of %s larger; whether each "
               "has the size on record tells, and sees to: fettle instance grow-disk %s DISK SIZE "
               "--absolute",
               instance->task_owner, instance->name, instance->name);
}

/* --- startup --- */

static bool startup_declare(struct op *op, GError **error)
{
    const struct op_instance_startup *params = op->params;
    return op_declare_instance(op, params->instance_name, error);
}

static bool memory_is_there(struct op *op, const struct instance *instance, GError **error)
{
    const struct node *node = config_get(op_config(op), "node", instance->primary_node, NULL);
    struct placement_room room;
    if (!op_gather_room(op, instance, error))
        return false;
    placement_room(op_config(op), op_report(op, node->uuid), op->sums, &room);
    if ((gint64)allocated_next(instance) <= room.memory)
        return true;
    fettle_set_error(error, NO_RESOURCES,
                     "%s has %" G_GINT64_FORMAT
                     " MiB of memory left, instance \"%s\" needs %" G_GUINT64_FORMAT " MiB",
                     node->name, MAX(room.memory, 0), instance->name, allocated_next(instance));
    return false;
}

/* A person's word needs a person's reason. */
static bool check_statement(const struct op_instance_startup *params, GError **error)
{
    if (params->from_primary && !*params->statement)
        fettle_set_error(error, WRONG_INPUT,
                         "statement: --from-primary gives up what the replica has; say why, with "
                         "--statement");
    else if (!params->from_primary && *params->statement)
        fettle_set_error(error, WRONG_INPUT, "statement: goes with --from-primary only");
    else
        return true;
    return false;
}

static bool startup_check(struct op *op, GError **error)
{
    const struct op_instance_startup *params = op->params;
    if (!check_statement(params, error))
        return false;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || !instance_need_whole(op, found, error))
        return false;
    if (instance_half_installed(found))
        return instance_need_settled(op, found, TASK_NONE, error);
    record_autoptr(instance) instance = instance_copy(found);
    return instance_gather(op, instance->primary_node, NULL, error) &&
           instance_need_node(op, instance, instance->primary_node, "primary", error) &&
           (report_guest(op_report(op, instance->primary_node), instance) ||
            memory_is_there(op, instance, error));
}

static bool startup_body(struct op *op, const char *uuid, GError **error)
{
    const struct op_instance_startup *params = op->params;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    const struct guest_report *guest =
        report_guest(op_report(op, instance->primary_node), instance);
    bool current = guest && *instance->holder && guest->generation == instance->generation;
    if (current && guest->state == GUEST_RUNNING) {
        /* Also the second half of a start whose job died. */
        op_log(op, "%s runs already on %s", instance->name,
               op_node_name(op, instance->primary_node));
        return instance->admin_state == ADMIN_UP && instance->task_state == TASK_NONE &&
                       !fault_of(op_config(op), "instance", uuid)
                   ? true
                   : instance_edit(op, "mark_instance", uuid, edit_up_and_settled, NULL, error);
    }
    /* Switched off by itself, or left paused by a job that died: it is closed first, so that its
     * replica can be taken over without a copy if it was whole. */
    struct instance_stop stop = {.mark = TASK_STARTING, .after = TASK_STARTING, .wish_up = true};
    struct instance_start start = {.mark = TASK_STARTING,
                                   .run = true,
                                   .wish_up = true,
                                   .statement = params->from_primary ? params->statement : NULL};
    if (current && !instance_stop(op, uuid, &stop, error))
        return false;
    return instance_start(op, uuid, &start, error) && instance_settle(op, uuid, error);
}

static bool startup_exec(struct op *op, GError **error)
{
    const struct op_instance_startup *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    g_autofree char *uuid = g_strdup(found->uuid);
    GError *local = NULL;
    tell_of_growth(op, found);
    return startup_body(op, uuid, &local) || instance_fail(op, uuid, local, error);
}

/* --- shutdown --- */

static bool shutdown_declare(struct op *op, GError **error)
{
    const struct op_instance_shutdown *params = op->params;
    return op_declare_instance(op, params->instance_name, error);
}

/* What a dead creation has left prepared or paused is closed for recovery, which judges what is
 * there after that: the mark stays. */
static bool closes_creation(const struct op *op, const struct instance *instance)
{
    const struct op_instance_shutdown *params = op->params;
    return op_finishes(params->if_task) && instance->task_state == TASK_CREATING;
}

/* What runs is kept (SAF-23). */
static bool need_quiet(struct op *op, const struct instance *found, GError **error)
{
    record_autoptr(instance) instance = instance_copy(found);
    if (!instance_gather(op, instance->holder, NULL, error) || !*instance->holder)
        return !*instance->holder;
    if (!instance_need_node(op, instance, instance->holder, "primary", error))
        return false;
    const struct guest_report *guest = report_guest(op_report(op, instance->holder), instance);
    if (!guest || (guest->state != GUEST_RUNNING && !guest->late))
        return true;
    fettle_set_error(error, TEMPORARY,
                     "%s reports that instance \"%s\" runs, or cannot tell; it is not stopped",
                     op_node_name(op, instance->holder), instance->name);
    return false;
}

static bool shutdown_check(struct op *op, GError **error)
{
    const struct op_instance_shutdown *params = op->params;
    const struct instance *instance = op_find_instance(op, params->instance_name, error);
    if (instance && closes_creation(op, instance))
        return need_quiet(op, instance, error);
    if (!instance || !instance_need_whole(op, instance, error))
        return false;
    if (!*instance->holder || !op_node_offline(op, instance->holder))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "%s, where instance \"%s\" ran last, is offline; fail the instance over, or "
                     "bring the node back",
                     op_node_name(op, instance->holder), instance->name);
    return false;
}

static bool shutdown_exec(struct op *op, GError **error)
{
    const struct op_instance_shutdown *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    g_autofree char *uuid = g_strdup(found->uuid);
    bool creating = closes_creation(op, found);
    /* Whoever finishes another job's work wishes nothing. */
    bool keeps_wish = op_finishes(params->if_task);
    tell_of_growth(op, found);
    if (!*found->holder) {
        op_log(op, "%s does not run", found->name);
        return creating ||
               instance_edit(op, "mark_instance", uuid, edit_down_and_settled, &keeps_wish, error);
    }
    struct instance_stop stop = {.mark = creating ? TASK_CREATING : TASK_STOPPING,
                                 .after = creating ? TASK_CREATING : TASK_NONE,
                                 .wish_down = !keeps_wish,
                                 .timeout_ms = params->force ? 0 : params->timeout * 1000};
    bool wished = found->admin_state == ADMIN_DOWN;
    GError *local = NULL;
    if (instance_stop(op, uuid, &stop, &local))
        return true;
    if (!creating && (!wished || !fettle_error_is(local, WRONG_STATE)))
        return instance_fail(op, uuid, local, error);
    /* It could not be asked just now, but its end was accepted before: the mark stays, and the
     * watcher comes back to it. */
    g_propagate_error(error, local);
    return false;
}

/* --- reboot --- */

static bool reboot_declare(struct op *op, GError **error)
{
    const struct op_instance_reboot *params = op->params;
    return op_declare_instance(op, params->instance_name, error);
}

static bool reboot_check(struct op *op, GError **error)
{
    const struct op_instance_reboot *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || !instance_need_whole(op, found, error) ||
        !instance_need_settled(op, found, TASK_NONE, error))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    if (!instance_gather(op, instance->primary_node, NULL, error) ||
        !instance_need_node(op, instance, instance->primary_node, "primary", error))
        return false;
    const struct guest_report *guest =
        report_guest(op_report(op, instance->primary_node), instance);
    if (*instance->holder && guest && guest->generation == instance->generation &&
        guest->state == GUEST_RUNNING)
        return true;
    fettle_set_error(error, WRONG_STATE, "instance \"%s\" does not run; start it", instance->name);
    return false;
}

static bool reset_guest(struct op *op, const struct instance *instance, GError **error)
{
    struct guest_args args = {.instance = instance->uuid, .generation = instance->generation};
    record_autoptr(nothing) done =
        op_act(op, instance->holder, "guest_reset", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

static bool restart(struct op *op, const char *uuid, guint64 timeout_ms, GError **error)
{
    struct instance_stop stop = {
        .mark = TASK_STARTING, .after = TASK_STARTING, .timeout_ms = timeout_ms};
    struct instance_start start = {.mark = TASK_STARTING, .run = true, .wish_up = true};
    return instance_stop(op, uuid, &stop, error) && instance_start(op, uuid, &start, error) &&
           instance_settle(op, uuid, error);
}

static bool reboot_exec(struct op *op, GError **error)
{
    const struct op_instance_reboot *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    if (params->reboot_type == REBOOT_HARD)
        return reset_guest(op, instance, error);
    GError *local = NULL;
    return restart(op, instance->uuid, params->shutdown_timeout * 1000, &local) ||
           instance_fail(op, instance->uuid, local, error);
}

const struct op_impl ops_power[] = {
    {"OP_INSTANCE_STARTUP", startup_declare, startup_check, startup_exec, SEES_NAMED},
    {"OP_INSTANCE_SHUTDOWN", shutdown_declare, shutdown_check, shutdown_exec, SEES_NAMED},
    {"OP_INSTANCE_REBOOT", reboot_declare, reboot_check, reboot_exec, SEES_NAMED},
    {NULL},
};
