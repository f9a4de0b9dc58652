/*
 * hand_on: a scheduler has chosen the back end of a resource. It need not own the row for that: one
 * write less, and two schedulers hand it to two back ends no more than two members take it, for the
 * head has it for the schedulers or has it not. See wconf_work_private.h.
 */
#include <string.h>

#include "core/config/volume_types.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* The row while no back end is chosen and nobody has it. REFUSED: it is so no more. */
static const struct worker *find_waiting(const struct wconf *wconf, const char *key, GError **error)
{
    const struct config *head = wconf->head;
    const struct worker *row = config_get(head, "worker", key, NULL);
    if (!row) {
        fettle_set_error(error, REFUSED, "%s: no work on it is on record", key);
        return NULL;
    }
    const struct storage_service *owner = config_storage_service_of(head, row->service_id);
    const struct backend *backend = config_get(head, "backend", row->backend, NULL);
    g_autofree char *name = wconf_work_name(head, row);
    g_autofree char *who = owner ? config_storage_service_name(head, owner) : NULL;
    if (*row->backend)
        fettle_set_error(error, REFUSED, "%s: its work is for %s", name,
                         backend ? backend->name : row->backend);
    else if (row->service_id)
        fettle_set_error(error, REFUSED, "%s: %s works on it", name, who ? who : "-");
    else
        return row;
    return NULL;
}

static const struct worker *find_row(const struct wconf *wconf, const struct hand_on_args *args,
                                     const struct storage_service *service, GError **error)
{
    if (!args->claim)
        return find_waiting(wconf, args->key, error);
    const struct worker *row = wconf_work_claimed(wconf, service, args->key, args->claim, error);
    g_autofree char *name = row ? wconf_work_name(wconf->head, row) : NULL;
    if (row && row->was_service_id) {
        fettle_set_error(error, WRONG_STATE, "%s: its work is being cleaned", name);
        return NULL;
    }
    return row;
}

/* Whoever chose may know no types. */
static bool type_fits(const struct config *head, const struct worker *row,
                      const struct backend *backend, GError **error)
{
    const struct resource resource = resource_of_row(head, row);
    const char *uuid = *row->volume_type ? row->volume_type : resource.volume_type;
    const struct volume_type *type = config_get(head, "volume_type", uuid, NULL);
    g_autofree char *name = wconf_work_name(head, row);
    if (!volume_type_fits(type, backend))
        fettle_set_error(error, WRONG_STATE, "%s: its type %s is not for back end %s", name,
                         type->name, backend->name);
    else if (resource_is_moved(row) && !strcmp(resource.backend, backend->uuid))
        fettle_set_error(error, WRONG_STATE, "%s is on %s already", name, backend->name);
    else
        return !resource_is_moved(row) ||
               wconf_work_one_sees_both(head, resource.backend, backend->uuid, error);
    return false;
}

/* What it reads is seen from one of its nodes. */
static bool source_fits(const struct config *head, const struct worker *row,
                        const struct backend *backend, GError **error)
{
    const char *from = resource_read_from(head, row);
    return !*from || wconf_work_one_sees_both(head, from, backend->uuid, error);
}

/* Whoever chose knew it as it was; the head knows whether somebody serves it. One whose members
 * are to come yet does: a row waits for them. */
static bool backend_fits(const struct config *head, const struct worker *row, const char *uuid,
                         GError **error)
{
    const struct backend *backend = config_get(head, "backend", uuid, NULL);
    g_autoptr(GPtrArray) services = config_list(head, "storage_service");
    guint members = 0, disabled = 0;
    if (!backend) {
        fettle_set_error(error, UNKNOWN_ENTITY, "backend: there is no backend %s", uuid);
        return false;
    }
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        bool member = !strcmp(service->backend, uuid);
        members += member;
        disabled += member && service->disabled;
    }
    if (!members || disabled < members)
        return type_fits(head, row, backend, error) && source_fits(head, row, backend, error);
    fettle_set_error(error, WRONG_STATE, "back end %s: each of its services is disabled",
                     backend->name);
    return false;
}

static bool stands(const struct wconf *wconf, const struct worker *row, GError **error)
{
    const struct resource resource = resource_of_row(wconf->head, row);
    g_autofree char *name = wconf_work_name(wconf->head, row);
    if (!strcmp(resource.status, row->status))
        return true;
    fettle_set_error(error, REFUSED, "%s is %s, and not %s as its work says", name, resource.status,
                     row->status);
    return false;
}

static void hand_on(struct wconf *wconf, struct rpc_request *request,
                    const struct hand_on_args *args, const struct worker *old)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(worker) row = worker_copy(old);
    struct resource resource = resource_of_row(wconf->head, old);
    if (!resource_is_moved(old)) /* until its data is there it is where it was */
        resource.backend = args->backend;
    text_set(&row->backend, args->backend);
    row->updated_us = wconf_stamp(wconf);
    if (row->service_id) /* what had been claimed is nobody's under another claim */
        row->claim = wconf_work_serial(wconf);
    row->service_id = 0;
    g_ptr_array_add(changes, resource_put(wconf->head, &resource));
    wconf_work_put_row(wconf, row, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_hand_on(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(hand_on_args) args = rpc_request_args(request, &hand_on_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct storage_service *service =
        args ? wconf_work_caller(wconf, request, args->service, args->generation, &error) : NULL;
    const struct worker *row = service ? find_row(wconf, args, service, &error) : NULL;
    if (row && stands(wconf, row, &error) && backend_fits(wconf->head, row, args->backend, &error))
        hand_on(wconf, request, args, row);
    else
        wconf_work_refuse(wconf, request, error);
}
