/* See hold.h. */
#include "core/queue/hold_private.h"

#include "core/locks/locks.h"
#include "core/ops/predict_locks.h"

#define KEY_JOB "job "
#define LOCKS_NAMED 3 /* of those that keep a job from its turn */

static void runner_free(gpointer data)
{
    struct runner *runner = data;
    g_ptr_array_unref(runner->limits);
    g_free(runner);
}

static void free_ids(gpointer ids)
{
    g_array_unref(ids);
}

struct holds *holds_new(struct queue_context *context)
{
    struct holds *holds = g_new0(struct holds, 1);
    holds->context = context;
    holds->locks = locks_new(NULL, NULL);
    holds->reserved = locks_new(NULL, NULL);
    holds->runners = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, runner_free);
    holds->counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    holds->aside = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_ids);
    holds->reserving = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    return holds;
}

void holds_free(struct holds *holds)
{
    if (!holds)
        return;
    g_hash_table_unref(holds->reserving);
    g_hash_table_unref(holds->aside);
    g_hash_table_unref(holds->counts);
    g_hash_table_unref(holds->runners);
    locks_free(holds->reserved);
    locks_free(holds->locks);
    rules_free(holds->rules);
    g_free(holds);
}

/* --- set aside --- */

void hold_set_aside(struct holds *holds, struct queue_job *job, char *key, char *why)
{
    GArray *ids = g_hash_table_lookup(holds->aside, key);
    if (!ids) {
        ids = g_array_new(FALSE, FALSE, sizeof(guint64));
        g_hash_table_insert(holds->aside, g_strdup(key), ids);
    }
    g_array_append_val(ids, job->id);
    if (job->held_at_us == 0)
        job->held_at_us = (gint64)context_now_us(holds->context);
    queue_set_held(holds->context->queue, job, why);
    g_free(key);
}

static void let_go(struct holds *holds, const GArray *ids)
{
    for (guint i = 0; i < ids->len; i++) {
        struct queue_job *job = queue_find(holds->context->queue, g_array_index(ids, guint64, i));
        if (job)
            queue_set_held(holds->context->queue, job, NULL);
    }
}

void hold_release(struct holds *holds, const char *key)
{
    void *stored, *ids;
    if (!g_hash_table_steal_extended(holds->aside, key, &stored, &ids))
        return;
    let_go(holds, ids);
    g_array_unref(ids);
    g_free(stored);
}

static void release_all(struct holds *holds)
{
    g_autoptr(GHashTable) aside = holds->aside;
    holds->aside = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_ids);
    GHashTableIter iter;
    void *ids;
    g_hash_table_iter_init(&iter, aside);
    while (g_hash_table_iter_next(&iter, NULL, &ids))
        let_go(holds, ids);
}

static char *job_key(guint64 id)
{
    return g_strdup_printf(KEY_JOB "%" G_GUINT64_FORMAT, id);
}

/* --- locks --- */

static void drop_events(struct locks *locks)
{
    g_ptr_array_unref(locks_take_events(locks));
}

/* As owner of locks; valid as long as `text` is. */
static struct owner owner_of(guint64 id, char text[24])
{
    static char no_file[] = "";
    g_snprintf(text, 24, "%" G_GUINT64_FORMAT, id);
    return (struct owner){.job = text, .livelock = no_file};
}

static void give(struct locks *locks, guint64 id, const GPtrArray *requests)
{
    char text[24];
    struct owner owner = owner_of(id, text);
    for (guint i = 0; requests && i < requests->len; i++) {
        const struct lock_request *request = requests->pdata[i];
        locks_restore(locks, &owner, request->name, request->mode, 0);
    }
    drop_events(locks);
}

static void take_back(struct locks *locks, guint64 id)
{
    char text[24];
    struct owner owner = owner_of(id, text);
    locks_free_owner(locks, &owner);
    drop_events(locks);
}

/* Its first opcode that has not ended; the number of opcodes if there is none. */
static guint present_op(const struct job *job)
{
    guint at = 0;
    while (at < job->ops->len && job_state_final(job_op_state(job->ops->pdata[at])))
        at++;
    return at;
}

