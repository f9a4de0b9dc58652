/*
 * Rows whose owner's process is gone: claim_work, by which the next process of its name takes them
 * over, or who cleans for it; and give_back. See wconf_work_private.h.
 */
#include <string.h>

#include "core/storage/cleanup_plan.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

/* --- claim_work --- */

/* As the caller has read it (CLN-15); `ret_name` is to be freed. */
static const struct worker *find_as_read(const struct config *head, const struct work_claim *item,
                                         char **ret_name, GError **error)
{
    guint64 version = 0;
    const struct worker *row = config_get(head, "worker", item->key, &version);
    if (!row) {
        fettle_set_error(error, REFUSED, "%s: no work on it is on record", item->key);
        return NULL;
    }
    *ret_name = wconf_work_name(head, row);
    if (version == item->version)
        return row;
    fettle_set_error(error, REFUSED,
                     "%s: its work was read at version %" G_GUINT64_FORMAT
                     ", it is at %" G_GUINT64_FORMAT " now",
                     *ret_name, item->version, version);
    return NULL;
}

/* A row that this very life has touched is under way, or was given back by it (CLN-21). One that
 * was claimed before, for another to clean, and given back since is none of this life's. */
static const struct worker *find_left(const struct wconf *wconf,
                                      const struct storage_service *service,
                                      const struct work_claim *item, GError **error)
{
    g_autofree char *name = NULL;
    const struct worker *row = find_as_read(wconf->head, item, &name, error);
    if (!row)
        return NULL;
    if (row->service_id != service->id)
        fettle_set_error(error, REFUSED, "%s: service %" G_GUINT64_FORMAT " has its work", name,
                         row->service_id);
    else if (item->version >= service->generation && row->claim >= service->generation)
        fettle_set_error(error, REFUSED,
                         "%s: its work was touched since registration %" G_GUINT64_FORMAT, name,
                         service->generation);
    else
        return row;
    return NULL;
}

/* By one who cleans for another: rows that the cleanup covers, as they were read. */
static const struct worker *find_of_another(const struct wconf *wconf,
                                            const struct cleanup *cleanup,
                                            const struct work_claim *item, GError **error)
{
    g_autofree char *name = NULL;
    const struct worker *row = find_as_read(wconf->head, item, &name, error);
    if (!row)
        return NULL;
    if (!cleanup_covers(cleanup, row))
        fettle_set_error(error, REFUSED,
                         "%s: its work is none that cleanup of service %" G_GUINT64_FORMAT
                         " is about, or was touched since that was asked for",
                         name, cleanup->service_id);
    else
        return row;
    return NULL;
}

/* What it is asked to do; `*ret` NULL: it is about rows of its own. */
static bool find_cleanup(const struct wconf *wconf, const struct claim_work_args *args,
                         const struct storage_service *service, const struct cleanup **ret,
                         GError **error)
{
    *ret = NULL;
    if (!*args->cleanup)
        return true;
    const struct cleanup *cleanup = wconf_cleanup_of(wconf, args->cleanup, service, error);
    if (!cleanup || !cleanup_is_void(wconf->head, cleanup)) {
        *ret = cleanup;
        return cleanup != NULL;
    }
    const struct storage_service *owner =
        config_storage_service_of(wconf->head, cleanup->service_id);
    g_autofree char *name = config_storage_service_name(wconf->head, owner);
    fettle_set_error(error, REFUSED, "cleanup %s: %s is up again", args->cleanup, name);
    return false;
}

static void set_running(struct wconf *wconf, const struct cleanup *old, GPtrArray *changes)
{
    record_autoptr(cleanup) cleanup = cleanup_copy(old);
    cleanup->state = CLEANUP_RUNNING;
    if (changes->len && old->state != CLEANUP_RUNNING)
        wconf_cleanup_put(wconf, cleanup, changes);
}

static void claim(struct wconf *wconf, const struct storage_service *service,
                  const struct worker *old, GPtrArray *changes)
{
    record_autoptr(worker) row = worker_copy(old);
    if (!row->was_service_id) {
        row->was_service_id = old->service_id;
        row->was_updated_us = old->updated_us;
    }
    wconf_work_give(wconf, row, service);
    wconf_work_put_row(wconf, row, changes);
}

