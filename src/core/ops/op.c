/*
 * What all opcode bodies share: locks, objects, calls to nodes, commits. See op.h.
 */
#include "core/ops/op.h"

#include "core/config/fault.h"
#include "core/placement/placement.h"
#include "core/report/faults.h"

#include <stdarg.h>
#include <string.h>

static void free_instance(void *instance)
{
    instance_free(instance);
}

void op_init(struct op *op)
{
    op->enforced = g_ptr_array_new_with_free_func(free_instance);
}

void op_clear(struct op *op)
{
    g_clear_pointer(&op->enforced, g_ptr_array_unref);
    g_clear_pointer(&op->locks, g_ptr_array_unref);
    g_clear_pointer(&op->taken_over, instance_free);
    g_clear_pointer(&op->sums, placement_sums_free);
    g_clear_pointer(&op->reports, reports_free);
    g_clear_pointer(&op->result, json_decref);
    g_clear_pointer(&op->primary, g_free);
    g_clear_pointer(&op->secondary, g_free);
    g_clear_pointer(&op->progress_what, g_free);
    g_clear_pointer(&op->reservation, g_free);
}

void op_log(struct op *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    op->log(message, op->log_data);
}

void op_progress(struct op *op, const char *what, guint64 done, guint64 total, const char *unit)
{
    gint64 now = op->env->ops->boot_ms(op->env);
    bool same = g_strcmp0(op->progress_what, what) == 0;
    if (!op->progress || total == 0 ||
        (same && done < total && now - op->progress_ms < PROGRESS_PAUSE_MS))
        return;
    op->progress_ms = now;
    text_set(&op->progress_what, what);
    op->progress(json_make("{ss sI sI ss}", "what", what, "done", (json_int_t)MIN(done, total),
                           "total", (json_int_t)total, "unit", unit),
                 op->log_data);
}

const struct config *op_config(const struct op *op)
{
    return follow_config(op->follow);
}

guint64 op_now_seconds(const struct op *op)
{
    return (guint64)(op->env->ops->wall_us(op->env) / G_USEC_PER_SEC);
}

bool op_is_asked(const struct op *op)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, op->job);
    const struct job *record = config_get(op_config(op), "job", key, NULL);
    return (op->asked && *op->asked) || (record && record->cancel);
}

bool op_canceled(struct op *op)
{
    g_autoptr(GError) ignored = NULL; /* what is known decides then */
    if (op->asked && *op->asked)
        return true;
    follow_refresh(op->follow, &ignored);
    return op_is_asked(op);
}

/* --- locks --- */

static void lock_request_unref(void *request)
{
    lock_request_free(request);
}

void op_lock(struct op *op, const char *name, enum lock_mode mode)
{
    if (!op->locks)
        op->locks = g_ptr_array_new_with_free_func(lock_request_unref);
    for (guint i = 0; i < op->locks->len; i++) {
        struct lock_request *known = op->locks->pdata[i];
        if (!strcmp(known->name, name)) {
            known->mode = MAX(known->mode, mode);
            return;
        }
    }
    struct lock_request *request = lock_request_new();
    text_set(&request->name, name);
    request->mode = mode;
    g_ptr_array_add(op->locks, request);
}

void op_lock_instance(struct op *op, const char *instance_name)
{
    g_autofree char *name = g_strdup_printf("instance/%s", instance_name);
    op_lock(op, name, LOCK_EXCLUSIVE);
}

void op_lock_node(struct op *op, const char *node_uuid, enum lock_mode mode)
{
    if (!node_uuid || !*node_uuid)
        return;
    g_autofree char *name = g_strdup_printf("node/%s", node_uuid);
    op_lock(op, name, mode);
}

const struct instance *op_declare_instance(struct op *op, const char *name, GError **error)
{
    const struct instance *instance = op_find_instance(op, name, error);
    if (!instance)
        return NULL;
    op_lock_instance(op, instance->name);
    op_lock_node(op, instance->primary_node, LOCK_SHARED);
    op_lock_node(op, instance->secondary_node, LOCK_SHARED);
    return instance;
}

