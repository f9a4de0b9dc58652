/*
 * Who changes what. Does the owner hold the locks that cover what it changes (FUT-04)? instance,
 * replica and removed need the instance's lock, a node its own (what no job relies on while it
 * acts: node-param is enough, FUT-01), a network its own, a reservation the instance's and node-res
 * of the nodes with its room, cluster and node groups the big one; what is compare-and-set by
 * nature needs none. proto/objects.def says of each kind which it is, and whose commits may touch
 * it at all (SAF-101).
 * With cluster.lock_coverage = log what is not covered is logged, and done (FUT-03).
 */
#include <string.h>

#include "base/log.h"
#include "core/config/attachments.h"
#include "core/wconfd/wconf_private.h"

bool wconf_check_owner(const struct wconf *wconf, const struct rpc_request *request,
                       const struct owner *owner, GError **error)
{
    if (strcmp(request->from_node, wconf->env->node_uuid) != 0) {
        fettle_set_error(error, PERMISSION,
                         "node \"%s\" is not the master; only processes of the master's node own "
                         "locks and changes",
                         config_node_name(wconf->committed, request->from_node));
        return false;
    }
    if (!strchr(owner->livelock, '/') && owner->livelock[0] != '.')
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "owner.livelock: \"%s\" is not the plain name of a lock file",
                     owner->livelock);
    return false;
}

/* --- objects and their locks --- */

struct covering {
    const struct locks *locks;
    const struct owner *owner;
    const struct config *after;
    const GPtrArray *deltas; /* of the whole transaction */
};

