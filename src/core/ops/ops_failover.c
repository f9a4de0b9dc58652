/*
 * OP_INSTANCE_FAILOVER (SAF-16): the replica becomes the instance, on evidence only: the replica is
 * on record as in-sync, and the old node is offline on a person's word or has stopped the guest
 * itself. What that has of it becomes the replica, if it is worth a copy (SAF-26).
 */
#include "core/config/allocated.h"
#include "core/config/attachments.h"
#include "core/config/unheard.h"
#include "core/ops/instance.h"
#include "core/ops/migration.h"
#include "core/ops/ops.h"
#include "core/ops/replica_copy.h"
#include "core/placement/placement.h"
#include "core/placement/placement_refusal.h"
#include "core/report/faults.h"
#include "core/report/late.h"

#include <string.h>

static bool mirrored(const struct instance *instance)
{
    return instance->disk_template == TEMPLATE_MIRROR;
}

/* --- where to --- */

/* Whether the guest could be booted on op->primary, as far as that node says; if not, why is put
 * into `lacking`. */
static bool boots_there(struct op *op, const struct instance *instance, GHashTable *lacking)
{
    g_autoptr(GError) error = NULL;
    if (instance->admin_state == ADMIN_DOWN ||
        instance_need_boot_files(op, op->primary, instance->kernel_path, instance->initrd_path,
                                 &error) ||
        !fettle_error_is(error, UNKNOWN_ENTITY))
        return true;
    g_hash_table_insert(
        lacking, g_strdup(op->primary),
        g_strdup_printf("does not have what it is booted from (%s)", error->message));
    return false;
}

/* The choice made before the locks were granted is kept if it still fits. `live`: what runs goes
 * over as it runs. */
static bool choose_by_room(struct op *op, const struct instance *instance, bool live,
                           GError **error)
{
    record_autoptr(instance) copy = instance_copy(instance);
    g_autoptr(GPtrArray) wanted = op_online_nodes(op, live ? NULL : copy->primary_node);
    g_autoptr(GHashTable) lacking = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (!op_gather_reports(op, wanted, error) || !op_gather_room(op, copy, error))
        return false;
    g_autofree char *what = g_strdup_printf("the new node of instance \"%s\"", copy->name);
    bool local = copy->disk_template == TEMPLATE_FILE;
    struct placement_need need = {
        .what = what,
        .memory = live ? allocated_need(copy) : allocated_next(copy),
        .disk = local ? allocated_disk_size(copy->disks) : 0,
        .excluded = {copy->primary_node},
        .because = {"is its node now"},
        .nics = copy->nics,
        .volumes_of = copy->uuid,
        .shared =
            placement_shared(reports_list(op->reports), copy->disk_template, copy->primary_node),
        .qemu_from = live ? report_qemu(op_report(op, copy->primary_node), copy) : NULL,
        .lacking = lacking,
        .now = op_now_seconds(op),
        .sums = op->sums,
        .refused = reports_refusals(op->reports),
    };
    if (copy->admin_state != ADMIN_DOWN) {
        need.files[0] = copy->kernel_path;
        need.files[1] = copy->initrd_path;
    }
    do { /* nodes that do not tell what they have are asked, one after the other */
        need.prefer = op->primary;
        const struct node *node =
            placement_choose(op_config(op), reports_list(op->reports), &need, error);
        if (!node)
            return false;
        text_set(&op->primary, node->uuid);
    } while (!boots_there(op, copy, lacking));
    return true;
}

bool instance_choose_target(struct op *op, const struct instance *instance, const char *named,
                            bool live, GError **error)
{
    if (*named) {
        const struct node *node = op_find_node(op, named, error);
        if (node)
            text_set(&op->primary, node->uuid);
        return node != NULL;
    }
    if (!mirrored(instance))
        return choose_by_room(op, instance, live, error);
    text_set(&op->primary, instance->secondary_node);
    return true;
}

bool instance_check_target(const struct op *op, const struct instance *instance, GError **error)
{
    const char *target = op_node_name(op, op->primary);
    if (!strcmp(op->primary, instance->primary_node)) {
        fettle_set_error(error, WRONG_INPUT, "instance \"%s\" is on %s already", instance->name,
                         target);
        return false;
    }
    if (!mirrored(instance) || !strcmp(op->primary, instance->secondary_node))
        return true;
    fettle_set_error(
        error, WRONG_INPUT,
        "instance \"%s\" can go to %s only, where its replica is, not to %s; or first: "
        "fettle instance replace-disks %s --remote-node=%s",
        instance->name, op_node_name(op, instance->secondary_node), target, instance->name, target);
    return false;
}

