/*
 * end_work: what a resource is from now on, and its row gone, in one commit (CLN-02), of many rows
 * at once; each gets its own verdict, so that one that somebody has taken over, or that a rule
 * refuses, fails no other. See wconf_work_private.h.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/wconfd/wconf_work_private.h"
#include "proto/change.h"
#include "proto/storage/volume_driver.h"

struct ending {
    struct wconf *wconf;
    const struct storage_service *service;
    GPtrArray *changes;
    GPtrArray *lines; /* char *: what was cleaned, or has failed */
    bool cleaned;
    const struct worker *last; /* of these */
    char *host;                /* of what was named last */
};

/* --- may it end so? --- */

/* `made`: what has the data that it makes. */
static bool data_fits(const struct worker *row, const struct work_row *work,
                      const struct resource *resource, const struct resource *made,
                      const struct work_end *item, GError **error)
{
    const char *kind = resource_kind(resource->type);
    g_autofree char *name = volume_data_name(made->uuid, row->claim);
    bool removes = work->done == TASK_FINAL_REMOVED;
    if (*item->data && (item->failed || removes)) {
        fettle_set_error(error, WRONG_INPUT, "data: %s that %s names none", row->operation,
                         removes ? "removes" : "failed");
        return false;
    }
    if (*item->data && strcmp(item->data, name) != 0) {
        fettle_set_error(error, WRONG_INPUT, "data: %s is not %s, by its claim (SAF-52)",
                         item->data, name);
        return false;
    }
    if (item->failed)
        return true;
    if (removes && *resource->data) {
        fettle_set_error(error, WRONG_STATE, "%s %s names %s still; that is a step before", kind,
                         resource_name(resource), resource->data);
        return false;
    }
    if (removes || *item->data ||
        (*resource->data && !work->makes_partners && !resource_is_moved(row)))
        return true;
    fettle_set_error(error, WRONG_INPUT, "data: at the end of %s %s %s has some", row->operation,
                     kind, resource_name(resource));
    return false;
}

static bool size_fits(const struct resource *resource, const struct work_end *item, GError **error)
{
    if (!item->size || item->size >= resource->size)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "size: %" G_GUINT64_FORMAT " GiB is smaller than %" G_GUINT64_FORMAT " GiB",
                     item->size, resource->size);
    return false;
}

/* It is what the row has made it (SAF-121). */
static bool partner_stands(const struct config *head, const struct worker *row,
                           const struct work_row *work, GError **error)
{
    struct resource partner = resource_partner(head, row);
    if (!*row->partner_id || g_strcmp0(work->partner_status, partner.status) == 0)
        return true;
    fettle_set_error(error, REFUSED, "%s %s is %s, and not %s as the work on %s says (SAF-121)",
                     resource_kind(partner.type), resource_name(&partner), partner.status,
                     work->partner_status, row->resource_id);
    return false;
}

static bool may_end(const struct ending *ending, const struct worker *row,
                    const struct resource *resource, const struct work_end *item, GError **error)
{
    const struct work_row *work = wconf_work_row(ending->wconf, row);
    bool moved = strcmp(resource->status, row->status) != 0;
    g_autofree char *name = wconf_work_name(ending->wconf->head, row);
    if (moved && !item->moved_on)
        fettle_set_error(error, REFUSED, "%s is %s, and not %s as its work says", name,
                         resource->status, row->status);
    else if (!moved && item->moved_on)
        fettle_set_error(error, WRONG_INPUT, "%s is %s still", name, row->status);
    else if (!work)
        fettle_set_error(error, WRONG_STATE, "%s: this version knows no %s", name, row->operation);
    else if (moved)
        return true;
    else {
        struct resource made = resource_made(ending->wconf->head, row, work);
        return partner_stands(ending->wconf->head, row, work, error) &&
               data_fits(row, work, resource, &made, item, error) &&
               size_fits(resource, item, error);
    }
    return false;
}

