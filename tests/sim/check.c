/* What checkers watch after every event (docs/design/safety.md); see sim.h. */
#include "core/config/fault.h"
#include "proto/change.h"
#include "sim_private.h"

#include <string.h>

bool sim_is_final(const char *status)
{
    return strcmp(status, "success") == 0 || strcmp(status, "error") == 0 ||
           strcmp(status, "canceled") == 0;
}

const char *sim_job_archived(struct sim *sim, guint64 id)
{
    g_autofree char *name = g_strdup_printf(
        "queue/archive/%" G_GUINT64_FORMAT "/job-%" G_GUINT64_FORMAT, id / ARCHIVE_FOLDER_JOBS, id);
    const struct cluster *cluster = config_cluster(sim->mirror); /* NULL before the first commit */
    const char *text =
        cluster != NULL ? fake_file(sim->world, cluster->master_node, FILE_STATE, name) : NULL;
    json_autoptr record = text != NULL ? json_loads(text, 0, NULL) : NULL;
    return g_intern_string(json_string_value(json_object_get(record, "status")));
}

/* LUX-06: a record goes only when the archive of the master has the job, as it has ended. */
static void check_archived(struct sim *sim, const struct job *job)
{
    const char *status = sim_job_archived(sim, job->id);
    if (g_strcmp0(status, job->status) != 0)
        sim_find(sim, "job %" G_GUINT64_FORMAT ", %s, is deleted, and %s in the archive", job->id,
                 job->status, status != NULL ? status : "is not");
}

/* SAF-30: a committed final state never changes. */
static void check_job(struct sim *sim, const struct change *change)
{
    const struct job *before = config_get(sim->mirror, "job", change->key, NULL);
    const char *after = json_string_value(json_object_get(change->object, "status"));
    if (before != NULL && change->op == CHANGE_DELETE && sim_is_final(before->status))
        check_archived(sim, before);
    else if (before != NULL && sim_is_final(before->status) &&
             g_strcmp0(after, before->status) != 0)
        sim_find(sim, "job %s went from %s to %s", change->key, before->status,
                 after != NULL ? after : "nothing");
}

/* SAF-10: generations. */
static void check_generation(struct sim *sim, const struct instance *before,
                             const struct instance *after)
{
    if (after->generation < before->generation)
        sim_find(sim, "the generation of %s fell", after->name);
    if ((strcmp(after->primary_node, before->primary_node) != 0 ||
         strcmp(after->holder, before->holder) != 0) &&
        after->generation == before->generation)
        sim_find(sim, "the holder of %s changed within generation %" G_GUINT64_FORMAT, after->name,
                 after->generation);
}

/* SAF-16: only a replica recorded in-sync is promoted, and only with evidence; of what has no
 * replica the holder must be fenced all the same. */
static void check_promotion(struct sim *sim, const struct instance *before,
                            const struct instance *after)
{
    const struct replica *replica = config_get(sim->mirror, "replica", before->replica, NULL);
    const struct node *old = config_get(sim->mirror, "node", before->primary_node, NULL);
    if (before->disk_template == TEMPLATE_MIRROR &&
        (replica == NULL || replica->state != REPLICA_IN_SYNC ||
         strcmp(replica->node, after->primary_node) != 0))
        sim_find(sim, "%s was promoted from a replica that is not recorded in-sync", after->name);
    if (before->disk_template == TEMPLATE_FILE)
        sim_find(sim, "%s went to another node without its images", after->name);
    if (*before->holder != '\0' && (old == NULL || !old->offline))
        sim_find(sim, "%s was promoted without evidence that its holder is dead", after->name);
    sim_check_unheard(sim, before, after, replica);
}

/* SAF-17: the move is on record only when the process on the old node is gone, and to the node that
 * the migration on record names. */
static void check_move(struct sim *sim, const struct instance *before, const struct instance *after)
{
    const struct fake_host *left = sim_host(sim, before->primary_node);
    guint64 generation = 0;
    if (strcmp(before->migration_node, after->primary_node) != 0)
        sim_find(sim, "%s moved to %s, but its migration goes to %s", after->name,
                 sim_node_name(sim, after->primary_node),
                 sim_node_name(sim, before->migration_node));
    if (fake_host_state(left, after->uuid, &generation) != GUEST_ABSENT &&
        generation == before->generation)
        sim_find(sim, "%s is recorded as moved while its process on %s lives", after->name,
                 sim_node_name(sim, before->primary_node));
}

static bool same_disks(const struct instance *a, const struct instance *b)
{
    for (guint i = 0; i < a->disks->len && i < b->disks->len; i++)
        if (strcmp(((const struct disk *)a->disks->pdata[i])->uuid,
                   ((const struct disk *)b->disks->pdata[i])->uuid) != 0)
            return false;
    return true;
}