/* --- declare --- */

static bool failover_declare(struct op *op, GError **error)
{
    const struct op_instance_failover *params = op->params;
    const struct instance *instance = op_find_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    op_lock_instance(op, instance->name);
    /* Shared also on an offline primary: it cannot be declared alive in the middle. */
    op_lock_node(op, instance->primary_node, LOCK_SHARED);
    op_lock_node(op, instance->migration_node, LOCK_SHARED);
    /* What cannot move is told so by the check, and not by the lack of a node for it. */
    if (instance->disk_template == TEMPLATE_FILE)
        text_set(&op->primary, "");
    else if (!instance_choose_target(op, instance, params->target_node, false, error))
        return false;
    op_lock_node(op, op->primary, LOCK_SHARED);
    op_lock_room(op, op->primary);
    return true;
}

/* --- check --- */

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
    g_autofree char *since = instance_replica_since(replica);
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
    /* Of disks that both nodes reach only the power switch keeps the old one (SAF-21). */
    bool shared = attachment_shares(op_config(op), instance);
    if (op_refused(op, instance->primary_node)) {
        g_autofree char *why = op_no_report(op, instance->primary_node);
        fettle_set_error(error, TEMPORARY,
                         "%s %s, so whether instance \"%s\" runs there is not known; mend it "
                         "first",
                         name, why, instance->name);
        return false;
    }
    fettle_set_error(
        error, UNSAFE,
        "%s does not answer, but nobody said that it is dead, so instance \"%s\" may "
        "still run there%s; if %s: fettle node modify %s --offline=yes --statement ...",
        name, instance->name, shared ? ", on the disks that all nodes share" : "",
        shared ? "its power is off" : "it is really dead", name);
    return false;
}

static bool target_has_memory(struct op *op, const struct instance *instance, GError **error)
{
    const struct node *node = config_get(op_config(op), "node", op->primary, NULL);
    if (!op_gather_room(op, instance, error))
        return false;
    struct placement_need need = {.memory = allocated_next(instance),
                                  .sums = op->sums,
                                  .refused = reports_refusals(op->reports),
                                  .nics = instance->nics,
                                  .volumes_of = instance->uuid,
                                  .shared = placement_shared(reports_list(op->reports),
                                                             instance->disk_template,
                                                             instance->primary_node),
                                  .only_copy = mirrored(instance)};
    g_autofree char *why = NULL;
    if (mirrored(instance) && instance->admin_state == ADMIN_DOWN) /* it takes no room there */
        return instance_need_served(op, instance, op->primary, error);
    /* A drained node takes no new instances, but its own replica may be all that is left. */
    record_autoptr(node) judged = node_copy(node);
    judged->drained = judged->drained && !mirrored(instance);
    const struct node_report *report = op_report(op, node->uuid);
    if (placement_fits(op_config(op), judged, report, &need, &why)) {
        op_log_faults(op, node->uuid);
        return true;
    }
    g_autofree char *sentence =
        g_strdup_printf("instance \"%s\" cannot go to %s: it %s", instance->name, node->name, why);
    placement_refusal_set(op_config(op), error, judged, report, &need, sentence);
    return false;
}

static bool disks_can_follow(const struct op *op, const struct instance *instance, GError **error)
{
    if (instance->disk_template == TEMPLATE_FILE) {
        fettle_set_error(
            error, WRONG_STATE,
            "the disks of instance \"%s\" are on %s only (template file); it moves only "
            "while it runs: fettle instance migrate %s",
            instance->name, op_node_name(op, instance->primary_node), instance->name);
        return false;
    }
    return !mirrored(instance) ||
           replica_is_whole(op, instance, op_replica_of(op, instance), error);
}

