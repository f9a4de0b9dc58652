/* All that keeps one queued job from starting; see hold.h. */
#include "core/queue/hold_private.h"

#define ID G_GUINT64_FORMAT

struct explaining {
    struct holds *holds;
    struct queue_job *job;
    const struct job *record;
    json_t *list;
    guint64 ready_us; /* since when it waits for nothing but its turn, as far as others ended */
};

static const struct queue_context *context_of(const struct explaining *explaining)
{
    return explaining->holds->context;
}

/* Nothing can have held it before it was there. `why` and `until` are stolen. `job` 0: it is no
 * job. */
static void add(struct explaining *explaining, const char *kind, char *why, guint64 since_us,
                char *until, guint64 job)
{
    json_t *entry =
        json_make("{ss ss sI ss}", "kind", kind, "why", why, "since",
                  (json_int_t)(MAX(since_us, explaining->record->received_us) / G_USEC_PER_SEC),
                  "until", until);
    json_object_set_new(entry, "job", job == 0 ? json_null() : json_integer((json_int_t)job));
    json_array_append_new(explaining->list, entry);
    g_free(why);
    g_free(until);
}

/* --- dependencies --- */

/* "success or error"; NULL: any will do. */
static char *wanted_text(const json_t *words)
{
    g_autoptr(GString) text = g_string_new(NULL);
    size_t i;
    const json_t *word;
    json_array_foreach(words, i, word)
        g_string_append_printf(text, "%s%s", i > 0 ? " or " : "", json_string_value(word));
    return text->len == 0 ? NULL : g_strdup(text->str);
}

static void add_dependency(struct explaining *explaining, const json_t *item)
{
    guint64 id = (guint64)json_integer_value(json_array_get(item, 0));
    const struct queue_job *other = queue_find(context_of(explaining)->queue, id);
    const struct job *record = context_record(context_of(explaining), id);
    g_autofree char *wanted = wanted_text(json_array_get(item, 1));
    if (!other)
        return;
    if (job_state_final((enum job_state)other->state)) {
        explaining->ready_us = MAX(explaining->ready_us, record ? record->end_us : 0);
        return;
    }
    add(explaining, "dependency",
        g_strdup_printf("it depends on job %" ID ", which is %s", id,
                        sm_name(&job_sm, other->state)),
        0,
        wanted ? g_strdup_printf("job %" ID " has ended in %s", id, wanted)
               : g_strdup_printf("job %" ID " has ended, in whatever state", id),
        id);
}

static void add_dependencies(struct explaining *explaining)
{
    for (guint i = 0; i < explaining->record->ops->len; i++) {
        const struct job_op *op = explaining->record->ops->pdata[i];
        size_t at;
        const json_t *item;
        json_array_foreach(json_object_get(op->input, "depends"), at, item)
            add_dependency(explaining, item);
    }
}

/* --- rules and limits --- */

/* When it was made, in microseconds; 0: it does not say. */
static guint64 made_us(const struct rule *rule)
{
    const json_t *trail = rule->filter->reason;
    const json_t *last = json_array_get(trail, json_array_size(trail) - 1);
    return (guint64)json_integer_value(json_array_get(last, 2)) / 1000;
}

static void add_rule(struct explaining *explaining)
{
    const struct rule *rule = rules_judge(hold_rules(explaining->holds), explaining->record);
    char *why = hold_rule_why(explaining->holds, rule);
    if (!why)
        return;
    add(explaining, "rule", why, made_us(rule),
        g_strdup(rule->action == RULE_REJECT       ? "its end is on record: it will not run"
                 : rule->action == RULE_RATE_LIMIT ? "one of those has ended, or the rule is gone"
                                                   : "that rule is gone"),
        0);
}

static void add_limits(struct explaining *explaining)
{
    g_autoptr(GPtrArray) limits = rules_own_limits(explaining->record);
    for (guint i = 0; i < limits->len; i++) {
        char *why = hold_limit_why(explaining->holds, limits->pdata[i]);
        if (why)
            add(explaining, "limit", why, 0, g_strdup("one of those has ended"), 0);
    }
}

/* --- locks --- */

/* Since when a job is at the opcode that it is at. */
static guint64 at_work_us(const struct explaining *explaining, guint64 id)
{
    const struct job *view = context_view(context_of(explaining), id);
    guint64 since = 0;
    for (guint i = 0; view && i < view->ops->len; i++)
        since = MAX(since, ((const struct job_op *)view->ops->pdata[i])->start_us);
    return since;
}

static void add_locks(struct explaining *explaining)
{
    struct hold_way way = hold_way(explaining->holds, explaining->job);
    if (way.first != 0)
        add(explaining, "locks", hold_way_why(explaining->holds, explaining->job, &way),
            at_work_us(explaining, way.first), g_strdup_printf("job %" ID " has ended", way.first),
            way.first);
}

/* --- its turn --- */

static void add_turn(struct explaining *explaining)
{
    const struct queue_context *context = context_of(explaining);
    guint running = queue_active(context->queue), most = context_slots(context);
    gint before = queue_place(explaining->job);
    if (running < most)
        return;
    add(explaining, "slots",
        g_strdup_printf("%u jobs are under way, and at most %u may be (max_running_jobs)", running,
                        most),
        explaining->ready_us,
        before > 0
            ? g_strdup_printf("one of them has ended for it, and for %d before it in line", before)
            : g_strdup("one of them has ended"),
        0);
}

json_t *holds_explain(struct holds *holds, struct queue_job *job)
{
    struct explaining explaining = {.holds = holds,
                                    .job = job,
                                    .record = context_record(holds->context, job->id),
                                    .list = json_array()};
    if (!explaining.record)
        return explaining.list;
    if (job->doom) {
        add(&explaining, "end", g_strdup(job->doom), 0,
            g_strdup("its end is on record: it will not run"), 0);
        return explaining.list;
    }
    add_dependencies(&explaining);
    add_rule(&explaining);
    add_limits(&explaining);
    add_locks(&explaining);
    add_turn(&explaining);
    return explaining.list;
}
