/*
 * What must be true of every step from one configuration to the next (invariants.h). Here stand the
 * rules that keep a guest single and its data whole: a step that breaks one is refused, whoever
 * asks.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/config/ports.h"
#include "core/config/restored.h"
#include "core/config/transitions_private.h"

static guint delta_hash(const void *data)
{
    const struct config_delta *delta = data;
    return g_str_hash(delta->kind) ^ g_str_hash(delta->key);
}

static gboolean delta_equal(const void *a, const void *b)
{
    const struct config_delta *one = a, *other = b;
    return !strcmp(one->key, other->key) && !strcmp(one->kind, other->kind);
}

const void *step_before(const struct step *step, const char *kind, const char *key)
{
    const struct config_delta wanted = {.kind = kind, .key = key};
    const struct config_delta *delta = g_hash_table_lookup(step->deltas, &wanted);
    return delta ? delta->before : config_get(step->after, kind, key, NULL);
}

const char *step_node_name(const struct step *step, const char *node)
{
    return config_node_name(step->after, node);
}

bool step_node_offline(const struct step *step, const char *uuid)
{
    const struct node *node = config_get(step->after, "node", uuid, NULL);
    return node && node->offline;
}

/* --- instances --- */

static bool generation_step(const struct step *step, const struct instance *old,
                            const struct instance *after, GError **error)
{
    bool moved = strcmp(old->holder, after->holder) != 0 ||
                 strcmp(old->primary_node, after->primary_node) != 0;
    if (step->author == AUTHOR_STATEMENT && after->generation > old->generation)
        return true; /* what lies between is lost */
    if (after->generation < old->generation || after->generation > old->generation + 1) {
        fettle_set_error(error, UNSAFE,
                         "generation: goes from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                         "; a step is 0 or 1",
                         old->generation, after->generation);
        return false;
    }
    if (!moved || after->generation == old->generation + 1)
        return true;
    fettle_set_error(error, UNSAFE,
                     "generation: stays %" G_GUINT64_FORMAT
                     " although holder goes from %s to %s and primary_node from %s to %s",
                     old->generation, step_node_name(step, old->holder),
                     step_node_name(step, after->holder), step_node_name(step, old->primary_node),
                     step_node_name(step, after->primary_node));
    return false;
}

static bool holder_step(const struct step *step, const struct instance *old,
                        const struct instance *after, GError **error)
{
    bool newly = *after->holder && (!old || after->generation != old->generation);
    if (!newly || !step_node_offline(step, after->holder))
        return true;
    fettle_set_error(error, UNSAFE, "holder: %s is offline, nothing is started there",
                     step_node_name(step, after->holder));
    return false;
}

/* SAF-11: closed cleanly is only what was open, and its replica with it. */
static bool clean_step(const struct step *step, const struct instance *old,
                       const struct instance *after, GError **error)
{
    if (!after->clean || old->clean)
        return true;
    if (*old->holder && !*after->holder && after->generation == old->generation + 1 &&
        !strcmp(old->primary_node, after->primary_node))
        return true;
    fettle_set_error(
        error, UNSAFE,
        "clean: becomes true although no generation ends (holder %s at %" G_GUINT64_FORMAT
        ", then %s at %" G_GUINT64_FORMAT ")",
        step_node_name(step, old->holder), old->generation, step_node_name(step, after->holder),
        after->generation);
    return false;
}

/* SAF-24: what the replica has is not written over from images that may lack it. */
static bool sound_step(const struct step *step, const struct instance *old,
                       const struct instance *after, GError **error)
{
    if (step->author == AUTHOR_STATEMENT)
        return true; /* it runs there already (SAF-09) */
    const struct replica *replica = step_before(step, "replica", old->replica);
    bool begins = after->generation != old->generation && *after->holder &&
                  !strcmp(after->holder, old->primary_node);
    if (!begins || !replica || replica->state != REPLICA_IN_SYNC || old->clean ||
        old->sound == SOUND_YES)
        return true;
    fettle_set_error(error, UNSAFE,
                     "holder: a generation would begin on %s, of whose images it is not known that "
                     "they are sound, beside a replica on %s that has every acknowledged write "
                     "(SAF-24)",
                     step_node_name(step, after->holder), step_node_name(step, replica->node));
    return false;
}

