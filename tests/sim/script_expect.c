/* What scripts expect; see script.h and README. */
#include "script_private.h"

#include <string.h>

#include "proto/repair_tag.h"

#define STEP_MS 5

/* The words from `first` on, up to "within". */
static char *words_from(const struct line *line, guint first)
{
    GString *text = g_string_new(NULL);
    for (guint i = first; i < line->count && !script_is(line, i, "within"); i++)
        g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", line->words[i]);
    return g_string_free(text, FALSE);
}

static bool decision_is(const struct line *line, const struct instance *instance, const char *state)
{
    g_autoptr(GPtrArray) all = config_list(sim_config(line->sim), "decision");
    const struct decision *latest = NULL;
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        if (strcmp(decision->subject, instance->uuid) == 0 &&
            (strcmp(decision->author, "watcher/repair") == 0 ||
             strcmp(decision->author, "watcher/tend") == 0) &&
            (latest == NULL || decision->at_us > latest->at_us))
            latest = decision;
    }
    return latest != NULL && strcmp(latest->state, state) == 0;
}

/* Whether any record says so: of that subject (a name), its summary, evidence or what it rejects.
 */
static bool said(const struct line *line, const char *subject, const char *pattern)
{
    bool found = false;
    g_autoptr(GPtrArray) all = config_list(sim_config(line->sim), "decision");
    for (guint i = 0; i < all->len && !found; i++) {
        const struct decision *decision = all->pdata[i];
        if (strcmp(decision->subject_name, subject) != 0)
            continue;
        found = g_pattern_match_simple(pattern, decision->summary);
        for (guint k = 0; k < decision->evidence->len; k++)
            found |= g_pattern_match_simple(pattern, decision->evidence->pdata[k]);
        for (guint k = 0; k < decision->rejected->len; k++)
            found |= g_pattern_match_simple(pattern, decision->rejected->pdata[k]);
    }
    return found;
}

/* Jobs with that opcode; "repair": that serve a repair. */
static guint count_jobs(const struct line *line, const char *op)
{
    guint count = 0;
    g_autoptr(GPtrArray) jobs = config_list(sim_config(line->sim), "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        bool counts = strcmp(op, "repair") == 0 && *job->request_id != '\0';
        for (guint k = 0; k < job->ops->len && !counts; k++) {
            const json_t *input = ((const struct job_op *)job->ops->pdata[k])->input;
            counts = strcmp(json_string_value(json_object_get(input, "OP_ID")), op) == 0;
        }
        count += counts ? 1 : 0;
    }
    return count;
}

static guint count_tags(const struct line *line, const struct instance *instance,
                        const char *pattern)
{
    guint count = 0;
    g_autoptr(GPtrArray) tags = config_tags(sim_config(line->sim), TAG_INSTANCE, instance->uuid);
    g_autofree char *glob = g_strconcat(REPAIR_TAG_PREFIX, pattern, NULL);
    for (guint i = 0; i < tags->len; i++)
        count += g_pattern_match_simple(glob, tags->pdata[i]) ? 1 : 0;
    return count;
}

static bool runs_on(const struct line *line, const struct instance *instance, const char *node)
{
    guint64 generation = 0;
    return fake_host_state(sim_host(line->sim, node), instance->uuid, &generation) ==
               GUEST_RUNNING &&
           generation == instance->generation;
}

static bool is_healthy(const struct line *line, const struct instance *instance)
{
    const struct replica *replica =
        config_get(sim_config(line->sim), "replica", instance->replica, NULL);
    return instance->task_state == TASK_NONE && *instance->migration == '\0' &&
           (instance->disk_template != TEMPLATE_MIRROR ||
            (replica != NULL && replica->state == REPLICA_IN_SYNC)) &&
           runs_on(line, instance, sim_node_name(line->sim, instance->primary_node));
}

static bool is_stopped(const struct line *line, const struct instance *instance)
{
    return instance->admin_state == ADMIN_DOWN && *instance->holder == '\0' &&
           fake_hosts_running(sim_hosts(line->sim), instance->uuid) == 0;
}

static bool replica_is(const struct line *line, const struct instance *instance)
{
    const struct replica *replica =
        config_get(sim_config(line->sim), "replica", instance->replica, NULL);
    return replica != NULL &&
           (script_is(line, 4, enum_word(&replica_state_words, (int)replica->state)) ||
            (script_is(line, 4, "on") &&
             script_is(line, 5, sim_node_name(line->sim, replica->node))));
}

/* How far its hypervisor is in sending it away. */
static bool sends(const struct line *line, const struct instance *instance)
{
    static const char *const words[] = {[STEP_NONE] = "nothing",
                                        [STEP_COPYING] = "copying",
                                        [STEP_STOPPED] = "stopped",
                                        [STEP_DONE] = "done",
                                        [STEP_FAILED] = "failed"};
    return script_is(line, 4,
                     words[fake_host_step(sim_host(line->sim, instance->holder), instance->uuid)]);
}

