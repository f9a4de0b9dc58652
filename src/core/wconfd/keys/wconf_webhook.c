/*
 * Where events are delivered to: put on record, changed and taken off it on a person's word, each
 * in one commit. Names, addresses and events are judged by the invariants. How far deliveries are
 * is luxid's to write (webhook_mark), by the word of the REST daemon.
 */
#include "base/text.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

static const struct webhook *find(const struct wconf *wconf, const char *name, GError **error)
{
    return config_find(wconf->head, "webhook", name, error);
}

/* Changes in one commit, or the refusal that `error` is. Both are stolen. */
static void commit(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                   GPtrArray *changes, GError *error)
{
    if (error) {
        g_ptr_array_unref(changes);
        wconf_work_refuse(wconf, request, error);
        return;
    }
    wconf_work_commit(wconf, request, commit_id, changes, NULL);
}

static void put(const struct wconf *wconf, const struct webhook *webhook, GPtrArray *changes)
{
    g_ptr_array_add(changes,
                    config_put(wconf->head, "webhook", webhook->uuid, webhook_to_json(webhook)));
}

/* What is on record by now is not delivered. */
void wconf_handle_add_webhook(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    GPtrArray *changes = change_list_new();
    record_autoptr(add_webhook_args) args =
        rpc_request_args(request, &add_webhook_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request)) {
        g_ptr_array_unref(changes);
        return;
    }
    if (args && find(wconf, args->name, NULL))
        fettle_set_error(&error, ALREADY_EXISTS,
                         "webhook \"%s\" exists already; change it with: fettle webhook modify",
                         args->name);
    else if (args)
        put(wconf,
            &(struct webhook){.uuid = args->commit_id,
                              .name = args->name,
                              .url = args->url,
                              .secret = args->secret,
                              .events = args->events,
                              .test = (char *)"",
                              .begins = wconf_work_serial(wconf)},
            changes);
    commit(wconf, request, args ? args->commit_id : "", changes, error);
}

/* Another receiver, or a person's word, is a new round: what failed before does not count. */
static void change(struct webhook *webhook, const struct change_webhook_args *args)
{
    if (*args->url)
        text_set(&webhook->url, args->url);
    if (*args->secret)
        text_set(&webhook->secret, args->secret);
    if (args->events->len > 0) {
        g_ptr_array_set_size(webhook->events, 0);
        for (guint i = 0; i < args->events->len; i++)
            g_ptr_array_add(webhook->events, g_strdup(args->events->pdata[i]));
    }
    if (args->pause >= 0)
        webhook->paused = args->pause > 0;
    if (*args->url || *args->secret || args->pause == 0)
        webhook->round++;
    if (args->test)
        text_set(&webhook->test, args->commit_id);
}

void wconf_handle_change_webhook(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    GPtrArray *changes = change_list_new();
    record_autoptr(change_webhook_args) args =
        rpc_request_args(request, &change_webhook_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request)) {
        g_ptr_array_unref(changes);
        return;
    }
    const struct webhook *old = args ? find(wconf, args->webhook, &error) : NULL;
    if (old) {
        record_autoptr(webhook) changed = webhook_copy(old);
        change(changed, args);
        put(wconf, changed, changes);
    }
    commit(wconf, request, args ? args->commit_id : "", changes, error);
}

void wconf_handle_remove_webhook(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    GPtrArray *changes = change_list_new();
    record_autoptr(remove_webhook_args) args =
        rpc_request_args(request, &remove_webhook_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request)) {
        g_ptr_array_unref(changes);
        return;
    }
    const struct webhook *webhook = args ? find(wconf, args->webhook, &error) : NULL;
    if (webhook) {
        if (config_get(wconf->head, "webhook_mark", webhook->uuid, NULL))
            g_ptr_array_add(changes, config_delete(wconf->head, "webhook_mark", webhook->uuid));
        g_ptr_array_add(changes, config_delete(wconf->head, "webhook", webhook->uuid));
    }
    commit(wconf, request, args ? args->commit_id : "", changes, error);
}