static GPtrArray *predict(struct holds *holds, const struct job *job, guint at)
{
    if (at >= job->ops->len)
        return NULL;
    return predict_locks(holds->context->env, holds->context->follow,
                         ((const struct job_op *)job->ops->pdata[at])->input);
}

/* What a queued job will ask for first; NULL: cannot be told. Borrowed. */
static const GPtrArray *wanted_locks(struct holds *holds, struct queue_job *job)
{
    const struct job *record = context_record(holds->context, job->id);
    if (job->locks_age == holds->age + 1)
        return job->locks;
    if (job->locks)
        g_ptr_array_unref(job->locks);
    job->locks = record ? predict(holds, record, present_op(record)) : NULL;
    job->locks_age = holds->age + 1;
    return job->locks;
}

/* Who would have to end first; 0: nobody. */
static guint64 blocker(struct locks *locks, guint64 id, const GPtrArray *wanted)
{
    char text[24];
    struct owner owner = owner_of(id, text);
    record_autoptr(update_locks_result) result = locks_explain(locks, &owner, wanted, NULL);
    const struct owner *first =
        result->blockers && result->blockers->len > 0 ? result->blockers->pdata[0] : NULL;
    return first ? g_ascii_strtoull(first->job, NULL, 10) : 0;
}

static bool keeps(struct locks *locks, guint64 id, guint64 other, struct lock_request *request)
{
    char text[24], other_text[24];
    struct owner owner = owner_of(id, text), keeper = owner_of(other, other_text);
    g_autoptr(GPtrArray) alone = g_ptr_array_new();
    bool found = false;
    g_ptr_array_add(alone, request);
    record_autoptr(update_locks_result) result = locks_explain(locks, &owner, alone, NULL);
    for (guint i = 0; result->blockers && i < result->blockers->len; i++)
        found = found ||
                g_str_equal(((const struct owner *)result->blockers->pdata[i])->job, keeper.job);
    return found;
}

/* Which of them that job keeps, for people: "instance/web1 (exclusive)". */
static char *describe_kept(struct locks *locks, guint64 id, guint64 first, const GPtrArray *wanted)
{
    GString *text = g_string_new(NULL);
    guint kept = 0;
    for (guint i = 0; i < wanted->len && kept <= LOCKS_NAMED; i++) {
        struct lock_request *request = wanted->pdata[i];
        if (keeps(locks, id, first, request) && kept++ < LOCKS_NAMED)
            g_string_append_printf(text, "%s%s (%s)", kept > 1 ? ", " : "", request->name,
                                   enum_word(&lock_mode_words, (int)request->mode));
    }
    if (kept > LOCKS_NAMED)
        g_string_append(text, " …");
    return g_string_free(text, FALSE);
}

/* What is to go before all others stands in line at once. */
static bool is_urgent(const struct holds *holds, const struct queue_job *job)
{
    const struct job *record = context_record(holds->context, job->id);
    const struct job_op *op = record ? record->ops->pdata[0] : NULL;
    return op && predict_locks_urgent(op->input);
}

static struct hold_way way_to(struct holds *holds, guint64 id, const GPtrArray *wanted)
{
    struct hold_way way = {.wanted = wanted};
    if (!wanted || wanted->len == 0)
        return way;
    guint64 runs = blocker(holds->locks, id, wanted);
    way.runs = runs != 0;
    way.first = way.runs ? runs : blocker(holds->reserved, id, wanted);
    return way;
}

struct hold_way hold_way(struct holds *holds, struct queue_job *job)
{
    return way_to(holds, job->id, is_urgent(holds, job) ? NULL : wanted_locks(holds, job));
}

char *hold_way_why(struct holds *holds, const struct queue_job *job, const struct hold_way *way)
{
    g_autofree char *kept =
        describe_kept(way->runs ? holds->locks : holds->reserved, job->id, way->first, way->wanted);
    return g_strdup_printf("it would wait for locks that job %" G_GUINT64_FORMAT " %s: %s",
                           way->first, way->runs ? "has or waits for" : "is to have first", kept);
}

