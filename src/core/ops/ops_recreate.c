/*
 * OP_INSTANCE_RECREATE_DISKS: new, blank disks for an instance whose data are lost. Nothing that is
 * left is destroyed: nodes keep it aside (SAF-19). The rule for what counts as lost stands in
 * procedures.md, "Recreate disks"; wconfd checks the part of it that records can show.
 */
#include "core/ops/ops.h"
#include "core/ops/recreate.h"
#include "core/ops/replica_copy.h"
#include "core/placement/placement.h"
#include "core/placement/placement_refusal.h"
#include "core/report/faults.h"

#include <string.h>

static bool is_mirror(const struct instance *instance)
{
    return instance->disk_template == TEMPLATE_MIRROR;
}

/* --- where they are made --- */

static struct placement_need need_of(const struct op *op, const struct instance *instance,
                                     bool primary)
{
    return (struct placement_need){
        .what = primary ? "the primary node" : "the secondary node",
        .memory = primary ? allocated_next(instance) : 0,
        .disk = allocated_disk_size(instance->disks),
        .sums = op->sums,
        .refused = reports_refusals(op->reports),
        .rank_by_disk = !primary,
        .nics = instance->nics,
        .volumes_of = instance->uuid,
        .now = op_now_seconds(op),
    };
}

static bool choose(struct op *op, const struct instance *instance, bool primary, GError **error)
{
    struct placement_need need = need_of(op, instance, primary);
    char **chosen = primary ? &op->primary : &op->secondary;
    /* The choice that was made before the locks were granted, else where it is now. */
    g_autofree char *before = g_strdup(*chosen);
    need.prefer = before ? before : primary ? instance->primary_node : instance->secondary_node;
    need.excluded[0] = primary ? NULL : op->primary;
    need.because[0] = "is to be the primary node";
    need.files[0] = instance->kernel_path;
    need.files[1] = instance->initrd_path;
    /* Nobody reads it now, but it may be what comes onto the disks next. */
    if (primary && placement_file_is_known(reports_list(op->reports), instance->os))
        need.files[2] = instance->os;
    const struct node *node =
        placement_choose(op_config(op), reports_list(op->reports), &need, error);
    if (node)
        text_set(chosen, node->uuid);
    return node != NULL;
}

/* A mirror for whose replica there is no room is made without one: it is better off so than dead,
 * and gets one when there is. */
static bool choose_secondary(struct op *op, const struct instance *instance, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (choose(op, instance, false, &why))
        return true;
    if (!fettle_error_is(why, NO_RESOURCES)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    g_clear_pointer(&op->secondary, g_free);
    return true;
}

static bool named_nodes(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_recreate_disks *params = op->params;
    guint most = is_mirror(instance) ? 2 : 1;
    if (params->nodes->len > most) {
        fettle_set_error(
            error, WRONG_INPUT, "nodes: instance \"%s\" is of template %s and needs %u, not %u",
            instance->name, enum_word(&disk_template_words, (int)instance->disk_template), most,
            params->nodes->len);
        return false;
    }
    char **members[] = {&op->primary, &op->secondary};
    for (guint i = 0; i < params->nodes->len; i++) {
        const struct node *node = op_find_node(op, params->nodes->pdata[i], error);
        if (!node)
            return false;
        text_set(members[i], node->uuid);
    }
    if (op->secondary == NULL || strcmp(op->primary, op->secondary))
        return true;
    fettle_set_error(error, WRONG_INPUT, "nodes: a replica needs another node than \"%s\"",
                     op_node_name(op, op->primary));
    return false;
}

static bool gather(struct op *op, const struct instance *instance, GError **error)
{
    return instance_gather_online(op, error) && op_gather_room(op, instance, error);
}

static bool template_is_right(const struct instance *instance, GError **error)
{
    if (instance->disk_template == TEMPLATE_DISKLESS)
        fettle_set_error(error, WRONG_STATE, "instance \"%s\" is diskless: it has no disks",
                         instance->name);
    else if (instance->disk_template == TEMPLATE_SHAREDFILE)
        fettle_set_error(error, WRONG_STATE,
                         "the disks of instance \"%s\" are in the folder that all nodes mount: "
                         "they are lost with no node; bring the folder back, or remove the "
                         "instance and create it again",
                         instance->name);
    else
        return true;
    return false;
}

/* --- whether the data are lost --- */

static bool runs_nowhere(const struct op *op, const struct instance *instance, GError **error)
{
    const char *node = NULL;
    if (*instance->holder && !op_node_offline(op, instance->holder))
        node = instance->holder;
    const GPtrArray *reports = reports_list(op->reports);
    for (guint i = 0; i < reports->len && !node; i++) {
        const struct node_report *report = reports->pdata[i];
        const struct guest_report *guest = report_guest(report, instance);
        if (guest && guest->state == GUEST_RUNNING)
            node = report->node;
    }
    if (!node)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "instance \"%s\" is not stopped on %s; stop it first: fettle instance "
                     "shutdown %s",
                     instance->name, op_node_name(op, node), instance->name);
    return false;
}

