/* What luxid and the jobs do, compared with the model; see queue_sim.h. */
#include "queue_sim.h"

#include <stdio.h>
#include <string.h>

#include "core/job/job_state.h"

#define ID G_GUINT64_FORMAT
#define PATIENCE_MS (60 * 1000) /* then a job reserves its locks */
/* After a restart luxid settles what had been under way, in any order. */
#define SETTLED_MS 3000
/* By then the first of those who wait has surely been looked at: what it waited for has ended, or
 * gone on to its next opcode. */
#define CLAIMED_MS (60 * 1000)
#define LONGEST_CLAIM_MS (180 * 1000)

void jq_find(struct jq *jq, const char *format, ...)
{
    if (jq->problem)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    gint64 now = fake_now_ms(jq->world);
    jq->problem = g_strdup_printf("at %d.%03d s: %s", (int)(now / 1000), (int)(now % 1000), text);
}

void jq_tell(const struct jq *jq, const char *format, ...)
{
    if (!g_getenv("FETTLE_SIM_LOG"))
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    gint64 now = fake_now_ms(jq->world);
    printf("# %5d.%03d %s\n", (int)(now / 1000), (int)(now % 1000), text);
}

/* --- what might start --- */

bool jq_settled(const struct jq *jq)
{
    return jq->luxid_since && fake_now_ms(jq->world) >= jq->luxid_since + SETTLED_MS;
}

/* Since when a job may have waited for locks. Of one that was there before this luxid had settled
 * nobody has looked at what luxid saw first, and a rule may have held it when somebody did. */
static gint64 may_wait_since(const struct jq *jq, const struct qm_job *job)
{
    bool before = job->seen_ms <= jq->luxid_since + SETTLED_MS + 2 * JQ_SLOT_MS;
    return before ? MIN(job->stuck_ms, jq->luxid_since) : job->stuck_ms;
}

/* A job that has waited for long for locks may have reserved them; not while a rule pauses it. */
static bool excused(const struct jq *jq, const struct qm_job *job)
{
    for (guint i = 0; i < jq->model->queued->len; i++) {
        const struct qm_job *other = jq->model->queued->pdata[i];
        if (other->stuck_ms &&
            fake_now_ms(jq->world) - may_wait_since(jq, other) >= PATIENCE_MS - JQ_SLOT_MS &&
            qm_in_the_way(job, other) && !qm_paused(jq->model, other))
            return true;
    }
    return false;
}

/* Somebody who has waited for at least as long (as far as the model can tell) wants its locks. */
static bool is_behind(const struct jq *jq, const struct qm_job *job)
{
    for (guint i = 0; i < jq->model->queued->len; i++) {
        const struct qm_job *other = jq->model->queued->pdata[i];
        if (other->stuck_ms && other->stuck_ms <= job->stuck_ms + SETTLED_MS &&
            qm_in_the_way(job, other))
            return true;
    }
    return false;
}

/* Nobody passes a job that has been the first to wait for its locks for so long. */
static void check_claims(struct jq *jq, const struct qm_job *job)
{
    gint64 now = fake_now_ms(jq->world);
    if (jq->rough || !jq_settled(jq) || ((const struct qm_op *)job->ops->pdata[0])->urgent)
        return;
    for (guint i = 0; i < jq->model->queued->len; i++) {
        const struct qm_job *other = jq->model->queued->pdata[i];
        if (other->claim_ms > jq->luxid_since && now - other->claim_ms > CLAIMED_MS &&
            qm_in_the_way(job, other))
            jq_find(jq, "job %" ID " starts, and takes locks that job %" ID " waits for first",
                    job->id, other->id);
    }
}

/* Whoever was picked before fewer were allowed, runs. */
static guint most_slots(const struct jq *jq)
{
    return MAX(jq->model->slots, jq->slots_before);
}

/* The next in turn; in the first moments of a luxid, and where somebody may have reserved locks
 * (`passes`: that is so), anybody who may run is noted, and passed. */
static struct qm_job *note_first(struct jq *jq, bool passes)
{
    g_autoptr(GPtrArray) line = qm_line(jq->model);
    for (guint i = 0; i < line->len; i++) {
        struct qm_job *job = line->pdata[i];
        if (qm_judge(jq->model, job) != QM_READY)
            continue;
        g_hash_table_add(jq->could, g_memdup2(&job->id, sizeof job->id));
        if (jq_settled(jq) && (!passes || !excused(jq, job)))
            return job;
    }
    return NULL;
}

