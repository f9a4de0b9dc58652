/*
 * Does the owner hold the locks that cover what it changes (FUT-04)? instance, replica and removed
 * need the instance's lock, a node its own (what no job relies on while it acts: node-param is
 * enough, FUT-01), a network its own, a reservation the instance's and node-res of the nodes with
 * its room, cluster and node groups the big one; tags, jobs, decisions, counters, advice, services
 * and the repair brake are compare-and-set by nature and need none.
 * With cluster.lock_coverage = log what is not covered is logged, and done (FUT-03).
 */
#include <string.h>

#include "base/log.h"
#include "core/config/wconf_private.h"

bool wconf_check_owner(const struct owner *owner, GError **error)
{
    if (!strchr(owner->livelock, '/') && owner->livelock[0] != '.')
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "owner.livelock: \"%s\" is not the plain name of a lock file",
                     owner->livelock);
    return false;
}

/* --- objects and their locks --- */

static bool need(const struct locks *locks, const struct owner *owner,
                 const struct config_delta *delta, const char *level, const char *name,
                 GError **error)
{
    g_autofree char *lock = g_strdup_printf("%s/%s", level, name);
    if (locks_held(locks, owner, lock) == LOCK_EXCLUSIVE)
        return true;
    g_autofree char *subject =
        invariants_subject(delta->kind, delta->key, delta->after ? delta->after : delta->before);
    g_autofree char *who = locks_owner_name(owner);
    fettle_set_error(error, LOCK_MISSING, "%s: %s does not hold the lock %s exclusively", subject,
                     who, lock);
    return false;
}

/* The instance as it is, or as it was if it goes with the same transaction. */
static const struct instance *instance_of(const struct config *after, const GPtrArray *deltas,
                                          const char *uuid)
{
    const struct instance *instance = config_get(after, "instance", uuid, NULL);
    for (guint i = 0; !instance && i < deltas->len; i++) {
        const struct config_delta *delta = deltas->pdata[i];
        if (!strcmp(delta->kind, "instance") && !strcmp(delta->key, uuid))
            instance = delta->before;
    }
    return instance;
}

static bool instance_covered(const struct locks *locks, const struct owner *owner,
                             const struct config_delta *delta, GError **error)
{
    const struct instance *old = delta->before;
    const struct instance *new = delta->after;
    return (!old || need(locks, owner, delta, "instance", old->name, error)) &&
           (!new || need(locks, owner, delta, "instance", new->name, error));
}

static bool replica_covered(const struct locks *locks, const struct owner *owner,
                            const struct config *after, const GPtrArray *deltas,
                            const struct config_delta *delta, GError **error)
{
    const struct replica *replica = delta->after ? delta->after : delta->before;
    const struct instance *instance = instance_of(after, deltas, replica->instance);
    return need(locks, owner, delta, "instance", instance ? instance->name : replica->instance,
                error);
}

/* Whether only that of a node changes which no job relies on while it acts there. */
static bool node_params_only(const struct config_delta *delta)
{
    const struct node *before = delta->before;
    const struct node *after = delta->after;
    if (!before || !after)
        return false;
    record_autoptr(node) changed = node_copy(before);
    changed->drained = after->drained;
    changed->master_candidate = after->master_candidate;
    changed->master_capable = after->master_capable;
    json_autoptr expected = node_to_json(changed);
    json_autoptr wanted = node_to_json(after);
    return json_equal(expected, wanted);
}

static bool node_covered(const struct locks *locks, const struct owner *owner,
                         const struct config_delta *delta, GError **error)
{
    g_autofree char *params = g_strdup_printf("node-param/%s", delta->key);
    return (locks_held(locks, owner, params) == LOCK_EXCLUSIVE && node_params_only(delta)) ||
           need(locks, owner, delta, "node", delta->key, error);
}

/* Whoever reserves has looked at the room under these locks, so nobody else has at the same time
 * (FUT-08). It is the owner's own, and given back without them. */
static bool reservation_covered(const struct locks *locks, const struct owner *owner,
                                const struct config_delta *delta, GError **error)
{
    const struct reservation *reservation = delta->after ? delta->after : delta->before;
    if (!owner_equal(reservation->owner, owner)) {
        g_autofree char *mine = locks_owner_name(owner);
        g_autofree char *other = locks_owner_name(reservation->owner);
        fettle_set_error(error, PERMISSION, "the reservation for %s is that of %s, not of %s",
                         reservation->name, other, mine);
        return false;
    }
    for (guint i = 0; delta->after && i < reservation->rooms->len; i++) {
        const struct reserved_room *room = reservation->rooms->pdata[i];
        if (!need(locks, owner, delta, "node-res", room->node, error))
            return false;
    }
    return need(locks, owner, delta, "instance", reservation->name, error);
}

static bool delta_covered(const struct locks *locks, const struct owner *owner,
                          const struct config *after, const GPtrArray *deltas,
                          const struct config_delta *delta, GError **error)
{
    if (!strcmp(delta->kind, "instance"))
        return instance_covered(locks, owner, delta, error);
    if (!strcmp(delta->kind, "replica"))
        return replica_covered(locks, owner, after, deltas, delta, error);
    if (!strcmp(delta->kind, "removed")) {
        const struct removed *removed = delta->after ? delta->after : delta->before;
        return need(locks, owner, delta, "instance", removed->name, error);
    }
    if (!strcmp(delta->kind, "reservation"))
        return reservation_covered(locks, owner, delta, error);
    if (!strcmp(delta->kind, "node"))
        return node_covered(locks, owner, delta, error);
    if (!strcmp(delta->kind, "revoked"))
        return need(locks, owner, delta, "node", delta->key, error);
    if (!strcmp(delta->kind, "network"))
        return need(locks, owner, delta, "network", delta->key, error);
    if (!strcmp(delta->kind, "cluster") || !strcmp(delta->kind, "nodegroup"))
        return need(locks, owner, delta, "cluster", "BGL", error);
    return true;
}

/* What is in force says it, not what this very transaction would make of it. */
static bool only_logged(const struct wconf *wconf)
{
    const struct cluster *cluster = config_cluster(wconf->committed);
    return cluster && cluster->lock_coverage == COVERAGE_LOG;
}

bool wconf_covered(const struct wconf *wconf, const struct owner *owner, const GPtrArray *deltas,
                   GError **error)
{
    bool log = only_logged(wconf);
    for (guint i = 0; i < deltas->len; i++) {
        g_autoptr(GError) local = NULL;
        if (delta_covered(wconf->locks, owner, wconf->head, deltas, deltas->pdata[i], &local))
            continue;
        if (!log || !fettle_error_is(local, LOCK_MISSING)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
        g_autofree char *fields = g_strdup_printf("JOB=%s", owner->job);
        log_warning(fields, "changed without its lock: %s", local->message);
    }
    return true;
}