/* Its guest, another life of it or another guest may have written: one that runs, or was about to
 * begin when the copy was accepted. */
static bool guest_wrote(const struct config *head, const struct work_source *noted)
{
    guint64 generation;
    const char *attachment = attachment_of_source(head, noted, &generation);
    const struct volume *volume = config_get(head, "volume", noted->resource_id, NULL);
    return strcmp(attachment, noted->attachment) != 0 || generation != noted->generation ||
           (volume && attachment_may_run(head, volume));
}

/* A copy that is no point in time counts only if nobody can have written to its source meanwhile
 * (SAF-120). Why not, to be freed with g_free(); NULL: it counts. */
static char *source_moved(const struct config *head, const struct worker *row,
                          const struct work_row *work, bool point)
{
    const struct work_source *noted = row->source;
    if (!noted)
        return NULL;
    struct resource source = resource_of(head, noted->resource_type, noted->resource_id);
    const char *kind = resource_kind(source.type);
    bool partner = noted->resource_type == row->partner_type &&
                   strcmp(noted->resource_id, row->partner_id) == 0;
    const char *status = partner                  ? work->partner_status
                         : resource_is_moved(row) ? row->status
                                                  : resource_ready_status(source.type);
    if (strcmp(source.status, status) != 0)
        return g_strdup_printf("%s %s is %s since", kind, resource_name(&source), source.status);
    return strcmp(source.data, noted->data) != 0 || (!point && guest_wrote(head, noted))
               ? g_strdup_printf("%s %s was written meanwhile", kind, resource_name(&source))
               : NULL;
}

/* Whether changes were lost since the row was taken: the serial has leapt (engine_leap()). What is
 * lost may have ended the row; then its data was swept, or is named in front of the loss and in use
 * there, and its source was written (SAF-52). */
static bool was_lost(const struct config *head, const struct worker *row)
{
    return config_serial(head) >= row->claim + LIMIT_SERIAL_LEAP;
}

/* Why data that is whole by its maker does not count, to be freed with g_free(); NULL: it does. */
static char *why_not(const struct config *head, const struct worker *row,
                     const struct work_row *work, const struct work_end *item)
{
    if (item->moved_on || item->failed)
        return NULL;
    if (*item->data && was_lost(head, row))
        return g_strdup_printf("changes were lost after it was begun, so %s is not taken for "
                               "whole and stays on the back end; delete this one and ask again",
                               item->data);
    return source_moved(head, row, work, item->point);
}

/* --- the end --- */

static void note(struct ending *ending, const struct worker *row, const struct work_end *item,
                 const char *became)
{
    g_autofree char *name = wconf_work_name(ending->wconf->head, row);
    if (!row->was_service_id && !item->failed)
        return;
    ending->cleaned = ending->cleaned || row->was_service_id;
    ending->last = row;
    g_ptr_array_add(ending->lines, g_strdup_printf("%s: %s -> %s%s%s", name, row->status, became,
                                                   *item->why ? ": " : "", item->why));
}

/* What it had before is trash, where it was. */
static void name_data(struct ending *ending, const struct worker *row, struct resource *owner,
                      const struct work_end *item)
{
    const struct backend *backend = config_get(ending->wconf->head, "backend", row->backend, NULL);
    const char *where = backend ? backend->name : row->backend;
    if (*owner->data)
        wconf_work_unname(ending->wconf, owner, row->operation, ending->changes);
    owner->backend = row->backend;
    if (*row->volume_type)
        owner->volume_type = row->volume_type;
    owner->data = item->data;
    owner->bytes = item->bytes;
    owner->sum = item->sum;
    owner->virtual_size = item->virtual_size;
    owner->checksum = item->checksum;
    g_free(ending->host);
    owner->host = ending->host = g_strdup_printf("%s@%s", ending->service->host, where);
}