/* SAF-22: data are given up only when nobody can have them any more. */
static void check_new_disks(struct sim *sim, const struct instance *before,
                            const struct instance *after)
{
    const struct replica *replica = config_get(sim->mirror, "replica", before->replica, NULL);
    const struct node *there =
        replica != NULL ? config_get(sim->mirror, "node", replica->node, NULL) : NULL;
    const struct node *old = config_get(sim->mirror, "node", before->primary_node, NULL);
    if (before->task_state != TASK_RECREATING_DISKS || *after->holder != '\0')
        sim_find(sim, "the disks of %s are others without the mark of such a job", after->name);
    if (replica != NULL && replica->state == REPLICA_IN_SYNC && there != NULL && !there->offline)
        sim_find(sim, "the data of %s were given up although its replica has them", after->name);
    if (*before->holder != '\0' && (old == NULL || !old->offline))
        sim_find(sim, "the data of %s were given up while it may run", after->name);
    fake_hosts_give_up(sim->hosts, after->uuid, LIMIT_DISKS);
    const struct disk *first = after->disks->pdata[0];
    /* Their node may have heard of the commit, and have put them in place. */
    if (!fake_hosts_whole(sim->hosts, after->primary_node, after->uuid, first->uuid) &&
        !fake_hosts_whole(sim->hosts, after->primary_node, after->uuid, ""))
        sim_find(sim, "new disks of %s are on record before their images are on %s", after->name,
                 sim_node_name(sim, after->primary_node));
}

/* What the commit makes of a replica; NULL: it is deleted, or not touched (`*ret_touched`). */
static struct replica *replica_after(const GPtrArray *changes, guint first, const char *uuid,
                                     bool *ret_touched)
{
    guint64 serial = ((const struct change *)changes->pdata[first])->version;
    for (guint i = first; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (change->version != serial || strcmp(change->kind, "replica") != 0 ||
            strcmp(change->key, uuid) != 0)
            continue;
        *ret_touched = true;
        return change->op == CHANGE_PUT ? replica_parse(change->object, RECORD_KEEP, NULL) : NULL;
    }
    return NULL;
}

/* SAF-24: of an instance that does not run its replica's promise is given up only if the images on
 * its primary have every acknowledged write, and can be read. */
static void check_given_up(struct sim *sim, const GPtrArray *changes, guint first,
                           const struct instance *before, const struct instance *after)
{
    const struct replica *replica = config_get(sim->mirror, "replica", before->replica, NULL);
    const struct fake_host *host = sim_host(sim, before->primary_node);
    bool touched = false;
    bool rests = *before->holder == '\0' || after->generation != before->generation;
    bool moves = strcmp(before->primary_node, after->primary_node) != 0;
    bool meant = after->task_state == TASK_REMOVING || after->task_state == TASK_REINSTALLING ||
                 after->task_state == TASK_RECREATING_DISKS;
    if (replica == NULL || replica->state != REPLICA_IN_SYNC || !rests || moves || meant ||
        g_hash_table_contains(sim->lost, replica->uuid))
        return;
    record_autoptr(replica) now = replica_after(changes, first, replica->uuid, &touched);
    if (!touched || (now != NULL && now->state == REPLICA_IN_SYNC))
        return;
    if (fake_host_disks_failed(host) ||
        !fake_hosts_primary_whole(sim->hosts, before->primary_node, before->uuid))
        sim_find(sim,
                 "the replica of %s on %s is given up, although the images on %s are not whole",
                 after->name, sim_node_name(sim, replica->node),
                 sim_node_name(sim, before->primary_node));
}

static void check_instance(struct sim *sim, const GPtrArray *changes, guint first,
                           const struct change *change)
{
    const struct instance *before = config_get(sim->mirror, "instance", change->key, NULL);
    record_autoptr(instance) after =
        change->op == CHANGE_PUT ? instance_parse(change->object, RECORD_KEEP, NULL) : NULL;
    if (before == NULL || after == NULL)
        return;
    check_generation(sim, before, after);
    check_given_up(sim, changes, first, before, after);
    bool moved = strcmp(after->primary_node, before->primary_node) != 0;
    if (after->task_state == TASK_REINSTALLING && after->generation > before->generation)
        fake_hosts_give_up(sim->hosts, after->uuid, 1);
    if (!same_disks(before, after))
        check_new_disks(sim, before, after);
    else if (moved && *before->migration != '\0' &&
             strcmp(before->migration, after->migration) == 0) {
        sim->moves++;
        check_move(sim, before, after);
    } else if (moved) /* also in place of a migration, which that commit ends: by failover */
        check_promotion(sim, before, after);
}

/* Before the change is applied. */
static void follow_replica(struct sim *sim, const struct change *change)
{
    const struct replica *before = config_get(sim->mirror, "replica", change->key, NULL);
    const char *instance = before != NULL
                               ? before->instance
                               : json_string_value(json_object_get(change->object, "instance"));
    GHashTable *set = instance != NULL ? g_hash_table_lookup(sim->replicas, instance) : NULL;
    if (set == NULL && change->op == CHANGE_PUT && instance != NULL) {
        set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_insert(sim->replicas, g_strdup(instance), set);
    }
    if (set != NULL && change->op == CHANGE_PUT)
        g_hash_table_add(set, g_strdup(change->key));
    else if (set != NULL)
        g_hash_table_remove(set, change->key);
}

/* One commit, which is judged as a whole against what was before it. Returns where the next one
 * begins. */
