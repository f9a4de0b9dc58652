/*
 * OP_INSTANCE_REPLACE_DISKS (SAF-18): a new replica by a full copy, or, if its node is back with
 * the images of the old one, that one brought up to date. From the first commit on the instance has
 * no redundancy on record until the copy is ready.
 *
 * A failure leaves the replica on record as stale, which is a known state and no worse than the one
 * before: every step is idempotent by generation, so it may be tried again (ARP-54).
 */
#include "core/ops/ops.h"
#include "core/ops/replica_copy.h"
#include "core/placement/placement.h"
#include "core/placement/placement_refusal.h"
#include "core/report/faults.h"

#include <string.h>

/* --- declare --- */

static bool choose_other(struct op *op, const struct instance *instance, GError **error)
{
    record_autoptr(instance) copy = instance_copy(instance);
    if (!instance_gather_online(op, error) || !op_gather_room(op, NULL, error))
        return false;
    g_autofree char *what = g_strdup_printf("the secondary node of instance \"%s\"", copy->name);
    struct placement_need need = {
        .what = what,
        .disk = allocated_disk_size(copy->disks),
        .excluded = {copy->primary_node, copy->secondary_node},
        .because = {"is its primary node", "is its secondary node now"},
        .prefer = op->secondary,
        .rank_by_disk = true,
        .nics = copy->nics,
        .volumes_of = copy->uuid,
        .files = {copy->kernel_path, copy->initrd_path},
        .now = op_now_seconds(op),
        .sums = op->sums,
        .refused = reports_refusals(op->reports),
    };
    const struct node *node =
        placement_choose(op_config(op), reports_list(op->reports), &need, error);
    if (node)
        text_set(&op->secondary, node->uuid);
    return node != NULL;
}

static bool drained(const struct op *op, const char *node_uuid)
{
    const struct node *node = config_get(op_config(op), "node", node_uuid, NULL);
    return node && node->drained;
}

/* Whether the node of the old replica can keep it: it is not to be emptied, and it can. */
static bool old_node_serves(struct op *op, const struct instance *instance, bool *ret_serves,
                            GError **error)
{
    *ret_serves = false;
    if (!*instance->secondary_node || op_node_offline(op, instance->secondary_node) ||
        drained(op, instance->secondary_node))
        return true;
    g_autofree char *uuid = g_strdup(instance->secondary_node);
    g_autoptr(GPtrArray) wanted = g_ptr_array_new();
    g_ptr_array_add(wanted, uuid);
    if (!op_gather_reports(op, wanted, error))
        return false;
    *ret_serves = placement_keeps_replica(op_report(op, uuid));
    return true;
}

/* Another node, or else the full one: what has its space already may be brought up to date there.
 */
static bool choose_roomier(struct op *op, const struct instance *instance, GError **error)
{
    g_autofree char *full = g_strdup(instance->secondary_node);
    g_autoptr(GError) none = NULL;
    if (choose_other(op, instance, &none))
        return true;
    if (!fettle_error_is(none, NO_RESOURCES)) {
        g_propagate_error(error, g_steal_pointer(&none));
        return false;
    }
    text_set(&op->secondary, full);
    return true;
}

