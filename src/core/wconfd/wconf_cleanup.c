/*
 * Cleanup on request and by itself: whose rows somebody else is to clean, and who. What fits, and
 * who cleans, says core/storage/cleanup_plan on the head; a `cleanup` on record is the request, and
 * the channel between all who ask and all who clean (docs/design/storage.md). See
 * wconf_work_private.h.
 */
#include "core/storage/cleanup_plan.h"

#include <string.h>

#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"

static gint64 state_ms(const void *data, const struct storage_service *service)
{
    return wconf_services_state_ms(data, service);
}

static char *key_of(const struct cleanup *cleanup)
{
    return config_cleanup_key(cleanup->service_id, cleanup->resource_type, cleanup->resource_id);
}

void wconf_cleanup_put(struct wconf *wconf, const struct cleanup *cleanup, GPtrArray *changes)
{
    g_autofree char *key = key_of(cleanup);
    g_ptr_array_add(changes, config_put(wconf->head, "cleanup", key, cleanup_to_json(cleanup)));
}

const struct cleanup *wconf_cleanup_of(const struct wconf *wconf, const char *key,
                                       const struct storage_service *by, GError **error)
{
    const struct cleanup *cleanup = config_get(wconf->head, "cleanup", key, NULL);
    bool over =
        cleanup && (cleanup->state == CLEANUP_DONE || cleanup->state == CLEANUP_UNAVAILABLE);
    if (!cleanup || !config_storage_service_of(wconf->head, cleanup->service_id))
        fettle_set_error(error, REFUSED, "cleanup %s, or its service, is off record", key);
    else if (over)
        fettle_set_error(error, REFUSED, "cleanup %s is %s", key,
                         enum_word(&cleanup_state_words, (int)cleanup->state));
    else if (cleanup->by != by->id)
        fettle_set_error(error, REFUSED, "cleanup %s: service %" G_GUINT64_FORMAT " does it", key,
                         cleanup->by);
    else
        return cleanup;
    return NULL;
}

void wconf_cleanup_count(struct wconf *wconf, const char *key, const struct storage_service *by,
                         const struct cleanup_counts *counts, GPtrArray *changes)
{
    const struct cleanup *old = counts->cleaned || counts->skipped || counts->failed
                                    ? config_get(wconf->head, "cleanup", key, NULL)
                                    : NULL;
    if (!old || old->by != by->id || old->state == CLEANUP_DONE)
        return;
    record_autoptr(cleanup) cleanup = cleanup_copy(old);
    cleanup->cleaned += counts->cleaned;
    cleanup->skipped += counts->skipped;
    cleanup->failed += counts->failed;
    wconf_cleanup_put(wconf, cleanup, changes);
}

/* --- request_cleanup --- */

static void add_service(const struct config *config, const struct storage_service *service,
                        const struct storage_service *by, guint found,
                        struct cleanup_requested *answer)
{
    struct cleanup_service *said = cleanup_service_new();
    said->id = service->id;
    said->found = found;
    said->state = service->state;
    g_free(said->host);
    said->host = config_storage_service_host(config, service);
    g_free(said->cluster_name);
    said->cluster_name = config_storage_service_cluster(config, service);
    text_set(&said->binary, enum_word(&storage_binary_words, (int)service->binary));
    if (by) {
        g_free(said->by);
        said->by = config_storage_service_host(config, by);
    }
    g_ptr_array_add(by ? answer->cleaning : answer->unavailable, said);
}

/* Nothing asks anybody: those who clean follow the changes. */
static void request_cleanup(struct wconf *wconf, struct rpc_request *request,
                            const struct request_cleanup_args *args, const GPtrArray *plan)
{
    guint64 stamp = 0;
    GPtrArray *changes = change_list_new();
    record_autoptr(cleanup_requested) answer = cleanup_requested_new();
    for (guint i = 0; i < plan->len; i++) {
        const struct cleanup_item *item = plan->pdata[i];
        add_service(wconf->head, item->service, item->by, item->found, answer);
        if (!item->cleanup)
            continue;
        stamp = stamp ? stamp : wconf_stamp(wconf);
        item->cleanup->requested_us = stamp;
        wconf_cleanup_put(wconf, item->cleanup, changes);
    }
    json_autoptr json = cleanup_requested_to_json(answer);
    if (changes->len) {
        wconf_work_commit(wconf, request, args->commit_id, changes, json);
        return;
    }
    g_ptr_array_unref(changes);
    wconf_answer_judged(wconf, request, config_serial(wconf->head), json_incref(json));
}

