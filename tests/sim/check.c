/* What checkers watch after every event (docs/design/safety.md); see sim.h. */
#include "sim_private.h"

#include <string.h>

static bool is_final(const char *status)
{
    return strcmp(status, "success") == 0 || strcmp(status, "error") == 0 ||
           strcmp(status, "canceled") == 0;
}

/* SAF-30: a committed final state never changes. */
static void check_job(struct sim *sim, const struct change *change)
{
    const struct job *before = config_get(sim->mirror, "job", change->key, NULL);
    const char *after = json_string_value(json_object_get(change->object, "status"));
    if (before != NULL && is_final(before->status) && g_strcmp0(after, before->status) != 0)
        sim_find(sim, "job %s went from %s to %s", change->key, before->status,
                 after != NULL ? after : "nothing");
}

/* SAF-16: only a replica recorded in-sync is promoted, and only with evidence. SAF-10: generations.
 */
static void check_instance(struct sim *sim, const struct change *change)
{
    const struct instance *before = config_get(sim->mirror, "instance", change->key, NULL);
    record_autoptr(instance) after =
        change->op == CHANGE_PUT ? instance_parse(change->object, RECORD_KEEP, NULL) : NULL;
    if (before == NULL || after == NULL)
        return;
    if (after->generation < before->generation)
        sim_find(sim, "the generation of %s fell", after->name);
    bool moved = strcmp(after->primary_node, before->primary_node) != 0;
    if ((moved || strcmp(after->holder, before->holder) != 0) &&
        after->generation == before->generation)
        sim_find(sim, "the holder of %s changed within generation %" G_GUINT64_FORMAT, after->name,
                 after->generation);
    if (!moved || before->disk_template != TEMPLATE_MIRROR)
        return;
    const struct replica *replica = config_get(sim->mirror, "replica", before->replica, NULL);
    const struct node *old = config_get(sim->mirror, "node", before->primary_node, NULL);
    if (replica == NULL || replica->state != REPLICA_IN_SYNC ||
        strcmp(replica->node, after->primary_node) != 0)
        sim_find(sim, "%s was promoted from a replica that is not recorded in-sync", after->name);
    if (*before->holder != '\0' && (old == NULL || !old->offline))
        sim_find(sim, "%s was promoted without evidence that its holder is dead", after->name);
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
        if (strcmp(change->kind, "job") == 0)
            check_job(sim, change);
        else if (strcmp(change->kind, "instance") == 0)
            check_instance(sim, change);
    }
    for (guint i = first; i < end; i++) {
        g_autoptr(GError) error = NULL;
        if (!config_apply(sim->mirror, changes->pdata[i], &error))
            sim_find(sim, "a committed object does not parse: %s", error->message);
    }
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
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func((GDestroyNotify)change_free);
    struct engine *engine = fake_engine_base(sim->engine);
    if (!engine->ops->changes(engine, sim->checked_serial, G_MAXUINT, changes))
        sim_find(sim, "the store's log does not reach back to serial %" G_GUINT64_FORMAT,
                 sim->checked_serial);
    for (guint i = 0; i < changes->len;)
        i = follow_commit_at(sim, changes, i);
    sim->checked_serial = serial;
    config_set_position(sim->mirror, 1, serial);
}

/* SAF-13: recorded in-sync means that every acknowledged write is there. */
static void check_replicas(struct sim *sim)
{
    g_autoptr(GPtrArray) replicas = config_list(sim->mirror, "replica");
    for (guint i = 0; i < replicas->len; i++) {
        const struct replica *replica = replicas->pdata[i];
        if (replica->state == REPLICA_IN_SYNC &&
            !fake_hosts_whole(sim->hosts, replica->node, replica->instance, replica->uuid))
            sim_find(sim, "the replica on %s is recorded in-sync and lacks an acknowledged write",
                     sim_node_name(sim, replica->node));
    }
}

void sim_check(struct sim *sim)
{
    if (sim->problem != NULL)
        return;
    const char *problem = fake_hosts_problem(sim->hosts);
    if (problem != NULL)
        sim_find(sim, "%s", problem);
    follow_store(sim);
    check_replicas(sim);
}

/* --- at rest --- */

static char *unrest_of_jobs(struct sim *sim)
{
    for (guint i = 0; i < sim->accepted->len; i++) {
        guint64 id = g_array_index(sim->accepted, guint64, i);
        if (sim_job_final(sim, id) == NULL)
            return g_strdup_printf("job %" G_GUINT64_FORMAT " has no final state", id);
    }
    g_autoptr(GPtrArray) jobs = config_list(sim->mirror, "job");
    for (guint i = 0; i < jobs->len; i++)
        if (!is_final(((const struct job *)jobs->pdata[i])->status))
            return g_strdup_printf("job %" G_GUINT64_FORMAT " is %s",
                                   ((const struct job *)jobs->pdata[i])->id,
                                   ((const struct job *)jobs->pdata[i])->status);
    return NULL;
}

static char *unrest_of_instance(struct sim *sim, const struct instance *instance)
{
    const struct replica *replica =
        *instance->replica != '\0' ? config_get(sim->mirror, "replica", instance->replica, NULL)
                                   : NULL;
    guint running = fake_hosts_running(sim->hosts, instance->uuid);
    if (instance->task_state != TASK_NONE)
        return g_strdup_printf("%s is still marked %s", instance->name,
                               enum_word(&task_state_words, (int)instance->task_state));
    if (running != (instance->admin_state == ADMIN_UP ? 1 : 0))
        return g_strdup_printf("%s should be %s and runs %u times", instance->name,
                               enum_word(&admin_state_words, (int)instance->admin_state), running);
    if (instance->disk_template == TEMPLATE_MIRROR &&
        (replica == NULL || replica->state != REPLICA_IN_SYNC))
        return g_strdup_printf(
            "%s has no replica in sync (%s)", instance->name,
            replica == NULL ? "none" : enum_word(&replica_state_words, (int)replica->state));
    g_autoptr(GPtrArray) tags = config_tags(sim->mirror, TAG_INSTANCE, instance->uuid);
    for (guint i = 0; i < tags->len; i++)
        if (strstr(tags->pdata[i], ":pending:") != NULL)
            return g_strdup_printf("%s still has %s", instance->name, (const char *)tags->pdata[i]);
    return NULL;
}

static char *unrest_of_locks(struct sim *sim)
{
    json_autoptr answer = fake_call(sim->operator, sim_node_uuid(sim, "node1"), ROLE_LUXID, "Query",
                                    json_make("[s[ss]n]", "lock", "name", "owner"), NULL);
    const json_t *rows = json_object_get(answer, "data");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *owner = json_array_get(json_array_get(json_array_get(rows, i), 1), 1);
        if (json_array_size(owner) > 0)
            return g_strdup_printf(
                "lock %s is still held",
                json_string_value(json_array_get(json_array_get(json_array_get(rows, i), 0), 1)));
    }
    return NULL;
}

char *sim_unrest(struct sim *sim)
{
    char *why = unrest_of_jobs(sim);
    g_autoptr(GPtrArray) instances = config_list(sim->mirror, "instance");
    for (guint i = 0; why == NULL && i < instances->len; i++)
        why = unrest_of_instance(sim, instances->pdata[i]);
    return why != NULL ? why : unrest_of_locks(sim);
}
