/*
 * The second half of auto-repair: one step further with a pending repair
 * (requirements-auto-repair.md, sections 4 and 5). The decision is on record before the job is
 * submitted, the job has a request id that says which step of which repair it is, and the tag gets
 * its number afterwards: a death in between repeats the same submission or finds the job (SAF-31,
 * See patient.h.
 */
#include "core/repair/history.h"

#include <string.h>

/* --- room --- */

static void add_reports(const struct watcher *watcher, GPtrArray *reports)
{
    GHashTableIter iter;
    gpointer report;
    g_hash_table_iter_init(&iter, watcher->reports);
    while (g_hash_table_iter_next(&iter, NULL, &report))
        g_ptr_array_add(reports, report);
}

/* What is promised on the nodes, counted once in a pass (a snapshot begins it anew). */
static struct placement_sums *pass_sums(struct watcher *watcher)
{
    if (watcher->sums == NULL) {
        g_autoptr(GPtrArray) reports = g_ptr_array_new();
        add_reports(watcher, reports);
        watcher->sums = placement_sums_new(follow_config(watcher->follow), reports);
    }
    return watcher->sums;
}

/* Whether some node could take what the next step needs; nothing is submitted otherwise (ARP-57).
 * The job chooses the node itself, by the same code. */
static bool find_room(struct watcher *watcher, const struct patient *patient,
                      struct repair_goal *ret_goal, char **ret_reason)
{
    g_autoptr(GPtrArray) reports = g_ptr_array_new();
    add_reports(watcher, reports);
    return repair_room_find(follow_config(watcher->follow), reports, pass_sums(watcher),
                            patient->instance, &patient->plan, watcher_now(watcher), ret_goal,
                            ret_reason);
}

/* What a submitted step will take counts for those that come after it in this pass. */
static void take_room(struct watcher *watcher, const struct patient *patient,
                      const struct repair_goal *goal)
{
    record_autoptr(instance) after = instance_copy(patient->instance);
    decision_set(&after->primary_node, "%s", goal->primary);
    decision_set(&after->secondary_node, "%s", goal->secondary);
    placement_sums_move(pass_sums(watcher), patient->instance, after);
}

/* A job that found no room although we saw some is tried again after pauses that grow. */
static bool may_try_room(const struct watcher *watcher, struct watched *watched,
                         const struct repair_history *history)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (history->last != JOB_NO_ROOM) {
        watched->full_tries = 0;
        return true;
    }
    if (watched->full_job != history->job) {
        watched->full_job = history->job;
        watched->full_after_ms = now_ms + watcher_pause_ms(++watched->full_tries);
    }
    return now_ms >= watched->full_after_ms;
}

/* --- acts and non-acts --- */

static bool finish(struct watcher *watcher, struct decision *decision, GPtrArray *changes)
{
    watcher_record(watcher, decision, changes);
    return watcher_commit(watcher, changes);
}

/* The tag with all jobs that are known to be its own, and why it waits. */
static void wait_for(const struct watcher *watcher, const struct patient *patient,
                     const struct record_tag *record, const char *what, const char *next,
                     GPtrArray *changes)
{
    bool shadow = watcher_shadow(watcher);
    /* A job that was found again is added to the list. */
    if (!shadow)
        patient_note_job(watcher, patient, record, 0, changes);
    struct decision *decision =
        patient_decide(patient, VERDICT_WAIT,
                       shadow ? "Pending repair, shadow mode" : "Pending repair", "%s", what);
    for (guint i = 0; record->tag.jobs[i] != NULL; i++)
        g_ptr_array_add(decision->jobs, g_strdup(record->tag.jobs[i]));
    decision_set(&decision->next_check, "%s", next);
    watcher_record(watcher, decision, changes);
}

/* The record of the step that is being taken by this repair; NULL if the last word was another. */
static const struct decision *step_record(const struct watcher *watcher,
                                          const struct patient *patient,
                                          const struct record_tag *record)
{
    const struct decision *latest = watcher_latest(watcher, patient->instance->uuid, REPAIR_AUTHOR);
    return latest != NULL && latest->verdict == VERDICT_ACT &&
                   g_str_equal(latest->repair_id, record->tag.id)
               ? latest
               : NULL;
}

