/* See recovery_private.h: what a judgement changes. */
#include <string.h>

#include "core/config/attachments.h"
#include "core/config/fault.h"
#include "core/recovery/recovery_private.h"
#include "proto/change.h"

/* --- words --- */

static const char *task_word(const struct recovery_case *subject)
{
    return enum_word(&task_state_words, (int)subject->instance->task_state);
}

static const char *state_before(const struct recovery_case *subject)
{
    if (subject->fault)
        return "error";
    return subject->instance->admin_state == ADMIN_UP ? "active" : "stopped";
}

/* An outcome that leaves the state as recorded is told by what is there. */
static const char *state_after(const struct recovery_case *subject)
{
    const struct judgement *judgement = subject->judgement;
    if (judgement->how == JUDGED_FINISH)
        return "finishing";
    return *judgement->final ? judgement->final : judgement->runs ? "active" : "stopped";
}

static char *job_text(const struct recovery_case *subject)
{
    return g_strdup_printf("Job %" G_GUINT64_FORMAT " ended while %s it",
                           subject->instance->task_owner, task_word(subject));
}

static char *summary_of(const struct recovery_case *subject)
{
    const struct judgement *judgement = subject->judgement;
    g_autofree char *job = job_text(subject);
    if (judgement->how == JUDGED_FINISH)
        return g_strdup_printf("%s; it is %s, for a known state.", job,
                               judge_finisher_text(judgement->finisher));
    if (judgement->how == JUDGED_REMOVED)
        return g_strdup_printf("%s, and nothing of it is left; its record goes too.", job);
    if (judgement->how == JUDGED_ERROR)
        return g_strdup_printf("%s, and what is there fits no state that it could have (%s): it "
                               "is in ERROR, and nothing was touched.",
                               job, judgement->why ? judgement->why : judgement->rule);
    return g_strdup_printf("%s; %s, and that is on record now%s.", job,
                           judgement->runs ? "its guest runs" : "it is whole and does not run",
                           subject->instance->task_state == TASK_REMOVING ? ": it was not removed"
                                                                          : "");
}

/* --- records --- */

static struct decision *decide(const struct recovery_case *subject, const char *author,
                               enum verdict verdict, enum event_kind event, enum event_level level)
{
    struct decision *decision =
        decision_about_instance(subject->record, author, verdict, "Interrupted");
    decision->event = event;
    decision->level = level;
    decision_set(&decision->task, "%s", task_word(subject));
    decision_set(&decision->old, "%s", state_before(subject));
    return decision;
}

static void add_evidence(struct decision *decision, const struct judgement *judgement)
{
    for (guint i = 0; i < judgement->evidence->len; i++)
        g_ptr_array_add(decision->evidence, g_strdup(judgement->evidence->pdata[i]));
}

static void decide_outcome(struct watcher *watcher, const struct recovery_case *subject,
                           GPtrArray *changes)
{
    const struct judgement *judgement = subject->judgement;
    struct decision *decision = decide(subject, RECOVERY_AUTHOR,
                                       judgement->how == JUDGED_ERROR ? VERDICT_LEAVE : VERDICT_ACT,
                                       EVENT_RECOVERED, judgement->level);
    g_autofree char *summary = summary_of(subject);
    decision_set(&decision->summary, "%s", summary);
    decision_set(&decision->new, "%s", state_after(subject));
    decision_set(&decision->rule, "%s", judgement->rule);
    add_evidence(decision, judgement);
    watcher_record(watcher, decision, changes);
}

/* What a person is asked for: a message of its own beside that of the change (RCV-29). */
static void alert(struct watcher *watcher, const struct recovery_case *subject,
                  enum event_level level, const char *rule, const char *text, GPtrArray *changes)
{
    struct decision *decision = decide(subject, ALERT_AUTHOR, VERDICT_LEAVE, EVENT_ALERT, level);
    decision_set(&decision->summary, "%s", text);
    decision_set(&decision->new, "%s",
                 subject->judgement && subject->judgement->how != JUDGED_BLIND
                     ? state_after(subject)
                     : "error");
    decision_set(&decision->rule, "%s", rule);
    if (subject->judgement)
        add_evidence(decision, subject->judgement);
    watcher_record(watcher, decision, changes);
}

/* --- objects --- */

