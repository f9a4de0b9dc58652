/*
 * Work under a claim, from its beginning to before its end: take_work, step_work; and empty_trash.
 * See wconf_work_private.h.
 */
#include <string.h>

#include "core/storage/volume_choose.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* --- take_work --- */

static const struct worker *find_free(const struct wconf *wconf,
                                      const struct storage_service *service, const char *key,
                                      GError **error)
{
    const struct config *head = wconf->head;
    const struct worker *row = config_get(head, "worker", key, NULL);
    if (!row) {
        fettle_set_error(error, REFUSED, "%s: no work on it is on record", key);
        return NULL;
    }
    const struct storage_service *owner = config_storage_service_of(head, row->service_id);
    g_autofree char *name = wconf_work_name(head, row);
    if (row->service_id) {
        g_autofree char *who = owner ? config_storage_service_name(head, owner) : g_strdup("-");
        fettle_set_error(error, REFUSED, "%s: %s works on it", name, who);
        return NULL;
    }
    if (!strcmp(row->backend, service->backend)) /* of a scheduler: none */
        return row;
    const struct backend *meant = config_get(head, "backend", row->backend, NULL);
    g_autofree char *who = config_storage_service_name(head, service);
    fettle_set_error(error, REFUSED, "%s: its work is for %s, not for %s", name,
                     meant ? meant->name : "a scheduler", who);
    return NULL;
}

static bool may_take(const struct config *head, const struct storage_service *service,
                     GError **error)
{
    g_autofree char *name = config_storage_service_name(head, service);
    const struct backend *backend = config_get(head, "backend", service->backend, NULL);
    if (!service->disabled)
        return !backend || wconf_work_serves(head, backend, service->node, error);
    fettle_set_error(error, WRONG_STATE, "%s is disabled%s%s", name,
                     *service->disabled_reason ? ": " : "", service->disabled_reason);
    return false;
}

static json_t *taken_json(guint64 claim)
{
    const struct taken_work taken = {.claim = claim};
    return taken_work_to_json(&taken);
}

static void take(struct wconf *wconf, struct rpc_request *request,
                 const struct take_work_args *args, const struct storage_service *service,
                 const struct worker *old)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(worker) row = worker_copy(old);
    wconf_work_give(wconf, row, service);
    wconf_work_put_row(wconf, row, changes);
    json_autoptr answer = taken_json(row->claim);
    wconf_work_commit(wconf, request, args->commit_id, changes, answer);
}

/* It has it already: the first answer was lost so long ago that the id is forgotten. */
static const struct worker *taken_before(const struct config *head,
                                         const struct storage_service *service, const char *key)
{
    guint64 version = 0;
    const struct worker *row = config_get(head, "worker", key, &version);
    return row && row->service_id == service->id && row->claim == version && !row->was_service_id &&
                   version > service->generation
               ? row
               : NULL;
}

static void take_work(struct wconf *wconf, struct rpc_request *request,
                      const struct take_work_args *args)
{
    GError *error = NULL;
    guint64 serial = 0;
    if (wconf_work_again(wconf, request, args->commit_id, &serial))
        return;
    const struct storage_service *service =
        wconf_work_caller(wconf, request, args->service, args->generation, &error);
    const struct worker *before = service ? taken_before(wconf->head, service, args->key) : NULL;
    const struct worker *row =
        service && !serial && !before && may_take(wconf->head, service, &error)
            ? find_free(wconf, service, args->key, &error)
            : NULL;
    if (service && (serial || before))
        wconf_answer_when_stored(wconf, serial ? serial : before->claim, request,
                                 taken_json(serial ? serial : before->claim));
    else if (row)
        take(wconf, request, args, service, row);
    else
        wconf_work_refuse(wconf, request, error);
}

void wconf_handle_take_work(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(take_work_args) args = rpc_request_args(request, &take_work_args_record, &error);
    if (args)
        take_work(wconf, request, args);
    else
        rpc_fail(request, error);
}

/* --- step_work --- */

static bool stands(const struct wconf *wconf, const struct worker *row,
                   const struct resource *resource, GError **error)
{
    g_autofree char *name = wconf_work_name(wconf->head, row);
    if (!strcmp(resource->status, row->status))
        return true;
    fettle_set_error(error, REFUSED, "%s is %s, and not %s as its work says", name,
                     resource->status, row->status);
    return false;
}