/* A step has one record, which names its job once it is known. */
static void note_job(const struct watcher *watcher, const struct patient *patient,
                     const struct record_tag *record, guint64 job, GPtrArray *changes)
{
    patient_note_job(watcher, patient, record, job, changes);
    const struct decision *step = step_record(watcher, patient, record);
    if (step == NULL || job == 0 || step->jobs->len > 0)
        return;
    record_autoptr(decision) with_job = decision_copy(step);
    g_ptr_array_add(with_job->jobs, g_strdup_printf("%" G_GUINT64_FORMAT, job));
    g_ptr_array_add(changes, config_put(follow_config(watcher->follow), "decision", step->uuid,
                                        decision_to_json(with_job)));
}

static void wait_for_job(const struct watcher *watcher, const struct patient *patient,
                         const struct record_tag *record, const struct repair_history *history,
                         GPtrArray *changes)
{
    if (step_record(watcher, patient, record) != NULL && !watcher_shadow(watcher))
        note_job(watcher, patient, record, history->job, changes);
    else
        wait_for(watcher, patient, record, "A job of this repair is under way.",
                 "when the job has ended", changes);
}

/* After a submission that failed the intention is on record already. */
static bool announced(const struct watcher *watcher, const struct patient *patient)
{
    const struct decision *latest = watcher_latest(watcher, patient->instance->uuid, REPAIR_AUTHOR);
    return latest != NULL && latest->verdict == VERDICT_WAIT &&
           strstr(latest->summary, " could not be submitted: ") != NULL;
}

static const char *step_node(const struct watcher *watcher, const struct patient *patient,
                             const struct repair_goal *goal)
{
    return config_node_name(follow_config(watcher->follow),
                            patient->plan.step == REPAIR_STEP_REPLACE_DISKS ? goal->secondary
                                                                            : goal->primary);
}

static bool announce(struct watcher *watcher, const struct patient *patient,
                     const struct record_tag *record, const struct repair_history *history,
                     const struct repair_goal *goal)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    if (announced(watcher, patient))
        return true;
    patient_note_job(watcher, patient, record, 0, changes);
    struct decision *decision = patient_decide(
        patient, VERDICT_ACT, "Pending repair", "Step %u of the repair: %s%s.", history->steps + 1,
        repair_step_name(patient->plan.step), history->failures > 0 ? ", again" : "");
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("%s has room", step_node(watcher, patient, goal)));
    if (history->failures > 0)
        g_ptr_array_add(decision->evidence, g_strdup_printf("job %" G_GUINT64_FORMAT " failed: %s",
                                                            history->job, history->message));
    g_autoptr(GPtrArray) advice =
        repair_advice_texts(follow_config(watcher->follow), watcher_now(watcher));
    for (guint i = 0; i < advice->len; i++)
        g_ptr_array_add(decision->rejected, g_strdup(advice->pdata[i]));
    decision_set(&decision->next_check, "when its job has ended");
    return finish(watcher, decision, changes);
}

static guint64 submit_step(struct watcher *watcher, const struct patient *patient,
                           const struct record_tag *record, const struct repair_history *history,
                           GError **error)
{
    g_autofree char *request_id =
        g_strdup_printf("%s/%u-%s/%u", record->tag.id, history->steps + 1,
                        repair_step_word(patient->plan.step), history->failures + 1);
    g_autofree char *reason = g_strdup_printf("repair %s", record->tag.id);
    return watcher_submit(watcher, repair_plan_opcodes(&patient->plan, patient->instance),
                          request_id, reason, record->tag.timestamp, error);
}

/* The copies of the tag may be others now. */
static void note_submitted(struct watcher *watcher, const char *instance, const char *repair,
                           guint64 job)
{
    struct patient *now = patient_examine(watcher, instance);
    for (guint i = 0; now != NULL && i < now->pending->len; i++) {
        struct record_tag *fresh = now->pending->pdata[i];
        if (!g_str_equal(fresh->tag.id, repair))
            continue;
        g_autoptr(GPtrArray) changes = watcher_changes_new();
        repair_find_lost_jobs(watcher, &fresh->tag);
        note_job(watcher, now, fresh, job, changes);
        watcher_commit(watcher, changes);
    }
    patient_free(now);
}

