/*
 * What holds a queued job back beside its turn and its dependencies: rules of operators, limits of
 * its own reasons, and locks for which it would only wait (LUX-13, D-6). A job that is held is set
 * aside under what it waits for, and looked at again when that has changed; so a long queue behind
 * one lock costs nothing meanwhile.
 *
 * Of locks the scheduler knows what the present opcodes of running jobs declare (predict_locks.h).
 * A job that has been set aside for LIMIT_HOLD_PATIENCE_S because of locks reserves its own: what
 * comes later and would take them waits behind it. Of two that want the same the one that has been
 * set aside for longer has the reservation, so nobody starves.
 */
#pragma once

#include "core/job/rules.h"
#include "core/queue/context.h"

struct holds *holds_new(struct queue_context *context);
void holds_free(struct holds *holds);

/* The queue has changed: takes in which jobs run, and of those what they are at. What waited for
 * something that is over is ready again. Called before a round of holds_allow(). */
void holds_look(struct holds *holds);
/* Whether the job may start now; if not it has been set aside. */
bool holds_allow(struct holds *holds, struct queue_job *job);
/* Whether one that is about to be submitted might. */
bool holds_allow_new(struct holds *holds, const struct job *job);
/* It does. */
void holds_started(struct holds *holds, struct queue_job *job);

/* Before anything else is made of a change of rules: those that went are freed already. */
void holds_rules_stale(struct holds *holds);
/* Rules have changed: everybody is looked at again, and whom a rule rejects will be ended. */
void holds_rules_changed(struct holds *holds);
/* The record of a job has changed, but not its state: its opcodes may have other priorities, of
 * which rules speak. It is looked at again. */
void holds_job_changed(struct holds *holds, struct queue_job *job);
/* What instances and nodes are has changed: what jobs will ask for may have too. */
void holds_objects_changed(struct holds *holds);
/* The rule that refuses a job; NULL: none does. Borrowed. */
const struct rule *holds_rejected(const struct holds *holds, const struct job *job);
/* All that keeps a queued job from starting at this moment, whether its turn has come or not: a
 * list of {"kind", "why", "since", "until", "job"}, as the field `holds` of jobs has it. Sets
 * nothing aside. */
json_t *holds_explain(struct holds *holds, struct queue_job *job);
/* `filter UUID ("text of its reason")`; free with g_free(). */
char *holds_rule_name(const struct rule *rule);
