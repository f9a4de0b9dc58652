/* See fault.h. */
#include "core/config/fault.h"

#include "proto/task_table.h"

char *fault_key(const char *subject_kind, const char *subject)
{
    return g_strconcat(subject_kind, "/", subject, NULL);
}

const struct fault *fault_of(const struct config *config, const char *subject_kind,
                             const char *subject)
{
    g_autofree char *key = fault_key(subject_kind, subject);
    return config_get(config, "fault", key, NULL);
}

enum task_state fault_mark(const struct config *config, const struct instance *instance,
                           const struct fault **ret_fault)
{
    if (ret_fault)
        *ret_fault = NULL;
    if (instance->task_state != TASK_NONE || !config_has_any(config, "fault"))
        return instance->task_state;
    const struct fault *fault = fault_of(config, "instance", instance->uuid);
    const struct task_row *task = fault ? task_row_of(TASK_KIND_instance, fault->task) : NULL;
    if (!task || !(task->flags & TASK_KEEPS_OFF))
        return TASK_NONE;
    if (ret_fault)
        *ret_fault = fault;
    return (enum task_state)enum_parse(&task_state_words, fault->task);
}

bool fault_enforce(const struct config *config, struct instance *instance)
{
    const struct fault *fault = NULL;
    enum task_state mark = fault_mark(config, instance, &fault);
    if (!fault)
        return false;
    instance->task_state = mark;
    instance->task_owner = fault->owner;
    instance->task_since = fault->since;
    return true;
}

bool fault_leaves_door_open(const struct fault *fault)
{
    const struct task_row *task = task_row_of(TASK_KIND_instance, fault->task);
    return fault->blind && task && (task->flags & TASK_FENCE_ALL);
}
