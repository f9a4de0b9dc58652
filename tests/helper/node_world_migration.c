/*
 * Two nodes and a master for unit tests of core/node: live migration as its job does it, volumes;
 * see node_world.h.
 */
#include "helper/node_world.h"

void nw_commit_migration(struct node_world *nw, const char *migration)
{
    nw->web1.migration = migration;
    nw->web1.migration_node = strcmp(nw->web1.primary, NODE_A) == 0 ? NODE_B : NODE_A;
}

json_t *nw_migration_args(const char *migration)
{
    return json_make("{s:s,s:s}", "instance", WEB1, "migration", migration);
}

json_t *nw_incoming_open(struct node_world *nw, GError **error)
{
    record_autoptr(instance) instance = nw_instance(nw);
    json_t *args = json_make("{s:o}", "instance", instance_to_json(instance));
    if (nw->web1.attachment)
        json_object_set_new(args, "volumes", json_make("[o]", nw_volume(nw)));
    return nw_call(nw, nw_node(nw, nw->web1.migration_node), "incoming_open", args, error);
}

bool nw_migration_start(struct node_world *nw, json_t *target, GError **error)
{
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "target", target);
    json_object_set_new(args, "target_node", json_string(nw->web1.migration_node));
    json_autoptr answer = nw_call(nw, nw_node(nw, nw->web1.holder), "migration_start", args, error);
    return answer != NULL;
}

static enum migration_state state_of(json_t *answer)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(migration_status) status =
        answer ? migration_status_parse(answer, RECORD_LAX, &error) : NULL;
    return status ? status->state : MIGRATION_NONE;
}

enum migration_state nw_migration_wait(struct node_world *nw, struct test_node *source)
{
    for (guint tries = 0; tries < 100; tries++) {
        json_t *args = nw_migration_args(nw->web1.migration);
        json_object_set_new(args, "wait_ms", json_integer(5000));
        json_autoptr answer = nw_call(nw, source, "migration_wait", args, NULL);
        enum migration_state state = state_of(answer);
        if (state != MIGRATION_COPYING && state != MIGRATION_SWITCHING)
            return state;
        nw_pass(nw, 5);
    }
    g_error("the migration does not end");
}

bool nw_migrate_begin(struct node_world *nw, const char *migration, GError **error)
{
    nw_commit_migration(nw, migration);
    json_autoptr target = nw_incoming_open(nw, error);
    return target && nw_migration_start(nw, target, error);
}

static json_t *migrated_start_args(struct node_world *nw, json_t *target, bool whole)
{
    json_t *args = nw_start_args(nw, target, !nw->web1.moved_clean, true);
    json_object_set_new(args, "migration", json_string(whole ? nw->web1.migration : ""));
    return args;
}

static void give_replica_up(struct master_record *web1)
{
    if (!*web1->secondary || web1->state == REPLICA_STALE)
        return;
    web1->state = REPLICA_STALE;
    web1->sync++;
}

/* The same start without the process, or a further generation if this one was used up. */
static bool start_from_images(struct node_world *nw, json_t *target, GError **error)
{
    struct test_node *node = nw_node(nw, nw->web1.primary);
    g_autoptr(GError) why = NULL;
    json_autoptr answer =
        nw_call(nw, node, "guest_start", migrated_start_args(nw, target, false), &why);
    if (answer)
        return true;
    if (!fettle_error_is(why, REFUSED)) {
        g_propagate_error(error, g_steal_pointer(&why));
        return false;
    }
    return nw_start(nw, error);
}

bool nw_migrate_finish(struct node_world *nw, GError **error)
{
    struct master_record *web1 = &nw->web1;
    g_autoptr(GError) why = NULL;
    bool mirrored = web1->disk_template == TEMPLATE_MIRROR;
    json_autoptr target = mirrored ? nw_open_replica(nw, NULL) : NULL;
    if (mirrored && !target)
        give_replica_up(web1);
    json_autoptr answer = nw_call(nw, nw_node(nw, web1->primary), "guest_start",
                                  migrated_start_args(nw, target, true), &why);
    bool boots = !answer && (fettle_error_is(why, WRONG_STATE) || fettle_error_is(why, REFUSED));
    if (!answer && !boots)
        g_propagate_error(error, g_steal_pointer(&why));
    if (!answer && (!boots || !start_from_images(nw, target, error)))
        return false;
    web1->migration = NULL;
    return true;
}

static void attach_again(struct node_world *nw)
{
    struct master_record *web1 = &nw->web1;
    if (!*web1->secondary || web1->state != REPLICA_STALE)
        return;
    web1->state = REPLICA_SYNCING;
    web1->sync++;
    json_autoptr target = nw_open_replica(nw, NULL);
    json_t *args = nw_guest_args(nw);
    if (target)
        json_object_set(args, "target", target);
    json_object_set_new(args, "sync", json_integer((json_int_t)web1->sync));
    json_object_set_new(args, "since", json_true());
    json_autoptr answer =
        target ? nw_call(nw, nw_node(nw, web1->primary), "mirror_attach", args, NULL) : NULL;
    if (!target)
        json_decref(args);
    if (!answer)
        give_replica_up(web1);
}

bool nw_migrate_undo(struct node_world *nw, GError **error)
{
    json_autoptr closed = nw_call(nw, nw_node(nw, nw->web1.migration_node), "incoming_close",
                                  nw_migration_args(nw->web1.migration), error);
    if (!closed)
        return false;
    nw->web1.migration = NULL;
    attach_again(nw);
    return true;
}

bool nw_migrate_cleanup(struct node_world *nw, GError **error)
{
    struct master_record *web1 = &nw->web1;
    for (;;) {
        if (strcmp(web1->holder, web1->migration_node) == 0)
            return nw_migrate_finish(nw, error);
        json_autoptr answer = nw_call(nw, nw_node(nw, web1->holder), "migration_cancel",
                                      nw_migration_args(web1->migration), error);
        if (!answer)
            return false;
        enum migration_state state = state_of(answer);
        if (state == MIGRATION_SWITCHING || state == MIGRATION_COPYING)
            nw_pass(nw, 100);
        else if (state != MIGRATION_MOVED)
            return nw_migrate_undo(nw, error);
    }
}

/* --- volumes --- */

json_t *nw_volume(const struct node_world *nw)
{
    return json_make("{s:s,s:s,s:s,s:i}", "volume", VOLUME_1, "attachment", nw->web1.attachment,
                     "path", "/volumes/1", "slot", 30);
}

/* That a guest has given its volume up. */
json_t *nw_set_attachment(struct node_world *nw, const struct rpc_request *request, GError **error)
{
    struct master_record *web1 = &nw->web1;
    record_autoptr(set_attachment_args) args =
        set_attachment_args_parse(request->args, RECORD_STRICT, NULL);
    g_assert_nonnull(args);
    if (!web1->attachment || strcmp(web1->attachment, args->attachment) != 0 ||
        web1->generation != args->generation) {
        fettle_set_error(error, WRONG_STATE, "it is not on record any more");
        return NULL;
    }
    g_assert_false(
        fake_host_has_volume(nw_node(nw, request->from_node)->host, WEB1, args->attachment));
    web1->attachment = NULL;
    return json_make("{s:i}", "serial", 1);
}
