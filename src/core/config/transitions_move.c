/*
 * The ways in which an instance comes to another primary node, and the only ones (see
 * transitions_private.h):
 *
 *   promotion   SAF-16: the holder can do no harm any more, and the new node has every acknowledged
 *               write.
 *   migration   SAF-17: the holder's own node daemon says that its guest has gone over.
 *   statement   SAF-09: it is there already, by the word of a master that is lost.
 *   new disks   Nobody has the data any more, or it is given up: the disks are others from now on.
 *               It cannot be taken for a promotion: the instance has carried its mark since a
 * commit before, no disk keeps its identity, no replica is carried along, and nothing may run under
 * the generation that this makes.
 */
#include "core/config/transitions_private.h"

#include <string.h>

/* --- promotion --- */

/* The old holder can do no harm. */
static bool holder_fenced(const struct step *step, const struct instance *old, GError **error)
{
    if (!*old->holder || step_node_offline(step, old->holder))
        return true;
    fettle_set_error(
        error, UNSAFE,
        "primary_node: %s still holds generation %" G_GUINT64_FORMAT
        " and is not offline; stop the instance there first, or give evidence that the "
        "node is dead",
        step_node_name(step, old->holder), old->generation);
    return false;
}

/* Only a replica that has every acknowledged write. */
static bool replica_promotable(const struct step *step, const struct instance *old,
                               const struct instance *after, GError **error)
{
    const struct replica *replica = step_before(step, "replica", old->replica);
    if (!replica || strcmp(replica->node, after->primary_node) != 0) {
        fettle_set_error(error, UNSAFE, "primary_node: %s has no replica of it (replica: %s)",
                         step_node_name(step, after->primary_node),
                         replica ? step_node_name(step, replica->node) : "none");
        return false;
    }
    if (replica->state == REPLICA_IN_SYNC && replica->generation == old->generation)
        return true;
    fettle_set_error(error, UNSAFE,
                     "primary_node: the replica on %s is %s (generation %" G_GUINT64_FORMAT
                     ", sync %" G_GUINT64_FORMAT
                     "), only an in-sync one of generation %" G_GUINT64_FORMAT " can be promoted",
                     step_node_name(step, replica->node),
                     enum_word(&replica_state_words, (int)replica->state), replica->generation,
                     replica->sync, old->generation);
    return false;
}

static bool disks_reachable(const struct step *step, const struct instance *old,
                            const struct instance *after, GError **error)
{
    switch (old->disk_template) {
    case TEMPLATE_DISKLESS:
    case TEMPLATE_SHAREDFILE:
        return true;
    case TEMPLATE_MIRROR:
        return replica_promotable(step, old, after, error);
    case TEMPLATE_FILE:
        break;
    }
    fettle_set_error(error, UNSAFE,
                     "primary_node: its disks are on %s only; they go to %s by migration, or are "
                     "made anew there",
                     step_node_name(step, old->primary_node),
                     step_node_name(step, after->primary_node));
    return false;
}

/* --- migration --- */

static bool guest_migrated(const struct step *step, const struct instance *old,
                           const struct instance *after, GError **error)
{
    const struct replica *left = config_get(step->after, "replica", after->replica, NULL);
    bool on_record = invariants_migrating(old) && !strcmp(old->migration, after->migration) &&
                     !strcmp(old->migration_node, after->primary_node);
    bool held = *old->holder && !strcmp(after->holder, after->primary_node);
    bool replica_left = old->disk_template == TEMPLATE_MIRROR
                            ? left && !strcmp(left->uuid, old->migration) &&
                                  !strcmp(left->node, old->primary_node) &&
                                  left->state != REPLICA_IN_SYNC
                            : !*after->replica;
    if (on_record && held && replica_left)
        return true;
    fettle_set_error(error, UNSAFE,
                     "primary_node: goes from %s to %s although the migration on record goes to "
                     "%s (SAF-17)",
                     step_node_name(step, old->primary_node),
                     step_node_name(step, after->primary_node),
                     step_node_name(step, old->migration_node));
    return false;
}

