/* Calls that meet: several are under way at once, while the store stands still now and then; see
 * queue_sim.h. */
#include "queue_sim.h"

#include <string.h>

#define ID G_GUINT64_FORMAT
#define MOST_CALLS 4
#define ANSWERED_MS 200 /* within a slot: transactions that are refused are made anew */
#define RECENT 12       /* requests that are asked again */

enum kind { CALL_JOB, CALL_CANCEL, CALL_PRIORITY, CALL_RULE, CALL_DRAIN, CALL_ARCHIVE, CALL_OLD };
enum expected { MAY_BE, YES, NO };

struct call {
    struct fake_reply reply;
    enum kind kind;
    enum expected expected;
    struct qm_job *job; /* that is canceled … */
    guint64 id;         /* of a submission: the job that it must be; 0: nobody can tell */
    json_t *ops;
    gint64 priority;
    GPtrArray *rules; /* where the new one's UUID goes, or the old one's is taken from */
    char *rule;       /* that is to go */
};

struct meeting {
    struct jq *jq;
    GPtrArray *rules;
    enum kind kinds[MOST_CALLS];
    struct call *calls[MOST_CALLS];
    guint count, started;
    guint64 next;     /* id */
    bool unsure_next; /* of the id */
};

static void call_free(void *data)
{
    struct call *call = data;
    fake_reply_clear(&call->reply);
    json_decref(call->ops);
    g_free(call->rule);
    g_free(call);
}

GPtrArray *jq_calls_new(void)
{
    return g_ptr_array_new_with_free_func(call_free);
}

/* --- what is expected --- */

static bool any(const struct meeting *meeting, enum kind kind)
{
    for (guint i = 0; i < meeting->count; i++)
        if (meeting->kinds[i] == kind)
            return true;
    return false;
}

/* Another call may end queued jobs, or start them. */
static bool stirred(const struct meeting *meeting)
{
    return any(meeting, CALL_RULE) || any(meeting, CALL_CANCEL) ||
           (any(meeting, CALL_PRIORITY) && meeting->jq->model->rules->len > 0);
}

static const char *request_of(const json_t *ops)
{
    const char *text = json_string_value(json_object_get(json_array_get(ops, 0), "request_id"));
    return text ? text : "";
}

static guint64 known_request(const struct jq *jq, const json_t *ops)
{
    const guint64 *id = g_hash_table_lookup(jq->requests, request_of(ops));
    return id ? *id : 0;
}

static const struct call *same_request(const struct meeting *meeting, const json_t *ops)
{
    for (guint i = 0; *request_of(ops) && i < meeting->started; i++) {
        const struct call *call = meeting->calls[i];
        if (call->ops && !strcmp(request_of(call->ops), request_of(ops)) && call->expected != NO)
            return call;
    }
    return NULL;
}

static enum expected expect_new(struct meeting *meeting, const json_t *ops, bool anyway)
{
    const struct jq *jq = meeting->jq;
    bool depends = json_array_size(json_object_get(json_array_get(ops, 0), "depends")) > 0;
    if (!anyway && any(meeting, CALL_DRAIN))
        return MAY_BE;
    if (qm_lacks(jq->model, ops) || (!anyway && jq->model->drained))
        return NO;
    if (any(meeting, CALL_RULE) ||
        (depends && (any(meeting, CALL_ARCHIVE) || any(meeting, CALL_OLD))))
        return MAY_BE;
    if (meeting->unsure_next)
        return jq->model->rules->len > 0 ? MAY_BE : YES;
    return qm_refuses(jq->model, meeting->next, jq->user, ops) ? NO : YES;
}

static void expect_job(struct meeting *meeting, struct call *call, bool anyway, bool other)
{
    const struct jq *jq = meeting->jq;
    guint64 known = known_request(jq, call->ops);
    const struct call *before = same_request(meeting, call->ops);
    if (known || before) {
        call->expected = other ? NO : known ? YES : before->expected;
        call->id = known ? known : before->id;
        return;
    }
    call->expected = expect_new(meeting, call->ops, anyway);
    if (call->expected == YES && !meeting->unsure_next)
        call->id = meeting->next++;
    meeting->unsure_next = meeting->unsure_next || call->expected == MAY_BE;
}

/* An earlier call that cancels the job. */
static const struct call *canceled_before(const struct meeting *meeting, const struct qm_job *job)
{
    for (guint i = 0; i < meeting->started; i++)
        if (meeting->kinds[i] == CALL_CANCEL && meeting->calls[i]->job == job)
            return meeting->calls[i];
    return NULL;
}

