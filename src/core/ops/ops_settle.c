/*
 * OP_INSTANCE_SETTLE: what a job that died while it created or removed an instance has left
 * (SAF-23; the table: procedures.md, "Marks of dead jobs"). What runs or is whole on its primary
 * node is kept and the mark goes; only what is half made or half removed is undone, and only by the
 * node's own finding at the moment at which it does that (core/node/undo.h).
 */
#include "core/ops/migration.h"
#include "core/ops/ops.h"
#include "core/ops/replica_copy.h"
#include "core/report/late.h"

#include <string.h>

static bool settle_declare(struct op *op, GError **error)
{
    const struct op_instance_settle *params = op->params;
    const struct instance *instance = op_declare_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    op_lock_node(op, instance->migration_node, LOCK_SHARED);
    return true;
}

static bool settle_check(struct op *op, GError **error)
{
    const struct op_instance_settle *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    if (found->task_state != TASK_CREATING && found->task_state != TASK_REMOVING) {
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" is neither half made nor half removed; nothing is to be "
                         "settled",
                         found->name);
        return false;
    }
    record_autoptr(instance) instance = instance_copy(found);
    return instance_gather_hosts(op, instance, error) &&
           instance_need_node(op, instance, instance->primary_node, "primary", error);
}

/* --- what there is --- */

static struct disks_undo_result *ask(struct op *op, const struct instance *instance, bool look,
                                     GError **error)
{
    struct disks_undo_args args = {.instance = instance->uuid,
                                   .generation = instance->generation,
                                   .disks = instance->disks,
                                   .disk_template = instance->disk_template,
                                   .look = look};
    return op_act(op, instance->primary_node, "disks_undo", &args, ACT_PATIENCE_MS, error);
}

static bool is_left(const struct disks_undo_result *found)
{
    return found->whole || found->state != GUEST_ABSENT;
}

static bool promised(const struct op *op, const struct instance *instance)
{
    const struct replica *replica = op_replica_of(op, instance);
    return replica && replica->state == REPLICA_IN_SYNC;
}

/* The primary has nothing whole. A replica on record as in-sync is as good as that, unless its own
 * node says that it is not there. */
static bool replica_has_it(struct op *op, const struct instance *instance, bool *ret_has,
                           GError **error)
{
    if (!instance_need_node(op, instance, instance->secondary_node, "secondary", error) ||
        !instance_need_disks(op, instance->secondary_node, error))
        return false;
    *ret_has =
        report_has_images(op_report(op, instance->secondary_node), instance, instance->replica);
    return true;
}

/* Who is not in a report does not run there (SAF-90); who is offline is dead by a person's word. */
static bool absent_on(struct op *op, const struct instance *instance, const char *node,
                      GError **error)
{
    if (op_node_offline(op, node))
        return true;
    if (!instance_need_node(op, instance, node, "other", error))
        return false;
    const struct guest_report *guest = report_guest(op_report(op, node), instance);
    if (!guest)
        return true;
    fettle_set_error(
        error, TEMPORARY, "%s has a process of instance \"%s\" (%s); nothing of it is removed",
        op_node_name(op, node), instance->name, enum_word(&guest_state_words, (int)guest->state));
    return false;
}

/* What only waits for a guest that is gone is ended, as by whoever settles the migration; its node
 * refuses that if the guest has come over. */
static bool end_incoming(struct op *op, const struct instance *instance, GError **error)
{
    const struct guest_report *guest =
        report_guest(op_report(op, instance->migration_node), instance);
    return !guest || guest->state != GUEST_INCOMING ||
           (migration_end_target(op, instance, error) &&
            instance_gather_hosts(op, instance, error));
}

static bool absent_elsewhere(struct op *op, const struct instance *instance, GError **error)
{
    const char *nodes[4];
    if (!end_incoming(op, instance, error))
        return false;
    for (guint i = instance_hosts(instance, nodes); i > 0; i--) {
        if (strcmp(nodes[i - 1], instance->primary_node) != 0 &&
            !absent_on(op, instance, nodes[i - 1], error))
            return false;
    }
    return true;
}

/* `ret->removed`: the primary had only a half of it, and has nothing any more. Nothing is removed
 * before every other node that may run it has said that it does not (SAF-82). */
static struct disks_undo_result *undo_half(struct op *op, const struct instance *instance,
                                           GError **error)
{
    bool has = false;
    record_autoptr(disks_undo_result) found = ask(op, instance, true, error);
    if (!found || is_left(found))
        return g_steal_pointer(&found);
    if (!absent_elsewhere(op, instance, error) ||
        (promised(op, instance) && !replica_has_it(op, instance, &has, error)))
        return NULL;
    return has ? g_steal_pointer(&found) : ask(op, instance, false, error);
}

/* --- what is kept --- */

struct keep_call {
    bool runs;
    bool replica_gone; /* an image of it is missing, or may be */
};

/* What another dead job was to bring about before somebody removed the instance goes on. */
static enum task_state mark_after(const struct instance *instance)
{
    if (*instance->migration)
        return TASK_MIGRATING;
    return instance->task_state == TASK_REMOVING ? instance->task_over : TASK_NONE;
}

