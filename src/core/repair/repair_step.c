/*
 * The second half of auto-repair: one step further with a pending repair
 * (requirements-auto-repair.md, sections 4 and 5). The decision is on record before the job is
 * submitted, the job has a request id that says which step of which repair it is, and the tag gets
 * its number afterwards: a death in between repeats the same submission or finds the job (SAF-31,
 * See repair_case.h.
 */
#include "core/placement/placement.h"
#include "core/repair/repair_next.h"
#include "core/report/faults.h"

#include <string.h>

/* --- acts and non-acts --- */

static bool finish(struct watcher *watcher, struct decision *decision, GPtrArray *changes)
{
    watcher_record(watcher, decision, changes);
    return watcher_commit(watcher, changes);
}

/* The tag with all jobs that are known to be its own, and why it waits. */
static void wait_for(const struct watcher *watcher, const struct repair_case *subject,
                     const struct record_tag *record, const char *what, const char *next,
                     GPtrArray *changes)
{
    bool shadow = watcher_shadow(watcher);
    /* A job that was found again is added to the list. */
    if (!shadow)
        repair_case_note_job(watcher, subject, record, 0, changes);
    struct decision *decision =
        repair_case_decide(subject, VERDICT_WAIT,
                           shadow ? "Pending repair, shadow mode" : "Pending repair", "%s", what);
    for (guint i = 0; record->tag.jobs[i] != NULL; i++)
        g_ptr_array_add(decision->jobs, g_strdup(record->tag.jobs[i]));
    decision_set(&decision->next_check, "%s", next);
    watcher_record(watcher, decision, changes);
}

/* The record of the step that is being taken by this repair; NULL if the last word was another. */
static const struct decision *step_record(const struct watcher *watcher,
                                          const struct repair_case *subject,
                                          const struct record_tag *record)
{
    const struct decision *latest = watcher_latest(watcher, subject->instance->uuid, REPAIR_AUTHOR);
    return latest != NULL && latest->verdict == VERDICT_ACT &&
                   g_str_equal(latest->repair_id, record->tag.id)
               ? latest
               : NULL;
}

/* A step has one record, which names its job once it is known. */
static void note_job(const struct watcher *watcher, const struct repair_case *subject,
                     const struct record_tag *record, guint64 job, GPtrArray *changes)
{
    repair_case_note_job(watcher, subject, record, job, changes);
    const struct decision *step = step_record(watcher, subject, record);
    if (step == NULL || job == 0 || step->jobs->len > 0)
        return;
    record_autoptr(decision) with_job = decision_copy(step);
    g_ptr_array_add(with_job->jobs, g_strdup_printf("%" G_GUINT64_FORMAT, job));
    g_ptr_array_add(changes, config_put(follow_config(watcher->follow), "decision", step->uuid,
                                        decision_to_json(with_job)));
}

static void wait_for_job(const struct watcher *watcher, const struct repair_case *subject,
                         const struct record_tag *record, const struct repair_history *history,
                         GPtrArray *changes)
{
    if (step_record(watcher, subject, record) != NULL && !watcher_shadow(watcher))
        note_job(watcher, subject, record, history->job, changes);
    else
        wait_for(watcher, subject, record, "A job of this repair is under way.",
                 "when the job has ended", changes);
}

/* After a submission that failed the intention is on record already. */
static bool announced(const struct watcher *watcher, const struct repair_case *subject)
{
    const struct decision *latest = watcher_latest(watcher, subject->instance->uuid, REPAIR_AUTHOR);
    return latest != NULL && latest->verdict == VERDICT_WAIT &&
           strstr(latest->summary, " could not be submitted: ") != NULL;
}

static const char *step_node(const struct watcher *watcher, const struct repair_case *subject,
                             const struct repair_goal *goal)
{
    return config_node_name(follow_config(watcher->follow),
                            subject->plan.step == REPAIR_STEP_REPLACE_DISKS ? goal->secondary
                                                                            : goal->primary);
}

/* Where the step leads, and why there. */
static char *why_there(const struct watcher *watcher, const struct repair_case *subject,
                       const struct repair_goal *goal)
{
    const char *name = step_node(watcher, subject, goal);
    const char *old = subject->instance->secondary_node;
    if (subject->plan.step != REPAIR_STEP_REPLACE_DISKS || g_strcmp0(goal->secondary, old) != 0)
        return g_strdup_printf("%s has room", name);
    if (placement_is_full(reports_of(watcher->reports, old)))
        return g_strdup_printf("%s has no room left and keeps the replica all the same: no other "
                               "node fits",
                               name);
    return g_strdup_printf("%s keeps the replica", name);
}

