/*
 * settle_resources: what recovery has found of resources in a status of work that nobody has
 * (RCV-73 to 78); discard_data: half made data that no record names (RCV-23). Judged on the head,
 * each by itself, over the version that was looked at: whoever has a row, or has changed the record
 * since, wins. See wconf_work_private.h.
 */
#include <string.h>

#include "core/config/fault.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

struct settling {
    struct wconf *wconf;
    const struct settled_resource *item;
    GPtrArray *changes;
};

/* The task that was left: its status, or what its fault says. */
static const char *task_left(const struct config *head, const struct resource *resource)
{
    enum task_kind kind = resource_task_kind(resource->type);
    const struct fault *fault = fault_of(head, resource_kind(resource->type), resource->uuid);
    if (task_row_of(kind, resource->status))
        return resource->status;
    return fault && task_row_of(kind, fault->task) ? fault->task : NULL;
}

static bool nobody_works(const struct config *head, const struct resource *resource, GError **error)
{
    g_autofree char *key = config_work_key(resource->type, resource->uuid);
    g_autoptr(GPtrArray) held = config_held_work(head, resource->type, resource->uuid);
    if (!held->len && !config_get(head, "worker", key, NULL))
        return true;
    fettle_set_error(error, REFUSED, "%s %s: work on it is on record (RCV-13)",
                     resource_kind(resource->type), resource_name(resource));
    return false;
}

static bool may_settle(const struct settling *settling, const struct resource *resource,
                       guint64 version, GError **error)
{
    const struct settled_resource *item = settling->item;
    const struct config *head = settling->wconf->head;
    const char *kind = resource_kind(item->resource_type);
    bool gone = !strcmp(item->status, "gone");
    if (!resource->exists)
        fettle_set_error(error, REFUSED, "%s %s is off record", kind, item->resource);
    else if (version != item->version)
        fettle_set_error(error, REFUSED, "%s %s has changed since it was looked at (SAF-80)", kind,
                         resource_name(resource));
    else if (!task_left(head, resource))
        fettle_set_error(error, REFUSED, "%s %s is %s; nothing was left of it", kind,
                         resource_name(resource), resource->status);
    else if (!gone && !wconf_work_settled(resource, item->status))
        fettle_set_error(error, WRONG_INPUT, "status: %s %s can be no \"%s\"",
                         resource_article(item->resource_type), kind, item->status);
    else if (*item->data && *resource->data)
        fettle_set_error(error, WRONG_INPUT, "data: %s %s has some already, %s", kind,
                         resource_name(resource), resource->data);
    else
        return nobody_works(head, resource, error);
    return false;
}

/* --- what is told --- */

static void decide(struct settling *settling, const struct resource *resource, const char *task,
                   bool alert)
{
    const struct settled_resource *item = settling->item;
    struct decision *decision =
        decision_about(resource_kind(resource->type), resource->uuid, resource_name(resource),
                       alert ? ALERT_AUTHOR : RECOVERY_AUTHOR,
                       alert || item->blind ? VERDICT_LEAVE : VERDICT_ACT, "Interrupted");
    decision->event = alert ? EVENT_ALERT : EVENT_RECOVERED;
    decision->level = item->level;
    decision_set(&decision->summary, "%s", item->summary);
    decision_set(&decision->task, "%s", task);
    decision_set(&decision->old, "%s", resource->status);
    decision_set(&decision->new, "%s", item->status);
    decision_set(&decision->rule, "%s", item->rule);
    for (guint i = 0; i < item->evidence->len; i++)
        g_ptr_array_add(decision->evidence, g_strdup(item->evidence->pdata[i]));
    wconf_decide(settling->wconf, decision, settling->changes);
}

/* Why it is in ERROR, for who looks, and for who judges it anew (RCV-30, 40). */
static void put_fault(struct settling *settling, const struct resource *resource, const char *task)
{
    const struct settled_resource *item = settling->item;
    const char *kind = resource_kind(resource->type);
    g_autofree char *key = fault_key(kind, resource->uuid);
    const struct fault fault = {.subject_kind = (char *)kind,
                                .subject = (char *)resource->uuid,
                                .at_us = wconf_stamp(settling->wconf),
                                .message = item->summary,
                                .state_before = (char *)resource->status,
                                .task = (char *)task,
                                .rule = item->rule,
                                .evidence = item->evidence,
                                .level = item->level,
                                .blind = item->blind};
    g_ptr_array_add(settling->changes,
                    config_put(settling->wconf->head, "fault", key, fault_to_json(&fault)));
}

