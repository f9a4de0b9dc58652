/*
 * The first half of auto-repair: which state each instance is in, and who becomes pending
 * (requirements-auto-repair.md, section 4). See repair_case.h.
 */
#include "core/repair/repair_case.h"
#include "core/repair/stand.h"

static struct decision *record_healthy(const struct watcher *watcher,
                                       const struct repair_case *subject)
{
    const struct decision *latest = watcher_latest(watcher, subject->instance->uuid, REPAIR_AUTHOR);
    /* What was never broken needs no record. */
    if (latest == NULL || g_str_equal(latest->state, "Healthy"))
        return NULL;
    return repair_case_decide(subject, VERDICT_DONE, "Healthy", "%s.",
                              repair_healthy_text(subject->instance->disk_template));
}

/* What a person can do. Installing anew gives data up that may come back with their node. */
static char *how_to_allow(const struct watcher *watcher, const struct repair_case *subject)
{
    const struct instance *instance = subject->instance;
    const struct config *config = follow_config(watcher->follow);
    const char *type = repair_type_name(subject->plan.needed);
    if (subject->plan.needed != REPAIR_REINSTALL)
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
static struct decision *record_enoperm(struct watcher *watcher, const struct repair_case *subject,
                                       GPtrArray *changes)
{
    g_autofree char *how = how_to_allow(watcher, subject);
    struct decision *decision = repair_case_decide(
        subject, VERDICT_LEAVE, "Needs repair, disallowed",
        "The repair needs %s, the policy allows %s: nothing is done. %s",
        repair_type_name(subject->plan.needed), repair_type_name(subject->policy.type), how);
    g_ptr_array_add(decision->rejected,
                    g_strdup_printf("%s: above the policy", repair_step_name(subject->plan.step)));
    decision_set(&decision->next_check, "when its nodes, its replica or its policy change");
    const struct decision *latest = watcher_latest(watcher, subject->instance->uuid, REPAIR_AUTHOR);
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
        repair_tag_result(subject->plan.needed, id, watcher_now(watcher), REPAIR_ENOPERM, NULL);
    repair_case_put_tag(watcher, subject, text, changes);
    repair_case_trim_results(watcher, subject, 1, changes);
    decision_set(&decision->repair_id, "%s", id);
    return decision;
}

static struct decision *begin_repair(struct watcher *watcher, const struct repair_case *subject,
                                     GPtrArray *changes)
{
    g_autofree char *id = env_uuid(watcher->env);
    g_autofree char *text =
        repair_tag_pending(subject->plan.needed, id, watcher_now(watcher), NULL);
    repair_case_put_tag(watcher, subject, text, changes);
    struct decision *decision = repair_case_decide(
        subject, VERDICT_WAIT, "Pending repair",
        "It needs repair of type %s, which its policy allows; first step: %s.",
        repair_type_name(subject->plan.needed), repair_step_name(subject->plan.step));
    decision_set(&decision->repair_id, "%s", id);
    decision_set(&decision->next_check, "now");
    return decision;
}

static struct decision *shadow_repair(const struct repair_case *subject)
{
    struct decision *decision = repair_case_decide(
        subject, VERDICT_LEAVE, "Needs repair, shadow mode",
        REPAIR_SHADOW "a repair of type %s would begin now; first step: %s.",
        repair_type_name(subject->plan.needed), repair_step_name(subject->plan.step));
    decision_set(&decision->next_check, "when shadow mode is switched off");
    return decision;
}

static struct decision *leave_not_enabled(const struct repair_case *subject)
{
    struct decision *decision =
        repair_case_decide(subject, VERDICT_LEAVE, "Needs repair, not enabled",
                           "It needs repair of type %s, but auto-repair is not enabled for it.",
                           repair_type_name(subject->plan.needed));
    decision_set(&decision->next_check, "when its nodes, its replica or its policy change");
    return decision;
}

static struct decision *leave_to_person(const struct repair_case *subject)
{
    struct decision *decision = repair_case_decide(subject, VERDICT_LEAVE, "Needs repair, by hand",
                                                   "%s", subject->plan.left);
    decision_set(&decision->next_check, "when its nodes, its replica or its policy change");
    return decision;
}

/* Broken, nothing is pending yet, and it may be repaired. */
static struct decision *judge_allowed(struct watcher *watcher, const struct repair_case *subject,
                                      GPtrArray *changes, bool *ret_pending)
{
    if (watcher_shadow(watcher))
        return shadow_repair(subject);
    *ret_pending = true;
    return begin_repair(watcher, subject, changes);
}

/* Suspension is a property of the policy, not a state: what it is besides is shown too. */
static struct decision *leave_suspended(const struct repair_case *subject)
{
    struct decision *decision = repair_case_decide(
        subject, VERDICT_LEAVE, subject->failed ? "Suspended, failed" : "Suspended",
        "Repair is suspended: nothing is touched.");
    decision_set(&decision->next_check, "%s",
                 subject->policy.forever ? "when the suspend tag is removed"
                                         : "when the suspension ends or its tag is removed");
    return decision;
}

static struct decision *leave_failed(const struct repair_case *subject)
{
    watcher_move(subject->watched, subject->instance->name, REPAIR_FAILED,
                 "a failure result stands");
    struct decision *decision = repair_case_decide(
        subject, VERDICT_LEAVE, "Failed",
        "An earlier repair failed: nothing is touched until its failure tag is removed.");
    repair_case_reject_others(subject, decision);
    decision_set(&decision->next_check, "when the failure tag is removed");
    return decision;
}

/* A copy that runs mends the replica by itself; what else is broken waits for it. */
static struct decision *wait_for_copy(const struct repair_case *subject)
{
    if (subject->plan.needed == REPAIR_FIX_STORAGE)
        return NULL;
    struct decision *decision = repair_case_decide(
        subject, VERDICT_WAIT, "Needs repair, copying",
        "It needs repair of type %s; its replica is being copied, and until then nothing is done.",
        repair_type_name(subject->plan.needed));
    decision_set(&decision->next_check, "when the copy is ready");
    return decision;
}

/* It is broken, and that is on record of its machine. */
static void move_to_needed(const struct repair_case *subject)
{
    g_autofree char *causes = repair_plan_causes(&subject->plan);
    watcher_move(subject->watched, subject->instance->name, REPAIR_NEEDED, causes);
}

static struct decision *judge_broken(struct watcher *watcher, const struct repair_case *subject,
                                     enum repair_stand stand, GPtrArray *changes, bool *ret_pending)
{
    if (repair_case_at_work(watcher, subject->instance))
        return NULL;
    if (stand == STAND_COPYING)
        return wait_for_copy(subject);
    move_to_needed(subject);
    if (stand == STAND_LEFT)
        return leave_to_person(subject);
    if (stand == STAND_NOT_ENABLED)
        return leave_not_enabled(subject);
    return stand == STAND_ENOPERM ? record_enoperm(watcher, subject, changes)
                                  : judge_allowed(watcher, subject, changes, ret_pending);
}

/* What is on record of one in doubt stays true until more is known. */
static struct decision *judge_healthy(const struct watcher *watcher,
                                      const struct repair_case *subject)
{
    if (subject->doubt != NULL)
        return NULL;
    watcher_move(subject->watched, subject->instance->name, REPAIR_HEALTHY, "nothing is broken");
    return record_healthy(watcher, subject);
}

bool repair_triage(struct watcher *watcher, struct repair_case *subject, GPtrArray *changes)
{
    enum repair_stand stand = repair_stand_of(&subject->policy, subject->failed,
                                              subject->pending->len > 0, &subject->plan);
    struct decision *decision = NULL;
    bool pending = stand == STAND_PENDING;
    if (stand == STAND_SUSPENDED)
        decision = leave_suspended(subject);
    else if (stand == STAND_FAILED)
        decision = leave_failed(subject);
    else if (stand == STAND_HEALTHY)
        decision = judge_healthy(watcher, subject);
    else if (stand != STAND_PENDING)
        decision = judge_broken(watcher, subject, stand, changes, &pending);
    if (decision != NULL)
        watcher_record(watcher, decision, changes);
    return pending;
}
