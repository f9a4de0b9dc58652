/*
 * OP_RECOVERY_RESET: a person's word on what an instance is that is stuck, or in ERROR, which
 * recovery cannot, or need not, find out (RCV-30). Nothing is done to the guest or its disks; a job
 * that was to finish the task finds it gone (op_task.c).
 */
#include "core/config/fault.h"
#include "core/config/resource.h"
#include "core/job/job_state.h"
#include "core/job/reason.h"
#include "core/ops/instance.h"
#include "core/ops/ops.h"

#include <string.h>

static bool reset_declare(struct op *op, GError **error)
{
    const struct op_recovery_reset *params = op->params;
    const struct instance *instance = op_declare_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    op_lock_node(op, instance->migration_node, LOCK_SHARED);
    return true;
}

/* --- whether there is something to be said --- */

static bool params_are_good(const struct op *op, GError **error)
{
    const struct op_recovery_reset *params = op->params;
    static const char *const states[] = {"active", "stopped", "error", NULL};
    if (resource_type_named(params->kind) >= 0)
        fettle_set_error(
            error, WRONG_INPUT, "kind: must be instance; of %s %s say: fettle %s reset-state",
            resource_article(resource_type_of(params->kind)), params->kind, params->kind);
    else if (strcmp(params->kind, "instance") != 0)
        fettle_set_error(error, WRONG_INPUT, "kind: must be instance, not \"%s\"", params->kind);
    else if (!g_strv_contains(states, params->state))
        fettle_set_error(error, WRONG_INPUT, "state: must be one of active, stopped, error");
    else if (!reason_given(op->common->reason))
        fettle_set_error(error, WRONG_INPUT, "reason: is required: what was seen, and by whom");
    else
        return true;
    return false;
}

static bool is_stuck(const struct op *op, const struct instance *instance, GError **error)
{
    if (instance->task_state != TASK_NONE ||
        fault_of(op_config(op), "instance", instance->uuid) != NULL)
        return true;
    fettle_set_error(error, WRONG_STATE, "instance \"%s\": nothing is stuck", instance->name);
    return false;
}

static bool owner_is_dead(const struct op *op, const struct instance *instance, GError **error)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, instance->task_owner);
    const struct job *owner = config_get(op_config(op), "job", key, NULL);
    if (!owner || job_state_final(job_state_of(owner)))
        return true;
    fettle_set_error(
        error, TEMPORARY,
        "instance \"%s\": job %s is %s it and has not ended (%s); end it first: fettle "
        "job cancel %s --kill",
        instance->name, key, enum_word(&task_state_words, (int)instance->task_state), owner->status,
        key);
    return false;
}

/* --- whether the nodes say otherwise --- */

/* One that does not answer may run (SAF-90). */
static bool needs_stopped(const struct op *op, const struct instance *instance, GError **error)
{
    const char *nodes[4];
    for (guint i = instance_hosts(instance, nodes); i > 0; i--) {
        const struct guest_report *guest = report_guest(op_report(op, nodes[i - 1]), instance);
        if (!guest || (guest->state != GUEST_RUNNING && !guest->late))
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\": %s reports that it %s; stop it: fettle instance "
                         "shutdown %s",
                         instance->name, op_node_name(op, nodes[i - 1]),
                         guest->late ? "is there and does not answer" : "runs", instance->name);
        return false;
    }
    return true;
}

static bool needs_running(const struct op *op, const struct instance *instance, GError **error)
{
    const char *node = *instance->holder ? instance->holder : instance->primary_node;
    const struct node_report *report = op_report(op, node);
    const struct guest_report *guest = report_guest(report, instance);
    if (guest && !guest->late && report_runs(report, instance))
        return true;
    g_autofree char *silence = report ? NULL : op_no_report(op, node);
    fettle_set_error(error, WRONG_STATE,
                     "instance \"%s\": %s, where it is on record, %s; say that it is stopped, and "
                     "then: fettle instance startup %s",
                     instance->name, op_node_name(op, node),
                     silence                         ? silence
                     : !guest                        ? "reports no process of it"
                     : guest->late                   ? "reports that it does not answer"
                     : guest->state == GUEST_RUNNING ? "reports that another generation of it runs"
                                                     : "reports a process of it that does not run",
                     instance->name);
    return false;
}

/* Its nodes alone know who goes on with it, and without its mark nobody would ask them (SAF-17). */
static bool needs_no_migration(const struct instance *instance, GError **error)
{
    if (!*instance->migration)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "a migration of instance \"%s\" has not been settled, which finds out where "
                     "it runs; say: fettle instance migrate %s --cleanup",
                     instance->name, instance->name);
    return false;
}

static bool reset_check(struct op *op, GError **error)
{
    const struct op_recovery_reset *params = op->params;
    if (!params_are_good(op, error))
        return false;
    const struct instance *found =
        config_find(op_config(op), "instance", params->instance_name, error);
    if (!found || !is_stuck(op, found, error) || !owner_is_dead(op, found, error))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    if (!strcmp(params->state, "error"))
        return true;
    return needs_no_migration(found, error) && instance_gather_hosts(op, instance, error) &&
           (!strcmp(params->state, "stopped") ? needs_stopped(op, instance, error)
                                              : needs_running(op, instance, error));
}

/* --- the word --- */

