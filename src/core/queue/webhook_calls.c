/* See webhook_calls.h. */
#include "core/queue/webhook_calls.h"

#include <string.h>

#include "base/text.h"
#include "proto/change.h"

#define AUTHOR "rapid/webhook"

/* --- who wants events --- */

static const struct webhook_mark *mark_of(const struct config *config,
                                          const struct webhook *webhook)
{
    return config_get(config, "webhook_mark", webhook->uuid, NULL);
}

static json_t *told(const struct config *config, const struct webhook *webhook)
{
    const struct webhook_mark *mark = mark_of(config, webhook);
    json_t *row = webhook_to_json(webhook);
    json_object_set_new(row, "mark", mark ? webhook_mark_to_json(mark) : json_null());
    return row;
}

/* Nobody but who signs with it needs a secret. */
static json_t *list(const struct config *config, bool secrets)
{
    g_autoptr(GPtrArray) webhooks = config_list(config, "webhook");
    json_t *rows = json_array();
    for (guint i = 0; i < webhooks->len; i++) {
        json_t *row = told(config, webhooks->pdata[i]);
        if (!secrets)
            json_object_del(row, "secret");
        json_array_append_new(rows, row);
    }
    return rows;
}

void webhook_calls_query(struct queue_context *context, struct rpc_request *request)
{
    rpc_answer(request, list(follow_config(context->follow), false));
}

/* --- what the REST daemon is to deliver --- */

static bool is_rest(struct rpc_request *request)
{
    if (request->is_rest)
        return true;
    rpc_fail_new(request, FETTLE_ERROR_PERMISSION, "%s: is the REST daemon's to ask",
                 request->name);
    return false;
}

/* Where our own daemons listen. */
static json_t *refused(const struct config *config)
{
    const struct cluster *cluster = config_cluster(config);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    json_t *addresses = json_array();
    for (guint i = 0; i < nodes->len; i++)
        json_array_append_new(addresses,
                              json_string(((const struct node *)nodes->pdata[i])->primary_ip));
    if (cluster && *cluster->master_ip)
        json_array_append_new(addresses, json_string(cluster->master_ip));
    return addresses;
}

static json_t *allowed(const struct cluster *cluster)
{
    json_t *networks = json_array();
    for (guint i = 0; cluster && i < cluster->webhook_allow->len; i++)
        json_array_append_new(networks, json_string(cluster->webhook_allow->pdata[i]));
    return networks;
}

/* Its serial is that of what happened last: while that stands nobody asks what has happened. */
void webhook_calls_take(struct queue_context *context, struct rpc_request *request)
{
    const struct config *config = follow_config(context->follow);
    const struct cluster *cluster = config_cluster(config);
    if (is_rest(request))
        rpc_answer(request,
                   json_make("{sI sI ss so so so}", "history", (json_int_t)config_history(config),
                             "serial", (json_int_t)context->happened, "cluster",
                             cluster ? cluster->uuid : "", "refused", refused(config), "allowed",
                             allowed(cluster), "webhooks", list(config, true)));
}

void webhook_calls_happened(struct queue_context *context, struct rpc_request *request,
                            const struct luxi_query_happened_args *args)
{
    const struct config *config = follow_config(context->follow);
    bool more = false;
    json_t *events = webhook_happened(config, args->serial, args->after, args->events,
                                      LIMIT_WEBHOOK_EVENTS, &more);
    rpc_answer(request, json_make("{so sI sb}", "events", events, "serial",
                                  (json_int_t)config_serial(config), "more", more));
}

/* --- how far it is --- */

struct keeping {
    struct queue_context *context;
    struct rpc_request *request;
    GPtrArray *marks; /* of struct webhook_mark */
};

static void mark_free(void *mark)
{
    webhook_mark_free(mark);
}

static void keeping_free(struct keeping *keeping)
{
    g_ptr_array_unref(keeping->marks);
    g_free(keeping);
}

static GPtrArray *read_marks(const json_t *list, GError **error)
{
    g_autoptr(GPtrArray) marks = g_ptr_array_new_with_free_func(mark_free);
    size_t i;
    json_t *row;
    if (!json_is_array(list) || json_array_size(list) > LIMIT_WEBHOOKS) {
        fettle_set_error(error, WRONG_INPUT, "marks: must be a list of at most %d objects",
                         LIMIT_WEBHOOKS);
        return NULL;
    }
    json_array_foreach(list, i, row) {
        struct webhook_mark *mark = record_parse(&webhook_mark_record, row, RECORD_STRICT, error);
        if (!mark) {
            g_prefix_error(error, "marks[%zu]: ", i);
            return NULL;
        }
        g_ptr_array_add(marks, mark);
    }
    return g_steal_pointer(&marks);
}