static bool edit_keep(struct instance_edit *edit, void *data, GError **error)
{
    const struct keep_call *call = data;
    edit_mark(edit, mark_after(edit->instance));
    if (call->runs)
        edit->instance->admin_state = ADMIN_UP;
    if (call->replica_gone && edit->replica && edit->replica->state != REPLICA_STALE)
        edit_replica(edit, REPLICA_STALE, "images of it are missing");
    return true;
}

/* A removal begins with its images: of that only the word of its node counts. */
static bool replica_gone(const struct op *op, const struct instance *instance)
{
    const struct replica *replica = op_replica_of(op, instance);
    const struct node_report *report = op_report(op, instance->secondary_node);
    bool told = report && !late_part_of(report, PART_DISKS);
    return replica && replica->state != REPLICA_STALE &&
           (told ? !report_has_images(report, instance, instance->replica)
                 : instance->task_state == TASK_REMOVING);
}

/* A process that is no guest of this generation is ended by its node, or by the migration that is
 * settled next. */
static bool is_ours(const struct instance *instance, const struct disks_undo_result *found)
{
    return found->state == GUEST_ABSENT || *instance->migration ||
           (found->generation == instance->generation && found->state != GUEST_INCOMING &&
            found->state != GUEST_MIGRATED);
}

/* Held, and does not run: only copied, ended, or never begun. Who should run is started, or closed
 * as switched off, by the watcher as ever. */
static bool is_to_be_closed(const struct instance *instance, const struct disks_undo_result *found)
{
    return *instance->holder && !*instance->migration && found->state != GUEST_RUNNING &&
           (instance->admin_state != ADMIN_UP || found->state == GUEST_PREPARED);
}

static bool close_generation(struct op *op, const struct instance *instance, GError **error)
{
    struct instance_stop stop = {.mark = instance->task_state, .after = instance->task_state};
    return instance_stop(op, instance->uuid, &stop, error);
}

/* On the word `stale` that is on record now. A mirror that is not ended is found lost by the node
 * that has it. */
static void end_mirror(struct op *op, const struct instance *instance)
{
    struct guest_args args = {.instance = instance->uuid, .generation = instance->generation};
    g_autoptr(GError) failure = NULL;
    record_autoptr(nothing) done =
        op_act(op, instance->holder, "mirror_detach", &args, 0, &failure);
    if (!done)
        op_log(op, "its mirror was not ended: %s", failure->message);
}

static bool keep(struct op *op, const struct instance *instance,
                 const struct disks_undo_result *found, GError **error)
{
    bool runs = found->state == GUEST_RUNNING;
    struct keep_call call = {runs && is_ours(instance, found), replica_gone(op, instance)};
    if (!is_ours(instance, found)) {
        fettle_set_error(error, TEMPORARY,
                         "%s has a process of instance \"%s\" of generation %" G_GUINT64_FORMAT
                         ", %" G_GUINT64_FORMAT " is on record; it is not touched",
                         op_node_name(op, instance->primary_node), instance->name,
                         found->generation, instance->generation);
        return false;
    }
    op_log(op, "%s %s: it is kept", instance->name,
           runs           ? "runs"
           : found->whole ? "is whole"
                          : "has a process or a replica");
    if ((is_to_be_closed(instance, found) && !close_generation(op, instance, error)) ||
        !instance_edit(op, "keep_instance", instance->uuid, edit_keep, &call, error))
        return false;
    if (runs && call.replica_gone)
        end_mirror(op, instance);
    return true;
}

/* --- exec --- */

/* By recovery all have, before it had this job made; a person may be sooner. */
static bool refused_by_all(struct op *op, const struct instance *instance, GError **error)
{
    const char *nodes[4];
    for (guint i = instance_hosts(instance, nodes); i > 0; i--) {
        if (!op_node_offline(op, nodes[i - 1]) &&
            !instance_refuse_dead(op, instance, nodes[i - 1], error))
            return false;
    }
    return true;
}

/* A failure leaves the mark: the same again. */
static bool settle_exec(struct op *op, GError **error)
{
    const struct op_instance_settle *params = op->params;
    const struct instance *now = op_find_instance(op, params->instance_name, error);
    if (!now)
        return false;
    record_autoptr(instance) instance = instance_copy(now);
    record_autoptr(disks_undo_result) found =
        refused_by_all(op, instance, error) ? undo_half(op, instance, error) : NULL;
    if (!found)
        return false;
    if (!found->removed)
        return keep(op, instance, found, error);
    g_autoptr(GString) left = g_string_new(NULL);
    op_log(op, "%s is half %s: what there is of it is removed", instance->name,
           instance->task_state == TASK_CREATING ? "made" : "removed");
    if (!instance_remove_rest(op, instance, instance->primary_node, false, left, error))
        return false;
    if (left->len)
        op_log(op, "disks are left on %s; they are set aside when the node returns", left->str);
    return true;
}

const struct op_impl ops_settle[] = {
    {"OP_INSTANCE_SETTLE", settle_declare, settle_check, settle_exec, SEES_NAMED},
    {NULL},
};