/* The record tells what was written; that the images still exist only their node can tell. */
static bool images_are_there(const struct op *op, const struct instance *instance, GError **error)
{
    const struct node_report *report = op_report(op, op->primary);
    guint64 disks = report_images(report, instance, instance->replica);
    if (!mirrored(instance))
        return true;
    if (!instance_need_disks(op, op->primary, error))
        return false;
    if (images_are_whole(instance, disks))
        return true;
    g_autofree char *missing = images_missing(instance, disks);
    /* What would be copied from images that may not be whole is a person's word (SAF-24). */
    bool unsound = !*instance->holder && !instance->clean && instance->sound != SOUND_YES;
    g_autofree char *advice = g_strdup_printf(
        unsound ? "startup %s --from-primary --statement ..." : "replace-disks %s", instance->name);
    fettle_set_error(error, UNSAFE,
                     "%s answers that it does not have %s of the replica of instance \"%s\": there "
                     "is nothing to fail over to; if %s still has its disks: fettle instance %s",
                     op_node_name(op, op->primary), missing, instance->name,
                     op_node_name(op, instance->primary_node), advice);
    return false;
}

/* Whether there is a shared folder that it lacks, others say if the primary is dead. */
static bool gather(struct op *op, const struct instance *instance, GError **error)
{
    if (!instance_gather(op, instance->primary_node, op->primary, error))
        return false;
    const struct node_report *report = op_report(op, op->primary);
    bool lacking = instance->disk_template == TEMPLATE_SHAREDFILE && report &&
                   (!report->shared || !*report->shared);
    return !lacking || instance_gather_online(op, error);
}

/* What is to run is stopped only if it can be started there. */
static bool target_boots_it(struct op *op, const struct instance *instance, GError **error)
{
    return instance->admin_state == ADMIN_DOWN ||
           instance_need_boot_files(op, op->primary, instance->kernel_path, instance->initrd_path,
                                    error);
}

bool instance_failover_check(struct op *op, const struct instance *instance, GError **error)
{
    return disks_can_follow(op, instance, error) && instance_check_target(op, instance, error) &&
           gather(op, instance, error) && primary_is_judged(op, instance, error) &&
           instance_need_node(op, instance, op->primary, mirrored(instance) ? "secondary" : "new",
                              error) &&
           images_are_there(op, instance, error) && target_has_memory(op, instance, error) &&
           target_boots_it(op, instance, error);
}

/* A job that was creating or removing it has died, and so has its node: what that has of it nobody
 * can say (SAF-23), but its replica has everything. */
static bool left_whole(const struct op *op, const struct instance *instance)
{
    const struct replica *replica = op_replica_of(op, instance);
    bool half = instance->task_state == TASK_CREATING || instance->task_state == TASK_REMOVING;
    return half && instance->task_over == TASK_NONE && replica && replica->state == REPLICA_IN_SYNC;
}

/* Half installed, and its replica does not have that: it waits for its image, and not for a replica
 * that only the same image mends. */
static bool waits_for_image(const struct op *op, const struct instance *instance)
{
    const struct replica *replica = op_replica_of(op, instance);
    return mirrored(instance) && instance_half_installed(instance) &&
           !(replica && replica->state == REPLICA_IN_SYNC);
}

static bool failover_check(struct op *op, GError **error)
{
    const struct op_instance_failover *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    /* The death of its node ends a migration: what waits on the target is ended there, and what
     * follows is a failover like any other. */
    bool over =
        (*found->migration || left_whole(op, found)) && op_node_offline(op, found->primary_node);
    if (!over && !instance_need_whole(op, found, error))
        return false;
    if (waits_for_image(op, found))
        return instance_need_settled(op, found, TASK_NONE, error);
    record_autoptr(instance) instance = instance_copy(found);
    return instance_failover_check(op, instance, error);
}

/* --- exec --- */

struct promotion {
    char *replica;         /* out: UUID of the replica that is promoted, "" for none */
    char *old_primary;     /* out */
    char *left;            /* UUID for the replica that is made of the old images; NULL: none is */
    bool closed_clean;     /* and their node says that nothing has run from them since */
    guint64 generation;    /* of the record that it was asked about */
    guint64 unheard_since; /* out */
};

/* Why the images that the old primary has are not worth a copy; NULL if they are. */
static const char *why_not_left(const struct op *op, const struct instance *instance)
{
    const struct node_report *report = op_report(op, instance->primary_node);
    if (!report)
        return "their node gives no report";
    if (instance->sound == SOUND_NO)
        return "they are not sound";
    if (faults_find(report, FAULT_DISKS) || late_part_of(report, PART_DISKS))
        return "its disks are not well";
    return report_has_images(report, instance, "") ? NULL : "some are missing";
}

