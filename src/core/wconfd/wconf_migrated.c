/*
 * set_migrated: the holder's node daemon has seen the end of its QEMU, whose guest has gone over to
 * the node of the migration on record (SAF-17). A compare-and-set on (generation, migration); from
 * its commit on the other node may run the guest, and what the old one keeps is a replica at best.
 *
 * A migration moves a guest once, so its UUID is the id of this commit: the question that comes
 * again, because its answer was lost, finds the commit by it and gets the same answer, however far
 * the instance has come since. Refusals are given after a barrier.
 */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/change.h"

/* What is left on the old node: equal to the images of the new one if its mirror ended cleanly, and
 * then nothing needs to be copied when a mirror is attached to it; no promise either way. */
static struct change *put_left_behind(const struct wconf *wconf, const struct instance *old,
                                      const struct set_migrated_args *args)
{
    struct replica replica = {
        .uuid = args->migration,
        .instance = old->uuid,
        .node = old->primary_node,
        .generation = old->generation + 1,
        .sync = 1,
        .state = args->clean ? REPLICA_SYNCING : REPLICA_STALE,
        .why = (char *)(args->clean ? "the guest has migrated away, the copies are equal"
                                    : "the guest has migrated away, the copies may differ"),
        .since = (guint64)(wconf->env->ops->wall_us(wconf->env) / G_USEC_PER_SEC)};
    return config_put(wconf->head, "replica", replica.uuid, replica_to_json(&replica));
}

static GPtrArray *moved_changes(const struct wconf *wconf, const struct instance *old,
                                const struct set_migrated_args *args)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(instance) moved = instance_copy(old);
    moved->generation++;
    moved->clean = false;
    text_set(&moved->primary_node, old->migration_node);
    text_set(&moved->holder, old->migration_node);
    if (old->disk_template == TEMPLATE_MIRROR) {
        g_ptr_array_add(changes, config_delete(wconf->head, "replica", old->replica));
        g_ptr_array_add(changes, put_left_behind(wconf, old, args));
        text_set(&moved->replica, args->migration);
        text_set(&moved->secondary_node, old->primary_node);
    }
    g_ptr_array_add(changes,
                    config_put(wconf->head, "instance", moved->uuid, instance_to_json(moved)));
    return changes;
}

static bool check_migration(const struct config *head, const struct instance *instance,
                            const struct set_migrated_args *args, GError **error)
{
    if (invariants_migrating(instance) && !strcmp(instance->migration, args->migration))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "instance %s: migration %s is not under way (%s is on record); it stays with "
                     "%s",
                     instance->name, args->migration,
                     *instance->migration ? instance->migration : "none",
                     config_node_name(head, instance->holder));
    return false;
}

/* A node that was said to be dead is judged without: while its word is under way somebody may be
 * clearing the migration and what waits for it on the target. */
static bool check_holder_counts(const struct config *head, const struct instance *instance,
                                GError **error)
{
    const struct node *node = config_get(head, "node", instance->holder, NULL);
    if (!node || !node->offline)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "instance %s: %s is offline on record, so a migration that it ends now counts "
                     "no more",
                     instance->name, node->name);
    return false;
}

/* Whether this very move is on record or on its way; nobody else's question is answered by it. */
static bool has_moved(const struct config *head, const struct set_migrated_args *args)
{
    const struct instance *instance = config_get(head, "instance", args->instance, NULL);
    return instance && instance->generation > args->generation;
}

static void refuse(struct wconf *wconf, struct rpc_request *request,
                   const struct set_migrated_args *args, GError *error)
{
    guint64 newest = wconf_newest_change(wconf->head, args->instance, args->migration, "");
    wconf_refuse_after_barrier(wconf, request, newest, error);
}

static void set_migrated(struct wconf *wconf, struct rpc_request *request,
                         const struct set_migrated_args *args)
{
    GError *error = NULL;
    if (has_moved(wconf->head, args) && wconf_answer_repeated(wconf, args->migration, request))
        return;
    const struct instance *instance = wconf_held_instance(
        wconf->head, args->instance, args->generation, request->from_node, &error);
    if (!instance || !check_migration(wconf->head, instance, args, &error) ||
        !check_holder_counts(wconf->head, instance, &error)) {
        refuse(wconf, request, args, error);
        return;
    }
    GPtrArray *changes = moved_changes(wconf, instance, args);
    g_autofree char *commit_id = wconf_commit_id(wconf, args->migration);
    if (!wconf_commit(wconf, commit_id, changes, NULL, AUTHOR_HOLDER, request, NULL, &error))
        refuse(wconf, request, args, error);
}

void wconf_handle_set_migrated(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(set_migrated_args) args =
        rpc_request_args(request, &set_migrated_args_record, &error);
    if (args)
        set_migrated(wconf, request, args);
    else
        rpc_fail(request, error);
}