static enum expected expect_verb(const struct meeting *meeting, const struct qm_job *job)
{
    const struct call *cancel = canceled_before(meeting, job);
    bool queued = job->state == QM_QUEUED;
    if (qm_final(job->state))
        return NO;
    if (cancel)
        return queued && cancel->expected == YES ? NO : MAY_BE;
    for (guint i = 0; queued && i < meeting->started; i++)
        if (meeting->kinds[i] == CALL_CANCEL ||
            (meeting->kinds[i] == CALL_PRIORITY && meeting->jq->model->rules->len > 0))
            return MAY_BE;
    return queued && any(meeting, CALL_RULE) ? MAY_BE : YES;
}

static enum expected expect_archived(const struct meeting *meeting, const struct qm_job *job)
{
    if (job->archived)
        return YES;
    if (!qm_final(job->state) || qm_is_wanted(meeting->jq->model, job->id))
        return stirred(meeting) ? MAY_BE : NO;
    return any(meeting, CALL_JOB) || any(meeting, CALL_OLD) ? MAY_BE : YES;
}

/* --- the calls --- */

/* Who knows what comes first; only that a request is the same job lasts. */
static void expect_little(const struct jq *jq, struct call *call)
{
    guint64 known = call->ops ? known_request(jq, call->ops) : 0;
    call->expected = known && call->expected == NO ? NO : MAY_BE;
    call->id = known;
}

static void start(struct meeting *meeting, struct call *call, const char *method, json_t *args)
{
    struct jq *jq = meeting->jq;
    g_autofree char *text = json_to_text(args);
    if (jq->rough || !jq_settled(jq))
        expect_little(jq, call);
    jq_tell(jq, "together: %s %s, expected: %d", method, text, (int)call->expected);
    jq->counts->together++;
    fake_call_start(jq->client, 0, jq->master, ROLE_LUXID, method, args, &call->reply);
}

/* One that was asked before; NULL: there is none. */
static json_t *draw_again(struct jq *jq)
{
    guint count = MIN(jq->asked->len, RECENT);
    return count > 0 ? json_deep_copy(jq->asked->pdata[jq->asked->len - 1 - jq_random(jq, count)])
                     : NULL;
}

static json_t *draw_with_request(struct jq *jq)
{
    json_t *ops = jq_draw_job(jq, 0), *first = json_array_get(ops, 0);
    json_object_set(first, "request_id", json_object_get(first, "comment"));
    g_ptr_array_add(jq->asked, json_deep_copy(ops));
    return ops;
}

static void start_job(struct meeting *meeting, struct call *call)
{
    struct jq *jq = meeting->jq;
    bool anyway = jq_random(jq, 4) == 0, other = false;
    if (jq_random(jq, 2) == 0)
        call->ops = draw_again(jq);
    if (call->ops) {
        jq->counts->again++;
        other = jq_random(jq, 6) == 0 && known_request(jq, call->ops);
    } else {
        call->ops = jq_random(jq, 2) ? draw_with_request(jq) : jq_draw_job(jq, 0);
    }
    if (other)
        json_object_set_new(json_array_get(call->ops, 0), "debug_level", json_integer(1));
    else
        jq_keep(jq, call->ops);
    expect_job(meeting, call, anyway, other);
    start(meeting, call, anyway ? "SubmitJobToDrainedQueue" : "SubmitJob",
          json_make("[O]", call->ops));
}

static void start_cancel(struct meeting *meeting, struct call *call)
{
    bool kill = jq_random(meeting->jq, 4) == 0;
    call->expected = expect_verb(meeting, call->job);
    jq_will_cancel(meeting->jq, call->job, kill);
    start(meeting, call, "CancelJob", json_make("[I, b]", (json_int_t)call->job->id, (int)kill));
}

static void start_priority(struct meeting *meeting, struct call *call)
{
    call->priority = (gint64)jq_random(meeting->jq, 40) - 20;
    call->expected = expect_verb(meeting, call->job);
    call->job->wished = &call->priority;
    start(meeting, call, "ChangeJobPriority",
          json_make("[I, I]", (json_int_t)call->job->id, (json_int_t)call->priority));
}

static void start_rule(struct meeting *meeting, struct call *call)
{
    struct jq *jq = meeting->jq;
    json_t *action, *predicates;
    call->rules = meeting->rules;
    if (call->rules->len > 3 || (call->rules->len > 0 && jq_random(jq, 2) == 0)) {
        call->rule = g_strdup(call->rules->pdata[jq_random(jq, call->rules->len)]);
        start(meeting, call, "DeleteFilter", json_make("[s]", call->rule));
        return;
    }
    predicates = jq_draw_rule(jq, &action);
    start(meeting, call, "ReplaceFilter",
          json_make("[s, i, o, o, []]", "", (int)jq_random(jq, 5), predicates, action));
}

static void start_archive(struct meeting *meeting, struct call *call)
{
    call->expected = expect_archived(meeting, call->job);
    start(meeting, call, "ArchiveJob", json_make("[I]", (json_int_t)call->job->id));
}