/* Its answer was lost: what that commit has put on record, as it is by now. The log may have moved
 * on; what nobody has touched since says so itself. */
static void requested_before(struct wconf *wconf, struct rpc_request *request, guint64 serial)
{
    const struct config *head = wconf->head;
    record_autoptr(cleanup_requested) answer = cleanup_requested_new();
    g_autoptr(GPtrArray) keys = wconf_stream_keys(wconf, serial, "cleanup");
    g_autoptr(GPtrArray) all = config_list(head, "cleanup");
    for (guint i = 0; i < all->len; i++) {
        const struct cleanup *cleanup = all->pdata[i];
        const struct storage_service *service =
            config_storage_service_of(head, cleanup->service_id);
        g_autofree char *key = key_of(cleanup);
        guint64 version = 0;
        config_get(head, "cleanup", key, &version);
        if (service &&
            (version == serial || g_ptr_array_find_with_equal_func(keys, key, g_str_equal, NULL)))
            add_service(head, service, config_storage_service_of(head, cleanup->by),
                        (guint)cleanup->found, answer);
    }
    wconf_answer_when_stored(wconf, serial, request, cleanup_requested_to_json(answer));
}

/* A scheduler has read that it is on; the head may know better. */
static bool may_ask(const struct wconf *wconf, const struct rpc_request *request,
                    const struct request_cleanup_args *args, GError **error)
{
    bool by_itself = args->automatic && !strcmp(request->from_role, ROLE_SCHEDULER);
    if (!wconf_work_allowed(wconf, error))
        return false;
    if (!by_itself || config_cluster(wconf->head)->auto_cleanup_enabled)
        return true;
    fettle_set_error(error, WRONG_STATE, "automatic cleanup is off (auto_cleanup_enabled)");
    return false;
}

static bool has_room(const struct wconf *wconf, const GPtrArray *plan, GError **error)
{
    if (config_count(wconf->head, "cleanup") + plan->len <= LIMIT_CLEANUPS)
        return true;
    fettle_set_error(error, LIMIT, "there would be more than %d cleanups at once; wait for some",
                     LIMIT_CLEANUPS);
    return false;
}

void wconf_handle_request_cleanup(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    guint64 serial = 0;
    record_autoptr(request_cleanup_args) args =
        rpc_request_args(request, &request_cleanup_args_record, &error);
    if (args && wconf_work_again(wconf, request, args->commit_id, &serial))
        return;
    const struct cleanup_clock clock = {state_ms, wconf};
    g_autoptr(GPtrArray) plan = args && !serial && may_ask(wconf, request, args, &error)
                                    ? cleanup_plan(wconf->head, args, &clock, &error)
                                    : NULL;
    if (serial)
        requested_before(wconf, request, serial);
    else if (plan && has_room(wconf, plan, &error))
        request_cleanup(wconf, request, args, plan);
    else
        wconf_work_refuse(wconf, request, error);
}

/* --- stand_in --- */