/* The images that the old primary has become the new replica, if their node keeps them for that
 * (SAF-26). Asked before the commit, after which a node that is no primary any more would set them
 * aside. */
static bool leave_images(struct op *op, const struct instance *before, struct promotion *promotion,
                         GError **error)
{
    record_autoptr(instance) instance = instance_now(op, before->uuid, error);
    if (!instance || !mirrored(instance) || op_node_offline(op, instance->primary_node))
        return instance != NULL;
    g_autofree char *replica = env_uuid(op->env);
    struct replica_leave_args args = {.instance = instance->uuid,
                                      .replica = replica,
                                      .generation = instance->generation,
                                      .disks = instance->disks};
    g_autoptr(GError) failure = NULL;
    const char *why = before->task_state == TASK_GROWING_DISK ? "a disk of it was growing"
                                                              : why_not_left(op, instance);
    record_autoptr(replica_leave_result) result =
        why ? NULL
            : op_act(op, instance->primary_node, "replica_leave", &args, OPEN_PATIENCE_MS,
                     &failure);
    if (result) {
        promotion->left = g_strdup(result->replica);
        promotion->closed_clean = result->equal;
        promotion->generation = instance->generation;
    } else if (fettle_error_is(failure, KILLED)) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    } else {
        op_log(op, "the old images become no replica (%s); %s keeps them aside",
               failure ? failure->message : why, op_node_name(op, instance->primary_node));
    }
    return true;
}

/* In-sync only if both say that the copies are equal. Else they are copied anew with the next
 * start, and kept as they are until that is done (SAF-24). */
static void put_left(struct instance_edit *edit, const struct promotion *promotion, bool equal)
{
    struct op *op = edit->op;
    struct instance *instance = edit->instance;
    struct replica replica = {
        .uuid = promotion->left,
        .instance = instance->uuid,
        .node = promotion->old_primary,
        .generation = instance->generation,
        .sync = 1,
        .state = equal ? REPLICA_IN_SYNC : REPLICA_STALE,
        .keep = equal ? 0 : instance->generation,
        .why = (char *)(equal ? "left by a clean close" : "left by a close that was not clean"),
        .since = op_now_seconds(op)};
    op_put(op, edit->changes, "replica", replica.uuid, replica_to_json(&replica));
    text_set(&instance->secondary_node, promotion->old_primary);
    text_set(&instance->replica, promotion->left);
}