static void take_step(struct watcher *watcher, const struct patient *patient,
                      struct record_tag *record, const struct repair_history *history,
                      const struct repair_goal *goal, GPtrArray *changes)
{
    g_autoptr(GError) error = NULL;
    if (!announce(watcher, patient, record, history, goal))
        return;
    guint64 job = submit_step(watcher, patient, record, history, &error);
    if (job != 0) {
        watcher_count_step(watcher, history->job == 0);
        take_room(watcher, patient, goal);
        note_submitted(watcher, patient->instance->uuid, record->tag.id, job);
    } else if (!fettle_error_is(error, KILLED)) {
        g_autofree char *what = g_strdup_printf(
            "%s could not be submitted: %s", repair_step_name(patient->plan.step), error->message);
        wait_for(watcher, patient, record, what, "in the next pass", changes);
    }
}

/* --- ends --- */

static bool any_under_way(struct watcher *watcher, const struct patient *patient)
{
    bool found = false;
    for (guint i = 0; i < patient->pending->len; i++) {
        struct record_tag *record = patient->pending->pdata[i];
        repair_find_lost_jobs(watcher, &record->tag);
        struct repair_history history = repair_history_read(watcher, &record->tag);
        repair_history_clear(&history);
        found |= history.under_way;
    }
    return found;
}

/* Healthy again: all pending repairs are resolved, without any operation (ARP-43, ARP-52, ARP-53).
 */
static void conclude_healthy(struct watcher *watcher, struct patient *patient)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    for (guint i = 0; i < patient->pending->len; i++)
        patient_conclude(watcher, patient, patient->pending->pdata[i], REPAIR_SUCCESS, changes);
    patient_trim_results(watcher, patient, patient->pending->len, changes);
    struct decision *decision =
        patient_decide(patient, VERDICT_DONE, "Healthy",
                       "All its nodes are online and its replica is in sync: repaired.");
    if (finish(watcher, decision, changes))
        watcher_move(patient->watched, patient->instance->name, REPAIR_HEALTHY, "repaired");
}

static void conclude_short(struct watcher *watcher, struct patient *patient,
                           const struct record_tag *record, enum repair_outcome outcome,
                           const char *why)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    patient_conclude(watcher, patient, record, outcome, changes);
    patient_trim_results(watcher, patient, outcome == REPAIR_ENOPERM ? 1 : 0, changes);
    bool failed = outcome == REPAIR_FAILURE;
    struct decision *decision = patient_decide(
        patient, VERDICT_LEAVE, failed ? "Failed" : "Needs repair", "Repair %s ended with %s: %s.",
        record->tag.id, repair_outcome_name(outcome), why);
    for (guint i = 0; record->tag.jobs[i] != NULL; i++)
        g_ptr_array_add(decision->jobs, g_strdup(record->tag.jobs[i]));
    if (finish(watcher, decision, changes))
        watcher_move(patient->watched, patient->instance->name,
                     failed ? REPAIR_FAILED : REPAIR_NEEDED, why);
}

/* Why it is not tried again; NULL if it may be (ARP-54, A-13). Free with g_free(). */
static char *why_given_up(const struct record_tag *record, const struct repair_history *history)
{
    bool fatal = history->last == JOB_FAILED || history->last == JOB_LOST;
    if (fatal || (history->last == JOB_SAFE && history->tries >= LIMIT_REPAIR_TRIES))
        return g_strdup(history->message);
    guint jobs = g_strv_length(record->tag.jobs);
    return jobs < LIMIT_REPAIR_JOBS ? NULL : g_strdup_printf("%u jobs did not mend it", jobs);
}

/* --- what comes next --- */

enum act { ACT_WAIT_JOB, ACT_WAIT, ACT_HEALTHY, ACT_FAILURE, ACT_ENOPERM, ACT_STEP };

/* `what` and `when` are for the record. */
struct next {
    enum act act;
    char *what;
    const char *when;
};

static struct next next_is(enum act act, const char *what, const char *when)
{
    return (struct next){act, g_strdup(what), when};
}