static bool need(const struct covering *by, const struct config_delta *delta, const char *level,
                 const char *name, GError **error)
{
    g_autofree char *lock = g_strdup_printf("%s/%s", level, name);
    if (locks_held(by->locks, by->owner, lock) == LOCK_EXCLUSIVE)
        return true;
    g_autofree char *subject =
        invariants_subject(delta->kind, delta->key, delta->after ? delta->after : delta->before);
    g_autofree char *who = locks_owner_name(by->owner);
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

/* Functions named after the words of objects.def. */

static bool nothing_covers(const struct covering *by, const struct config_delta *delta,
                           GError **error)
{
    return true;
}

static bool big_lock_covers(const struct covering *by, const struct config_delta *delta,
                            GError **error)
{
    return need(by, delta, "cluster", "BGL", error);
}

static bool network_covers(const struct covering *by, const struct config_delta *delta,
                           GError **error)
{
    return need(by, delta, "network", delta->key, error);
}

static bool instance_covers(const struct covering *by, const struct config_delta *delta,
                            GError **error)
{
    const struct instance *old = delta->before;
    const struct instance *new = delta->after;
    return (!old || need(by, delta, "instance", old->name, error)) &&
           (!new || need(by, delta, "instance", new->name, error));
}

static bool replica_covers(const struct covering *by, const struct config_delta *delta,
                           GError **error)
{
    const struct replica *replica = delta->after ? delta->after : delta->before;
    const struct instance *instance = instance_of(by->after, by->deltas, replica->instance);
    return need(by, delta, "instance", instance ? instance->name : replica->instance, error);
}

/* Whose it was and whose it is; of both the lock. */
static bool volume_covers(const struct covering *by, const struct config_delta *delta,
                          GError **error)
{
    const void *sides[] = {delta->before, delta->after};
    for (guint i = 0; i < G_N_ELEMENTS(sides); i++) {
        const struct attachment *attachment = sides[i] ? attachment_of(sides[i]) : NULL;
        const struct instance *instance =
            attachment ? instance_of(by->after, by->deltas, attachment->instance) : NULL;
        if (attachment &&
            !need(by, delta, "instance", instance ? instance->name : attachment->instance, error))
            return false;
    }
    return true;
}

static bool removed_covers(const struct covering *by, const struct config_delta *delta,
                           GError **error)
{
    const struct removed *removed = delta->after ? delta->after : delta->before;
    return need(by, delta, "instance", removed->name, error);
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

static bool node_covers(const struct covering *by, const struct config_delta *delta, GError **error)
{
    g_autofree char *params = g_strdup_printf("node-param/%s", delta->key);
    return (locks_held(by->locks, by->owner, params) == LOCK_EXCLUSIVE &&
            node_params_only(delta)) ||
           need(by, delta, "node", delta->key, error);
}

static bool revoked_covers(const struct covering *by, const struct config_delta *delta,
                           GError **error)
{
    return need(by, delta, "node", delta->key, error);
}

/* Whoever reserves has looked at the room under these locks, so nobody else has at the same time
 * (FUT-08). It is the owner's own, and given back without them. */
static bool reservation_covers(const struct covering *by, const struct config_delta *delta,
                               GError **error)
{
    const struct reservation *reservation = delta->after ? delta->after : delta->before;
    if (!owner_equal(reservation->owner, by->owner)) {
        g_autofree char *mine = locks_owner_name(by->owner);
        g_autofree char *other = locks_owner_name(reservation->owner);
        fettle_set_error(error, PERMISSION, "the reservation for %s is that of %s, not of %s",
                         reservation->name, other, mine);
        return false;
    }
    for (guint i = 0; delta->after && i < reservation->rooms->len; i++) {
        const struct reserved_room *room = reservation->rooms->pdata[i];
        if (!need(by, delta, "node-res", room->node, error))
            return false;
    }
    return need(by, delta, "instance", reservation->name, error);
}

/* --- kinds --- */

struct kind_rule {
    const char *kind;
    bool (*covers)(const struct covering *by, const struct config_delta *delta, GError **error);
    const char *writers;
};

static const struct kind_rule kind_rules[] = {
#define OBJECT(kind, cover, view, writers, since, reach) {#kind, cover##_covers, writers},
#include "proto/objects.def"
#undef OBJECT
};

/* NULL: there is no such kind. */
static const struct kind_rule *rule_of(const char *kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(kind_rules); i++)
        if (!strcmp(kind_rules[i].kind, kind))
            return &kind_rules[i];
    return NULL;
}

static bool is_writer(const struct kind_rule *rule, const char *role)
{
    g_auto(GStrv) writers = g_strsplit(rule->writers, "|", -1);
    return g_strv_contains((const char *const *)writers, role);
}

static bool may_write(const struct wconf *wconf, const struct rpc_request *request,
                      const struct change *change, GError **error)
{
    const struct kind_rule *rule = rule_of(change->kind);
    bool writes = !rule || is_writer(rule, request->from_role);
    bool of_job = !strcmp(request->from_role, ROLE_JOB);
    bool others = of_job && rule && object_view(change->kind) == VIEW_JOB_OWN &&
                  g_ascii_strtoull(change->key, NULL, 10) != request->from_job;
    if (writes && !others)
        return true;
    g_autofree char *subject = invariants_subject(
        change->kind, change->key, config_get(wconf->head, change->kind, change->key, NULL));
    g_auto(GStrv) writers = g_strsplit(rule->writers, "|", -1);
    g_autofree char *names = g_strjoinv(" and ", writers);
    if (others)
        fettle_set_error(error, PERMISSION, "%s: job %u may change no record of another job",
                         subject, request->from_job);
    else
        fettle_set_error(error, PERMISSION, "%s: %s may not change it; %s may", subject,
                         request->from_role, *names ? names : "no commit");
    return false;
}

bool wconf_may_write(const struct wconf *wconf, const struct rpc_request *request,
                     const GPtrArray *changes, GError **error)
{
    for (guint i = 0; i < changes->len; i++)
        if (!may_write(wconf, request, changes->pdata[i], error))
            return false;
    return true;
}

/* --- what is not covered --- */

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
    const struct covering by = {wconf->locks, owner, wconf->head, deltas};
    for (guint i = 0; i < deltas->len; i++) {
        const struct config_delta *delta = deltas->pdata[i];
        g_autoptr(GError) local = NULL;
        if (rule_of(delta->kind)->covers(&by, delta, &local))
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