/* With its new data, if that is what was made. */
static void end_partner(struct ending *ending, const struct worker *row,
                        const struct work_end *item)
{
    const struct work_row *work = wconf_work_row(ending->wconf, row);
    struct resource partner = resource_partner(ending->wconf->head, row);
    if (work && work->makes_partners && *item->data && !item->moved_on)
        name_data(ending, row, &partner, item);
    wconf_work_release(ending->wconf, row, &partner, item->why, ending->changes);
}

static const char *end_resource(struct ending *ending, const struct worker *row,
                                struct resource *resource, const struct work_end *item)
{
    struct wconf *wconf = ending->wconf;
    const struct work_row *work = wconf_work_row(wconf, row);
    const char *word = task_final_words[item->failed ? work->cleaned : work->done];
    if (!item->failed && work->done == TASK_FINAL_REMOVED) {
        g_ptr_array_add(
            ending->changes,
            config_delete(wconf->head, resource_kind(row->resource_type), row->resource_id));
        return word;
    }
    resource->status = word;
    resource->status_why = item->failed ? item->why : "";
    if (*item->data && !work->makes_partners)
        name_data(ending, row, resource, item);
    if (item->size)
        resource->size = item->size;
    g_ptr_array_add(ending->changes, resource_put(wconf->head, resource));
    return word;
}

static void empty_trash(struct ending *ending, const struct work_end *item)
{
    for (guint i = 0; i < item->removed->len; i++) {
        const struct config *head = ending->wconf->head;
        g_autofree char *key = config_trash_key(ending->service->backend, item->removed->pdata[i]);
        if (config_get(head, "trash", key, NULL) && !change_list_has(ending->changes, "trash", key))
            g_ptr_array_add(ending->changes, config_delete(head, "trash", key));
    }
}

static bool end_item(struct ending *ending, const struct work_end *item, GError **error)
{
    const struct config *head = ending->wconf->head;
    if (change_list_has(ending->changes, "worker", item->key)) {
        fettle_set_error(error, WRONG_INPUT, "%s: is named twice", item->key);
        return false;
    }
    const struct worker *row =
        wconf_work_claimed(ending->wconf, ending->service, item->key, item->claim, error);
    if (!row)
        return false;
    struct resource resource = resource_of_row(head, row);
    if (!may_end(ending, row, &resource, item, error))
        return false;
    g_autofree char *moved = why_not(head, row, wconf_work_row(ending->wconf, row), item);
    struct work_end torn = *item;
    if (moved) {
        torn.failed = true;
        torn.why = moved;
        torn.data = (char *)"";
        item = &torn;
    }
    const char *became =
        item->moved_on ? "left alone, it has moved on" : end_resource(ending, row, &resource, item);
    end_partner(ending, row, item);
    note(ending, row, item, became);
    empty_trash(ending, item);
    g_ptr_array_add(ending->changes, config_delete(head, "worker", item->key));
    return true;
}

/* By itself, so that what a rule refuses holds up no other. */
static bool rules_allow(const struct ending *ending, guint from, GError **error)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new();
    for (guint i = from; i < ending->changes->len; i++)
        g_ptr_array_add(changes, ending->changes->pdata[i]);
    return wconf_would_commit(ending->wconf, changes, AUTHOR_WORK, error);
}

static bool try_item(struct ending *ending, const struct work_end *item, GError **error)
{
    struct ending before = *ending;
    guint from = ending->changes->len, told = ending->lines->len;
    if (end_item(ending, item, error) && rules_allow(ending, from, error))
        return true;
    before.host = ending->host;
    *ending = before;
    g_ptr_array_set_size(ending->changes, (int)from);
    g_ptr_array_set_size(ending->lines, (int)told);
    return false;
}

