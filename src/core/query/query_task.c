/* Fields of events, faults, what is counted as stuck, and tasks (proto/fields.def), and their rows.
 */
#include "core/query/query_rows.h"

#include "core/config/fault.h"
#include "core/recovery/owner.h"

#include <string.h>

/* --- events: decisions that say so --- */

GPtrArray *query_event_rows(const struct config *config)
{
    GPtrArray *rows = query_decision_rows(config);
    guint kept = 0;
    for (guint i = 0; i < rows->len; i++)
        if (((const struct decision *)rows->pdata[i])->event != EVENT_NONE)
            rows->pdata[kept++] = rows->pdata[i];
    g_ptr_array_set_size(rows, (gint)kept);
    return rows;
}

json_t *query_get_event_serial_no(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return query_get_decision_serial_no(source, row, ret_status);
}

json_t *query_get_event_at(struct query_source *source, const void *row,
                           enum query_status *ret_status)
{
    return query_get_decision_at(source, row, ret_status);
}

/* --- names of subjects --- */

/* Of a kind whose objects have one; else its UUID. */
static json_t *subject_name(const struct query_source *source, const char *kind, const char *uuid)
{
    const struct record *type = object_record(kind);
    const struct field *name = type ? record_field(type, "name") : NULL;
    const void *object = name ? config_get(source->config, kind, uuid, NULL) : NULL;
    return json_string(object ? *(char *const *)((const char *)object + name->offset) : uuid);
}

static json_t *seconds_of(guint64 us)
{
    return json_integer((json_int_t)(us / G_USEC_PER_SEC));
}

json_t *query_get_fault_subject_name(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct fault *fault = row;
    return subject_name(source, fault->subject_kind, fault->subject);
}

json_t *query_get_fault_at(struct query_source *source, const void *row,
                           enum query_status *ret_status)
{
    return seconds_of(((const struct fault *)row)->at_us);
}

json_t *query_get_stuck_subject_name(struct query_source *source, const void *row,
                                     enum query_status *ret_status)
{
    const struct stuck *stuck = row;
    return subject_name(source, stuck->subject_kind, stuck->subject);
}

json_t *query_get_stuck_since(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return seconds_of(((const struct stuck *)row)->since_us);
}

/* --- tasks: of instances, under way, left behind, or in force by a fault --- */

struct task_of {
    const struct instance *instance;
    const struct fault *fault; /* NULL: it has none */
    const struct stuck *stuck; /* NULL: nothing is counted */
    enum recovery_owner owner; /* of its mark */
};

static bool has_mark(const struct task_of *task)
{
    return task->instance->task_state != TASK_NONE;
}

GPtrArray *query_task_rows(const struct config *config)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        const struct fault *fault = fault_of(config, "instance", instance->uuid);
        if (instance->task_state == TASK_NONE && !fault)
            continue;
        g_autofree char *key = fault_key("instance", instance->uuid);
        struct task_of *task = g_new0(struct task_of, 1);
        *task = (struct task_of){instance, fault, config_get(config, "stuck", key, NULL),
                                 recovery_owner_of(config, instance->task_owner)};
        g_ptr_array_add(rows, task);
    }
    return rows;
}

json_t *query_get_task_subject_kind(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return json_string("instance");
}

json_t *query_get_task_subject(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_string(((const struct task_of *)row)->instance->uuid);
}

json_t *query_get_task_subject_name(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return json_string(((const struct task_of *)row)->instance->name);
}

json_t *query_get_task_task(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    const struct task_of *task = row;
    return json_string(has_mark(task)
                           ? enum_word(&task_state_words, (int)task->instance->task_state)
                           : task->fault->task);
}

json_t *query_get_task_since(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct task_of *task = row;
    guint64 since = has_mark(task) ? task->instance->task_since : task->fault->since;
    return since ? json_integer((json_int_t)since) : NULL;
}

json_t *query_get_task_owner(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct task_of *task = row;
    guint64 owner = has_mark(task) ? task->instance->task_owner : task->fault->owner;
    return owner ? json_integer((json_int_t)owner) : NULL;
}

json_t *query_get_task_owner_state(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct task_of *task = row;
    return json_string(recovery_owner_word(has_mark(task) ? task->owner : OWNER_DEAD));
}

/* A task that somebody is at work on is none. */
json_t *query_get_task_stuck(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct task_of *task = row;
    return json_boolean(task->fault || task->stuck || task->owner == OWNER_DEAD ||
                        task->owner == OWNER_UNKNOWN);
}

json_t *query_get_task_looks(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct stuck *stuck = ((const struct task_of *)row)->stuck;
    return json_integer(stuck ? (json_int_t)stuck->looks : 0);
}

json_t *query_get_task_why(struct query_source *source, const void *row,
                           enum query_status *ret_status)
{
    const struct task_of *task = row;
    return json_string(task->fault ? task->fault->message : task->stuck ? task->stuck->why : "");
}

json_t *query_get_task_rule(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    const struct task_of *task = row;
    return json_string(task->fault ? task->fault->rule : "");
}

json_t *query_get_task_evidence(struct query_source *source, const void *row,
                                enum query_status *ret_status)
{
    const struct task_of *task = row;
    return task->fault ? query_strings(task->fault->evidence) : json_array();
}

json_t *query_get_task_error_since(struct query_source *source, const void *row,
                                   enum query_status *ret_status)
{
    const struct task_of *task = row;
    return task->fault ? seconds_of(task->fault->at_us) : NULL;
}

static char *next_of_mark(const struct task_of *task)
{
    guint64 job = task->instance->task_owner;
    if (task->owner == OWNER_QUEUED)
        return g_strdup_printf("when job %" G_GUINT64_FORMAT " has run", job);
    if (task->owner == OWNER_LIVES)
        return g_strdup_printf("when job %" G_GUINT64_FORMAT " ends", job);
    if (task->stuck && task->stuck->looks && !task->stuck->again)
        return g_strdup("when its nodes answer");
    return g_strdup("at the next pass");
}

json_t *query_get_task_next(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    const struct task_of *task = row;
    g_autofree char *text = has_mark(task)       ? next_of_mark(task)
                            : task->fault->again ? g_strdup("at the next pass")
                            : task->fault->blind ? g_strdup("ERROR: nodes are silent")
                                                 : g_strdup("ERROR: retry or reset");
    return json_string(text);
}

/* --- what an instance has of it --- */

const struct fault *query_instance_fault(const struct query_source *source, const void *row)
{
    bool any = config_count(source->config, "fault") > 0;
    return any ? fault_of(source->config, "instance", ((const struct instance *)row)->uuid) : NULL;
}

json_t *query_get_instance_fault_message(struct query_source *source, const void *row,
                                         enum query_status *ret_status)
{
    const struct fault *fault = query_instance_fault(source, row);
    return fault ? json_string(fault->message) : NULL;
}

json_t *query_get_instance_fault_task(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct fault *fault = query_instance_fault(source, row);
    return fault ? json_string(fault->task) : NULL;
}

json_t *query_get_instance_fault_since(struct query_source *source, const void *row,
                                       enum query_status *ret_status)
{
    const struct fault *fault = query_instance_fault(source, row);
    return fault ? seconds_of(fault->at_us) : NULL;
}

json_t *query_get_instance_fault_rule(struct query_source *source, const void *row,
                                      enum query_status *ret_status)
{
    const struct fault *fault = query_instance_fault(source, row);
    return fault ? json_string(fault->rule) : NULL;
}