/* Whether the step can be taken now, and where it would lead. */
static struct next judge_step(struct watcher *watcher, const struct patient *patient,
                              const struct repair_history *history, struct repair_goal *ret_goal)
{
    const char *when = NULL;
    char *held = watcher_held_back(watcher, history->job == 0, &when);
    if (held != NULL)
        return (struct next){ACT_WAIT, held, when};
    char *reason = NULL;
    if (!find_room(watcher, patient, ret_goal, &reason))
        return (struct next){ACT_WAIT, reason, "when a node has room"};
    if (!may_try_room(watcher, patient->watched, history))
        return next_is(ACT_WAIT, history->message, "after a pause");
    g_autofree char *what =
        g_strdup_printf("step %u of the repair would be taken: %s", history->steps + 1,
                        repair_step_name(patient->plan.step));
    return next_is(ACT_STEP, what, NULL);
}

static struct next judge(struct watcher *watcher, const struct patient *patient,
                         const struct record_tag *record, const struct repair_history *history,
                         bool any_job, struct repair_goal *ret_goal)
{
    const struct repair_plan *plan = &patient->plan;
    g_autofree char *given_up = why_given_up(record, history);
    if (history->under_way || (plan->healthy && any_job))
        return next_is(ACT_WAIT_JOB, "a job of this repair is under way", NULL);
    if (plan->healthy && history->blank)
        return next_is(ACT_FAILURE,
                       "its disks were made anew, but what belongs on them was not installed",
                       NULL);
    if (plan->healthy)
        return next_is(ACT_HEALTHY, "the repair would be ended with success", NULL);
    if (given_up != NULL)
        return next_is(ACT_FAILURE, given_up, NULL);
    if (plan->wait)
        return next_is(ACT_WAIT, "Its replica is being copied.", "when the copy is ready");
    if (plan->left != NULL)
        return next_is(ACT_WAIT, plan->left, "when its nodes change");
    if (plan->step_type > record->tag.type)
        return next_is(ACT_ENOPERM, "the next step is above the type of this repair", NULL);
    if (patient_at_work(watcher, patient->instance))
        return next_is(ACT_WAIT, "Another job is at work on it.", "when that job has ended");
    return judge_step(watcher, patient, history, ret_goal);
}

/* Nothing is done: the record says what would be. */
static void shadow(struct watcher *watcher, const struct patient *patient,
                   const struct record_tag *record, const struct next *next, GPtrArray *changes)
{
    bool waits = next->act == ACT_WAIT;
    bool ends = next->act == ACT_FAILURE || next->act == ACT_ENOPERM;
    g_autofree char *what = waits ? g_strdup(next->what)
                                  : g_strdup_printf(REPAIR_SHADOW "%s%s%s.",
                                                    ends ? "the repair would be ended with " : "",
                                                    !ends                      ? ""
                                                    : next->act == ACT_FAILURE ? "failure: "
                                                                               : "enoperm: ",
                                                    next->what);
    wait_for(watcher, patient, record, what,
             waits ? next->when : "when shadow mode is switched off", changes);
}

static void act_on(struct watcher *watcher, struct patient *patient, struct record_tag *record,
                   const struct repair_history *history, const struct next *next,
                   const struct repair_goal *goal, GPtrArray *changes)
{
    switch (next->act) {
    case ACT_WAIT_JOB:
        wait_for_job(watcher, patient, record, history, changes);
        break;
    case ACT_WAIT:
        wait_for(watcher, patient, record, next->what, next->when, changes);
        break;
    case ACT_HEALTHY:
        conclude_healthy(watcher, patient);
        break;
    case ACT_FAILURE:
        conclude_short(watcher, patient, record, REPAIR_FAILURE, next->what);
        break;
    case ACT_ENOPERM:
        conclude_short(watcher, patient, record, REPAIR_ENOPERM, next->what);
        break;
    case ACT_STEP:
        take_step(watcher, patient, record, history, goal, changes);
        break;
    }
}

void repair_treat(struct watcher *watcher, struct patient *patient, GPtrArray *changes)
{
    struct record_tag *record = patient->pending->pdata[0];
    bool any_job = any_under_way(watcher, patient);
    struct repair_history history = repair_history_read(watcher, &record->tag);
    struct repair_goal goal = {0};
    struct next next = judge(watcher, patient, record, &history, any_job, &goal);
    if (watcher_shadow(watcher) && next.act != ACT_WAIT_JOB)
        shadow(watcher, patient, record, &next, changes);
    else
        act_on(watcher, patient, record, &history, &next, &goal, changes);
    repair_goal_clear(&goal);
    g_free(next.what);
    repair_history_clear(&history);
}