static void stop_reserving(struct holds *holds, guint64 id)
{
    g_autofree char *key = job_key(id);
    take_back(holds->reserved, id);
    hold_release(holds, key);
}

/* Whoever has been set aside for longer goes first. */
static bool is_before(const struct queue_job *job, const struct queue_job *other)
{
    return job->held_since_ms != other->held_since_ms ? job->held_since_ms < other->held_since_ms
                                                      : job->id < other->id;
}

/* Takes back the reservations in its way; false if one is of a job that goes first. */
static bool outrank(struct holds *holds, const struct queue_job *job, const GPtrArray *wanted)
{
    char text[24];
    struct owner owner = owner_of(job->id, text);
    record_autoptr(update_locks_result) result =
        locks_explain(holds->reserved, &owner, wanted, NULL);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (guint i = 0; result->blockers && i < result->blockers->len; i++) {
        const struct owner *blocking = result->blockers->pdata[i];
        guint64 id = g_ascii_strtoull(blocking->job, NULL, 10);
        const struct queue_job *other = queue_find(holds->context->queue, id);
        if (other && !is_before(job, other))
            return false;
        g_array_append_val(ids, id);
    }
    for (guint i = 0; i < ids->len; i++) {
        g_hash_table_remove(holds->reserving, &g_array_index(ids, guint64, i));
        stop_reserving(holds, g_array_index(ids, guint64, i));
    }
    return true;
}

/* Whether its locks are its own from now on, as soon as nobody has them who runs. */
static bool reserve_if_due(struct holds *holds, struct queue_job *job, const GPtrArray *wanted)
{
    gint64 now = holds->context->env->ops->boot_ms(holds->context->env);
    if (job->held_since_ms == 0)
        job->held_since_ms = now;
    if (g_hash_table_contains(holds->reserving, &job->id))
        return true;
    if (now - job->held_since_ms < LIMIT_HOLD_PATIENCE_S * 1000 || !outrank(holds, job, wanted))
        return false;
    g_hash_table_add(holds->reserving, g_memdup2(&job->id, sizeof(job->id)));
    give(holds->reserved, job->id, wanted);
    return true;
}

static gboolean end_idle(gpointer id, gpointer value, gpointer data)
{
    struct holds *holds = data;
    const struct queue_job *job = queue_find(holds->context->queue, *(guint64 *)id);
    bool over = !job || job->phase != JOB_PHASE_QUEUED;
    if (over)
        stop_reserving(holds, *(guint64 *)id);
    return over;
}

static bool locks_allow(struct holds *holds, struct queue_job *job)
{
    struct hold_way way = hold_way(holds, job);
    if (way.first == 0 || (reserve_if_due(holds, job, way.wanted) && !way.runs))
        return true;
    hold_set_aside(holds, job, job_key(way.first), hold_way_why(holds, job, &way));
    job->held_by = way.first;
    return false;
}

/* --- who runs --- */

static struct runner *add_runner(struct holds *holds, guint64 id, const struct job *record)
{
    struct runner *runner = g_new0(struct runner, 1);
    runner->id = id;
    runner->at = present_op(record);
    g_autoptr(GPtrArray) locks = predict(holds, record, runner->at);
    give(holds->locks, id, locks);
    hold_count(holds, runner, context_record(holds->context, id));
    g_hash_table_insert(holds->runners, &runner->id, runner);
    return runner;
}

static void free_locks_of(struct holds *holds, guint64 id)
{
    g_autofree char *key = job_key(id);
    take_back(holds->locks, id);
    hold_release(holds, key);
}

static void runner_ended(struct holds *holds, struct runner *runner)
{
    free_locks_of(holds, runner->id);
    hold_count(holds, runner, NULL);
}

static void look_at(struct holds *holds, guint64 id)
{
    struct runner *runner = g_hash_table_lookup(holds->runners, &id);
    const struct job *view = context_view(holds->context, id);
    if (!view)
        return;
    if (!runner)
        runner = add_runner(holds, id, view);
    runner->seen = true;
    guint at = present_op(view);
    if (at == runner->at)
        return;
    runner->at = at;
    g_autoptr(GPtrArray) locks = predict(holds, view, at);
    free_locks_of(holds, id);
    give(holds->locks, id, locks);
}