/* Its process, its record, and what the next start gives it: "64 next 128". */
static bool memory_is(const struct line *line, const struct instance *instance)
{
    g_autofree char *now = g_strdup_printf("%" G_GUINT64_FORMAT, instance->memory);
    g_autofree char *next = g_strdup_printf("%" G_GUINT64_FORMAT, instance->memory_next);
    return script_is(line, 4, now) && script_is(line, 6, next) && *instance->holder != '\0' &&
           fake_host_memory(sim_host(line->sim, instance->holder), instance->uuid) ==
               instance->memory;
}

static bool instance_is(struct line *line)
{
    const struct instance *instance = script_find_instance(line, script_word(line, 2));
    g_autofree char *rest = words_from(line, 4);
    if (instance == NULL || script_is(line, 3, "gone"))
        return instance == NULL && script_is(line, 3, "gone");
    if (script_is(line, 3, "running"))
        return runs_on(line, instance, script_word(line, 5));
    if (script_is(line, 3, "stopped"))
        return is_stopped(line, instance);
    if (script_is(line, 3, "primary"))
        return script_is(line, 4, sim_node_name(line->sim, instance->primary_node));
    if (script_is(line, 3, "healthy"))
        return is_healthy(line, instance);
    if (script_is(line, 3, "memory"))
        return memory_is(line, instance);
    if (script_is(line, 3, "migrating"))
        return *instance->migration != '\0';
    if (script_is(line, 3, "sending"))
        return *instance->holder != '\0' && sends(line, instance);
    if (script_is(line, 3, "replica"))
        return replica_is(line, instance);
    if (script_is(line, 3, "decision"))
        return decision_is(line, instance, rest);
    if (script_is(line, 3, "said"))
        return said(line, instance->name, rest);
    if (script_is(line, 3, "tag"))
        return count_tags(line, instance, script_word(line, 4)) > 0;
    if (script_is(line, 3, "one-tag"))
        return count_tags(line, instance, script_word(line, 4)) == 1;
    if (script_is(line, 3, "no-tag"))
        return count_tags(line, instance, script_word(line, 4)) == 0;
    script_fail(line, "what is \"%s\"?", script_word(line, 3));
    return false;
}

/* jobs COUNT | jobs OP_ID COUNT | jobs repair COUNT */
static bool jobs_are(const struct line *line)
{
    bool all = g_ascii_isdigit(*script_word(line, 2));
    guint count =
        all ? config_count(sim_config(line->sim), "job") : count_jobs(line, script_word(line, 2));
    return g_ascii_strtoull(script_word(line, all ? 2 : 3), NULL, 10) == count;
}

static bool job_is(const struct line *line)
{
    const char *final = sim_job_final(line->sim, g_ascii_strtoull(script_word(line, 2), NULL, 10));
    return script_is(line, 3, final != NULL ? final : "unfinished");
}

static bool brake_is(const struct line *line)
{
    bool on = config_get(sim_config(line->sim), "repair_brake", "cluster", NULL) != NULL;
    return script_is(line, 2, on ? "on" : "off");
}

static bool cluster_said(const struct line *line)
{
    g_autofree char *pattern = words_from(line, 3);
    return said(line, script_word(line, 2), pattern);
}

/* events PATTERN EVENT COUNT: of subjects with such a name. */
static bool events_are(const struct line *line)
{
    guint count = 0;
    g_autoptr(GPtrArray) all = config_list(sim_config(line->sim), "decision");
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        bool counts = g_pattern_match_simple(script_word(line, 2), decision->subject_name) &&
                      script_is(line, 3, enum_word(&event_kind_words, (int)decision->event));
        count += counts ? 1 : 0;
    }
    return g_ascii_strtoull(script_word(line, 4), NULL, 10) == count;
}

static bool expectation_holds(struct line *line)
{
    if (script_is(line, 1, "instance"))
        return instance_is(line);
    if (script_is(line, 1, "jobs"))
        return jobs_are(line);
    if (script_is(line, 1, "job"))
        return job_is(line);
    if (script_is(line, 1, "brake"))
        return brake_is(line);
    if (script_is(line, 1, "said"))
        return cluster_said(line);
    if (script_is(line, 1, "events"))
        return events_are(line);
    if (script_is(line, 1, "rest")) {
        g_autofree char *unrest = sim_unrest(line->sim);
        return unrest == NULL;
    }
    script_fail(line, "what is \"%s\"?", script_word(line, 1));
    return false;
}

void script_expect(struct line *line)
{
    guint limit = 0;
    for (guint i = 1; i + 1 < line->count; i++)
        if (script_is(line, i, "within"))
            limit = script_duration(line, line->words[i + 1]);
    gint64 end = sim_now_ms(line->sim) + limit;
    while (!expectation_holds(line) && line->failure == NULL && sim_problem(line->sim) == NULL) {
        if (sim_now_ms(line->sim) >= end) {
            g_autofree char *unrest = script_is(line, 1, "rest") ? sim_unrest(line->sim) : NULL;
            script_fail(line, "it did not come true%s%s", unrest != NULL ? ": " : "",
                        unrest != NULL ? unrest : "");
        }
        sim_pass(line->sim, STEP_MS);
    }
}