static void stand_in(struct wconf *wconf, struct rpc_request *request,
                     const struct stand_in_args *args)
{
    const struct cleanup *old = config_get(wconf->head, "cleanup", args->cleanup, NULL);
    const struct cleanup_clock clock = {state_ms, wconf};
    const struct storage_service *by = old ? cleanup_next(wconf->head, old, &clock) : NULL;
    if (!by) {
        const struct commit_result result = {.serial = config_serial(wconf->head)};
        wconf_answer_judged(wconf, request, result.serial, commit_result_to_json(&result));
        return;
    }
    GPtrArray *changes = change_list_new();
    record_autoptr(cleanup) cleanup = cleanup_copy(old);
    cleanup->by = by->id;
    cleanup->state = CLEANUP_ASKED;
    wconf_cleanup_put(wconf, cleanup, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_stand_in(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(stand_in_args) args = rpc_request_args(request, &stand_in_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    if (args && wconf_work_allowed(wconf, &error))
        stand_in(wconf, request, args);
    else
        wconf_work_refuse(wconf, request, error);
}

/* --- end_cleanup --- */

static void decide_end(struct wconf *wconf, const struct cleanup *cleanup,
                       const struct storage_service *by, GPtrArray *changes)
{
    const struct storage_service *service =
        config_storage_service_of(wconf->head, cleanup->service_id);
    g_autofree char *name = config_storage_service_name(wconf->head, service);
    g_autofree char *who = config_storage_service_name(wconf->head, by);
    struct decision *decision =
        decision_about("storage_service", service->uuid, name, "wconfd/cleanup",
                       cleanup->failed ? VERDICT_WAIT : VERDICT_ACT, "Cleaned");
    decision_set(&decision->summary,
                 "%s has cleaned for %s: found %" G_GUINT64_FORMAT
                 " rows, cleaned %" G_GUINT64_FORMAT ", left alone %" G_GUINT64_FORMAT
                 ", could not clean %" G_GUINT64_FORMAT ".",
                 who, name, cleanup->found, cleanup->cleaned, cleanup->skipped, cleanup->failed);
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("asked for by %s", *cleanup->requester ? cleanup->requester
                                                       : cleanup->manual   ? "a person"
                                                                           : "a scheduler"));
    if (*cleanup->resource_type)
        g_ptr_array_add(
            decision->evidence,
            g_strdup_printf("of %s %s alone", cleanup->resource_type,
                            *cleanup->resource_id ? cleanup->resource_id : "resources"));
    decision->event = cleanup->failed ? EVENT_ALERT : EVENT_RECOVERED;
    decision->level = cleanup->failed ? EVENT_LEVEL_WARNING : decision->level;
    if (decision->event == EVENT_ALERT)
        wconf_work_tell_once(wconf, decision, changes);
    else
        wconf_decide(wconf, decision, changes);
}

/* Of a whole service it stays, until that is up again: what was done about this death. Of some of
 * its resources there would be no end of them. */
static void end_cleanup(struct wconf *wconf, struct rpc_request *request,
                        const struct end_cleanup_args *args, const struct storage_service *by,
                        const struct cleanup *old)
{
    GPtrArray *changes = change_list_new();
    record_autoptr(cleanup) cleanup = cleanup_copy(old);
    cleanup->state = CLEANUP_DONE;
    cleanup->failed =
        cleanup_is_void(wconf->head, old) ? old->failed : cleanup_left(wconf->head, old);
    if (*cleanup->resource_type)
        g_ptr_array_add(changes, config_delete(wconf->head, "cleanup", args->cleanup));
    else
        wconf_cleanup_put(wconf, cleanup, changes);
    decide_end(wconf, cleanup, by, changes);
    wconf_work_commit(wconf, request, args->commit_id, changes, NULL);
}

void wconf_handle_end_cleanup(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    record_autoptr(end_cleanup_args) args =
        rpc_request_args(request, &end_cleanup_args_record, &error);
    if (args && wconf_answer_repeated(wconf, args->commit_id, request))
        return;
    const struct storage_service *by =
        args ? wconf_work_caller(wconf, request, args->service, args->generation, &error) : NULL;
    const struct cleanup *cleanup = by ? wconf_cleanup_of(wconf, args->cleanup, by, &error) : NULL;
    if (cleanup && cleanup->requested_us != args->requested_us)
        fettle_set_error(&error, REFUSED, "cleanup %s was asked for anew", args->cleanup);
    if (cleanup && !error)
        end_cleanup(wconf, request, args, by, cleanup);
    else
        wconf_work_refuse(wconf, request, error);
}
