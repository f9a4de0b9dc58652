/* The condition of jobs that finish what a dead one began; see op_task_over() in op.h. */
#include "core/ops/op.h"

#include "core/config/fault.h"

#include <string.h>

struct task_named {
    enum task_state word; /* TASK_NONE: that nobody is at work on it */
    guint64 owner, generation;
    bool starts; /* what was to run then is to run still */
};

static bool is_number(const char *text, guint64 *ret_number)
{
    return g_ascii_string_to_unsigned(text, 10, 0, (guint64)RECORD_NUMBER_MAX, ret_number, NULL);
}

static bool parse(const char *text, struct task_named *ret)
{
    g_auto(GStrv) parts = g_strsplit(text, "/", -1);
    int word = g_strv_length(parts) == 3 ? enum_parse(&task_state_words, parts[0]) : -1;
    ret->word = (enum task_state)word;
    bool good = word >= (int)TASK_NONE && is_number(parts[1], &ret->owner) &&
                is_number(parts[2], &ret->generation);
    return good && (ret->word != TASK_NONE || ret->owner == 0);
}

/* A person's word of ERROR is not what recovery meant to have finished, until that is judged anew.
 */
static bool fault_names(const struct fault *fault, const struct task_named *named)
{
    bool by_person = strcmp(fault->rule, FAULT_BY_PERSON) == 0 && !fault->again;
    return !by_person && fault->owner == named->owner &&
           enum_parse(&task_state_words, fault->task) == (int)named->word;
}

static bool is_left_in_peace(const struct config *config, const struct instance *instance,
                             const struct task_named *named)
{
    bool wished = !named->starts || instance->admin_state == ADMIN_UP;
    return wished && fault_mark(config, instance, NULL) == TASK_NONE;
}

static bool stands(const struct config *config, const char *name, const struct task_named *named)
{
    const struct instance *instance = config_find(config, "instance", name, NULL);
    if (!instance || instance->generation != named->generation)
        return false;
    if (named->word == TASK_NONE)
        return is_left_in_peace(config, instance, named);
    if (instance->task_state != TASK_NONE)
        return instance->task_state == named->word && instance->task_owner == named->owner;
    const struct fault *fault = fault_of(config, "instance", instance->uuid);
    return fault && fault_names(fault, named);
}

bool op_finishes(const char *if_task)
{
    return *if_task && *if_task != '/';
}

bool op_task_over(struct op *op, const json_t *input, bool *ret_over, GError **error)
{
    const char *text = json_string_value(json_object_get(input, "if_task"));
    const char *name = json_string_value(json_object_get(input, "instance_name"));
    struct task_named named;
    *ret_over = false;
    if (!text || !*text)
        return true;
    if (!parse(text, &named)) {
        fettle_set_error(error, WRONG_INPUT,
                         "if_task: must be TASK/OWNER/GENERATION, such as creating/17/3, not "
                         "\"%s\"",
                         text);
        return false;
    }
    named.starts =
        g_strcmp0(json_string_value(json_object_get(input, "OP_ID")), "OP_INSTANCE_STARTUP") == 0;
    *ret_over = !stands(op_config(op), name, &named);
    if (*ret_over && named.word == TASK_NONE)
        op_log(op,
               "nothing is done: instance %s is in another generation than %" G_GUINT64_FORMAT
               " now, has a task%s",
               name, named.generation, named.starts ? ", or is to be down" : "");
    else if (*ret_over)
        op_log(op,
               "nothing is done: instance %s has no longer the task %s of job %" G_GUINT64_FORMAT
               " in generation %" G_GUINT64_FORMAT,
               name, enum_word(&task_state_words, (int)named.word), named.owner, named.generation);
    return true;
}