/* The devices of a guest are those that it was started with, and a migration needs the same on the
 * other side. A port that was given out stays when the range changes. */
static bool display_step(const struct step *step, const struct instance *old,
                         const struct instance *after, GError **error)
{
    bool same_port = old && old->network_port == after->network_port;
    if (old && *old->holder &&
        (!same_port || strcmp(old->vnc_bind_address, after->vnc_bind_address) != 0)) {
        fettle_set_error(error, WRONG_STATE,
                         "network_port, vnc_bind_address: generation %" G_GUINT64_FORMAT
                         " may run on %s, with the display that it was started with",
                         old->generation, step_node_name(step, old->holder));
        return false;
    }
    return same_port || !after->network_port ||
           port_is_in_range(step->after, after->network_port, error);
}

/* SAF-57: its volumes are freed by who has seen the exits, with it, and by nobody on the way. */
static bool volumes_let_go(const struct step *step, const struct instance *old, GError **error)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(step->after, old->uuid);
    if (!volumes->len)
        return true;
    fettle_set_error(error, UNSAFE, "is deleted, and volume %s stays attached to it (SAF-57)",
                     config_volume_name(volumes->pdata[0]));
    return false;
}

static bool instance_gone(const struct step *step, const struct instance *old, GError **error)
{
    const struct removed *removed = config_get(step->after, "removed", old->uuid, NULL);
    if (!volumes_let_go(step, old, error))
        return false;
    if (removed && removed->generation > old->generation)
        return true;
    fettle_set_error(error, UNSAFE,
                     "is deleted at generation %" G_GUINT64_FORMAT
                     " without a record \"removed\" of a higher one (%" G_GUINT64_FORMAT ")",
                     old->generation, removed ? removed->generation : 0);
    return false;
}

static bool instance_born(const struct step *step, const struct instance *after, GError **error)
{
    if (after->clean) {
        fettle_set_error(error, UNSAFE,
                         "clean: is true in a new instance; nothing of it was ever closed");
        return false;
    }
    if (*after->migration) {
        fettle_set_error(error, UNSAFE, "migration: is set in a new instance; nothing of it runs");
        return false;
    }
    return holder_step(step, NULL, after, error) && display_step(step, NULL, after, error);
}

static bool instance_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct instance *old = delta->before;
    const struct instance *after = delta->after;
    if (restored_step(step) == RESTORED_ENDS)
        return true;
    if (restored_step(step) == RESTORED_HOLDS && !restored_instance_rests(old, after, error))
        return false;
    if (!after)
        return instance_gone(step, old, error);
    if (!old)
        return instance_born(step, after, error);
    return generation_step(step, old, after, error) && step_new_disks(step, old, after, error) &&
           step_primary(step, old, after, error) && holder_step(step, old, after, error) &&
           clean_step(step, old, after, error) && sound_step(step, old, after, error) &&
           step_migration(step, old, after, error) && step_disks(step, old, after, error) &&
           display_step(step, old, after, error);
}

/* --- replicas --- */

static bool replica_identity(const struct replica *old, const struct replica *after, GError **error)
{
    if (!strcmp(old->instance, after->instance) && !strcmp(old->node, after->node))
        return true;
    fettle_set_error(error, UNSAFE,
                     "moves from instance %s on node %s to instance %s on node %s; another copy is "
                     "another replica",
                     old->instance, old->node, after->instance, after->node);
    return false;
}

static bool sync_step(const struct replica *old, const struct replica *after, GError **error)
{
    if (after->sync > old->sync || (after->sync == old->sync && after->state == old->state))
        return true;
    fettle_set_error(error, UNSAFE,
                     "sync: goes from %" G_GUINT64_FORMAT " (%s) to %" G_GUINT64_FORMAT
                     " (%s); it rises with each change of state (SAF-12)",
                     old->sync, enum_word(&replica_state_words, (int)old->state), after->sync,
                     enum_word(&replica_state_words, (int)after->state));
    return false;
}

