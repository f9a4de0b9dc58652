/* What the methods of work share; see wconf_work_private.h. */
#include <string.h>

#include "core/config/fault.h"
#include "core/config/restored.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* --- commits and answers --- */

guint64 wconf_work_serial(const struct wconf *wconf)
{
    return config_serial(wconf->head) + 1;
}

void wconf_work_refuse(struct wconf *wconf, struct rpc_request *request, GError *error)
{
    wconf_refuse_after_barrier(wconf, request, config_serial(wconf->head), error);
}

bool wconf_work_commit(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                       GPtrArray *changes_in, json_t *answer)
{
    GError *error = NULL;
    g_autoptr(GPtrArray) changes = changes_in;
    wconf_work_drop_told(wconf->head, changes);
    if (wconf_may_make(wconf, changes, &error) &&
        wconf_commit(wconf, commit_id, g_ptr_array_ref(changes), NULL, AUTHOR_WORK, request, answer,
                     &error))
        return true;
    wconf_work_refuse(wconf, request, error);
    return false;
}

bool wconf_work_again(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                      guint64 *ret_serial)
{
    if (wconf_answer_pending(wconf, commit_id, request))
        return true;
    *ret_serial = wconf->engine->ops->lookup(wconf->engine, commit_id);
    return false;
}

/* --- who calls --- */

bool wconf_work_allowed(const struct wconf *wconf, GError **error)
{
    if (!restored_brake(wconf->head))
        return true;
    restored_set_error(error);
    return false;
}

bool wconf_work_serves(const struct config *head, const struct backend *backend, const char *node,
                       GError **error)
{
    if (g_ptr_array_find_with_equal_func(backend->nodes, node, g_str_equal, NULL))
        return true;
    fettle_set_error(error, PERMISSION, "back end %s: %s is none of its nodes", backend->name,
                     config_node_name(head, node));
    return false;
}

const struct storage_service *wconf_work_caller(const struct wconf *wconf,
                                                const struct rpc_request *request, const char *uuid,
                                                guint64 generation, GError **error)
{
    const struct config *head = wconf->head;
    const struct storage_service *service = config_get(head, "storage_service", uuid, NULL);
    if (!wconf_work_allowed(wconf, error))
        return NULL;
    if (!service) {
        fettle_set_error(error, REFUSED, "storage service %s is off record", uuid);
        return NULL;
    }
    g_autofree char *name = config_storage_service_name(head, service);
    if (generation != service->generation) {
        bool over = generation < service->generation;
        fettle_set_error(
            error, WRONG_STATE,
            "%s: generation %" G_GUINT64_FORMAT " %s, %" G_GUINT64_FORMAT " is on record", name,
            generation, over ? "is over" : "was never committed", service->generation);
        if (over && error)
            (*error)->code = FETTLE_ERROR_REFUSED;
        return NULL;
    }
    if (!strcmp(service->node, request->from_node))
        return service;
    fettle_set_error(error, PERMISSION, "%s: it is registered from %s, not from %s", name,
                     config_node_name(head, service->node),
                     config_node_name(head, request->from_node));
    return NULL;
}

/* --- rows --- */

const struct work_row *wconf_work_row(const struct wconf *wconf, const struct worker *row)
{
    return work_row_of(wconf->work_table, resource_task_kind(row->resource_type), row->operation);
}

char *wconf_work_name(const struct config *head, const struct worker *row)
{
    struct resource resource = resource_of_row(head, row);
    return g_strdup_printf("%s %s", resource_kind(resource.type), resource_name(&resource));
}

char *wconf_work_said(const struct wconf *wconf, const struct worker *row)
{
    g_autofree char *name = wconf_work_name(wconf->head, row);
    return g_strdup_printf("%s: %s (%s)", name, row->operation, row->status);
}

const struct worker *wconf_work_claimed(const struct wconf *wconf,
                                        const struct storage_service *service, const char *key,
                                        guint64 claim, GError **error)
{
    const struct config *head = wconf->head;
    const struct worker *row = config_get(head, "worker", key, NULL);
    if (!row) {
        fettle_set_error(error, REFUSED, "%s: no work on it is on record", key);
        return NULL;
    }
    if (row->claim == claim && row->service_id == service->id)
        return row;
    const struct storage_service *owner = config_storage_service_of(head, row->service_id);
    g_autofree char *name = wconf_work_name(head, row);
    g_autofree char *who = owner ? config_storage_service_name(head, owner) : NULL;
    if (who)
        fettle_set_error(error, REFUSED,
                         "%s: claim %" G_GUINT64_FORMAT " is not on record, %" G_GUINT64_FORMAT
                         " of %s is",
                         name, claim, row->claim, who);
    else
        fettle_set_error(error, REFUSED,
                         "%s: claim %" G_GUINT64_FORMAT " is not on record, nobody has its work",
                         name, claim);
    return NULL;
}