/* What nobody can know any more (SAF-09). */
static void tell_unheard(struct op *op, const struct promotion *promotion)
{
    g_autofree char *since = unheard_time(promotion->unheard_since);
    if (promotion->unheard_since)
        op_log(op,
               "%s cannot tell what the master before answered it: from %s on that one may have "
               "accepted, alone, that this replica is stale, if its copies had been counted out; "
               "then writes that were acknowledged since are missing",
               op_node_name(op, promotion->old_primary), since);
}

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
    text_set(&promotion->replica, instance->replica);
    text_set(&promotion->old_primary, instance->primary_node);
    promotion->unheard_since = unheard_since(op_config(op), instance, edit->replica);
    if (edit->replica)
        op_delete(op, edit->changes, "replica", edit->replica->uuid);
    op_use_room(op, edit->changes);
    bool equal = promotion->left && instance->clean && promotion->closed_clean &&
                 instance->generation == promotion->generation;
    instance->generation++;
    instance->clean = equal;
    instance->sound = SOUND_UNKNOWN;
    allocated_take_next(instance);
    text_set(&instance->primary_node, op->primary);
    text_set(&instance->holder, "");
    text_set(&instance->secondary_node, "");
    text_set(&instance->replica, "");
    text_set(&instance->migration, "");
    text_set(&instance->migration_node, "");
    if (promotion->left)
        put_left(edit, promotion, equal);
    /* It is moved as it is, and installed there when this job has ended. */
    edit_mark(edit, instance_half_installed(instance) ? TASK_REINSTALLING : TASK_FAILING_OVER);
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
                                      .promote = true,
                                      .equal = instance->clean,
                                      .disks = instance->disks};
    record_autoptr(nothing) done =
        op_act(op, instance->primary_node, "replica_close", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* Of what is not started nobody opens the replica; by that its node gives the images their name. */
static void name_left(struct op *op, const struct instance *instance)
{
    if (!*instance->replica)
        return;
    struct replica_close_args args = {.instance = instance->uuid,
                                      .replica = instance->replica,
                                      .generation = instance->generation};
    g_autoptr(GError) failure = NULL;
    record_autoptr(nothing) done =
        op_act(op, instance->secondary_node, "replica_close", &args, 0, &failure);
    if (!done)
        op_log(op, "the images that are left: %s", failure->message);
}

static bool start_promoted(struct op *op, const struct instance *instance, GError **error)
{
    struct instance_start start = {.mark = TASK_FAILING_OVER, .run = true};
    if (instance->admin_state == ADMIN_UP && !instance_half_installed(instance))
        return instance_start(op, instance->uuid, &start, error);
    name_left(op, instance);
    return true;
}

static bool may_run(const struct op *op, const struct instance *instance)
{
    return *instance->holder && !op_node_offline(op, instance->holder);
}

/* A guest that is to be stopped may take its time; others may look for room meanwhile. */
static bool keep_room(struct op *op, const struct instance *instance, GError **error)
{
    return !may_run(op, instance) ||
           op_reserve_room(op, instance->name, op->primary, allocated_next(instance), error);
}

/* The guest still runs on a node that answers: it is stopped there, so the replica is closed
 * clean. If that does not work out the instance goes on where it was. */
static bool stop_on_old_primary(struct op *op, const struct instance *instance, guint64 timeout_ms,
                                GError **error)
{
    if (!may_run(op, instance))
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

/* What it has now instead of the copy that was promoted. */
static void tell_redundancy(struct op *op, const char *uuid, const struct promotion *promotion)
{
    record_autoptr(instance) instance = instance_now(op, uuid, NULL);
    const struct replica *replica = instance ? op_replica_of(op, instance) : NULL;
    const char *node = op_node_name(op, promotion->old_primary);
    if (!instance || !mirrored(instance))
        return;
    if (!replica)
        op_log(op, "%s has no replica any more; give it one: fettle instance replace-disks %s",
               instance->name, instance->name);
    else if (replica->state == REPLICA_IN_SYNC)
        op_log(op, "its images on %s are its replica now, in-sync", node);
    else if (replica->state == REPLICA_SYNCING)
        op_log(op, "its images on %s are its replica now, and are being copied anew", node);
    else
        op_log(op,
               "its images on %s are its replica now, stale (%s); they are copied anew when it "
               "starts, or by: fettle instance replace-disks %s",
               node, replica->why, instance->name);
}

static bool move_instance(struct op *op, const struct instance *before, struct promotion *promotion,
                          guint64 timeout_ms, GError **error)
{
    if (!migration_end_target(op, before, error) || !keep_room(op, before, error) ||
        !stop_on_old_primary(op, before, timeout_ms, error) ||
        !leave_images(op, before, promotion, error) ||
        !instance_edit(op, "promote_replica", before->uuid, edit_promote, promotion, error))
        return false;
    op_unlock_room(op);
    record_autoptr(instance) instance = instance_now(op, before->uuid, error);
    if (!instance)
        return false;
    op_log(op, "%s is now on %s, generation %" G_GUINT64_FORMAT, instance->name,
           op_node_name(op, instance->primary_node), instance->generation);
    tell_unheard(op, promotion);
    if (!promote_images(op, instance, promotion->replica, error) ||
        !start_promoted(op, instance, error) ||
        (!instance_half_installed(instance) && !instance_settle(op, instance->uuid, error)))
        return false;
    tell_redundancy(op, instance->uuid, promotion);
    return true;
}

bool instance_failover(struct op *op, const struct instance *instance, guint64 timeout_ms,
                       GError **error)
{
    struct promotion promotion = {0};
    GError *local = NULL;
    bool done = move_instance(op, instance, &promotion, timeout_ms, &local) ||
                instance_fail(op, instance->uuid, local, error);
    op_release_room(op);
    g_free(promotion.replica);
    g_free(promotion.old_primary);
    g_free(promotion.left);
    return done;
}

static bool failover_exec(struct op *op, GError **error)
{
    const struct op_instance_failover *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    return instance_failover(op, instance, params->shutdown_timeout * 1000, error);
}

const struct op_impl ops_failover[] = {
    {"OP_INSTANCE_FAILOVER", failover_declare, failover_check, failover_exec, SEES_NAMED},
    {NULL},
};