/* Whether the job that failed last was to do the same: what it left may call for another step. */
static bool is_repeated(const struct repair_case *subject, const struct repair_history *history)
{
    return history->failures > 0 &&
           g_strcmp0(history->step, repair_step_word(subject->plan.step)) == 0;
}

/* No well node fits, or none is to be chosen: what is wrong with the one that is taken (SAF-92). */
static void add_faults(const struct watcher *watcher, const struct repair_case *subject,
                       const struct repair_goal *goal, GPtrArray *evidence)
{
    bool replace = subject->plan.step == REPAIR_STEP_REPLACE_DISKS;
    const struct node_report *report =
        reports_of(watcher->reports, replace ? goal->secondary : goal->primary);
    g_autofree char *text = report != NULL ? faults_text(report) : NULL;
    if (text != NULL)
        g_ptr_array_add(evidence, g_strdup_printf("%s %s; it is taken all the same",
                                                  step_node(watcher, subject, goal), text));
}

static bool announce(struct watcher *watcher, const struct repair_case *subject,
                     const struct record_tag *record, const struct repair_history *history,
                     const struct repair_goal *goal)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    bool again = is_repeated(subject, history);
    guint number = history->steps + 1 + (history->failures > 0 && !again ? 1 : 0);
    if (announced(watcher, subject))
        return true;
    repair_case_note_job(watcher, subject, record, 0, changes);
    struct decision *decision =
        repair_case_decide(subject, VERDICT_ACT, "Pending repair", "Step %u of the repair: %s%s.",
                           number, repair_step_name(subject->plan.step), again ? ", again" : "");
    g_ptr_array_add(decision->evidence, why_there(watcher, subject, goal));
    add_faults(watcher, subject, goal, decision->evidence);
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

/* Left to itself the job would choose the node that has failed. */
static json_t *opcodes_for(const struct watcher *watcher, const struct repair_case *subject,
                           const struct repair_goal *goal)
{
    json_t *opcodes = repair_plan_opcodes(&subject->plan, subject->instance);
    bool replace = subject->plan.step == REPAIR_STEP_REPLACE_DISKS;
    if (goal->named)
        json_object_set_new(json_array_get(opcodes, 0), replace ? "remote_node" : "target_node",
                            json_string(step_node(watcher, subject, goal)));
    return opcodes;
}

static guint64 submit_step(struct watcher *watcher, const struct repair_case *subject,
                           const struct record_tag *record, const struct repair_history *history,
                           const struct repair_goal *goal, GError **error)
{
    g_autofree char *request_id =
        g_strdup_printf("%s/%u-%s/%u", record->tag.id, history->steps + 1,
                        repair_step_word(subject->plan.step), history->failures + 1);
    g_autofree char *reason = g_strdup_printf("repair %s", record->tag.id);
    return watcher_submit(watcher, opcodes_for(watcher, subject, goal), request_id, reason,
                          record->tag.timestamp, error);
}

/* The copies of the tag may be others now. */
static void note_submitted(struct watcher *watcher, const char *instance, const char *repair,
                           guint64 job)
{
    struct repair_case *now = repair_case_examine(watcher, instance);
    for (guint i = 0; now != NULL && i < now->pending->len; i++) {
        struct record_tag *fresh = now->pending->pdata[i];
        if (!g_str_equal(fresh->tag.id, repair))
            continue;
        g_autoptr(GPtrArray) changes = watcher_changes_new();
        repair_find_lost_jobs(watcher, &fresh->tag);
        note_job(watcher, now, fresh, job, changes);
        watcher_commit(watcher, changes);
    }
    repair_case_free(now);
}

static void take_step(struct watcher *watcher, const struct repair_case *subject,
                      struct record_tag *record, const struct repair_history *history,
                      const struct repair_goal *goal, GPtrArray *changes)
{
    g_autoptr(GError) error = NULL;
    if (!announce(watcher, subject, record, history, goal))
        return;
    guint64 job = submit_step(watcher, subject, record, history, goal, &error);
    if (job != 0) {
        watcher_count_step(watcher, history->job == 0);
        repair_next_take_room(watcher, subject, goal);
        note_submitted(watcher, subject->instance->uuid, record->tag.id, job);
    } else if (!fettle_error_is(error, KILLED)) {
        g_autofree char *what = g_strdup_printf(
            "%s could not be submitted: %s", repair_step_name(subject->plan.step), error->message);
        wait_for(watcher, subject, record, what, "in the next pass", changes);
    }
}

/* --- ends --- */

static bool any_under_way(struct watcher *watcher, const struct repair_case *subject)
{
    bool found = false;
    for (guint i = 0; i < subject->pending->len; i++) {
        struct record_tag *record = subject->pending->pdata[i];
        repair_find_lost_jobs(watcher, &record->tag);
        struct repair_history history = repair_history_read(watcher, &record->tag);
        repair_history_clear(&history);
        found |= history.under_way;
    }
    return found;
}

