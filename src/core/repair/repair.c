/*
 * Auto-repair: brings every instance that needs it to pending as far as its policy allows, then
 * goes one step further with each pending one (requirements-auto-repair.md, sections 3 to 5). Every
 * act and every non-act leaves a record.
 */
#include "core/ops/placement.h"
#include "core/repair/watcher_internal.h"

#include <string.h>

#define AUTHOR "watcher/repair"

/* One instance in one pass. Copies throughout: the configuration changes while a commit or
 * submission waits. */
struct patient {
    struct instance *instance;
    struct watched *watched;
    struct repair_policy policy;
    struct repair_plan plan;
    GPtrArray *pending; /* struct record_tag *: oldest first (ARP-36), one per id */
    GPtrArray *results; /* struct record_tag *: oldest first */
    bool failed;        /* a failure result stands (ARP-59) */
};

struct record_tag {
    struct repair_tag tag;
    GPtrArray *texts; /* char *: every copy of it, to be replaced together */
};

static void record_tag_free(struct record_tag *record)
{
    repair_tag_clear(&record->tag);
    g_ptr_array_unref(record->texts);
    g_free(record);
}

static void patient_free(struct patient *patient)
{
    instance_free(patient->instance);
    repair_plan_clear(&patient->plan);
    g_ptr_array_unref(patient->pending);
    g_ptr_array_unref(patient->results);
    g_free(patient);
}

static gint by_time(gconstpointer a, gconstpointer b)
{
    const struct repair_tag *left = &(*(const struct record_tag *const *)a)->tag;
    const struct repair_tag *right = &(*(const struct record_tag *const *)b)->tag;
    if (left->timestamp != right->timestamp)
        return left->timestamp < right->timestamp ? -1 : 1;
    return strcmp(left->id, right->id);
}

/* Adds a tag to a list; of two pending copies of one id the longer job list counts. */
static void add_record(GPtrArray *list, struct repair_tag *tag, const char *text)
{
    for (guint i = 0; i < list->len; i++) {
        struct record_tag *known = list->pdata[i];
        if (tag->kind != REPAIR_TAG_PENDING || strcmp(known->tag.id, tag->id) != 0)
            continue;
        g_ptr_array_add(known->texts, g_strdup(text));
        known->tag.timestamp = MIN(known->tag.timestamp, tag->timestamp);
        if (g_strv_length(tag->jobs) > g_strv_length(known->tag.jobs)) {
            GStrv longer = g_steal_pointer(&tag->jobs);
            tag->jobs = known->tag.jobs;
            known->tag.jobs = longer;
        }
        repair_tag_clear(tag);
        return;
    }
    struct record_tag *record = g_new0(struct record_tag, 1);
    record->tag = *tag;
    record->texts = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(record->texts, g_strdup(text));
    g_ptr_array_add(list, record);
}

static void read_tags(const struct watcher *watcher, struct patient *patient)
{
    g_autoptr(GPtrArray) tags =
        config_tags(follow_config(watcher->follow), TAG_INSTANCE, patient->instance->uuid);
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        if (tag.kind == REPAIR_TAG_PENDING) {
            add_record(patient->pending, &tag, tags->pdata[i]);
        } else if (tag.kind == REPAIR_TAG_RESULT) {
            patient->failed |= tag.outcome == REPAIR_FAILURE;
            add_record(patient->results, &tag, tags->pdata[i]);
        } else {
            repair_tag_clear(&tag);
        }
    }
    g_ptr_array_sort(patient->pending, by_time);
    g_ptr_array_sort(patient->results, by_time);
}

static struct patient *examine(struct watcher *watcher, const char *uuid)
{
    const struct config *config = follow_config(watcher->follow);
    const struct instance *instance = config_get(config, "instance", uuid, NULL);
    if (instance == NULL)
        return NULL;
    struct patient *patient = g_new0(struct patient, 1);
    patient->instance = instance_copy(instance);
    patient->watched = watcher_watched(watcher, uuid);
    patient->pending = g_ptr_array_new_with_free_func((GDestroyNotify)record_tag_free);
    patient->results = g_ptr_array_new_with_free_func((GDestroyNotify)record_tag_free);
    patient->policy = repair_policy_of(config, instance, watcher_now(watcher));
    bool reported = false;
    const struct guest_report *guest = watcher_guest(watcher, instance, &reported);
    patient->plan = repair_plan_of(config, instance, guest);
    read_tags(watcher, patient);
    return patient;
}

/* --- what is written --- */

static struct decision *decide(const struct patient *patient, enum verdict verdict,
                               const char *state, const char *format, ...) G_GNUC_PRINTF(4, 5);
