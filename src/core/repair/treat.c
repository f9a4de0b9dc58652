/*
 * The second half of auto-repair: one step further with a pending repair
 * (requirements-auto-repair.md, sections 4 and 5). The decision is on record before the job is
 * submitted, the job has a request id that says which step of which repair it is, and the tag gets
 * its number afterwards: a death in between repeats the same submission or finds the job (SAF-31,
 * See patient.h.
 */
#include "core/ops/placement.h"
#include "core/repair/patient.h"

#include <string.h>

/* --- what this repair has done so far --- */

/* Jobs that carry the repair's id and are not in its list: submitted just before a crash. */
static void find_lost_jobs(struct watcher *watcher, struct repair_tag *tag)
{
    const GArray *ids = watcher_repair_jobs(watcher, tag->id);
    for (guint i = 0; ids != NULL && i < ids->len; i++) {
        g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, g_array_index(ids, guint64, i));
        if (g_strv_contains((const char *const *)tag->jobs, id))
            continue;
        guint count = g_strv_length(tag->jobs);
        tag->jobs = g_renew(char *, tag->jobs, count + 2);
        tag->jobs[count] = g_steal_pointer(&id);
        tag->jobs[count + 1] = NULL;
    }
}

struct history {
    bool under_way;
    guint steps;    /* that succeeded */
    guint failures; /* since the last success */
    guint tries;    /* of these, those that were not for lack of room */
    guint64 job;    /* the last one; 0: none */
    enum job_outcome last;
    char *message; /* of the last failure */
};

static struct history read_history(const struct watcher *watcher, const struct repair_tag *tag)
{
    struct history history = {.last = JOB_SUCCEEDED};
    for (guint i = 0; tag->jobs[i] != NULL; i++) {
        g_autofree char *message = NULL;
        history.job = g_ascii_strtoull(tag->jobs[i], NULL, 10);
        history.last = watcher_job_outcome(watcher, history.job, &message);
        history.under_way |= history.last == JOB_UNDER_WAY;
        if (history.last == JOB_SUCCEEDED) {
            history.steps++;
            history.failures = history.tries = 0;
        } else if (history.last != JOB_UNDER_WAY) {
            history.failures++;
            history.tries += history.last != JOB_NO_ROOM;
            g_free(history.message);
            history.message = g_steal_pointer(&message);
        }
    }
    return history;
}

/* --- room --- */

/* Whether some node could take what the next step needs; nothing is submitted otherwise (ARP-57).
 * The job chooses the node itself, by the same code. */
static bool has_room(const struct watcher *watcher, const struct patient *patient,
                     char **ret_reason)
{
    const struct instance *instance = patient->instance;
    bool failover =
        patient->plan.step == REPAIR_STEP_FAILOVER && instance->disk_template == TEMPLATE_DISKLESS;
    if (patient->plan.step != REPAIR_STEP_REPLACE_DISKS && !failover)
        return true;
    const struct placement_need need = {
        .what = failover ? "a new primary node" : "a new secondary node",
        .memory = instance->memory,
        .disk = failover ? 0 : placement_disk_size(instance->disks),
        .excluded = {instance->primary_node},
        .because = {"is its primary node"},
        .skip = instance->uuid,
        .prefer = *instance->secondary_node ? instance->secondary_node : NULL,
    };
    g_autoptr(GPtrArray) reports = g_ptr_array_new();
    GHashTableIter iter;
    gpointer report;
    g_hash_table_iter_init(&iter, watcher->reports);
    while (g_hash_table_iter_next(&iter, NULL, &report))
        g_ptr_array_add(reports, report);
    g_autoptr(GError) error = NULL;
    if (placement_choose(follow_config(watcher->follow), reports, &need, &error) != NULL)
        return true;
    *ret_reason = g_strdup(error->message);
    return false;
}

/* A job that found no room although we saw some is tried again after pauses that grow. */
static bool may_try_room(const struct watcher *watcher, struct watched *watched,
                         const struct history *history)
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

static void wait_for(struct watcher *watcher, const struct patient *patient,
                     const struct record_tag *record, const char *what, const char *next)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    /* A job that was found again is added to the list. */
    patient_note_job(watcher, patient, record, 0, changes);
    struct decision *decision = patient_decide(patient, VERDICT_WAIT, "Pending repair", "%s", what);
    for (guint i = 0; record->tag.jobs[i] != NULL; i++)
        g_ptr_array_add(decision->jobs, g_strdup(record->tag.jobs[i]));
    decision_set(&decision->next_check, "%s", next);
    finish(watcher, decision, changes);
}

static void leave_to_person(struct watcher *watcher, const struct patient *patient,
                            const struct record_tag *record)
{
    enum repair_step step = patient->plan.step;
    g_autofree char *what = g_strdup_printf("The next step is %s, %s.", repair_step_name(step),
                                            repair_step_by_hand(step));
    wait_for(watcher, patient, record, what, "when its nodes or its replica change");
}

/* After a submission that failed the intention is on record already. */
static bool announced(const struct watcher *watcher, const struct patient *patient)
{
    const struct decision *latest = watcher_latest(watcher, patient->instance->uuid, REPAIR_AUTHOR);
    return latest != NULL && latest->verdict == VERDICT_WAIT &&
           strstr(latest->summary, " could not be submitted: ") != NULL;
}