/* One record for all: about the resource if it is one, else about who has done it. */
static void decide(struct ending *ending)
{
    struct wconf *wconf = ending->wconf;
    struct resource one = ending->lines->len == 1 ? resource_of_row(wconf->head, ending->last)
                                                  : resource_read(RESOURCE_VOLUME, NULL);
    g_autofree char *who = config_storage_service_name(wconf->head, ending->service);
    const char *state = ending->cleaned ? "Cleaned" : "Failed";
    if (!ending->lines->len)
        return;
    struct decision *decision =
        one.exists ? decision_about(resource_kind(one.type), one.uuid, resource_name(&one),
                                    "volumed", VERDICT_ACT, state)
                   : decision_about("storage_service", ending->service->uuid, who, "volumed",
                                    VERDICT_ACT, state);
    if (one.exists)
        decision_set(&decision->summary, "%s: %s.", who, (const char *)ending->lines->pdata[0]);
    else
        decision_set(&decision->summary, "%s: rows of work that were cleaned, or have failed: %u.",
                     who, ending->lines->len);
    for (guint i = 0; i < MIN(ending->lines->len, LIMIT_REPAIR_EVIDENCE); i++)
        g_ptr_array_add(decision->evidence, g_strdup(ending->lines->pdata[i]));
    if (one.exists)
        decision_set(&decision->task, "%s", ending->last->status);
    decision->event = ending->cleaned ? EVENT_RECOVERED : EVENT_NONE;
    wconf_decide(wconf, decision, ending->changes);
}

static void end_all(struct wconf *wconf, struct rpc_request *request,
                    const struct end_work_args *args, const struct storage_service *service)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    record_autoptr(work_verdicts) verdicts = work_verdicts_new();
    struct ending ending = {wconf, service, change_list_new(), lines};
    struct cleanup_counts counts = {0};
    for (guint i = 0; i < args->items->len; i++) {
        const struct work_end *item = args->items->pdata[i];
        g_autoptr(GError) error = NULL;
        bool there = config_get(wconf->head, "worker", item->key, NULL) != NULL;
        bool passed = try_item(&ending, item, &error);
        counts.cleaned += passed && !item->moved_on;
        counts.skipped += passed && item->moved_on;
        /* Without a row it may be this very call that has ended it, so long ago that its id is
         * forgotten. */
        wconf_work_verdict(verdicts, item->key,
                           passed  ? WORK_PASSED
                           : there ? WORK_REFUSED
                                   : WORK_LOOK_AT_COPY,
                           error);
    }
    g_free(ending.host);
    decide(&ending);
    wconf_cleanup_count(wconf, args->cleanup, service, &counts, ending.changes);
    wconf_work_finish(wconf, request, args->commit_id, ending.changes, verdicts);
}

/* A row that this commit has changed it has ended. */
static void ended_before(struct wconf *wconf, struct rpc_request *request,
                         const struct end_work_args *args, guint64 serial)
{
    record_autoptr(work_verdicts) verdicts = work_verdicts_new();
    g_autoptr(GPtrArray) ended = wconf_stream_keys(wconf, serial, "worker");
    for (guint i = 0; i < args->items->len; i++) {
        const char *key = ((const struct work_end *)args->items->pdata[i])->key;
        bool passed = g_ptr_array_find_with_equal_func(ended, key, g_str_equal, NULL);
        wconf_work_verdict(verdicts, key, passed ? WORK_PASSED : WORK_LOOK_AT_COPY, NULL);
    }
    wconf_work_answer_again(wconf, request, serial, verdicts);
}

void wconf_handle_end_work(struct wconf *wconf, struct rpc_request *request)
{
    GError *error = NULL;
    guint64 serial = 0;
    record_autoptr(end_work_args) args = rpc_request_args(request, &end_work_args_record, &error);
    if (args && wconf_work_again(wconf, request, args->commit_id, &serial))
        return;
    const struct storage_service *service =
        args ? wconf_work_caller(wconf, request, args->service, args->generation, &error) : NULL;
    if (!service)
        wconf_work_refuse(wconf, request, error);
    else if (serial)
        ended_before(wconf, request, args, serial);
    else
        end_all(wconf, request, args, service);
}
