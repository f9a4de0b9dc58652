/*
 * OP_INSTANCE_MIGRATE (SAF-17; docs/design/procedures.md, "Migration"): a guest goes over to
 * another node while it runs. This file decides whether it may, and begins it; how it ends stands
 * in migration.c.
 */
#include "core/config/attachments.h"
#include "core/ops/instance.h"
#include "core/ops/migration.h"
#include "core/ops/ops.h"
#include "core/placement/placement.h"
#include "core/placement/placement_refusal.h"

#include <string.h>

#define STOP_TIMEOUT_MS 120000u /* of a guest that is moved by a restart */

static bool mirrored(const struct instance *instance)
{
    return instance->disk_template == TEMPLATE_MIRROR;
}

/* --- declare --- */

/* What the source of a copy had is removed, and the record may not name it any more. */
static void lock_where_images_are(struct op *op, const struct instance *instance)
{
    g_autoptr(GPtrArray) online = op_online_nodes(op, NULL);
    for (guint i = 0; instance->disk_template == TEMPLATE_FILE && i < online->len; i++)
        op_lock_node(op, online->pdata[i], LOCK_SHARED);
}

static bool migrate_declare(struct op *op, GError **error)
{
    const struct op_instance_migrate *params = op->params;
    const struct instance *instance = op_declare_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    op_lock_node(op, instance->migration_node, LOCK_SHARED);
    /* What is on record goes where the record says. */
    if (params->cleanup || *instance->migration) {
        lock_where_images_are(op, instance);
        return true;
    }
    if (!instance_choose_target(op, instance, params->target_node, true, error))
        return false;
    op_lock_node(op, op->primary, LOCK_SHARED);
    op_lock_room(op, op->primary);
    return true;
}

/* --- check --- */

static bool replica_takes_it(const struct op *op, const struct instance *instance, GError **error)
{
    const struct replica *replica = op_replica_of(op, instance);
    if (!mirrored(instance))
        return true;
    if (!replica) {
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" has no replica to migrate to; give it one: fettle "
                         "instance replace-disks %s",
                         instance->name, instance->name);
        return false;
    }
    if (replica->state == REPLICA_IN_SYNC)
        return true;
    g_autofree char *since = instance_replica_since(replica);
    fettle_set_error(
        error, WRONG_STATE,
        "the replica of instance \"%s\" on %s is %s since %s (%s); it migrates only to "
        "a replica in sync: wait for it, or fettle instance replace-disks %s",
        instance->name, op_node_name(op, replica->node),
        enum_word(&replica_state_words, (int)replica->state), since,
        *replica->why ? replica->why : "no reason on record", instance->name);
    return false;
}

static bool versions_fit(const struct op *op, const struct instance *instance, GError **error)
{
    const char *from = op_report(op, instance->primary_node)->qemu_version;
    const char *to = op_report(op, op->primary)->qemu_version;
    if (!*from || !placement_is_older(to, from))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "instance \"%s\" cannot migrate from QEMU %s on %s to %s on %s, which is "
                     "older; upgrade %s, or use instance failover",
                     instance->name, from, op_node_name(op, instance->primary_node),
                     *to ? to : "an unknown one", op_node_name(op, op->primary),
                     op_node_name(op, op->primary));
    return false;
}

static bool target_has_room(struct op *op, const struct instance *instance, GError **error)
{
    const struct node *node = config_get(op_config(op), "node", op->primary, NULL);
    const struct node_report *report = op_report(op, node->uuid);
    bool local = instance->disk_template == TEMPLATE_FILE;
    if (!op_gather_room(op, instance, error))
        return false;
    struct placement_need need = {.memory = allocated_need(instance),
                                  .disk = local ? allocated_disk_size(instance->disks) : 0,
                                  .sums = op->sums,
                                  .refused = reports_refusals(op->reports),
                                  .nics = instance->nics,
                                  .volumes_of = instance->uuid,
                                  .shared = placement_shared(reports_list(op->reports),
                                                             instance->disk_template,
                                                             instance->primary_node)};
    g_autofree char *why = NULL;
    if (placement_fits(op_config(op), node, report, &need, &why)) {
        op_log_faults(op, node->uuid);
        return true;
    }
    g_autofree char *sentence =
        g_strdup_printf("instance \"%s\" cannot go to %s: it %s", instance->name, node->name, why);
    placement_refusal_set(op_config(op), error, node, report, &need, sentence);
    return false;
}

