/* See judge.h. */
#include "core/recovery/judge.h"

#include <string.h>

/* What finishes a task, in words. */
static const struct {
    const char *opcode, *text;
} finishers[] = {
    {"OP_INSTANCE_SETTLE", "kept if it runs or is whole, else removed"},
    {"OP_INSTANCE_MIGRATE", "settled where it is"},
    {"OP_INSTANCE_GROW_DISK", "given the sizes on record"},
    {"OP_INSTANCE_RECREATE_DISKS", "given the disks that are there, or new ones"},
    {"OP_INSTANCE_REINSTALL", "installed again"},
    {"OP_INSTANCE_STARTUP", "started"},
    {"OP_INSTANCE_SHUTDOWN", "closed"},
};

const char *judge_finisher_text(const char *finisher)
{
    for (guint i = 0; i < G_N_ELEMENTS(finishers); i++)
        if (strcmp(finishers[i].opcode, finisher) == 0)
            return finishers[i].text;
    return "finished";
}

void judgement_free(struct judgement *judgement)
{
    if (!judgement)
        return;
    g_free(judgement->why);
    g_ptr_array_unref(judgement->evidence);
    g_free(judgement);
}

/* The data that were thought to be lost are there after all: that is to be found out before
 * anything is given up. */
static bool its_replica_is_back(const struct config *config, const struct instance *instance)
{
    const struct replica *replica =
        *instance->replica ? config_get(config, "replica", instance->replica, NULL) : NULL;
    return replica && replica->state == REPLICA_IN_SYNC &&
           !recovery_host_dead(config, replica->node);
}

/* The outcome does not depend on what hosts show. */
static bool needs_no_look(const struct config *config, const struct instance *instance)
{
    if (instance->task_state == TASK_MIGRATING)
        return *instance->migration != '\0';
    return instance->task_state == TASK_RECREATING_DISKS &&
           recovery_host_dead(config, instance->primary_node) &&
           its_replica_is_back(config, instance);
}

static enum event_level level_of(const struct task_outcome *outcome)
{
    if (outcome->flags & OUTCOME_ALERT_HIGH)
        return EVENT_LEVEL_CRITICAL;
    if (outcome->final == TASK_FINAL_ERROR && !outcome->finisher)
        return EVENT_LEVEL_ERROR;
    return outcome->flags & OUTCOME_ALERT ? EVENT_LEVEL_WARNING : EVENT_LEVEL_INFO;
}

/* Of what is made or removed whole, and whose replica is not as the record says: that only a job
 * may change (SAF-81). */
static bool needs_its_replica_settled(const struct recovery_view *view,
                                      const struct instance *instance,
                                      const struct judgement *judgement)
{
    return strcmp(judgement->task->finisher, "OP_INSTANCE_SETTLE") == 0 &&
           judgement->how == JUDGED_SETTLED && instance_replica_gone(view, instance);
}

static void take_outcome(struct judgement *judgement, const struct task_facts *facts,
                         struct task_outcome outcome)
{
    judgement->rule = outcome.rule;
    judgement->level = level_of(&outcome);
    judgement->alert = outcome.flags & (OUTCOME_ALERT | OUTCOME_ALERT_HIGH);
    judgement->finisher = outcome.finisher;
    judgement->runs = facts->values[1] == TASK_FACT_RUNNING;
    judgement->final = outcome.final == TASK_FINAL_KEEP ? "" : task_final_words[outcome.final];
    judgement->how = outcome.finisher                      ? JUDGED_FINISH
                     : outcome.final == TASK_FINAL_REMOVED ? JUDGED_REMOVED
                     : outcome.final == TASK_FINAL_ERROR   ? JUDGED_ERROR
                                                           : JUDGED_SETTLED;
    g_autofree char *found = instance_facts_text(facts);
    if (judgement->evidence->len > 0) /* hosts were looked at */
        g_ptr_array_add(judgement->evidence, g_strdup_printf("judged as: %s", found));
    if (judgement->how == JUDGED_ERROR)
        judgement->why = g_steal_pointer(&found);
}

struct judgement *judge_instance(const struct recovery_view *view, const struct instance *instance)
{
    const char *word = enum_word(&task_state_words, (int)instance->task_state);
    const struct task_row *task = task_row_of(TASK_KIND_instance, word);
    if (!task)
        return NULL;
    struct judgement *judgement = g_new0(struct judgement, 1);
    struct task_facts facts = {{0}};
    enum rectify_unstable rectify = config_cluster(view->config)->recovery_rectify_unstable;
    *judgement = (struct judgement){
        .task = task, .rule = "", .final = "", .evidence = g_ptr_array_new_with_free_func(g_free)};
    enum look_end end =
        needs_no_look(view->config, instance)
            ? LOOK_SEEN
            : instance_facts(view, instance, task, &facts, judgement->evidence, &judgement->why);
    if (end != LOOK_SEEN) {
        judgement->how = end == LOOK_BUSY ? JUDGED_BUSY : JUDGED_BLIND;
        return judgement;
    }
    bool moves = *instance->migration != '\0';
    take_outcome(judgement, &facts, task_outcome_of(task, &facts, moves, rectify));
    if (needs_its_replica_settled(view, instance, judgement)) {
        judgement->how = rectify == RECTIFY_NO ? JUDGED_ERROR : JUDGED_FINISH;
        judgement->finisher = rectify == RECTIFY_NO ? NULL : task->finisher;
        judgement->level = rectify == RECTIFY_NO ? EVENT_LEVEL_ERROR : EVENT_LEVEL_WARNING;
        judgement->why = g_strdup("it is whole, but its replica is not as on record");
        g_ptr_array_add(judgement->evidence, g_strdup("images of its replica are missing"));
    }
    return judgement;
}