/* Another status of the same operation. */
static bool may_become(const struct wconf *wconf, const struct worker *row, const char *status,
                       GError **error)
{
    const struct work_row *work = wconf_work_row(wconf, row);
    const struct task_row *task = task_row_of(resource_task_kind(row->resource_type), status);
    if (work && task && task->operation == work->operation && task->owner == TASK_BY_ROW)
        return true;
    fettle_set_error(error, WRONG_INPUT, "status: %s is none of %s", status, row->operation);
    return false;
}

/* What it names is given up only by work that removes it. */
static bool may_unname(const struct wconf *wconf, const struct worker *row, GError **error)
{
    const struct work_row *work = wconf_work_row(wconf, row);
    g_autofree char *name = wconf_work_name(wconf->head, row);
    if (work && work->done == TASK_FINAL_REMOVED)
        return true;
    fettle_set_error(error, WRONG_INPUT, "unname: %s does not remove %s", row->operation, name);
    return false;
}

/* What comes in is promised its room on the head, beside whatever else is (SAF-27). */
static bool may_promise(struct wconf *wconf, const struct worker *row, guint64 bytes,
                        GError **error)
{
    const struct work_row *work = wconf_work_row(wconf, row);
    const struct backend *backend = config_get(wconf->head, "backend", row->backend, NULL);
    if (!work || work->operation != TASK_OPERATION_SAVE_IMAGE) {
        fettle_set_error(error, WRONG_INPUT, "bytes: of save-image, not of %s", row->operation);
        return false;
    }
    record_autoptr(backend_space) space = wconf_services_space(wconf, row->backend);
    if (!backend || !space || volume_room_of_image(wconf->head, backend, space, bytes, error))
        return true;
    wconf_services_doubt(wconf, row->backend);
    return false;
}

static bool may_step(struct wconf *wconf, const struct step_work_args *args,
                     const struct worker *row, const struct resource *resource, GError **error)
{
    bool changes = args->unname || *args->status || args->bytes;
    return (!args->unname || may_unname(wconf, row, error)) &&
           (!*args->status || may_become(wconf, row, args->status, error)) &&
           (!changes || stands(wconf, row, resource, error)) &&
           (!args->bytes || may_promise(wconf, row, args->bytes, error));
}

static void step(struct wconf *wconf, struct rpc_request *request,
                 const struct step_work_args *args, const struct worker *old,
                 struct resource *resource)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(worker) row = worker_copy(old);
    bool unnames = args->unname && *resource->data;
    row->updated_us = wconf_stamp(wconf);
    if (*args->status) {
        text_set(&row->status, args->status);
        resource->status = args->status;
    }
    wconf_work_put_row(wconf, row, changes);
    if (unnames)
        wconf_work_unname(wconf, resource, row->operation, changes);
    if (args->bytes)
        resource->virtual_size = args->bytes;
    if (unnames || *args->status || args->bytes)
        g_ptr_array_add(changes, resource_put(wconf->head, resource));
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_step_work(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(step_work_args) args = rpc_request_args(request, &step_work_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct storage_service *service =
        args ? wconf_work_caller(wconf, request, args->service, args->generation, &error) : NULL;
    const struct worker *row =
        service ? wconf_work_claimed(wconf, service, args->key, args->claim, &error) : NULL;
    struct resource resource =
        row ? resource_of_row(wconf->head, row) : resource_read(RESOURCE_VOLUME, NULL);
    if (row && may_step(wconf, args, row, &resource, &error))
        step(wconf, request, args, row, &resource);
    else
        wconf_work_refuse(wconf, request, error);
}

/* --- empty_trash --- */

/* What is off record already is as it should be. */
static void empty_trash(struct wconf *wconf, struct rpc_request *request,
                        const struct empty_trash_args *args, const struct storage_service *service)
{
    GPtrArray *changes = change_list_new();
    for (guint i = 0; i < args->names->len; i++) {
        g_autofree char *key = config_trash_key(service->backend, args->names->pdata[i]);
        if (config_get(wconf->head, "trash", key, NULL) && !change_list_has(changes, "trash", key))
            g_ptr_array_add(changes, config_delete(wconf->head, "trash", key));
    }
    if (changes->len) {
        wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
        return;
    }
    g_ptr_array_unref(changes);
    const struct commit_result result = {.serial = config_serial(wconf->head)};
    wconf_answer_judged(wconf, request, result.serial, commit_result_to_json(&result));
}

void wconf_handle_empty_trash(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(empty_trash_args) args =
        rpc_request_args(request, &empty_trash_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct storage_service *service =
        args ? wconf_work_caller(wconf, request, args->service, args->generation, &error) : NULL;
    if (service)
        empty_trash(wconf, request, args, service);
    else
        wconf_work_refuse(wconf, request, error);
}