static struct decision *decide(const struct patient *patient, enum verdict verdict,
                               const char *state, const char *format, ...)
{
    struct decision *decision = decision_about_instance(patient->instance, AUTHOR, verdict, state);
    va_list args;
    va_start(args, format);
    g_free(decision->summary);
    decision->summary = g_strdup_vprintf(format, args);
    va_end(args);
    g_free(decision->policy);
    decision->policy = g_strdup(patient->policy.text);
    for (guint i = 0; i < patient->plan.evidence->len; i++)
        g_ptr_array_add(decision->evidence, g_strdup(patient->plan.evidence->pdata[i]));
    if (patient->pending->len > 0) {
        const struct record_tag *active = patient->pending->pdata[0];
        g_free(decision->repair_id);
        decision->repair_id = g_strdup(active->tag.id);
    }
    return decision;
}

static void set_next_check(struct decision *decision, const char *text)
{
    g_free(decision->next_check);
    decision->next_check = g_strdup(text);
}

static void put_tag(const struct watcher *watcher, const struct patient *patient, const char *text,
                    GPtrArray *changes)
{
    record_autoptr(tag) tag = tag_new();
    tag->kind = TAG_INSTANCE;
    g_free(tag->object);
    tag->object = g_strdup(patient->instance->uuid);
    g_free(tag->tag);
    tag->tag = g_strdup(text);
    g_autofree char *key = config_tag_key(TAG_INSTANCE, patient->instance->uuid, text);
    g_ptr_array_add(changes,
                    config_put(follow_config(watcher->follow), "tag", key, tag_to_json(tag)));
}

static void drop_tag(const struct watcher *watcher, const struct patient *patient, const char *text,
                     GPtrArray *changes)
{
    g_autofree char *key = config_tag_key(TAG_INSTANCE, patient->instance->uuid, text);
    g_ptr_array_add(changes, config_delete(follow_config(watcher->follow), "tag", key));
}

/* The newest successes and enoperms stay; failures are a person's to remove (ARP-60). */
static void trim_results(const struct watcher *watcher, const struct patient *patient, guint added,
                         GPtrArray *changes)
{
    guint kept = added;
    for (guint i = patient->results->len; i-- > 0;) {
        const struct record_tag *record = patient->results->pdata[i];
        if (record->tag.outcome == REPAIR_FAILURE || ++kept <= LIMIT_RESULT_TAGS)
            continue;
        for (guint j = 0; j < record->texts->len; j++)
            drop_tag(watcher, patient, record->texts->pdata[j], changes);
    }
}

/* A pending tag becomes a result, in one commit. */
static void conclude(const struct watcher *watcher, const struct patient *patient,
                     const struct record_tag *record, enum repair_outcome outcome,
                     GPtrArray *changes)
{
    g_autofree char *text =
        repair_tag_result(record->tag.type, record->tag.id, watcher_now(watcher), outcome,
                          (const char *const *)record->tag.jobs);
    put_tag(watcher, patient, text, changes);
    for (guint i = 0; i < record->texts->len; i++)
        drop_tag(watcher, patient, record->texts->pdata[i], changes);
}

static bool finish(struct watcher *watcher, struct decisions *decisions, struct decision *decision,
                   GPtrArray *changes)
{
    decisions_record(decisions, watcher->env, decision, changes);
    return changes->len == 0 || watcher_commit(watcher, changes);
}

static GPtrArray *new_changes(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)change_free);
}

/* --- first half: those that are not pending yet --- */

static struct decision *record_healthy(struct decisions *decisions, const struct patient *patient)
{
    const struct decision *latest = decisions_latest(decisions, patient->instance->uuid);
    /* What was never broken needs no record. */
    if (latest == NULL || g_str_equal(latest->state, "Healthy"))
        return NULL;
    return decide(patient, VERDICT_DONE, "Healthy",
                  "All its nodes are online and its replica is in sync.");
}

/* Too weak a policy goes on record once for as long as situation and policy stay the same (ARP-47,
 * */