static void put(const struct recovery_case *subject, struct instance *record, GPtrArray *changes)
{
    g_ptr_array_add(changes, change_make(CHANGE_PUT, "instance", record->uuid, subject->version,
                                         instance_to_json(record)));
}

static void drop(GPtrArray *changes, const char *kind, const struct recovery_case *subject,
                 guint64 version)
{
    g_autofree char *key = fault_key("instance", subject->record->uuid);
    g_ptr_array_add(changes, change_make(CHANGE_DELETE, kind, key, version, NULL));
}

static void drop_stuck(const struct recovery_case *subject, GPtrArray *changes)
{
    if (subject->stuck)
        drop(changes, "stuck", subject, subject->stuck_version);
}

static void drop_told(const struct recovery_case *subject, GPtrArray *changes)
{
    if (subject->fault)
        drop(changes, "fault", subject, subject->fault_version);
    drop_stuck(subject, changes);
}

/* What another dead job was to bring about before somebody removed the instance goes on, also if
 * the removal was in force as a fault. */
static void clear_task(struct instance *record, const struct recovery_case *subject)
{
    const struct instance *judged = subject->instance;
    bool settled = subject->judgement->how == JUDGED_SETTLED;
    enum task_state after = TASK_NONE;
    if (judged->task_state == TASK_REMOVING && settled)
        after = *record->migration ? TASK_MIGRATING : record->task_over;
    record->task_state = after;
    record->task_owner = after != TASK_NONE ? judged->task_owner : 0;
    record->task_since = after != TASK_NONE ? judged->task_since : 0;
    if (settled)
        record->task_over = TASK_NONE;
}

/* A removal has set the wish down; what it was before is lost with its job. */
static void settle(const struct recovery_case *subject, GPtrArray *changes)
{
    record_autoptr(instance) record = instance_copy(subject->record);
    if (subject->instance->task_state == TASK_REMOVING && subject->judgement->runs)
        record->admin_state = ADMIN_UP;
    clear_task(record, subject);
    put(subject, record, changes);
    /* Its hosts were asked to refuse whose mark it was, and nobody else. */
    if (subject->fault && subject->record->task_state != TASK_NONE &&
        fault_leaves_door_open(subject->fault))
        drop_stuck(subject, changes);
    else
        drop_told(subject, changes);
}

static void remove_record(struct watcher *watcher, const struct recovery_case *subject,
                          GPtrArray *changes)
{
    const struct instance *record = subject->record;
    config_delete_rest(follow_config(watcher->follow), record, changes);
    attachment_end_all(follow_config(watcher->follow), record->uuid, changes);
    drop_told(subject, changes);
    g_ptr_array_add(changes,
                    change_make(CHANGE_DELETE, "instance", record->uuid, subject->version, NULL));
}

static void put_fault(struct watcher *watcher, const struct recovery_case *subject,
                      const char *message, bool blind, GPtrArray *changes)
{
    const struct judgement *judgement = subject->judgement;
    const struct instance *instance = subject->instance;
    record_autoptr(fault) fault = fault_new();
    text_set(&fault->subject_kind, "instance");
    text_set(&fault->subject, instance->uuid);
    fault->at_us =
        subject->fault ? subject->fault->at_us : (guint64)watcher->env->ops->wall_us(watcher->env);
    decision_set(&fault->message, "%.500s", message);
    text_set(&fault->state_before,
             subject->fault ? subject->fault->state_before : state_before(subject));
    text_set(&fault->task, task_word(subject));
    fault->owner = instance->task_owner;
    fault->since = instance->task_since;
    text_set(&fault->rule, blind ? "RCV-39" : judgement->rule);
    fault->level = blind ? EVENT_LEVEL_ERROR : judgement->level;
    fault->blind = blind;
    for (guint i = 0; i < MIN(judgement->evidence->len, LIMIT_REPAIR_EVIDENCE); i++)
        g_ptr_array_add(fault->evidence, g_strndup(judgement->evidence->pdata[i], 500));
    g_autofree char *key = fault_key("instance", instance->uuid);
    g_ptr_array_add(changes, change_make(CHANGE_PUT, "fault", key, subject->fault_version,
                                         fault_to_json(fault)));
}