/* Of a node that is not said to be dead only its own word counts. `*ret_there`: it has the images,
 * on disks that work. */
static bool ask_images(const struct op *op, const struct instance *instance, const char *node,
                       const char *replica, const char *role, bool *ret_there, GError **error)
{
    *ret_there = false;
    if (op_node_offline(op, node))
        return true;
    if (!instance_need_node(op, instance, node, role, error) ||
        !instance_need_disks(op, node, error))
        return false;
    const struct node_report *report = op_report(op, node);
    *ret_there =
        faults_proven(report, FAULT_DISKS) == NULL && report_has_images(report, instance, replica);
    return true;
}

static bool data_are_lost(const struct op *op, const struct instance *instance, GError **error)
{
    const struct replica *replica = op_replica_of(op, instance);
    bool whole = replica && replica->state == REPLICA_IN_SYNC;
    bool primary = false, secondary = false;
    if (!ask_images(op, instance, instance->primary_node, "", "primary", &primary, error) ||
        (whole &&
         !ask_images(op, instance, replica->node, replica->uuid, "secondary", &secondary, error)))
        return false;
    if (secondary)
        fettle_set_error(error, UNSAFE,
                         "the replica on %s has the data of instance \"%s\"; nothing is lost: "
                         "fettle instance failover %s",
                         op_node_name(op, replica->node), instance->name, instance->name);
    else if (primary)
        fettle_set_error(error, UNSAFE,
                         "%s has the disks of instance \"%s\"; they are not given up (to write an "
                         "image onto them: fettle instance reinstall %s)",
                         op_node_name(op, instance->primary_node), instance->name, instance->name);
    return !primary && !secondary;
}

/* Nobody runs it and nobody has its data. UNSAFE or WRONG_STATE if somebody does, TEMPORARY if
 * nobody can know. */
static bool nothing_to_lose(const struct op *op, const struct instance *instance, GError **error)
{
    return runs_nowhere(op, instance, error) && data_are_lost(op, instance, error);
}

/* --- what a dead job has left --- */

/* Its mark stands, and this job has none yet. */
static bool left_by_a_job(const struct instance *instance)
{
    return instance->task_state == TASK_RECREATING_DISKS;
}

/* Nobody holds it, or its primary node does and only copies, or has nothing of it running. */
static bool is_at_rest(const struct instance *instance, const struct node_report *primary)
{
    const struct guest_report *guest = report_guest(primary, instance);
    return !*instance->holder || (!strcmp(instance->holder, instance->primary_node) &&
                                  (!guest || guest->state != GUEST_RUNNING));
}

/* The disks on record are on their node, waiting or taken: those that the job has made, or that it
 * found lost and that came back. They are taken as they are. */
static bool disks_are_there(const struct op *op, const struct instance *instance)
{
    const struct node_report *report = op_report(op, instance->primary_node);
    const struct disk *first = instance->disks->pdata[0];
    /* They are taken disk by disk: a death in the middle leaves some under either name. */
    guint64 disks =
        report_images(report, instance, first->uuid) | report_images(report, instance, "");
    return left_by_a_job(instance) && is_at_rest(instance, report) &&
           instance_need_disks(op, instance->primary_node, NULL) &&
           images_are_whole(instance, disks);
}

/* The job has given nothing up on record, and what it thought to be lost is back: nothing is made.
 */