void op_lock_node_params(struct op *op, const char *node_uuid)
{
    g_autofree char *name = g_strdup_printf("node-param/%s", node_uuid);
    op_lock(op, name, LOCK_EXCLUSIVE);
}

/* --- objects --- */

const struct instance *op_find_instance(const struct op *op, const char *name, GError **error)
{
    const struct instance *found = config_find(op_config(op), "instance", name, error);
    const struct fault *fault = NULL;
    if (found)
        fault_mark(op_config(op), found, &fault);
    if (!fault)
        return found;
    struct instance *copy = instance_copy(found);
    fault_enforce(op_config(op), copy);
    g_ptr_array_add(op->enforced, copy);
    return copy;
}

bool op_is_answer(const char *flag, const char *value, GError **error)
{
    if (!*value || !strcmp(value, "yes") || !strcmp(value, "no"))
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: must be yes or no, not \"%s\"", flag, value);
    return false;
}

const struct node *op_find_node(const struct op *op, const char *name, GError **error)
{
    return config_find(op_config(op), "node", name, error);
}

const struct replica *op_replica_of(const struct op *op, const struct instance *instance)
{
    return *instance->replica ? config_get(op_config(op), "replica", instance->replica, NULL)
                              : NULL;
}

bool op_node_offline(const struct op *op, const char *node_uuid)
{
    const struct node *node = config_get(op_config(op), "node", node_uuid, NULL);
    return !node || node->offline;
}

GPtrArray *op_online_nodes(const struct op *op, const char *except)
{
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    GPtrArray *online = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->offline && g_strcmp0(node->uuid, except))
            g_ptr_array_add(online, g_strdup(node->uuid));
    }
    return online;
}

const char *op_node_name(const struct op *op, const char *node_uuid)
{
    return config_node_name(op_config(op), node_uuid);
}

/* --- calls to nodes --- */

static void *call_node(struct op *op, const char *node_uuid, const char *method, const void *args,
                       guint timeout_ms, GError **error)
{
    return env_call_record(op->env, node_uuid, ROLE_NODED, method, args, op->stamp, (guint)op->job,
                           timeout_ms, error);
}

void *op_ask(struct op *op, const char *node_uuid, const char *method, const void *args,
             guint timeout_ms, GError **error)
{
    void *answer = call_node(op, node_uuid, method, args, timeout_ms, error);
    if (!answer)
        g_prefix_error(error, "%s: ", op_node_name(op, node_uuid));
    return answer;
}

/* --- patience with the configuration daemon --- */

bool op_give_up(GError **error)
{
    fettle_set_error(error, CANCELED, "Job canceled by request");
    return false;
}

bool op_wconfd_away(const GError *error)
{
    return env_no_answer(error) || fettle_error_is(error, TEMPORARY);
}