static struct decision *record_enoperm(struct watcher *watcher, struct decisions *decisions,
                                       const struct patient *patient, GPtrArray *changes)
{
    struct decision *decision =
        decide(patient, VERDICT_LEAVE, "Needs repair, disallowed",
               "The repair needs %s, the policy allows %s: nothing is done. To allow it, add the "
               "tag for %s.",
               repair_type_name(patient->plan.needed), repair_type_name(patient->policy.type),
               repair_type_name(patient->plan.needed));
    g_ptr_array_add(decision->rejected,
                    g_strdup_printf("%s: above the policy", repair_step_name(patient->plan.step)));
    set_next_check(decision, "when its nodes, its replica or its policy change");
    const struct decision *latest = decisions_latest(decisions, patient->instance->uuid);
    bool told = latest != NULL && g_str_equal(latest->summary, decision->summary) &&
                g_str_equal(latest->state, decision->state);
    if (!told) {
        g_autofree char *id = env_uuid(watcher->env);
        g_autofree char *text =
            repair_tag_result(patient->plan.needed, id, watcher_now(watcher), REPAIR_ENOPERM, NULL);
        put_tag(watcher, patient, text, changes);
        trim_results(watcher, patient, 1, changes);
        decision->repair_id = (g_free(decision->repair_id), g_strdup(id));
    } else {
        decision->repair_id = (g_free(decision->repair_id), g_strdup(latest->repair_id));
    }
    return decision;
}

static struct decision *begin_repair(struct watcher *watcher, const struct patient *patient,
                                     GPtrArray *changes)
{
    g_autofree char *id = env_uuid(watcher->env);
    g_autofree char *text =
        repair_tag_pending(patient->plan.needed, id, watcher_now(watcher), NULL);
    put_tag(watcher, patient, text, changes);
    struct decision *decision =
        decide(patient, VERDICT_ACT, "Pending repair",
               "It needs repair of type %s, which its policy allows; first step: %s.",
               repair_type_name(patient->plan.needed), repair_step_name(patient->plan.step));
    decision->repair_id = (g_free(decision->repair_id), g_strdup(id));
    set_next_check(decision, "now");
    return decision;
}

static struct decision *leave_needed(const struct patient *patient)
{
    struct decision *decision;
    if (patient->policy.kind == REPAIR_POLICY_ABSENT) {
        decision = decide(patient, VERDICT_LEAVE, "Needs repair, not enabled",
                          "It needs repair of type %s, but auto-repair is not enabled for it.",
                          repair_type_name(patient->plan.needed));
    } else {
        decision = decide(patient, VERDICT_LEAVE, "Needs repair, by hand",
                          "It needs %s, which would give up its data and is left to a person.",
                          repair_step_name(patient->plan.step));
    }
    set_next_check(decision, "when its nodes, its replica or its policy change");
    return decision;
}

/* Whether a job is at work on it. What a dead job left on an online node is settled first (tend.c);
 * on a dead node only the repair can. */
static bool at_work(const struct watcher *watcher, const struct instance *instance)
{
    if (instance->task_state == TASK_NONE)
        return false;
    g_autofree char *message = NULL;
    const struct node *primary =
        config_get(follow_config(watcher->follow), "node", instance->primary_node, NULL);
    return (primary != NULL && !primary->offline) ||
           watcher_job_outcome(watcher, instance->task_owner, &message) == JOB_UNDER_WAY;
}

/* One instance of the first half; returns whether it has a pending repair that may go on. */
static bool triage(struct watcher *watcher, struct decisions *decisions, struct patient *patient,
                   GPtrArray *changes)
{
    struct decision *decision = NULL;
    bool pending = patient->pending->len > 0;
    if (patient->policy.kind == REPAIR_POLICY_SUSPENDED) {
        if (pending || patient->failed || !patient->plan.healthy)
            decision = decide(patient, VERDICT_LEAVE, "Suspended",
                              "Repair is suspended: nothing is touched.");
        pending = false;
    } else if (patient->failed) {
        watcher_move(patient->watched, patient->instance->name, REPAIR_FAILED,
                     "a failure result stands");
        decision = decide(
            patient, VERDICT_LEAVE, "Failed",
            "An earlier repair failed: nothing is touched until its failure tag is removed.");
        set_next_check(decision, "when the failure tag is removed");
        pending = false;
    } else if (pending) {
        watcher_move(patient->watched, patient->instance->name, REPAIR_PENDING, "pending tag");
    } else if (patient->plan.healthy) {
        watcher_move(patient->watched, patient->instance->name, REPAIR_HEALTHY,
                     "all nodes online, replica in sync");
        decision = record_healthy(decisions, patient);
    } else if (!patient->plan.wait && !at_work(watcher, patient->instance)) {
        watcher_move(patient->watched, patient->instance->name, REPAIR_NEEDED,
                     patient->plan.evidence->pdata[0]);
        if (patient->policy.kind == REPAIR_POLICY_ABSENT ||
            repair_step_opcode(patient->plan.step) == NULL) {
            decision = leave_needed(patient);
        } else if (patient->policy.type < patient->plan.needed) {
            decision = record_enoperm(watcher, decisions, patient, changes);
        } else {
            decision = begin_repair(watcher, patient, changes);
            pending = true;
        }
    }
    if (decision != NULL)
        decisions_record(decisions, watcher->env, decision, changes);
    return pending;
}