/* The state is the fault: the task goes with the same commit (RCV-28). */
static void fail(struct watcher *watcher, const struct recovery_case *subject, const char *message,
                 bool blind, GPtrArray *changes)
{
    record_autoptr(instance) record = instance_copy(subject->record);
    clear_task(record, subject);
    put(subject, record, changes);
    drop_stuck(subject, changes);
    put_fault(watcher, subject, message, blind, changes);
}

/* --- what was judged --- */

/* A candidate of the version before could not load one: it waits for the end of the upgrade. */
static bool fault_has_to_wait(struct watcher *watcher, const struct recovery_case *subject,
                              const char *why, GPtrArray *changes)
{
    if (watcher_may_make(watcher, "fault"))
        return false;
    g_autofree char *text = g_strdup_printf(
        "it would be in ERROR (%s), which a candidate of a version before cannot have on record",
        why);
    recovery_tell_wait(watcher, subject, text, changes);
    return true;
}

void recovery_apply(struct watcher *watcher, struct recovery_case *subject, GPtrArray *changes)
{
    const struct judgement *judgement = subject->judgement;
    if (judgement->how == JUDGED_ERROR &&
        fault_has_to_wait(watcher, subject, judgement->rule, changes))
        return;
    g_autofree char *summary = summary_of(subject);
    if (judgement->how == JUDGED_SETTLED)
        settle(subject, changes);
    else if (judgement->how == JUDGED_REMOVED)
        remove_record(watcher, subject, changes);
    else if (judgement->how == JUDGED_ERROR)
        fail(watcher, subject, summary, false, changes);
    decide_outcome(watcher, subject, changes);
    if (judgement->alert && judgement->how != JUDGED_FINISH) {
        g_autofree char *text = g_strdup_printf("%s Look at it: fettle recovery show instance %s",
                                                summary, subject->record->name);
        alert(watcher, subject, judgement->level, judgement->rule,
              judgement->how == JUDGED_REMOVED ? summary : text, changes);
    }
}

/* --- what could not be looked at --- */

/* While it may not be put on record it is remembered, and goes on record as it is by then. */
static guint count_looks(const struct recovery_case *subject)
{
    return subject->stuck ? (guint)subject->stuck->looks : subject->remembered->looks;
}

static void put_stuck(struct watcher *watcher, const struct recovery_case *subject, guint looks,
                      guint alerts, const char *why, GPtrArray *changes)
{
    record_autoptr(stuck) stuck = subject->stuck ? stuck_copy(subject->stuck) : stuck_new();
    text_set(&stuck->subject_kind, "instance");
    text_set(&stuck->subject, subject->instance->uuid);
    text_set(&stuck->task, task_word(subject));
    stuck->owner = subject->instance->task_owner;
    if (stuck->since_us == 0)
        stuck->since_us = (guint64)watcher->env->ops->wall_us(watcher->env);
    stuck->looks = looks;
    stuck->alerts = alerts;
    stuck->again = false;
    decision_set(&stuck->why, "%.500s", why);
    subject->remembered->looks = looks;
    if (!watcher_may_make(watcher, "stuck"))
        return;
    g_autofree char *key = fault_key("instance", subject->instance->uuid);
    g_ptr_array_add(changes, change_make(CHANGE_PUT, "stuck", key, subject->stuck_version,
                                         stuck_to_json(stuck)));
}

/* Of a subject that is in ERROR already nothing is counted. */
static void still_blind(struct watcher *watcher, const struct recovery_case *subject,
                        GPtrArray *changes)
{
    if (subject->fault->again) {
        record_autoptr(fault) fault = fault_copy(subject->fault);
        fault->again = false;
        g_autofree char *key = fault_key("instance", subject->instance->uuid);
        g_ptr_array_add(changes, change_make(CHANGE_PUT, "fault", key, subject->fault_version,
                                             fault_to_json(fault)));
    }
    g_autofree char *why = g_strdup_printf("how it is is not known: %s", subject->judgement->why);
    recovery_tell_wait(watcher, subject, why, changes);
}