/* Both sides of a migration have the same devices, so it has to be known which. */
static bool volumes_are_settled(const struct op *op, const struct instance *instance,
                                GError **error)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(op_config(op), instance->uuid);
    for (guint i = 0; i < volumes->len; i++) {
        const struct volume *volume = volumes->pdata[i];
        enum attachment_state state = attachment_of(volume)->state;
        if (state != ATTACHMENT_ATTACHING && state != ATTACHMENT_DETACHING)
            continue;
        instance_set_unsettled(op, instance, volume, error);
        return false;
    }
    return true;
}

static bool target_takes_it(struct op *op, const struct instance *instance, GError **error)
{
    const char *role = mirrored(instance) ? "secondary" : "new";
    return instance_need_node(op, instance, op->primary, role, error) &&
           volumes_are_settled(op, instance, error) && replica_takes_it(op, instance, error) &&
           versions_fit(op, instance, error) && target_has_room(op, instance, error) &&
           instance_need_boot_files(op, op->primary, instance->kernel_path, instance->initrd_path,
                                    error);
}

/* Nothing runs: it can only be moved as it is. */
static bool check_stopped(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_migrate *params = op->params;
    if (params->allow_failover)
        return instance_failover_check(op, instance, error);
    fettle_set_error(error, WRONG_STATE,
                     "instance \"%s\" does not run on %s, so there is nothing to migrate; use "
                     "instance failover, or --allow-failover",
                     instance->name, op_node_name(op, instance->primary_node));
    return false;
}

static bool migrate_check(struct op *op, GError **error)
{
    const struct op_instance_migrate *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || params->cleanup)
        return found != NULL;
    if (!instance_need_whole(op, found, error) ||
        !instance_need_settled(op, found, TASK_NONE, error))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    if (mirrored(instance) && !*instance->secondary_node)
        return replica_takes_it(op, instance, error);
    if (!instance_check_target(op, instance, error) ||
        !instance_gather(op, instance->primary_node, op->primary, error) ||
        !instance_need_node(op, instance, instance->primary_node, "primary", error))
        return false;
    return report_runs(op_report(op, instance->primary_node), instance)
               ? target_takes_it(op, instance, error)
               : check_stopped(op, instance, error);
}

/* --- exec --- */

/* The first commit: from now on it is known where an incoming guest may wait. Judged anew by wconfd
 * on the record that it is compared with. */
struct beginning {
    const char *migration;
    guint64 generation; /* that was seen to run */
};

static bool edit_begin(struct instance_edit *edit, void *data, GError **error)
{
    const struct beginning *beginning = data;
    struct instance *instance = edit->instance;
    if (!replica_takes_it(edit->op, instance, error))
        return false;
    if (instance->generation != beginning->generation) {
        fettle_set_error(error, VERSION_CONFLICT,
                         "generation %" G_GUINT64_FORMAT " of instance \"%s\" was seen to run, "
                         "but %" G_GUINT64_FORMAT " is on record now",
                         beginning->generation, instance->name, instance->generation);
        return false;
    }
    text_set(&instance->migration, beginning->migration);
    text_set(&instance->migration_node, edit->op->primary);
    edit_mark(edit, TASK_MIGRATING);
    return true;
}

static guint64 either(guint64 asked, guint64 by_cluster)
{
    return asked ? asked : by_cluster;
}

