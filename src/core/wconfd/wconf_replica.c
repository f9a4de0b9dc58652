/*
 * set_replica_state: a compare-and-set on (replica, generation, sync), asked by the holder's node
 * daemon only (SAF-12). Accepted means committed. A refusal and a repeated answer are given after a
 * barrier, so that they too rest on what is committed and on being the master (SAF-03, 04).
 */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/change.h"

guint64 wconf_newest_change(const struct config *config, const char *instance, const char *replica,
                            const char *node)
{
    const struct {
        const char *kind, *key;
    } objects[] = {
        {"instance", instance}, {"removed", instance}, {"replica", replica}, {"node", node}};
    guint64 newest = 0;
    for (guint i = 0; i < G_N_ELEMENTS(objects); i++) {
        guint64 version = 0;
        config_get(config, objects[i].kind, objects[i].key, &version);
        newest = MAX(newest, version);
    }
    return newest;
}

static const struct instance *find_instance(const struct config *head, const char *uuid,
                                            guint64 generation, GError **error)
{
    const struct instance *instance = config_get(head, "instance", uuid, NULL);
    const struct removed *removed = config_get(head, "removed", uuid, NULL);
    if (instance)
        return instance;
    if (removed)
        fettle_set_error(error, REFUSED,
                         "instance %s (%s) was removed, its generation %" G_GUINT64_FORMAT
                         " is over",
                         removed->name, uuid, generation);
    else
        fettle_set_error(error, UNKNOWN_ENTITY, "instance %s does not exist", uuid);
    return NULL;
}

const struct instance *wconf_held_instance(const struct config *head, const char *uuid,
                                           guint64 generation, const char *node, GError **error)
{
    const struct instance *instance = find_instance(head, uuid, generation, error);
    if (!instance)
        return NULL;
    if (instance->generation > generation) {
        fettle_set_error(error, REFUSED,
                         "instance %s: generation %" G_GUINT64_FORMAT " is over, %" G_GUINT64_FORMAT
                         " is on record (holder: %s)",
                         instance->name, generation, instance->generation,
                         config_node_name(head, instance->holder));
        return NULL;
    }
    if (instance->generation < generation) {
        fettle_set_error(error, WRONG_STATE,
                         "instance %s: generation %" G_GUINT64_FORMAT
                         " was never committed, %" G_GUINT64_FORMAT " is on record",
                         instance->name, generation, instance->generation);
        return NULL;
    }
    if (!strcmp(instance->holder, node))
        return instance;
    fettle_set_error(error, PERMISSION,
                     "instance %s: %s does not hold generation %" G_GUINT64_FORMAT ", %s does",
                     instance->name, config_node_name(head, node), generation,
                     config_node_name(head, instance->holder));
    return NULL;
}

static const struct replica *find_replica(const struct config *head,
                                          const struct instance *instance,
                                          const struct set_replica_state_args *args, GError **error)
{
    const struct replica *replica = config_get(head, "replica", args->replica, NULL);
    if (replica && !strcmp(instance->replica, args->replica))
        return replica;
    fettle_set_error(error, UNKNOWN_ENTITY, "instance %s: replica %s is not on record (%s is)",
                     instance->name, args->replica,
                     *instance->replica ? instance->replica : "none");
    return NULL;
}

static bool check_step(const struct instance *instance, const struct replica *replica,
                       const struct set_replica_state_args *args, GError **error)
{
    const char *now = enum_word(&replica_state_words, (int)replica->state);
    if (replica->sync != args->sync) {
        fettle_set_error(error, VERSION_CONFLICT,
                         "instance %s: replica %s: was known at sync %" G_GUINT64_FORMAT
                         ", it is %s at sync %" G_GUINT64_FORMAT " now",
                         instance->name, replica->uuid, args->sync, now, replica->sync);
        return false;
    }
    if (args->state != REPLICA_IN_SYNC || replica->state == REPLICA_SYNCING)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "instance %s: replica %s: is %s, only a syncing one becomes in-sync (SAF-12)",
                     instance->name, replica->uuid, now);
    return false;
}

/* The answer to the last accepted one was lost, and it came again. */
static bool is_repeated(const struct replica *replica, const struct set_replica_state_args *args)
{
    return replica->sync == args->sync + 1 && replica->state == args->state &&
           replica->generation == args->generation;
}

static GPtrArray *replica_change(const struct wconf *wconf, const struct replica *old,
                                 const struct set_replica_state_args *args)
{
    record_autoptr(replica) replica = replica_copy(old);
    GPtrArray *changes = change_list_new();
    if (replica->state != args->state)
        replica->since = (guint64)(wconf->env->ops->wall_us(wconf->env) / G_USEC_PER_SEC);
    replica->state = args->state;
    replica->generation = args->generation;
    if (replica->state == REPLICA_IN_SYNC)
        replica->keep = 0;
    replica->sync++;
    g_free(replica->why);
    replica->why = g_strdup(args->why);
    g_ptr_array_add(changes,
                    config_put(wconf->head, "replica", replica->uuid, replica_to_json(replica)));
    return changes;
}

static void refuse(struct wconf *wconf, struct rpc_request *request,
                   const struct set_replica_state_args *args, GError *error)
{
    guint64 newest = wconf_newest_change(wconf->head, args->instance, args->replica, "");
    wconf_refuse_after_barrier(wconf, request, newest, error);
}

/* The replica's version is the serial of the commit that was accepted: the answer is as good as
 * that one's, which may be on its way still, held, or not on the copies. */
static void answer_repeated(struct wconf *wconf, struct rpc_request *request,
                            const struct replica *replica)
{
    guint64 serial = 0;
    struct set_replica_state_result result = {.sync = replica->sync};
    config_get(wconf->head, "replica", replica->uuid, &serial);
    wconf_answer_when_stored(wconf, serial, request, set_replica_state_result_to_json(&result));
}

static void set_state(struct wconf *wconf, struct rpc_request *request,
                      const struct set_replica_state_args *args)
{
    GError *error = NULL;
    const struct config *head = wconf->head;
    const struct instance *instance =
        wconf_held_instance(head, args->instance, args->generation, request->from_node, &error);
    const struct replica *replica = instance ? find_replica(head, instance, args, &error) : NULL;
    if (replica && is_repeated(replica, args)) {
        answer_repeated(wconf, request, replica);
        return;
    }
    if (!replica || !check_step(instance, replica, args, &error)) {
        refuse(wconf, request, args, error);
        return;
    }
    g_autofree char *commit_id = env_uuid(wconf->env);
    GPtrArray *changes = replica_change(wconf, replica, args);
    struct set_replica_state_result result = {.sync = args->sync + 1};
    json_autoptr accepted = set_replica_state_result_to_json(&result);
    if (!wconf_commit(wconf, commit_id, changes, NULL, AUTHOR_HOLDER, request, accepted, &error))
        refuse(wconf, request, args, error);
}

void wconf_handle_set_replica_state(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(set_replica_state_args) args =
        rpc_request_args(request, &set_replica_state_args_record, &error);
    if (args)
        set_state(wconf, request, args);
    else
        rpc_fail(request, error);
}
