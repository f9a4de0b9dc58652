/*
 * What nodes tell a master who may lack words of the one before (SAF-09): a replica that the record
 * calls in-sync and its holder does not is stale; one that the holder had on record as in-sync is
 * so; a guest of a generation that is not on record yet is taken over as it runs. Judged on the
 * head, so that what a job commits after the gate of its node has opened is checked against it.
 */
#include <string.h>

#include "base/log.h"
#include "core/config/fault.h"
#include "core/config/restored.h"
#include "core/config/unheard.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"

#define WHY_STALE                                                                                  \
    "its holder has no mirror to it in sync; the master before may have had that on record"
#define WHY_IN_SYNC "its holder had it on record as in sync with the master before"

static const struct replica *replica_of(const struct wconf *wconf, const struct instance *instance)
{
    return *instance->replica ? config_get(wconf->head, "replica", instance->replica, NULL) : NULL;
}

/* Where its guest is, by the statement. */
static const char *stated_node(const struct guest_statement *statement, const char *node)
{
    return *statement->gone_to ? statement->gone_to : node;
}

static guint64 stated_generation(const struct guest_statement *statement)
{
    return statement->generation + (*statement->gone_to ? 1 : 0);
}

/* --- replicas --- */

/* What its holder has on record of this very replica, by a master's word or by what it sees of a
 * mirror that the record knows. */
static bool holder_has_in_sync(const struct guest_statement *statement,
                               const struct replica *replica)
{
    return statement->state == REPLICA_IN_SYNC && !strcmp(statement->replica, replica->uuid) &&
           (statement->told || statement->sync <= replica->sync);
}

static void log_replica(const struct replica *replica)
{
    g_autofree char *fields =
        g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT " REPLICA=%s",
                        replica->instance, replica->generation, replica->uuid);
    log_warning(fields, "replica is %s: %s", enum_word(&replica_state_words, (int)replica->state),
                replica->why);
}

/* Its state by the statement, and the generation that goes with it; NULL: as it is. */
static struct replica *stated_replica(const struct wconf *wconf, const struct replica *old,
                                      const struct guest_statement *statement, guint64 generation)
{
    bool whole = holder_has_in_sync(statement, old);
    bool better =
        whole && old->state != REPLICA_IN_SYNC && statement->told && statement->sync > old->sync;
    bool worse = !whole && old->state == REPLICA_IN_SYNC;
    bool moves = whole && old->generation != generation;
    if (!better && !worse && !moves)
        return NULL;
    struct replica *replica = replica_copy(old);
    replica->state = worse ? REPLICA_STALE : better ? REPLICA_IN_SYNC : old->state;
    replica->sync = MAX(old->sync, statement->sync) + 1;
    replica->generation = worse ? old->generation : generation;
    if (better)
        replica->keep = 0;
    if (worse || better) {
        text_set(&replica->why, worse ? WHY_STALE : WHY_IN_SYNC);
        replica->since = (guint64)(wconf->env->ops->wall_us(wconf->env) / G_USEC_PER_SEC);
        log_replica(replica);
    }
    return replica;
}

static void add_replica(const struct wconf *wconf, const struct replica *old,
                        const struct guest_statement *statement, guint64 generation,
                        GPtrArray *changes)
{
    record_autoptr(replica) replica = stated_replica(wconf, old, statement, generation);
    if (replica)
        g_ptr_array_add(
            changes, config_put(wconf->head, "replica", replica->uuid, replica_to_json(replica)));
}

/* --- guests of a generation that is not on record --- */

/* A generation is given to one node only: who has it is the holder, also if its guest has ended
 * there meanwhile: what it wrote is nowhere else, and a close tells what became of it. After a
 * restore a person has it compared first; new disks are their job's (SAF-22). */
static bool may_adopt(const struct wconf *wconf, const struct instance *instance)
{
    return !restored_brake(wconf->head) &&
           fault_mark(wconf->head, instance, NULL) != TASK_RECREATING_DISKS;
}

static struct instance *adopted(const struct wconf *wconf, const struct instance *old,
                                const struct guest_statement *statement, const char *node)
{
    struct instance *instance = instance_copy(old);
    const struct node *target = config_get(wconf->head, "node", node, NULL);
    bool held = target && !target->offline;
    instance->generation = stated_generation(statement);
    instance->clean = false;
    instance->sound = SOUND_UNKNOWN;
    if (statement->runs || *statement->gone_to)
        instance->admin_state = ADMIN_UP;
    text_set(&instance->primary_node, node);
    text_set(&instance->holder, held ? node : "");
    text_set(&instance->migration, "");
    text_set(&instance->migration_node, "");
    return instance;
}

static GPtrArray *adopting_changes(const struct wconf *wconf, const struct instance *old,
                                   const struct guest_statement *statement, const char *node)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(instance) instance = adopted(wconf, old, statement, node);
    const struct replica *replica = replica_of(wconf, old);
    if (replica && strcmp(old->primary_node, node) != 0) {
        /* Its images are the instance's now, or were left behind. */
        text_set(&instance->replica, "");
        text_set(&instance->secondary_node, "");
        g_ptr_array_add(changes, config_delete(wconf->head, "replica", replica->uuid));
    } else if (replica) {
        add_replica(wconf, replica, statement, instance->generation, changes);
    }
    g_ptr_array_add(
        changes, config_put(wconf->head, "instance", instance->uuid, instance_to_json(instance)));
    return changes;
}