/* --- second half: one step further with those that are pending --- */

/* Jobs that carry the repair's id and are not in its list: submitted just before a crash. */
static void find_lost_jobs(const struct watcher *watcher, struct repair_tag *tag)
{
    g_autofree char *prefix = g_strdup_printf("%s/", tag->id);
    g_autoptr(GPtrArray) jobs = config_list(follow_config(watcher->follow), "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, job->id);
        if (!g_str_has_prefix(job->request_id, prefix) ||
            g_strv_contains((const char *const *)tag->jobs, id))
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
    enum job_outcome last;
    char *message; /* of the last failure */
};

static struct history read_history(const struct watcher *watcher, const struct repair_tag *tag)
{
    struct history history = {.last = JOB_SUCCEEDED};
    for (guint i = 0; tag->jobs[i] != NULL; i++) {
        g_autofree char *message = NULL;
        history.last =
            watcher_job_outcome(watcher, g_ascii_strtoull(tag->jobs[i], NULL, 10), &message);
        history.under_way |= history.last == JOB_UNDER_WAY;
        if (history.last == JOB_SUCCEEDED) {
            history.steps++;
            history.failures = 0;
        } else if (history.last != JOB_UNDER_WAY) {
            history.failures++;
            g_free(history.message);
            history.message = g_steal_pointer(&message);
        }
    }
    return history;
}

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

/* Adds the job to the pending tag: a new copy in, the old ones out, in one commit (ARP-31, ARP-32).
 */
static void note_job(const struct watcher *watcher, const struct patient *patient,
                     const struct record_tag *record, guint64 job, GPtrArray *changes)
{
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, job);
    g_autoptr(GPtrArray) jobs = g_ptr_array_new();
    for (guint i = 0; record->tag.jobs[i] != NULL; i++)
        g_ptr_array_add(jobs, record->tag.jobs[i]);
    if (job != 0 && !g_strv_contains((const char *const *)record->tag.jobs, id))
        g_ptr_array_add(jobs, id);
    g_ptr_array_add(jobs, NULL);
    g_autofree char *text = repair_tag_pending(
        record->tag.type, record->tag.id, record->tag.timestamp, (const char *const *)jobs->pdata);
    if (record->texts->len == 1 && g_str_equal(record->texts->pdata[0], text))
        return;
    bool there = false;
    for (guint i = 0; i < record->texts->len; i++) {
        if (g_str_equal(record->texts->pdata[i], text))
            there = true;
        else
            drop_tag(watcher, patient, record->texts->pdata[i], changes);
    }
    if (!there)
        put_tag(watcher, patient, text, changes);
}

static void take_step(struct watcher *watcher, struct decisions *decisions, struct patient *patient,
                      struct record_tag *record, const struct history *history)
{
    const char *step = repair_step_name(patient->plan.step);
    g_autofree char *request_id = g_strdup_printf("%s/%u-%s/%u", record->tag.id, history->steps + 1,
                                                  step, history->failures + 1);
    g_autofree char *reason = g_strdup_printf("repair %s", record->tag.id);
    json_t *opcode = json_make("{ssss}", "OP_ID", repair_step_opcode(patient->plan.step),
                               "instance_name", patient->instance->name);
    g_autoptr(GError) error = NULL;
    guint64 job =
        watcher_submit(watcher, opcode, request_id, reason, record->tag.timestamp, &error);
    g_autoptr(GPtrArray) changes = new_changes();
    struct decision *decision;
    if (job == 0) {
        decision = decide(patient, VERDICT_WAIT, "Pending repair", "%s could not be submitted: %s",
                          step, error->message);
        set_next_check(decision, "in the next pass");
    } else {
        note_job(watcher, patient, record, job, changes);
        decision = decide(patient, VERDICT_ACT, "Pending repair", "Step %u of the repair: %s%s.",
                          history->steps + 1, step, history->failures > 0 ? ", again" : "");
        g_ptr_array_add(decision->jobs, g_strdup_printf("%" G_GUINT64_FORMAT, job));
        set_next_check(decision, "when the job has ended");
    }
    finish(watcher, decisions, decision, changes);
}