/* Healthy again: all pending repairs are resolved, without any operation (ARP-43, ARP-52, ARP-53).
 */
static void conclude_healthy(struct watcher *watcher, struct repair_case *subject)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    for (guint i = 0; i < subject->pending->len; i++)
        repair_case_conclude(watcher, subject, subject->pending->pdata[i], REPAIR_SUCCESS, changes);
    repair_case_trim_results(watcher, subject, subject->pending->len, changes);
    struct decision *decision =
        repair_case_decide(subject, VERDICT_DONE, "Healthy", "%s: repaired.",
                           repair_healthy_text(subject->instance->disk_template));
    if (finish(watcher, decision, changes))
        watcher_move(subject->watched, subject->instance->name, REPAIR_HEALTHY, "repaired");
}

static void conclude_short(struct watcher *watcher, struct repair_case *subject,
                           const struct record_tag *record, enum repair_outcome outcome,
                           const char *why)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    repair_case_conclude(watcher, subject, record, outcome, changes);
    repair_case_trim_results(watcher, subject, outcome == REPAIR_ENOPERM ? 1 : 0, changes);
    bool failed = outcome == REPAIR_FAILURE;
    struct decision *decision = repair_case_decide(
        subject, VERDICT_LEAVE, failed ? "Failed" : "Needs repair", "Repair %s ended with %s: %s.",
        record->tag.id, repair_outcome_name(outcome), why);
    for (guint i = 0; record->tag.jobs[i] != NULL; i++)
        g_ptr_array_add(decision->jobs, g_strdup(record->tag.jobs[i]));
    if (failed)
        repair_case_reject_others(subject, decision);
    if (finish(watcher, decision, changes))
        watcher_move(subject->watched, subject->instance->name,
                     failed ? REPAIR_FAILED : REPAIR_NEEDED, why);
}

/* --- what is done --- */

/* Nothing is done: the record says what would be. */
static void shadow(struct watcher *watcher, const struct repair_case *subject,
                   const struct record_tag *record, const struct repair_next *next,
                   GPtrArray *changes)
{
    bool waits = next->act == REPAIR_ACT_WAIT;
    bool ends = next->act == REPAIR_ACT_FAILURE || next->act == REPAIR_ACT_ENOPERM;
    g_autofree char *what = waits ? g_strdup(next->what)
                                  : g_strdup_printf(REPAIR_SHADOW "%s%s%s.",
                                                    ends ? "the repair would be ended with " : "",
                                                    !ends                             ? ""
                                                    : next->act == REPAIR_ACT_FAILURE ? "failure: "
                                                                                      : "enoperm: ",
                                                    next->what);
    wait_for(watcher, subject, record, what,
             waits ? next->when : "when shadow mode is switched off", changes);
}

static void act_on(struct watcher *watcher, struct repair_case *subject, struct record_tag *record,
                   const struct repair_history *history, const struct repair_next *next,
                   GPtrArray *changes)
{
    switch (next->act) {
    case REPAIR_ACT_WAIT_JOB:
        wait_for_job(watcher, subject, record, history, changes);
        break;
    case REPAIR_ACT_WAIT:
        wait_for(watcher, subject, record, next->what, next->when, changes);
        break;
    case REPAIR_ACT_HEALTHY:
        conclude_healthy(watcher, subject);
        break;
    case REPAIR_ACT_FAILURE:
        conclude_short(watcher, subject, record, REPAIR_FAILURE, next->what);
        break;
    case REPAIR_ACT_ENOPERM:
        conclude_short(watcher, subject, record, REPAIR_ENOPERM, next->what);
        break;
    case REPAIR_ACT_STEP:
        take_step(watcher, subject, record, history, &next->goal, changes);
        break;
    }
}

void repair_step_take(struct watcher *watcher, struct repair_case *subject, GPtrArray *changes)
{
    struct record_tag *record = subject->pending->pdata[0];
    watcher_move(subject->watched, subject->instance->name, REPAIR_PENDING, "pending tag");
    bool any_job = any_under_way(watcher, subject);
    struct repair_history history = repair_history_read(watcher, &record->tag);
    struct repair_next next = repair_next_judge(watcher, subject, record, &history, any_job);
    if (watcher_shadow(watcher) && next.act != REPAIR_ACT_WAIT_JOB)
        shadow(watcher, subject, record, &next, changes);
    else
        act_on(watcher, subject, record, &history, &next, changes);
    repair_next_clear(&next);
    repair_history_clear(&history);
}
