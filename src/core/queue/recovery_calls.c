/* See recovery_calls.h. */
#include "core/queue/recovery_calls.h"

#include <string.h>

#include "base/text.h"
#include "core/config/fault.h"
#include "core/recovery/owner.h"
#include "core/recovery/stored_judge.h"
#include "core/repair/duties.h"
#include "core/repair/tags.h"
#include "proto/change.h"

struct retry_call {
    struct queue_context *context;
    struct rpc_request *request;
    char *kind, *subject; /* its UUID */
};

/* When the last job about it that is still on record ended; 0: there is none. */
static guint64 last_end_us(const struct config *config, const struct instance *instance)
{
    guint64 last_us = 0;
    g_autoptr(GPtrArray) jobs = config_list(config, "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        for (guint k = 0; k < job->ops->len; k++) {
            const struct job_op *op = job->ops->pdata[k];
            const char *name = json_string_value(json_object_get(op->input, "instance_name"));
            if (!g_strcmp0(name, instance->name) || !g_strcmp0(name, instance->uuid))
                last_us = MAX(last_us, job->end_us);
        }
    }
    return last_us;
}

static void refuse_nothing(const struct config *config, const struct instance *instance,
                           GError **error)
{
    guint64 last_us = last_end_us(config, instance);
    g_autofree char *when = text_time((gint64)(last_us / G_USEC_PER_SEC));
    g_autofree char *tail =
        last_us ? g_strdup_printf("its last task ended at %s", when) : g_strdup("it has no task");
    fettle_set_error(error, WRONG_STATE, "instance \"%s\": nothing is stuck; %s", instance->name,
                     tail);
}

/* Auto-repair may bring it to another node: it is judged there (RCV-42). */
static bool is_repaired(const struct config *config, const struct instance *instance,
                        GError **error)
{
    g_autoptr(GPtrArray) tags = config_tags(config, TAG_INSTANCE, instance->uuid);
    bool found = false;
    for (guint i = 0; i < tags->len && !found; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        found = tag.kind == REPAIR_TAG_PENDING;
        if (found)
            fettle_set_error(error, WRONG_STATE,
                             "instance \"%s\": repair %s is under way; it is looked at when that "
                             "has ended",
                             instance->name, tag.id);
        repair_tag_clear(&tag);
    }
    return found;
}

/* Who is at work on it says himself what comes of it. */
static bool is_left_alone(const struct queue_context *context, const struct instance *instance,
                          GError **error)
{
    const struct config *config = follow_config(context->follow);
    guint64 id = instance->task_owner;
    const struct job *job = context_view(context, id);
    enum recovery_owner owner = recovery_owner_of(config, id);
    guint64 since = job && job->start_us ? job->start_us / G_USEC_PER_SEC : instance->task_since;
    g_autofree char *when = text_time((gint64)since);
    if (owner == OWNER_LIVES)
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\": job %" G_GUINT64_FORMAT " is %s it and lives (running "
                         "since %s); end it first: fettle job cancel %" G_GUINT64_FORMAT " --kill",
                         instance->name, id,
                         enum_word(&task_state_words, (int)instance->task_state), when, id);
    else if (owner == OWNER_QUEUED)
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\": job %" G_GUINT64_FORMAT ", which is %s it, is queued; "
                         "end it first: fettle job cancel %" G_GUINT64_FORMAT,
                         instance->name, id,
                         enum_word(&task_state_words, (int)instance->task_state), id);
    return owner != OWNER_LIVES && owner != OWNER_QUEUED;
}

static bool may_judge(const struct queue_context *context, const struct instance *instance,
                      GError **error)
{
    const struct config *config = follow_config(context->follow);
    if (instance->task_state != TASK_NONE)
        return !is_repaired(config, instance, error) && is_left_alone(context, instance, error);
    if (fault_of(config, "instance", instance->uuid))
        return true;
    refuse_nothing(config, instance, error);
    return false;
}