static bool find_target(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_replace_disks *params = op->params;
    if (*params->remote_node) {
        const struct node *node = op_find_node(op, params->remote_node, error);
        if (node)
            text_set(&op->secondary, node->uuid);
        return node != NULL;
    }
    bool same = params->mode == REPLACE_ON_SECONDARY;
    if (params->mode == REPLACE_AUTO && !old_node_serves(op, instance, &same, error))
        return false;
    if (!same)
        return choose_other(op, instance, error);
    if (params->mode == REPLACE_AUTO && placement_is_full(op_report(op, instance->secondary_node)))
        return choose_roomier(op, instance, error);
    if (*instance->secondary_node) {
        text_set(&op->secondary, instance->secondary_node);
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
    op_lock_room(op, op->secondary);
    return true;
}

/* --- check --- */

/* Whether there is nothing to mend: `replace_auto` leaves a whole replica alone. The record alone
 * does not make it whole: its node may answer that somebody has removed the images (ARP-70). */
static bool is_whole(const struct op *op, const struct instance *instance)
{
    const struct op_instance_replace_disks *params = op->params;
    const struct replica *replica = op_replica_of(op, instance);
    if (params->mode != REPLACE_AUTO || *params->remote_node || !replica ||
        replica->state != REPLICA_IN_SYNC || op_node_offline(op, replica->node) ||
        drained(op, replica->node))
        return false;
    const struct node_report *report = op_report(op, replica->node);
    return !report || report_has_images(report, instance, replica->uuid);
}

/* Its node answers that the old replica is no copy any more. */
static bool lacks_images(const struct op *op, const struct instance *instance)
{
    const struct node_report *report = op_report(op, instance->secondary_node);
    return report && !report_has_images(report, instance, instance->replica);
}

static bool target_takes_it(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_replace_disks *params = op->params;
    const struct node *node = config_get(op_config(op), "node", op->secondary, NULL);
    const struct node_report *report = op_report(op, op->secondary);
    /* On the same node the old replica makes room for the new one, and a copy that cannot run there
     * is better than none. */
    bool same = !strcmp(op->secondary, instance->secondary_node);
    if (!op_gather_room(op, NULL, error))
        return false;
    struct placement_need need = {.disk = same ? 0 : allocated_disk_size(instance->disks),
                                  .sums = op->sums,
                                  .refused = reports_refusals(op->reports),
                                  .excluded = {instance->primary_node},
                                  .because = {"is its primary node"},
                                  .nics = same ? NULL : instance->nics,
                                  .volumes_of = same ? NULL : instance->uuid};
    g_autofree char *why = NULL;
    /* What is chosen has them, as far as nodes tell. */
    bool asks = *params->remote_node && !same;
    op_log_faults(op, node->uuid);
    if (placement_fits(op_config(op), node, report, &need, &why))
        return !asks || instance_need_boot_files(op, node->uuid, instance->kernel_path,
                                                 instance->initrd_path, error);
    g_autofree char *sentence =
        g_strdup_printf("node \"%s\" cannot take the replica of instance \"%s\": it %s", node->name,
                        instance->name, why);
    placement_refusal_set(op_config(op), error, node, report, &need, sentence);
    return false;
}

static bool replace_check(struct op *op, GError **error)
{
    const struct op_instance_replace_disks *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || !instance_need_whole(op, found, error) ||
        !instance_need_settled(op, found, TASK_REPLACING_DISKS, error))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    return instance_gather(op, instance->primary_node, op->secondary, error) &&
           instance_need_node(op, instance, instance->primary_node, "primary", error) &&
           (is_whole(op, instance) || lacks_images(op, instance) ||
            instance_need_own_disks(op, instance, error)) &&
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

static bool detach(struct op *op, const struct instance *instance, GError **error)
{
    struct guest_args guest = {.instance = instance->uuid, .generation = instance->generation};
    record_autoptr(nothing) detached =
        op_act(op, instance->holder, "mirror_detach", &guest, ACT_PATIENCE_MS, error);
    return detached != NULL;
}

/* The old replica goes: mirror first, on the word `stale` that is on record now; then its images,
 * unless they may be all that is whole until there is another (SAF-24): their node sets them aside.
 * A node that does not give them up is named, and finds out by itself that they are over. */
static bool drop_old(struct op *op, const struct instance *instance, bool runs, GError **error)
{
    if (!*instance->replica)
        return true;
    if (runs && !detach(op, instance, error))
        return false;
    if (op_node_offline(op, instance->secondary_node))
        return true;
    const struct replica *old = op_replica_of(op, instance);
    if (old && old->keep != 0) {
        op_log(op, "the images on %s, which were whole, are kept aside there",
               op_node_name(op, old->node));
        return true;
    }
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
    text_set(&instance->secondary_node, new->node);
    text_set(&instance->replica, new->uuid);
    edit_mark(edit, TASK_REPLACING_DISKS);
    return true;
}

static bool make_images(struct op *op, const struct instance *instance, GError **error)
{
    struct disks_create_args args = {.instance = instance->uuid,
                                     .replica = instance->replica,
                                     .disks = instance->disks,
                                     .os_type = (char *)"",
                                     .disk_template = instance->disk_template};
    return replica_copy_make_images(op, instance->secondary_node, &args, error);
}

/* Without a running guest: if the instance should run it is simply started. */
static bool copy_without_guest(struct op *op, const struct instance *instance, GError **error)
{
    struct instance_start start = {.mark = TASK_REPLACING_DISKS, .run = true};
    if (instance->admin_state != ADMIN_UP)
        return replica_copy_at_rest(op, instance->uuid, TASK_REPLACING_DISKS, error);
    return instance_start(op, instance->uuid, &start, error) &&
           instance_wait_mirror(op, instance->uuid, error);
}

/* --- the old replica once more --- */

/* Whether its node has its images still. Only a choice of ours takes them: a person who names a
 * node or a mode wants a new copy. */
static bool old_images_are_there(const struct op *op, const struct instance *instance)
{
    const struct op_instance_replace_disks *params = op->params;
    if (params->mode != REPLACE_AUTO || *params->remote_node || !*instance->replica ||
        strcmp(op->secondary, instance->secondary_node))
        return false;
    return report_has_images(op_report(op, op->secondary), instance, instance->replica);
}

/* --- another replica --- */

static bool copy_anew(struct op *op, const struct instance *old, bool runs, GError **error)
{
    g_autofree char *replica = env_uuid(op->env);
    struct new_replica new = {replica, op->secondary};
    if (!drop_old(op, old, runs, error) ||
        !instance_edit(op, "replace_replica", old->uuid, edit_new_replica, &new, error))
        return false;
    op_unlock_room(op);
    record_autoptr(instance) instance = instance_now(op, old->uuid, error);
    if (!instance)
        return false;
    op_log(op, "copying %s to %s", instance->name, op_node_name(op, new.node));
    if (!make_images(op, instance, error))
        return false;
    if (!runs)
        return copy_without_guest(op, instance, error);
    return replica_copy_attach(op, instance->uuid, false, error) &&
           instance_wait_mirror(op, instance->uuid, error);
}

/* A guest that is paused was left by a copy whose job died, or has switched itself off. It is
 * closed, and what follows is as for a stopped one; so is what has ended without a close. */
static bool close_paused(struct op *op, const struct instance *instance, bool *ret_runs,
                         GError **error)
{
    const struct guest_report *guest =
        report_guest(op_report(op, instance->primary_node), instance);
    bool current = *instance->holder && guest && guest->generation == instance->generation;
    struct instance_stop stop = {.mark = TASK_REPLACING_DISKS,
                                 .after = TASK_REPLACING_DISKS,
                                 .wish_down = current && guest->state == GUEST_SHUTDOWN};
    const struct replica *replica = op_replica_of(op, instance);
    bool ended = *instance->holder && !guest && replica && replica->state == REPLICA_IN_SYNC &&
                 op_report(op, instance->holder);
    *ret_runs = current && guest->state == GUEST_RUNNING;
    return *ret_runs || !(current || ended) || instance_stop(op, instance->uuid, &stop, error);
}

/* What nobody runs is closed, and the old replica is not given up if it may be all that there is.
 * Nothing else has been touched after a failure. */
static bool prepare(struct op *op, const char *uuid, bool *ret_runs, GError **error)
{
    record_autoptr(instance) found = instance_now(op, uuid, error);
    if (!found || !close_paused(op, found, ret_runs, error))
        return false;
    record_autoptr(instance) closed = instance_now(op, uuid, error);
    if (!closed || *closed->holder)
        return closed != NULL;
    return lacks_images(op, closed) ||
           instance_need_sound(op, closed, op_replica_of(op, closed), error);
}

/* Under a running guest only what was written meanwhile has to be copied. Images that turn out to
 * be of no use are no reason to give up: a new copy is made. */
static bool attach_old(struct op *op, const struct instance *old, GError **error)
{
    g_autoptr(GError) local = NULL;
    op_log(op, "bringing the replica of %s on %s up to date", old->name,
           op_node_name(op, old->secondary_node));
    op_unlock_room(op);
    if (!detach(op, old, error) ||
        !replica_copy_set_syncing(op, old->uuid, TASK_REPLACING_DISKS, "attached again", error))
        return false;
    if (replica_copy_attach(op, old->uuid, true, &local))
        return instance_wait_mirror(op, old->uuid, error);
    if (env_no_answer(local) || fettle_error_is(local, TEMPORARY) ||
        fettle_error_is(local, PARTED) || fettle_error_is(local, KILLED)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    op_log(op, "the old replica is of no use (%s)", local->message);
    return instance_set_stale(op, old->uuid, local->message, error) &&
           copy_anew(op, old, true, error);
}

static bool replace_body(struct op *op, const char *uuid, bool runs, GError **error)
{
    if (!instance_edit(op, "change_replica", uuid, edit_without_redundancy, NULL, error))
        return false;
    record_autoptr(instance) old = instance_now(op, uuid, error);
    if (!old)
        return false;
    bool copied = runs && old_images_are_there(op, old) ? attach_old(op, old, error)
                                                        : copy_anew(op, old, runs, error);
    return copied && instance_settle(op, uuid, error);
}

/* What is there after a failure is on record, so a repair may try again, from what it finds then
 * (ARP-54): an error that speaks of the replica or its node becomes a passing one. */
static void let_try_again(struct op *op, GError **error)
{
    static const enum fettle_error of_the_copy[] = {FETTLE_ERROR_STORAGE, FETTLE_ERROR_HYPERVISOR,
                                                    FETTLE_ERROR_UNKNOWN_RESULT,
                                                    FETTLE_ERROR_REFUSED, FETTLE_ERROR_WRONG_STATE};
    op->changed = false;
    for (guint i = 0; i < G_N_ELEMENTS(of_the_copy); i++) {
        if (!g_error_matches(*error, FETTLE_ERROR, (int)of_the_copy[i]))
            continue;
        GError *passing = NULL;
        fettle_set_error(&passing, TEMPORARY,
                         "%s; the replica is on record as stale, and trying again is safe",
                         (*error)->message);
        g_clear_error(error);
        *error = passing;
        return;
    }
}

static bool close_copy(struct op *op, const struct instance *instance, GError **error)
{
    struct replica_close_args args = {.instance = instance->uuid,
                                      .replica = instance->replica,
                                      .generation = instance->generation};
    record_autoptr(nothing) closed =
        op_act(op, instance->secondary_node, "replica_close", &args, 0, error);
    return closed != NULL;
}

/* Somebody has ended the wait for the copy. It would go on, and be of no use when it is ready: the
 * replica is on record as stale. */
static void give_copy_up(struct op *op, const char *uuid, GError **error)
{
    g_autoptr(GError) failure = NULL;
    record_autoptr(instance) instance = instance_now(op, uuid, &failure);
    if (instance && *instance->holder &&
        (!detach(op, instance, &failure) || !close_copy(op, instance, &failure)))
        op_log(op, "the copy ends later: %s", failure->message);
    g_clear_error(error);
    fettle_set_error(error, CANCELED,
                     "the copy was given up; until there is another instance \"%s\" has no "
                     "redundancy: fettle instance replace-disks %s",
                     instance ? instance->name : uuid, instance ? instance->name : uuid);
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
    record_autoptr(instance) instance = instance_copy(found);
    /* While the record says whose requests its node has to refuse: the first commit takes the mark
     * over. */
    if (old_images_are_there(op, instance) &&
        !instance_refuse_dead(op, instance, instance->secondary_node, error))
        return false;
    GError *local = NULL;
    bool runs = false;
    if (!prepare(op, uuid, &runs, &local))
        return instance_fail(op, uuid, local, error);
    if (replace_body(op, uuid, runs, &local))
        return true;
    g_autoptr(GError) ignored = NULL; /* it is `syncing` then, which is no promise either */
    bool canceled = fettle_error_is(local, CANCELED);
    bool known =
        !fettle_error_is(local, KILLED) &&
        instance_set_stale(op, uuid, canceled ? "its copy was canceled" : local->message, &ignored);
    if (known && canceled)
        give_copy_up(op, uuid, &local);
    instance_settle_after(op, uuid, local);
    if (known && !canceled)
        let_try_again(op, &local);
    g_propagate_error(error, local);
    return false;
}

const struct op_impl ops_replace[] = {
    {"OP_INSTANCE_REPLACE_DISKS", replace_declare, replace_check, replace_exec, SEES_NAMED},
    {NULL},
};