/* Nobody is to judge it anew, so nothing of what it was judged by stays (RCV-40). */
static void drop_fault(struct settling *settling, const struct resource *resource)
{
    const struct config *head = settling->wconf->head;
    const char *kind = resource_kind(resource->type);
    g_autofree char *key = fault_key(kind, resource->uuid);
    if (fault_of(head, kind, resource->uuid))
        g_ptr_array_add(settling->changes, config_delete(head, "fault", key));
}

/* --- the records --- */

static void put_resource(struct settling *settling, struct resource resource)
{
    const struct settled_resource *item = settling->item;
    bool fine = !strcmp(item->status, resource_ready_status(resource.type));
    g_autofree char *why = g_strndup(item->summary, 256);
    resource.status = item->status;
    resource.status_why = fine ? "" : why;
    if (*item->data)
        resource.data = item->data;
    if (item->size)
        resource.size = item->size;
    g_ptr_array_add(settling->changes, resource_put(settling->wconf->head, &resource));
}

/* The name of what is gone is trash, so that nothing under it is ever taken for somebody's. */
static void delete_resource(struct settling *settling, struct resource resource)
{
    if (*resource.data)
        wconf_work_unname(settling->wconf, &resource, "recovery", settling->changes);
    g_ptr_array_add(settling->changes, config_delete(settling->wconf->head,
                                                     resource_kind(resource.type), resource.uuid));
}

static bool settle_one(struct settling *settling, GError **error)
{
    const struct settled_resource *item = settling->item;
    const struct config *head = settling->wconf->head;
    const char *kind = resource_kind(item->resource_type);
    guint64 version = 0;
    struct resource resource =
        resource_read(item->resource_type, config_get(head, kind, item->resource, &version));
    if (!may_settle(settling, &resource, version, error))
        return false;
    const char *task = task_left(head, &resource);
    bool gone = !strcmp(item->status, "gone");
    guint from = settling->changes->len;
    if (gone)
        delete_resource(settling, resource);
    else
        put_resource(settling, resource);
    if (!gone && (item->blind || item->alert) &&
        strcmp(item->status, resource_ready_status(resource.type)) != 0)
        put_fault(settling, &resource, task);
    else
        drop_fault(settling, &resource);
    wconf_work_drop_told(head, settling->changes);
    g_autoptr(GPtrArray) own = g_ptr_array_new();
    for (guint i = from; i < settling->changes->len; i++)
        g_ptr_array_add(own, settling->changes->pdata[i]);
    if (!wconf_would_commit(settling->wconf, own, AUTHOR_WORK, error)) {
        g_ptr_array_set_size(settling->changes, (int)from);
        return false;
    }
    decide(settling, &resource, task, false);
    if (item->alert || item->blind)
        decide(settling, &resource, task, true);
    return true;
}

static void settle(struct wconf *wconf, struct rpc_request *request,
                   const struct settle_resources_args *args)
{
    record_autoptr(work_verdicts) verdicts = work_verdicts_new();
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < args->items->len; i++) {
        const struct settled_resource *item = args->items->pdata[i];
        struct settling settling = {wconf, item, changes};
        g_autoptr(GError) error = NULL;
        g_autofree char *key = config_work_key(item->resource_type, item->resource);
        bool twice = change_list_has(changes, resource_kind(item->resource_type), item->resource);
        if (twice)
            fettle_set_error(&error, WRONG_INPUT, "%s: is named twice", key);
        bool passed = !twice && settle_one(&settling, &error);
        wconf_work_verdict(verdicts, key, passed ? WORK_PASSED : WORK_REFUSED, error);
    }
    wconf_work_finish(wconf, request, args->commit_id, changes, verdicts);
}

static void settled_before(struct wconf *wconf, struct rpc_request *request,
                           const struct settle_resources_args *args, guint64 serial)
{
    record_autoptr(work_verdicts) verdicts = work_verdicts_new();
    for (guint i = 0; i < args->items->len; i++) {
        const struct settled_resource *item = args->items->pdata[i];
        g_autofree char *key = config_work_key(item->resource_type, item->resource);
        wconf_work_verdict(verdicts, key, WORK_LOOK_AT_COPY, NULL);
    }
    wconf_work_answer_again(wconf, request, serial, verdicts);
}