static struct change *ask_of_stuck(const struct config *config, const struct instance *instance,
                                   const char *key, guint64 now_us)
{
    record_autoptr(stuck) stuck = stuck_new();
    const struct stuck *known = config_get(config, "stuck", key, NULL);
    if (known) {
        stuck_free(stuck);
        stuck = stuck_copy(known);
    } else {
        text_set(&stuck->subject_kind, "instance");
        text_set(&stuck->subject, instance->uuid);
        text_set(&stuck->task, enum_word(&task_state_words, (int)instance->task_state));
        stuck->owner = instance->task_owner;
        stuck->since_us = now_us;
    }
    stuck->again = true;
    return config_put(config, "stuck", key, stuck_to_json(stuck));
}

static struct change *ask_of_fault(const struct config *config, const struct fault *known)
{
    record_autoptr(fault) fault = fault_copy(known);
    g_autofree char *key = fault_key(fault->subject_kind, fault->subject);
    fault->again = true;
    return config_put(config, "fault", key, fault_to_json(fault));
}

/* Its mark, or, without one, its fault. */
static struct change *ask(const struct queue_context *context, const struct instance *instance)
{
    const struct config *config = follow_config(context->follow);
    g_autofree char *key = fault_key("instance", instance->uuid);
    if (instance->task_state != TASK_NONE)
        return ask_of_stuck(config, instance, key, context_now_us(context));
    return ask_of_fault(config, fault_of(config, "instance", instance->uuid));
}

/* --- of what is stored --- */

/* Whether somebody has left work on it; whoever is at work on it says himself what comes of it. */
static bool is_left_of(const struct config *config, const struct resource *resource,
                       struct stored_subject_now *ret, GError **error)
{
    const char *kind = resource_kind(resource->type), *name = resource_name(resource);
    if (stored_subject(config, resource->type, resource->uuid, ret))
        return true;
    if (task_row_of(resource_task_kind(resource->type), resource->status))
        fettle_set_error(error, WRONG_STATE,
                         "%s \"%s\": its work (%s) is on record, and is that of cleanup; see: "
                         "fettle why %s %s",
                         kind, name, resource->status, kind, name);
    else
        fettle_set_error(error, WRONG_STATE, "%s \"%s\": nothing is stuck; it is %s", kind, name,
                         resource->status);
    return false;
}

static struct change *ask_stored(const struct config *config, const char *kind, const char *uuid,
                                 guint64 now_us, GError **error)
{
    struct stored_subject_now subject;
    struct resource resource =
        resource_find(config, (enum resource_type)resource_type_named(kind), uuid, error);
    if (!resource.exists || !is_left_of(config, &resource, &subject, error))
        return NULL;
    if (subject.fault)
        return ask_of_fault(config, subject.fault);
    g_autofree char *key = fault_key(kind, uuid);
    record_autoptr(stuck) stuck = subject.stuck ? stuck_copy(subject.stuck) : stuck_new();
    text_set(&stuck->subject_kind, kind);
    text_set(&stuck->subject, uuid);
    text_set(&stuck->task, subject.task->word);
    stuck->since_us = stuck->since_us ? stuck->since_us : now_us;
    stuck->again = true;
    return config_put(config, "stuck", key, stuck_to_json(stuck));
}

static struct change *ask_instance(const struct queue_context *context, const char *uuid,
                                   GError **error)
{
    const struct config *config = follow_config(context->follow);
    const struct instance *instance = config_find(config, "instance", uuid, error);
    return instance && may_judge(context, instance, error) ? ask(context, instance) : NULL;
}

static bool commit_wish(const struct retry_call *call, GError **error)
{
    const struct queue_context *context = call->context;
    struct change *wish = strcmp(call->kind, "instance") == 0
                              ? ask_instance(context, call->subject, error)
                              : ask_stored(follow_config(context->follow), call->kind,
                                           call->subject, context_now_us(context), error);
    if (!wish)
        return false;
    g_autoptr(GPtrArray) changes = change_list_new();
    g_ptr_array_add(changes, wish);
    struct owner owner = {.job = (char *)ROLE_LUXID, .livelock = context->livelock};
    return follow_commit(context->follow, "ask_recovery", &owner, changes,
                         follow_stamp(context->follow), 0, error);
}

static void retry_task(void *data)
{
    struct retry_call *call = data;
    g_autoptr(GError) error = NULL;
    if (commit_wish(call, &error))
        rpc_answer(call->request, json_true());
    else
        rpc_fail(call->request, error);
    g_free(call->kind);
    g_free(call->subject);
    g_free(call);
}