static void note_line(struct jq *jq, bool passes)
{
    g_autoptr(GPtrArray) picked = g_ptr_array_new();
    struct qm_job *job;
    while (!jq->rough && jq->luxid && jq->model->active->len < most_slots(jq) &&
           (job = note_first(jq, passes))) {
        qm_set_state(jq->model, job, QM_ACTIVE);
        g_ptr_array_add(picked, job);
    }
    for (guint i = 0; i < picked->len; i++)
        qm_unpick(jq->model, picked->pdata[i]);
}

/* The model has changed: who might be picked now, one after the other? Their starts are on record a
 * moment later, when more may have changed. Whoever may be passed may be picked as well, and then
 * fills limits. */
void jq_note(struct jq *jq)
{
    jq->news = true;
    note_line(jq, true);
    note_line(jq, false);
}

/* --- lines of state machines --- */

void jq_saw_move(const char *line, void *data)
{
    struct jq *jq = data;
    guint64 id;
    guint index;
    char from[16], to[16];
    jq_look(jq);
    jq_tell(jq, "%s", line);
    if (sscanf(line, "opcode %" G_GINT64_MODIFIER "u/%u: %15s -> %15s", &id, &index, from, to) != 4)
        return;
    struct qm_job *job = qm_find(jq->model, id);
    if (!job)
        return;
    unsigned state = JOB_ERROR;
    sm_parse(&job_op_sm, to, &state);
    guint at = index + (job_state_final((enum job_state)state) ? 1 : 0);
    bool moved = at != job->at;
    job->at = at;
    if (moved)
        jq_note(jq);
}

/* --- commits --- */

static const char *text_of(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));
    return text ? text : "";
}

/* The trail as submitted, and what luxid adds: which opcode of which job it is. */
static void check_reason(struct jq *jq, guint64 id, size_t at, const json_t *submitted,
                         const json_t *recorded)
{
    size_t before = json_array_size(submitted);
    const json_t *added = json_array_get(recorded, before);
    g_autofree char *text = g_strdup_printf("job=%" ID ";index=%zu", id, at);
    bool same = json_array_size(recorded) == before + 1 &&
                g_strcmp0(json_string_value(json_array_get(added, 1)), text) == 0;
    for (size_t i = 0; i < before; i++)
        same = same && json_equal(json_array_get(submitted, i), json_array_get(recorded, i));
    if (!same)
        jq_find(jq, "opcode %zu of job %" ID " has another reason trail than submitted", at, id);
}

/* What was submitted, with the ids of the jobs that it depends on and the reason trail as they are
 * on record. */
static json_t *submitted_ops(struct jq *jq, guint64 id, const json_t *record)
{
    const json_t *ops = json_object_get(record, "ops");
    const json_t *first = json_object_get(json_array_get(ops, 0), "input");
    json_t *wanted = g_hash_table_lookup(jq->pending, text_of(first, "comment"));
    json_t *result = json_array();
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *input = json_object_get(json_array_get(ops, i), "input");
        json_t *op = wanted ? json_deep_copy(json_array_get(wanted, i)) : json_deep_copy(input);
        if (json_object_get(input, "depends"))
            json_object_set(op, "depends", json_object_get(input, "depends"));
        if (wanted)
            check_reason(jq, id, i, json_object_get(op, "reason"),
                         json_object_get(input, "reason"));
        json_object_set(op, "reason", json_object_get(input, "reason"));
        json_array_append_new(result, op);
    }
    if (!wanted)
        jq->counts->children++;
    else if (json_array_size(wanted) != json_array_size(ops))
        jq_find(jq, "a job has %zu opcodes, %zu were submitted", json_array_size(ops),
                json_array_size(wanted));
    return result;
}

/* The same request is the same job (SAF-31). */
static void check_request(struct jq *jq, guint64 id, const char *request)
{
    const guint64 *other = g_hash_table_lookup(jq->requests, request);
    if (other)
        jq_find(jq, "job %" ID " and job %" ID " have one request id", *other, id);
    else if (*request)
        g_hash_table_insert(jq->requests, g_strdup(request), g_memdup2(&id, sizeof id));
}

static void check_start(struct jq *jq, const struct qm_job *job);

/* It is submitted as started. Others whose turn it is may be queued yet: their starts stand behind
 * it in the same transaction. */
static void saw_started(struct jq *jq, struct qm_job *job)
{
    check_start(jq, job);
    qm_set_state(jq->model, job, QM_ACTIVE);
    jq->counts->at_once++;
    jq_note(jq);
}