void wconf_handle_settle_resources(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    guint64 serial = 0;
    record_autoptr(settle_resources_args) args =
        rpc_request_args(request, &settle_resources_args_record, &error);
    if (args && wconf_work_again(wconf, request, args->commit_id, &serial))
        return;
    if (!args || !wconf_work_allowed(wconf, &error))
        wconf_work_refuse(wconf, request, error);
    else if (serial)
        settled_before(wconf, request, args, serial);
    else
        settle(wconf, request, args);
}

/* --- discard_data --- */

/* No record of this line of commits names it, or can come to do so. */
static bool is_nobodys(const struct config *head, const struct discard_data_args *args,
                       const struct resource *resource, guint64 claim, GError **error)
{
    g_autofree char *key = config_trash_key(args->backend, args->name);
    const char *kind = resource_kind(resource->type);
    if (!strcmp(resource->data, args->name))
        fettle_set_error(error, REFUSED, "%s is what %s %s has", args->name, kind,
                         resource_name(resource));
    else if (resource->exists && !*resource->data)
        fettle_set_error(error, REFUSED, "%s %s has no data, and this may be its own", kind,
                         resource_name(resource));
    else if (claim > config_serial(head))
        fettle_set_error(error, REFUSED, "%s: its claim is still to come", args->name);
    else if (config_get(head, "trash", key, NULL))
        fettle_set_error(error, REFUSED, "%s is trash already", args->name);
    else
        return nobody_works(head, resource, error);
    return false;
}

static bool may_discard(const struct wconf *wconf, const struct discard_data_args *args,
                        struct resource *ret_resource, char **ret_uuid, GError **error)
{
    guint64 claim = 0;
    if (config_cluster(wconf->head)->recovery_rectify_unstable != RECTIFY_ALL)
        fettle_set_error(error, WRONG_STATE, "recovery_rectify_unstable is not all");
    else if (!config_get(wconf->head, "backend", args->backend, NULL))
        fettle_set_error(error, UNKNOWN_ENTITY, "there is no back end %s", args->backend);
    else if (!volume_data_parse(args->name, ret_uuid, &claim))
        fettle_set_error(error, WRONG_INPUT, "name: \"%s\" is no name of data", args->name);
    else if (wconf_work_allowed(wconf, error)) {
        *ret_resource = resource_of(wconf->head, args->resource_type, *ret_uuid);
        return is_nobodys(wconf->head, args, ret_resource, claim, error);
    }
    return false;
}

static void discard(struct wconf *wconf, struct rpc_request *request,
                    const struct discard_data_args *args, const char *uuid)
{
    const struct backend *backend = config_get(wconf->head, "backend", args->backend, NULL);
    struct resource made = resource_read(args->resource_type, NULL);
    const char *kind = resource_kind(args->resource_type);
    GPtrArray *changes = change_list_new();
    made.uuid = uuid;
    made.backend = args->backend;
    made.data = args->name;
    wconf_work_unname(wconf, &made, "recovery", changes);
    struct decision *decision =
        decision_about(kind, uuid, uuid, RECOVERY_AUTHOR, VERDICT_ACT, "Discarded");
    decision->event = EVENT_RECOVERED;
    decision->level = EVENT_LEVEL_WARNING;
    decision_set(&decision->rule, "RCV-23");
    decision_set(&decision->summary,
                 "Half made data of %s that no record names goes from back end %s: %ss/%s.", kind,
                 backend->name, kind, args->name);
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("not marked whole, open nowhere, %" G_GUINT64_FORMAT " MiB",
                                    args->bytes / MIB(1)));
    wconf_decide(wconf, decision, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_discard_data(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    g_autofree char *uuid = NULL;
    record_autoptr(discard_data_args) args =
        rpc_request_args(request, &discard_data_args_record, &error);
    struct resource resource = resource_read(RESOURCE_VOLUME, NULL);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    if (args && may_discard(wconf, args, &resource, &uuid, &error))
        discard(wconf, request, args, uuid);
    else
        wconf_work_refuse(wconf, request, error);
}