static bool migration_begins(const struct step *step, const struct instance *old,
                             const struct instance *after, GError **error)
{
    const struct replica *replica = config_get(step->after, "replica", after->replica, NULL);
    const char *node = step_node_name(step, after->migration_node);
    bool mirrored = after->disk_template == TEMPLATE_MIRROR;
    if (!*after->holder || after->generation != old->generation)
        fettle_set_error(error, UNSAFE,
                         "migration: begins although generation %" G_GUINT64_FORMAT
                         " does not run (holder: %s)",
                         after->generation, step_node_name(step, after->holder));
    else if (!strcmp(after->migration_node, after->primary_node))
        fettle_set_error(error, WRONG_STATE, "migration_node: %s is the primary node already",
                         node);
    else if (after->task_state != TASK_MIGRATING)
        fettle_set_error(error, WRONG_STATE,
                         "migration: begins without the mark \"migrating\", by which it is found "
                         "when its job dies");
    else if (step_node_offline(step, after->migration_node))
        fettle_set_error(error, UNSAFE, "migration_node: %s is offline", node);
    else if (mirrored && (!replica || replica->state != REPLICA_IN_SYNC))
        fettle_set_error(error, UNSAFE, "migration_node: the replica on %s is not in-sync", node);
    else
        return true;
    return false;
}

bool step_migration(const struct step *step, const struct instance *old,
                    const struct instance *after, GError **error)
{
    bool same = !strcmp(old->migration, after->migration);
    if (!same && *old->migration && *after->migration) {
        fettle_set_error(error, UNSAFE,
                         "migration: another one (%s, to %s) is on record; it is settled before "
                         "the next begins",
                         old->migration, step_node_name(step, old->migration_node));
        return false;
    }
    if (same && strcmp(old->migration_node, after->migration_node) != 0) {
        fettle_set_error(error, UNSAFE, "migration_node: goes from %s to %s within one migration",
                         step_node_name(step, old->migration_node),
                         step_node_name(step, after->migration_node));
        return false;
    }
    if (!same && *after->migration)
        return migration_begins(step, old, after, error);
    if (!same || !invariants_migrating(old) || after->generation == old->generation ||
        step->author == AUTHOR_HOLDER)
        return true;
    fettle_set_error(error, UNSAFE,
                     "generation: goes from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                     " although a migration to %s is on record; that is settled first (SAF-17)",
                     old->generation, after->generation, step_node_name(step, old->migration_node));
    return false;
}

/* --- new disks --- */

static bool making_disks(const struct instance *old, const struct instance *after)
{
    return old->task_state == TASK_RECREATING_DISKS && after->task_state == TASK_RECREATING_DISKS &&
           old->task_owner == after->task_owner;
}

static const struct disk *find_disk(const struct instance *instance, const char *uuid)
{
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        if (!strcmp(disk->uuid, uuid))
            return disk;
    }
    return NULL;
}

/* How many disks have kept their identity. */
static guint disks_kept(const struct instance *old, const struct instance *after)
{
    guint kept = 0;
    for (guint i = 0; i < old->disks->len; i++)
        kept += find_disk(after, ((const struct disk *)old->disks->pdata[i])->uuid) != NULL;
    return kept;
}

/* A whole replica on a node that is not offline is promoted, not given up. */
static bool data_is_lost(const struct step *step, const struct instance *old, GError **error)
{
    const struct replica *replica = step_before(step, "replica", old->replica);
    if (!replica || replica->state != REPLICA_IN_SYNC || step_node_offline(step, replica->node))
        return true;
    fettle_set_error(error, UNSAFE,
                     "primary_node: the replica on %s has its data; fail over to it in place of "
                     "making new disks",
                     step_node_name(step, replica->node));
    return false;
}