static guint follow_commit_at(struct sim *sim, const GPtrArray *changes, guint first)
{
    guint64 serial = ((const struct change *)changes->pdata[first])->version;
    guint end = first;
    for (; end < changes->len && ((const struct change *)changes->pdata[end])->version == serial;
         end++) {
        const struct change *change = changes->pdata[end];
        sim_tell(sim, change);
        sim_check_repair(sim, changes, first, change);
        if (strcmp(change->kind, "job") == 0)
            check_job(sim, change);
        else if (strcmp(change->kind, "instance") == 0)
            check_instance(sim, changes, first, change);
        else if (strcmp(change->kind, "replica") == 0)
            follow_replica(sim, change);
        if (strcmp(change->kind, "replica") == 0 && changes->len == first + 1)
            sim_lost_word_sees(sim, change);
    }
    sim_check_recovery(sim, changes, first, end);
    for (guint i = first; i < end; i++) {
        g_autoptr(GError) error = NULL;
        if (!config_apply(sim->mirror, changes->pdata[i], &error))
            sim_find(sim, "a committed object does not parse: %s", error->message);
    }
    sim_check_tags(sim, changes, first, end);
    sim_check_stuck(sim, changes, first, end);
    return end;
}

static void follow_store(struct sim *sim)
{
    guint64 serial = fake_engine_serial(sim->engine), epoch = fake_engine_epoch(sim->engine);
    if (serial < sim->checked_serial || epoch < sim->checked_epoch)
        sim_find(sim, "the position of the store went back");
    sim->checked_epoch = epoch;
    if (serial == sim->checked_serial)
        return;
    g_autoptr(GPtrArray) changes = change_list_new();
    fake_engine_changes(sim->engine, sim->checked_serial, changes);
    for (guint i = 0; i < changes->len;)
        i = follow_commit_at(sim, changes, i);
    sim->checked_serial = serial;
    config_set_position(sim->mirror, 1, serial);
}

/* --- replicas --- */

/* With sanitizers everything is looked at after each event, which proves that looking at what was
 * touched misses nothing; without, so often. */
#define EVENTS_BETWEEN_LOOKS 10000

bool sim_checks_all(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#else
    return g_getenv("FETTLE_SIM_CHECK_ALL") != NULL;
#endif
}

/* What is being removed loses its images first, its record last. */
static bool is_on_its_way_out(const struct sim *sim, const struct replica *replica)
{
    const struct instance *instance = config_get(sim->mirror, "instance", replica->instance, NULL);
    return instance != NULL && fault_mark(sim->mirror, instance, NULL) == TASK_REMOVING;
}

/* SAF-13: recorded in-sync means that every acknowledged write is there. */
static bool replica_is_good(const struct sim *sim, const struct replica *replica)
{
    return replica->state != REPLICA_IN_SYNC || g_hash_table_contains(sim->lost, replica->uuid) ||
           is_on_its_way_out(sim, replica) || sim_is_unheard(sim, replica) ||
           fake_hosts_replica_whole(sim->hosts, replica->node, replica->instance, replica->uuid);
}

static void check_replica(struct sim *sim, const struct replica *replica, const char *how)
{
    if (replica->state == REPLICA_IN_SYNC && replica->keep != 0)
        sim_find(sim, "the replica on %s is in-sync, and its images of before are still to be kept",
                 sim_node_name(sim, replica->node));
    if (!replica_is_good(sim, replica))
        sim_find(sim, "the replica on %s is recorded in-sync and lacks an acknowledged write%s",
                 sim_node_name(sim, replica->node), how);
}

static void check_touched_replicas(struct sim *sim)
{
    const GPtrArray *touched = fake_hosts_touched(sim->hosts);
    for (guint i = 0; i < touched->len; i++) {
        GHashTable *set = g_hash_table_lookup(sim->replicas, touched->pdata[i]);
        GHashTableIter iter;
        void *key;
        if (set == NULL)
            continue;
        g_hash_table_iter_init(&iter, set);
        while (g_hash_table_iter_next(&iter, &key, NULL))
            check_replica(sim, config_get(sim->mirror, "replica", key, NULL), "");
    }
}

static void check_all_replicas(struct sim *sim, const char *how)
{
    g_autoptr(GPtrArray) replicas = config_list(sim->mirror, "replica");
    for (guint i = 0; i < replicas->len; i++)
        check_replica(sim, replicas->pdata[i], how);
}

void sim_check(struct sim *sim)
{
    if (sim->problem != NULL)
        return;
    const char *problem = fake_hosts_problem(sim->hosts);
    if (problem != NULL)
        sim_find(sim, "%s", problem);
    guint64 serial = sim->checked_serial;
    follow_store(sim);
    if (serial != sim->checked_serial)
        check_all_replicas(sim, "");
    else if (fake_hosts_touched(sim->hosts)->len > 0)
        check_touched_replicas(sim);
    if (sim->checks_all || fake_steps(sim->world) % EVENTS_BETWEEN_LOOKS == 0)
        check_all_replicas(sim, ", which nobody has touched");
    fake_hosts_untouch(sim->hosts);
}
