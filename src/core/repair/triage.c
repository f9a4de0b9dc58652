/*
 * The first half of auto-repair: which state each instance is in, and who becomes pending
 * (requirements-auto-repair.md, section 4). See patient.h.
 */
#include "core/repair/patient.h"

static struct decision *record_healthy(const struct watcher *watcher, const struct patient *patient)
{
    const struct decision *latest = watcher_latest(watcher, patient->instance->uuid, REPAIR_AUTHOR);
    /* What was never broken needs no record. */
    if (latest == NULL || g_str_equal(latest->state, "Healthy"))
        return NULL;
    return patient_decide(patient, VERDICT_DONE, "Healthy", "%s.",
                          repair_healthy_text(patient->instance->disk_template));
}

/* What a person can do. Installing anew gives data up that may come back with their node. */
static char *how_to_allow(const struct watcher *watcher, const struct patient *patient)
{
    const struct instance *instance = patient->instance;
    const struct config *config = follow_config(watcher->follow);
    const char *type = repair_type_name(patient->plan.needed);
    if (patient->plan.needed != REPAIR_REINSTALL)
        return g_strdup_printf("To allow it: fettle repair policy instance %s %s.", instance->name,
                               type);
    const char *node = config_node_name(config, instance->primary_node);
    return g_strdup_printf("Its data are on %s: bring that node back, then fettle node modify %s "
                           "--offline no. To give the data up and install it anew: fettle repair "
                           "policy instance %s %s.",
                           node, node, instance->name, type);
}

/* Too weak a policy goes on record once for as long as situation and policy stay the same (ARP-47,
 * */
static struct decision *record_enoperm(struct watcher *watcher, const struct patient *patient,
                                       GPtrArray *changes)
{
    g_autofree char *how = how_to_allow(watcher, patient);
    struct decision *decision = patient_decide(
        patient, VERDICT_LEAVE, "Needs repair, disallowed",
        "The repair needs %s, the policy allows %s: nothing is done. %s",
        repair_type_name(patient->plan.needed), repair_type_name(patient->policy.type), how);
    g_ptr_array_add(decision->rejected,
                    g_strdup_printf("%s: above the policy", repair_step_name(patient->plan.step)));
    decision_set(&decision->next_check, "when its nodes, its replica or its policy change");
    const struct decision *latest = watcher_latest(watcher, patient->instance->uuid, REPAIR_AUTHOR);
    if (watcher_shadow(watcher)) {
        decision_set(&decision->state, "Needs repair, shadow mode");
        return decision;
    }
    if (latest != NULL && g_str_equal(latest->summary, decision->summary) &&
        g_str_equal(latest->state, decision->state)) {
        decision_set(&decision->repair_id, "%s", latest->repair_id);
        return decision;
    }
    g_autofree char *id = env_uuid(watcher->env);
    g_autofree char *text =
        repair_tag_result(patient->plan.needed, id, watcher_now(watcher), REPAIR_ENOPERM, NULL);
    patient_put_tag(watcher, patient, text, changes);
    patient_trim_results(watcher, patient, 1, changes);
    decision_set(&decision->repair_id, "%s", id);
    return decision;
}

static struct decision *begin_repair(struct watcher *watcher, const struct patient *patient,
                                     GPtrArray *changes)
{
    g_autofree char *id = env_uuid(watcher->env);
    g_autofree char *text =
        repair_tag_pending(patient->plan.needed, id, watcher_now(watcher), NULL);
    patient_put_tag(watcher, patient, text, changes);
    struct decision *decision = patient_decide(
        patient, VERDICT_WAIT, "Pending repair",
        "It needs repair of type %s, which its policy allows; first step: %s.",
        repair_type_name(patient->plan.needed), repair_step_name(patient->plan.step));
    decision_set(&decision->repair_id, "%s", id);
    decision_set(&decision->next_check, "now");
    return decision;
}

static struct decision *shadow_repair(const struct patient *patient)
{
    struct decision *decision = patient_decide(
        patient, VERDICT_LEAVE, "Needs repair, shadow mode",
        REPAIR_SHADOW "a repair of type %s would begin now; first step: %s.",
        repair_type_name(patient->plan.needed), repair_step_name(patient->plan.step));
    decision_set(&decision->next_check, "when shadow mode is switched off");
    return decision;
}