/* SAF-26: both copies of what was closed cleanly change places, and nobody runs either. That the
 * one that was promoted was in-sync is judged by the step of its instance. */
static bool left_in_sync(const struct replica *old, const struct replica *after,
                         const struct instance *was, const struct instance *is)
{
    return !old && was && is && was->clean && is->clean && !*was->holder && !*is->holder &&
           !strcmp(after->node, was->primary_node) && *was->replica &&
           strcmp(is->primary_node, was->primary_node) != 0 && !strcmp(is->replica, after->uuid) &&
           after->generation == is->generation;
}

/* The only ways to be in-sync after a step: it was before and either nothing happened, or a
 * generation was closed, or is followed by one that nobody holds either, or the one after a clean
 * close begins; or it was the instance's own; or the holder's node says so, or that a master has
 * had it so. */
static bool in_sync_step(const struct step *step, const struct replica *old,
                         const struct replica *after, GError **error)
{
    if (after->state != REPLICA_IN_SYNC)
        return true;
    if (step->author == AUTHOR_HOLDER && old && old->state == REPLICA_SYNCING)
        return true;
    if (step->author == AUTHOR_STATEMENT)
        return true;
    const struct instance *was = step_before(step, "instance", after->instance);
    const struct instance *is = config_get(step->after, "instance", after->instance, NULL);
    bool stays = old && old->state == REPLICA_IN_SYNC && was && is;
    if (stays && after->generation == old->generation)
        return true;
    stays = stays && old->generation == was->generation;
    bool rests = stays && !*is->holder;
    bool reopened = stays && !*was->holder && was->clean;
    if (rests || reopened || left_in_sync(old, after, was, is))
        return true;
    fettle_set_error(
        error, UNSAFE,
        "would be in-sync at generation %" G_GUINT64_FORMAT " (was %s at %" G_GUINT64_FORMAT
        ") without a clean close and without word from its holder's node",
        after->generation, old ? enum_word(&replica_state_words, (int)old->state) : "nothing",
        old ? old->generation : 0);
    return false;
}

static bool replica_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct replica *old = delta->before;
    const struct replica *after = delta->after;
    if (!after || restored_step(step) == RESTORED_ENDS)
        return true;
    if (old && (!replica_identity(old, after, error) || !sync_step(old, after, error)))
        return false;
    return in_sync_step(step, old, after, error);
}

/* --- records that only grow --- */

bool step_never_less(const char *field, guint64 old, guint64 after, GError **error)
{
    if (after >= old)
        return true;
    fettle_set_error(error, UNSAFE,
                     "%s: falls from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT "; it only grows",
                     field, old, after);
    return false;
}

static bool never_deleted(const struct config_delta *delta, GError **error)
{
    if (delta->after)
        return true;
    fettle_set_error(error, UNSAFE, "is never deleted");
    return false;
}

static bool removed_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct removed *old = delta->before;
    const struct removed *after = delta->after;
    return never_deleted(delta, error) &&
           (!old || step_never_less("generation", old->generation, after->generation, error));
}

static bool counter_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct counter *old = delta->before;
    const struct counter *after = delta->after;
    return never_deleted(delta, error) &&
           (!old || step_never_less("value", old->value, after->value, error));
}

/* The step of a change of engine is no commit of this kind: it is written into the store itself
 * (engine_change.c, seat_engine_step.c). What the record said otherwise would be believed by
 * copies. */
static bool engine_stays(const struct cluster *old, const struct cluster *after, GError **error)
{
    if (old->engine == after->engine)
        return true;
    fettle_set_error(error, PERMISSION,
                     "engine: is %s, and no change of the configuration makes it %s: fettle "
                     "cluster engine %s",
                     enum_word(&engine_kind_words, (int)old->engine),
                     enum_word(&engine_kind_words, (int)after->engine),
                     enum_word(&engine_kind_words, (int)after->engine));
    return false;
}