static void saw_new(struct jq *jq, guint64 id, const json_t *record)
{
    bool started = json_is_true(json_object_get(record, "started"));
    json_autoptr ops = submitted_ops(jq, id, record);
    if (id <= jq->model->newest)
        jq_find(jq, "id %" ID " is given out after %" ID, id, jq->model->newest);
    if (strcmp(text_of(record, "status"), started ? "waiting" : "queued") != 0)
        jq_find(jq, "job %" ID " begins as %s", id, text_of(record, "status"));
    check_request(jq, id, text_of(record, "request_id"));
    g_autofree char *text = json_to_text(ops);
    jq_tell(jq, "new: job %" ID " %s", id, text);
    struct qm_job *job =
        qm_add(jq->model, id, (guint64)json_integer_value(json_object_get(record, "received_us")),
               text_of(record, "user"), ops);
    job->seen_ms = fake_now_ms(jq->world);
    jq->counts->jobs++;
    jq_note(jq);
    if (started)
        saw_started(jq, job);
}

static void tell_line(const struct jq *jq)
{
    g_autoptr(GPtrArray) line = qm_line(jq->model);
    for (guint i = 0; i < line->len; i++) {
        const struct qm_job *job = line->pdata[i];
        jq_tell(jq, "in line: job %" ID ", %s%s", job->id,
                qm_verdict_text(qm_judge(jq->model, job)),
                excused(jq, job) ? ", may be passed" : "");
    }
}

static void check_start(struct jq *jq, const struct qm_job *job)
{
    enum qm_verdict verdict = qm_judge(jq->model, job);
    if (verdict == QM_UNMET || verdict == QM_DOOMED)
        jq_find(jq, "job %" ID " starts, and %s", job->id, qm_verdict_text(verdict));
    if (jq->model->active->len >= most_slots(jq))
        jq_find(jq, "job %" ID " starts beside %u others; at most %u may run", job->id,
                jq->model->active->len, jq->model->slots);
    check_claims(jq, job);
    if (jq->rough || g_hash_table_contains(jq->could, &job->id))
        return;
    /* How far jobs had come that a lost master ran, nobody knows any more. */
    if (verdict == QM_LOCKED && !jq_settled(jq))
        return;
    tell_line(jq);
    jq_find(jq, "job %" ID " starts out of turn: it is %s", job->id, qm_verdict_text(verdict));
}

static void check_end(struct jq *jq, const struct qm_job *job, enum qm_state state,
                      const json_t *record)
{
    guint may = job->may_end | (job->state == QM_QUEUED ? qm_doom(jq->model, job) : 0);
    if (job->state == QM_QUEUED)
        may &= ~QM_SET(QM_SUCCESS);
    if (may & QM_SET(state))
        return;
    json_autoptr results = json_array();
    for (size_t i = 0; i < json_array_size(json_object_get(record, "ops")); i++)
        json_array_append(
            results, json_object_get(json_array_get(json_object_get(record, "ops"), i), "result"));
    g_autofree char *text = json_to_text(results);
    jq_find(jq, "job %" ID " ends as %s, which was %s: %s", job->id,
            sm_name(&job_sm, JOB_CANCELED + state - QM_CANCELED),
            job->state == QM_QUEUED ? "queued" : "under way", text);
}

static enum qm_state state_of(const json_t *record)
{
    const char *status = text_of(record, "status");
    return !strcmp(status, "success")                         ? QM_SUCCESS
           : !strcmp(status, "error")                         ? QM_ERROR
           : !strcmp(status, "canceled")                      ? QM_CANCELED
           : json_is_true(json_object_get(record, "started")) ? QM_ACTIVE
                                                              : QM_QUEUED;
}

/* A wish for another priority is on record before it is answered, and what follows from it may be
 * too. */
static void saw_priority(struct jq *jq, struct qm_job *job, const json_t *record)
{
    if (!job->wished)
        return;
    const json_t *op = json_array_get(json_object_get(record, "ops"), job->at);
    const json_t *input = json_object_get(op, "input");
    if (json_integer_value(json_object_get(input, "priority")) != *job->wished)
        return;
    qm_set_priority(job, *job->wished);
    jq_note(jq);
}