/* False: it cannot be, which is said. */
static bool adopt(struct wconf *wconf, const struct instance *old,
                  const struct guest_statement *statement, const char *node)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *id = env_uuid(wconf->env);
    g_autofree char *fields = g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT,
                                              old->uuid, stated_generation(statement));
    g_autofree char *before =
        g_strdup_printf("generation %" G_GUINT64_FORMAT " of %s was on record", old->generation,
                        config_node_name(wconf->head, old->holder));
    GPtrArray *changes = adopting_changes(wconf, old, statement, node);
    bool done = wconf_commit(wconf, id, changes, NULL, AUTHOR_STATEMENT, NULL, NULL, &error);
    if (done)
        log_warning(fields, "taken over as it is on %s; %s", config_node_name(wconf->head, node),
                    before);
    else
        log_error(fields, "is on %s, which cannot be taken over: %s; %s",
                  config_node_name(wconf->head, node), error->message, before);
    return done;
}

/* --- one statement --- */

/* Under this master its guest runs on, and what it writes is acknowledged: a later generation that
 * the master before may have given to another node is over (wconf_confirm.c). */
static void add_stated(const struct wconf *wconf, const struct instance *old, GPtrArray *changes)
{
    record_autoptr(instance) instance = instance_copy(old);
    instance->stated = instance->generation;
    g_ptr_array_add(
        changes, config_put(wconf->head, "instance", instance->uuid, instance_to_json(instance)));
}

static bool overtaken(const struct wconf *wconf, const struct instance *instance,
                      const struct guest_statement *statement, const char *node)
{
    if (!instance_is_stated(instance) || !strcmp(instance->holder, node))
        return false;
    g_autofree char *fields = g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT,
                                              instance->uuid, stated_generation(statement));
    log_warning(fields,
                "is on %s by the word of a master that is lost, but generation %" G_GUINT64_FORMAT
                " runs on %s under this one: that stays, and what %s has is kept aside",
                config_node_name(wconf->head, node), instance->generation,
                config_node_name(wconf->head, instance->holder),
                config_node_name(wconf->head, node));
    return true;
}

static void judge(struct wconf *wconf, const char *node, const struct guest_statement *statement,
                  GPtrArray *changes)
{
    const struct instance *instance =
        config_get(wconf->head, "instance", statement->instance, NULL);
    const char *there = stated_node(statement, node);
    guint64 generation = stated_generation(statement);
    if (!instance || generation < instance->generation)
        return;
    bool known = generation == instance->generation;
    if (known && strcmp(instance->holder, there) != 0)
        return; /* of another master's count: it is superseded (wconf_confirm.c) */
    if (!known && overtaken(wconf, instance, statement, there))
        return;
    if (!known && may_adopt(wconf, instance) && adopt(wconf, instance, statement, there))
        return;
    if (known && statement->runs)
        add_stated(wconf, instance, changes);
    const struct replica *replica = replica_of(wconf, instance);
    if (replica && !*statement->gone_to)
        add_replica(wconf, replica, statement, replica->generation, changes);
}

/* --- one node --- */

bool wconf_node_unheard(const struct wconf *wconf, const char *uuid)
{
    const struct node *node = config_get(wconf->head, "node", uuid, NULL);
    return node && node->unheard_since > 0;
}

static bool commit(struct wconf *wconf, GPtrArray *changes, GError **error)
{
    g_autofree char *id = env_uuid(wconf->env);
    return wconf_commit(wconf, id, changes, NULL, AUTHOR_STATEMENT, NULL, NULL, error);
}

static json_t *heard(const struct wconf *wconf, const char *uuid)
{
    json_t *node = config_object_json(wconf->head, "node", uuid);
    json_object_set_new(node, "unheard_since", json_integer(0));
    return node;
}

bool wconf_stated(struct wconf *wconf, const char *node, const GPtrArray *statements,
                  GError **error)
{
    if (!wconf_node_unheard(wconf, node))
        return true;
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < statements->len; i++)
        judge(wconf, node, statements->pdata[i], changes);
    g_ptr_array_add(changes, config_put(wconf->head, "node", node, heard(wconf, node)));
    return commit(wconf, changes, error);
}

/* --- a node of the version before --- */

static void free_statement(void *data)
{
    guest_statement_free(data);
}

GPtrArray *wconf_statements_of(const struct node_report *report)
{
    GPtrArray *statements = g_ptr_array_new_with_free_func(free_statement);
    for (guint i = 0; i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        if (guest->state == GUEST_ABSENT || guest->state == GUEST_INCOMING)
            continue;
        struct guest_statement *line = guest_statement_new();
        text_set(&line->instance, guest->instance);
        line->generation = guest->generation;
        line->runs = true;
        text_set(&line->replica, guest->replica);
        line->state = guest->mirror == MIRROR_READY     ? REPLICA_IN_SYNC
                      : guest->mirror == MIRROR_SYNCING ? REPLICA_SYNCING
                                                        : REPLICA_STALE;
        g_ptr_array_add(statements, line);
    }
    return statements;
}