static struct decision *leave_not_enabled(const struct patient *patient)
{
    struct decision *decision =
        patient_decide(patient, VERDICT_LEAVE, "Needs repair, not enabled",
                       "It needs repair of type %s, but auto-repair is not enabled for it.",
                       repair_type_name(patient->plan.needed));
    decision_set(&decision->next_check, "when its nodes, its replica or its policy change");
    return decision;
}

static struct decision *leave_to_person(const struct patient *patient)
{
    struct decision *decision =
        patient_decide(patient, VERDICT_LEAVE, "Needs repair, by hand", "%s", patient->plan.left);
    decision_set(&decision->next_check, "when its nodes, its replica or its policy change");
    return decision;
}

/* Broken, and nothing is pending yet. */
static struct decision *judge_needed(struct watcher *watcher, const struct patient *patient,
                                     GPtrArray *changes, bool *ret_pending)
{
    g_autofree char *causes = repair_plan_causes(&patient->plan);
    watcher_move(patient->watched, patient->instance->name, REPAIR_NEEDED, causes);
    if (patient->plan.left != NULL)
        return leave_to_person(patient);
    if (patient->policy.kind == REPAIR_POLICY_ABSENT)
        return leave_not_enabled(patient);
    if (patient->policy.type < patient->plan.needed)
        return record_enoperm(watcher, patient, changes);
    if (watcher_shadow(watcher))
        return shadow_repair(patient);
    *ret_pending = true;
    return begin_repair(watcher, patient, changes);
}

/* Suspension is a property of the policy, not a state: what it is besides is shown too. */
static struct decision *leave_suspended(const struct patient *patient)
{
    struct decision *decision =
        patient_decide(patient, VERDICT_LEAVE, patient->failed ? "Suspended, failed" : "Suspended",
                       "Repair is suspended: nothing is touched.");
    decision_set(&decision->next_check, "%s",
                 patient->policy.forever ? "when the suspend tag is removed"
                                         : "when the suspension ends or its tag is removed");
    return decision;
}

static struct decision *leave_failed(const struct patient *patient)
{
    watcher_move(patient->watched, patient->instance->name, REPAIR_FAILED,
                 "a failure result stands");
    struct decision *decision = patient_decide(
        patient, VERDICT_LEAVE, "Failed",
        "An earlier repair failed: nothing is touched until its failure tag is removed.");
    patient_reject_others(patient, decision);
    decision_set(&decision->next_check, "when the failure tag is removed");
    return decision;
}

/* A copy that runs mends the replica by itself; what else is broken waits for it. */
static struct decision *wait_for_copy(const struct patient *patient)
{
    if (patient->plan.needed == REPAIR_FIX_STORAGE)
        return NULL;
    struct decision *decision = patient_decide(
        patient, VERDICT_WAIT, "Needs repair, copying",
        "It needs repair of type %s; its replica is being copied, and until then nothing is done.",
        repair_type_name(patient->plan.needed));
    decision_set(&decision->next_check, "when the copy is ready");
    return decision;
}

bool repair_triage(struct watcher *watcher, struct patient *patient, GPtrArray *changes)
{
    struct decision *decision = NULL;
    bool pending = false;
    if (patient->policy.kind == REPAIR_POLICY_SUSPENDED) {
        decision = leave_suspended(patient);
    } else if (patient->failed) {
        decision = leave_failed(patient);
    } else if (patient->pending->len > 0) {
        pending = true;
    } else if (patient->plan.healthy && patient->doubt != NULL) {
        decision = NULL; /* what is on record of it stays true until more is known */
    } else if (patient->plan.healthy) {
        watcher_move(patient->watched, patient->instance->name, REPAIR_HEALTHY,
                     "nothing is broken");
        decision = record_healthy(watcher, patient);
    } else if (patient_at_work(watcher, patient->instance)) {
        decision = NULL;
    } else if (patient->plan.wait) {
        decision = wait_for_copy(patient);
    } else {
        decision = judge_needed(watcher, patient, changes, &pending);
    }
    if (decision != NULL)
        watcher_record(watcher, decision, changes);
    return pending;
}