/* As it may stand in a record, with a few words before it; free with g_free(). */
static char *reason_of(const struct op *op)
{
    const char *given = reason_given(op->common->reason);
    return g_utf8_substring(given, 0, MIN(g_utf8_strlen(given, -1), LIMIT_REASON_CHARS));
}

static const char *state_of(const struct instance *instance, const struct fault *fault)
{
    return fault ? "error" : instance->admin_state == ADMIN_UP ? "active" : "stopped";
}

/* What the nodes said is on record beside it. */
static void add_sights(const struct op *op, const struct instance *instance, GPtrArray *evidence)
{
    const char *nodes[4];
    guint count = instance_hosts(instance, nodes);
    for (guint i = 0; i < count && op->reports; i++) {
        const struct node_report *report = op_report(op, nodes[i]);
        const struct guest_report *guest = report_guest(report, instance);
        g_autofree char *silence = report ? NULL : op_no_report(op, nodes[i]);
        const char *sight =
            guest ? enum_word(&guest_state_words, (int)guest->state) : "no process of it";
        g_ptr_array_add(evidence, g_strdup_printf("%s: %s", op_node_name(op, nodes[i]),
                                                  silence ? silence : sight));
    }
}

static json_t *decision_of(const struct op *op, const struct instance *instance,
                           const struct fault *fault, const char *uuid)
{
    const struct op_recovery_reset *params = op->params;
    bool marked = instance->task_state != TASK_NONE;
    record_autoptr(decision) decision = decision_new();
    g_autofree char *reason = reason_of(op);
    g_autofree char *summary =
        g_strdup_printf("A person says that it is %s: %s", params->state, reason);
    text_set(&decision->uuid, uuid);
    text_set(&decision->author, "person");
    text_set(&decision->subject_kind, "instance");
    text_set(&decision->subject, instance->uuid);
    text_set(&decision->subject_name, instance->name);
    decision->at_us = (guint64)op->env->ops->wall_us(op->env);
    text_set(&decision->state, "Reset");
    decision->verdict = VERDICT_ACT;
    text_set(&decision->summary, summary);
    add_sights(op, instance, decision->evidence);
    g_ptr_array_add(decision->jobs, g_strdup_printf("%" G_GUINT64_FORMAT, op->job));
    decision->event = EVENT_RECOVERED;
    text_set(&decision->task, marked  ? enum_word(&task_state_words, (int)instance->task_state)
                              : fault ? fault->task
                                      : "");
    text_set(&decision->old, state_of(instance, fault));
    text_set(&decision->new, params->state);
    return decision_to_json(decision);
}

/* What its task forbids stays forbidden (SAF-84). */
static json_t *fault_by_person(const struct op *op, const struct instance *instance,
                               const struct fault *before)
{
    g_autofree char *reason = reason_of(op);
    bool marked = instance->task_state != TASK_NONE;
    record_autoptr(fault) fault = before ? fault_copy(before) : fault_new();
    text_set(&fault->subject_kind, "instance");
    text_set(&fault->subject, instance->uuid);
    fault->at_us = (guint64)op->env->ops->wall_us(op->env);
    text_set(&fault->message, reason);
    if (!before)
        text_set(&fault->state_before, state_of(instance, NULL));
    if (marked) {
        text_set(&fault->task, enum_word(&task_state_words, (int)instance->task_state));
        fault->owner = instance->task_owner;
        fault->since = instance->task_since;
    }
    text_set(&fault->rule, FAULT_BY_PERSON);
    fault->level = EVENT_LEVEL_ERROR;
    fault->blind = false;
    fault->again = false;
    return fault_to_json(fault);
}

static void put_instance(struct op *op, GPtrArray *changes, const struct instance *found,
                         bool to_error)
{
    record_autoptr(instance) instance = instance_copy(found);
    instance->task_state = TASK_NONE;
    instance->task_owner = 0;
    instance->task_since = 0;
    if (!to_error)
        instance->task_over = TASK_NONE;
    op_put(op, changes, "instance", instance->uuid, instance_to_json(instance));
}

/* `data`: UUID of the decision. */
static bool build_reset(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_recovery_reset *params = op->params;
    const struct instance *found =
        config_find(op_config(op), "instance", params->instance_name, error);
    if (!found || !is_stuck(op, found, error) || !owner_is_dead(op, found, error))
        return false;
    g_autofree char *key = fault_key("instance", found->uuid);
    const struct fault *fault = fault_of(op_config(op), "instance", found->uuid);
    bool to_error = !strcmp(params->state, "error");
    op_put(op, changes, "decision", data, decision_of(op, found, fault, data));
    if (to_error)
        op_put(op, changes, "fault", key, fault_by_person(op, found, fault));
    else if (fault)
        op_delete(op, changes, "fault", key);
    if (config_get(op_config(op), "stuck", key, NULL))
        op_delete(op, changes, "stuck", key);
    put_instance(op, changes, found, to_error);
    return true;
}

static bool reset_exec(struct op *op, GError **error)
{
    g_autofree char *decision = env_uuid(op->env);
    return op_commit_built(op, "reset_recovery", build_reset, decision, error);
}

const struct op_impl ops_recovery[] = {
    {"OP_RECOVERY_RESET", reset_declare, reset_check, reset_exec, SEES_NAMED},
    {NULL},
};