/* Nobody looks at a list of webhooks each day: that one has failed is an event, which people see
 * where they see all. */
static void add_alert(const struct queue_context *context, const struct webhook *webhook,
                      const struct webhook_mark *mark, GPtrArray *changes)
{
    g_autofree char *uuid = env_uuid(context->env);
    g_autofree char *said = text_head(mark->said, 120);
    g_autofree char *summary = g_strdup_printf(
        "Webhook %s: its receiver has taken nothing for %" G_GUINT64_FORMAT
        " hours (%s), and nothing more is tried; what happens is kept for it. When it is back: "
        "fettle webhook modify %s --resume",
        webhook->name, mark->waited_s / 3600, said, webhook->name);
    record_autoptr(decision) alert = decision_new();
    text_set(&alert->uuid, uuid);
    text_set(&alert->author, AUTHOR);
    text_set(&alert->subject_kind, "webhook");
    text_set(&alert->subject, webhook->uuid);
    text_set(&alert->subject_name, webhook->name);
    text_set(&alert->state, "failing");
    text_set(&alert->summary, summary);
    alert->at_us = context_now_us(context);
    alert->verdict = VERDICT_LEAVE;
    alert->event = EVENT_ALERT;
    alert->level = EVENT_LEVEL_ERROR;
    g_ptr_array_add(changes, config_put(follow_config(context->follow), "decision", uuid,
                                        decision_to_json(alert)));
}

/* Of one that is over, or that nobody has begun: who says so has not heard yet, or makes it up. */
static bool is_of_another_round(const struct webhook_mark *mark, const struct webhook_mark *before,
                                const struct webhook *webhook)
{
    guint64 first = before ? MIN(before->round, webhook->round) : 0;
    return mark->round < first || mark->round > webhook->round;
}

/* One that is gone has no mark any more. What has failed in a round has failed for all of it, so it
 * is told once, whatever the REST daemon says. */
static void add_mark(const struct queue_context *context, const struct webhook_mark *mark,
                     GPtrArray *changes)
{
    const struct config *config = follow_config(context->follow);
    const struct webhook *webhook = config_get(config, "webhook", mark->uuid, NULL);
    if (!webhook)
        return;
    const struct webhook_mark *before = mark_of(config, webhook);
    if (is_of_another_round(mark, before, webhook))
        return;
    bool known = before && before->failing && before->round == mark->round;
    if (mark->failing && !known && mark->round == webhook->round)
        add_alert(context, webhook, mark, changes);
    json_t *kept = webhook_mark_to_json(mark);
    json_object_set_new(kept, "failing", json_boolean(mark->failing || known));
    g_ptr_array_add(changes, config_put(config, "webhook_mark", mark->uuid, kept));
}

static void keep_task(void *data)
{
    struct keeping *keeping = data;
    struct queue_context *context = keeping->context;
    struct owner owner = {.job = (char *)ROLE_LUXID, .livelock = context->livelock};
    g_autoptr(GPtrArray) changes = change_list_new();
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < keeping->marks->len; i++)
        add_mark(context, keeping->marks->pdata[i], changes);
    if (changes->len == 0 || follow_commit(context->follow, "keep_webhooks", &owner, changes,
                                           follow_stamp(context->follow), 0, &error))
        rpc_answer(keeping->request, json_null());
    else
        rpc_fail(keeping->request, error);
    keeping_free(keeping);
}

void webhook_calls_keep(struct queue_context *context, struct rpc_request *request,
                        const struct luxi_keep_webhook_marks_args *args)
{
    g_autoptr(GError) error = NULL;
    if (!is_rest(request))
        return;
    GPtrArray *marks = read_marks(args->marks, &error);
    if (!marks) {
        rpc_fail(request, error);
        return;
    }
    struct keeping *keeping = g_new0(struct keeping, 1);
    *keeping = (struct keeping){context, request, marks};
    task_spawn(context->env->tasks, keep_task, keeping);
}
