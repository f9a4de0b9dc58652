/*
 * The two ends of a live migration. See migration.h.
 */
#include "core/ops/migration.h"

#include "core/report/late.h"

#include "core/config/invariants.h"
#include "core/ops/replica_copy.h"

#include <string.h>

void migration_end_clear(struct migration_end *end)
{
    g_clear_pointer(&end->why, g_free);
}

/* --- following it --- */

static void take_end(const struct migration_status *status, bool wished, struct migration_end *end)
{
    end->moved = status->state == MIGRATION_MOVED;
    end->canceled = wished && status->state == MIGRATION_CANCELED;
    g_free(end->why);
    end->why = *status->why ? g_strdup(status->why) : NULL;
}

static bool under_way(const struct migration_status *status)
{
    return status->state == MIGRATION_COPYING || status->state == MIGRATION_SWITCHING;
}

static struct migration_status *cancel(struct op *op, const struct instance *instance,
                                       GError **error)
{
    struct migration_args args = {.instance = instance->uuid, .migration = instance->migration};
    return op_act(op, instance->primary_node, "migration_cancel", &args, ACT_PATIENCE_MS, error);
}

static void tell_progress(struct op *op, const char *what, const struct migration_status *status)
{
    op_progress(op, what, status->transferred_mib, status->transferred_mib + status->remaining_mib,
                "MiB");
}

static void tell_end(struct op *op, const struct instance *instance,
                     const struct migration_status *status)
{
    if (status->state == MIGRATION_MOVED)
        op_log(op, "%s has gone over to %s; it stood still for %" G_GUINT64_FORMAT " ms",
               instance->name, op_node_name(op, instance->migration_node), status->downtime_ms);
}

bool migration_follow(struct op *op, const struct instance *instance, struct migration_end *ret_end,
                      GError **error)
{
    struct migration_wait_args args = {
        .instance = instance->uuid, .migration = instance->migration, .wait_ms = MIGRATION_WAIT_MS};
    g_autofree char *what =
        g_strdup_printf("migration to %s", op_node_name(op, instance->migration_node));
    bool asked_to_end = false;
    for (;;) {
        gint64 asked = op->env->ops->boot_ms(op->env);
        bool end = !asked_to_end && op_canceled(op);
        record_autoptr(migration_status) status =
            end ? cancel(op, instance, error)
                : op_act(op, instance->primary_node, "migration_wait", &args, ACT_PATIENCE_MS,
                         error);
        if (!status)
            return false;
        if (end)
            op_log(op, "the job is to be canceled");
        asked_to_end = asked_to_end || end;
        tell_progress(op, what, status);
        if (!under_way(status)) {
            tell_end(op, instance, status);
            take_end(status, asked_to_end, ret_end);
            return true;
        }
        /* A node that does not wait is not asked without end. */
        if (op->env->ops->boot_ms(op->env) - asked < ACT_PAUSE_MS)
            env_sleep(op->env, ACT_PAUSE_MS);
    }
}

/* --- it has gone over --- */

static bool edit_full_copy(struct instance_edit *edit, void *data, GError **error)
{
    if (edit->replica && edit->replica->state == REPLICA_STALE)
        edit_replica(edit, REPLICA_SYNCING, "copied in full after a migration");
    return true;
}

/* The mirror back to the node that it came from. set_migrated recorded what that node keeps with
 * sync 1: `syncing` if it equals the new images, so that nothing needs to be copied; every other
 * state, and every later one, is copied in full. */