static void claim_all(struct wconf *wconf, struct rpc_request *request,
                      const struct claim_work_args *args, const struct storage_service *service,
                      const struct cleanup *cleanup)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(work_verdicts) verdicts = work_verdicts_new();
    for (guint i = 0; i < args->items->len; i++) {
        const struct work_claim *item = args->items->pdata[i];
        g_autoptr(GError) error = NULL;
        const struct worker *row = NULL;
        if (change_list_has(changes, "worker", item->key))
            fettle_set_error(&error, WRONG_INPUT, "%s: is named twice", item->key);
        else
            row = cleanup ? find_of_another(wconf, cleanup, item, &error)
                          : find_left(wconf, service, item, &error);
        if (row)
            claim(wconf, service, row, changes);
        wconf_work_verdict(verdicts, item->key, row ? WORK_PASSED : WORK_REFUSED, error);
    }
    if (cleanup)
        set_running(wconf, cleanup, changes);
    wconf_work_finish(wconf, request, args->commit_id, changes, verdicts);
}

/* Each row of that claim has passed. */
static void claimed_before(struct wconf *wconf, struct rpc_request *request,
                           const struct claim_work_args *args, guint64 serial)
{
    record_autoptr(work_verdicts) verdicts = work_verdicts_new();
    for (guint i = 0; i < args->items->len; i++) {
        const struct work_claim *item = args->items->pdata[i];
        const struct worker *row = config_get(wconf->head, "worker", item->key, NULL);
        wconf_work_verdict(verdicts, item->key,
                           row && row->claim == serial ? WORK_PASSED : WORK_LOOK_AT_COPY, NULL);
    }
    wconf_work_answer_again(wconf, request, serial, verdicts);
}

void wconf_handle_claim_work(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    guint64 serial = 0;
    record_autoptr(claim_work_args) args =
        rpc_request_args(request, &claim_work_args_record, &error);
    if (args && wconf_work_again(wconf, request, args->commit_id, &serial))
        return;
    const struct storage_service *service =
        args ? wconf_work_caller(wconf, request, args->service, args->generation, &error) : NULL;
    const struct cleanup *cleanup = NULL;
    if (service && serial)
        claimed_before(wconf, request, args, serial);
    else if (service && find_cleanup(wconf, args, service, &cleanup, &error))
        claim_all(wconf, request, args, service, cleanup);
    else
        wconf_work_refuse(wconf, request, error);
}

/* --- give_back --- */

static void give_back(struct wconf *wconf, struct rpc_request *request,
                      const struct give_back_args *args, const struct storage_service *service,
                      const struct worker *old)
{
    struct resource resource = resource_of_row(wconf->head, old);
    GPtrArray *changes = change_list_new();
    g_autofree char *cleaner = config_storage_service_name(wconf->head, service);
    g_autofree char *name = wconf_work_name(wconf->head, old);
    record_autoptr(worker) row = worker_copy(old);
    row->service_id = old->was_service_id;
    row->updated_us = old->was_updated_us;
    row->was_service_id = row->was_updated_us = 0;
    wconf_work_put_row(wconf, row, changes);
    struct decision *decision =
        resource.exists
            ? decision_about(resource_kind(resource.type), resource.uuid, resource_name(&resource),
                             "volumed/clean", VERDICT_WAIT, "Not cleaned")
            : decision_about("storage_service", service->uuid, cleaner, "volumed/clean",
                             VERDICT_WAIT, "Not cleaned");
    decision_set(&decision->summary, "%s could not clean %s: %s.", cleaner, name,
                 *args->why ? args->why : "it does not say why");
    decision_set(&decision->task, "%s", row->status);
    decision->event = EVENT_ALERT;
    decision->level = EVENT_LEVEL_WARNING;
    wconf_work_tell_once(wconf, decision, changes);
    const struct cleanup_counts counts = {.failed = 1};
    wconf_cleanup_count(wconf, args->cleanup, service, &counts, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_give_back(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(give_back_args) args = rpc_request_args(request, &give_back_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct storage_service *service =
        args ? wconf_work_caller(wconf, request, args->service, args->generation, &error) : NULL;
    const struct worker *row =
        service ? wconf_work_claimed(wconf, service, args->key, args->claim, &error) : NULL;
    g_autofree char *name = row ? wconf_work_name(wconf->head, row) : NULL;
    if (row && !row->was_service_id)
        fettle_set_error(&error, WRONG_STATE, "%s: its work is not being cleaned", name);
    if (row && !error)
        give_back(wconf, request, args, service, row);
    else
        wconf_work_refuse(wconf, request, error);
}
