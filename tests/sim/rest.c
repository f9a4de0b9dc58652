/* What must be true of a cluster that is left alone (safety.md: liveness after faults); see sim.h.
 */
#include "sim_private.h"

#include <stdio.h>
#include <string.h>

static char *unrest_of_jobs(struct sim *sim)
{
    for (guint i = 0; i < sim->accepted->len; i++) {
        guint64 id = g_array_index(sim->accepted, guint64, i);
        if (sim_job_final(sim, id) == NULL)
            return g_strdup_printf("job %" G_GUINT64_FORMAT " has no final state", id);
    }
    g_autoptr(GPtrArray) jobs = config_list(sim->mirror, "job");
    for (guint i = 0; i < jobs->len; i++)
        if (!sim_is_final(((const struct job *)jobs->pdata[i])->status))
            return g_strdup_printf("job %" G_GUINT64_FORMAT " is %s",
                                   ((const struct job *)jobs->pdata[i])->id,
                                   ((const struct job *)jobs->pdata[i])->status);
    return NULL;
}

static char *unrest_of_replica(const struct sim *sim, const struct instance *instance)
{
    const struct replica *replica = config_get(sim->mirror, "replica", instance->replica, NULL);
    if (instance->disk_template != TEMPLATE_MIRROR ||
        (replica != NULL && replica->state == REPLICA_IN_SYNC))
        return NULL;
    return g_strdup_printf("%s has no replica in sync (%s)", instance->name,
                           replica == NULL ? "none"
                                           : enum_word(&replica_state_words, (int)replica->state));
}

/* The record says who holds it and what it has, and the hosts agree: no process of it anywhere
 * else. What nobody holds has no other sizes for its next start. */
static char *unrest_of_hosts(const struct sim *sim, const struct instance *instance)
{
    for (guint i = 0; i < sim->nodes->len; i++) {
        const struct sim_node *node = sim->nodes->pdata[i];
        guint64 generation = 0;
        enum guest_state state = fake_host_state(node->host, instance->uuid, &generation);
        if (fake_host_waits(node->host, instance->uuid, NULL))
            return g_strdup_printf("%s waits for %s as an incoming guest", node->name,
                                   instance->name);
        if (state == GUEST_ABSENT)
            continue;
        if (strcmp(instance->holder, node->uuid) != 0 || generation != instance->generation)
            return g_strdup_printf("%s has generation %" G_GUINT64_FORMAT
                                   " of %s; on record are %s and %" G_GUINT64_FORMAT,
                                   node->name, generation, instance->name,
                                   sim_node_name(sim, instance->holder), instance->generation);
        guint64 memory = fake_host_memory(node->host, instance->uuid);
        if (memory != instance->memory)
            return g_strdup_printf("%s runs with %" G_GUINT64_FORMAT
                                   " MiB on %s, not %" G_GUINT64_FORMAT,
                                   instance->name, memory, node->name, instance->memory);
    }
    if (*instance->holder == '\0' && (instance->memory_next != 0 || instance->vcpus_next != 0))
        return g_strdup_printf("%s is stopped, and has other sizes for its next start",
                               instance->name);
    return NULL;
}

static char *unrest_of_tags(const struct sim *sim, const struct instance *instance)
{
    g_autoptr(GPtrArray) tags = config_tags(sim->mirror, TAG_INSTANCE, instance->uuid);
    for (guint i = 0; i < tags->len; i++)
        if (strstr(tags->pdata[i], ":pending:") != NULL)
            return g_strdup_printf("%s still has %s", instance->name, (const char *)tags->pdata[i]);
    return NULL;
}

static char *unrest_of_instance(const struct sim *sim, const struct instance *instance)
{
    guint running = fake_hosts_running(sim->hosts, instance->uuid);
    if (instance->task_state != TASK_NONE || *instance->migration != '\0')
        return g_strdup_printf("%s is still marked %s (migration: %s)", instance->name,
                               enum_word(&task_state_words, (int)instance->task_state),
                               *instance->migration != '\0' ? instance->migration : "none");
    if (running != (instance->admin_state == ADMIN_UP ? 1 : 0))
        return g_strdup_printf("%s should be %s and runs %u times", instance->name,
                               enum_word(&admin_state_words, (int)instance->admin_state), running);
    char *why = unrest_of_replica(sim, instance);
    why = why != NULL ? why : unrest_of_hosts(sim, instance);
    return why != NULL ? why : unrest_of_tags(sim, instance);
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

/* "at 2026-11-23 17:20:12 UTC"; 0: it names no time. */
static gint64 next_check_s(const struct decision *decision)
{
    gint year, month, day, hour, minute, second;
    if (sscanf(decision->next_check, "at %d-%d-%d %d:%d:%d UTC", &year, &month, &day, &hour,
               &minute, &second) != 6)
        return 0;
    g_autoptr(GDateTime) time = g_date_time_new_utc(year, month, day, hour, minute, second);
    return time == NULL ? 0 : g_date_time_to_unix(time);
}

guint sim_pause_ms(const struct sim *sim)
{
    gint64 now_ms = sim->operator->ops->wall_us(sim->operator) / 1000, pause_ms = 0;
    g_autoptr(GPtrArray) decisions = config_list(sim->mirror, "decision");
    for (guint i = 0; i < decisions->len; i++)
        pause_ms = MAX(pause_ms, 1000 * next_check_s(decisions->pdata[i]) - now_ms);
    if (sim->clocks_set) /* what they name may be of another time */
        return 1000 * LIMIT_REPAIR_PAUSE_S;
    return (guint)MIN(pause_ms, 1000 * LIMIT_REPAIR_PAUSE_S);
}