/* Its UUID; NULL with an error. */
static const char *find(const struct queue_context *context, const char *method, const char *kind,
                        const char *name, GError **error)
{
    const struct config *config = follow_config(context->follow);
    int type = resource_type_named(kind);
    if (strcmp(kind, "instance") == 0) {
        const struct instance *instance = config_find(config, "instance", name, error);
        return instance ? instance->uuid : NULL;
    }
    if (type >= 0) {
        struct resource resource = resource_find(config, (enum resource_type)type, name, error);
        return resource.exists ? resource.uuid : NULL;
    }
    fettle_set_error(error, WRONG_INPUT, "%s: kind: must be one of instance%s, not \"%s\"", method,
                     resource_kinds_listed, kind);
    return NULL;
}

void recovery_calls_retry(struct queue_context *context, struct rpc_request *request,
                          const struct luxi_retry_recovery_args *args)
{
    g_autoptr(GError) error = NULL;
    const char *subject = find(context, "RetryRecovery", args->kind, args->name, &error);
    if (!subject) {
        rpc_fail(request, error);
        return;
    }
    struct retry_call *call = g_new0(struct retry_call, 1);
    call->context = context;
    call->request = request;
    call->kind = g_strdup(args->kind);
    call->subject = g_strdup(subject);
    task_spawn(context->env->tasks, retry_task, call);
}

/* --- what would be done --- */

struct plan_call {
    struct queue_context *context;
    struct rpc_request *request;
    char *kind, *subject; /* its UUID; NULL: all that were left behind */
    bool hosts;
};

static void plan_task(void *data)
{
    struct plan_call *call = data;
    const struct queue_context *context = call->context;
    const struct recovery_question question = {call->kind, call->subject, call->hosts};
    json_t *plan = repair_plan_recovery(context->env, context->follow, &question);
    if (plan)
        rpc_answer(call->request, plan);
    else
        rpc_fail_new(call->request, FETTLE_ERROR_KILLED, "luxid has ended");
    g_free(call->kind);
    g_free(call->subject);
    g_free(call);
}

/* One without a task, and that is not in ERROR, has no next step; what hosts show of it may be
 * asked all the same. */
static bool has_plan(const struct queue_context *context, const char *uuid,
                     const struct luxi_plan_recovery_args *args, GError **error)
{
    const struct config *config = follow_config(context->follow);
    int type = resource_type_named(args->kind);
    struct stored_subject_now subject;
    if (type >= 0) {
        struct resource resource = resource_of(config, (enum resource_type)type, uuid);
        return args->hosts || is_left_of(config, &resource, &subject, error);
    }
    const struct instance *instance = config_get(config, "instance", uuid, NULL);
    if (args->hosts || instance->task_state != TASK_NONE ||
        fault_of(config, "instance", instance->uuid))
        return true;
    refuse_nothing(config, instance, error);
    return false;
}

static bool may_plan(const struct queue_context *context,
                     const struct luxi_plan_recovery_args *args, char **ret_uuid, GError **error)
{
    if (!config_cluster(follow_config(context->follow))) {
        fettle_set_error(error, TEMPORARY,
                         "the configuration has no cluster yet; run `fettle cluster init`");
        return false;
    }
    if (!*args->kind && !*args->name && !args->hosts)
        return true;
    const char *subject = find(context, "PlanRecovery", args->kind, args->name, error);
    if (!subject || !has_plan(context, subject, args, error))
        return false;
    *ret_uuid = g_strdup(subject);
    return true;
}

void recovery_calls_plan(struct queue_context *context, struct rpc_request *request,
                         const struct luxi_plan_recovery_args *args)
{
    g_autoptr(GError) error = NULL;
    char *uuid = NULL;
    if (!may_plan(context, args, &uuid, &error)) {
        rpc_fail(request, error);
        return;
    }
    struct plan_call *call = g_new(struct plan_call, 1);
    *call =
        (struct plan_call){context, request, uuid ? g_strdup(args->kind) : NULL, uuid, args->hosts};
    task_spawn(context->env->tasks, plan_task, call);
}