static void saw_job(struct jq *jq, const struct change *change)
{
    guint64 id = g_ascii_strtoull(change->key, NULL, 10);
    struct qm_job *job = qm_find(jq->model, id);
    jq_recorded(jq, id, change->object);
    if (!change->object) {
        jq->archiving = true;
        jq_saw_archived(jq, id);
        return;
    }
    if (!job) {
        saw_new(jq, id, change->object);
        return;
    }
    enum qm_state state = state_of(change->object);
    saw_priority(jq, job, change->object);
    if (state == job->state)
        return;
    if (qm_final(job->state) || state == QM_QUEUED) {
        jq_find(jq, "job %" ID " goes back from state %d to %d", id, job->state, state);
        return;
    }
    if (state == QM_ACTIVE)
        check_start(jq, job);
    else
        check_end(jq, job, state, change->object);
    job->locked_ms = 0;
    if (qm_final(state) && job->state == QM_ACTIVE) {
        /* Its process is there for a moment yet, and takes its place. */
        qm_linger(job, state);
        jq_note(jq);
    }
    qm_set_state(jq->model, job, state);
    jq_note(jq);
}

static void saw(struct jq *jq, const struct change *change)
{
    g_autofree char *text = g_str_equal(change->kind, "job") ? NULL
                            : change->object                 ? json_to_text(change->object)
                                                             : NULL;
    jq_tell(jq, "commit: %s %s %s", change->kind, change->key, text ? text : "");
    if (!strcmp(change->kind, "job")) {
        saw_job(jq, change);
        return;
    }
    if (!strcmp(change->kind, "job_filter"))
        qm_set_rule(jq->model, change->key, change->op == CHANGE_PUT ? change->object : NULL);
    else if (!strcmp(change->kind, "cluster"))
        jq->model->slots =
            (guint)json_integer_value(json_object_get(change->object, "max_running_jobs"));
    else if (!strcmp(change->kind, "switches"))
        jq->model->drained = json_is_true(json_object_get(change->object, "drained"));
    else
        return;
    jq_note(jq);
}

static void drop_change(void *change)
{
    change_free(change);
}

void jq_look(struct jq *jq)
{
    g_autoptr(GPtrArray) changes = NULL;
    guint64 serial = fake_engine_serial(jq->engine);
    if (serial == jq->seen)
        return;
    changes = g_ptr_array_new_with_free_func(drop_change);
    fake_engine_changes(jq->engine, jq->seen, changes);
    jq->seen = serial;
    for (guint i = 0; i < changes->len; i++)
        saw(jq, changes->pdata[i]);
    if (jq->archiving)
        jq_check_archived(jq);
    jq->archiving = false;
}

/* --- after a slot --- */

/* Since when it may be stuck that is seen to be so now: nothing is compared before a new luxid has
 * settled. */
static gint64 stuck_since(const struct jq *jq)
{
    gint64 now = fake_now_ms(jq->world);
    return now < jq->luxid_since + SETTLED_MS + 2 * JQ_SLOT_MS ? jq->luxid_since : now;
}

/* It has been locked out for long. */
static void note_claim(struct jq *jq, struct qm_job *job)
{
    gint64 now = fake_now_ms(jq->world), since = MAX(job->locked_ms, jq->luxid_since);
    bool first = now - since > PATIENCE_MS + SETTLED_MS && !is_behind(jq, job);
    jq->counts->claims += first && !job->claim_ms;
    job->claim_ms = !first ? 0 : job->claim_ms ? job->claim_ms : now;
    if (first && now - job->claim_ms > LONGEST_CLAIM_MS)
        jq_find(jq, "job %" ID " starves: it has waited for %d s, and nobody for longer", job->id,
                (int)(now - since) / 1000);
}

static void compare_line(struct jq *jq)
{
    g_autoptr(GPtrArray) line = qm_line(jq->model);
    gint64 now = fake_now_ms(jq->world);
    for (guint i = 0; i < line->len; i++) {
        struct qm_job *job = line->pdata[i];
        enum qm_verdict verdict = qm_judge(jq->model, job);
        bool free = jq->model->active->len < jq->model->slots;
        if (verdict == QM_DOOMED || verdict == QM_REJECTED)
            jq_find(jq, "job %" ID " is queued, and %s", job->id, qm_verdict_text(verdict));
        if (verdict == QM_READY && free && !excused(jq, job))
            jq_find(jq, "job %" ID " could run, and does not: %u of %u run", job->id,
                    jq->model->active->len, jq->model->slots);
        job->locked_ms = verdict != QM_LOCKED || !free ? 0 : job->locked_ms ? job->locked_ms : now;
        if (verdict == QM_LOCKED && !job->stuck_ms)
            job->stuck_ms = stuck_since(jq);
        if (verdict != QM_READY && verdict != QM_UNMET)
            jq->counts->held++;
        if (verdict == QM_LIMITED)
            jq->counts->limited++;
        if (!job->locked_ms) {
            job->claim_ms = 0;
            continue;
        }
        jq->counts->worst_stuck_s =
            MAX(jq->counts->worst_stuck_s, (guint64)(now - job->locked_ms) / 1000);
        note_claim(jq, job);
    }
}