static bool start_sending(struct op *op, const struct instance *instance,
                          struct migration_target *target, GError **error)
{
    const struct op_instance_migrate *params = op->params;
    const struct cluster *cluster = config_cluster(op_config(op));
    struct migration_start_args args = {
        .instance = instance->uuid,
        .generation = instance->generation,
        .target = target,
        .target_node = instance->migration_node,
        .live = params->mode == MIGRATION_LIVE,
        .bandwidth = either(params->bandwidth, cluster->migration_bandwidth),
        .downtime_ms = either(params->downtime_ms, cluster->migration_downtime_ms),
        .timeout_ms = params->timeout * 1000};
    record_autoptr(nothing) done =
        op_act(op, instance->primary_node, "migration_start", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

static bool killed(const GError *error)
{
    return fettle_error_is(error, KILLED);
}

/* The guest stays where it was, and the record is as before, so trying again is safe. */
static bool stays(struct op *op, const struct instance *instance, const struct migration_end *end,
                  const GError *failure, GError **error)
{
    const char *from = op_node_name(op, instance->primary_node);
    const char *to = op_node_name(op, instance->migration_node);
    op->changed = false;
    if (end->canceled)
        fettle_set_error(error, CANCELED,
                         "the migration of instance \"%s\" to %s was canceled; it stays on %s",
                         instance->name, to, from);
    else
        g_set_error(
            error, FETTLE_ERROR, end->why || !failure ? FETTLE_ERROR_TEMPORARY : failure->code,
            "the migration of instance \"%s\" to %s failed: %s; it stays on %s", instance->name, to,
            end->why  ? end->why
            : failure ? failure->message
                      : "no reason is known",
            from);
    return false;
}

/* Sends the guest and waits. However that goes, the end of the migration is found out and seen
 * through; what cannot be found out stays on record, for the watcher. */
static bool send_guest(struct op *op, const struct instance *instance, GError **error)
{
    g_autoptr(GPtrArray) volumes = instance_volumes(op, instance->uuid);
    struct incoming_open_args args = {.instance = (struct instance *)instance, .volumes = volumes};
    struct migration_end end = {0};
    g_autoptr(GError) failure = NULL;
    record_autoptr(migration_target) target =
        op_act(op, instance->migration_node, "incoming_open", &args, ACT_PATIENCE_MS, &failure);
    bool followed = target && start_sending(op, instance, target, &failure) &&
                    migration_follow(op, instance, &end, &failure);
    bool ended = false;
    if (killed(failure))
        g_propagate_error(error, g_error_copy(failure));
    else if (followed && end.moved)
        ended = follow_refresh(op->follow, error) &&
                migration_finish(op, instance->uuid, instance->primary_node, error);
    else if (followed || !target) /* if nothing waits there nothing was sent */
        ended = migration_abandon(op, instance->uuid, error);
    else
        ended = migration_settle(op, instance->uuid, &end, error);
    bool moved = ended && end.moved;
    if (ended && !moved)
        stays(op, instance, &end, failure, error);
    migration_end_clear(&end);
    return moved;
}

static bool migrate_running(struct op *op, const struct instance *before, GError **error)
{
    g_autofree char *migration = env_uuid(op->env);
    struct beginning beginning = {migration, before->generation};
    GError *local = NULL;
    if (!instance_edit(op, "begin_migration", before->uuid, edit_begin, &beginning, &local))
        return instance_fail(op, before->uuid, local, error);
    op_unlock_room(op);
    record_autoptr(instance) instance = instance_now(op, before->uuid, error);
    if (!instance)
        return false;
    op_log(op, "migrating %s from %s to %s", instance->name,
           op_node_name(op, instance->primary_node), op_node_name(op, instance->migration_node));
    return send_guest(op, instance, error);
}

/* After the death of another job; ends well if it is known where the instance is. */
static bool clean_up(struct op *op, const struct instance *before, GError **error)
{
    struct migration_end end = {0};
    bool settled = migration_settle(op, before->uuid, &end, error);
    record_autoptr(instance) now = settled ? instance_now(op, before->uuid, error) : NULL;
    if (now)
        op_log(op, "%s; %s is on %s",
               !*before->migration ? "no migration is on record"
               : end.moved         ? "the migration is finished"
                                   : "the migration is given up",
               now->name, op_node_name(op, now->primary_node));
    migration_end_clear(&end);
    return now != NULL;
}

static bool migrate_exec(struct op *op, GError **error)
{
    const struct op_instance_migrate *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    if (params->cleanup)
        return clean_up(op, instance, error);
    if (report_runs(op_report(op, instance->primary_node), instance))
        return migrate_running(op, instance, error);
    op_log(op, "%s does not run; it is moved as it is", instance->name);
    return instance_failover(op, instance, STOP_TIMEOUT_MS, error);
}

const struct op_impl ops_migrate[] = {
    {"OP_INSTANCE_MIGRATE", migrate_declare, migrate_check, migrate_exec, SEES_NAMED},
    {NULL},
};