static bool open_way_back(struct op *op, const char *uuid, struct guest_start_args *args,
                          struct export_target **ret_target, GError **error)
{
    const struct instance *found = config_get(op_config(op), "instance", uuid, NULL);
    const struct replica *replica = found ? op_replica_of(op, found) : NULL;
    if (!replica)
        return true;
    args->full = replica->state != REPLICA_SYNCING || replica->sync != 1;
    if (op_node_offline(op, replica->node))
        return instance_set_stale(op, uuid, "its node is offline", error);
    if (args->full && !instance_edit(op, "change_replica", uuid, edit_full_copy, NULL, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    return instance && instance_open_replica(op, instance, ret_target, &args->sync, error);
}

static bool boot_instead(struct op *op, struct guest_start_args *args, GError **error)
{
    struct instance *instance = args->instance;
    op_log(op, "what arrived on %s is gone; %s is started anew from its disks",
           op_node_name(op, instance->primary_node), instance->name);
    args->migration = (char *)"";
    record_autoptr(nothing) done =
        op_act(op, instance->primary_node, "guest_start", args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

static bool let_run(struct op *op, struct guest_start_args *args, GError **error)
{
    struct instance *instance = args->instance;
    g_autoptr(GError) local = NULL;
    record_autoptr(nothing) done =
        op_act(op, instance->primary_node, "guest_start", args, ACT_PATIENCE_MS, &local);
    if (done)
        return true;
    if (fettle_error_is(local, WRONG_STATE)) {
        g_clear_error(&local);
        if (boot_instead(op, args, &local))
            return true;
    }
    if (!fettle_error_is(local, REFUSED)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    /* Used up by a node daemon that died in the middle. */
    struct instance_start next = {.mark = TASK_MIGRATING, .run = true};
    op_log(op, "%s; trying the next generation", local->message);
    return instance_start(op, instance->uuid, &next, error);
}

static bool start_moved(struct op *op, const char *uuid, GError **error)
{
    record_autoptr(export_target) target = NULL;
    struct guest_start_args args = {.full = true, .run = true};
    const struct instance *found = config_get(op_config(op), "instance", uuid, NULL);
    if (found && op_node_offline(op, found->primary_node)) {
        fettle_set_error(error, WRONG_STATE, "that node is offline, nothing is started there");
        return false;
    }
    if (!open_way_back(op, uuid, &args, &target, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    g_autoptr(GPtrArray) volumes = instance_volumes(op, uuid);
    args.instance = instance;
    args.volumes = volumes;
    args.target = target;
    args.full = args.full || !target;
    args.migration = instance->migration;
    op_log(op, "%s goes on on %s, generation %" G_GUINT64_FORMAT, instance->name,
           op_node_name(op, instance->primary_node), instance->generation);
    return let_run(op, &args, error);
}

/* The copied disks' originals; a node that does not give them up keeps them aside later. */
static void clean_source(struct op *op, const struct instance *instance, const char *node)
{
    if (instance->disk_template != TEMPLATE_FILE || op_node_offline(op, node))
        return;
    struct disks_remove_args args = {
        .instance = instance->uuid, .replica = (char *)"", .generation = instance->generation};
    g_autoptr(GError) failure = NULL;
    record_autoptr(nothing) done = op_act(op, node, "disks_remove", &args, 0, &failure);
    if (!done)
        op_log(op, "the old images could not be removed: %s", failure->message);
}

static bool has_images(const struct node_report *report, const struct instance *instance)
{
    if (report && late_part_of(report, PART_DISKS))
        return false;
    for (guint i = 0; report && report->images && i < report->images->len; i++)
        if (!strcmp(report->images->pdata[i], instance->uuid))
            return true;
    return false;
}

/* The record names the source no more: it is who has images that the record does not know of. A
 * node that does not answer now sets them aside when it returns. */
static bool clean_sources(struct op *op, const struct instance *instance, GError **error)
{
    if (instance->disk_template != TEMPLATE_FILE)
        return true;
    g_autoptr(GPtrArray) others = op_online_nodes(op, instance->primary_node);
    if (!op_gather_reports(op, others, error))
        return false;
    for (guint i = 0; i < others->len; i++)
        if (has_images(op_report(op, others->pdata[i]), instance))
            clean_source(op, instance, others->pdata[i]);
    return true;
}

static bool edit_cleared(struct instance_edit *edit, void *data, GError **error)
{
    text_set(&edit->instance->migration, "");
    text_set(&edit->instance->migration_node, "");
    edit_mark(edit, TASK_NONE);
    return true;
}

/* What is known of the guest on the node that holds it; NULL: nothing, because the node does not
 * answer. False: the process is being killed. */
static bool look(struct op *op, const struct instance *instance, const struct node_report **report,
                 GError **error)
{
    *report = NULL;
    if (!instance_gather(op, instance->primary_node, NULL, error))
        return false;
    *report = op_report(op, instance->primary_node);
    return true;
}

bool migration_finish(struct op *op, const char *uuid, const char *source, GError **error)
{
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    const struct node_report *report = NULL;
    if (!instance || !look(op, instance, &report, error))
        return false;
    g_autoptr(GError) local = NULL;
    bool running = report_runs(report, instance) || start_moved(op, uuid, &local);
    if (running && source)
        clean_source(op, instance, source);
    else if (running && !clean_sources(op, instance, error))
        return false;
    /* Whether it runs is not known: the migration stays on record until somebody has looked. */
    if (!running && (env_no_answer(local) || fettle_error_is(local, KILLED))) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    if (!instance_edit(op, "end_migration", uuid, edit_cleared, NULL, error))
        return false;
    if (running)
        return true;
    g_propagate_prefixed_error(error, g_steal_pointer(&local),
                               "instance \"%s\" belongs to %s now, but does not run there: ",
                               instance->name, op_node_name(op, instance->primary_node));
    return false;
}

/* --- it has not --- */

bool migration_end_target(struct op *op, const struct instance *instance, GError **error)
{
    if (!invariants_migrating(instance) || op_node_offline(op, instance->migration_node))
        return true;
    struct migration_args args = {.instance = instance->uuid, .migration = instance->migration};
    record_autoptr(nothing) done =
        op_act(op, instance->migration_node, "incoming_close", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

struct abandoned {
    bool runs;     /* on the node that it was to leave */
    bool reattach; /* out: its replica was given up in the switch-over */
};

static bool edit_abandoned(struct instance_edit *edit, void *data, GError **error)
{
    struct abandoned *abandoned = data;
    struct instance *instance = edit->instance;
    if (*instance->migration && !invariants_migrating(instance)) {
        fettle_set_error(error, WRONG_STATE, "instance \"%s\" has gone over to %s after all",
                         instance->name, op_node_name(edit->op, instance->migration_node));
        return false;
    }
    abandoned->reattach = abandoned->runs && edit->replica &&
                          edit->replica->state == REPLICA_STALE &&
                          !op_node_offline(edit->op, edit->replica->node);
    text_set(&instance->migration, "");
    text_set(&instance->migration_node, "");
    edit_mark(edit, abandoned->reattach ? TASK_MIGRATING : TASK_NONE);
    if (abandoned->reattach)
        edit_replica(edit, REPLICA_SYNCING, "attached again after a migration that failed");
    return true;
}

/* The guest runs on without redundancy if this fails; the record says so. */
static bool attach_again(struct op *op, const char *uuid, GError **error)
{
    g_autoptr(GError) local = NULL;
    if (replica_copy_attach(op, uuid, true, &local))
        return instance_settle(op, uuid, error);
    if (fettle_error_is(local, KILLED)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    op_log(op, "the replica could not be attached again: %s", local->message);
    return instance_set_stale(op, uuid, local->message, error) && instance_settle(op, uuid, error);
}

bool migration_abandon(struct op *op, const char *uuid, GError **error)
{
    /* Its replica may have been given up since. */
    if (!follow_refresh(op->follow, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    const struct node_report *report = NULL;
    if (!instance || !migration_end_target(op, instance, error) ||
        !look(op, instance, &report, error))
        return false;
    struct abandoned abandoned = {.runs = report_runs(report, instance)};
    if (!instance_edit(op, "end_migration", uuid, edit_abandoned, &abandoned, error))
        return false;
    return !abandoned.reattach || attach_again(op, uuid, error);
}

/* Nothing is on record any more but the mark: the job died when it was attaching the replica again.
 */
static bool settle_mark(struct op *op, const struct instance *instance, GError **error)
{
    const struct node_report *report = NULL;
    if (instance->task_state != TASK_MIGRATING)
        return true;
    if (!look(op, instance, &report, error))
        return false;
    const struct replica *replica = op_replica_of(op, instance);
    const struct guest_report *guest = report_guest(report, instance);
    bool detached = report_runs(report, instance) && guest->mirror == MIRROR_NONE && replica &&
                    replica->state == REPLICA_SYNCING;
    return detached ? attach_again(op, instance->uuid, error)
                    : instance_settle(op, instance->uuid, error);
}

/* --- one or the other --- */

/* The node that it leaves may be gone while the record tells how it ended. */
static bool ask_source(struct op *op, const struct instance *instance,
                       struct migration_end *ret_end, GError **error)
{
    g_autoptr(GError) local = NULL;
    record_autoptr(migration_status) status = cancel(op, instance, &local);
    if (status && under_way(status))
        return migration_follow(op, instance, ret_end, error);
    if (status)
        take_end(status, false, ret_end);
    if (!follow_refresh(op->follow, error))
        return false;
    const struct instance *now = config_get(op_config(op), "instance", instance->uuid, NULL);
    ret_end->moved = now && *now->migration && !invariants_migrating(now);
    if (status || ret_end->moved)
        return true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

bool migration_settle(struct op *op, const char *uuid, struct migration_end *ret_end,
                      GError **error)
{
    if (!follow_refresh(op->follow, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    if (!*instance->migration)
        return settle_mark(op, instance, error);
    if (!invariants_migrating(instance)) {
        ret_end->moved = true;
        return migration_finish(op, uuid, NULL, error);
    }
    if (op_node_offline(op, instance->primary_node))
        ret_end->why = g_strdup_printf("%s is offline", op_node_name(op, instance->primary_node));
    else if (!ask_source(op, instance, ret_end, error))
        return false;
    return ret_end->moved ? migration_finish(op, uuid, instance->primary_node, error)
                          : migration_abandon(op, uuid, error);
}