/* Whoever chooses it sees no types. Only a choice is judged: what was on record before holds up no
 * other change of the cluster. */
static bool default_type_is_there(const struct step *step, const struct cluster *old,
                                  const struct cluster *after, GError **error)
{
    const char *name = after->default_volume_type;
    if (!*name || (old && !strcmp(old->default_volume_type, name)) ||
        config_find(step->after, "volume_type", name, NULL))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "default_volume_type: there is no type \"%s\"; see: fettle volume-type list",
                     name);
    return false;
}

static bool cluster_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    return never_deleted(delta, error) &&
           (!delta->before || engine_stays(delta->before, delta->after, error)) &&
           default_type_is_there(step, delta->before, delta->after, error);
}

/* SAF-21: nothing but the power switch keeps a node from writing to disks that others use too. */
static bool node_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct node *old = delta->before;
    const struct node *after = delta->after;
    if (!old || !after || !after->offline || *after->offline_statement ||
        (old->offline && !*old->offline_statement))
        return true;
    g_autoptr(GPtrArray) instances = config_list(step->after, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (strcmp(instance->holder, after->uuid) != 0 || !attachment_shares(step->after, instance))
            continue;
        fettle_set_error(error, UNSAFE,
                         "offline: instance %s may run there, on disks that other nodes use too; "
                         "the statement must say that its power is off (SAF-21)",
                         instance->name);
        return false;
    }
    return true;
}

static bool status_is_final(const char *status)
{
    return !strcmp(status, "success") || !strcmp(status, "error") || !strcmp(status, "canceled");
}

/* SAF-30: started before it runs, and a final state is for ever. */
static bool job_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct job *old = delta->before;
    const struct job *after = delta->after;
    if (!old || !after)
        return true;
    if (status_is_final(old->status) && strcmp(old->status, after->status) != 0) {
        fettle_set_error(error, WRONG_STATE, "status: is %s for ever, it cannot become %s (SAF-30)",
                         old->status, after->status);
        return false;
    }
    if (!old->started ||
        (after->started && after->epoch == old->epoch && after->history == old->history))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "started: it was started in epoch %" G_GUINT64_FORMAT
                     "; that cannot be taken back (SAF-30)",
                     old->epoch);
    return false;
}

static const struct {
    const char *kind;
    bool (*rule)(const struct step *step, const struct config_delta *delta, GError **error);
} step_rules[] = {
    {"instance", instance_step},
    {"replica", replica_step},
    {"removed", removed_step},
    {"counter", counter_step},
    {"cluster", cluster_step},
    {"job", job_step},
    {"node", node_step},
    {"backend", step_backend},
    {"storage_service", step_storage_service},
    {"worker", step_worker},
    {"volume", step_resource},
    {"snapshot", step_resource},
    {"backup", step_resource},
    {"image", step_resource},
    {"trash", step_trash},
    {"cleanup", step_cleanup},
};

static bool check_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(step_rules); i++) {
        if (strcmp(step_rules[i].kind, delta->kind) != 0 || step_rules[i].rule(step, delta, error))
            continue;
        g_autofree char *subject = invariants_subject(delta->kind, delta->key,
                                                      delta->after ? delta->after : delta->before);
        g_prefix_error(error, "%s: ", subject);
        return false;
    }
    return true;
}

bool invariants_check_steps(const struct config *after, const GPtrArray *deltas,
                            enum invariants_author author, GError **error)
{
    /* A commit of the watcher has 1,024 of them, and each may ask for others. */
    g_autoptr(GHashTable) changed = g_hash_table_new(delta_hash, delta_equal);
    for (guint i = deltas->len; i > 0; i--) /* of several of one object the first counts */
        g_hash_table_add(changed, deltas->pdata[i - 1]);
    struct step step = {after, changed, author};
    for (guint i = 0; i < deltas->len; i++) {
        if (!check_step(&step, deltas->pdata[i], error))
            return false;
    }
    return true;
}