/* --- records --- */

void wconf_work_put_row(struct wconf *wconf, const struct worker *row, GPtrArray *changes)
{
    g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
    g_ptr_array_add(changes, config_put(wconf->head, "worker", key, worker_to_json(row)));
}

void wconf_work_give(struct wconf *wconf, struct worker *row, const struct storage_service *service)
{
    row->service_id = service->id;
    row->claim = wconf_work_serial(wconf);
    row->updated_us = wconf_stamp(wconf);
}

void wconf_work_unname(struct wconf *wconf, struct resource *resource, const char *operation,
                       GPtrArray *changes)
{
    g_autofree char *key = config_trash_key(resource->backend, resource->data);
    g_autofree char *why =
        g_strdup_printf("%s of %s %s", operation, resource_kind(resource->type), resource->uuid);
    const struct trash trash = {.backend = (char *)resource->backend,
                                .name = (char *)resource->data,
                                .resource_type = resource->type,
                                .since_us = wconf_stamp(wconf),
                                .why = why};
    g_ptr_array_add(changes, config_put(wconf->head, "trash", key, trash_to_json(&trash)));
    resource->data = "";
}

void wconf_work_release(struct wconf *wconf, const struct worker *row, struct resource *partner,
                        const char *why, GPtrArray *changes)
{
    const struct work_row *work = wconf_work_row(wconf, row);
    bool has_data = *partner->data != '\0';
    if (!partner->exists || !work || g_strcmp0(work->partner_status, partner->status) != 0)
        return;
    partner->status =
        has_data ? resource_ready_status(partner->type) : resource_empty_status(partner->type);
    partner->status_why = has_data ? "" : why;
    g_ptr_array_add(changes, resource_put(wconf->head, partner));
}

/* --- what is told --- */

static bool is_resource(const char *kind)
{
#define RESOURCE(NAME, k, word)                                                                    \
    if (!strcmp(kind, #k))                                                                         \
        return true;
#include "proto/storage/resources.def"
    return false;
}

static bool changes_status(const struct config *head, const struct change *change)
{
    const char *after = json_string_value(json_object_get(change->object, "status"));
    return change->op == CHANGE_DELETE ||
           g_strcmp0(after, resource_of(head, resource_type_of(change->kind), change->key).status);
}

void wconf_work_drop_told(const struct config *head, GPtrArray *changes)
{
    static const char *const told[] = {"fault", "stuck"};
    for (guint i = 0, count = changes->len; i < count; i++) {
        const struct change *change = changes->pdata[i];
        if (!is_resource(change->kind) || !changes_status(head, change))
            continue;
        g_autofree char *key = fault_key(change->kind, change->key);
        for (guint k = 0; k < G_N_ELEMENTS(told); k++)
            if (config_get(head, told[k], key, NULL) && !change_list_has(changes, told[k], key))
                g_ptr_array_add(changes, config_delete(head, told[k], key));
    }
}

void wconf_work_tell_once(struct wconf *wconf, struct decision *decision, GPtrArray *changes)
{
    if (wconf->decisions)
        decisions_record(wconf->decisions, wconf->head, wconf->env, decision, changes);
    else
        wconf_decide(wconf, decision, changes);
}

/* --- many at once --- */

void wconf_work_verdict(struct work_verdicts *verdicts, const char *key, enum work_answer answer,
                        const GError *error)
{
    struct work_verdict *verdict = work_verdict_new();
    text_set(&verdict->key, key);
    verdict->answer = answer;
    if (error)
        text_set(&verdict->why, error->message);
    g_ptr_array_add(verdicts->items, verdict);
}

void wconf_work_answer_again(struct wconf *wconf, struct rpc_request *request, guint64 serial,
                             struct work_verdicts *verdicts)
{
    verdicts->serial = serial;
    wconf_answer_when_stored(wconf, serial, request, work_verdicts_to_json(verdicts));
}

void wconf_work_finish(struct wconf *wconf, struct rpc_request *request, const char *commit_id,
                       GPtrArray *changes, struct work_verdicts *verdicts)
{
    bool passed = changes->len > 0;
    verdicts->serial = passed ? wconf_work_serial(wconf) : 0;
    json_autoptr answer = work_verdicts_to_json(verdicts);
    if (passed) {
        wconf_work_commit(wconf, request, commit_id, changes, answer);
        return;
    }
    g_ptr_array_unref(changes);
    wconf_answer_judged(wconf, request, config_serial(wconf->head), json_incref(answer));
}