static bool same_state(const char *status, const struct qm_job *job)
{
    switch (job->state) {
    case QM_QUEUED:
        return !strcmp(status, "queued");
    case QM_ACTIVE:
        return !strcmp(status, "waiting") || !strcmp(status, "running") ||
               (job->asked && !strcmp(status, "canceling"));
    case QM_CANCELED:
        return !strcmp(status, "canceled");
    case QM_SUCCESS:
        return !strcmp(status, "success");
    case QM_ERROR:
        return !strcmp(status, "error");
    }
    return false;
}

static gboolean count_archived(gpointer key, gpointer value, gpointer count)
{
    *(guint *)count += ((const struct qm_job *)value)->archived;
    return FALSE;
}

/* Jobs that have been accepted, and are not archived. */
static guint on_record(const struct jq *jq)
{
    guint archived = 0;
    g_tree_foreach(jq->model->jobs, count_archived, &archived);
    return (guint)g_tree_nnodes(jq->model->jobs) - archived;
}

/* What clients see of all jobs. */
static void compare_answers(struct jq *jq)
{
    g_autoptr(GError) error = NULL;
    json_autoptr rows =
        jq_call(jq, "QueryJobs", json_make("[n, [ssss]]", "id", "status", "opstatus", "oppriority"),
                &error);
    if (!rows) {
        jq_find(jq, "QueryJobs: %s", error->message);
        return;
    }
    jq->counts->compared++;
    if (json_array_size(rows) != on_record(jq))
        jq_find(jq, "%zu jobs are answered, %u are on record", json_array_size(rows),
                on_record(jq));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        guint64 id = (guint64)json_integer_value(json_array_get(row, 0));
        const char *status = json_string_value(json_array_get(row, 1));
        const struct qm_job *job = qm_find(jq->model, id);
        if (!job || !same_state(status, job))
            jq_find(jq, "job %" ID " is answered as %s", id, status);
        jq_compare_job(jq, id, row);
    }
}

void jq_compare(struct jq *jq)
{
    if (jq->rough || !jq_settled(jq))
        return;
    if (jq->news) {
        compare_line(jq);
        if (jq_random(jq, 4) == 0)
            compare_answers(jq);
    }
    g_hash_table_remove_all(jq->could);
    jq->slots_before = jq->model->slots;
    jq_note(jq);
    jq->news = false;
}

/* --- at the end --- */

static gboolean check_ended(gpointer key, gpointer value, gpointer data)
{
    const struct qm_job *job = value;
    struct jq *jq = data;
    g_autofree char *name = g_strdup_printf("job-%" ID, job->id);
    if (!qm_final(job->state))
        jq_find(jq, "job %" ID " has not ended: it is %s", job->id,
                job->state == QM_ACTIVE ? "under way" : qm_verdict_text(qm_judge(jq->model, job)));
    if (fake_file(jq->world, jq->master, FILE_QUEUE, name))
        jq_find(jq, "%s is left over", name);
    return FALSE;
}

void jq_compare_end(struct jq *jq)
{
    g_autoptr(GError) error = NULL;
    json_autoptr locks =
        fake_call(jq->luxid, jq->master, ROLE_WCONFD, "list_all_locks", json_object(), &error);
    g_autoptr(GPtrArray) livelocks = jq->luxid->ops->livelock_list(jq->luxid);
    g_tree_foreach(jq->model->jobs, check_ended, jq);
    compare_answers(jq);
    if (!locks || json_array_size(json_object_get(locks, "locks")) > 0)
        jq_find(jq, "%zu locks are left", json_array_size(json_object_get(locks, "locks")));
    for (guint i = 0; i < livelocks->len; i++)
        if (g_str_has_prefix(livelocks->pdata[i], "job-"))
            jq_find(jq, "lock file %s is left", (const char *)livelocks->pdata[i]);
    if (jq->processes->len > 0)
        jq_find(jq, "%u processes are left", jq->processes->len);
}