static void conclude_healthy(struct watcher *watcher, struct decisions *decisions,
                             struct patient *patient)
{
    g_autoptr(GPtrArray) changes = new_changes();
    for (guint i = 0; i < patient->pending->len; i++)
        conclude(watcher, patient, patient->pending->pdata[i], REPAIR_SUCCESS, changes);
    trim_results(watcher, patient, patient->pending->len, changes);
    struct decision *decision =
        decide(patient, VERDICT_DONE, "Healthy",
               "All its nodes are online and its replica is in sync: repaired.");
    if (finish(watcher, decisions, decision, changes))
        watcher_move(patient->watched, patient->instance->name, REPAIR_HEALTHY, "repaired");
}

static void conclude_short(struct watcher *watcher, struct decisions *decisions,
                           struct patient *patient, struct record_tag *record,
                           enum repair_outcome outcome, const char *why)
{
    g_autoptr(GPtrArray) changes = new_changes();
    conclude(watcher, patient, record, outcome, changes);
    trim_results(watcher, patient, outcome == REPAIR_ENOPERM ? 1 : 0, changes);
    bool failed = outcome == REPAIR_FAILURE;
    struct decision *decision =
        decide(patient, VERDICT_LEAVE, failed ? "Failed" : "Needs repair",
               "Repair %s ended with %s: %s.", record->tag.id, repair_outcome_name(outcome), why);
    if (finish(watcher, decisions, decision, changes))
        watcher_move(patient->watched, patient->instance->name,
                     failed ? REPAIR_FAILED : REPAIR_NEEDED, why);
}

static void wait_for(struct watcher *watcher, struct decisions *decisions,
                     const struct patient *patient, struct record_tag *record, const char *what,
                     const char *next)
{
    g_autoptr(GPtrArray) changes = new_changes();
    note_job(watcher, patient, record, 0,
             changes); /* a job that was found again is added to the list */
    struct decision *decision = decide(patient, VERDICT_WAIT, "Pending repair", "%s", what);
    set_next_check(decision, next);
    finish(watcher, decisions, decision, changes);
}

static void treat(struct watcher *watcher, struct decisions *decisions, struct patient *patient)
{
    struct record_tag *record = patient->pending->pdata[0];
    find_lost_jobs(watcher, &record->tag);
    struct history history = read_history(watcher, &record->tag);
    g_autofree char *message = history.message;
    g_autofree char *reason = NULL;
    const struct repair_plan *plan = &patient->plan;
    if (history.under_way)
        wait_for(watcher, decisions, patient, record, "A job of this repair is under way.",
                 "when the job has ended");
    else if (plan->healthy)
        conclude_healthy(watcher, decisions, patient);
    else if (history.last == JOB_FAILED || history.last == JOB_LOST)
        conclude_short(watcher, decisions, patient, record, REPAIR_FAILURE, message);
    else if (history.failures >= LIMIT_REPAIR_TRIES && history.last == JOB_SAFE)
        conclude_short(watcher, decisions, patient, record, REPAIR_FAILURE, message);
    else if (plan->wait)
        wait_for(watcher, decisions, patient, record, "Its replica is being copied.",
                 "when the copy is ready");
    else if (plan->step_type > record->tag.type)
        conclude_short(watcher, decisions, patient, record, REPAIR_ENOPERM,
                       "the next step is above the type of this repair");
    else if (repair_step_opcode(plan->step) == NULL)
        wait_for(watcher, decisions, patient, record,
                 "The next step would give up its data and is left to a person.",
                 "when its nodes or its replica change");
    else if (at_work(watcher, patient->instance))
        wait_for(watcher, decisions, patient, record, "Another job is at work on it.",
                 "when that job has ended");
    else if (!has_room(watcher, patient, &reason))
        wait_for(watcher, decisions, patient, record, reason, "when a node has room");
    else
        take_step(watcher, decisions, patient, record, &history);
}

void watcher_repair(struct watcher *watcher, struct decisions *decisions)
{
    g_autoptr(GPtrArray) pending = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) changes = new_changes();
    g_autoptr(GPtrArray) instances = config_list(follow_config(watcher->follow), "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        struct patient *patient = examine(watcher, instance->uuid);
        if (triage(watcher, decisions, patient, changes))
            g_ptr_array_add(pending, g_strdup(instance->uuid));
        patient_free(patient);
    }
    /* All new pending tags come before the first job (ARP-63). */
    if (changes->len > 0 && !watcher_commit(watcher, changes))
        return;
    for (guint i = 0; i < pending->len && !task_group_killed(watcher->env->tasks); i++) {
        struct patient *patient = examine(watcher, pending->pdata[i]);
        if (patient == NULL)
            continue;
        if (patient->pending->len > 0 && !patient->failed &&
            patient->policy.kind != REPAIR_POLICY_SUSPENDED)
            treat(watcher, decisions, patient);
        patient_free(patient);
    }
}