static void start_old(struct meeting *meeting, struct call *call)
{
    bool alone = !stirred(meeting) && !any(meeting, CALL_JOB) && !any(meeting, CALL_ARCHIVE);
    call->expected = alone ? YES : MAY_BE;
    start(meeting, call, "AutoArchiveJobs", json_make("[i, i]", -1, 30));
}

static void start_call(struct meeting *meeting)
{
    static void (*const fns[])(struct meeting * meeting, struct call * call) = {
        [CALL_JOB] = start_job,   [CALL_CANCEL] = start_cancel, [CALL_PRIORITY] = start_priority,
        [CALL_RULE] = start_rule, [CALL_DRAIN] = NULL,          [CALL_ARCHIVE] = start_archive,
        [CALL_OLD] = start_old};
    struct call *call = meeting->calls[meeting->started];
    if (call->kind == CALL_DRAIN)
        start(meeting, call, "SetDrainFlag", json_make("[b]", (int)!meeting->jq->model->drained));
    else
        fns[call->kind](meeting, call);
    meeting->started++;
}

/* --- the answers --- */

/* What is answered as a new job is on record, and is that which was asked for. */
static void check_answered_job(struct jq *jq, const struct call *call)
{
    guint64 id = (guint64)json_integer_value(call->reply.result);
    const struct qm_job *job = qm_find(jq->model, id);
    const json_t *comment = json_object_get(json_array_get(call->ops, 0), "comment");
    if (!job)
        jq_find(jq, "job %" ID " is answered, and is not on record", id);
    else if (call->id && id != call->id)
        jq_find(jq, "job %" ID " is answered, expected was job %" ID, id, call->id);
    else if (!json_equal(comment, json_object_get(((const struct qm_op *)job->ops->pdata[0])->input,
                                                  "comment")))
        jq_find(jq, "job %" ID " is answered to who asked for another", id);
}

static void check_done(struct jq *jq, const struct call *call)
{
    struct qm_job *job = call->job;
    switch (call->kind) {
    case CALL_JOB:
        check_answered_job(jq, call);
        break;
    case CALL_CANCEL:
        if (job->state == QM_QUEUED)
            jq_find(jq, "job %" ID " stays queued, and is said to be canceled", job->id);
        break;
    case CALL_PRIORITY:
        qm_set_priority(job, call->priority);
        jq_note(jq);
        break;
    case CALL_RULE:
        if (!call->rule)
            g_ptr_array_add(call->rules, g_strdup(json_string_value(call->reply.result)));
        break;
    case CALL_ARCHIVE:
        if (!job->archived)
            jq_find(jq, "job %" ID " is said to be in the archive, and is on record", job->id);
        break;
    case CALL_DRAIN:
    case CALL_OLD:
        break;
    }
}

static gboolean check_none_left(gpointer key, gpointer value, gpointer data)
{
    struct jq *jq = data;
    const struct qm_job *job = value;
    if (jq_may_go(jq, job))
        jq_find(jq, "job %" ID " has ended, and is not archived with the others", job->id);
    return FALSE;
}

static void check_not_done(struct jq *jq, const struct call *call)
{
    const struct qm_job *job = call->job;
    if (jq->rough || !job || call->reply.error || call->kind == CALL_ARCHIVE)
        return;
    if (!qm_final(job->state))
        jq_find(jq, "job %" ID " is not to be %s, and has not ended", job->id,
                call->kind == CALL_CANCEL ? "canceled" : "moved");
}

/* A rule that is gone is that, whoever answered it. */
static void forget_rule(const struct call *call)
{
    for (guint i = 0; i < call->rules->len; i++) {
        if (!strcmp(call->rules->pdata[i], call->rule)) {
            g_ptr_array_remove_index(call->rules, i);
            return;
        }
    }
}

static void hear(struct jq *jq, struct call *call)
{
    const json_t *result = call->reply.result;
    bool verb = call->kind == CALL_CANCEL || call->kind == CALL_PRIORITY;
    bool done = verb                         ? json_is_true(json_array_get(result, 0))
                : call->kind == CALL_ARCHIVE ? json_is_true(result)
                                             : result != NULL;
    if (call->kind == CALL_PRIORITY)
        call->job->wished = NULL;
    if (call->rule && done)
        forget_rule(call);
    if (call->expected != MAY_BE && done != (call->expected == YES))
        jq_find(jq, "of several calls one (%d, of job %" ID ") answers %s, expected was %s: %s",
                (int)call->kind, call->job ? call->job->id : call->id, done ? "yes" : "no",
                done ? "no" : "yes", call->reply.error ? call->reply.error->message : "");
    if (done)
        check_done(jq, call);
    else
        check_not_done(jq, call);
    if (call->kind == CALL_OLD && call->expected == YES)
        g_tree_foreach(jq->model->jobs, check_none_left, jq);
}