static void give_up_looking(struct watcher *watcher, const struct recovery_case *subject,
                            guint looks, GPtrArray *changes)
{
    g_autofree char *job = job_text(subject);
    g_autofree char *message = g_strdup_printf(
        "%s, and after %u looks it is not known how it is: %s. It is in ERROR until its hosts "
        "answer, or a person says: fettle recovery reset instance %s STATE --reason …",
        job, looks, subject->judgement->why, subject->record->name);
    fail(watcher, subject, message, true, changes);
    struct decision *decision =
        decide(subject, RECOVERY_AUTHOR, VERDICT_LEAVE, EVENT_RECOVERED, EVENT_LEVEL_ERROR);
    decision_set(&decision->summary, "%s", message);
    decision_set(&decision->new, "error");
    decision_set(&decision->rule, "RCV-39");
    add_evidence(decision, subject->judgement);
    watcher_record(watcher, decision, changes);
    alert(watcher, subject, EVENT_LEVEL_ERROR, "RCV-39", message, changes);
}

void recovery_look_failed(struct watcher *watcher, struct recovery_case *subject,
                          GPtrArray *changes)
{
    const struct cluster *cluster = watcher_cluster(watcher);
    subject->remembered->next_ms =
        watcher->env->ops->boot_ms(watcher->env) + (gint64)cluster->recovery_resync_interval * 1000;
    subject->remembered->unheard = !recovery_hosts_answer(watcher, subject);
    if (subject->fault && subject->record->task_state == TASK_NONE) {
        still_blind(watcher, subject, changes);
        return;
    }
    guint looks = count_looks(subject) + 1;
    if (looks > cluster->recovery_resync_count &&
        fault_has_to_wait(watcher, subject, subject->judgement->why, changes))
        return;
    if (looks > cluster->recovery_resync_count) {
        give_up_looking(watcher, subject, looks, changes);
        return;
    }
    put_stuck(watcher, subject, looks, subject->stuck ? (guint)subject->stuck->alerts : 0,
              subject->judgement->why, changes);
    g_autofree char *job = job_text(subject);
    struct decision *decision =
        decide(subject, RECOVERY_AUTHOR, VERDICT_WAIT, EVENT_NONE, EVENT_LEVEL_INFO);
    decision_set(&decision->summary, "%s, and how it is is not known: %s.", job,
                 subject->judgement->why);
    decision_set(&decision->rule, "RCV-35");
    decision_set(&decision->next_check,
                 "attempt %u of %" G_GUINT64_FORMAT " in %" G_GUINT64_FORMAT
                 " s, or when its hosts answer",
                 looks, cluster->recovery_resync_count, cluster->recovery_resync_interval);
    add_evidence(decision, subject->judgement);
    watcher_record(watcher, decision, changes);
}

/* --- what is left alone --- */

void recovery_tell_wait(struct watcher *watcher, const struct recovery_case *subject,
                        const char *why, GPtrArray *changes)
{
    g_autofree char *job = job_text(subject);
    struct decision *decision =
        decide(subject, RECOVERY_AUTHOR, VERDICT_WAIT, EVENT_NONE, EVENT_LEVEL_INFO);
    decision_set(&decision->summary, "%s, and it waits: %s.", job, why);
    watcher_record(watcher, decision, changes);
}

void recovery_tell_stale(struct watcher *watcher, struct recovery_case *subject,
                         enum recovery_owner owner, GPtrArray *changes)
{
    const struct cluster *cluster = watcher_cluster(watcher);
    const struct instance *instance = subject->instance;
    guint alerts = (subject->stuck ? (guint)subject->stuck->alerts : 0) + 1;
    g_autofree char *text = g_strdup_printf(
        "Job %" G_GUINT64_FORMAT
        " is %s it%s, and its record has not changed for %" G_GUINT64_FORMAT
        " s (alert %u); nothing is changed while it lives. To end it: fettle job cancel "
        "%" G_GUINT64_FORMAT " --kill",
        instance->task_owner, task_word(subject),
        owner == OWNER_LIVES ? " and lives" : ", as far as is known",
        cluster->recovery_stale_period * subject->remembered->alerts, alerts, instance->task_owner);
    put_stuck(watcher, subject, count_looks(subject), alerts, text, changes);
    struct decision *decision =
        decide(subject, ALERT_AUTHOR, VERDICT_LEAVE, EVENT_ALERT, EVENT_LEVEL_WARNING);
    decision_set(&decision->state, "Stale");
    decision_set(&decision->summary, "%s", text);
    decision_set(&decision->new, "%s", state_before(subject));
    decision_set(&decision->rule, "RCV-10");
    watcher_record(watcher, decision, changes);
}