static bool announce(struct watcher *watcher, const struct patient *patient,
                     const struct record_tag *record, const struct history *history)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    if (announced(watcher, patient))
        return true;
    patient_note_job(watcher, patient, record, 0, changes);
    struct decision *decision = patient_decide(
        patient, VERDICT_ACT, "Pending repair", "Step %u of the repair: %s%s.", history->steps + 1,
        repair_step_name(patient->plan.step), history->failures > 0 ? ", again" : "");
    if (history->failures > 0)
        g_ptr_array_add(decision->evidence, g_strdup_printf("job %" G_GUINT64_FORMAT " failed: %s",
                                                            history->job, history->message));
    decision_set(&decision->next_check, "when its job has ended");
    return finish(watcher, decision, changes);
}

static guint64 submit_step(struct watcher *watcher, const struct patient *patient,
                           const struct record_tag *record, const struct history *history,
                           GError **error)
{
    g_autofree char *request_id =
        g_strdup_printf("%s/%u-%s/%u", record->tag.id, history->steps + 1,
                        repair_step_name(patient->plan.step), history->failures + 1);
    g_autofree char *reason = g_strdup_printf("repair %s", record->tag.id);
    json_t *opcode = json_make("{ssss}", "OP_ID", repair_step_opcode(patient->plan.step),
                               "instance_name", patient->instance->name);
    return watcher_submit(watcher, opcode, request_id, reason, record->tag.timestamp, error);
}

static void take_step(struct watcher *watcher, const struct patient *patient,
                      struct record_tag *record, const struct history *history)
{
    g_autoptr(GError) error = NULL;
    if (!announce(watcher, patient, record, history))
        return;
    guint64 job = submit_step(watcher, patient, record, history, &error);
    if (job == 0) {
        if (fettle_error_is(error, KILLED))
            return;
        g_autofree char *what = g_strdup_printf(
            "%s could not be submitted: %s", repair_step_name(patient->plan.step), error->message);
        wait_for(watcher, patient, record, what, "in the next pass");
        return;
    }
    /* The copies of the tag may be others now. */
    struct patient *now = patient_examine(watcher, patient->instance->uuid);
    for (guint i = 0; now != NULL && i < now->pending->len; i++) {
        struct record_tag *fresh = now->pending->pdata[i];
        if (!g_str_equal(fresh->tag.id, record->tag.id))
            continue;
        g_autoptr(GPtrArray) changes = watcher_changes_new();
        find_lost_jobs(watcher, &fresh->tag);
        patient_note_job(watcher, now, fresh, job, changes);
        watcher_commit(watcher, changes);
    }
    patient_free(now);
}

/* --- ends --- */

static bool any_under_way(struct watcher *watcher, const struct patient *patient)
{
    bool found = false;
    for (guint i = 0; i < patient->pending->len; i++) {
        struct record_tag *record = patient->pending->pdata[i];
        find_lost_jobs(watcher, &record->tag);
        struct history history = read_history(watcher, &record->tag);
        g_free(history.message);
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
static char *why_given_up(const struct record_tag *record, const struct history *history)
{
    bool fatal = history->last == JOB_FAILED || history->last == JOB_LOST;
    if (fatal || (history->last == JOB_SAFE && history->tries >= LIMIT_REPAIR_TRIES))
        return g_strdup(history->message);
    guint jobs = g_strv_length(record->tag.jobs);
    return jobs < LIMIT_REPAIR_JOBS ? NULL : g_strdup_printf("%u jobs did not mend it", jobs);
}

void repair_treat(struct watcher *watcher, struct patient *patient)
{
    struct record_tag *record = patient->pending->pdata[0];
    const struct repair_plan *plan = &patient->plan;
    bool under_way = any_under_way(watcher, patient);
    struct history history = read_history(watcher, &record->tag);
    g_autofree char *message = history.message;
    g_autofree char *given_up = why_given_up(record, &history);
    g_autofree char *reason = NULL;
    if (history.under_way || (plan->healthy && under_way))
        wait_for(watcher, patient, record, "A job of this repair is under way.",
                 "when the job has ended");
    else if (plan->healthy)
        conclude_healthy(watcher, patient);
    else if (given_up != NULL)
        conclude_short(watcher, patient, record, REPAIR_FAILURE, given_up);
    else if (plan->wait)
        wait_for(watcher, patient, record, "Its replica is being copied.",
                 "when the copy is ready");
    else if (plan->step_type > record->tag.type)
        conclude_short(watcher, patient, record, REPAIR_ENOPERM,
                       "the next step is above the type of this repair");
    else if (repair_step_opcode(plan->step) == NULL)
        leave_to_person(watcher, patient, record);
    else if (patient_at_work(watcher, patient->instance))
        wait_for(watcher, patient, record, "Another job is at work on it.",
                 "when that job has ended");
    else if (!has_room(watcher, patient, &reason))
        wait_for(watcher, patient, record, reason, "when a node has room");
    else if (!may_try_room(watcher, patient->watched, &history))
        wait_for(watcher, patient, record, message, "after a pause");
    else
        take_step(watcher, patient, record, &history);
}