void jq_hear(struct jq *jq)
{
    for (guint i = 0; i < jq->calls->len && !jq->problem;) {
        struct call *call = jq->calls->pdata[i];
        if (!call->reply.done) {
            i++;
            continue;
        }
        jq_look(jq);
        hear(jq, call);
        g_ptr_array_remove_index(jq->calls, i);
    }
}

/* --- a meeting --- */

static struct qm_job *draw_ended(struct jq *jq)
{
    guint newest = (guint)jq->model->newest;
    for (guint i = 0; newest > 0 && i < 8; i++) {
        struct qm_job *job = qm_find(jq->model, newest - jq_random(jq, MIN(newest, 40)));
        if (job && qm_final(job->state))
            return job;
    }
    return newest > 0 ? qm_find(jq->model, newest) : NULL;
}

static struct qm_job *draw_verb_job(struct meeting *meeting, guint at)
{
    struct jq *jq = meeting->jq;
    struct qm_job *before = at > 0 ? meeting->calls[at - 1]->job : NULL;
    return before && jq_random(jq, 2) == 0 ? before : jq_pick_job(jq);
}

static enum kind draw_kind(const struct meeting *meeting)
{
    struct jq *jq = meeting->jq;
    guint what = jq_random(jq, 100);
    if (what < 62)
        return what < 40 ? CALL_JOB : CALL_CANCEL;
    if (what < 78)
        return CALL_PRIORITY;
    if (what < 92)
        return what < 90 ? CALL_ARCHIVE : CALL_OLD;
    if (what < 97)
        return any(meeting, CALL_RULE) ? CALL_JOB : CALL_RULE;
    return any(meeting, CALL_DRAIN) ? CALL_JOB : CALL_DRAIN;
}

static void draw_call(struct meeting *meeting)
{
    guint at = meeting->count;
    struct call *call = g_new0(struct call, 1);
    call->kind = draw_kind(meeting);
    if (call->kind == CALL_CANCEL || call->kind == CALL_PRIORITY)
        call->job = draw_verb_job(meeting, at);
    else if (call->kind == CALL_ARCHIVE)
        call->job = draw_ended(meeting->jq);
    bool of_job =
        call->kind == CALL_CANCEL || call->kind == CALL_PRIORITY || call->kind == CALL_ARCHIVE;
    bool wished = call->kind == CALL_PRIORITY && call->job && call->job->wished;
    for (guint i = 0; call->kind == CALL_PRIORITY && i < at; i++)
        wished =
            wished || (meeting->kinds[i] == CALL_PRIORITY && meeting->calls[i]->job == call->job);
    if (wished || (of_job && !call->job)) {
        call->kind = CALL_JOB;
        call->job = NULL;
    }
    meeting->kinds[at] = call->kind;
    meeting->calls[at] = call;
    meeting->count++;
}

/* The store stands still for so long, which may be longer than anybody waits for it. */
static guint draw_hold_ms(struct jq *jq)
{
    return jq_random(jq, 2) ? jq_random(jq, 2000) : jq_random(jq, 75000);
}

static void hold_on(struct jq *jq)
{
    fake_settle(jq->world);
    jq_look(jq);
    jq_hear(jq);
    if (jq->rough) {
        jq_all_may_die(jq);
        jq_pass_to(jq, fake_now_ms(jq->world) + draw_hold_ms(jq));
    }
}

void jq_meet(struct jq *jq, GPtrArray *rules)
{
    struct meeting meeting = {.jq = jq, .rules = rules, .next = jq->model->newest + 1};
    guint count = 2 + jq_random(jq, MOST_CALLS - 1);
    bool held = jq_random(jq, 2) == 0;
    jq->user = jq_draw_user(jq);
    while (meeting.count < count)
        draw_call(&meeting);
    for (guint i = 0; i < count; i++)
        g_ptr_array_add(jq->calls, meeting.calls[i]);
    if (held)
        fake_engine_hold(jq->engine);
    guint first = held ? jq_random(jq, count) : 0;
    while (meeting.started < first)
        start_call(&meeting);
    fake_settle(jq->world); /* these are on their way to the store, the others come after them */
    while (meeting.started < count)
        start_call(&meeting);
    if (held) {
        hold_on(jq);
        fake_engine_release(jq->engine);
    }
    fake_settle(jq->world);
    jq_look(jq);
    jq_hear(jq);
    if (!jq->rough)
        jq_pass_to(jq, fake_now_ms(jq->world) + ANSWERED_MS);
    jq->user = NULL;
    for (guint i = 0; !jq->rough && i < jq->calls->len; i++)
        if (((const struct call *)jq->calls->pdata[i])->kind != CALL_ARCHIVE)
            jq_find(jq, "one of several calls is not answered");
}