static bool disks_made_anew(const struct step *step, const struct instance *old,
                            const struct instance *after, GError **error)
{
    if (!holder_fenced(step, old, error) || !data_is_lost(step, old, error))
        return false;
    if (*after->holder || disks_kept(old, after) > 0 ||
        (*old->replica && !strcmp(old->replica, after->replica))) {
        fettle_set_error(error, UNSAFE,
                         "primary_node: new disks on %s are other disks (%u keep their UUID), "
                         "without the old replica, and nobody holds them yet (holder: %s)",
                         step_node_name(step, after->primary_node), disks_kept(old, after),
                         step_node_name(step, after->holder));
        return false;
    }
    return true;
}

/* A person gives up the last disks of an instance that nobody holds: in a generation of its own, so
 * that nothing of before touches what comes in their place. */
static bool last_ones_go(const struct instance *old, const struct instance *after)
{
    bool rests = !*old->holder && !*after->holder && !*after->migration &&
                 after->generation == old->generation + 1 &&
                 !strcmp(old->primary_node, after->primary_node);
    for (guint i = 0; i < after->disks->len && rests; i++)
        rests = i < old->disks->len && !strcmp(((const struct disk *)old->disks->pdata[i])->uuid,
                                               ((const struct disk *)after->disks->pdata[i])->uuid);
    return rests;
}

bool step_disks(const struct step *step, const struct instance *old, const struct instance *after,
                GError **error)
{
    const struct replica *replica = config_get(step->after, "replica", after->replica, NULL);
    for (guint i = 0; i < old->disks->len; i++) {
        const struct disk *disk = old->disks->pdata[i];
        const struct disk *now = find_disk(after, disk->uuid);
        if ((now && now->size >= disk->size) || (!now && last_ones_go(old, after)))
            continue;
        if (now)
            fettle_set_error(error, UNSAFE,
                             "disks[%u].size: falls from %" G_GUINT64_FORMAT
                             " to %" G_GUINT64_FORMAT " MiB; a disk only grows",
                             i, disk->size, now->size);
        else if (!making_disks(old, after))
            fettle_set_error(error, UNSAFE,
                             "disks[%u]: is another one (%s before) although nothing has marked "
                             "the instance as recreating-disks",
                             i, disk->uuid);
        else if (after->clean || (replica && replica->state == REPLICA_IN_SYNC))
            fettle_set_error(error, UNSAFE, "disks[%u]: is made anew, so no replica can equal it",
                             i);
        else if (disks_made_anew(step, old, after, error))
            continue;
        return false;
    }
    return true;
}

bool step_new_disks(const struct step *step, const struct instance *old,
                    const struct instance *after, GError **error)
{
    bool finished = after->task_state == TASK_NONE && after->generation == old->generation;
    if (old->task_state != TASK_RECREATING_DISKS || after->task_state == TASK_RECREATING_DISKS ||
        after->task_state == TASK_REMOVING || finished)
        return true;
    fettle_set_error(error, UNSAFE,
                     "task_state: goes from recreating-disks to %s (generation %" G_GUINT64_FORMAT
                     ", then %" G_GUINT64_FORMAT ") although job %" G_GUINT64_FORMAT
                     " has not settled which disks it has (SAF-22)",
                     after->task_state == TASK_NONE
                         ? "no mark"
                         : enum_word(&task_state_words, (int)after->task_state),
                     old->generation, after->generation, old->task_owner);
    return false;
}

bool step_primary(const struct step *step, const struct instance *old, const struct instance *after,
                  GError **error)
{
    if (!strcmp(old->primary_node, after->primary_node))
        return true;
    if (step->author == AUTHOR_HOLDER)
        return guest_migrated(step, old, after, error);
    if (step->author == AUTHOR_STATEMENT && after->generation > old->generation)
        return true;
    if (making_disks(old, after))
        return disks_made_anew(step, old, after, error);
    return holder_fenced(step, old, error) && disks_reachable(step, old, after, error);
}