static gboolean end_unseen(gpointer id, gpointer value, gpointer data)
{
    struct runner *runner = value;
    bool over = !runner->seen;
    runner->seen = false;
    if (over)
        runner_ended(data, runner);
    return over;
}

void holds_look(struct holds *holds)
{
    g_autoptr(GArray) active = queue_active_ids(holds->context->queue);
    for (guint i = 0; i < active->len; i++)
        look_at(holds, g_array_index(active, guint64, i));
    g_hash_table_foreach_remove(holds->runners, end_unseen, holds);
    g_hash_table_foreach_remove(holds->reserving, end_idle, holds);
}

bool holds_allow(struct holds *holds, struct queue_job *job)
{
    const struct job *record = context_record(holds->context, job->id);
    if (!record)
        return true;
    if (hold_limits_allow(holds, job, record))
        return locks_allow(holds, job);
    /* Nobody waits for a job that a rule may hold for days. */
    if (g_hash_table_remove(holds->reserving, &job->id))
        stop_reserving(holds, job->id);
    return false;
}

bool holds_allow_new(struct holds *holds, const struct job *job)
{
    holds_look(holds);
    if (!hold_limits_allow_new(holds, job))
        return false;
    if (predict_locks_urgent(((const struct job_op *)job->ops->pdata[0])->input))
        return true;
    g_autoptr(GPtrArray) wanted = predict(holds, job, present_op(job));
    return way_to(holds, job->id, wanted).first == 0;
}

void holds_started(struct holds *holds, struct queue_job *job)
{
    const struct job *record = context_record(holds->context, job->id);
    if (g_hash_table_remove(holds->reserving, &job->id))
        stop_reserving(holds, job->id);
    if (record && !g_hash_table_contains(holds->runners, &job->id))
        add_runner(holds, job->id, record);
}

/* --- changes --- */

static void end_if_rejected(struct holds *holds, guint64 id)
{
    struct queue_job *job = queue_find(holds->context->queue, id);
    const struct job *record = context_record(holds->context, id);
    if (!job || !record || job->phase != JOB_PHASE_QUEUED)
        return;
    const struct rule *rule = holds_rejected(holds, record);
    if (!rule)
        return;
    g_autofree char *name = holds_rule_name(rule);
    queue_doom(holds->context->queue, job, JOB_CANCELED, g_strdup_printf("%s rejects it", name));
}

/* Those that run count under the rules that are. */
static void count_anew(struct holds *holds)
{
    GHashTableIter iter;
    void *runner;
    g_hash_table_iter_init(&iter, holds->runners);
    while (g_hash_table_iter_next(&iter, NULL, &runner))
        hold_count(holds, runner, context_record(holds->context, ((struct runner *)runner)->id));
}

void holds_rules_stale(struct holds *holds)
{
    g_clear_pointer(&holds->rules, rules_free);
}

void holds_rules_changed(struct holds *holds)
{
    g_autoptr(GArray) ids = queue_ids(holds->context->queue);
    holds_rules_stale(holds);
    count_anew(holds);
    release_all(holds);
    for (guint i = 0; rules_count(hold_rules(holds)) > 0 && i < ids->len; i++)
        end_if_rejected(holds, g_array_index(ids, guint64, i));
}

void holds_job_changed(struct holds *holds, struct queue_job *job)
{
    struct runner *runner = g_hash_table_lookup(holds->runners, &job->id);
    queue_set_held(holds->context->queue, job, NULL);
    end_if_rejected(holds, job->id);
    if (runner)
        hold_count(holds, runner, context_record(holds->context, job->id));
}

void holds_objects_changed(struct holds *holds)
{
    holds->age++;
}

const struct rule *holds_rejected(const struct holds *holds, const struct job *job)
{
    const struct rule *rule = rules_judge(hold_rules((struct holds *)holds), job);
    return rule && rule->action == RULE_REJECT ? rule : NULL;
}