static bool data_are_back(const struct op *op, const struct instance *instance, GError **error)
{
    g_autoptr(GError) why = NULL;
    if (!left_by_a_job(instance) || nothing_to_lose(op, instance, &why) ||
        fettle_error_is(why, TEMPORARY))
        return false;
    g_propagate_error(error, g_steal_pointer(&why));
    return true;
}

static bool left_as_it_is(const struct op *op, const struct instance *instance)
{
    return disks_are_there(op, instance) || data_are_back(op, instance, NULL);
}

/* --- locks --- */

static bool recreate_declare(struct op *op, GError **error)
{
    const struct op_instance_recreate_disks *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || !template_is_right(found, error))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    if (!gather(op, instance, error))
        return false;
    bool given = params->nodes && params->nodes->len;
    if (given && !named_nodes(op, instance, error))
        return false;
    if (!given && !left_as_it_is(op, instance) &&
        (!choose(op, instance, true, error) ||
         (is_mirror(instance) && !choose_secondary(op, instance, error))))
        return false;
    op_lock_instance(op, instance->name);
    op_lock_node(op, instance->primary_node, LOCK_SHARED);
    op_lock_node(op, instance->secondary_node, LOCK_SHARED);
    op_lock_node(op, op->primary, LOCK_SHARED);
    op_lock_node(op, op->secondary, LOCK_SHARED);
    op_lock_room(op, op->primary);
    op_lock_room(op, op->secondary);
    return true;
}

/* --- check --- */

static bool node_takes_it(struct op *op, const struct instance *instance, bool primary,
                          GError **error)
{
    const char *uuid = primary ? op->primary : op->secondary;
    const struct node *node = config_get(op_config(op), "node", uuid, NULL);
    const struct node_report *report = op_report(op, uuid);
    struct placement_need need = need_of(op, instance, primary);
    g_autofree char *why = NULL;
    if (placement_fits(op_config(op), node, report, &need, &why)) {
        op_log_faults(op, uuid);
        return true;
    }
    g_autofree char *sentence =
        g_strdup_printf("nodes: node \"%s\" cannot be %s: it %s", node->name, need.what, why);
    placement_refusal_set(op_config(op), error, node, report, &need, sentence);
    return false;
}

static bool recreate_check(struct op *op, GError **error)
{
    const struct op_instance_recreate_disks *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || (!left_by_a_job(found) && !instance_need_whole(op, found, error)))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    if (!gather(op, instance, error))
        return false;
    if (left_as_it_is(op, instance))
        return true;
    return nothing_to_lose(op, instance, error) && node_takes_it(op, instance, true, error) &&
           (op->secondary == NULL || node_takes_it(op, instance, false, error));
}

/* --- exec --- */

/* The mark goes, and with it what the job may have made; `why` (stolen) says why. */
static bool withdraw(struct op *op, const struct instance *instance, GError *why, GError **error)
{
    g_autofree char *uuid = g_strdup(instance->uuid);
    op_log(op, "job %" G_GUINT64_FORMAT " ended before it had given anything up",
           instance->task_owner);
    if (instance_settle(op, uuid, error)) {
        g_propagate_error(error, why);
        return false;
    }
    g_error_free(why);
    return false;
}

static bool recreate_exec(struct op *op, GError **error)
{
    const struct op_instance_recreate_disks *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    g_autofree char *uuid = g_strdup(found->uuid);
    bool there = disks_are_there(op, found);
    GError *local = NULL;
    if (!there && data_are_back(op, found, &local))
        return withdraw(op, found, local, error);
    if (!recreate_make(op, uuid, there, &local))
        return instance_fail(op, uuid, local, error);
    record_autoptr(instance) now = instance_now(op, uuid, error);
    if (!now)
        return false;
    op->result = json_make("[s]", op_node_name(op, now->primary_node));
    if (*now->secondary_node)
        json_array_append_new(op->result, json_string(op_node_name(op, now->secondary_node)));
    return true;
}

const struct op_impl ops_recreate[] = {
    {"OP_INSTANCE_RECREATE_DISKS", recreate_declare, recreate_check, recreate_exec, SEES_NAMED},
    {NULL},
};
