/* Fields of events, faults, what is counted as stuck, and tasks (proto/fields.def), and their rows.
 */
#include "core/query/query_rows.h"

#include "core/config/fault.h"
#include "core/recovery/owner.h"
#include "core/recovery/stored_judge.h"

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

/* --- tasks: of instances and of what is stored; under way, left behind, or in force by a fault ---
 */

struct task_of {
    const char *kind, *uuid, *name;
    const char *word;          /* of its mark; NULL: it has none */
    guint64 job, since;        /* that has set it; 0: a row of work stands for it */
    const struct fault *fault; /* NULL: it has none */
    const struct stuck *stuck; /* NULL: nothing is counted */
    enum recovery_owner owner; /* of its mark */
};

static bool has_mark(const struct task_of *task)
{
    return task->word != NULL;
}

static void add_task(const struct config *config, struct task_of task, GPtrArray *rows)
{
    g_autofree char *key = fault_key(task.kind, task.uuid);
    task.fault = fault_of(config, task.kind, task.uuid);
    task.stuck = config_get(config, "stuck", key, NULL);
    if (task.word || task.fault)
        g_ptr_array_add(rows, g_memdup2(&task, sizeof task));
}

/* Who has a row of work is not known to be dead: that is for cleanup to say (RCV-13). */
static void add_stored(const struct config *config, enum resource_type type, GPtrArray *rows)
{
    const char *kind = resource_kind(type);
    g_autoptr(GPtrArray) all = config_list(config, kind);
    for (guint i = 0; i < all->len; i++) {
        struct resource resource = resource_read(type, all->pdata[i]);
        bool marked = task_row_of(resource_task_kind(type), resource.status) != NULL;
        struct stored_subject_now subject;
        if (!marked && !fault_of(config, kind, resource.uuid))
            continue;
        bool left = stored_subject(config, type, resource.uuid, &subject);
        add_task(config,
                 (struct task_of){.kind = kind,
                                  .uuid = resource.uuid,
                                  .name = resource_name(&resource),
                                  .word = marked ? resource.status : NULL,
                                  .owner = left ? OWNER_DEAD : OWNER_LIVES},
                 rows);
    }
}

GPtrArray *query_task_rows(const struct config *config)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        bool marked = instance->task_state != TASK_NONE;
        const char *word = enum_word(&task_state_words, (int)instance->task_state);
        if (!marked && !fault_of(config, "instance", instance->uuid))
            continue;
        add_task(config,
                 (struct task_of){.kind = "instance",
                                  .uuid = instance->uuid,
                                  .name = instance->name,
                                  .word = marked ? word : NULL,
                                  .job = instance->task_owner,
                                  .since = instance->task_since,
                                  .owner = recovery_owner_of(config, instance->task_owner)},
                 rows);
    }
    for (guint type = 0; resource_type_words.words[type]; type++)
        add_stored(config, (enum resource_type)type, rows);
    return rows;
}

json_t *query_get_task_subject_kind(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return json_string(((const struct task_of *)row)->kind);
}

json_t *query_get_task_subject(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_string(((const struct task_of *)row)->uuid);
}

json_t *query_get_task_subject_name(struct query_source *source, const void *row,
                                    enum query_status *ret_status)
{
    return json_string(((const struct task_of *)row)->name);
}

json_t *query_get_task_task(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    const struct task_of *task = row;
    return json_string(has_mark(task) ? task->word : task->fault->task);
}

json_t *query_get_task_since(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct task_of *task = row;
    guint64 since = has_mark(task) ? task->since : task->fault->since;
    return since ? json_integer((json_int_t)since) : NULL;
}

json_t *query_get_task_owner(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    const struct task_of *task = row;
    guint64 owner = has_mark(task) ? task->job : task->fault->owner;
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
    guint64 job = task->job;
    if (task->owner == OWNER_QUEUED)
        return g_strdup_printf("when job %" G_GUINT64_FORMAT " has run", job);
    if (task->owner == OWNER_LIVES && !job)
        return g_strdup("when its row of work ends");
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
