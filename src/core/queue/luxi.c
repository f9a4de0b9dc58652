/* luxid: its calls, its parts and how they hang together; see luxi.h. */
#include "core/queue/luxi.h"

#include "base/log.h"
#include "core/query/query.h"
#include "core/queue/archiver.h"
#include "core/queue/calls.h"
#include "core/queue/console_calls.h"
#include "core/queue/hold.h"
#include "core/queue/image_calls.h"
#include "core/queue/metrics/metrics_call.h"
#include "core/queue/metrics/node_figures.h"
#include "core/queue/metrics/tally.h"
#include "core/queue/plan_node.h"
#include "core/queue/recovery_calls.h"
#include "core/queue/renewal_call.h"
#include "core/queue/scheduler.h"
#include "core/queue/start.h"
#include "core/queue/submit.h"
#include "core/queue/track.h"
#include "core/queue/wait_for_job.h"
#include "core/queue/watch_changes.h"
#include "core/queue/webhook_calls.h"
#include "core/queue/what_next_call.h"
#include "core/verify/check_backends.h"
#include "core/verify/verify.h"
#include "proto/luxi.h"

struct luxi {
    struct queue_context context;
    bool taken_up; /* what an earlier luxid has left is in the index */
    bool serving;  /* the queue is reconciled: calls are answered, jobs are started */
};

/* --- the change stream --- */

/* One that had ended before this process began counts for nobody. */
static void job_ended(struct luxi *luxi, const struct job *record)
{
    tracker_recorded(luxi->context.tracker, record->id);
    if (luxi->taken_up)
        tally_job(luxi->context.tally, record);
}

static void job_changed(struct luxi *luxi, guint64 id)
{
    struct queue_context *context = &luxi->context;
    const struct job *record = context_record(context, id);
    struct queue_job *job = queue_find(context->queue, id);
    if (!record) {
        queue_forget(context->queue, id);
    } else if (queue_put(context->queue, record)) {
        if (job_state_final(job_state_of(record)))
            job_ended(luxi, record);
    } else if (job && !job_state_final(job_state_of(record))) {
        /* The urgency of the whole does not tell whether that of an opcode is another now. */
        holds_job_changed(context->holds, job);
    }
    if (record && (job || luxi->taken_up))
        start_if_recorded(context, queue_find(context->queue, id), !job);
    wait_for_job_notify(context->waiters, id);
}