bool op_insist(const struct env *env, const bool *asked, op_question ask, void *data,
               GError **error)
{
    gint64 deadline = env->ops->boot_ms(env) + JOB_RELEASE_MS;
    for (;;) {
        g_autoptr(GError) local = NULL;
        if (ask(data, &local))
            return true;
        bool away = op_wconfd_away(local);
        if (away && asked && *asked)
            return op_give_up(error);
        if (!away || env->ops->boot_ms(env) >= deadline || !env_sleep(env, JOB_RETRY_MS)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
    }
}

void *op_act(struct op *op, const char *node_uuid, const char *method, const void *args,
             guint patience_ms, GError **error)
{
    gint64 deadline = op->env->ops->boot_ms(op->env) + patience_ms;
    guint unknown = 0;
    for (;;) {
        g_autoptr(GError) local = NULL;
        void *answer = call_node(op, node_uuid, method, args, 0, &local);
        bool passing = fettle_error_is(local, TEMPORARY) || fettle_error_is(local, PARTED);
        bool untouched = passing || fettle_error_is(local, UNREACHABLE) ||
                         fettle_error_is(local, PERMISSION) || fettle_error_is(local, STALE_EPOCH);
        if (!untouched)
            op->changed = true;
        if (answer)
            return answer;
        bool again = env_no_answer(local) || passing;
        op->repeated = op->repeated || fettle_error_is(local, TIMEOUT) ||
                       fettle_error_is(local, UNKNOWN_RESULT);
        if (fettle_error_is(local, TIMEOUT) || fettle_error_is(local, UNKNOWN_RESULT))
            again = ++unknown < LIMIT_ACT_TRIES;
        else if (op->env->ops->boot_ms(op->env) >= deadline)
            again = false;
        if (!again || !env_sleep(op->env, ACT_PAUSE_MS)) {
            g_propagate_prefixed_error(error, g_steal_pointer(&local),
                                       "%s: ", op_node_name(op, node_uuid));
            return NULL;
        }
    }
}

bool op_gather_reports(struct op *op, const GPtrArray *node_uuids, GError **error)
{
    if (op->asks_nobody) {
        fettle_set_error(error, TEMPORARY, "nodes would have to be asked");
        return false;
    }
    struct reports *reports =
        reports_ask_to_act(op->env, op->follow, node_uuids, op->stamp, (guint)op->job);
    if (!reports) {
        fettle_set_error(error, KILLED, "the process ended while it asked the nodes");
        return false;
    }
    g_clear_pointer(&op->sums, placement_sums_free);
    reports_free(op->reports);
    op->reports = reports;
    return true;
}

/* What calls itself another node is no evidence about this one. */
const struct node_report *op_report(const struct op *op, const char *node_uuid)
{
    const struct node_report *report = reports_of(op->reports, node_uuid);
    return report && !strcmp(report->node, node_uuid) ? report : NULL;
}

bool op_refused(const struct op *op, const char *node_uuid)
{
    return reports_refusal(op->reports, node_uuid) != NULL;
}

char *op_no_report(const struct op *op, const char *node_uuid)
{
    return placement_no_report(reports_refusals(op->reports), node_uuid);
}

void op_log_faults(struct op *op, const char *node_uuid)
{
    const struct node_report *report = op_report(op, node_uuid);
    g_autofree char *text = report ? faults_text(report) : NULL;
    if (text)
        op_log(op, "%s %s; it is taken all the same", op_node_name(op, node_uuid), text);
}

/* --- commits --- */

static void change_unref(void *change)
{
    change_free(change);
}

GPtrArray *op_changes_new(void)
{
    return g_ptr_array_new_with_free_func(change_unref);
}

void op_put(const struct op *op, GPtrArray *changes, const char *kind, const char *key,
            json_t *object)
{
    g_ptr_array_add(changes, config_put(op_config(op), kind, key, object));
}

void op_delete(const struct op *op, GPtrArray *changes, const char *kind, const char *key)
{
    g_ptr_array_add(changes, config_delete(op_config(op), kind, key));
}

/* Whether a failed commit surely changed nothing. */
static bool surely_not_committed(const GError *error)
{
    return !fettle_error_is(error, TIMEOUT) && !fettle_error_is(error, UNKNOWN_RESULT) &&
           !fettle_error_is(error, KILLED);
}

static bool op_commit(struct op *op, const char *change, GPtrArray *changes, GError **error)
{
    g_autoptr(GError) local = NULL;
    if (follow_commit(op->follow, change, &op->owner, changes, op->stamp, (guint)op->job, &local)) {
        op->changed = true;
        return true;
    }
    if (!surely_not_committed(local))
        op->changed = true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

bool op_commit_built(struct op *op, const char *change, op_build build, void *data, GError **error)
{
    for (guint tries = 1;; tries++) {
        g_autoptr(GPtrArray) changes = op_changes_new();
        g_autoptr(GError) local = NULL;
        if (!build(op, changes, data, error))
            return false;
        if (!changes->len || op_commit(op, change, changes, &local))
            return true;
        if (!fettle_error_is(local, VERSION_CONFLICT) || tries >= LIMIT_COMMIT_TRIES) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
        if (!follow_refresh(op->follow, error))
            return false;
    }
}