static gint compare_jobs(gconstpointer left, gconstpointer right)
{
    const struct job *a = *(const struct job *const *)left, *b = *(const struct job *const *)right;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* After a snapshot: every job anew, in order of age, so that a job comes after those it depends on.
 */
static void take_all_jobs(struct luxi *luxi)
{
    g_autoptr(GArray) known = queue_ids(luxi->context.queue);
    g_autoptr(GPtrArray) jobs = config_list(follow_config(luxi->context.follow), "job");
    g_ptr_array_sort(jobs, compare_jobs);
    for (guint i = 0; i < jobs->len; i++)
        job_changed(luxi, ((const struct job *)jobs->pdata[i])->id);
    for (guint i = 0; i < known->len; i++)
        if (!context_record(&luxi->context, g_array_index(known, guint64, i)))
            job_changed(luxi, g_array_index(known, guint64, i));
}

static void note_change(struct luxi *luxi, const char *kind)
{
    if (g_str_equal(kind, "node"))
        archiver_nodes_changed(luxi->context.archiver);
    if (g_str_equal(kind, "cluster"))
        archiver_cluster_changed(luxi->context.archiver);
    if (!g_str_equal(kind, "job") && !g_str_equal(kind, "counter") &&
        !g_str_equal(kind, "job_filter"))
        holds_objects_changed(luxi->context.holds);
}

/* For webhooks, which are asked about again only then. */
static void note_happened(struct luxi *luxi, const struct change *change)
{
    const struct config *config = follow_config(luxi->context.follow);
    if (webhook_happens(config, change->kind, change->key))
        luxi->context.happened = config_serial(config);
}

static bool touches_rules(const GPtrArray *changes)
{
    for (guint i = 0; i < changes->len; i++)
        if (g_str_equal(((const struct change *)changes->pdata[i])->kind, "job_filter"))
            return true;
    return false;
}

/* What is new on record, and was told so. */
static void count_change(struct luxi *luxi, const struct change *change)
{
    const struct config *config = follow_config(luxi->context.follow);
    if (change->op != CHANGE_PUT)
        return;
    if (g_str_equal(change->kind, "tag")) {
        const struct tag *tag = config_get(config, "tag", change->key, NULL);
        if (tag)
            tally_tag(luxi->context.tally, tag->tag);
    } else if (g_str_equal(change->kind, "decision")) {
        const struct decision *decision = config_get(config, "decision", change->key, NULL);
        if (decision)
            tally_decision(luxi->context.tally, decision);
    }
}

/* `changes` NULL: anything may have changed. */
static void config_changed(const GPtrArray *changes, void *data)
{
    struct luxi *luxi = data;
    bool rules = !changes || touches_rules(changes);
    if (rules)
        holds_rules_stale(luxi->context.holds);
    if (!changes) {
        take_all_jobs(luxi);
        luxi->context.happened = config_serial(follow_config(luxi->context.follow));
        watch_changes_reset(luxi->context.watches);
        archiver_nodes_changed(luxi->context.archiver);
        holds_objects_changed(luxi->context.holds);
    }
    for (guint i = 0; changes && i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        note_change(luxi, change->kind);
        note_happened(luxi, change);
        count_change(luxi, change);
        guint64 id;
        if (g_str_equal(change->kind, "job") &&
            g_ascii_string_to_unsigned(change->key, 10, 1, G_MAXINT64, &id, NULL))
            job_changed(luxi, id);
        watch_changes_config_changed(luxi->context.watches, change->kind, change->key);
    }
    /* About jobs of the same change, too: they were accepted under the rules before. */
    if (rules)
        holds_rules_changed(luxi->context.holds);
    scheduler_kick(luxi->context.scheduler);
}

/* --- life --- */

static bool is_wanted(const char *kind)
{
    return object_view(kind) != VIEW_LUXID_NEVER;
}

struct luxi *luxi_new(const struct env *env)
{
    struct luxi *luxi = g_new0(struct luxi, 1);
    struct queue_context *context = &luxi->context;
    context->env = env;
    context->most_queued = LIMIT_QUEUED_JOBS;
    context->queue = queue_new();
    context->follow = follow_new(env, config_changed, luxi);
    follow_only(context->follow, is_wanted);
    context->committer = committer_new(env, context->follow);
    context->scheduler = scheduler_new(context);
    context->holds = holds_new(context);
    context->tracker = tracker_new(context);
    context->waiters = wait_for_job_new(context);
    context->watches = watch_changes_new(context);
    context->archiver = archiver_new(context);
    context->tally = tally_new();
    context->node_figures = node_figures_new(context);
    context_init_queries(context);
    return luxi;
}

void luxi_limit_queue(struct luxi *luxi, guint jobs)
{
    luxi->context.most_queued = jobs;
}

void luxi_limit_archive(struct luxi *luxi, guint jobs)
{
    luxi->context.queries.most_archived = jobs;
}

bool luxi_start(struct luxi *luxi, GError **error)
{
    struct queue_context *context = &luxi->context;
    context->livelock = context->env->ops->livelock_make(context->env, ROLE_LUXID, error);
    if (!context->livelock) {
        g_prefix_error(error, "luxid's lock file: ");
        return false;
    }
    if (!follow_start(context->follow, error)) {
        g_prefix_error(error, "configuration: ");
        return false;
    }
    luxi->taken_up = true;
    committer_start(context->committer, context->livelock);
    tracker_start(context->tracker);
    scheduler_start(context->scheduler);
    archiver_start(context->archiver);
    luxi->serving = true;
    log_info("", "queue taken up: %u jobs queued, %u under way", queue_waiting(context->queue),
             queue_active(context->queue));
    return true;
}

bool luxi_drain(struct luxi *luxi)
{
    const struct queue_context *context = &luxi->context;
    luxi->context.ends = true;
    return context->begins == 0 &&
           (!context->starting || g_hash_table_size(context->starting) == 0);
}

void luxi_free(struct luxi *luxi)
{
    if (!luxi)
        return;
    struct queue_context *context = &luxi->context;
    if (context->livelock && !task_group_killed(context->env->tasks))
        context->env->ops->livelock_drop(context->env, context->livelock);
    committer_free(context->committer);
    wait_for_job_free(context->waiters);
    watch_changes_free(context->watches);
    archiver_free(context->archiver);
    start_clear(context);
    tracker_free(context->tracker);
    holds_free(context->holds);
    scheduler_free(context->scheduler);
    tally_free(context->tally);
    node_figures_free(context->node_figures);
    follow_free(context->follow);
    queue_free(context->queue);
    g_free(context->livelock);
    g_free(luxi);
}

/* --- calls, one function each: `args` is the method's record --- */

static void call_submit_job(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    submit_job(&luxi->context, request, ((const struct luxi_submit_job_args *)args)->ops, false);
}

static void call_submit_job_to_drained_queue(struct luxi *luxi, struct rpc_request *request,
                                             const void *args)
{
    const struct luxi_submit_job_to_drained_queue_args *submit = args;
    submit_job(&luxi->context, request, submit->ops, true);
}

static void call_submit_many_jobs(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    submit_many_jobs(&luxi->context, request,
                     ((const struct luxi_submit_many_jobs_args *)args)->jobs);
}

static void call_query_jobs(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_jobs(&luxi->context.queries, request, args);
}

static void call_wait_for_job_change(struct luxi *luxi, struct rpc_request *request,
                                     const void *args)
{
    wait_for_job_add(luxi->context.waiters, request, args);
}

static void watch_changes(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    watch_changes_add(luxi->context.watches, request, args);
}

static void cancel_job(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    call_cancel_job(&luxi->context, request, args);
}

static void change_job_priority(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    call_change_job_priority(&luxi->context, request, args);
}

static void archive_job(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    call_archive_job(&luxi->context, request, args);
}

static void auto_archive_jobs(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    call_auto_archive_jobs(&luxi->context, request, args);
}

static void pickup_job(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    rpc_fail_new(request, FETTLE_ERROR_PERMISSION,
                 "Luxi call 'PickupJob' is for internal use only");
}

static void replace_filter(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    call_replace_filter(&luxi->context, request, args);
}

static void delete_filter(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    call_delete_filter(&luxi->context, request, args);
}

static void set_drain_flag(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    call_set_drain_flag(&luxi->context, request, args);
}

static void set_watcher_pause(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    call_set_watcher_pause(&luxi->context, request, args);
}

static void query_filters(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    const struct luxi_query_filters_args *query = args;
    query_plain(&luxi->context.queries, request, "filter", query->uuids, query->fields);
}

static void query_config_values_of(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_config_values(&luxi->context.queries, request, args);
}

static void query_instances(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    const struct luxi_query_instances_args *query = args;
    query_plain(&luxi->context.queries, request, "instance", query->names, query->fields);
}

static void query_nodes(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    const struct luxi_query_nodes_args *query = args;
    query_plain(&luxi->context.queries, request, "node", query->names, query->fields);
}

static void query_groups(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    const struct luxi_query_groups_args *query = args;
    query_plain(&luxi->context.queries, request, "group", query->names, query->fields);
}

static void query_networks(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    const struct luxi_query_networks_args *query = args;
    query_plain(&luxi->context.queries, request, "network", query->names, query->fields);
}

static void query_exports(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_node_exports(&luxi->context.queries, request, args);
}

static void call_query(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_run(&luxi->context.queries, request, args);
}

static void call_query_fields(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_describe_fields(request, args);
}

static void call_query_cluster_info(struct luxi *luxi, struct rpc_request *request,
                                    const void *args)
{
    query_cluster_info(&luxi->context.queries, request);
}

static void call_query_rapi_users(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_rapi_users(&luxi->context.queries, request);
}

static void call_query_webhooks(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    webhook_calls_query(&luxi->context, request);
}

static void call_take_webhooks(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    webhook_calls_take(&luxi->context, request);
}

static void call_query_happened(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    webhook_calls_happened(&luxi->context, request, args);
}

static void call_keep_webhook_marks(struct luxi *luxi, struct rpc_request *request,
                                    const void *args)
{
    webhook_calls_keep(&luxi->context, request, args);
}

static void call_query_tags(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    query_object_tags(&luxi->context.queries, request, args);
}

static void call_console_read(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    console_calls_read(&luxi->context, request, args);
}

static void call_console_write(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    console_calls_write(&luxi->context, request, args);
}

static void call_receive_image(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    image_calls_receive(&luxi->context, request, args);
}

static void call_finish_image(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    image_calls_finish(&luxi->context, request, args);
}

static void call_send_image(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    image_calls_send(&luxi->context, request, args);
}

static void call_retry_recovery(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    recovery_calls_retry(&luxi->context, request, args);
}

static void call_plan_recovery(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    recovery_calls_plan(&luxi->context, request, args);
}

static void call_plan_node(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    plan_node(&luxi->context, request, args);
}

static void call_query_metrics(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    metrics_call(&luxi->context, request);
}

static void call_what_next(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    what_next_call(&luxi->context, request, args);
}

static void call_check_renewal(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    renewal_call(&luxi->context, request, args);
}

static void call_verify(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    verify_call(&luxi->context.queries, request, args);
}

static void call_verify_backends(struct luxi *luxi, struct rpc_request *request, const void *args)
{
    check_backends_call(&luxi->context.queries, request, args);
}

static const struct {
    const char *name;
    void (*call)(struct luxi *luxi, struct rpc_request *request, const void *args);
} calls[] = {
    {"SubmitJob", call_submit_job},
    {"SubmitManyJobs", call_submit_many_jobs},
    {"QueryJobs", call_query_jobs},
    {"WaitForJobChange", call_wait_for_job_change},
    {"WatchChanges", watch_changes},
    {"CancelJob", cancel_job},
    {"Query", call_query},
    {"QueryFields", call_query_fields},
    {"QueryClusterInfo", call_query_cluster_info},
    {"QueryTags", call_query_tags},
    {"QueryRapiUsers", call_query_rapi_users},
    {"QueryWebhooks", call_query_webhooks},
    {"TakeWebhooks", call_take_webhooks},
    {"QueryHappened", call_query_happened},
    {"KeepWebhookMarks", call_keep_webhook_marks},
    {"ConsoleRead", call_console_read},
    {"ConsoleWrite", call_console_write},
    {"ReceiveImage", call_receive_image},
    {"FinishImage", call_finish_image},
    {"SendImage", call_send_image},
    {"RetryRecovery", call_retry_recovery},
    {"PlanRecovery", call_plan_recovery},
    {"PlanNode", call_plan_node},
    {"QueryMetrics", call_query_metrics},
    {"WhatNext", call_what_next},
    {"CheckRenewal", call_check_renewal},
    {"Verify", call_verify},
    {"VerifyBackends", call_verify_backends},
    {"SubmitJobToDrainedQueue", call_submit_job_to_drained_queue},
    {"ChangeJobPriority", change_job_priority},
    {"PickupJob", pickup_job},
    {"ReplaceFilter", replace_filter},
    {"DeleteFilter", delete_filter},
    {"SetDrainFlag", set_drain_flag},
    {"SetWatcherPause", set_watcher_pause},
    {"QueryFilters", query_filters},
    {"QueryConfigValues", query_config_values_of},
    {"QueryInstances", query_instances},
    {"QueryNodes", query_nodes},
    {"QueryGroups", query_groups},
    {"QueryNetworks", query_networks},
    {"QueryExports", query_exports},
    {"ArchiveJob", archive_job},
    {"AutoArchiveJobs", auto_archive_jobs},
};

void luxi_handle(struct luxi *luxi, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    const struct luxi_method *method = luxi_check_method(request->name, &error);
    void *args = NULL;
    if (method && !luxi->serving)
        fettle_set_error(&error, TEMPORARY, "luxid is starting; try again");
    else if (method)
        args = luxi_args_parse(method, request->args, &error);
    if (!args) {
        rpc_fail(request, error);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        if (g_str_equal(calls[i].name, method->name)) {
            calls[i].call(luxi, request, args);
            break;
        }
    }
    record_free(method->args, args);
}
